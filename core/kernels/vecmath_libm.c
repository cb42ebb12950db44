/* vecmath_libm.c — functions of one element over arrays of f64, built on the C library's. See vecmath.h.
 *
 * Far from 0, sigmoid and Φ are 0 or 1, and the density is 0: there it must not be multiplied by infinity. */
#include "core/system/system.h"

#include "core/kernels/vecmath.h"

#include <math.h>

#define ROOT_HALF 0.70710678118654752440 /* 1/√2 */
#define DENSITY 0.39894228040143267794   /* 1/√(2π) */
#define ROOT 1.59576912160573071176      /* √(8/π) */
#define CUBE 0.044715

#define FUNCTION(name, value)                                    \
    void tn__##name##_f64(int64_t n, double *y, const double *x) \
    {                                                            \
        for (int64_t i = 0; i < n; i++) y[i] = value(x[i]);      \
    }
#define SLOPE(name, value)                                                                \
    void tn__##name##_slope_f64(int64_t n, double *gx, const double *x, const double *gy) \
    {                                                                                     \
        for (int64_t i = 0; i < n; i++) gx[i] = gy[i] * value(x[i]);                      \
    }

static double softplus(double x) { return (x > 0 ? x : 0) + log1p(exp(-fabs(x))); }

/* 1 / (1 + e⁻ᶻ) and its slope */
typedef struct {
    double s, slope;
} sigmoid;
static sigmoid sigmoid_of(double z)
{
    const double e = exp(-fabs(z));
    return (sigmoid){(z < 0 ? e : 1) / (1 + e), e / ((1 + e) * (1 + e))};
}

static double silu(double x)
{
    const double s = sigmoid_of(x).s;
    return s == 0 ? 0 : x * s;
}
static double silu_slope(double x)
{
    const sigmoid s = sigmoid_of(x);
    return s.s + (s.slope == 0 ? 0 : x * s.slope);
}

/* erfc keeps its digits where 1 + erf would cancel. */
static double gelu(double x) { return x < -100 ? 0 : x * 0.5 * erfc(x * -ROOT_HALF); }
static double gelu_slope(double x)
{
    const double cdf = 0.5 * erfc(x * -ROOT_HALF), pdf = exp(x * x * -0.5) * DENSITY;
    return cdf + (pdf == 0 ? 0 : x * pdf);
}

static double gelu_tanh(double x)
{
    const double s = sigmoid_of(ROOT * x * (1 + CUBE * x * x)).s;
    return s == 0 ? 0 : x * s;
}
static double gelu_tanh_slope(double x)
{
    const sigmoid s = sigmoid_of(ROOT * x * (1 + CUBE * x * x));
    return s.s + (s.slope == 0 ? 0 : x * s.slope * (ROOT * (1 + 3 * CUBE * x * x)));
}

/* As in sigmoid.h. Far below 0 it is x eˣ, where eˣ alone would have few bits left, or none. */
static double mish(double x)
{
    if (x < -700) {
        const double e = exp(x + 32);
        return e == 0 ? 0 : x * e * 1.26641655490941757e-14; /* e⁻³² */
    }
    const double e = exp(-fabs(x)), over = x < 0 ? e * (e + 2) : 1 + 2 * e;
    return x * (over / (over + (x < 0 ? 2 : 2 * e * e)));
}

FUNCTION(log, log)
FUNCTION(log1p, log1p)
FUNCTION(softplus, softplus)
FUNCTION(sin, tn__sys_sin)
FUNCTION(cos, tn__sys_cos)
FUNCTION(erf, erf)
FUNCTION(silu, silu)
FUNCTION(gelu, gelu)
FUNCTION(gelu_tanh, gelu_tanh)
FUNCTION(mish, mish)
SLOPE(silu, silu_slope)
SLOPE(gelu, gelu_slope)
SLOPE(gelu_tanh, gelu_tanh_slope)
