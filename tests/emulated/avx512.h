/* avx512.h — the instructions of AVX-512 that the kernels use, by those of AVX2 and in plain C. `gcc -include` puts it
 * before a kernel, which then takes its branches for AVX-512 and runs on a CPU without it. Each function computes what
 * Intel's manual says of the instruction; only loads and stores of all elements are not checked for alignment. */
#ifndef TENON_TESTS_EMULATED_AVX512_H
#define TENON_TESTS_EMULATED_AVX512_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define __AVX512F__ 1
#define __AVX512BW__ 1
#define __AVX512DQ__ 1
#define __AVX512VL__ 1

typedef union {
    __m512   ps;
    __m512d  pd;
    __m512i  si;
    __m256   ps2[2];
    __m256d  pd2[2];
    __m256i  si2[2];
    __m128   quarter[4];
    float    f[16];
    uint32_t u[16];
} emulated;
#define EMULATED static inline __attribute__((always_inline))
#define EACH_HALF for (int k = 0; k < 2; k++)
#define EACH_ELEMENT for (int k = 0; k < 16; k++)

/* ---- the same operation on both halves ---- */

#define HALVES(name, T, member, half)                                       \
    EMULATED T emulated_##name(T a, T b)                                    \
    {                                                                       \
        emulated  x = {.member = a}, y = {.member = b};                     \
        EACH_HALF x.member##2 [k] = half(x.member##2 [k], y.member##2 [k]); \
        return x.member;                                                    \
    }
HALVES(unpacklo_ps, __m512, ps, _mm256_unpacklo_ps)
HALVES(unpackhi_ps, __m512, ps, _mm256_unpackhi_ps)
HALVES(min_ps, __m512, ps, _mm256_min_ps)
HALVES(max_ps, __m512, ps, _mm256_max_ps)
HALVES(unpacklo_pd, __m512d, pd, _mm256_unpacklo_pd)
HALVES(unpackhi_pd, __m512d, pd, _mm256_unpackhi_pd)
HALVES(add_epi16, __m512i, si, _mm256_add_epi16)
HALVES(add_epi32, __m512i, si, _mm256_add_epi32)
HALVES(sub_epi32, __m512i, si, _mm256_sub_epi32)
HALVES(and_si512, __m512i, si, _mm256_and_si256)
HALVES(madd_epi16, __m512i, si, _mm256_madd_epi16)
HALVES(maddubs_epi16, __m512i, si, _mm256_maddubs_epi16)
HALVES(mul_epu32, __m512i, si, _mm256_mul_epu32)

#define FMADD(name, T, member, half)                                                         \
    EMULATED T emulated_##name(T a, T b, T c)                                                \
    {                                                                                        \
        emulated  x = {.member = a}, y = {.member = b}, z = {.member = c};                   \
        EACH_HALF z.member##2 [k] = half(x.member##2 [k], y.member##2 [k], z.member##2 [k]); \
        return z.member;                                                                     \
    }
FMADD(fmadd_ps, __m512, ps, _mm256_fmadd_ps)
FMADD(fmadd_pd, __m512d, pd, _mm256_fmadd_pd)

EMULATED __m512i emulated_slli_epi32(__m512i a, unsigned n)
{
    emulated     x = {.si = a};
    EACH_ELEMENT x.u[k] <<= n;
    return x.si;
}
EMULATED __m512i emulated_srli_epi32(__m512i a, unsigned n)
{
    emulated     x = {.si = a};
    EACH_ELEMENT x.u[k] >>= n;
    return x.si;
}

/* ---- memory and constants ---- */

#define MEMORY(suffix, T)                             \
    EMULATED T emulated_loadu_##suffix(const void *p) \
    {                                                 \
        T v;                                          \
        memcpy(&v, p, sizeof v);                      \
        return v;                                     \
    }                                                 \
    EMULATED void emulated_storeu_##suffix(void *p, T v) { memcpy(p, &v, sizeof v); }
MEMORY(ps, __m512)
MEMORY(pd, __m512d)
MEMORY(si512, __m512i)
#define CONSTANT(suffix, T, E)                                       \
    EMULATED T emulated_set1_##suffix(E c)                           \
    {                                                                \
        T v;                                                         \
        E all[sizeof v / sizeof c];                                  \
        for (size_t k = 0; k < sizeof v / sizeof c; k++) all[k] = c; \
        memcpy(&v, all, sizeof v);                                   \
        return v;                                                    \
    }
CONSTANT(ps, __m512, float)
CONSTANT(pd, __m512d, double)
CONSTANT(epi16, __m512i, int16_t)
CONSTANT(epi32, __m512i, int32_t)
EMULATED __m512i emulated_broadcast_i32x8(__m256i a) { return ((emulated){.si2 = {a, a}}).si; }

/* ---- masks: bit k is that of element k; elements whose bit is 0 are not read or written ---- */

