/* vecmath_table.h — the kernels for functions of one element, and softmax's functions of rows: contiguous elements.
 *
 * y[i] = f(x[i]), where y may be x: at most 1 ULP from the exact value, the slopes at most 4. Zeros, infinities, NaN
 * and denormals give the mathematical results. A result depends on its element alone: the bits are the same at any
 * position, in arrays of any length, on every instruction set and every machine. */
#ifndef TENON_CORE_KERNELS_VECMATH_TABLE_H
#define TENON_CORE_KERNELS_VECMATH_TABLE_H

#include <stdint.h>

enum { TN__COLUMN_ROWS = 8 };
typedef struct { /* columns.h */
    float row[TN__COLUMN_ROWS][32], column[32][TN__COLUMN_ROWS];
} tn__columns;
extern const tn__columns tn__gelu_tail, tn__gelu_bend, tn__gelu_tanh_tail, tn__silu_tail, tn__sigmoid_tail,
    tn__tanh_columns, tn__erf_columns;

/* softplus is ln(1 + eˣ). */
#define TN__EACH_FUNCTION(X) \
    X(exp) X(log) X(log1p) X(softplus) X(sin) X(cos) X(tanh) X(sigmoid) X(silu) X(erf) X(gelu) X(gelu_tanh) X(mish)
#define TN__EACH_SLOPE(X) X(silu) X(gelu) X(gelu_tanh)

#define TN__FUNCTION_MEMBER(name) void (*name)(int64_t n, float *y, const float *x);
#define TN__SLOPE_MEMBER(name) void (*name##_slope)(int64_t n, float *gx, const float *x, const float *gy);
typedef struct {
    TN__EACH_FUNCTION(TN__FUNCTION_MEMBER)
    TN__EACH_SLOPE(TN__SLOPE_MEMBER) /* gx[i] = gy[i] · f'(x[i]) */

    /* The maximum, NaN if there is one, -inf if n is 0. */
    float (*highest)(int64_t n, const float *x);
    /* y = exp(x - shift), unless y is NULL; returns their sum, added as by tn__sum_f32 (core/kernels/sum_lanes.h). No x
     * is above shift; 87 or more below it gives 0. */
    double (*exp_sum)(int64_t n, float *y, const float *x, float shift);
} tn__vecmath_f32;

/* Functions of f64 that have kernels, the most frequent: within 2 units. */
#define TN__EACH_FUNCTION_F64(X) X(exp) X(tanh) X(sigmoid)
#define TN__FUNCTION_F64_MEMBER(name) void (*name)(int64_t n, double *y, const double *x);
typedef struct {
    TN__EACH_FUNCTION_F64(TN__FUNCTION_F64_MEMBER)
} tn__vecmath_f64;

#endif
