/* idx.c — IDX, the format of MNIST: two zero bytes, a type code, the number of dims, each dim as 4 bytes, and the
 * elements; all big-endian. */
#include "extras/images/images_private.h"

static const struct {
    unsigned char code;
    const char   *npy; /* npy's name of the type */
    int           bytes;
    tn_dtype      written;
} types[] = {{0x08, "u1", 1, TN_U8},  {0x09, "i1", 1, TN_BOOL}, {0x0b, "i2", 2, TN_BOOL},
             {0x0c, "i4", 4, TN_I32}, {0x0d, "f4", 4, TN_F32},  {0x0e, "f8", 8, TN_F64}}; /* TN_BOOL: not written */
enum { TYPES = sizeof types / sizeof *types, MAX = INT32_MAX };

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
        fits = tn__mul_i64(n, h->shape.d[i], &n) && fits;
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

static tn_tensor *elements(const tn__source *s, const head *h)
{
    const int element = tn__element_of_npy(types[h->type].npy);
    return tn__scoped(tn__element_read(s, h->bytes, element, true, h->shape, "the tensor"));
}

static tn_tensor *plain(const tn__source *s)
{
    unsigned char p[4 + 4 * TN_MAX_DIMS];
    head          h;
    if (s->size < 4)
        return tn_raise_null(TN_EFORMAT, "%s: %lld bytes are too few for an IDX file", s->label, (long long)s->size);
    if (!tn__source_read(s, p, 0, 4) || !head_begin(s->label, p, &h)) return NULL;
    if (s->size < h.bytes) return tn_raise_null(TN_EFORMAT, "%s: the file ends within its header", s->label);
    if (!tn__source_read(s, p, 0, (size_t)h.bytes) || !head_end(s->label, p, &h) || !check_size(s->label, &h, s->size))
        return NULL;
    return elements(s, &h);
}

/* Reads a gzip file: the header gives the total size, which deflate's maximum expansion limits. */
static tn_tensor *compressed(const tn__source *s, const unsigned char *data)
{
    const size_t  size = (size_t)s->size;
    unsigned char p[4 + 4 * TN_MAX_DIMS], *all;
    head          h;
    tn__source    inner;
    tn_tensor    *t = NULL;
    if (!tn__gunzip(s->label, data, size, p, 4, true) || !head_begin(s->label, p, &h) ||
        !tn__gunzip(s->label, data, size, p, (size_t)h.bytes, true) || !head_end(s->label, p, &h))
        return NULL;
    if (h.size / TN__INFLATION > s->size)
        return tn_raise_null(TN_EFORMAT, "%s: %lld bytes cannot come from %zu compressed ones", s->label,
                             (long long)h.size, size);
    if (!(all = tn__mem_get((size_t)h.size))) return NULL;
    if (tn__gunzip(s->label, data, size, all, (size_t)h.size, false) &&
        tn__source_memory(&inner, s->label, all, (size_t)h.size))
        t = elements(&inner, &h);
    tn__mem_put(all, (size_t)h.size);
    return t;
}

tn_tensor *tn_idx_load(const char *path)
{
    static const char who[] = "tn_idx_load";
    char              label[TN__LABEL];
    unsigned char     first[2] = {0};
    tn__source        s;
    tn_tensor        *t = NULL;
    if (tn__blocked() || !tn__source_open(&s, path ? tn__label(label, who, path) : who, path)) return NULL;
    if (s.size < 2 || tn__source_read(&s, first, 0, 2)) {
        const bool     packed = first[0] == 0x1f && first[1] == 0x8b && s.size <= MAX;
        unsigned char *all = packed ? tn__mem_get((size_t)s.size) : NULL;
        if (!packed) t = plain(&s);
        else if (all && tn__source_read(&s, all, 0, (size_t)s.size)) t = compressed(&s, all);
        if (all) tn__mem_put(all, (size_t)s.size);
    }
    tn__source_close(&s);
    return tn_error() == TN_OK ? t : NULL;
}

tn_status tn_idx_save(const char *path, const tn_tensor *t)
{
    static const char who[] = "tn_idx_save";
    char              label[TN__LABEL];
    unsigned char     p[4 + 4 * TN_MAX_DIMS] = {0}, e[8];
    int               type = 0;
    tn__sink          s;
    if (tn__blocked()) return tn_error();
    if (!path || !t) return tn_raise(TN_EINVAL, "%s: %s is NULL", who, path ? "the tensor" : "the path");
    tn__label(label, who, path);
    const tn_dtype dt = tn_dtype_of(t);
    while (type < TYPES && (types[type].written != dt || dt == TN_BOOL)) type++;
    if (type == TYPES)
        return tn_raise(TN_EDTYPE, "%s: IDX has no %s; it has u8, i32, f32 and f64", label, tn_dtype_name(dt));
    const tn_shape shape = tn_shape_of(t);
    const int64_t  n = tn_numel(t), size = types[type].bytes;
    p[2] = types[type].code, p[3] = (unsigned char)shape.n;
    for (int i = 0; i < shape.n; i++) {
        if (shape.d[i] > UINT32_MAX) return tn_raise(TN_ESHAPE, "%s: a dim has more than 2^32 - 1 elements", label);
        for (int k = 0; k < 4; k++) p[4 + 4 * i + k] = (unsigned char)(shape.d[i] >> (24 - 8 * k));
    }
    if (!tn__sink_open(&s, label, path, 4 + 4 * shape.n + n * size)) return tn_error();
    bool fine = tn__sink_write(&s, p, (size_t)(4 + 4 * shape.n));
    for (int64_t i = 0; fine && i < n; i++) {
        const double  real = tn_get(t, i);
        const float   narrow = (float)real;
        const int64_t whole = dt == TN_U8 || dt == TN_I32 ? tn_get_i64(t, i) : 0;
        uint64_t      bits = (uint64_t)whole;
        uint32_t      few;
        if (dt == TN_F64) memcpy(&bits, &real, 8);
        if (dt == TN_F32) memcpy(&few, &narrow, 4), bits = few;
        for (int64_t k = 0; k < size; k++) e[k] = (unsigned char)(bits >> (8 * (size - 1 - k)));
        fine = tn__sink_write(&s, e, (size_t)size);
    }
    return tn__sink_end(&s, fine);
}
