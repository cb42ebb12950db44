/* log.h — ln x for f32, ln(1 + x), and ln(1 + eˣ).
 *
 *   x = 2ᵏ m  with √½ ≤ m < √2,  f = m - 1:   ln x = k ln 2 + f - f²/2 + f³ p(f),  p of degree 7 by minimax: 2⁻²⁷ */
#ifndef TENON_CORE_KERNELS_LOG_H
#define TENON_CORE_KERNELS_LOG_H

#include "core/kernels/exp.h"

/* ln x + more for a positive normal x, in three parts: *large + *f + the result, which is at most a quarter of the
 * others. less_k is subtracted from k. For x from 1 to 2, *large + *f is exact. */
TN__INLINE v_f32 v_log_parts(v_f32 x, v_f32 less_k, v_f32 more, v_f32 *large, v_f32 *f)
{
    static const float p[] = {0.333333313f, -0.250008225f, 0.200012237f, -0.166233361f,
                              0.142018199f, -0.131604508f, 0.127612621f, -0.0763339996f};
    const uint32_t     root_half = 0x3f3504f3u;
    const v_u32        above = v_bits(x) - root_half;
    const v_f32        from_1 = v_float((above & 0x7fffffu) + root_half) - 1.0f, ff = from_1 * from_1;
    const v_f32        k = v_float((v_u32)((v_i32)above >> 23) + v_bits(v_set1(0x1.8p23f))) - 0x1.8p23f - less_k;
    *large = k * 0x1.62e4p-1f, *f = from_1;
    return (ff * from_1 * v_poly(from_1, 8, p) + (k * 0x1.7f7d1cp-20f + more)) - 0.5f * ff;
}

TN__INLINE v_f32 v_log(v_f32 x)
{
    const v_mask tiny = v_less(x, v_set1(0x1p-126f)), finite = v_less(x, v_set1(INFINITY));
    const v_f32  up = v_choose(tiny, x * 0x1p23f, x), less_k = v_choose(tiny, v_set1(23), v_zero_f32());
    const v_f32  none = v_choose(v_less(x, v_zero_f32()), v_set1(NAN), v_set1(-INFINITY)); /* below 0, at 0 */
    v_f32        large, f;
    const v_f32  small = v_log_parts(up, less_k, v_zero_f32(), &large, &f);
    const v_f32  some = v_choose(v_less(v_zero_f32(), x), large + (f + small), none);
    return v_choose(finite, some, x); /* NaN is not finite */
}

/* ln(1 + x): the rounding error of 1 + x, computed by Knuth's two-sum, counts 1 / (1 + x) times, the slope. Where 1 + x
 * is 1, the result is x; so it is for the smallest x, -0 included, and for NaN and +infinity. */
TN__INLINE v_f32 v_log1p(v_f32 x)
{
    const v_f32 sum = 1.0f + x, of_x = sum - 1.0f, lost = (1.0f - (sum - of_x)) + (x - of_x);
    const v_f32 none = v_choose(v_less(sum, v_zero_f32()), v_set1(NAN), v_set1(-INFINITY)); /* below -1, at -1 */
    v_f32       large, f;
    const v_f32 small = v_log_parts(sum, v_zero_f32(), lost / sum, &large, &f);
    const v_f32 some = v_choose(v_less(v_zero_f32(), sum), large + (f + small), none);
    const v_f32 tiny = v_choose(v_less(v_abs(x), v_set1(0x1p-26f)), x, some);
    return v_choose(v_less(x, v_set1(INFINITY)), tiny, x); /* NaN is not less */
}

/* ln(1 + eˣ) = max(x, 0) + ln(1 + e), e = exp(-|x|). The rounding error of 1 + e counts 1 / (1 + e) times, the slope;
 * that of the sum of the two is computed by Knuth's two-sum, because either may be larger. Below -10, e - e²/2. */
TN__INLINE v_f32 v_softplus(v_f32 x)
{
    const v_f32 z = v_max(v_minus(x), v_set1(-104)), above = v_max(x, v_zero_f32());
    const v_f32 last = v_choose(v_less(v_set1(-104), z), v_set1(V_DOWN), v_zero_f32());
    v_u32       n23;
    v_f32       rest, e = v_exp_parts(z, v_zero_f32(), &n23, &rest);
    const v_f32 power = v_power_of_2(n23, 64);
    e = e * power * last, rest = rest * power * last;
    const v_f32 sum = 1.0f + e;
    v_f32       large, f;
    const v_f32 small = v_log_parts(sum, v_zero_f32(), ((e - (sum - 1.0f)) + rest) / sum, &large, &f);
    const v_f32 ln = large + f, y = above + ln, of_ln = y - above;
    const v_f32 whole = y + (((above - (y - of_ln)) + (ln - of_ln)) + small);
    return v_choose(v_less(x, v_set1(-10)), e + (rest - 0.5f * e * e), v_choose(v_less(x, v_set1(104)), whole, x));
}

#endif
