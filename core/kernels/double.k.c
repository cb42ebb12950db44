/* double.k.c — functions of one element over arrays of f64: exp and what stands on it. As in exp.h and sigmoid.h, with
 * eʳ = 1 + r + r² q(r), q of degree 9: 2⁻⁵⁸. What is not here is done by the C library (core/functions.c). */
#include "core/kernels/kernels.h"
#include "core/kernels/vector.h"

TN_INLINE v_f64 same(double c) { return v_all_f64(&c); }
TN_INLINE v_u64 less(v_f64 a, v_f64 b) { return (v_u64)(a < b); } /* false where one is NaN */
TN_INLINE v_f64 choose(v_u64 m, v_f64 a, v_f64 b) { return (v_f64)((m & (v_u64)a) | (~m & (v_u64)b)); }
TN_INLINE v_f64 minus(v_f64 x) { return (v_f64)((v_u64)x | UINT64_C(1) << 63); }
TN_INLINE v_f64 power_of_2(v_u64 n52, int k) { return (v_f64)(n52 + ((uint64_t)(1023 + k) << 52)); }

/* eˣ = 2ⁿ (1 + r + the result), which is small beside 1. */
/* clang-format off: it takes TN_UNROLL for a function */
TN_INLINE v_f64 exp_parts(v_f64 x, v_u64 *n52, v_f64 *r)
{
    static const double q[] = {0.5000000000000011,     0.1666666666666641,     0.04166666666652967,
                               0.008333333333494992,   0.0013888888943774916,  0.0001984126950581809,
                               2.4801492935181716e-05, 2.7557586717599923e-06, 2.7630311056437033e-07,
                               2.5000056786849596e-08};
    const v_f64         sum = x * 0x1.71547652b82fep+0 + 0x1.8p52, n = sum - 0x1.8p52;
    const v_f64         a = x - n * 0x1.62e42fefa3000p-1, b = n * 0x1.3de6af278ece6p-42;
    v_f64               p = same(q[9]);
    *r = a - b, *n52 = (v_u64)sum << 52;
    TN_UNROLL for (int i = 8; i >= 0; i--) p = p * *r + q[i];
    return *r * *r * p + ((a - *r) - b);
}
/* clang-format on */

/* The same as 2ⁿ times the result; *rest is smaller than its last bit. */
TN_INLINE v_f64 exp_whole(v_f64 x, v_u64 *n52, v_f64 *rest)
{
    v_f64       r, small = exp_parts(x, n52, &r);
    const v_f64 one = 1.0 + r;
    small = small + (r - (one - 1.0));
    const v_f64 y = one + small;
    *rest = small - (y - one);
    return y;
}

TN_INLINE v_f64 f_exp(v_f64 x)
{
    const v_u64 none = less(x, same(-746)), large = less(v_zero_f64(), x);
    v_u64       n52;
    v_f64       rest, y = choose(none, same(-746), choose(less(same(710), x), same(710), x));
    y = exp_whole(y, &n52, &rest);
    const v_f64 first = choose(large, power_of_2(n52, -2), power_of_2(n52, 64));
    return y * first * choose(large, same(4), choose(none, v_zero_f64(), same(0x1p-64)));
}

TN_INLINE v_f64 f_sigmoid(v_f64 x)
{
    const v_u64 below = less(x, v_zero_f64()), none = less(minus(x), same(-746));
    v_u64       n52;
    v_f64       rest, e = exp_whole(choose(none, same(-746), minus(x)), &n52, &rest);
    const v_f64 first = power_of_2(n52, 64), last = choose(none, v_zero_f64(), same(0x1p-64));
    e = e * first * last, rest = rest * first * last;
    const v_f64 sum = 1.0 + e, r = choose(below, e, same(1)) / sum, lost = (e - (sum - 1.0)) + rest;
    return r + (choose(below, rest, v_zero_f64()) - r * lost) * choose(below, 1.0 - r, r);
}

/* With m = exp(2|x|) - 1: y = m / (m + 2). As above y is mended, where it is less than ½; 1 / (m + 2) = (1 - y) / 2. */
TN_INLINE v_f64 f_tanh(v_f64 x)
{
    const v_u64 sign = (v_u64)x & UINT64_C(1) << 63;
    const v_f64 a = (v_f64)((v_u64)x ^ sign);
    v_u64       n52;
    v_f64       r, small = exp_parts(choose(less(same(20), a), same(40), a + a), &n52, &r);
    const v_f64 power = power_of_2(n52, 0), near = r + small, far = power * near;
    const v_f64 m = (power - 1.0) + far, rest = power * (small - (near - r)) + (far - (m - (power - 1.0)));
    const v_f64 sum = m + 2.0, y = m / sum, lost = (m - (sum - 2.0)) + rest;
    const v_f64 mended = y + (rest - y * lost) * (0.5 - 0.5 * y);
    return (v_f64)((v_u64)choose(less(m, same(2)), mended, y) | sign);
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
TN_EACH_FUNCTION_F64(FUNCTION)

extern const tn_functions_f64 TN_FOR_ISA(tn__functions_f64);

#define ENTRY(name) .name = name##_f64,
const tn_functions_f64 TN_FOR_ISA(tn__functions_f64) = {TN_EACH_FUNCTION_F64(ENTRY)};
