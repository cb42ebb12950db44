/* gelu.h — erf, gelu and gelu's approximation by tanh for f32. a = |x|, φ the normal density, Φ its integral.
 *
 *   erf       from a table, as tanh (sigmoid.h)
 *   gelu      = x Φ(x)                   = max(x, 0) - T            with T = a Φ(-a)
 *   gelu'     = Φ(x) + x φ(x)            with D = Φ(-a) - a φ(a):   1 - D, or D where x < 0
 *   gelu_tanh = x sigmoid(z) with z = √(8/π) (x + 0.044715 x³), and its slope: as silu (sigmoid.h)
 *
 * Up to 4.9, where nearly all values are, T and D come from tables (columns.h); D changes its sign at a = 0.7517…, so
 * from the fourth column on the distance from there is a factor. Beyond 4.9, T and D are exp(-a²/2) times slowly
 * changing functions, polynomials in (a - k) / (a + k). Where a² or z is an exponent, its rounding error in f32 is
 * compensated: an error in the exponent is a relative error of the result. The polynomials are by minimax, 2⁻²⁶ of the
 * function or better. */
#ifndef TENON_CORE_KERNELS_GELU_H
#define TENON_CORE_KERNELS_GELU_H

#include "core/kernels/sigmoid.h"

#define V_GELU_NEAR 4.9f
#define V_GELU_SCALE 6.4f

TN__INLINE v_f32 v_erf(v_f32 x) { return v_odd(&tn__erf_columns, x, v_min(v_abs(x), v_set1(3.93f)), 8); }

/* 2⁶⁴ exp(-a²/2), a up to 15. With h the first 12 bits of a, h² is exact; a² - h² = (a + h)(a - h). */
TN__INLINE v_f32 v_bell(v_f32 a)
{
    const v_f32 h = v_float(v_bits(a) & 0xfffff000u);
    return v_exp_raised(-0.5f * (h * h), -0.5f * ((a + h) * (a - h)));
}

/* a Φ(-a) in f64, for the range of few values. */
TN__INLINE v_f64 v_gelu_far_tail(v_f64 a)
{
    static const double t[] = {0.360179424,    0.120670222,   -0.145280749,   0.0841380581,    -0.0181013066,
                               -0.00611621235, 0.00307744532, 0.000943068648, -0.000421360601, -0.000162096549};
    const v_f64         q = (a - 2.78125) / (a + 2.78125);
    v_f64               y = v_set1_f64(t[9]);
    for (int i = 8; i >= 0; i--) y = y * q + t[i];
    return y * v_exp_f64(-0.5 * (a * a));
}
TN__INLINE v_f32 v_gelu_far(v_f32 x)
{
    const v_f32 a = v_min(v_abs(x), v_set1(15));
    const v_f32 tail = v_join(v_gelu_far_tail(v_lower(a)), v_gelu_far_tail(v_upper(a)));
    return v_max(x, v_zero_f32()) - tail;
}

TN__INLINE v_f32 v_gelu(v_f32 x)
{
    const v_f32  a = v_abs(x), y = v_without_tail(&tn__gelu_tail, x, a, V_GELU_SCALE);
    const v_mask near = v_less(a, v_set1(V_GELU_NEAR));
    return v_all(near) ? y : v_choose(near, y, v_gelu_far(x));
}

