/* vecmath.h — functions of one element over n contiguous numbers, as the kernels of rooms call them:
 *
 *     TN__(tn__exp)(n, y, x)                    y = eˣ; y may be x
 *     TN__(tn__gelu_slope)(n, gx, x, gy)        gx = gy · gelu'(x); gx may be x or gy
 *     TN__(tn__row_max)(n, x)                   NaN if there is one, -inf if n is 0
 *     TN__(tn__exp_sum)(n, y, x, shift)         Σ exp(x - shift), as tn__sum adds; the terms to y unless that is NULL
 *
 * For f32 they are kernels (precision: core/kernels/vecmath_table.h). For f64, exp, tanh and sigmoid are kernels; the
 * others call the C library. softplus is ln(1 + eˣ). */
#ifndef TENON_CORE_KERNELS_VECMATH_H
#define TENON_CORE_KERNELS_VECMATH_H

#include "core/kernels/kernels.h"

#define FUNCTION(name) \
    static inline void tn__##name##_f32(int64_t n, float *y, const float *x) { tn__kernels()->f32->name(n, y, x); }
#define SLOPE(name)                                                                                  \
    static inline void tn__##name##_slope_f32(int64_t n, float *gx, const float *x, const float *gy) \
    {                                                                                                \
        tn__kernels()->f32->name##_slope(n, gx, x, gy);                                              \
    }                                                                                                \
    void tn__##name##_slope_f64(int64_t n, double *gx, const double *x, const double *gy);
#define FUNCTION_F64(name) \
    static inline void tn__##name##_f64(int64_t n, double *y, const double *x) { tn__kernels()->f64->name(n, y, x); }
TN__EACH_FUNCTION(FUNCTION)
TN__EACH_SLOPE(SLOPE)
TN__EACH_FUNCTION_F64(FUNCTION_F64)
#undef FUNCTION
#undef SLOPE
#undef FUNCTION_F64

void tn__log_f64(int64_t n, double *y, const double *x);
void tn__log1p_f64(int64_t n, double *y, const double *x);
void tn__softplus_f64(int64_t n, double *y, const double *x);
void tn__sin_f64(int64_t n, double *y, const double *x);
void tn__cos_f64(int64_t n, double *y, const double *x);
void tn__silu_f64(int64_t n, double *y, const double *x);
void tn__erf_f64(int64_t n, double *y, const double *x);
void tn__gelu_f64(int64_t n, double *y, const double *x);
void tn__gelu_tanh_f64(int64_t n, double *y, const double *x);
void tn__mish_f64(int64_t n, double *y, const double *x);

static inline float  tn__row_max_f32(int64_t n, const float *x) { return tn__kernels()->f32->highest(n, x); }
static inline double tn__exp_sum_f32(int64_t n, float *y, const float *x, float shift)
{
    return tn__kernels()->f32->exp_sum(n, y, x, shift);
}
double tn__row_max_f64(int64_t n, const double *x);
double tn__exp_sum_f64(int64_t n, double *y, const double *x, double shift);

#endif
