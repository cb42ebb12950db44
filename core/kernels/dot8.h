/* dot8.h — the vectors of int8.k.c: sums of products of unsigned and signed bytes, exact in i32. Included after simd.h.
 *
 * A vector of weights holds v_rows8 rows by 4 columns (a quad). Without VNNI or NEON's dot products (SDOT), products of
 * two columns are added in i16, and with those of the next quad, before they are widened: the packed weights guarantee
 * that these sums fit (kernels.h). SSE2 and plain C widen all bytes to i16, and a row's sum is in two elements. An
 * activation is at most 127, so NEON may read it as a signed byte.
 *   v_weights8(p)              v_rows8 rows of a quad at p
 *   v_quad8(p)                 a v_x8: a row's 4 activations, for each row of weights
 *   v_dot8(sum, x, w, y, v)    sum + products of the quads x and w and of the quads y and v
 *   v_sums8(sum)               v_n_f32 sums, from the vectors of all their rows in sequence
 *   v_less8(sum, p)            sum - 64 · the i32 at p, as f32 */
#ifndef TENON_CORE_KERNELS_DOT8_H
#define TENON_CORE_KERNELS_DOT8_H

#include "core/kernels/simd.h"

TN__INLINE int32_t v_word8(const uint8_t *p)
{
    int32_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

#if defined(__AVX512F__)

typedef __m512i v_i32, v_x8;
enum { v_rows8 = 16 };
TN__INLINE v_i32 v_zero8(void) { return _mm512_setzero_si512(); }
TN__INLINE v_i32 v_weights8(const uint8_t *p) { return _mm512_loadu_si512(p); }
TN__INLINE v_x8  v_quad8(const uint8_t *p) { return _mm512_set1_epi32(v_word8(p)); }
TN__INLINE v_i32 v_dot8(v_i32 sum, v_x8 x, v_i32 w, v_x8 y, v_i32 v)
{
#ifdef __AVX512VNNI__
    return _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(sum, x, w), y, v);
#else
    const v_i32 both = _mm512_add_epi16(_mm512_maddubs_epi16(x, w), _mm512_maddubs_epi16(y, v));
    return _mm512_add_epi32(sum, _mm512_madd_epi16(both, _mm512_set1_epi16(1)));
#endif
}
TN__INLINE v_i32 v_sums8(const v_i32 *sum) { return *sum; }
TN__INLINE v_f32 v_less8(v_i32 sum, const uint8_t *p)
{
    return _mm512_cvtepi32_ps(_mm512_sub_epi32(sum, _mm512_slli_epi32(_mm512_loadu_si512(p), 6)));
}

#elif defined(__AVX2__)

typedef __m256i v_i32, v_x8;
enum { v_rows8 = 8 };
TN__INLINE v_i32 v_zero8(void) { return _mm256_setzero_si256(); }
TN__INLINE v_i32 v_weights8(const uint8_t *p) { return _mm256_loadu_si256((const __m256i *)(const void *)p); }
TN__INLINE v_x8  v_quad8(const uint8_t *p) { return _mm256_set1_epi32(v_word8(p)); }
TN__INLINE v_i32 v_dot8(v_i32 sum, v_x8 x, v_i32 w, v_x8 y, v_i32 v)
{
#ifdef __AVXVNNI__
    return _mm256_dpbusd_avx_epi32(_mm256_dpbusd_avx_epi32(sum, x, w), y, v);
#else
    const v_i32 both = _mm256_add_epi16(_mm256_maddubs_epi16(x, w), _mm256_maddubs_epi16(y, v));
    /* gcc would compute all products before the sums, and spill them */
    __asm__ volatile("vpaddd %1, %0, %0" : "+x"(sum) : "x"(_mm256_madd_epi16(both, _mm256_set1_epi16(1))));
    return sum;
#endif
}
TN__INLINE v_i32 v_sums8(const v_i32 *sum) { return *sum; }
TN__INLINE v_f32 v_less8(v_i32 sum, const uint8_t *p)
{
    return _mm256_cvtepi32_ps(_mm256_sub_epi32(sum, _mm256_slli_epi32(v_weights8(p), 6)));
}

#elif defined(__aarch64__)

