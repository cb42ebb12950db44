/* convert.c — converts one element, or a strided run of them, from one dtype to another. */
#include "core/base/bf16.h"
#include "core/tensor/convert.h"
#include "core/tensor/tensor.h"
#include "core/kernels/kernels.h"

#include <math.h>
#include <string.h>

/* Like C's conversion, but always defined: NaN gives 0, a value out of range gives the nearest in range. Integers wrap
 * in narrower integers, as in PyTorch. */
static inline int64_t to_i64(double v)
{
    if (v != v) return 0;
    if (v >= 9223372036854775808.0) return INT64_MAX;
    if (v < -9223372036854775808.0) return INT64_MIN;
    return (int64_t)v;
}
static inline int32_t to_i32(int64_t v) { return v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : (int32_t)v; }
static inline uint8_t to_u8(int64_t v) { return (uint8_t)v; } /* wraps, as in PyTorch */

double tn__load(const void *p, tn_dtype dt)
{
    switch (dt) {
    case TN_F32: return (double)*(const float *)p;
    case TN_F64: return *(const double *)p;
    case TN_BF16: return (double)tn__bf16_to_f32(*(const uint16_t *)p);
    case TN_I64: return (double)*(const int64_t *)p;
    case TN_I32: return *(const int32_t *)p;
    case TN_U8:
    case TN_BOOL: return *(const uint8_t *)p;
    }
    return NAN;
}

int64_t tn__load_i64(const void *p, tn_dtype dt)
{
    switch (dt) {
    case TN_I64: return *(const int64_t *)p;
    case TN_I32: return *(const int32_t *)p;
    case TN_U8:
    case TN_BOOL: return *(const uint8_t *)p;
    default: return to_i64(tn__load(p, dt));
    }
}

void tn__store(void *p, tn_dtype dt, double v)
{
    switch (dt) {
    case TN_F32: *(float *)p = (float)v; break;
    case TN_F64: *(double *)p = v; break;
    case TN_BF16: *(uint16_t *)p = tn__f32_to_bf16((float)v); break;
    case TN_I64: *(int64_t *)p = to_i64(v); break;
    case TN_I32: *(int32_t *)p = to_i32(to_i64(v)); break;
    case TN_U8: *(uint8_t *)p = to_u8(to_i64(v)); break;
    case TN_BOOL: *(uint8_t *)p = v != 0; break;
    }
}

void tn__store_i64(void *p, tn_dtype dt, int64_t v)
{
    switch (dt) {
    case TN_I64: *(int64_t *)p = v; break;
    case TN_I32: *(int32_t *)p = (int32_t)(uint32_t)v; break;
    case TN_U8: *(uint8_t *)p = to_u8(v); break;
    case TN_BOOL: *(uint8_t *)p = v != 0; break;
    default: tn__store(p, dt, (double)v);
    }
}

/* The pairs used by the kernels' packing, each a plain loop; all other pairs go through double or int64. */
#define RUN(from, to, expr)               \
    do {                                  \
        const from *X = x;                \
        to         *Y = y;                \
        for (int64_t i = 0; i < n; i++) { \
            from v = X[i * xs];           \
            Y[i * ys] = (expr);           \
        }                                 \
        return true;                      \
    } while (0)
#define PAIR(a, b) ((a)*8 + (b))

static bool convert_pair(int64_t n, void *y, tn_dtype ydt, int64_t ys, const void *x, tn_dtype xdt, int64_t xs)
{
    switch (PAIR((int)xdt, (int)ydt)) {
    case PAIR(TN_F32, TN_F32): RUN(float, float, v);
    case PAIR(TN_F64, TN_F64): RUN(double, double, v);
    case PAIR(TN_I64, TN_I64): RUN(int64_t, int64_t, v);
    case PAIR(TN_I32, TN_I32): RUN(int32_t, int32_t, v);
    case PAIR(TN_BF16, TN_BF16): RUN(uint16_t, uint16_t, v);
    case PAIR(TN_U8, TN_U8):
    case PAIR(TN_BOOL, TN_BOOL): RUN(uint8_t, uint8_t, v);
    case PAIR(TN_F32, TN_F64): RUN(float, double, (double)v);
    case PAIR(TN_F64, TN_F32): RUN(double, float, (float)v);
    case PAIR(TN_BF16, TN_F32): RUN(uint16_t, float, tn__bf16_to_f32(v));
    case PAIR(TN_F32, TN_BF16): RUN(float, uint16_t, tn__f32_to_bf16(v));
    case PAIR(TN_BOOL, TN_F32):
    case PAIR(TN_U8, TN_F32): RUN(uint8_t, float, (float)v);
    case PAIR(TN_F32, TN_BOOL): RUN(float, uint8_t, v != 0);
    case PAIR(TN_I32, TN_I64): RUN(int32_t, int64_t, v);
    case PAIR(TN_I64, TN_F32): RUN(int64_t, float, (float)v);
    case PAIR(TN_I64, TN_BOOL): RUN(int64_t, uint8_t, v != 0);
    default: return false;
    }
}

