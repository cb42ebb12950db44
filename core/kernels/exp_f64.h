/* exp_f64.h — eˣ in f64, and building blocks for functions of f64 that simd.h lacks. As in exp.h, with eʳ = 1 + r + r²
 * q(r), q of degree 9: 2⁻⁵⁸. */
#ifndef TENON_CORE_KERNELS_EXP_F64_H
#define TENON_CORE_KERNELS_EXP_F64_H

#include "core/kernels/vector.h"

TN__INLINE v_f64 v_set1_f64(double c) { return v_broadcast_f64(&c); }
TN__INLINE v_u64 v_less_f64(v_f64 a, v_f64 b) /* false if either is NaN */
{
    v_u64 m = (v_u64)(a < b);
    v_opaque(m);
    return m;
}
TN__INLINE v_f64 v_choose_f64(v_u64 m, v_f64 a, v_f64 b) { return (v_f64)((m & (v_u64)a) | (~m & (v_u64)b)); }
TN__INLINE v_f64 v_minus_f64(v_f64 x) { return (v_f64)((v_u64)x | UINT64_C(1) << 63); }
TN__INLINE v_f64 v_power_of_2_f64(v_u64 n52, int k) { return (v_f64)(n52 + ((uint64_t)(1023 + k) << 52)); }

/* eˣ = 2ⁿ (1 + r + the result), which is small compared with 1. */
/* clang-format off: it takes TN__UNROLL for a function */
TN__INLINE v_f64 v_exp_parts_f64(v_f64 x, v_u64 *n52, v_f64 *r)
{
    static const double q[] = {0.5000000000000011,     0.1666666666666641,     0.04166666666652967,
                               0.008333333333494992,   0.0013888888943774916,  0.0001984126950581809,
                               2.4801492935181716e-05, 2.7557586717599923e-06, 2.7630311056437033e-07,
                               2.5000056786849596e-08};
    const v_f64         sum = x * 0x1.71547652b82fep+0 + 0x1.8p52, n = sum - 0x1.8p52;
    const v_f64         a = x - n * 0x1.62e42fefa3000p-1, b = n * 0x1.3de6af278ece6p-42;
    v_f64               p = v_set1_f64(q[9]);
    *r = a - b, *n52 = (v_u64)sum << 52;
    TN__UNROLL for (int i = 8; i >= 0; i--) p = p * *r + q[i];
    return *r * *r * p + ((a - *r) - b);
}
/* clang-format on */

/* eˣ as 2ⁿ times the result; *rest is smaller than its last bit. */
TN__INLINE v_f64 v_exp_whole_f64(v_f64 x, v_u64 *n52, v_f64 *rest)
{
    v_f64       r, small = v_exp_parts_f64(x, n52, &r);
    const v_f64 one = 1.0 + r;
    small = small + (r - (one - 1.0));
    const v_f64 y = one + small;
    *rest = small - (y - one);
    return y;
}

TN__INLINE v_f64 v_exp_f64(v_f64 x)
{
    const v_u64 none = v_less_f64(x, v_set1_f64(-746)), large = v_less_f64(v_zero_f64(), x);
    v_u64       n52;
    v_f64       rest,
        y = v_choose_f64(none, v_set1_f64(-746), v_choose_f64(v_less_f64(v_set1_f64(710), x), v_set1_f64(710), x));
    y = v_exp_whole_f64(y, &n52, &rest);
    const v_f64 first = v_choose_f64(large, v_power_of_2_f64(n52, -2), v_power_of_2_f64(n52, 64));
    return y * first * v_choose_f64(large, v_set1_f64(4), v_choose_f64(none, v_zero_f64(), v_set1_f64(0x1p-64)));
}

#endif
