/* head.c — part of an exported program: the includes and the conditions of equal bits. */

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#if INT
#ifdef __AVX2__
#include <immintrin.h>
#endif
#endif
#if defined(__clang__) || !defined(__GNUC__)
#pragma STDC FP_CONTRACT OFF
#elif !defined(__STRICT_ANSI__)
#pragma GCC optimize("fp-contract=off") /* -std=c99 implies it */
#endif
#ifdef __FAST_MATH__
#error "compile without -ffast-math: it changes the results"
#endif
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the weights are for CPUs with little-endian numbers"
#endif
#if defined(__GNUC__) && __GNUC__ >= 15
#define TEXT_WITHOUT_END __attribute__((nonstring))
#else
#define TEXT_WITHOUT_END
#endif
