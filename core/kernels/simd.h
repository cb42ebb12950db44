/* simd.h — the vectors that kernels are written in: one set of names, implemented by AVX-512, by AVX2 with FMA and
 * F16C, or by vectors of 16 bytes that gcc and clang compile to SSE2, NEON or the machine's own. Only *.k.c files
 * include it; each is compiled once for each instruction set.
 *
 * A vector of floats is v_f32, of doubles v_f64:
 *   v_n_T            elements in a vector         v_zero_T()         all 0
 *   v_load_T         n elements from memory       v_broadcast_T(p)   *p in each element
 *   v_store_T        n elements to memory         v_fma_T(a, b, c)   a·b + c
 *   v_one_T          the type of v_load_one_T(p), for v_fma_one_T(a, b, c): as v_broadcast_T(p) and v_fma_T
 *   v_stream_T       stores n elements by a non-temporal store, if p is aligned to whole vectors; see rows.h
 *   v_transpose_T(x) transposes the square x[0] … x[n-1]
 *   v_unpacklo_T, v_unpackhi_T(a, b)   interleave the lower (upper) halves of a and b within each 128-bit lane
 *   v_transpose_lanes_T(x)             transposes the 128-bit lanes of x[0], x[e], x[2e] …, e elements to a lane
 *   v_load_bf16      n elements of bf16, widened to f32
 *   v_load_quads(p, x)   4n unsigned bytes u at p: x[i], i < 4, holds 2^15 + u as f32 of the bytes i, 4 + i, 8 + i, …
 *   v_load_f16       n elements of f16, little-endian at any address, widened to f32
 *   v_store_bf16     n elements of f32, each rounded as by tn__f32_to_bf16: where TN__STORES_BF16 is defined
 * v_fma rounds once where the instruction set multiplies and adds in one step (AVX-512, AVX2, NEON), twice elsewhere:
 * which of them is a property of the instruction set, never of the code around it. TN__EXACT: v_fma_f32 rounds once
 * with SSE2, too. */
#ifndef TENON_CORE_KERNELS_SIMD_H
#define TENON_CORE_KERNELS_SIMD_H

#include "core/base/f16.h"

#include <stdint.h>
#include <string.h>

#define TN__INLINE static inline __attribute__((always_inline))

/* Prefetches the cache line n elements after p, whether or not p is valid there. */
#define v_prefetch(p, n) __builtin_prefetch((const void *)((uintptr_t)(p) + (uintptr_t)(n) * sizeof *(p)))

#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)

typedef __m512  v_f32;
typedef __m512d v_f64;
enum { v_n_f32 = 16, v_n_f64 = 8 };
TN__INLINE v_f32 v_zero_f32(void) { return _mm512_setzero_ps(); }
TN__INLINE v_f64 v_zero_f64(void) { return _mm512_setzero_pd(); }
TN__INLINE v_f32 v_load_f32(const float *p) { return _mm512_loadu_ps(p); }
TN__INLINE v_f64 v_load_f64(const double *p) { return _mm512_loadu_pd(p); }
TN__INLINE void  v_store_f32(float *p, v_f32 v) { _mm512_storeu_ps(p, v); }
TN__INLINE void  v_store_f64(double *p, v_f64 v) { _mm512_storeu_pd(p, v); }
TN__INLINE void  v_stream_f32(float *p, v_f32 v) { _mm512_stream_ps(p, v); }
TN__INLINE void  v_stream_f64(double *p, v_f64 v) { _mm512_stream_pd(p, v); }
TN__INLINE v_f32 v_broadcast_f32(const float *p) { return _mm512_set1_ps(*p); }
TN__INLINE v_f64 v_broadcast_f64(const double *p) { return _mm512_set1_pd(*p); }
TN__INLINE v_f32 v_fma_f32(v_f32 a, v_f32 b, v_f32 c) { return _mm512_fmadd_ps(a, b, c); }
TN__INLINE v_f64 v_fma_f64(v_f64 a, v_f64 b, v_f64 c) { return _mm512_fmadd_pd(a, b, c); }
TN__INLINE v_f32 v_unpacklo_f32(v_f32 a, v_f32 b) { return _mm512_unpacklo_ps(a, b); }
TN__INLINE v_f32 v_unpackhi_f32(v_f32 a, v_f32 b) { return _mm512_unpackhi_ps(a, b); }
TN__INLINE v_f64 v_unpacklo_f64(v_f64 a, v_f64 b) { return _mm512_unpacklo_pd(a, b); }
TN__INLINE v_f64 v_unpackhi_f64(v_f64 a, v_f64 b) { return _mm512_unpackhi_pd(a, b); }
TN__INLINE void  v_transpose_lanes_f32(v_f32 *x)
{
    v_f32 a = _mm512_shuffle_f32x4(x[0], x[4], 0x88), b = _mm512_shuffle_f32x4(x[8], x[12], 0x88);
    v_f32 c = _mm512_shuffle_f32x4(x[0], x[4], 0xdd), d = _mm512_shuffle_f32x4(x[8], x[12], 0xdd);
    x[0] = _mm512_shuffle_f32x4(a, b, 0x88), x[8] = _mm512_shuffle_f32x4(a, b, 0xdd);
    x[4] = _mm512_shuffle_f32x4(c, d, 0x88), x[12] = _mm512_shuffle_f32x4(c, d, 0xdd);
}
TN__INLINE void v_transpose_lanes_f64(v_f64 *x)
{
    v_f64 a = _mm512_shuffle_f64x2(x[0], x[2], 0x88), b = _mm512_shuffle_f64x2(x[4], x[6], 0x88);
    v_f64 c = _mm512_shuffle_f64x2(x[0], x[2], 0xdd), d = _mm512_shuffle_f64x2(x[4], x[6], 0xdd);
    x[0] = _mm512_shuffle_f64x2(a, b, 0x88), x[4] = _mm512_shuffle_f64x2(a, b, 0xdd);
    x[2] = _mm512_shuffle_f64x2(c, d, 0x88), x[6] = _mm512_shuffle_f64x2(c, d, 0xdd);
}
TN__INLINE v_f32 v_load_bf16(const uint16_t *p)
{
    __m256i h = _mm256_loadu_si256((const __m256i *)(const void *)p);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}
