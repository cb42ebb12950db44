/* attention.h — attention without a matrix of scores (attention.c). */
#ifndef TENON_CORE_PRODUCTS_ATTENTION_H
#define TENON_CORE_PRODUCTS_ATTENTION_H

#include "core/kernels/rows.h"
#include "core/tensor/tensor.h"

/* All tensors have the same leading dims, any strides; q, k, v, y and their gradients one floating type. Or k and v are
 * u8: rows of 8 bits (autograd/ops/int8_rows.c) in f32 or bf16, of which D and E do not count the scale. */
typedef struct {
    const tn_tensor *q, *k, *v; /* [..., T, D], [..., S, D], [..., S, E] */
    const tn_tensor *mask[2];   /* [..., T, S], bool (true: blocked) or floating (added); or NULL */
    bool             causal;    /* query t sees the keys 0 … past + t */
    int64_t          past;
    int64_t          window;     /* keys less than `window` positions away, with causal only earlier ones; 0: all */
    double           scale, cap; /* cap: scores are cap · tanh(score / cap) before the masks; 0: not capped */
    tn__dropped      drop;       /* of element i of [..., T, S]; draw determines i */
    tn__layout       draw;       /* by tn__drop_layout (autograd/rooms/norms.c) */
    const tn_tensor *y;          /* [..., T, E] */
    const tn_tensor *stat;       /* [..., T, 2], f64 or f32: a row's maximum score and 1 / Σ; dense */

    /* for the backward; unwanted gradients are NULL */
    const tn_tensor *gy, *gq, *gk, *gv, *gs; /* gs [..., T, S]: of the scores, in the dtype of stat; zero on entry */

    /* If not NULL: the rows of q (k and v) are sequences one after another, from offsets[i] to offsets[i + 1] - 1, and
     * a query attends to the keys of its own sequence; t and s above count from its start, and there are no masks. draw
     * is [sequences, ..., T, S] for a T and an S that no sequence exceeds. */
    const int64_t *offsets, *key_offsets;
    int64_t        sequences;

    const void *kernels; /* NULL: the table in use; tests pass another tn__kernel_table */
} tn__attention_call;

/* The length of the longest of the sequences that start at the offsets. */
int64_t tn__longest_sequence(const int64_t *offsets, int64_t sequences);

/* May raise TN_ENOMEM; then nothing has been written. */
void tn__attend(const tn__attention_call *c);      /* writes y and stat */
void tn__attend_back(const tn__attention_call *c); /* reads y and stat, writes the gradients */

#endif
