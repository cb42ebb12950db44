/* relu — y = max(x, 0)
 *
 *   gx = gy where y > 0, else 0: so 0 at 0        (saves y only) */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
#define TN__TEMPLATE "autograd/ops/relu.c"
#define TN__WITH_I64
#include "core/real.h"

static void relu_forward(tn_ctx *c) { tn__map(TN__NUMBERS(relu_fwd), TN__LIST(c->out[0]), TN__LIST(c->in[0]), NULL); }

static void relu_backward(tn_back *b)
{
    if ((b->gx[0] = tn__grad_room(b)))
        tn__map(TN__REALS(relu_bwd), TN__LIST(b->gx[0]), TN__LIST(b->out[0], b->gy[0]), NULL);
}
static void relu_backward_ops(tn_back *b) { b->gx[0] = tn_masked_fill(b->gy[0], tn_le(b->out[0], tn_scalar(0)), 0); }

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}}, .low = {-2}, .high = {-0.5}},
    {.in = {{0, {0}}}, .low = {0.5}, .high = {2}},
    {.in = {{3, {2, 0, 3}}}},
    {.in = {{3, {2, 1, 5}}}, .low = {-3}, .high = {-0.5}},
    {.in = {{2, {2, 3}}}, .low = {0.5}, .high = {40}},
    {.in = {{2, {2, 3}}}, .kind = {TN__ARG_INT}, .low = {-5}, .high = {6}},
    {.in = {{1, {2}}},
     .kind = {TN__ARG_MASK},
     TN__FAILS(TN_EDTYPE, "relu: does not support bool; convert it with tn_to(x, TN_I64)")},
};

const tn_op tn__op_relu = {TN__ROOM("relu", TN_AS_IS),        .inputs = 1,
                           .saves = TN_SAVE_OUT(0),           .infer = tn__infer_numbers,
                           .forward = relu_forward,           .backward = relu_backward,
                           .backward_ops = relu_backward_ops, .inplace = true};
TN__SAMPLES(relu, samples);

tn_tensor *tn_relu(tn_tensor *x) { return tn_apply(&tn__op_relu, x); }
tn_tensor *tn_relu_(tn_tensor *x) { return tn_apply_args_(&tn__op_relu, NULL, x); }

#else /* ==================================================================== kernels: contiguous, one dtype */

static void TN__(relu_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *x = in[0];
    TN__REAL       *y = out[0];
    (void)args;
    for (int64_t i = 0; i < n; i++) y[i] = x[i] <= 0 ? 0 : x[i]; /* NaN stays */
}

#if TN__IS_REAL
static void TN__(relu_bwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *y = in[0], *gy = in[1];
    TN__REAL       *gx = out[0];
    (void)args;
    for (int64_t i = 0; i < n; i++) {
        const TN__REAL g = gy[i]; /* read unconditionally, so that the loop has no branch */
        gx[i] = y[i] <= 0 ? 0 : g;
    }
}
#endif
#endif
