/* idx.c — IDX, the format of MNIST: two zero bytes, a type code, the number of dims, each dim as 4 bytes, and the
 * elements; all big-endian. */
#include "extras/images/images_private.h"
#include "data/lines.h"

static const struct {
    unsigned char code;
    int           bytes;
    tn_dtype      dtype; /* of the tensor */
    bool          written;
} types[] = {{0x08, 1, TN_U8, true},  {0x09, 1, TN_I32, false}, {0x0b, 2, TN_I32, false},
             {0x0c, 4, TN_I32, true}, {0x0d, 4, TN_F32, true},  {0x0e, 8, TN_F64, true}};
enum { TYPES = sizeof types / sizeof *types, HEAD_MAX = 4 + 4 * TN_MAX_DIMS, MAX = INT32_MAX };

typedef struct {
    int      type, bytes; /* index into types; bytes of the header */
    tn_shape shape;
    int64_t  size; /* bytes of the whole file */
} head;

static int64_t big(const unsigned char *p) { return (int64_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3]; }

/* Parses the first four bytes, which give the header's length. False: raised. */
static bool head_begin(const char *label, const unsigned char *p, head *h)
{
    for (h->type = 0; h->type < TYPES && types[h->type].code != p[2]; h->type++) {}
    if (p[0] || p[1] || h->type == TYPES)
        return tn_raise_false(TN_EFORMAT,
                              "%s: not an IDX file: the first bytes are %02x %02x %02x %02x, expected 00 00 and a type",
                              label, p[0], p[1], p[2], p[3]);
    if (p[3] > TN_MAX_DIMS)
        return tn_raise_false(TN_EUNSUPPORTED, "%s: %d dims; at most %d are supported", label, p[3], TN_MAX_DIMS);
    h->shape = (tn_shape){.n = p[3]}, h->bytes = 4 + 4 * p[3];
    return true;
}

/* Parses the dims after them. */
static bool head_end(const char *label, const unsigned char *p, head *h)
{
    char    text[192];
    int64_t n = types[h->type].bytes;
    bool    fits = true;
    for (int i = 0; i < h->shape.n; i++) {
        h->shape.d[i] = big(p + 4 + 4 * i);
        if (h->shape.d[i] && n > INT64_MAX / h->shape.d[i]) fits = false;
        else n *= h->shape.d[i];
    }
    if (!fits || n > MAX)
        return tn_raise_false(TN_EUNSUPPORTED, "%s: %s elements of %d bytes exceed 2^31 bytes", label,
                              tn_shape_text(h->shape, text, sizeof text), types[h->type].bytes);
    h->size = h->bytes + n;
    return true;
}

static bool check_size(const char *label, const head *h, int64_t size)
{
    char text[192];
    if (h->size == size) return true;
    return tn_raise_false(TN_EFORMAT, "%s: a file of %s must have %lld bytes, this one has %lld", label,
                          tn_shape_text(h->shape, text, sizeof text), (long long)h->size, (long long)size);
}

static tn_tensor *elements(const unsigned char *p, const head *h)
{
    const int      size = types[h->type].bytes;
    const tn_dtype dt = types[h->type].dtype;
    const size_t   stored = tn_dtype_size(dt);
    tn_tensor     *t = tn_empty_of(dt, h->shape);
    unsigned char *to = t ? tn_data_mut(t) : NULL;
    for (int64_t i = to ? tn_numel(t) : 0; i > 0; i--, to += stored) {
        uint64_t bits = 0;
        for (int k = 0; k < size; k++) bits = bits << 8 | *p++;
        const uint32_t half = size == 1   ? (uint32_t)(int8_t)(uint8_t)bits
                              : size == 2 ? (uint32_t)(int16_t)(uint16_t)bits
                                          : (uint32_t)bits;
        if (dt == TN_U8) *to = (unsigned char)bits;
        else if (size == 8) memcpy(to, &bits, 8);
        else memcpy(to, &half, 4);
    }
    return t;
}

static tn_tensor *plain(const char *label, const unsigned char *p, int64_t size)
{
    head h;
    if (size < 4)
        return tn_raise_null(TN_EFORMAT, "%s: %lld bytes are too few for an IDX file", label, (long long)size);
    if (!head_begin(label, p, &h)) return NULL;
    if (size < h.bytes) return tn_raise_null(TN_EFORMAT, "%s: the file ends within its header", label);
    return head_end(label, p, &h) && check_size(label, &h, size) ? elements(p + h.bytes, &h) : NULL;
}

