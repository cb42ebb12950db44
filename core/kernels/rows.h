/* rows.h — kernels for whole rows of contiguous elements, and for random numbers: the building blocks of softmax, norms
 * and dropout. Sums are kept in f64, element i in lane i mod 16 as in sum_lanes.h, and there are no fused
 * multiply-adds: the bits are the same on every instruction set. Arguments that may be NULL are documented so. */
#ifndef TN__REAL
#ifndef TENON_CORE_KERNELS_ROWS_H
#define TENON_CORE_KERNELS_ROWS_H

#include <stdbool.h>
#include <stdint.h>

/* Dropout's mask: 16 random bits for each element, from the words of Philox starting at block `position`. 16 elements
 * share two blocks: elements 0 to 7 have the lower halves of the eight words, elements 8 to 15 the upper halves. An
 * element is kept if its bits, followed by 16 others, are above the limit, whose lower 16 bits are all 1. */
typedef struct {
    uint64_t seed, position;
    bool     all; /* p = 0: all are kept */
    uint32_t limit;
    double   scale;
} tn__dropped;

enum { TN__DROP_GROUP = 16 }; /* elements of two blocks */

/* Sequence b of a batch has the mask from element b · TN__DROP_APART, so that the mask of a sequence depends on its own
 * elements only. A longer one continues in the next one's part. */
#define TN__DROP_APART ((int64_t)1 << 40)
static inline tn__dropped tn__drop_sequence(tn__dropped d, int64_t b)
{
    d.position += (uint64_t)b * (uint64_t)(2 * TN__DROP_APART / TN__DROP_GROUP);
    return d;
}

/* The words of blocks [position, position + blocks) of Philox 4x32-10 under a seed (core/tensor/generator.c). */
typedef void tn__philox_kernel(uint64_t seed, uint64_t position, int64_t blocks, uint32_t *out);

#define TN__TEMPLATE "core/kernels/rows.h"
#include "core/real.h"

#endif

#else /* ===================================================================================== one dtype */

/* A row's norm: y = x̂ · weight + bias, x̂ = (x - mean) r. stat is an output: the mean as two numbers, its value and
 * its rounding error; and r = 1 / √(variance + eps). With rms the mean is 0. weight and bias may be NULL.
 *
 * stream: y (or gx) is written by non-temporal stores, as data larger than the caches (tn__beyond_caches) should be.
 * They are weakly ordered: the caller issues a fence (core/skeletons/rows.c). */
typedef struct {
    TN__REAL       *y, *stat;
    const TN__REAL *x, *weight, *bias;
    double          eps;
    bool            rms, stream;
} TN__(tn__norm_row);

/* The derivative of norm, with g = gy · weight: gx = r (g - mean(g) - x̂ · mean(g x̂)), gw += gy · x̂, gb += gy. Any of
 * gx, gw, gb and weight may be NULL. */
typedef struct {
    TN__REAL       *gx, *gw, *gb;
    const TN__REAL *gy, *x, *weight, *stat;
    bool            rms, stream;
} TN__(tn__norm_back_row);

typedef struct {
    /* y = by · x */
    void (*scale)(int64_t n, TN__REAL *y, const TN__REAL *x, TN__REAL by);
    /* gx = y · (gy - Σ gy·y) */
    void (*softmax_back)(int64_t n, TN__REAL *gx, const TN__REAL *y, const TN__REAL *gy);
    /* y = (x - max) - log, the second difference in f64 */
    void (*log_softmax)(int64_t n, TN__REAL *y, const TN__REAL *x, TN__REAL max, double log);
    /* gx = gy - gx · Σ gy */
    void (*log_softmax_back)(int64_t n, TN__REAL *gx, const TN__REAL *gy);
    void (*norm)(int64_t n, const TN__(tn__norm_row) * a);
    void (*norm_back)(int64_t n, const TN__(tn__norm_back_row) * a);
    /* y = x · scale where an element is kept, otherwise 0; plus add, which may be NULL. x[0] is element number first of
     * the mask. y is neither x nor add. y_stream, x_stream: y and x are also stored there, by non-temporal stores; may
     * be NULL. */
    void (*dropout)(int64_t n, TN__REAL *y, const TN__REAL *x, const TN__REAL *add, const tn__dropped *d, int64_t first,
                    TN__REAL *y_stream, TN__REAL *x_stream);
    /* sum[(at + i) mod 16][k] += x[i · step + k] for n lines of count numbers (f32 or f64, or with bf16 set, bf16); sum
     * has rows of width */
    void (*add_lines)(int64_t n, int64_t at, int64_t count, const void *x, int64_t step, bool bf16, double *sum,
                      int64_t width);
} TN__(tn__row_kernels);

#endif
