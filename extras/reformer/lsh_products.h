/* lsh_products.h — the computation of the lsh_attention op (lsh_attention.c). */
#ifndef TENON_EXTRAS_REFORMER_LSH_PRODUCTS_H
#define TENON_EXTRAS_REFORMER_LSH_PRODUCTS_H

#include "core/kernels/kernels.h"
#include "core/kernels/rows.h"
#include "core/tensor/tensor.h"

#define TN__LSH_ALONE (-1e5) /* the score of a position with itself, if it should attend to others */
typedef struct {
    const tn_tensor *q, *k, *v;         /* [B, H, T, D], [B, H, T, D], [B, H, T, E]: f32 or f64; any strides */
    const tn_tensor *buckets, *padding; /* i64 or i32 [B, H, rounds, T]; bool [B, T]; or NULL */
    int64_t          chunk, before, after;
    bool             causal, apart;
    double           scale;
    tn__dropped      drop; /* of element i of a sequence's [H, sorted, keys] */
} tn__lsh_call;

int64_t tn__lsh_weights(const tn__lsh_call *a); /* number of weights, of all pairs attended to */
/* y, contiguous [B, H, T, E], and l [B, H, T], ln of the sum of exp. May raise TN_ENOMEM. */
void tn__lsh_attend(const tn__lsh_call *a, tn_tensor *y, tn_tensor *l);
/* Gradients of q, k and v, contiguous; NULL: not wanted. May raise TN_ENOMEM. */
void tn__lsh_attend_back(const tn__lsh_call *a, const tn_tensor *y, const tn_tensor *l, const tn_tensor *gy,
                         tn_tensor *const gx[3]);
/* For each sorted index its position, and the positions of its keys: i64 [B, H, chunks, chunk], [.., chunks, keys]; and
 * the sorted index of each position, [B, H, rounds, T]. Raises. */
bool tn__lsh_indices(const tn__lsh_call *a, tn_tensor **own_at, tn_tensor **keys_at, tn_tensor **place);

#endif