/* Puts a byte in the middle of a mantissa, below the exponent of 2^15: one operation, where converting takes two. */
TN__INLINE v_f32 v_put_byte(__m512i x) /* (x & 0xff00) | exponent */
{
    const __m512i exponent = _mm512_set1_epi32(0x47000000), byte = _mm512_set1_epi32(0xff00);
    return _mm512_castsi512_ps(_mm512_ternarylogic_epi32(x, byte, exponent, 0xea));
}
TN__INLINE void v_load_quads(const uint8_t *p, v_f32 x[4])
{
    const __m512i u = _mm512_loadu_si512(p);
    x[0] = v_put_byte(_mm512_slli_epi32(u, 8)), x[1] = v_put_byte(u);
    x[2] = v_put_byte(_mm512_srli_epi32(u, 8)), x[3] = v_put_byte(_mm512_srli_epi32(u, 16));
}
TN__INLINE v_f32 v_load_f16(const uint8_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
#define TN__STORES_BF16
TN__INLINE void v_store_bf16(uint16_t *p, v_f32 v)
{
    const __m512i u = _mm512_castps_si512(v), top = _mm512_srli_epi32(u, 16), one = _mm512_set1_epi32(1);
    const __m512i odd = _mm512_and_si512(top, one), half = _mm512_set1_epi32(0x7fff);
    __m512i       r = _mm512_srli_epi32(_mm512_add_epi32(_mm512_add_epi32(u, half), odd), 16);
    r = _mm512_mask_or_epi32(r, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), top, _mm512_set1_epi32(0x40));
    _mm256_storeu_si256((__m256i *)(void *)p, _mm512_cvtepi32_epi16(r));
}

#elif defined(__AVX2__) && defined(__FMA__)

