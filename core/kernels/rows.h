/* rows.h — kernels for whole rows of contiguous numbers, and for random numbers: what softmax, the norms and dropout
 * are made of. Sums are kept in f64, element i in lane i mod 16 as in core/kernels/sum_lanes.h, and nothing is multiplied and added
 * in one step: the bits are the same on every instruction set. What may be NULL says so. */
#ifndef TENON_CORE_KERNELS_ROWS_H
#define TENON_CORE_KERNELS_ROWS_H

#include <stdbool.h>
#include <stdint.h>

/* Dropout's mask: words of Philox from block `position` on. */
typedef struct {
    uint64_t seed, position;
    bool     all; /* p = 0: all are kept */
    uint32_t limit;
    double   scale;
} tn__dropped;

/* stat, of a row: its mean as two numbers, itself and what its rounding lost; and r = 1 / √(variance + eps). With
 * rms the mean is 0. x̂ = (x - mean) r.
 *   scale             y = by · x
 *   softmax_back      gx = y · (gy - Σ gy·y)
 *   minus             y = (x - max) - log, the second in f64
 *   log_softmax_back  gx = gy - gx · Σ gy
 *   norm              y = x̂ · weight + bias, and stat; weight and bias may be NULL
 *   norm_back         with g = gy · weight: gx = r (g - mean(g) - x̂ · mean(g x̂)), gw += gy · x̂, gb += gy; any of
 *                     gx, gw, gb and weight may be NULL
 *   past              y (or gx) is stored past the caches, as what is too large for them (tn__past_caches) should be;
 *                     such stores come in no order, and who asks for them waits for them (core/skeletons/rows.c)
 *   add_lines         sum[(at + i) mod 16][k] += x[i · step + k] for n lines of count numbers (bf16 perhaps, instead of
 *                     f32); sum has rows of width
 *   drop              y = x · scale where the word of an element is above limit (or all), else 0; plus add, which may
 *                     be NULL. Words are counted from d->position on; x[0] has the first-th. y is neither x nor add.
 *                     y_past, x_past: may be NULL; y and x are stored there, too, past the caches */
#define TN_ROWS_KERNELS(T, name)                                                                                     \
    typedef struct {                                                                                                 \
        void (*scale)(int64_t n, T *y, const T *x, T by);                                                            \
        void (*softmax_back)(int64_t n, T *gx, const T *y, const T *gy);                                             \
        void (*minus)(int64_t n, T *y, const T *x, T max, double log);                                               \
        void (*log_softmax_back)(int64_t n, T *gx, const T *gy);                                                     \
        void (*norm)(int64_t n, T *y, T *stat, const T *x, const T *weight, const T *bias, double eps, bool rms,     \
                     bool past);                                                                                     \
        void (*norm_back)(int64_t n, T *gx, T *gw, T *gb, const T *gy, const T *x, const T *weight, const T *stat,   \
                          bool rms, bool past);                                                                      \
        void (*drop)(int64_t n, T *y, const T *x, const T *add, const tn__dropped *d, int64_t first, T *y_past,      \
                     T *x_past);                                                                                     \
        void (*add_lines)(int64_t n, int64_t at, int64_t count, const void *x, int64_t step, bool bf16, double *sum, \
                          int64_t width);                                                                            \
    } name;
TN_ROWS_KERNELS(float, tn__row_kernels_f32)
TN_ROWS_KERNELS(double, tn__row_kernels_f64)

/* The words of blocks [position, position + blocks) of Philox 4x32-10 under a seed (core/tensor/generator.c). */
typedef void tn__philox_kernel(uint64_t seed, uint64_t position, int64_t blocks, uint32_t *out);

#endif
