/* q8.h — shared code of the rooms whose weights are stored in 8 bits or f16, and the calls of these ops. */
#ifndef TENON_AUTOGRAD_ROOMS_Q8_H
#define TENON_AUTOGRAD_ROOMS_Q8_H

#include "autograd/rooms/room.h"
#include "core/products/q8.h"

/* For infer: input i must be such a weight; describes it in *w. */
bool tn__need_q8(const tn_ctx *c, int i, tn__q8 *w);

tn_tensor *tn__linear_q8(tn_tensor *x, tn_tensor *weight, tn_tensor *bias, tn__act act);
/* Columns [first, first + count) of x Wᵀ + bias, of a packed weight. */
tn_tensor *tn__linear_rows(tn_tensor *x, tn_tensor *weight, tn_tensor *bias, int64_t first, int64_t count);
tn_tensor *tn__embedding_q8(tn_tensor *weight, tn_tensor *index);

#endif