typedef __m256  v_f32;
typedef __m256d v_f64;
enum { v_n_f32 = 8, v_n_f64 = 4 };
TN__INLINE v_f32 v_zero_f32(void) { return _mm256_setzero_ps(); }
TN__INLINE v_f64 v_zero_f64(void) { return _mm256_setzero_pd(); }
TN__INLINE v_f32 v_load_f32(const float *p) { return _mm256_loadu_ps(p); }
TN__INLINE v_f64 v_load_f64(const double *p) { return _mm256_loadu_pd(p); }
TN__INLINE void  v_store_f32(float *p, v_f32 v) { _mm256_storeu_ps(p, v); }
TN__INLINE void  v_store_f64(double *p, v_f64 v) { _mm256_storeu_pd(p, v); }
TN__INLINE void  v_stream_f32(float *p, v_f32 v) { _mm256_stream_ps(p, v); }
TN__INLINE void  v_stream_f64(double *p, v_f64 v) { _mm256_stream_pd(p, v); }
TN__INLINE v_f32 v_broadcast_f32(const float *p) { return _mm256_broadcast_ss(p); }
TN__INLINE v_f64 v_broadcast_f64(const double *p) { return _mm256_broadcast_sd(p); }
TN__INLINE v_f32 v_fma_f32(v_f32 a, v_f32 b, v_f32 c) { return _mm256_fmadd_ps(a, b, c); }
TN__INLINE v_f64 v_fma_f64(v_f64 a, v_f64 b, v_f64 c) { return _mm256_fmadd_pd(a, b, c); }
TN__INLINE v_f32 v_unpacklo_f32(v_f32 a, v_f32 b) { return _mm256_unpacklo_ps(a, b); }
TN__INLINE v_f32 v_unpackhi_f32(v_f32 a, v_f32 b) { return _mm256_unpackhi_ps(a, b); }
TN__INLINE v_f64 v_unpacklo_f64(v_f64 a, v_f64 b) { return _mm256_unpacklo_pd(a, b); }
TN__INLINE v_f64 v_unpackhi_f64(v_f64 a, v_f64 b) { return _mm256_unpackhi_pd(a, b); }
TN__INLINE void  v_transpose_lanes_f32(v_f32 *x)
{
    v_f32 a = x[0], b = x[4];
    x[0] = _mm256_permute2f128_ps(a, b, 0x20), x[4] = _mm256_permute2f128_ps(a, b, 0x31);
}
TN__INLINE void v_transpose_lanes_f64(v_f64 *x)
{
    v_f64 a = x[0], b = x[2];
    x[0] = _mm256_permute2f128_pd(a, b, 0x20), x[2] = _mm256_permute2f128_pd(a, b, 0x31);
}
TN__INLINE v_f32 v_load_bf16(const uint16_t *p)
{
    __m128i h = _mm_loadu_si128((const __m128i *)(const void *)p);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}
/* Puts a byte in the middle of a mantissa, below the exponent of 2^15. */
TN__INLINE v_f32 v_put_byte(__m256i x)
{
    const __m256i exponent = _mm256_set1_epi32(0x47000000), byte = _mm256_set1_epi32(0xff00);
    return _mm256_castsi256_ps(_mm256_or_si256(_mm256_and_si256(x, byte), exponent));
}
TN__INLINE void v_load_quads(const uint8_t *p, v_f32 x[4])
{
    const __m256i u = _mm256_loadu_si256((const __m256i *)(const void *)p);
    x[0] = v_put_byte(_mm256_slli_epi32(u, 8)), x[1] = v_put_byte(u);
    x[2] = v_put_byte(_mm256_srli_epi32(u, 8)), x[3] = v_put_byte(_mm256_srli_epi32(u, 16));
}
TN__INLINE v_f32 v_load_f16(const uint8_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}

#else

typedef float  v_f32 __attribute__((vector_size(16)));
typedef double v_f64 __attribute__((vector_size(16)));
enum { v_n_f32 = 4, v_n_f64 = 2 };
TN__INLINE v_f32 v_zero_f32(void) { return (v_f32){0}; }
TN__INLINE v_f64 v_zero_f64(void) { return (v_f64){0}; }
TN__INLINE v_f32 v_load_f32(const float *p)
{
    v_f32 v;
    memcpy(&v, p, sizeof v);
    return v;
}
TN__INLINE v_f64 v_load_f64(const double *p)
{
    v_f64 v;
    memcpy(&v, p, sizeof v);
    return v;
}
TN__INLINE void  v_store_f32(float *p, v_f32 v) { memcpy(p, &v, sizeof v); }
TN__INLINE void  v_store_f64(double *p, v_f64 v) { memcpy(p, &v, sizeof v); }
#ifdef __SSE2__
#include <emmintrin.h>
TN__INLINE void  v_stream_f32(float *p, v_f32 v) { _mm_stream_ps(p, (__m128)v); }
TN__INLINE void  v_stream_f64(double *p, v_f64 v) { _mm_stream_pd(p, (__m128d)v); }
#else
TN__INLINE void  v_stream_f32(float *p, v_f32 v) { v_store_f32(p, v); }
TN__INLINE void  v_stream_f64(double *p, v_f64 v) { v_store_f64(p, v); }
#endif
TN__INLINE v_f32 v_broadcast_f32(const float *p) { return (v_f32){*p, *p, *p, *p}; }
TN__INLINE v_f64 v_broadcast_f64(const double *p) { return (v_f64){*p, *p}; }
#ifdef __aarch64__
#include <arm_neon.h>
TN__INLINE v_f32 v_fma_f32(v_f32 a, v_f32 b, v_f32 c)
{
    return (v_f32)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
}
TN__INLINE v_f64 v_fma_f64(v_f64 a, v_f64 b, v_f64 c)
{
    return (v_f64)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
}
/* A multiply-add by one element of a register. Compilers would write it to all elements first, by ld1r or dup, which
 * takes an arithmetic unit for the time of a multiply-add. */
