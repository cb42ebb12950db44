/* log.h — ln x for f32, and ln(1 + eˣ).
 *
 *   x = 2ᵏ m  with √½ ≤ m < √2,  f = m - 1:   ln x = k ln 2 + f - f²/2 + f³ p(f),  p of degree 7 by minimax: 2⁻²⁷ */
#ifndef TENON_CORE_KERNELS_LOG_H
#define TENON_CORE_KERNELS_LOG_H

#include "core/kernels/exp.h"

/* ln x + more for a positive normal x; less_k is taken from k. */
TN__INLINE v_f32 v_log_parts(v_f32 x, v_f32 less_k, v_f32 more)
{
    static const float p[] = {0.333333313f, -0.250008225f, 0.200012237f, -0.166233361f,
                              0.142018199f, -0.131604508f, 0.127612621f, -0.0763339996f};
    const uint32_t     root_half = 0x3f3504f3u;
    const v_u32        above = v_bits(x) - root_half;
    const v_f32        f = v_float((above & 0x7fffffu) + root_half) - 1.0f, ff = f * f;
    const v_f32        k = v_float((v_u32)((v_i32)above >> 23) + v_bits(v_set1(0x1.8p23f))) - 0x1.8p23f - less_k;
    return k * 0x1.62e4p-1f + (f - (0.5f * ff - (ff * f * v_poly(f, 8, p) + (k * 0x1.7f7d1cp-20f + more))));
}

TN__INLINE v_f32 v_log(v_f32 x)
{
    const v_mask tiny = v_less(x, v_set1(0x1p-126f)), finite = v_less(x, v_set1(INFINITY));
    const v_f32  up = v_choose(tiny, x * 0x1p23f, x), less_k = v_choose(tiny, v_set1(23), v_zero_f32());
    const v_f32  none = v_choose(v_less(x, v_zero_f32()), v_set1(NAN), v_set1(-INFINITY)); /* below 0, at 0 */
    const v_f32  some = v_choose(v_less(v_zero_f32(), x), v_log_parts(up, less_k, v_zero_f32()), none);
    return v_choose(finite, some, x); /* NaN is not finite */
}

/* ln(1 + eˣ) = max(x, 0) + ln(1 + e), e = exp(-|x|). What 1 + e loses of e counts 1 / (1 + e) times, the slope. */
TN__INLINE v_f32 v_softplus(v_f32 x)
{
    const v_f32 e = v_exp_down(v_minus(x)), sum = 1.0f + e;
    return v_max(x, v_zero_f32()) + v_log_parts(sum, v_zero_f32(), (e - (sum - 1.0f)) / sum);
}

#endif
