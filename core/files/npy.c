/* npy.c — one tensor in NumPy's format: a magic, a version, a header that is a Python dict of three keys, the elements.
 *
 *     \x93NUMPY 1 0 | u16 length | {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }      \n | elements
 *
 * Versions 2 and 3 have a length of 32 bits. The dict is read by a special parser for these three keys. The written
 * bytes are identical to NumPy's. */
#include "core/files/io.h"
#include "core/tensor/tensor.h"

#include <string.h>

enum { MAX_HEADER = 10000 }; /* NumPy's own limit */

typedef struct {
    const char *label, *text;
    int64_t     base; /* of the text in the file */
    size_t      bytes, at;
    int         element;
    bool        big_endian, fortran;
    tn_shape    shape;
} header;

/* ---- the dict ---------------------------------------------------------------------------------------------------- */

static bool fail(const header *h, tn_status code, size_t at, const char *what)
{
    char   found[TN__QUOTED];
    size_t n = at < h->bytes ? h->bytes - at : 0;
    return tn_raise_false(code, "%s: header, byte %lld: %s, found %s", h->label, (long long)h->base + (long long)at,
                          what, n ? tn__quote(found, h->text + at, n < 20 ? n : 20, 20) : "its end");
}

static void skip_space(header *h)
{
    while (h->at < h->bytes && strchr(" \t\n\r\f", h->text[h->at]) && h->text[h->at]) h->at++;
}
static bool next_is(header *h, char c)
{
    skip_space(h);
    return h->at < h->bytes && h->text[h->at] == c;
}
static bool take(header *h, char c)
{
    if (!next_is(h, c)) return false;
    h->at++;
    return true;
}
static bool take_word(header *h, const char *word)
{
    size_t n = strlen(word);
    skip_space(h);
    if (h->bytes - h->at < n || memcmp(h->text + h->at, word, n)) return false;
    char after = h->at + n < h->bytes ? h->text[h->at + n] : ' ';
    if ((after >= 'a' && after <= 'z') || (after >= 'A' && after <= 'Z') || (after >= '0' && after <= '9') ||
        after == '_')
        return false;
    h->at += n;
    return true;
}

/* A string in single or double quotes, without escapes, of less than size bytes. */
static bool take_string(header *h, char *to, size_t size, const char *what)
{
    skip_space(h);
    size_t start = h->at, n = 0;
    char   mark = start < h->bytes ? h->text[start] : 0;
    if (mark != '\'' && mark != '"') return fail(h, TN_EFORMAT, start, what);
    for (h->at++; h->at < h->bytes && h->text[h->at] != mark; h->at++) {
        char c = h->text[h->at];
        if (n + 1 == size || c == '\\' || (unsigned char)c < 0x20) return fail(h, TN_EFORMAT, start, what);
        to[n++] = c;
    }
    if (h->at == h->bytes) return fail(h, TN_EFORMAT, start, what);
    h->at++;
    to[n] = 0;
    return true;
}

static bool parse_descr(header *h)
{
    char   d[16] = "";
    size_t start;
    skip_space(h);
    start = h->at;
    if (next_is(h, '['))
        return fail(h, TN_EUNSUPPORTED, start,
                    "descr is a list: structured arrays are not supported; save each field alone");
    if (!take_string(h, d, sizeof d, "descr must be a short string such as '<f4'")) return false;
    if (!strchr("<>=|", d[0]) || !d[0]) return fail(h, TN_EFORMAT, start, "descr must start with '<', '>', '=' or '|'");
    h->element = tn__element_of_npy(d + 1);
    const uint16_t one = 1;
    bool           native_big = *(const unsigned char *)&one == 0;
    h->big_endian = d[0] == '>' || (d[0] == '=' && native_big);
    if (h->element < 0) {
        const char *tail = d + 1 + strspn(d + 1, "OVUSaMmcfiub");
        if (tail == d + 2 && !tail[strspn(tail, "0123456789[]fnmushDMWY")]) /* "U3", "M8[ns]" */
            return fail(h, TN_EUNSUPPORTED, start,
                        "this descr is not supported (b1, i1 to i8, u1 to u8, f2 to f8 are); convert with astype");
        return fail(h, TN_EFORMAT, start, "this descr is not a numeric type of NumPy");
    }
    if (d[0] == '|' && tn__elements[h->element].bits > 8)
        return fail(h, TN_EFORMAT, start, "a descr of more than one byte must specify its byte order, '<' or '>'");
    return true;
}

