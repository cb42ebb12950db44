/* vecmath.k.c — functions of one element over arrays of f32, and softmax's functions of rows. */
#include "core/kernels/sincos.h"
#include "core/kernels/gelu.h"
#include "core/kernels/kernels.h"
#include "core/kernels/log.h"
#include "core/kernels/sigmoid.h"
#include "core/kernels/sum_lanes.h"

TN__INLINE v_f32 v_sin(v_f32 x) { return v_circle(x, 0); }
TN__INLINE v_f32 v_cos(v_f32 x) { return v_circle(x, 1); }

#define FUNCTION(name)                                                                          \
    static void name##_f32(int64_t n, float *y, const float *x)                                 \
    {                                                                                           \
        int64_t i = 0;                                                                          \
        for (; i + v_n_f32 <= n; i += v_n_f32) v_store_f32(y + i, v_##name(v_load_f32(x + i))); \
        if (i < n) v_store_some(y + i, n - i, v_##name(v_load_some(x + i, n - i)));             \
    }
#define SLOPE(name)                                                                                                \
    static void name##_slope_f32(int64_t n, float *gx, const float *x, const float *gy)                            \
    {                                                                                                              \
        int64_t i = 0;                                                                                             \
        for (; i + v_n_f32 <= n; i += v_n_f32)                                                                     \
            v_store_f32(gx + i, v_load_f32(gy + i) * v_##name##_slope(v_load_f32(x + i)));                         \
        if (i < n)                                                                                                 \
            v_store_some(gx + i, n - i, v_load_some(gy + i, n - i) * v_##name##_slope(v_load_some(x + i, n - i))); \
    }
TN__EACH_FUNCTION(FUNCTION)
TN__EACH_SLOPE(SLOPE)

/* ---- rows ---- */

/* v_max(b, v) returns b if v is NaN, so NaN is detected separately. Several chains, for speed. */
enum { CHAINS = 4 };

/* clang-format off: it takes TN__UNROLL for a function */
static float highest_f32(int64_t n, const float *x)
{
    v_f32   best[CHAINS], strange = v_zero_f32();
    int64_t i = 0;
    for (int k = 0; k < CHAINS; k++) best[k] = v_set1(-INFINITY);
    for (; i + CHAINS * v_n_f32 <= n; i += CHAINS * v_n_f32) {
        TN__UNROLL for (int k = 0; k < CHAINS; k++)
        {
            const v_f32 v = v_load_f32(x + i + k * v_n_f32);
            best[k] = v_max(best[k], v), strange = v_choose(v_equal(v, v), strange, v);
        }
    }
    while (i + v_n_f32 <= n) {
        const v_f32 v = v_load_f32(x + i);
        best[0] = v_max(best[0], v), strange = v_choose(v_equal(v, v), strange, v);
        i += v_n_f32;
        if (i < n && i + v_n_f32 > n) i = n - v_n_f32; /* the last elements; some are processed twice */
    }
    float most = -INFINITY, b[v_n_f32], s[v_n_f32];
    for (; i < n; i++) { /* if less than a vector */
        if (x[i] != x[i]) return x[i];
        if (x[i] > most) most = x[i];
    }
    v_store_f32(b, v_max(v_max(best[0], best[1]), v_max(best[2], best[3]))), v_store_f32(s, strange);
    for (int k = 0; k < v_n_f32; k++) {
        if (s[k] != s[k]) return s[k];
        if (b[k] > most) most = b[k];
    }
    return most;
}
/* clang-format on */

enum { VECTORS = TN__LANES / v_n_f32, SIDE = 4 }; /* of 16 lanes; interleaved: a multiple of VECTORS */

TN__INLINE void add(v_f64 *sum, v_f32 y) { sum[0] += v_lower(y), sum[1] += v_upper(y); }

/* Element i goes to lane i mod 16, as in core/kernels/sum_lanes.h. */
/* clang-format off: it takes TN__UNROLL for a function */
TN__INLINE void exp_step(const int n, float *y, const float *x, v_f32 shift, v_f64 *sum)
{
    v_f32 e[SIDE];
    TN__UNROLL for (int k = 0; k < n; k++) e[k] = v_load_f32(x + k * v_n_f32) - shift;
    v_exp_soft(n, e);
    TN__UNROLL for (int k = 0; k < n; k++)
    {
        if (y) v_store_f32(y + k * v_n_f32, e[k]);
        add(sum + k % VECTORS * 2, e[k]);
    }
}

static double exp_sum_f32(int64_t n, float *y, const float *x, float shift)
{
    v_f64       sum[2 * VECTORS];
    const v_f32 by = v_set1(shift);
    int64_t     i = 0;
    for (int k = 0; k < 2 * VECTORS; k++) sum[k] = v_zero_f64();
    for (; i + SIDE * v_n_f32 <= n; i += SIDE * v_n_f32) {
        for (int k = 0; k < SIDE; k++)
            v_prefetch(x + i + k * v_n_f32, n); /* the row after this one, probably the next */
        exp_step(SIDE, y ? y + i : NULL, x + i, by, sum);
    }
    for (; SIDE > VECTORS && i + TN__LANES <= n; i += TN__LANES) exp_step(VECTORS, y ? y + i : NULL, x + i, by, sum);
    for (int k = 0; i < n; k++, i += v_n_f32) {
        const int64_t some = n - i < v_n_f32 ? n - i : v_n_f32;
        v_f32         v = v_load_some(x + i, some) - by;
        float         e[v_n_f32] = {0};
        v_exp_soft(1, &v);
        v_store_some(e, some, v);
        if (y) v_store_some(y + i, some, v_load_f32(e));
        add(sum + 2 * k, v_load_f32(e));
    }
    return v_lanes_total(sum);
}
/* clang-format on */

/* ---- the table ---- */

extern const tn__vecmath_f32 TN__FOR_ISA(tn__functions_f32);

#define FUNCTION_ENTRY(name) .name = name##_f32,
#define SLOPE_ENTRY(name) .name##_slope = name##_slope_f32,
const tn__vecmath_f32 TN__FOR_ISA(tn__functions_f32) = {
    .highest = highest_f32, .exp_sum = exp_sum_f32, TN__EACH_FUNCTION(FUNCTION_ENTRY) TN__EACH_SLOPE(SLOPE_ENTRY)};
