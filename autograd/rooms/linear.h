/* linear.h — shared code of the rooms of x Wᵀ + b and of act(x Wᵀ + b). */
#ifndef TENON_AUTOGRAD_ROOMS_LINEAR_H
#define TENON_AUTOGRAD_ROOMS_LINEAR_H

#include "autograd/rooms/room.h"

/* The infer: inputs 0, 1 and 2 are x [..., in], W [out, in] and b [out] or NULL; result 0 is [..., out]. */
bool tn__infer_linear(tn_ctx *c);
/* Computes result 0 = act(x Wᵀ + b); stores x Wᵀ + b in pre, of the same shape, unless pre is NULL. */
void tn__linear_forward(tn_ctx *c, tn__act act, tn_tensor *pre);
/* Computes the gradients of x, W and b from the gradient g of x Wᵀ + b. Made of ops. */
void tn__linear_backward(tn_back *b, tn_tensor *g);

#endif
