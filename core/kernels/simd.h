/* simd.h — the vectors that kernels are written in: one set of names, and behind it AVX-512, AVX2 with FMA, or vectors
 * of 16 bytes that gcc and clang turn into SSE2, NEON or what the machine has. Only *.k.c files include it; each is
 * compiled once for each instruction set.
 *
 * A vector of floats is v_f32, of doubles v_f64; its pieces of 16 bytes are the unit in which matrices are transposed.
 *   v_n_T       elements in a vector                 v_zero_T()         all 0
 *   v_load_T    n elements from memory               v_all_T(p)         *p in each element
 *   v_store_T   n elements to memory                 v_fma_T(a, b, c)   a·b + c
 *   v_pieces_T(p, step)   piece l holds the 16 bytes at p + l·step
 *   v_low_T, v_high_T(a, b)   piece by piece, the lower (upper) halves of a and b, their elements interleaved
 *   v_turn_T(p, step, y)  transposes v_n_T rows of one piece each
 *   v_load_bf16, v_turn_bf16     the same from bf16, widened to f32
 * v_fma rounds once where the instruction set multiplies and adds in one step (AVX-512, AVX2, NEON), twice elsewhere:
 * which of them is a property of the instruction set, never of the code around it. */
#ifndef TENON_CORE_KERNELS_SIMD_H
#define TENON_CORE_KERNELS_SIMD_H

#include <stdint.h>
#include <string.h>

#define TN_INLINE static inline __attribute__((always_inline))

#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
/* Four bf16 are the upper halves of four f32. */
TN_INLINE __m128 v_piece_bf16(const uint16_t *p)
{
    __m128i h = _mm_loadl_epi64((const __m128i *)(const void *)p);
    return _mm_castsi128_ps(_mm_unpacklo_epi16(_mm_setzero_si128(), h));
}
#endif

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)

typedef __m512  v_f32;
typedef __m512d v_f64;
enum { v_n_f32 = 16, v_n_f64 = 8 };
TN_INLINE v_f32 v_zero_f32(void) { return _mm512_setzero_ps(); }
TN_INLINE v_f64 v_zero_f64(void) { return _mm512_setzero_pd(); }
TN_INLINE v_f32 v_load_f32(const float *p) { return _mm512_loadu_ps(p); }
TN_INLINE v_f64 v_load_f64(const double *p) { return _mm512_loadu_pd(p); }
TN_INLINE void  v_store_f32(float *p, v_f32 v) { _mm512_storeu_ps(p, v); }
TN_INLINE void  v_store_f64(double *p, v_f64 v) { _mm512_storeu_pd(p, v); }
TN_INLINE v_f32 v_all_f32(const float *p) { return _mm512_set1_ps(*p); }
TN_INLINE v_f64 v_all_f64(const double *p) { return _mm512_set1_pd(*p); }
TN_INLINE v_f32 v_fma_f32(v_f32 a, v_f32 b, v_f32 c) { return _mm512_fmadd_ps(a, b, c); }
TN_INLINE v_f64 v_fma_f64(v_f64 a, v_f64 b, v_f64 c) { return _mm512_fmadd_pd(a, b, c); }
TN_INLINE v_f32 v_low_f32(v_f32 a, v_f32 b) { return _mm512_unpacklo_ps(a, b); }
TN_INLINE v_f32 v_high_f32(v_f32 a, v_f32 b) { return _mm512_unpackhi_ps(a, b); }
TN_INLINE v_f64 v_low_f64(v_f64 a, v_f64 b) { return _mm512_unpacklo_pd(a, b); }
TN_INLINE v_f64 v_high_f64(v_f64 a, v_f64 b) { return _mm512_unpackhi_pd(a, b); }
TN_INLINE v_f32 v_join4(__m128 a, __m128 b, __m128 c, __m128 d)
{
    v_f32 v = _mm512_castps128_ps512(a);
    v = _mm512_insertf32x4(v, b, 1);
    v = _mm512_insertf32x4(v, c, 2);
    return _mm512_insertf32x4(v, d, 3);
}
TN_INLINE v_f32 v_pieces_f32(const float *p, int64_t s)
{
    return v_join4(_mm_loadu_ps(p), _mm_loadu_ps(p + s), _mm_loadu_ps(p + 2 * s), _mm_loadu_ps(p + 3 * s));
}
TN_INLINE v_f64 v_pieces_f64(const double *p, int64_t s)
{
    v_f64 v = _mm512_castpd128_pd512(_mm_loadu_pd(p));
    v = _mm512_insertf64x2(v, _mm_loadu_pd(p + s), 1);
    v = _mm512_insertf64x2(v, _mm_loadu_pd(p + 2 * s), 2);
    return _mm512_insertf64x2(v, _mm_loadu_pd(p + 3 * s), 3);
}
TN_INLINE v_f32 v_load_bf16(const uint16_t *p)
{
    __m256i h = _mm256_loadu_si256((const __m256i *)(const void *)p);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}