/* Stores the element at y n times, in loops that compilers vectorise. */
#define REPEAT(type)                                 \
    do {                                             \
        type one, *to = y;                           \
        memcpy(&one, y, sizeof one);                 \
        for (int64_t i = 1; i < n; i++) to[i] = one; \
    } while (0)
static void repeat(int64_t n, void *y, size_t bytes)
{
    switch (bytes) {
    case 1: REPEAT(uint8_t); break;
    case 2: REPEAT(uint16_t); break;
    case 4: REPEAT(uint32_t); break;
    default: REPEAT(uint64_t); break;
    }
}

void tn__convert(int64_t n, void *y, tn_dtype ydt, int64_t ys, const void *x, tn_dtype xdt, int64_t xs)
{
    if (n > 1 && xs == 0 && ys == 1) {
        tn__convert(1, y, ydt, 1, x, xdt, 1);
        repeat(n, y, tn__dtype_bytes(ydt));
        return;
    }
    const bool dense = xs == 1 && ys == 1;
    if (dense && xdt == ydt) {
        if (n) memcpy(y, x, (size_t)n * tn__dtype_bytes(xdt));
        return;
    }
    if (dense && xdt == TN_F32 && ydt == TN_BF16) {
        tn__kernels()->to_bf16(n, y, x);
        return;
    }
    if (dense && xdt == TN_BF16 && ydt == TN_F32) {
        tn__kernels()->from_bf16(n, y, x);
        return;
    }
    if (convert_pair(n, y, ydt, ys, x, xdt, xs)) return;
    size_t      xsize = tn__dtype_bytes(xdt), ysize = tn__dtype_bytes(ydt);
    bool        whole = !tn__is_float(xdt); /* int64 holds every integer exactly, double does not */
    const char *px = x;
    char       *py = y;
    for (int64_t i = 0; i < n; i++) {
        const void *from = px + i * xs * (int64_t)xsize;
        void       *to = py + i * ys * (int64_t)ysize;
        if (whole) tn__store_i64(to, ydt, tn__load_i64(from, xdt));
        else tn__store(to, ydt, tn__load(from, xdt));
    }
}

bool tn__fits(const char *who, const char *what, tn_dtype dt, double v)
{
    static const struct {
        double      least, end; /* v is truncated towards zero, so it may be in the open interval (least - 1, end) */
        const char *text;
    } range[] = {[TN_I64] = {-0x1p63, 0x1p63, "-2^63 to 2^63 - 1"},
                 [TN_I32] = {-0x1p31, 0x1p31, "-2147483648 to 2147483647"},
                 [TN_U8] = {0, 256, "0 to 255"}};
    bool ok = true;
    switch (dt) {
    case TN_F64:
    case TN_BOOL: return true;
    case TN_F32: ok = !isfinite(v) || isfinite((float)v); break;
    case TN_BF16: ok = !isfinite(v) || isfinite(tn__bf16_to_f32(tn__f32_to_bf16((float)v))); break;
    default:
        if (v < range[dt].end && trunc(v) >= range[dt].least) return true;
        return tn_raise_false(TN_EINVAL, "%s: %s %g does not fit %s, which holds %s", who, what, v, tn_dtype_name(dt),
                              range[dt].text);
    }
    if (!ok) tn_raise(TN_EINVAL, "%s: %s %g is too large for %s", who, what, v, tn_dtype_name(dt));
    return ok;
}