/* Reads a gzip file: the header gives the total size, which deflate's maximum expansion limits. */
static tn_tensor *compressed(const char *label, const unsigned char *data, size_t size)
{
    unsigned char p[HEAD_MAX], *all;
    head          h;
    tn_tensor    *t = NULL;
    if (!tn__gunzip(label, data, size, p, 4, true) || !head_begin(label, p, &h) ||
        !tn__gunzip(label, data, size, p, (size_t)h.bytes, true) || !head_end(label, p, &h))
        return NULL;
    if (h.size / TN__INFLATION > (int64_t)size)
        return tn_raise_null(TN_EFORMAT, "%s: %lld bytes cannot come from %zu compressed ones", label,
                             (long long)h.size, size);
    if (!(all = tn_mem_get((size_t)h.size))) return NULL;
    if (tn__gunzip(label, data, size, all, (size_t)h.size, false)) t = elements(all + h.bytes, &h);
    tn_mem_put(all, (size_t)h.size);
    return t;
}

tn_tensor *tn_idx_load(const char *path)
{
    char label[TN__IMAGE_LABEL];
    if (tn_blocked()) return NULL;
    const tn_scope scope = tn_scope_begin();
    tn_tensor     *file = tn_file_read(path, (int64_t)MAX + HEAD_MAX), *t = NULL;
    if (file) {
        const unsigned char *p = tn_data(file);
        const int64_t        size = tn_numel(file);
        tn__image_label(label, "tn_idx_load", path);
        t = size >= 2 && p[0] == 0x1f && p[1] == 0x8b ? compressed(label, p, (size_t)size) : plain(label, p, size);
    }
    return tn_scope_return(scope, tn_error() == TN_OK ? t : NULL);
}

tn_status tn_idx_save(const char *path, const tn_tensor *t)
{
    static const char who[] = "tn_idx_save";
    char              label[TN__IMAGE_LABEL];
    unsigned char     p[HEAD_MAX] = {0}, e[8];
    int               type = 0;
    tn_string         file = {0};
    if (tn_blocked()) return tn_error();
    if (!path || !t) return tn_raise(TN_EINVAL, "%s: %s is NULL", who, path ? "the tensor" : "the path");
    tn__image_label(label, who, path);
    const tn_dtype dt = tn_dtype_of(t);
    while (type < TYPES && !(types[type].written && types[type].dtype == dt)) type++;
    if (type == TYPES)
        return tn_raise(TN_EDTYPE, "%s: IDX has no %s; it has u8, i32, f32 and f64", label, tn_dtype_name(dt));
    const tn_shape shape = tn_shape_of(t);
    const int64_t  n = tn_numel(t), size = types[type].bytes;
    p[2] = types[type].code, p[3] = (unsigned char)shape.n;
    for (int i = 0; i < shape.n; i++) {
        if (shape.d[i] > UINT32_MAX) return tn_raise(TN_ESHAPE, "%s: a dim has more than 2^32 - 1 elements", label);
        for (int k = 0; k < 4; k++) p[4 + 4 * i + k] = (unsigned char)(shape.d[i] >> (24 - 8 * k));
    }
    bool fine = tn_string_add(&file, (tn_text){(const char *)p, (size_t)(4 + 4 * shape.n)}) == TN_OK;
    for (int64_t i = 0; fine && i < n; i++) {
        const double  real = tn_get(t, i);
        const float   narrow = (float)real;
        const int64_t whole = dt == TN_U8 || dt == TN_I32 ? tn_get_i64(t, i) : 0;
        uint64_t      bits = (uint64_t)whole;
        uint32_t      few;
        if (dt == TN_F64) memcpy(&bits, &real, 8);
        if (dt == TN_F32) memcpy(&few, &narrow, 4), bits = few;
        for (int64_t k = 0; k < size; k++) e[k] = (unsigned char)(bits >> (8 * (size - 1 - k)));
        fine = tn_string_add(&file, (tn_text){(const char *)e, (size_t)size}) == TN_OK;
    }
    const tn_status status = fine ? tn_file_write(path, file.at, file.bytes) : tn_error();
    tn_string_free(&file);
    return status;
}
