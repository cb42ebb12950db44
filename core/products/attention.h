/* attention.h — attention without a matrix of scores (attention.c). */
#ifndef TENON_CORE_PRODUCTS_ATTENTION_H
#define TENON_CORE_PRODUCTS_ATTENTION_H

#include "core/kernels/rows.h"
#include "core/tensor/tensor.h"

/* All tensors have the same leading dims, any strides; q, k, v, y and their gradients one floating type. */
typedef struct {
    const tn_tensor *q, *k, *v; /* [..., T, D], [..., S, D], [..., S, E] */
    const tn_tensor *mask[2];   /* [..., T, S], bool (true: blocked) or floating (added); or NULL */
    bool             causal;    /* query t sees the keys 0 … past + t */
    int64_t          past;
    int64_t          window; /* causal: and of these the last so many; 0: all */
    double           scale;
    tn__dropped      drop; /* of element i of [..., T, S], where i is what draw has for its place */
    tn__layout       draw;
    const tn_tensor *y;    /* [..., T, E] */
    const tn_tensor *stat; /* [..., T, 2], f64 or f32: a row's largest score and 1 / Σ; dense */

    /* for the derivative; gradients that are not wanted are NULL */
    const tn_tensor *gy, *gq, *gk, *gv, *gs; /* gs [..., T, S]: of the scores, in the type of stat; zeros come in */

    const void *kernels; /* NULL: those in use; tests name another tn__kernel_table */
} tn__attention_call;

/* May raise TN_ENOMEM; then nothing has been written. */
void tn__attend(const tn__attention_call *c);      /* writes y and stat */
void tn__attend_back(const tn__attention_call *c); /* reads them, writes the gradients */

#endif
