/* q8.h — weights of 8 bits or of f16 as a tensor (q8.c), and products with them (q8_linear.c, int8_linear.c). */
#ifndef TENON_CORE_PRODUCTS_Q8_H
#define TENON_CORE_PRODUCTS_Q8_H

#include "core/kernels/kernels.h"
#include "core/tensor/tensor.h"

/* TN__INT8: activations are quantised, too (int8_linear.c). */
typedef enum { TN__Q8_0, TN__F16, TN__INT8, TN__PACKINGS } tn__packing;

/* A matrix [out, in] in 8 bits or f16: panels of `rows` rows in sequence, the last one padded with zeros, each of
 * `groups` blocks of `group` columns, after a head (core/kernels/kernels.h). The tensor is u8 and has one dim: a header
 * of 64 bytes, then the panels. */
typedef struct {
    tn__packing    kind;
    int64_t        out, in;
    tn_dtype       dtype; /* of the weights that it was converted from */
    int64_t        rows, panels, groups, group;
    int64_t        head, block, panel; /* bytes of a panel's head, of a block, of a panel */
    const uint8_t *panels_at;
} tn__q8;

/* True if t is such a matrix: its header is consistent with its size. Raises nothing. */
bool                         tn__q8_of(const tn_tensor *t, tn__q8 *q);
static inline const uint8_t *tn__q8_panel(const tn__q8 *q, int64_t panel) { return q->panels_at + panel * q->panel; }

/* Converts all of it to a floating [out, in]. NULL: raised. */
tn_tensor *tn__q8_unpacked(const tn_tensor *t, tn_dtype dt);

/* y = act(x Wᵀ + bias): x [..., in] and y [..., out] of f32 or of bf16, y contiguous, bias [out] of their dtype, or
 * NULL. The bits are those of the same product with the weights in f32; those of TN__INT8 are the same on every CPU.
 * False: out of memory, raised. */
bool tn__q8_linear(const tn_tensor *x, const tn__q8 *w, const tn_tensor *bias, tn__act act, tn_tensor *y,
                   const tn__kernel_table *kernels);
/* Its part for TN__INT8, of dense rows. */
void tn__int8_linear(int64_t rows, const float *x, const tn__q8 *w, const tn_tensor *bias, tn__act act, tn_tensor *y,
                     const tn__kernel_table *kernels);
/* y[i] = row index[i] of W, in y's dtype; the caller has checked index. */
void tn__q8_rows(const tn__q8 *w, const tn_tensor *index, tn_tensor *y);

#endif
