/* q8.h — what the rooms with weights of 8 bits or f16 share, and how the rooms with floating ones hand over to them. */
#ifndef TENON_AUTOGRAD_ROOMS_Q8_H
#define TENON_AUTOGRAD_ROOMS_Q8_H

#include "autograd/rooms/room.h"
#include "core/products/q8.h"

/* For infer: input i is such weights, described in *w. */
bool tn__need_q8(const tn_ctx *c, int i, tn__q8 *w);
/* For infer: nobody waits for a gradient of t, which may be NULL. */
bool tn__need_no_gradient(const tn_ctx *c, const tn_tensor *t);

tn_tensor *tn__linear_q8(tn_tensor *x, tn_tensor *weight, tn_tensor *bias, tn__act act);
tn_tensor *tn__embedding_q8(tn_tensor *weight, tn_tensor *index);

#endif
