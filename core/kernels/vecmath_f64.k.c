/* vecmath_f64.k.c — functions of one element over arrays of f64: exp and the functions built on it, as in sigmoid.h.
 * The other functions call the C library (core/kernels/vecmath.c). */
#include "core/kernels/exp_f64.h"
#include "core/kernels/kernels.h"

TN__INLINE v_f64 f_exp(v_f64 x) { return v_exp_f64(x); }

TN__INLINE v_f64 f_sigmoid(v_f64 x)
{
    const v_u64 below = v_less_f64(x, v_zero_f64()), none = v_less_f64(v_minus_f64(x), v_set1_f64(-746));
    v_u64       n52;
    v_f64       rest, e = v_exp_whole_f64(v_choose_f64(none, v_set1_f64(-746), v_minus_f64(x)), &n52, &rest);
    const v_f64 first = v_power_of_2_f64(n52, 64), last = v_choose_f64(none, v_zero_f64(), v_set1_f64(0x1p-64));
    e = e * first * last, rest = rest * first * last;
    const v_f64 sum = 1.0 + e, r = v_choose_f64(below, e, v_set1_f64(1)) / sum, lost = (e - (sum - 1.0)) + rest;
    return r + (v_choose_f64(below, rest, v_zero_f64()) - r * lost) * v_choose_f64(below, 1.0 - r, r);
}

/* With m = exp(2|x|) - 1: y = m / (m + 2), corrected as in f_sigmoid if less than ½; 1 / (m + 2) = (1 - y) / 2. */
TN__INLINE v_f64 f_tanh(v_f64 x)
{
    const v_u64 sign = (v_u64)x & UINT64_C(1) << 63;
    const v_f64 a = (v_f64)((v_u64)x ^ sign);
    v_u64       n52;
    v_f64 r, small = v_exp_parts_f64(v_choose_f64(v_less_f64(v_set1_f64(20), a), v_set1_f64(40), a + a), &n52, &r);
    const v_f64 power = v_power_of_2_f64(n52, 0), near = r + small, far = power * near;
    const v_f64 m = (power - 1.0) + far, rest = power * (small - (near - r)) + (far - (m - (power - 1.0)));
    const v_f64 sum = m + 2.0, y = m / sum, lost = (m - (sum - 2.0)) + rest;
    const v_f64 mended = y + (rest - y * lost) * (0.5 - 0.5 * y);
    return (v_f64)((v_u64)v_choose_f64(v_less_f64(m, v_set1_f64(2)), mended, y) | sign);
}

#define FUNCTION(name)                                                                          \
    static void name##_f64(int64_t n, double *y, const double *x)                               \
    {                                                                                           \
        int64_t i = 0;                                                                          \
        for (; i + v_n_f64 <= n; i += v_n_f64) v_store_f64(y + i, f_##name(v_load_f64(x + i))); \
        if (i == n) return;                                                                     \
        double part[v_n_f64] = {0};                                                             \
        for (int64_t k = i; k < n; k++) part[k - i] = x[k];                                     \
        v_store_f64(part, f_##name(v_load_f64(part)));                                          \
        for (int64_t k = i; k < n; k++) y[k] = part[k - i];                                     \
    }
TN__EACH_FUNCTION_F64(FUNCTION)

extern const tn__vecmath_f64 TN__FOR_ISA(tn__functions_f64);

#define ENTRY(name) .name = name##_f64,
const tn__vecmath_f64 TN__FOR_ISA(tn__functions_f64) = {TN__EACH_FUNCTION_F64(ENTRY)};
