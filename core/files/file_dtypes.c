/* file_dtypes.c — the element types of files, and their conversion: read into a tensor, and written from one.
 *
 * A tensor's bytes are read directly into its memory. If the file's type is narrower, they are read into the last part
 * of that memory and widened from the front: writing element i never reaches the position of element i + 1. */
#include "core/files/io.h"
#include "core/base/f16.h"
#include "core/tensor/tensor.h"

#include <string.h>

/* in safetensors' order, by which it sorts tensors when writing: the largest first */
const tn__element tn__elements[TN__ELEMENTS] = {
    {"BOOL", "b1", 8, TN_BOOL}, {"F4", "", 4, -1},          {"F6_E2M3", "", 6, -1},     {"F6_E3M2", "", 6, -1},
    {"U8", "u1", 8, TN_U8},     {"I8", "i1", 8, TN_I32},    {"F8_E5M2", "", 8, -1},     {"F8_E4M3", "", 8, -1},
    {"F8_E8M0", "", 8, -1},     {"F8_E4M3FNUZ", "", 8, -1}, {"F8_E5M2FNUZ", "", 8, -1}, {"I16", "i2", 16, TN_I32},
    {"U16", "u2", 16, TN_I32},  {"F16", "f2", 16, TN_F32},  {"BF16", "", 16, TN_BF16},  {"I32", "i4", 32, TN_I32},
    {"U32", "u4", 32, TN_I64},  {"F32", "f4", 32, TN_F32},  {"C64", "", 64, -1},        {"F64", "f8", 64, TN_F64},
    {"I64", "i8", 64, TN_I64},  {"U64", "u8", 64, TN_I64}};
enum { BOOL = 0, I8 = 5, I16 = 11, U16, F16, U32 = 16, U64 = 21 };

int tn__element_of_dtype(tn_dtype dt)
{
    static const int8_t own[] = {
        [TN_F32] = 17, [TN_F64] = 19, [TN_BF16] = 14, [TN_I64] = 20, [TN_I32] = 15, [TN_U8] = 4, [TN_BOOL] = 0};
    return own[dt];
}

int tn__element_of_name(const char *name, size_t bytes)
{
    for (int i = 0; i < TN__ELEMENTS; i++)
        if (strlen(tn__elements[i].safetensors) == bytes && !memcmp(tn__elements[i].safetensors, name, bytes)) return i;
    return -1;
}

int tn__element_of_npy(const char *name)
{
    for (int i = 0; i < TN__ELEMENTS; i++)
        if (tn__elements[i].npy[0] && !strcmp(tn__elements[i].npy, name)) return i;
    return -1;
}

/* ---- bytes and elements ------------------------------------------------------------------------------------------ */

static bool host_is_big(void)
{
    const uint16_t one = 1;
    unsigned char  first;
    memcpy(&first, &one, 1);
    return first == 0;
}

static void swap(unsigned char *p, int64_t n, int size)
{
    for (int64_t i = 0; size > 1 && i < n; i++, p += size)
        for (int a = 0, b = size - 1; a < b; a++, b--) {
            unsigned char c = p[a];
            p[a] = p[b], p[b] = c;
        }
}

#define WIDEN(from, to, expr)                              \
    for (int64_t i = 0; i < n; i++) {                      \
        from v;                                            \
        memcpy(&v, src + i * (int64_t)sizeof v, sizeof v); \
        to w = (expr);                                     \
        memcpy(dst + i * (int64_t)sizeof w, &w, sizeof w); \
    }

/* Converts n elements at src, in the host's byte order, to dst, where src is the end of dst or dst itself. Returns the
 * index of the first element with an invalid value, or -1. */
static int64_t decode(int element, int64_t n, unsigned char *dst, const unsigned char *src)
{
    switch (element) {
    case BOOL:
        for (int64_t i = 0; i < n; i++)
            if (src[i] > 1) return i;
        break;
    case U64:
        for (int64_t i = 0; i < n; i++) {
            uint64_t v;
            memcpy(&v, src + 8 * i, 8);
            if (v > INT64_MAX) return i;
        }
        break;
    case I8: WIDEN(int8_t, int32_t, v) break;
    case I16: WIDEN(int16_t, int32_t, v) break;
    case U16: WIDEN(uint16_t, int32_t, v) break;
    case U32: WIDEN(uint32_t, int64_t, v) break;
    case F16: WIDEN(uint16_t, uint32_t, tn__f16_widen(v)) break;
    default: break;
    }
    return -1;
}

tn_tensor *tn__element_read(const tn__source *s, int64_t at, int element, bool big_endian, tn_shape shape,
                            const char *what)
{
    const tn__element *e = &tn__elements[element];
    if (e->dtype < 0)
        return tn_raise_null(TN_EUNSUPPORTED, "%s: %s is of type %s, which Tenon does not load", s->label, what,
                             e->safetensors);
    if (!tn__shape_check(s->label, (tn_dtype)e->dtype, shape)) return NULL;
    tn_tensor *t = tn__new_owned((tn_dtype)e->dtype, shape);
    if (!t) return NULL;
    int64_t        n = tn_shape_numel(shape), size = e->bits / 8;
    unsigned char *dst = tn__ptr(t), *src = dst + n * ((int64_t)tn__dtype_bytes(t->dtype) - size);
    if (!tn__source_read(s, src, at, (size_t)(n * size))) return tn_drop(t), NULL;
    if (big_endian != host_is_big()) swap(src, n, (int)size);
    int64_t bad = decode(element, n, dst, src);
    if (bad < 0) return t;
    if (element == BOOL)
        tn_raise(TN_EFORMAT, "%s: %s: the bool at byte %lld is %d, expected 0 or 1", s->label, what,
                 (long long)(at + bad), src[bad]);
    else
        tn_raise(TN_EUNSUPPORTED, "%s: %s: the 64-bit integer at byte %lld is beyond 2^63 - 1, and Tenon has no u64",
                 s->label, what, (long long)(at + 8 * bad));
    return tn_drop(t), NULL;
}

static bool write_run(tn__sink *s, const unsigned char *p, size_t bytes, int size)
{
    if (!host_is_big() || size == 1) return tn__sink_write(s, p, bytes);
    unsigned char part[4096];
    while (bytes) {
        size_t n = bytes < sizeof part ? bytes : sizeof part;
        memcpy(part, p, n);
        swap(part, (int64_t)n / size, size);
        if (!tn__sink_write(s, part, n)) return false;
        p += n, bytes -= n;
    }
    return true;
}

bool tn__element_write(tn__sink *s, const tn_tensor *t)
{
    size_t size = tn__dtype_bytes(t->dtype), bytes = (size_t)tn_shape_numel(t->l.shape) * size;
    if (tn__layout_contiguous(&t->l)) return write_run(s, tn__ptr(t), bytes, (int)size);
    tn_tensor *c = tn__new_owned(t->dtype, t->l.shape);
    if (!c) return false;
    tn__copy(c, t); /* bits of the same dtype are copied unchanged */
    bool ok = tn__self.error == TN_OK && write_run(s, tn__ptr(c), bytes, (int)size);
    tn_drop(c);
    return ok;
}
