/* sigmoid — y = 1 / (1 + e⁻ˣ)
 *
 *   gx = gy · y · (1 - y)        (saves y only)
 *
 * With e = exp(-|x|), which cannot overflow: 1 / (1 + e) from 0 on, e / (1 + e) below. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
#include "core/kernels/vecmath.h"
#define TN__TEMPLATE "autograd/ops/sigmoid.c"
#include "core/real.h"

static void sigmoid_forward(tn_ctx *c)
{
    tn__map(TN__REALS(sigmoid_fwd), TN__LIST(c->out[0]), TN__LIST(c->in[0]), NULL);
}

static void sigmoid_backward(tn_back *b)
{
    if ((b->gx[0] = tn__grad_room(b)))
        tn__map(TN__REALS(sigmoid_bwd), TN__LIST(b->gx[0]), TN__LIST(b->out[0], b->gy[0]), NULL);
}
static void sigmoid_backward_ops(tn_back *b)
{
    b->gx[0] = tn_mul(b->gy[0], tn_mul(b->out[0], tn_rsub_scalar(b->out[0], 1)));
}

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}}},
    {.in = {{0, {0}}}},
    {.in = {{3, {2, 0, 3}}}},
    {.in = {{3, {2, 1, 5}}}},
    {.in = {{2, {2, 3}}}, .low = {-9}, .high = {9}},
    {.in = {{2, {2, 3}}}, .low = {-1e4}, .high = {-9e3}},
    {.in = {{1, {2}}},
     .kind = {TN__ARG_INT},
     TN__FAILS(TN_EDTYPE, "sigmoid: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
};

const tn_op tn__op_sigmoid = {TN__ROOM("sigmoid", TN_AS_IS),
                              .inputs = 1,
                              .saves = TN_SAVE_OUT(0),
                              .infer = tn__infer_real,
                              .forward = sigmoid_forward,
                              .backward = sigmoid_backward,
                              .backward_ops = sigmoid_backward_ops,
                              .inplace = true};
TN__SAMPLES(sigmoid, samples);

tn_tensor *tn_sigmoid(tn_tensor *x) { return tn_apply(&tn__op_sigmoid, x); }
tn_tensor *tn_sigmoid_(tn_tensor *x) { return tn_apply_args_(&tn__op_sigmoid, NULL, x); }

#else /* ================================================================ kernels: contiguous, one real type */

static void TN__(sigmoid_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    (void)args;
    TN__(tn__sigmoid)(n, out[0], in[0]);
}

static void TN__(sigmoid_bwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *y = in[0], *gy = in[1];
    TN__REAL       *gx = out[0];
    (void)args;
    for (int64_t i = 0; i < n; i++) gx[i] = gy[i] * (y[i] * (1 - y[i]));
}
#endif