static bool parse_dim(header *h, int64_t *dim)
{
    skip_space(h);
    size_t start = h->at;
    *dim = 0;
    for (; h->at < h->bytes && h->text[h->at] >= '0' && h->text[h->at] <= '9'; h->at++)
        if (!tn__mul_i64(*dim, 10, dim) || !tn__add_i64(*dim, h->text[h->at] - '0', dim))
            return fail(h, TN_EFORMAT, start, "a size must fit in 63 bits");
    if (h->at == start) return fail(h, TN_EFORMAT, start, "a size must be a non-negative integer");
    if (h->text[start] == '0' && h->at - start > 1) return fail(h, TN_EFORMAT, start, "a size must not start with 0");
    if (h->at < h->bytes && h->text[h->at] == 'L') h->at++; /* written by Python 2 */
    return true;
}

static bool parse_shape(header *h)
{
    skip_space(h);
    size_t start = h->at;
    if (!take(h, '(')) return fail(h, TN_EFORMAT, start, "shape must be a tuple such as (2, 3)");
    h->shape.n = 0;
    bool comma = true;
    while (!take(h, ')')) {
        int64_t dim;
        if (!comma) return fail(h, TN_EFORMAT, h->at, "shape needs ',' or ')' here");
        if (!parse_dim(h, &dim)) return false;
        if (h->shape.n == TN_MAX_DIMS)
            return fail(h, TN_EUNSUPPORTED, start, "shape has more than 8 dims, which is Tenon's limit");
        h->shape.d[h->shape.n++] = dim;
        comma = take(h, ',');
    }
    if (h->shape.n == 1 && !comma) return fail(h, TN_EFORMAT, start, "a tuple of one item needs a comma: (3,)");
    return true;
}

