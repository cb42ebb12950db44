/* exact.h — functions of one element in f64, and the error of an f32 result in units of the last place. */
#ifndef TENON_TESTS_COMMON_EXACT_H
#define TENON_TESTS_COMMON_EXACT_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define TN_ROOT 1.5957691216057307117597842397375274738L /* √(8/π) */
#define TN_CUBE 0.044715L
#define TN_DENSITY 0.39894228040143267793994605993438186848L /* 1/√(2π) */

static inline double r_sin(double x) { return (double)sinl(x); } /* see windows/posix.h */
static inline double r_cos(double x) { return (double)cosl(x); }
static inline double r_softplus(double x) { return (x > 0 ? x : 0) + log1p(exp(-fabs(x))); }
static inline double r_sigmoid(double x) { return 1 / (1 + exp(-x)); }
static inline double r_silu(double x) { return x == -INFINITY ? 0 : x / (1 + exp(-x)); }
static inline double r_gelu(double x) { return x == -INFINITY ? 0 : x / 2 * erfc(-x * 0.70710678118654752440); }
static inline double r_gelu_tanh(double x)
{
    return x == -INFINITY ? 0 : x / (1 + exp(-(double)TN_ROOT * x * (1 + (double)TN_CUBE * x * x)));
}
static inline double r_mish(double x) /* x tanh(softplus(x)) = x n / (n + 2), n = e (e + 2), e = exp(x) */
{
    if (x == -INFINITY) return 0;
    const double e = exp(x < 30 ? x : 30), n = e * (e + 2);
    return x * (n / (n + 2));
}
static inline float from_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}
static inline uint32_t bits_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}
static inline bool same(float a, float b) { return bits_of(a) == bits_of(b) || (isnan(a) && isnan(b)); }

/* |got - want| in units of the last place of an f32 near want; beyond the largest f32, infinity counts as 2^128. */
static inline double units_off(float got, double want)
{
    if (isnan(got) || isnan(want)) return isnan(got) && isnan(want) ? 0 : INFINITY;
    const double g = isinf(got) ? copysign(0x1p128, got) : got;
    const double w = isinf((float)want) ? copysign(0x1p128, want) : want;
    uint64_t     u;
    memcpy(&u, &w, sizeof u);
    int e = (int)(u >> 52 & 2047) - 1023;
    e = e < -126 ? -126 : e > 127 ? 127 : e;
    u = (uint64_t)(1023 + 23 - e) << 52;
    double units_in_1;
    memcpy(&units_in_1, &u, sizeof units_in_1);
    return fabs(g - w) * units_in_1;
}

#endif