TN_INLINE v_f32 v_pieces_bf16(const uint16_t *p, int64_t s)
{
    return v_join4(v_piece_bf16(p), v_piece_bf16(p + s), v_piece_bf16(p + 2 * s), v_piece_bf16(p + 3 * s));
}

#elif defined(__AVX2__) && defined(__FMA__)

typedef __m256  v_f32;
typedef __m256d v_f64;
enum { v_n_f32 = 8, v_n_f64 = 4 };
TN_INLINE v_f32 v_zero_f32(void) { return _mm256_setzero_ps(); }
TN_INLINE v_f64 v_zero_f64(void) { return _mm256_setzero_pd(); }
TN_INLINE v_f32 v_load_f32(const float *p) { return _mm256_loadu_ps(p); }
TN_INLINE v_f64 v_load_f64(const double *p) { return _mm256_loadu_pd(p); }
TN_INLINE void  v_store_f32(float *p, v_f32 v) { _mm256_storeu_ps(p, v); }
TN_INLINE void  v_store_f64(double *p, v_f64 v) { _mm256_storeu_pd(p, v); }
TN_INLINE v_f32 v_all_f32(const float *p) { return _mm256_broadcast_ss(p); }
TN_INLINE v_f64 v_all_f64(const double *p) { return _mm256_broadcast_sd(p); }
TN_INLINE v_f32 v_fma_f32(v_f32 a, v_f32 b, v_f32 c) { return _mm256_fmadd_ps(a, b, c); }
TN_INLINE v_f64 v_fma_f64(v_f64 a, v_f64 b, v_f64 c) { return _mm256_fmadd_pd(a, b, c); }
TN_INLINE v_f32 v_low_f32(v_f32 a, v_f32 b) { return _mm256_unpacklo_ps(a, b); }
TN_INLINE v_f32 v_high_f32(v_f32 a, v_f32 b) { return _mm256_unpackhi_ps(a, b); }
TN_INLINE v_f64 v_low_f64(v_f64 a, v_f64 b) { return _mm256_unpacklo_pd(a, b); }
TN_INLINE v_f64 v_high_f64(v_f64 a, v_f64 b) { return _mm256_unpackhi_pd(a, b); }
TN_INLINE v_f32 v_join2(__m128 a, __m128 b) { return _mm256_insertf128_ps(_mm256_castps128_ps256(a), b, 1); }
TN_INLINE v_f32 v_pieces_f32(const float *p, int64_t s) { return v_join2(_mm_loadu_ps(p), _mm_loadu_ps(p + s)); }
TN_INLINE v_f64 v_pieces_f64(const double *p, int64_t s)
{
    return _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadu_pd(p)), _mm_loadu_pd(p + s), 1);
}
TN_INLINE v_f32 v_load_bf16(const uint16_t *p)
{
    __m128i h = _mm_loadu_si128((const __m128i *)(const void *)p);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}
TN_INLINE v_f32 v_pieces_bf16(const uint16_t *p, int64_t s) { return v_join2(v_piece_bf16(p), v_piece_bf16(p + s)); }

#else