static bool parse_dict(header *h)
{
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    unsigned                 seen = 0;
    if (!take(h, '{')) return fail(h, TN_EFORMAT, h->at, "the header must be a dict, '{'");
    bool comma = true;
    while (!take(h, '}')) {
        char key[16];
        int  k = 0;
        if (!comma) return fail(h, TN_EFORMAT, h->at, "',' or '}' is expected");
        skip_space(h);
        size_t start = h->at;
        if (!take_string(h, key, sizeof key, "the key 'descr', 'fortran_order' or 'shape' is expected")) return false;
        while (k < 3 && strcmp(keys[k], key)) k++;
        if (k == 3) return fail(h, TN_EFORMAT, start, "the key 'descr', 'fortran_order' or 'shape' is expected");
        if (seen >> k & 1) return fail(h, TN_EFORMAT, start, "this key is a duplicate");
        seen |= 1u << k;
        if (!take(h, ':')) return fail(h, TN_EFORMAT, h->at, "':' is expected after a key");
        if (k == 0 && !parse_descr(h)) return false;
        if (k == 1) {
            h->fortran = take_word(h, "True");
            if (!h->fortran && !take_word(h, "False"))
                return fail(h, TN_EFORMAT, h->at, "fortran_order must be True or False");
        }
        if (k == 2 && !parse_shape(h)) return false;
        comma = take(h, ',');
    }
    skip_space(h);
    if (h->at < h->bytes) return fail(h, TN_EFORMAT, h->at, "only spaces may follow the dict");
    for (int k = 0; k < 3; k++)
        if (!(seen >> k & 1))
            return tn_raise_false(TN_EFORMAT, "%s: header: the key '%s' is missing", h->label, keys[k]);
    return true;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* The bytes of all elements; false if their product overflows, even without zeros: [0, 2^62, 2^62] is invalid. */
static bool data_bytes(const header *h, int64_t *bytes)
{
    int64_t n = tn__elements[h->element].bits / 8;
    bool    empty = false;
    for (int i = 0; i < h->shape.n; i++) {
        if (h->shape.d[i] == 0) empty = true;
        else if (!tn__mul_i64(n, h->shape.d[i], &n)) return false;
    }
    *bytes = empty ? 0 : n;
    return true;
}

static tn_tensor *transposed(tn_tensor *t) /* takes ownership of t */
{
    tn__layout l = t->l;
    for (int i = 0; i < l.shape.n; i++) {
        l.shape.d[i] = t->l.shape.d[l.shape.n - 1 - i];
        l.stride[i] = t->l.stride[l.shape.n - 1 - i];
    }
    tn_tensor *r = tn__alias_owned(t, &l);
    tn_drop(t);
    return r;
}

static tn_tensor *read_elements(const tn__source *s, const header *h, int64_t at)
{
    int64_t bytes;
    char    text[192];
    tn_shape_text(h->shape, text, sizeof text);
    if (!data_bytes(h, &bytes))
        return tn_raise_null(TN_EFORMAT, "%s: shape %s is too large: its bytes do not fit in 63 bits", s->label, text);
    if (bytes != s->size - at)
        return tn_raise_null(TN_EFORMAT, "%s: %s %s needs %lld bytes after the header, found %lld", s->label,
                             tn__elements[h->element].npy, text, (long long)bytes, (long long)(s->size - at));
    tn_shape shape = h->shape;
    if (h->fortran)
        for (int i = 0; i < shape.n; i++) shape.d[i] = h->shape.d[shape.n - 1 - i];
    tn_tensor *t = tn__element_read(s, at, h->element, h->big_endian, shape, "the array");
    return t && h->fortran && shape.n > 1 ? transposed(t) : t;
}

static tn_tensor *read_npy(const tn__source *s)
{
    unsigned char p[12] = {0};
    if (s->size < 10)
        return tn_raise_null(TN_EFORMAT, "%s: it has %lld bytes, too few for an npy file", s->label,
                             (long long)s->size);
    if (!tn__source_read(s, p, 0, s->size < 12 ? 10 : 12)) return NULL;
    if (memcmp(p, "\x93NUMPY", 6))
        return tn_raise_null(TN_EFORMAT, "%s: not an npy file: it does not start with \\x93NUMPY", s->label);
    if (p[6] < 1 || p[6] > 3 || p[7] != 0)
        return tn_raise_null(TN_EFORMAT, "%s: byte 6: version %d.%d, expected 1.0, 2.0 or 3.0", s->label, p[6], p[7]);
    if (p[6] > 1 && s->size < 12)
        return tn_raise_null(TN_EFORMAT, "%s: it has %lld bytes, too few for an npy file", s->label,
                             (long long)s->size);
    int64_t at = p[6] == 1 ? 10 : 12, n = p[8] | (int64_t)p[9] << 8;
    if (p[6] > 1) n |= (int64_t)p[10] << 16 | (int64_t)p[11] << 24;
    if (n > MAX_HEADER)
        return tn_raise_null(TN_EFORMAT, "%s: byte 8: a header of %lld bytes, the limit is %d", s->label, (long long)n,
                             MAX_HEADER);
    if (n > s->size - at)
        return tn_raise_null(TN_EFORMAT, "%s: byte 8: a header of %lld bytes, but only %lld follow", s->label,
                             (long long)n, (long long)(s->size - at));
    char *text = tn__mem_get((size_t)n);
    if (!text) return NULL;
    header     h = {.label = s->label, .text = text, .base = at, .bytes = (size_t)n};
    tn_tensor *t = tn__source_read(s, text, at, (size_t)n) && parse_dict(&h) ? read_elements(s, &h, at + n) : NULL;
    tn__mem_put(text, (size_t)n);
    return t;
}

tn_tensor *tn_npy_load(const char *path)
{
    if (tn__blocked()) return NULL;
    char       label[TN__LABEL];
    tn__source s;
    if (!tn__source_open(&s, tn__label(label, "tn_npy_load", path), path)) return NULL;
    tn_tensor *t = read_npy(&s);
    tn__source_close(&s);
    return tn__scoped(t);
}

tn_tensor *tn_npy_read(const void *data, size_t bytes)
{
    tn__source s;
    if (tn__blocked() || !tn__source_memory(&s, "tn_npy_read", data, bytes)) return NULL;
    return tn__scoped(read_npy(&s));
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

enum { HEADER = 512 }; /* twice 8 sizes of at most 19 digits fit */

static size_t put_header(char to[HEADER], const tn_tensor *t)
{
    const tn__element *e = &tn__elements[tn__element_of_dtype(t->dtype)];
    tn_shape           s = t->l.shape;
    size_t             at = 10;
    memcpy(to, "\x93NUMPY\x01\x00", 8);
    at += (size_t)snprintf(to + at, HEADER - at, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                           e->bits > 8 ? '<' : '|', e->npy);
    size_t first = at;
    for (int i = 0; i < s.n; i++) {
        at += (size_t)snprintf(to + at, HEADER - at, i ? ", %lld" : "%lld", (long long)s.d[i]);
        if (!i) first = at - first;
    }
    at += (size_t)snprintf(to + at, HEADER - at, s.n == 1 ? ",), }" : "), }");
    if (s.n) { /* as in NumPy, room for the first size to grow to 21 digits in place */
        memset(to + at, ' ', 21 - first);
        at += 21 - first;
    }
    size_t pad = 64 - (at + 1) % 64;
    memset(to + at, ' ', pad);
    at += pad;
    to[at++] = '\n';
    to[8] = (char)((at - 10) & 0xff), to[9] = (char)((at - 10) >> 8);
    return at;
}

/* Writes the header of t's file, and computes the total bytes; raises. */
static bool begin(const char *label, const tn_tensor *t, char head[HEADER], size_t *head_bytes, int64_t *all)
{
    if (!t) return tn_raise_false(TN_EINVAL, "%s: the tensor is NULL", label);
    if (t->dtype == TN_BF16)
        return tn_raise_false(TN_EUNSUPPORTED,
                              "%s: npy has no bf16; convert with tn_to(t, TN_F32), or write a safetensors file", label);
    *head_bytes = put_header(head, t);
    if (tn__add_i64((int64_t)*head_bytes, tn_shape_numel(t->l.shape) * (int64_t)tn__dtype_bytes(t->dtype), all))
        return true;
    return tn_raise_false(TN_EUNSUPPORTED, "%s: the file would have more than 2^63 - 1 bytes", label);
}

tn_status tn_npy_save(const char *path, const tn_tensor *t)
{
    if (tn__blocked()) return tn__self.error;
    char     label[TN__LABEL], head[HEADER];
    tn__sink s;
    size_t   n;
    int64_t  all;
    if (!begin(tn__label(label, "tn_npy_save", path), t, head, &n, &all)) return tn__self.error;
    if (!tn__sink_open(&s, label, path, all)) return tn__self.error;
    return tn__sink_end(&s, tn__sink_write(&s, head, n) && tn__element_write(&s, t));
}

tn_tensor *tn_npy_write(const tn_tensor *t)
{
    static const char label[] = "tn_npy_write";
    char              head[HEADER];
    size_t            n;
    int64_t           all;
    if (tn__blocked() || !begin(label, t, head, &n, &all)) return NULL;
    tn_tensor *r = tn__new_owned(TN_U8, (tn_shape){.n = 1, .d = {all}});
    if (!r) return NULL;
    tn__sink s;
    tn__sink_memory(&s, label, tn__ptr(r), all);
    if (!tn__sink_write(&s, head, n) || !tn__element_write(&s, t)) return tn_drop(r), NULL;
    return tn__scoped(r);
}
