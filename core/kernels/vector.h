/* vector.h — building blocks of functions of one element, in addition to simd.h and C's operators: masks, bits, halves
 * in f64, and the ends of arrays. All vectors are f32.
 *
 * Nothing in this file or in those that build on it multiplies and adds in one step, and each operation is one that
 * IEEE 754 defines to the bit. So a function built on them gives the same bits on every instruction set, in every lane
 * and at every position.
 *
 *   v_mask                   one truth a lane           v_less(a, b)              false where one is NaN
 *   v_choose(m, a, b)        a where m, else b          v_min(x, c), v_max(x, c)  NaN where x is
 *   v_equal(a, b)            also false where NaN       v_abs(x), v_minus(x)      with the sign bit off, on
 *   v_all(m)                 true in each lane
 *   v_bits(x), v_float(u)    the bits of a float        v_with_sign(x, s)         x ≥ 0 with the sign of s
 *   v_lower(x), v_upper(x)   half of the lanes in f64   v_join(l, u)              both rounded to f32
 *   v_top(x)                 its first 12 bits: products of two such are exact, and so is the rest of x
 *   v_set1(c)                c in each lane             v_poly(x, n, c)           c[0] + c[1] x + … + c[n-1] xⁿ⁻¹
 *   v_lanes_total(sum)       of 16 sums in f64, as by tn__lanes_total
 *   v_mul_low32(a, b)        64 bits: of the lower halves
 *   v_halves(w, k)           vector k of 16 lanes whose upper 16 bits are the lower halves of the 8 words at w, then
 *                            their upper halves; the other bits are undefined
 *   v_load_some, v_store_some(p, n, …)   fewer than v_n elements; lanes beyond them are 0, memory is not touched */
#ifndef TENON_CORE_KERNELS_VECTOR_H
#define TENON_CORE_KERNELS_VECTOR_H

#include "core/kernels/simd.h"
#include "core/kernels/sum_lanes.h"

#include <math.h>
#include <stdbool.h>

typedef uint32_t v_u32 __attribute__((vector_size(sizeof(v_f32)))); /* unsigned: sums may wrap */
typedef int32_t  v_i32 __attribute__((vector_size(sizeof(v_f32))));
typedef uint64_t v_u64 __attribute__((vector_size(sizeof(v_f64))));

/* Clang must not make a minimum of a comparison and a choice: WebAssembly's relaxed one has another NaN. */
#ifdef __wasm_relaxed_simd__
#define v_opaque(m) __asm__("" : "+r"(m))
#else
#define v_opaque(m) ((void)0)
#endif

TN__INLINE v_u32 v_bits(v_f32 x) { return (v_u32)x; }
TN__INLINE v_f32 v_float(v_u32 u) { return (v_f32)u; }

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)

typedef __mmask16 v_mask;
TN__INLINE v_mask v_less(v_f32 a, v_f32 b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
TN__INLINE v_f32  v_choose(v_mask m, v_f32 a, v_f32 b) { return _mm512_mask_blend_ps(m, b, a); }
TN__INLINE v_mask v_equal(v_f32 a, v_f32 b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
TN__INLINE bool   v_all(v_mask m) { return m == 0xffff; }
TN__INLINE v_f32  v_min(v_f32 x, v_f32 c) { return _mm512_min_ps(c, x); } /* x if one is NaN */
TN__INLINE v_f32  v_max(v_f32 x, v_f32 c) { return _mm512_max_ps(c, x); }
TN__INLINE v_f64  v_lower(v_f32 x) { return _mm512_cvtps_pd(_mm512_castps512_ps256(x)); }
TN__INLINE v_f64  v_upper(v_f32 x) { return _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1)); }
TN__INLINE v_f32  v_join(v_f64 l, v_f64 u)
{
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(l)), _mm512_cvtpd_ps(u), 1);
}
TN__INLINE v_u64 v_mul_low32(v_u64 a, v_u64 b) { return (v_u64)_mm512_mul_epu32((__m512i)a, (__m512i)b); }
TN__INLINE v_u32 v_halves(const uint32_t *w, int k)
{
    const v_u32 twice = (v_u32)_mm512_broadcast_i32x8(_mm256_loadu_si256((const __m256i *)(const void *)w));
    return (void)k, twice << (v_u32){16, 16, 16, 16, 16, 16, 16, 16};
}
TN__INLINE v_f32 v_load_some(const float *p, int64_t n) { return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p); }
TN__INLINE void  v_store_some(float *p, int64_t n, v_f32 v) { _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), v); }

#else

#if defined(__AVX2__) && defined(__FMA__)

typedef __m256    v_mask;
TN__INLINE v_mask v_less(v_f32 a, v_f32 b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
TN__INLINE v_f32  v_choose(v_mask m, v_f32 a, v_f32 b) { return _mm256_blendv_ps(b, a, m); }
TN__INLINE v_mask v_equal(v_f32 a, v_f32 b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
TN__INLINE bool   v_all(v_mask m) { return _mm256_movemask_ps(m) == 0xff; }
TN__INLINE v_f32  v_min(v_f32 x, v_f32 c) { return _mm256_min_ps(c, x); } /* x if one is NaN */
TN__INLINE v_f32  v_max(v_f32 x, v_f32 c) { return _mm256_max_ps(c, x); }
TN__INLINE v_f64  v_lower(v_f32 x) { return _mm256_cvtps_pd(_mm256_castps256_ps128(x)); }
TN__INLINE v_f64  v_upper(v_f32 x) { return _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)); }
TN__INLINE v_f32  v_join(v_f64 l, v_f64 u) { return _mm256_set_m128(_mm256_cvtpd_ps(u), _mm256_cvtpd_ps(l)); }
TN__INLINE v_u64  v_mul_low32(v_u64 a, v_u64 b) { return (v_u64)_mm256_mul_epu32((__m256i)a, (__m256i)b); }

