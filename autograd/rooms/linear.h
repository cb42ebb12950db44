/* linear.h — what the rooms of x Wᵀ + b share, with and without a function behind it. */
#ifndef TENON_AUTOGRAD_ROOMS_LINEAR_H
#define TENON_AUTOGRAD_ROOMS_LINEAR_H

#include "autograd/rooms/room.h"

/* Inputs 0, 1 and 2 are x [..., in], W [out, in] and b [out] or none; result 0 is [..., out]. */
bool tn__infer_linear(tn_ctx *c);
/* Result 0 = act(x Wᵀ + b); pre, if not NULL, has its shape and gets what act is applied to. */
void tn__linear_forward(tn_ctx *c, tn__act act, tn_tensor *pre);
/* The gradients of x, W and b from that of x Wᵀ + b. Made of ops. */
void tn__linear_backward(tn_back *b, tn_tensor *g);

#endif
