/* sincos.h — sin and cos for f32, computed in f64.
 *
 *   x = q π/2 + r  with q an integer and |r| ≤ π/4;  by q mod 4, sin x = sin r, cos r, -sin r, -cos r; cos x: the next
 *   sin r = r (1 + r² s(r²)),  cos r = 1 - r²/2 + r⁴ c(r²),  s and c of degree 3 by minimax: 2⁻³⁷
 *
 * Up to 2²⁸, q is rounded as in exp.h and π/2 has three parts; q times the first two is exact. Beyond, whole turns are
 * subtracted in integers, with as many digits of 1/(2π) as needed. */
#ifndef TENON_CORE_KERNELS_SINCOS_H
#define TENON_CORE_KERNELS_SINCOS_H

#include "core/kernels/vector.h"

#define V_CIRCLE_MOST 0x1p28f
/* of r², a scalar or a vector */
#define V_SIN(z)                                                                                          \
    (1.0 + z * (((2.7181136007030976e-06 * z + -0.00019839311419808577) * z + 0.008333329302158297) * z + \
                -0.16666666640773156))
#define V_COS(z)                                                                                    \
    (1.0 - 0.5 * z +                                                                                \
     z * z *                                                                                        \
         (((-2.721010973395525e-07 * z + 2.4799518368864967e-05) * z + -0.001388888374672121) * z + \
          0.041666666622742356))

TN__INLINE v_f64 v_circle_half(v_f64 x, uint64_t ahead)
{
    const v_f64 sum = x * 0x1.45f306dc9c883p-1 + 0x1.8p52, n = sum - 0x1.8p52;
    const v_f64 r = ((x - n * 0x1.921fb4p+0) - n * 0x1.4442dp-24) - n * 0x1.8469898cc5170p-48, rr = r * r;
    const v_u64 q = (v_u64)sum + ahead, odd = (v_u64){0} - (q & 1u);
    const v_f64 s = r * V_SIN(rr), c = V_COS(rr);
    return (v_f64)(((odd & (v_u64)c) | (~odd & (v_u64)s)) ^ (q & 2u) << 62);
}

/* One element outside the range of v_circle_half. x = m 2ᵉ with an integer m; the bits of 1/(2π) before the e-th only
 * contribute whole turns to x/(2π). */
static inline float v_circle_far(float x, uint64_t ahead)
{
    static const uint32_t turn[] = {0x28be60db, 0x9391054a, 0x7f09d5f4, 0x7d4d3770, 0x36d8a566, 0x4f10e410, 0x7f9458ea};
    uint32_t              u;
    memcpy(&u, &x, sizeof u);
    const uint32_t power = u >> 23 & 255;
    if (power == 255) return x - x;
    const uint64_t m = (u & 0x7fffffu) | 0x800000u;
    const uint32_t e = power - 150, at = e / 32, by = e % 32; /* e from 5 to 104 */
    uint64_t       w[3];
    for (uint32_t i = 0; i < 3; i++) w[i] = (uint32_t)(((uint64_t)turn[at + i] << 32 | turn[at + i + 1]) >> (32 - by));
    const uint64_t part = ((m * w[0]) << 32) + m * w[1] + (m * w[2] >> 32); /* of a turn, in 2⁻⁶⁴ */
    uint64_t       q = (part + (UINT64_C(1) << 61)) >> 62, rest = part - (q << 62);
    double         r = (rest >> 63 ? -(double)(0 - rest) : (double)rest) * 0x1.921fb54442d18p-62;
    if (u >> 31) r = -r, q = 0 - q;
    q += ahead;
    const double rr = r * r, y = q & 1 ? V_COS(rr) : r * V_SIN(rr);
    return (float)(q & 2 ? -y : y);
}

/* sin for ahead = 0, cos for 1 */
TN__INLINE v_f32 v_circle(v_f32 x, uint64_t ahead)
{
    v_f32 y = v_join(v_circle_half(v_lower(x), ahead), v_circle_half(v_upper(x), ahead));
    if (__builtin_expect(!v_all(v_less(v_abs(x), v_set1(V_CIRCLE_MOST))), 0)) {
        float from[v_n_f32], to[v_n_f32];
        v_store_f32(from, x), v_store_f32(to, y);
        for (int i = 0; i < v_n_f32; i++)
            if (!(fabsf(from[i]) < V_CIRCLE_MOST)) to[i] = v_circle_far(from[i], ahead);
        y = v_load_f32(to);
    }
    return y;
}

#endif
