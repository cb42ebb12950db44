/* vnni.h — the dot products of bytes in plain C: of VNNI on top of AVX2, or after avx512.h of that on top of AVX-512.
 * `gcc -include` puts it before int8.avxvnni.k.c and int8.avx512vnni.k.c. */
#ifndef TENON_TESTS_EMULATED_VNNI_H
#define TENON_TESTS_EMULATED_VNNI_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

/* Of each element: sum + the four products of unsigned bytes of a and signed bytes of b. */
#define DOT_PRODUCTS(T)                                                                      \
    static inline T emulated_dpbusd(T sum, T a, T b)                                         \
    {                                                                                        \
        uint8_t  x[sizeof(T)];                                                               \
        int8_t   y[sizeof(T)];                                                               \
        uint32_t s[sizeof(T) / 4];                                                           \
        memcpy(x, &a, sizeof a), memcpy(y, &b, sizeof b), memcpy(s, &sum, sizeof sum);       \
        for (size_t k = 0; k < sizeof(T); k++) s[k / 4] += (uint32_t)((int32_t)x[k] * y[k]); \
        memcpy(&sum, s, sizeof sum);                                                         \
        return sum;                                                                          \
    }
#ifdef TENON_TESTS_EMULATED_AVX512_H
#define __AVX512VNNI__ 1
DOT_PRODUCTS(__m512i)
#define _mm512_dpbusd_epi32 emulated_dpbusd
#else
#define __AVXVNNI__ 1
DOT_PRODUCTS(__m256i)
#define _mm256_dpbusd_avx_epi32 emulated_dpbusd
#endif

#endif
