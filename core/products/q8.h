/* q8.h — packed weights as a tensor (q8.c, q4.c), and products with them (q8_linear.c, int8_linear.c). */
#ifndef TENON_CORE_PRODUCTS_Q8_H
#define TENON_CORE_PRODUCTS_Q8_H

#include "core/kernels/kernels.h"
#include "core/tensor/tensor.h"

/* A packed matrix [out, in]: panels of `rows` rows in sequence, the last one padded with zeros, each of `groups` blocks
 * of `group` columns, after a head (core/kernels/kernels.h). Products with all kinds except TN__Q8_0 and TN__F16 also
 * quantise the activations (int8_linear.c). The tensor is u8 and has one dim: a header of 64 bytes, then the panels. */
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
 * NULL. Of TN__Q8_0 and TN__F16 the bits are those of the same product with the weights in f32; of the others they are
 * the same on every CPU.
 * False: out of memory, raised. */
bool tn__q8_linear(const tn_tensor *x, const tn__q8 *w, const tn_tensor *bias, tn__act act, tn_tensor *y,
                   const tn__kernel_table *kernels);
/* Its part for the kinds that quantise activations, of dense rows. */
void tn__int8_linear(int64_t rows, const float *x, const tn__q8 *w, const tn_tensor *bias, tn__act act, tn_tensor *y,
                     const tn__kernel_table *kernels);
/* y[i] = row index[i] of W, in y's dtype; the caller has checked index. */
void tn__q8_rows(const tn__q8 *w, const tn_tensor *index, tn_tensor *y);

/* Rounds 32 weights to a block of Q4_0 of files (q4.c). False: one is not finite, or too large for the scale. */
bool tn__q4_0_round(const float *w, uint8_t *block);
/* Of the first TN__Q4_KINDS kinds (q4.c): writes the blocks of one row of a file to row r of a panel; reads columns
 * [col, col + 32) of it. */
void tn__q4_put(tn__packing kind, int64_t groups, const uint8_t *blocks, uint8_t *panel, int64_t r);
void tn__q4_get(tn__packing kind, const uint8_t *panel, int64_t r, int64_t col, float *to);

#endif
