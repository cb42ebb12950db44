/* sigmoid.h — sigmoid, tanh, silu and mish for f32. They use a = |x|, so that nothing overflows, and e = exp(-a):
 *
 *   sigmoid = 1 / (1 + e), or e / (1 + e) where x < 0
 *   tanh    = (1 - e²) / (1 + e²) with the sign of x
 *   silu    = x sigmoid(x)
 *   silu'   = ½ + x s(x²) up to ¾; beyond, with D = e (1 + e - a) / (1 + e)²:  1 - D, or D where x < 0
 *   mish    = x (1 + 2e) / (1 + 2e + 2e²), or x (2e + e²) / (2 + 2e + e²) where x < 0
 *
 * tanh, and the others up to 9.8, where nearly all values are, come from tables (columns.h): of e / (1 + e), which is
 * the sigmoid or 1 minus it, and of a e / (1 + e), which is subtracted from max(x, 0). D changes its sign at a =
 * 1.278…, where its formula would lose all digits to rounding: from ¾ to 2, D is its distance from there times a
 * polynomial. All polynomials are by minimax, 2⁻²⁷ of the function or better. */
#ifndef TENON_CORE_KERNELS_SIGMOID_H
#define TENON_CORE_KERNELS_SIGMOID_H

#include "core/kernels/columns.h"
#include "core/kernels/exp.h"
#include "core/kernels/exp_f64.h"

#define V_SIGMOID_NEAR 9.8f
#define V_SIGMOID_SCALE 3.2f

/* sigmoid(z + more) in two parts, the first of at most 12 bits: together correct to some 30 bits. If z < 0 both are
 * scaled by 2⁶⁴, as by v_exp_raised. z from -128 to where exp(-z) is negligible, or NaN.
 *
 * The quotient's first 12 bits, times halves of the divisor, are exact; so the remainder is known. It counts
 * 1 / (1 + e) times, which is the quotient if z ≥ 0, and otherwise 1 - e / (1 + e). */
TN__INLINE v_f32 v_sigmoid_parts(v_f32 z, v_f32 more, v_mask below, v_f32 *rest)
{
    v_u32       n23;
    v_f32       lost, e = v_exp_parts(v_minus(z), more, &n23, &lost);
    const v_f32 power = v_power_of_2(n23, 64);
    e = e * power, lost = lost * power;
    const v_f32 over = v_choose(below, e, v_set1(1)), over_rest = v_choose(below, lost, v_zero_f32());
    const v_f32 low = e * V_DOWN, sum = 1.0f + low, sum_top = v_top(sum);
    const v_f32 r = over / sum, top = v_top(r);
    const v_f32 sum_rest = (sum - sum_top) + ((low - (sum - 1.0f)) + lost * V_DOWN);
    const v_f32 left = ((over - top * sum_top) - top * sum_rest) + over_rest;
    *rest = left * v_choose(below, 1.0f - r * V_DOWN, r);
    return top;
}

TN__INLINE v_f32 v_sigmoid_far(v_f32 x)
{
    const v_mask below = v_less(x, v_zero_f32());
    v_f32        rest;
    const v_f32  z = v_max(v_minus(x), v_set1(-110)), top = v_sigmoid_parts(z, v_zero_f32(), below, &rest);
    return (top + rest) * v_choose(below, v_set1(V_DOWN), v_set1(1));
}
TN__INLINE v_f32 v_sigmoid(v_f32 x)
{
    const v_f32 a = v_abs(x);
    v_f32       more, tail = v_read_columns(&tn__sigmoid_tail, a, v_column(a, V_SIGMOID_SCALE), &more);
    tail = tail + more;
    const v_f32  y = v_choose(v_less(x, v_zero_f32()), tail, 1.0f - tail);
    const v_mask near = v_less(a, v_set1(V_SIGMOID_NEAR));
    return v_all(near) ? y : v_choose(near, y, v_sigmoid_far(x));
}

/* x sigmoid(z + more), z = -|x| or a faster growing function; x itself beyond 100, and finite below 0. */
TN__INLINE v_f32 v_times_sigmoid(v_f32 x, v_f32 z, v_f32 more)
{
    const v_mask below = v_less(x, v_zero_f32());
    v_f32        rest;
    const v_f32  top = v_sigmoid_parts(z, more, below, &rest), x_top = v_top(x);
    const v_f32  y = x_top * top + ((x - x_top) * top + x * rest);
    return v_choose(below, v_zero_f32() + y * V_DOWN, v_choose(v_less(x, v_set1(100)), y, x));
}

TN__INLINE v_f32 v_tanh(v_f32 x) { return v_odd(&tn__tanh_columns, x, v_min(v_abs(x), v_set1(9.03f)), 3.484375f); }

TN__INLINE v_f32 v_silu(v_f32 x)
{
    const v_f32  a = v_abs(x), y = v_without_tail(&tn__silu_tail, x, a, V_SIGMOID_SCALE);
    const v_mask near = v_less(a, v_set1(V_SIGMOID_NEAR));
    if (v_all(near)) return y;
    return v_choose(near, y, v_times_sigmoid(v_max(x, v_set1(-110)), v_max(v_minus(x), v_set1(-110)), v_zero_f32()));
}

/* x tanh(ln(1 + eˣ)): the quotient in f64, from e = exp(-|x|). */
TN__INLINE v_f64 v_mish_half(v_f64 x, v_f64 raised)
{
    const v_u64 below = v_less_f64(x, v_zero_f64());
    const v_f64 e = raised * V_DOWN, two = e + e, squared = e * e;
    const v_f64 over = v_choose_f64(below, squared + two, 1.0 + two);
    return x * over / (over + v_choose_f64(below, v_set1_f64(2), squared + squared));
}
TN__INLINE v_f32 v_mish(v_f32 x)
{
    const v_mask none = v_less(x, v_set1(-110));
    v_u32        n23;
    v_f32        rest, e = v_exp_parts(v_max(v_minus(x), v_set1(-110)), v_zero_f32(), &n23, &rest);
    const v_f32  power = v_power_of_2(n23, 64);
    x = v_max(x, v_set1(-110)), e = e * power, rest = rest * power;
    const v_f32 y = v_join(v_mish_half(v_lower(x), v_lower(e) + v_lower(rest)),
                           v_mish_half(v_upper(x), v_upper(e) + v_upper(rest)));
    return v_choose(none, v_zero_f32(), y);
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
