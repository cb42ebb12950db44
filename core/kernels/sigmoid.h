/* sigmoid.h — sigmoid, tanh and silu for f32. They see a = |x|, so that nothing overflows, and e = exp(-a):
 *
 *   sigmoid = 1 / (1 + e), or e / (1 + e) where x < 0
 *   tanh    = a + a³ p(a²) up to ⅝; beyond, 1 - 2 / (exp(2a) + 1); with the sign of x
 *   silu    = x / (1 + e), or -a e / (1 + e) where x < 0
 *   silu'   = ½ + x s(x²) up to ¾; beyond, with D = e (1 + e - a) / (1 + e)²:  1 - D, or D where x < 0
 *
 * D changes its sign at a = 1.278…, where its formula would leave nothing but rounding errors: from ¾ to 2 D is its
 * distance from there times a polynomial. All polynomials are by minimax, 2⁻²⁷ of the function or better. */
#ifndef TENON_CORE_KERNELS_SIGMOID_H
#define TENON_CORE_KERNELS_SIGMOID_H

#include "core/kernels/exp.h"

/* The quotient r is mended by what e and 1 + e have lost: that is small, and counts 1 / (1 + e) times, which is r where
 * x ≥ 0 and else 1 - r. */
TN__INLINE v_f32 v_sigmoid(v_f32 x)
{
    const v_mask below = v_less(x, v_zero_f32()), none = v_less(v_minus(x), v_set1(-104));
    const v_f32  last = v_choose(none, v_zero_f32(), v_set1(V_DOWN));
    v_u32        n23;
    v_f32        rest, e = v_exp_parts(v_max(v_minus(x), v_set1(-104)), v_zero_f32(), &n23, &rest);
    const v_f32  first = v_power_of_2(n23, 64);
    e = e * first * last, rest = rest * first * last;
    const v_f32 sum = 1.0f + e, r = v_choose(below, e, v_set1(1)) / sum, lost = (e - (sum - 1.0f)) + rest;
    return r + (v_choose(below, rest, v_zero_f32()) - r * lost) * v_choose(below, 1.0f - r, r);
}

TN__INLINE v_f32 v_tanh(v_f32 x)
{
    static const float p[] = {-0.333332807f, 0.133314416f, -0.0537396967f, 0.0206390396f, -0.00570493797f};
    const v_f32        a = v_abs(x), aa = a * a, near = a + a * aa * v_poly(aa, 5, p);
    v_u32              n23;
    v_f32              rest;
    const v_f32        e = v_exp_parts(v_min(a + a, v_set1(20)), v_zero_f32(), &n23, &rest);
    const v_f32        far = 1.0f - 2.0f / (e * v_power_of_2(n23, 0) + 1.0f);
    return v_with_sign(v_choose(v_less(a, v_set1(0.625f)), near, far), x);
}

TN__INLINE v_f32 v_silu(v_f32 x)
{
    const v_mask below = v_less(x, v_zero_f32());
    const v_f32  a = v_min(v_abs(x), v_set1(110)), e = v_exp_raised(v_zero_f32() - a, v_zero_f32());
    const v_f32  y = v_choose(below, a * e, x) / (1.0f + e * V_DOWN);
    return v_choose(below, v_zero_f32() - y * V_DOWN, y);
}

TN__INLINE v_f32 v_silu_slope(v_f32 x)
{
    static const float s[] = {0.5f, -0.0833333284f, 0.0124998838f, -0.00168562389f, 0.000210577011f, -2.12170671e-05f};
    static const float p[] = {0.203843921f,    -0.142602846f,   0.0229138229f,    0.0126742311f,   -0.00656180363f,
                              0.000291511795f, 0.000663733168f, -0.000185823839f, -1.80654424e-05f};
    const v_f32        a = v_min(v_abs(x), v_set1(112)), raised = v_exp_raised(v_zero_f32() - a, v_zero_f32());
    const v_f32        e = raised * V_DOWN, more = e * (2.0f + e), h = (a - 1.0f) - e;
    const v_f32        far = raised * (h - h * (more / (1.0f + more))) * V_DOWN;
    const v_f32        root = (a - 0x1.474974p+0f) + 0x1.bdf6fap-27f, centre = a - 1.375f;
    const v_f32        minus_d = v_choose(v_less(v_abs(centre), v_set1(0.625f)), root * v_poly(centre, 9, p), far);
    const v_f32        y = v_choose(v_less(x, v_zero_f32()), v_zero_f32() - minus_d, 1.0f + minus_d);
    return v_choose(v_less(a, v_set1(0.75f)), 0.5f + x * v_poly(x * x, 6, s), y);
}

#endif