#define TN__MULTIPLIES_BY_ONE
/* Clang would derive the address of each row of a tile from that of the row before: a chain of additions, longer than
 * the products. It cannot derive what it does not know. */
#define v_hide(x) __asm__("" : "+r"(x))
typedef float        v_one_f32;
typedef double       v_one_f64;
TN__INLINE v_one_f32 v_load_one_f32(const float *p) { return *p; }
TN__INLINE v_one_f64 v_load_one_f64(const double *p) { return *p; }
TN__INLINE v_f32     v_fma_one_f32(v_one_f32 a, v_f32 b, v_f32 c)
{
    __asm__("fmla %0.4s, %1.4s, %2.s[0]" : "+w"(c) : "w"(b), "w"(a));
    return c;
}
TN__INLINE v_f64 v_fma_one_f64(v_one_f64 a, v_f64 b, v_f64 c)
{
    __asm__("fmla %0.2d, %1.2d, %2.d[0]" : "+w"(c) : "w"(b), "w"(a));
    return c;
}
#elif defined(__wasm_relaxed_simd__) /* one step where the CPU of the engine has it */
TN__INLINE v_f32 v_fma_f32(v_f32 a, v_f32 b, v_f32 c) { return __builtin_wasm_relaxed_madd_f32x4(a, b, c); }
TN__INLINE v_f64 v_fma_f64(v_f64 a, v_f64 b, v_f64 c) { return __builtin_wasm_relaxed_madd_f64x2(a, b, c); }
#else
#if defined(TN__EXACT) && defined(__SSE2__)
/* a · b + c of two elements, to be rounded to f32. In f64 the product is exact. The sum s is rounded to odd: if it is
 * not exact, its last bit is 1, so that it is never in the middle of two numbers of f32 unless the exact sum is;
 * rounding s then equals rounding the exact sum (Boldo and Melquiond, 2008). The lost part is computed by Knuth's
 * two-sum. An even s with a lost part is replaced by its neighbour on that side. */
TN__INLINE v_f64 v_odd_sum(v_f64 a, v_f64 b, v_f64 c)
{
    typedef uint64_t bits __attribute__((vector_size(16)));
    const v_f64      p = a * b, s = p + c, of_c = s - p, lost = (p - (s - of_c)) + (c - of_c);
    const bits       u = (bits)s, away = 1 - (((u ^ (bits)lost) >> 63) << 1); /* 1 or -1: to a larger or smaller |s| */
    return (v_f64)(u + (away & (bits)((lost < 0) | (lost > 0)) & ((u & 1) - 1)));
}
static __attribute__((noinline)) v_f32 v_fma_f32(v_f32 a, v_f32 b, v_f32 c)
{
    const __m128 x = (__m128)a, y = (__m128)b, z = (__m128)c;
    const v_f64  l = v_odd_sum((v_f64)_mm_cvtps_pd(x), (v_f64)_mm_cvtps_pd(y), (v_f64)_mm_cvtps_pd(z));
    const v_f64  u = v_odd_sum((v_f64)_mm_cvtps_pd(_mm_movehl_ps(x, x)), (v_f64)_mm_cvtps_pd(_mm_movehl_ps(y, y)),
                               (v_f64)_mm_cvtps_pd(_mm_movehl_ps(z, z)));
    return (v_f32)_mm_movelh_ps(_mm_cvtpd_ps((__m128d)l), _mm_cvtpd_ps((__m128d)u));
}
#else
TN__INLINE v_f32 v_fma_f32(v_f32 a, v_f32 b, v_f32 c) { return a * b + c; }
#endif
TN__INLINE v_f64 v_fma_f64(v_f64 a, v_f64 b, v_f64 c) { return a * b + c; }
#endif
TN__INLINE v_f32 v_unpacklo_f32(v_f32 a, v_f32 b) { return __builtin_shufflevector(a, b, 0, 4, 1, 5); }
TN__INLINE v_f32 v_unpackhi_f32(v_f32 a, v_f32 b) { return __builtin_shufflevector(a, b, 2, 6, 3, 7); }
TN__INLINE v_f64 v_unpacklo_f64(v_f64 a, v_f64 b) { return __builtin_shufflevector(a, b, 0, 2); }
TN__INLINE v_f64 v_unpackhi_f64(v_f64 a, v_f64 b) { return __builtin_shufflevector(a, b, 1, 3); }
TN__INLINE void  v_transpose_lanes_f32(v_f32 *x) { (void)x; }
TN__INLINE void  v_transpose_lanes_f64(v_f64 *x) { (void)x; }
TN__INLINE v_f32 v_load_bf16(const uint16_t *p)
{
    uint32_t u[4];
    for (int i = 0; i < 4; i++) u[i] = (uint32_t)p[i] << 16;
    v_f32 v;
    memcpy(&v, u, sizeof v);
    return v;
}
/* Puts bytes in the middle of mantissas, below the exponent of 2^15. */
typedef uint32_t v_u32 __attribute__((vector_size(16)));
TN__INLINE void  v_load_quads(const uint8_t *p, v_f32 x[4])
{
    v_u32 u;
    for (int i = 0; i < 4; i++, p += 4) u[i] = p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    const v_u32 put[4] = {(u << 8 & 0xff00) | 0x47000000, (u & 0xff00) | 0x47000000, (u >> 8 & 0xff00) | 0x47000000,
                          (u >> 16 & 0xff00) | 0x47000000};
    for (int i = 0; i < 4; i++) x[i] = (v_f32)put[i];
}
TN__INLINE v_f32 v_load_f16(const uint8_t *p)
{
    uint32_t u[4];
    for (int i = 0; i < 4; i++) u[i] = tn__f16_widen((uint16_t)(p[2 * i] | p[2 * i + 1] << 8));
    v_f32 v;
    memcpy(&v, u, sizeof v);
    return v;
}

