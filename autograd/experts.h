/* experts.h — the ops of a mixture of experts: rows in the order of their experts, and one product for each expert. The
 * module is tn_experts (nn/experts.h). Part of autograd.h: include that. */
#ifndef TENON_AUTOGRAD_EXPERTS_H
#define TENON_AUTOGRAD_EXPERTS_H

#include "../core/core.h"

TN_C_BEGIN_

/* The pairs of a token and one of its experts, ordered by expert, then by choice, then by token. Each is i64 [N k]. */
typedef struct {
    tn_tensor *token;  /* the row of x */
    tn_tensor *pair;   /* token · k + choice */
    tn_tensor *expert; /* ascending; the number of experts for a pair that was dropped */
} tn_routes;
/* expert: i64 or i32 [N, k], the chosen experts of each token. An expert takes its first `capacity` pairs, 0: all; the
 * others are dropped. */
TN_API tn_routes tn_route(tn_tensor *expert, int64_t experts, int64_t capacity);

/* Row i of the result is x[i] Wᵀ + b with the weight [out, in] and the bias [out] at index[i]; x [rows, in]. index:
 * i64 or i32 [rows], ascending, or else there are more products; for index n the row is 0. bias NULL: none. A row has
 * the bits of tn_linear. */
TN_API tn_tensor *tn_grouped_linear(tn_tensor *x, tn_tensor *index, int n, tn_tensor *const *weight,
                                    tn_tensor *const *bias);

TN_C_END_
#endif