#else

typedef v_i32     v_mask;
TN__INLINE v_mask v_less(v_f32 a, v_f32 b)
{
    v_mask m = (v_mask)(a < b);
    v_opaque(m);
    return m;
}
TN__INLINE v_mask v_equal(v_f32 a, v_f32 b) { return (v_mask)(a == b); }
TN__INLINE v_f32  v_choose(v_mask m, v_f32 a, v_f32 b)
{
    return v_float(((v_u32)m & v_bits(a)) | (~(v_u32)m & v_bits(b)));
}
#ifdef __SSE2__
#include <emmintrin.h>
TN__INLINE bool  v_all(v_mask m) { return _mm_movemask_ps((__m128)m) == 15; }
TN__INLINE v_f32 v_min(v_f32 x, v_f32 c) { return (v_f32)_mm_min_ps((__m128)c, (__m128)x); } /* x if one is NaN */
TN__INLINE v_f32 v_max(v_f32 x, v_f32 c) { return (v_f32)_mm_max_ps((__m128)c, (__m128)x); }
TN__INLINE v_f64 v_lower(v_f32 x) { return (v_f64)_mm_cvtps_pd((__m128)x); }
TN__INLINE v_f64 v_upper(v_f32 x) { return (v_f64)_mm_cvtps_pd(_mm_movehl_ps((__m128)x, (__m128)x)); }
TN__INLINE v_f32 v_join(v_f64 l, v_f64 u)
{
    return (v_f32)_mm_movelh_ps(_mm_cvtpd_ps((__m128d)l), _mm_cvtpd_ps((__m128d)u));
}
TN__INLINE v_u64 v_mul_low32(v_u64 a, v_u64 b) { return (v_u64)_mm_mul_epu32((__m128i)a, (__m128i)b); }
#else
TN__INLINE bool  v_all(v_mask m) { return (m[0] & m[1] & m[2] & m[3]) != 0; }
TN__INLINE v_f32 v_min(v_f32 x, v_f32 c) { return v_choose(v_less(c, x), c, x); }
TN__INLINE v_f32 v_max(v_f32 x, v_f32 c) { return v_choose(v_less(x, c), c, x); }
TN__INLINE v_f64 v_lower(v_f32 x) { return (v_f64){(double)x[0], (double)x[1]}; }
TN__INLINE v_f64 v_upper(v_f32 x) { return (v_f64){(double)x[2], (double)x[3]}; }
TN__INLINE v_f32 v_join(v_f64 l, v_f64 u) { return (v_f32){(float)l[0], (float)l[1], (float)u[0], (float)u[1]}; }
TN__INLINE v_u64 v_mul_low32(v_u64 a, v_u64 b) { return (a & 0xffffffffu) * (b & 0xffffffffu); }
#endif
#endif

TN__INLINE v_u32 v_halves(const uint32_t *w, int k)
{
    v_u32 u;
    memcpy(&u, w + k * v_n_f32 % 8, sizeof u);
    return k * v_n_f32 < 8 ? u << 16 : u;
}
TN__INLINE v_f32 v_load_some(const float *p, int64_t n)
{
#if defined(__AVX2__) && defined(__FMA__)
    return _mm256_maskload_ps(p,
                              _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)));
#else
    float whole[v_n_f32] = {0};
    for (int64_t i = 0; i < n; i++) whole[i] = p[i];
    return v_load_f32(whole);
#endif
}
TN__INLINE void v_store_some(float *p, int64_t n, v_f32 v)
{
    float whole[v_n_f32];
    v_store_f32(whole, v);
    for (int64_t i = 0; i < n; i++) p[i] = whole[i];
}

#endif

TN__INLINE v_f32 v_set1(float c) { return v_broadcast_f32(&c); }
TN__INLINE v_f32 v_abs(v_f32 x) { return v_float(v_bits(x) & 0x7fffffffu); }
TN__INLINE v_f32 v_minus(v_f32 x) { return v_float(v_bits(x) | 0x80000000u); }
TN__INLINE v_f32 v_top(v_f32 x) { return v_float(v_bits(x) & 0xfffff000u); }
TN__INLINE v_f32 v_with_sign(v_f32 x, v_f32 s) { return v_float(v_bits(x) | (v_bits(s) & 0x80000000u)); }

/* The total of 16 lanes in vectors; the compiler optimises these stores and loads away. */
TN__INLINE double v_lanes_total(const v_f64 sum[TN__LANES / v_n_f64])
{
    tn__lanes s;
    for (int k = 0; k < TN__LANES / v_n_f64; k++) v_store_f64(s.lane + k * v_n_f64, sum[k]);
    return tn__lanes_total(s);
}

/* clang-format off: it takes TN__UNROLL for a function */
TN__INLINE v_f32 v_poly(v_f32 x, const int n, const float *c)
{
    v_f32 y = v_set1(c[n - 1]);
    TN__UNROLL for (int i = n - 2; i >= 0; i--) y = y * x + c[i];
    return y;
}
/* clang-format on */

#endif
