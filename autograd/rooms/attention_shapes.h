/* attention_shapes.h — the inputs and arguments of attention (ops/attention.c), and the rules for their shapes. */
#ifndef TENON_AUTOGRAD_ROOMS_ATTENTION_SHAPES_H
#define TENON_AUTOGRAD_ROOMS_ATTENTION_SHAPES_H

#include "autograd/rooms/attention_args.h"
#include "autograd/rooms/room.h"

enum { TN__Q, TN__K, TN__V, TN__MASK, TN__PADDING, TN__OFFSETS, TN__KEY_OFFSETS, TN__ATTENTION_INPUTS };
typedef struct {
    bool     causal, int8; /* int8: k and v are results of tn_int8_rows */
    int64_t  past, window;
    double   dropout, scale, cap;
    uint64_t seed, position; /* of the generator */
    tn_dims  order;          /* of the result's dims */
} tn__attention_args;

/* The infer, with the weights as the second result or with the rows' statistics. */
bool tn__attention_infer(tn_ctx *c, bool weights);

/* The scale, or its default 1/√D if it is below 0; q is the first input, which may be NULL. */
double tn__attention_scale(const tn_tensor *q, double scale);

/* Makes the dtypes of q, k and v one; with int8 makes the rows of k and v dense instead. */
void tn__attention_join(bool int8, tn_tensor **in);
/* Stores q, k and v in to[3]: views on the stack, [B, H, T, D] each if they are packed in one tensor; with int8 k and v
 * are the bytes without the scales. */
void tn__attention_parts(bool int8, tn_tensor *const *in, tn_tensor *to);
/* Tensor i (q, k or v) of the packed x [B, T, 3, H, D], as a view [B, H, T, D] on the stack. */
tn_tensor tn__heads_of(const tn_tensor *x, int i);
/* The leading dims of a and b, broadcast. */
bool     tn__broadcast_lead(tn_shape a, tn_shape b, tn_shape *to);
tn_shape tn__lead_of(const tn_tensor *x);
tn_shape tn__with_lead(tn_shape lead, int64_t rows, int64_t cols);

#endif