EMULATED __m512 emulated_maskz_loadu_ps(__mmask16 m, const float *p)
{
    emulated x = {.f = {0}};
    EACH_ELEMENT if (m >> k & 1) x.f[k] = p[k];
    return x.ps;
}
EMULATED void emulated_mask_storeu_ps(float *p, __mmask16 m, __m512 v)
{
    const emulated x = {.ps = v};
    EACH_ELEMENT if (m >> k & 1) p[k] = x.f[k];
}
EMULATED __m512 emulated_mask_blend_ps(__mmask16 m, __m512 a, __m512 b)
{
    emulated       x = {.ps = a};
    const emulated y = {.ps = b};
    EACH_ELEMENT   x.u[k] = m >> k & 1 ? y.u[k] : x.u[k];
    return x.ps;
}
EMULATED __m512i emulated_mask_or_epi32(__m512i other, __mmask16 m, __m512i a, __m512i b)
{
    emulated       x = {.si = other};
    const emulated y = {.si = a}, z = {.si = b};
    EACH_ELEMENT   x.u[k] = m >> k & 1 ? y.u[k] | z.u[k] : x.u[k];
    return x.si;
}
EMULATED __mmask16 emulated_cmp_ps_mask(__m512 a, __m512 b, const int what)
{
    const emulated x = {.ps = a}, y = {.ps = b};
    unsigned       m = 0;
    EACH_ELEMENT
    {
        const int less = x.f[k] < y.f[k], equal = x.f[k] == y.f[k], other = x.f[k] != x.f[k] || y.f[k] != y.f[k];
        m |= (unsigned)(what == _CMP_LT_OQ ? less : what == _CMP_EQ_OQ ? equal : other) << k;
    }
    return (__mmask16)m;
}

/* ---- conversions and shuffles ---- */

EMULATED __m512 emulated_castps256_ps512(__m256 a) { return ((emulated){.ps2 = {a}}).ps; }
EMULATED __m256 emulated_castps512_ps256(__m512 a) { return ((emulated){.ps = a}).ps2[0]; }
EMULATED __m256 emulated_extractf32x8_ps(__m512 a, int half) { return ((emulated){.ps = a}).ps2[half]; }
EMULATED __m512 emulated_insertf32x8(__m512 a, __m256 b, int half)
{
    emulated x = {.ps = a};
    x.ps2[half] = b;
    return x.ps;
}
EMULATED __m512i emulated_castps_si512(__m512 a) { return ((emulated){.ps = a}).si; }
EMULATED __m512  emulated_castsi512_ps(__m512i a) { return ((emulated){.si = a}).ps; }
EMULATED __m512i emulated_cvtepu16_epi32(__m256i a)
{
    return ((emulated){.si2 = {_mm256_cvtepu16_epi32(_mm256_castsi256_si128(a)),
                               _mm256_cvtepu16_epi32(_mm256_extracti128_si256(a, 1))}})
        .si;
}
EMULATED __m256i emulated_cvtepi32_epi16(__m512i a)
{
    const emulated x = {.si = a};
    uint16_t       low[16];
    __m256i        y;
    EACH_ELEMENT   low[k] = (uint16_t)x.u[k];
    memcpy(&y, low, sizeof y);
    return y;
}
EMULATED __m512 emulated_cvtepi32_ps(__m512i a)
{
    emulated  x = {.si = a};
    EACH_HALF x.ps2[k] = _mm256_cvtepi32_ps(x.si2[k]);
    return x.ps;
}
EMULATED __m512d emulated_cvtps_pd(__m256 a)
{
    return ((emulated){
                .pd2 = {_mm256_cvtps_pd(_mm256_castps256_ps128(a)), _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1))}})
        .pd;
}
EMULATED __m256 emulated_cvtpd_ps(__m512d a)
{
    const emulated x = {.pd = a};
    return _mm256_set_m128(_mm256_cvtpd_ps(x.pd2[1]), _mm256_cvtpd_ps(x.pd2[0]));
}
EMULATED __m512 emulated_cvtph_ps(__m256i a)
{
    return ((emulated){
                .ps2 = {_mm256_cvtph_ps(_mm256_castsi256_si128(a)), _mm256_cvtph_ps(_mm256_extracti128_si256(a, 1))}})
        .ps;
}
/* Quarters of 128 bits: two of a, then two of b. */
EMULATED emulated emulated_shuffle(emulated a, emulated b, const int which)
{
    return (emulated){.quarter = {a.quarter[which & 3], a.quarter[which >> 2 & 3], b.quarter[which >> 4 & 3],
                                  b.quarter[which >> 6 & 3]}};
}
EMULATED __m512 emulated_shuffle_f32x4(__m512 a, __m512 b, const int which)
{
    return emulated_shuffle((emulated){.ps = a}, (emulated){.ps = b}, which).ps;
}
EMULATED __m512d emulated_shuffle_f64x2(__m512d a, __m512d b, const int which)
{
    return emulated_shuffle((emulated){.pd = a}, (emulated){.pd = b}, which).pd;
}
EMULATED __m512 emulated_permutex2var_ps(__m512 a, __m512i at, __m512 b)
{
    const emulated x = {.ps = a}, y = {.ps = b}, i = {.si = at};
    emulated       z;
    EACH_ELEMENT   z.f[k] = i.u[k] & 16 ? y.f[i.u[k] & 15] : x.f[i.u[k] & 15];
    return z.ps;
}
/* Bit by bit, the bit of `table` whose index has the bits of a, b and c. */
EMULATED __m512i emulated_ternarylogic_epi32(__m512i a, __m512i b, __m512i c, const int table)
{
    const emulated x = {.si = a}, y = {.si = b}, z = {.si = c};
    emulated       r = {.u = {0}};
    for (int t = 0; t < 8; t++)
        if (table >> t & 1)
            EACH_ELEMENT r.u[k] |= (t & 4 ? x.u[k] : ~x.u[k]) & (t & 2 ? y.u[k] : ~y.u[k]) & (t & 1 ? z.u[k] : ~z.u[k]);
    return r.si;
}

