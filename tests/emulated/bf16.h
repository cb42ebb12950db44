/* bf16.h — the instructions of AVX512-BF16, and those of AVX-512 that only kernels of bf16 use, in plain C. `gcc
 * -include` puts it, after avx512.h, before bf16.avx512bf16.k.c and bf16.amx.k.c. Products and sums of bf16 count
 * denormals as 0, and round to even. */
#ifndef TENON_TESTS_EMULATED_BF16_H
#define TENON_TESTS_EMULATED_BF16_H

#include "avx512.h"

#include <math.h>

#define __AVX512BF16__ 1

EMULATED float emulated_flushed(float x) { return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x; }
EMULATED float emulated_wide(uint16_t h)
{
    const uint32_t u = (uint32_t)h << 16;
    float          x;
    memcpy(&x, &u, sizeof x);
    return emulated_flushed(x);
}
EMULATED uint16_t emulated_narrow(float x)
{
    uint32_t u;
    x = emulated_flushed(x);
    memcpy(&u, &x, sizeof u);
    return (uint16_t)(x != x ? u >> 16 | 0x40 : (u + 0x7fff + (u >> 16 & 1)) >> 16);
}
/* a · b + sum of the product of two bf16, which is exact in f32 except for denormals. */
EMULATED float emulated_add_product(float sum, uint16_t a, uint16_t b)
{
    return emulated_flushed(fmaf(emulated_wide(a), emulated_wide(b), emulated_flushed(sum)));
}

typedef union {
    __m512i  v;
    __m256i  half[2];
    uint16_t h[32];
    uint32_t u[16];
} emulated_halves;
typedef union {
    __m256i  v;
    uint16_t h[16];
} emulated_half;
#define EACH_OF(n) for (int k = 0; k < (n); k++)

EMULATED __m512 emulated_dpbf16_ps(__m512 sum, __m512bh a, __m512bh b)
{
    const emulated_halves x = {.v = (__m512i)a}, y = {.v = (__m512i)b};
    emulated              s = {.ps = sum};
    EACH_OF(32) s.f[k / 2] = emulated_add_product(s.f[k / 2], x.h[k ^ 1], y.h[k ^ 1]);
    return s.ps;
}
EMULATED __m256bh emulated_cvtneps_pbh(__m512 v)
{
    const emulated x = {.ps = v};
    emulated_half  y;
    EACH_OF(16) y.h[k] = emulated_narrow(x.f[k]);
    return (__m256bh)y.v;
}
EMULATED __m512bh emulated_cvtne2ps_pbh(__m512 upper, __m512 lower)
{
    const emulated  x[2] = {{.ps = lower}, {.ps = upper}};
    emulated_halves y;
    EACH_OF(32) y.h[k] = emulated_narrow(x[k / 16].f[k % 16]);
    return (__m512bh)y.v;
}

/* ---- masks ---- */

EMULATED __m512i emulated_maskz_loadu_epi16(__mmask32 m, const void *p)
{
    emulated_halves x = {.h = {0}};
    EACH_OF(32) if (m >> k & 1) memcpy(x.h + k, (const uint16_t *)p + k, 2);
    return x.v;
}
EMULATED __m256i emulated_maskz_loadu_epi16_half(__mmask16 m, const void *p)
{
    emulated_half x = {.h = {0}};
    EACH_OF(16) if (m >> k & 1) memcpy(x.h + k, (const uint16_t *)p + k, 2);
    return x.v;
}
EMULATED __m512i emulated_maskz_loadu_epi32(__mmask16 m, const void *p)
{
    emulated_halves x = {.h = {0}};
    EACH_OF(16) if (m >> k & 1) memcpy(x.u + k, (const char *)p + 4 * k, 4);
    return x.v;
}
EMULATED void emulated_mask_storeu_epi16(void *p, __mmask32 m, __m512i v)
{
    const emulated_halves x = {.v = v};
    EACH_OF(32) if (m >> k & 1) memcpy((char *)p + 2 * k, x.h + k, 2);
}
EMULATED void emulated_mask_storeu_epi32(void *p, __mmask16 m, __m512i v)
{
    const emulated_halves x = {.v = v};
    EACH_OF(16) if (m >> k & 1) memcpy((char *)p + 4 * k, x.u + k, 4);
}

/* ---- shuffles ---- */

EMULATED __m512i emulated_permutex2var_epi16(__m512i a, __m512i at, __m512i b)
{
    const emulated_halves x[2] = {{.v = a}, {.v = b}}, i = {.v = at};
    emulated_halves       z;
    EACH_OF(32) z.h[k] = x[i.h[k] >> 5 & 1].h[i.h[k] & 31];
    return z.v;
}
EMULATED __m512i emulated_permutexvar_epi16(__m512i at, __m512i a) { return emulated_permutex2var_epi16(a, at, a); }
EMULATED __m512i emulated_or_si512(__m512i a, __m512i b)
{
    emulated_halves       x = {.v = a};
    const emulated_halves y = {.v = b};
    EACH_OF(16) x.u[k] |= y.u[k];
    return x.v;
}
EMULATED __m256i emulated_extracti64x4_epi64(__m512i a, int half) { return ((emulated_halves){.v = a}).half[half]; }
EMULATED __m512i emulated_castsi256_si512(__m256i a) { return ((emulated_halves){.half = {a}}).v; }

/* ---- the names ---- */

#define _mm512_castsi256_si512 emulated_castsi256_si512
#define _mm512_castsi512_si256(a) emulated_extracti64x4_epi64(a, 0)
#define _mm512_cvtne2ps_pbh emulated_cvtne2ps_pbh
#define _mm512_cvtneps_pbh emulated_cvtneps_pbh
#define _mm512_dpbf16_ps emulated_dpbf16_ps
#undef _mm512_extracti64x4_epi64
#define _mm512_extracti64x4_epi64 emulated_extracti64x4_epi64
#define _mm512_load_ps emulated_loadu_ps
#define _mm512_mask_storeu_epi16 emulated_mask_storeu_epi16
#define _mm512_mask_storeu_epi32 emulated_mask_storeu_epi32
#define _mm512_maskz_loadu_epi16 emulated_maskz_loadu_epi16
#define _mm256_maskz_loadu_epi16 emulated_maskz_loadu_epi16_half
#define _mm512_maskz_loadu_epi32 emulated_maskz_loadu_epi32
#define _mm512_or_si512 emulated_or_si512
#define _mm512_permutex2var_epi16 emulated_permutex2var_epi16
#define _mm512_permutexvar_epi16 emulated_permutexvar_epi16
#undef _mm512_setr_epi32
#define _mm512_setr_epi32(...) emulated_loadu_si512((const int[]){__VA_ARGS__})
#define _mm512_store_si512 emulated_storeu_si512
#define _mm512_storeu_si512 emulated_storeu_si512

#endif