#endif

#ifndef TN__MULTIPLIES_BY_ONE
#define v_hide(x) ((void)(x))
typedef v_f32        v_one_f32;
typedef v_f64        v_one_f64;
TN__INLINE v_one_f32 v_load_one_f32(const float *p) { return v_broadcast_f32(p); }
TN__INLINE v_one_f64 v_load_one_f64(const double *p) { return v_broadcast_f64(p); }
TN__INLINE v_f32     v_fma_one_f32(v_one_f32 a, v_f32 b, v_f32 c) { return v_fma_f32(a, b, c); }
TN__INLINE v_f64     v_fma_one_f64(v_one_f64 a, v_f64 b, v_f64 c) { return v_fma_f64(a, b, c); }
#endif

/* Loops over the registers of a micro-tile must be completely unrolled, or the tile is kept in memory. Clang refuses
 * loops over vectors that a RISC-V lacks, with a warning. */
#ifndef __clang__
#define TN__UNROLL _Pragma("GCC unroll 16")
#elif defined(__riscv) && !defined(__riscv_vector)
#define TN__UNROLL
#else
#define TN__UNROLL _Pragma("clang loop unroll(full)")
#endif

/* Transposes first within squares of 128-bit lanes, then the lanes. */
/* Transposes four squares, or fewer: one in each 128 bits of x[0] … x[3]. */
TN__INLINE void v_transpose_quads_f32(v_f32 x[4])
{
    const v_f32 a = v_unpacklo_f32(x[0], x[2]), b = v_unpacklo_f32(x[1], x[3]);
    const v_f32 c = v_unpackhi_f32(x[0], x[2]), d = v_unpackhi_f32(x[1], x[3]);
    x[0] = v_unpacklo_f32(a, b), x[1] = v_unpackhi_f32(a, b);
    x[2] = v_unpacklo_f32(c, d), x[3] = v_unpackhi_f32(c, d);
}
TN__INLINE void v_transpose_f32(v_f32 x[v_n_f32])
{
    TN__UNROLL for (int i = 0; i < v_n_f32; i += 4) v_transpose_quads_f32(x + i);
    TN__UNROLL for (int i = 0; i < 4; i++) v_transpose_lanes_f32(x + i);
}
TN__INLINE void v_transpose_f64(v_f64 x[v_n_f64])
{
    TN__UNROLL for (int i = 0; i < v_n_f64; i += 2)
    {
        v_f64 a = x[i], b = x[i + 1];
        x[i] = v_unpacklo_f64(a, b), x[i + 1] = v_unpackhi_f64(a, b);
    }
    TN__UNROLL for (int i = 0; i < 2; i++) v_transpose_lanes_f64(x + i);
}

#endif
