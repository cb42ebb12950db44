/* neg — y = -x
 *
 *   gx = -gy */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
#define TN__TEMPLATE "autograd/ops/neg.c"
#define TN__WITH_I64
#include "core/real.h"

static void neg_forward(tn_ctx *c) { tn__map(TN__NUMBERS(neg_fwd), TN__LIST(c->out[0]), TN__LIST(c->in[0]), NULL); }
static void neg_backward(tn_back *b)
{
    if ((b->gx[0] = tn__grad_room(b))) tn__map(TN__NUMBERS(neg_fwd), TN__LIST(b->gx[0]), TN__LIST(b->gy[0]), NULL);
}
static void neg_backward_ops(tn_back *b) { b->gx[0] = tn_neg(b->gy[0]); }

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}}},
    {.in = {{0, {0}}}},
    {.in = {{3, {2, 0, 3}}}},
    {.in = {{3, {2, 1, 5}}}},
    {.in = {{2, {2, 3}}}, .kind = {TN__ARG_INT}, .low = {-5}, .high = {6}},
    {.in = {{1, {2}}},
     .kind = {TN__ARG_MASK},
     TN__FAILS(TN_EDTYPE, "neg: does not support bool; convert it with tn_to(x, TN_I64)")},
};

const tn_op tn__op_neg = {
    TN__ROOM("neg", TN_AS_IS),        .inputs = 1,     .infer = tn__infer_numbers, .forward = neg_forward,
    .backward_ops = neg_backward_ops, .inplace = true, .backward = neg_backward};
TN__SAMPLES(neg, samples);

tn_tensor *tn_neg(tn_tensor *x) { return tn_apply(&tn__op_neg, x); }
tn_tensor *tn_neg_(tn_tensor *x) { return tn_apply_args_(&tn__op_neg, NULL, x); }

#else /* ==================================================================== kernels: contiguous, one dtype */

static void TN__(neg_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *x = in[0];
    TN__REAL       *y = out[0];
    (void)args;
#if TN__IS_REAL
    for (int64_t i = 0; i < n; i++) y[i] = -x[i];
#else
    for (int64_t i = 0; i < n; i++) y[i] = (TN__REAL)(0 - (uint64_t)x[i]); /* wraps, as integers do */
#endif
}
#endif