/* ---- the names ---- */

#define _mm512_add_epi16 emulated_add_epi16
#define _mm512_add_epi32 emulated_add_epi32
#define _mm512_and_si512 emulated_and_si512
#define _mm512_broadcast_i32x8 emulated_broadcast_i32x8
#define _mm512_castps256_ps512 emulated_castps256_ps512
#define _mm512_castps512_ps256 emulated_castps512_ps256
#define _mm512_castps_si512 emulated_castps_si512
#define _mm512_castsi512_ps emulated_castsi512_ps
#undef _mm512_cmp_ps_mask
#define _mm512_cmp_ps_mask emulated_cmp_ps_mask
#define _mm512_cvtepi32_epi16 emulated_cvtepi32_epi16
#define _mm512_cvtepi32_ps emulated_cvtepi32_ps
#define _mm512_cvtepu16_epi32 emulated_cvtepu16_epi32
#define _mm512_cvtpd_ps emulated_cvtpd_ps
#define _mm512_cvtph_ps emulated_cvtph_ps
#define _mm512_cvtps_pd emulated_cvtps_pd
#undef _mm512_extractf32x8_ps
#define _mm512_extractf32x8_ps emulated_extractf32x8_ps
#define _mm512_fmadd_pd emulated_fmadd_pd
#define _mm512_fmadd_ps emulated_fmadd_ps
#undef _mm512_insertf32x8
#define _mm512_insertf32x8 emulated_insertf32x8
#define _mm512_loadu_pd emulated_loadu_pd
#define _mm512_loadu_ps emulated_loadu_ps
#define _mm512_loadu_si512 emulated_loadu_si512
#define _mm512_madd_epi16 emulated_madd_epi16
#define _mm512_maddubs_epi16 emulated_maddubs_epi16
#define _mm512_mask_blend_ps emulated_mask_blend_ps
#define _mm512_mask_or_epi32 emulated_mask_or_epi32
#define _mm512_mask_storeu_ps emulated_mask_storeu_ps
#define _mm512_maskz_loadu_ps emulated_maskz_loadu_ps
#define _mm512_max_ps emulated_max_ps
#define _mm512_min_ps emulated_min_ps
#define _mm512_mul_epu32 emulated_mul_epu32
#define _mm512_permutex2var_ps emulated_permutex2var_ps
#define _mm512_set1_epi16 emulated_set1_epi16
#define _mm512_set1_epi32 emulated_set1_epi32
#define _mm512_set1_pd emulated_set1_pd
#define _mm512_set1_ps emulated_set1_ps
#define _mm512_setzero_pd() emulated_set1_pd(0)
#define _mm512_setzero_ps() emulated_set1_ps(0)
#define _mm512_setzero_si512() emulated_set1_epi32(0)
#undef _mm512_shuffle_f32x4
#define _mm512_shuffle_f32x4 emulated_shuffle_f32x4
#undef _mm512_shuffle_f64x2
#define _mm512_shuffle_f64x2 emulated_shuffle_f64x2
#define _mm512_slli_epi32 emulated_slli_epi32
#define _mm512_srli_epi32 emulated_srli_epi32
#define _mm512_storeu_pd emulated_storeu_pd
#define _mm512_storeu_ps emulated_storeu_ps
#define _mm512_stream_pd emulated_storeu_pd
#define _mm512_stream_ps emulated_storeu_ps
#define _mm512_sub_epi32 emulated_sub_epi32
#undef _mm512_ternarylogic_epi32
#define _mm512_ternarylogic_epi32 emulated_ternarylogic_epi32
#define _mm512_unpackhi_pd emulated_unpackhi_pd
#define _mm512_unpackhi_ps emulated_unpackhi_ps
#define _mm512_unpacklo_pd emulated_unpacklo_pd
#define _mm512_unpacklo_ps emulated_unpacklo_ps

#endif