typedef int32_t v_i32 __attribute__((vector_size(16)));
enum { v_rows8 = 4 };
TN__INLINE v_i32 v_zero8(void) { return (v_i32){0}; }
TN__INLINE v_i32 v_weights8(const uint8_t *p) { return (v_i32)vld1q_u8(p); }
#if defined(TN__SDOT) || defined(__ARM_FEATURE_DOTPROD) /* the compiler's, and the one file's for a part of it */
typedef float    v_x8; /* the bytes in a vector register: see v_fma_one_f32 */
TN__INLINE v_x8  v_quad8(const uint8_t *p)
{
    v_x8 x;
    memcpy(&x, p, sizeof x);
    return x;
}
TN__INLINE v_i32 v_dot8(v_i32 sum, v_x8 x, v_i32 w, v_x8 y, v_i32 v)
{
    __asm__("sdot %0.4s, %1.16b, %2.4b[0]" : "+w"(sum) : "w"(w), "w"(x));
    __asm__("sdot %0.4s, %1.16b, %2.4b[0]" : "+w"(sum) : "w"(v), "w"(y));
    return sum;
}
#else
typedef v_i32    v_x8;
TN__INLINE v_x8  v_quad8(const uint8_t *p) { return (v_x8)vdupq_n_s32(v_word8(p)); }
TN__INLINE v_i32 v_dot8(v_i32 sum, v_x8 x, v_i32 w, v_x8 y, v_i32 v)
{
    const int8x16_t a = (int8x16_t)x, b = (int8x16_t)w, c = (int8x16_t)y, d = (int8x16_t)v;
    const int16x8_t lower = vmlal_s8(vmull_s8(vget_low_s8(a), vget_low_s8(b)), vget_low_s8(c), vget_low_s8(d));
    const int16x8_t upper = vmlal_high_s8(vmull_high_s8(a, b), c, d);
    return (v_i32)vpadalq_s16((int32x4_t)sum, vpaddq_s16(lower, upper));
}
#endif
TN__INLINE v_i32 v_sums8(const v_i32 *sum) { return *sum; }
TN__INLINE v_f32 v_less8(v_i32 sum, const uint8_t *p)
{
    return __builtin_convertvector(sum - v_weights8(p) * 64, v_f32);
}

#else

typedef int32_t v_i32 __attribute__((vector_size(16)));
typedef v_i32   v_x8;
enum { v_rows8 = 2 };
TN__INLINE v_i32 v_zero8(void) { return (v_i32){0}; }
#ifdef __SSE2__
TN__INLINE v_i32 v_weights8(const uint8_t *p)
{
    const __m128i w = _mm_loadl_epi64((const __m128i *)(const void *)p);
    return (v_i32)_mm_srai_epi16(_mm_unpacklo_epi8(w, w), 8);
}
TN__INLINE v_x8 v_quad8(const uint8_t *p)
{
    return (v_i32)_mm_unpacklo_epi8(_mm_set1_epi32(v_word8(p)), _mm_setzero_si128());
}
TN__INLINE v_i32 v_dot8(v_i32 sum, v_x8 x, v_i32 w, v_x8 y, v_i32 v)
{
    sum += (v_i32)_mm_madd_epi16((__m128i)x, (__m128i)w);
    sum += (v_i32)_mm_madd_epi16((__m128i)y, (__m128i)v);
    __asm__ volatile("" : "+x"(sum)); /* else gcc computes all products before the sums, and spills them */
    return sum;
}
#else
typedef int16_t  v_i16 __attribute__((vector_size(16)));
TN__INLINE v_i32 v_weights8(const uint8_t *p)
{
    v_i16 w;
    for (int i = 0; i < 8; i++) w[i] = (int8_t)p[i];
    return (v_i32)w;
}
TN__INLINE v_x8 v_quad8(const uint8_t *p)
{
    v_i16 x;
    for (int i = 0; i < 8; i++) x[i] = p[i % 4];
    return (v_i32)x;
}
TN__INLINE v_i32 v_pairs8(v_i32 sum, v_i32 x, v_i32 w)
{
    const v_i16 a = (v_i16)x, b = (v_i16)w;
    for (int i = 0; i < 4; i++)
        sum[i] = (int32_t)((uint32_t)sum[i] + (uint32_t)(a[2 * i] * b[2 * i] + a[2 * i + 1] * b[2 * i + 1]));
    return sum;
}
TN__INLINE v_i32 v_dot8(v_i32 sum, v_x8 x, v_i32 w, v_x8 y, v_i32 v) { return v_pairs8(v_pairs8(sum, x, w), y, v); }
#endif
TN__INLINE v_i32 v_sums8(const v_i32 *sum)
{
    return __builtin_shufflevector(sum[0], sum[1], 0, 2, 4, 6) + __builtin_shufflevector(sum[0], sum[1], 1, 3, 5, 7);
}
TN__INLINE v_f32 v_less8(v_i32 sum, const uint8_t *p)
{
    v_i32 less;
    memcpy(&less, p, sizeof less);
    return __builtin_convertvector(sum - less * 64, v_f32);
}

#endif

#endif