typedef float  v_f32 __attribute__((vector_size(16)));
typedef double v_f64 __attribute__((vector_size(16)));
enum { v_n_f32 = 4, v_n_f64 = 2 };
TN_INLINE v_f32 v_zero_f32(void) { return (v_f32){0}; }
TN_INLINE v_f64 v_zero_f64(void) { return (v_f64){0}; }
TN_INLINE v_f32 v_load_f32(const float *p)
{
    v_f32 v;
    memcpy(&v, p, sizeof v);
    return v;
}
TN_INLINE v_f64 v_load_f64(const double *p)
{
    v_f64 v;
    memcpy(&v, p, sizeof v);
    return v;
}
TN_INLINE void  v_store_f32(float *p, v_f32 v) { memcpy(p, &v, sizeof v); }
TN_INLINE void  v_store_f64(double *p, v_f64 v) { memcpy(p, &v, sizeof v); }
TN_INLINE v_f32 v_all_f32(const float *p) { return (v_f32){*p, *p, *p, *p}; }
TN_INLINE v_f64 v_all_f64(const double *p) { return (v_f64){*p, *p}; }
#ifdef __aarch64__
#include <arm_neon.h>
TN_INLINE v_f32 v_fma_f32(v_f32 a, v_f32 b, v_f32 c)
{
    return (v_f32)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
}
TN_INLINE v_f64 v_fma_f64(v_f64 a, v_f64 b, v_f64 c)
{
    return (v_f64)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
}
#else
TN_INLINE v_f32 v_fma_f32(v_f32 a, v_f32 b, v_f32 c) { return a * b + c; }
TN_INLINE v_f64 v_fma_f64(v_f64 a, v_f64 b, v_f64 c) { return a * b + c; }
#endif
TN_INLINE v_f32 v_low_f32(v_f32 a, v_f32 b) { return __builtin_shufflevector(a, b, 0, 4, 1, 5); }
TN_INLINE v_f32 v_high_f32(v_f32 a, v_f32 b) { return __builtin_shufflevector(a, b, 2, 6, 3, 7); }
TN_INLINE v_f64 v_low_f64(v_f64 a, v_f64 b) { return __builtin_shufflevector(a, b, 0, 2); }
TN_INLINE v_f64 v_high_f64(v_f64 a, v_f64 b) { return __builtin_shufflevector(a, b, 1, 3); }
TN_INLINE v_f32 v_pieces_f32(const float *p, int64_t s) { return (void)s, v_load_f32(p); }
TN_INLINE v_f64 v_pieces_f64(const double *p, int64_t s) { return (void)s, v_load_f64(p); }
TN_INLINE v_f32 v_load_bf16(const uint16_t *p)
{
    uint32_t u[4];
    for (int i = 0; i < 4; i++) u[i] = (uint32_t)p[i] << 16;
    v_f32 v;
    memcpy(&v, u, sizeof v);
    return v;
}
TN_INLINE v_f32 v_pieces_bf16(const uint16_t *p, int64_t s) { return (void)s, v_load_bf16(p); }

#endif

/* A square of v_n rows and the v_piece_T columns of one piece, row i at p + i·step, turned: y[j] is its column j. The
 * pieces are gathered so that only halves within them are left to interleave. */
enum { v_piece_f32 = 4, v_piece_f64 = 2 };
TN_INLINE void v_turn4(v_f32 a, v_f32 b, v_f32 c, v_f32 d, v_f32 y[4])
{
    v_f32 ac = v_low_f32(a, c), bd = v_low_f32(b, d), ac2 = v_high_f32(a, c), bd2 = v_high_f32(b, d);
    y[0] = v_low_f32(ac, bd), y[1] = v_high_f32(ac, bd), y[2] = v_low_f32(ac2, bd2), y[3] = v_high_f32(ac2, bd2);
}
TN_INLINE void v_turn_f32(const float *p, int64_t step, v_f32 y[4])
{
    v_turn4(v_pieces_f32(p, 4 * step), v_pieces_f32(p + step, 4 * step), v_pieces_f32(p + 2 * step, 4 * step),
            v_pieces_f32(p + 3 * step, 4 * step), y);
}
TN_INLINE void v_turn_bf16(const uint16_t *p, int64_t step, v_f32 y[4])
{
    v_turn4(v_pieces_bf16(p, 4 * step), v_pieces_bf16(p + step, 4 * step), v_pieces_bf16(p + 2 * step, 4 * step),
            v_pieces_bf16(p + 3 * step, 4 * step), y);
}
TN_INLINE void v_turn_f64(const double *p, int64_t step, v_f64 y[2])
{
    v_f64 a = v_pieces_f64(p, 2 * step), b = v_pieces_f64(p + step, 2 * step);
    y[0] = v_low_f64(a, b), y[1] = v_high_f64(a, b);
}

/* Loops over the registers of a micro-tile must be unrolled whole, or the tile lives in memory. */
#ifdef __clang__
#define TN_UNROLL _Pragma("unroll")
#else
#define TN_UNROLL _Pragma("GCC unroll 16")
#endif

#endif