TN__INLINE v_f32 v_gelu_slope_far(v_f32 a)
{
    static const float t[] = {0.478297681f,   -0.119975455f,   0.0535961278f,    -0.0140739391f, 0.000203799733f,
                              0.00108852179f, -9.3094015e-05f, -0.000110950408f, 4.57753413e-06f};
    a = v_min(a, v_set1(15));
    return v_zero_f32() - v_bell(a) * ((a - 0x1.80ead2p-1f) * v_poly((a - 3.0f) / (a + 3.0f), 9, t)) * V_DOWN;
}
TN__INLINE v_f32 v_gelu_slope(v_f32 x)
{
    const v_f32  a = v_abs(x), column = v_column(a, V_GELU_SCALE), root = (0x1.80ead2p-1f - a) - 0x1.a03fd4p-27f;
    v_f32        more, constant = v_read_columns(&tn__gelu_bend, a, column, &more);
    const v_f32  bend = constant + more;
    v_f32        d = v_choose(v_in_columns_below(3, column), bend, root * bend);
    const v_mask near = v_less(a, v_set1(V_GELU_NEAR));
    if (!v_all(near)) d = v_choose(near, d, v_gelu_slope_far(a));
    return v_choose(v_less(x, v_zero_f32()), d, 1.0f - d);
}

#define ROOT 0x1.9884533d43651p+0 /* √(8/π) */
#define CUBE 0x1.2444f2a4d8b4bp-4 /* √(8/π) · 0.044715 */

/* z, a up to 11, computed in f64: its rounded value, and the rounding error. */
TN__INLINE v_f64 v_gelu_z(v_f64 a) { return a * (a * a * CUBE + ROOT); }
TN__INLINE v_f32 v_gelu_z_parts(v_f32 a, v_f32 *less)
{
    const v_f64 l = v_gelu_z(v_lower(a)), u = v_gelu_z(v_upper(a));
    const v_f32 z = v_join(l, u);
    *less = v_join(v_lower(z) - l, v_upper(z) - u);
    return z;
}

TN__INLINE v_f32 v_gelu_tanh_far(v_f32 x)
{
    v_f32 less, z = v_gelu_z_parts(v_min(v_abs(x), v_set1(11)), &less);
    return v_times_sigmoid(v_max(x, v_set1(-11)), v_minus(z), less);
}
TN__INLINE v_f32 v_gelu_tanh(v_f32 x)
{
    const v_f32  a = v_abs(x), y = v_without_tail(&tn__gelu_tanh_tail, x, a, 8);
    const v_mask near = v_less(a, v_set1(3.9375f));
    return v_all(near) ? y : v_choose(near, y, v_gelu_tanh_far(x));
}

/* D = e (1 + e - a z') / (1 + e)², with its zero at 0.7524…; h = a z' - 1 - e. */
TN__INLINE v_f64 v_gelu_h(v_f64 a, v_f64 e) { return a * (a * a * (3 * CUBE) + ROOT) - 1.0 - e; }
TN__INLINE v_f32 v_gelu_tanh_slope(v_f32 x)
{
    static const float s[] = {0.797884583f, -0.267279536f, 0.06124264f, -0.0102024218f, 0.00184176734f};
    static const float p[] = {0.411954492f,   -0.388254136f, 0.000221344366f, 0.11035043f,     -0.0211102813f,
                              -0.0180592574f, 0.005999004f,  0.00196210924f,  -0.000970443012f};
    const v_f32        a = v_min(v_abs(x), v_set1(11));
    v_f32              less, z = v_gelu_z_parts(a, &less);
    const v_f32        raised = v_exp_raised(v_minus(z), less);
    const v_f32        e = raised * V_DOWN, more = e * (2.0f + e);
    const v_f32        h = v_join(v_gelu_h(v_lower(a), v_lower(e)), v_gelu_h(v_upper(a), v_upper(e)));
    const v_f32        far = raised * (h - h * (more / (1.0f + more))) * V_DOWN;
    const v_f32        root = (a - 0x1.8142a0p-1f) + 0x1.85a06cp-27f, centre = a - 0.8f;
    const v_f32        minus_d = v_choose(v_less(v_abs(centre), v_set1(0.45f)), root * v_poly(centre, 9, p), far);
    const v_f32        y = v_choose(v_less(x, v_zero_f32()), v_zero_f32() - minus_d, 1.0f + minus_d);
    return v_choose(v_less(a, v_set1(0.375f)), 0.5f + x * v_poly(x * x, 5, s), y);
}

#undef ROOT
#undef CUBE
#endif
