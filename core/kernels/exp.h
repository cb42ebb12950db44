/* exp.h — eˣ for the functions of f32.
 *
 *   x = n ln 2 + r  with n an integer and |r| ≤ ln 2 / 2,  so  eˣ = 2ⁿ eʳ
 *   eʳ = 1 + r + r² q(r),  q of degree 4 by minimax: 2⁻²⁸ of eʳ
 *
 * x / ln 2 is rounded to n by adding a number that leaves no bits after the binary point; n is then in the lowest bits
 * of the sum. ln 2 has two parts; n times the first is exact. The rounding errors of r and 1 + r are compensated, so
 * that the error is little more than the last rounding. */
#ifndef TENON_CORE_KERNELS_EXP_H
#define TENON_CORE_KERNELS_EXP_H

#include "core/kernels/vector.h"

/* coefficients of q, starting at r⁰ */
static const float v_exp_q[] = {0.49999994f, 0.166665196f, 0.0416683927f, 0.00836874638f, 0.00138145278f};

/* e to the power x + more, divided by 2ⁿ, plus *rest, which is smaller than its last bit. *n23: n shifted to the
 * exponent bits. For |x| up to 2²⁰, |more| up to 0.1; otherwise the result is undefined, except that NaN gives NaN. */
TN__INLINE v_f32 v_exp_parts(v_f32 x, v_f32 more, v_u32 *n23, v_f32 *rest)
{
    const v_f32 sum = x * 0x1.715476p+0f + 0x1.8p23f, n = sum - 0x1.8p23f;
    const v_f32 a = x - n * 0x1.62e4p-1f, b = n * 0x1.7f7d1cp-20f - more, r = a - b;
    const v_f32 one = 1.0f + r, small = (r * r * v_poly(r, 5, v_exp_q) + ((a - r) - b)) + (r - (one - 1.0f));
    const v_f32 y = one + small;
    *n23 = v_bits(sum) << 23;
    *rest = small - (y - one);
    return y;
}

/* 2 to the power n + k, if that is a normal number. */
TN__INLINE v_f32 v_power_of_2(v_u32 n23, int k) { return v_float(n23 + ((uint32_t)(127 + k) << 23)); }

TN__INLINE v_f32 v_exp(v_f32 x)
{
    const v_mask none = v_less(x, v_set1(-104)), large = v_less(v_zero_f32(), x);
    v_u32        n23;
    v_f32        rest;
    const v_f32  y = v_exp_parts(v_min(v_max(x, v_set1(-104)), v_set1(89)), v_zero_f32(), &n23, &rest);
    /* 2ⁿ in two steps, the first of them exact: 2ⁿ alone may be denormal or overflow. No number below half the smallest
     * denormal is ever computed: some CPUs take a hundred cycles for it. */
    const v_f32 first = v_choose(large, v_power_of_2(n23, -2), v_power_of_2(n23, 64));
    return y * first * v_choose(large, v_set1(4), v_choose(none, v_zero_f32(), v_set1(0x1p-64f)));
}

/* v_exp for x ≤ 0 or NaN. */
TN__INLINE v_f32 v_exp_down(v_f32 x)
{
    const v_f32 last = v_choose(v_less(x, v_set1(-104)), v_zero_f32(), v_set1(0x1p-64f));
    v_u32       n23;
    v_f32       rest;
    return v_exp_parts(v_max(x, v_set1(-104)), v_zero_f32(), &n23, &rest) * v_power_of_2(n23, 64) * last;
}

/* For softmax: eˣ for x ≤ 0 or NaN, within 1.5 ULP, and 0 below -87, where it is negligible next to the maximum, 1. Of
 * several vectors, in place and interleaved: each operation waits for the one before, and a CPU does not look far
 * enough ahead to find the next vector's by itself. */
/* clang-format off: it takes TN__UNROLL for a function */
TN__INLINE void v_exp_soft(const int n, v_f32 *x)
{
    v_f32 power[4], r[4], y[4];
    TN__UNROLL for (int k = 0; k < n; k++)
    {
        r[k] = v_max(x[k], v_set1(-87));
        y[k] = r[k] * 0x1.715476p+0f + 0x1.8p23f;
    }
    TN__UNROLL for (int k = 0; k < n; k++)
    {
        const v_f32 whole = y[k] - 0x1.8p23f;
        power[k] = v_choose(v_less(x[k], v_set1(-87)), v_zero_f32(), v_float((v_bits(y[k]) << 23) + (127u << 23)));
        r[k] = (r[k] - whole * 0x1.62e4p-1f) - whole * 0x1.7f7d1cp-20f;
    }
    TN__UNROLL for (int k = 0; k < n; k++) y[k] = r[k] * v_exp_q[4] + v_exp_q[3];
    TN__UNROLL for (int i = 2; i >= 0; i--) TN__UNROLL for (int k = 0; k < n; k++) y[k] = y[k] * r[k] + v_exp_q[i];
    TN__UNROLL for (int k = 0; k < n; k++) x[k] = (1.0f + (r[k] + r[k] * r[k] * y[k])) * power[k];
}
/* clang-format on */

/* e to the power x + more, times 2⁶⁴, for x from -128 to 0 or NaN. So the result can be multiplied by a factor before
 * it is rounded to the few bits of a denormal; the last multiplication is by V_DOWN. */
#define V_DOWN 0x1p-64f
TN__INLINE v_f32 v_exp_raised(v_f32 x, v_f32 more)
{
    v_u32       n23;
    v_f32       rest;
    const v_f32 y = v_exp_parts(x, more, &n23, &rest);
    return y * v_power_of_2(n23, 64);
}

#endif
