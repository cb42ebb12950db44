/* sign — -1, 0 or 1; 0 for NaN, as in PyTorch
 *
 *   gx = 0 */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
#define TN__TEMPLATE "autograd/ops/sign.c"
#define TN__WITH_I64
#include "core/real.h"

static void sign_forward(tn_ctx *c) { tn__map(TN__NUMBERS(sign_fwd), TN__LIST(c->out[0]), TN__LIST(c->in[0]), NULL); }
static void sign_backward_ops(tn_back *b) { b->gx[0] = tn_zeros_like(b->gy[0]); }

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}}, .low = {0.5}, .high = {2}},
    {.in = {{0, {0}}}, .low = {-2}, .high = {-0.5}},
    {.in = {{3, {2, 0, 3}}}},
    {.in = {{3, {2, 1, 5}}}, .low = {-3}, .high = {-0.5}},
    {.in = {{2, {2, 3}}}, .low = {0.5}, .high = {40}},
    {.in = {{2, {2, 3}}}, .kind = {TN__ARG_INT}, .low = {-5}, .high = {6}},
    {.in = {{2, {2, 3}}}, .kind = {TN__ARG_MASK}},
};

const tn_op tn__op_sign = {TN__ROOM("sign", TN_AS_IS), .inputs = 1, .infer = tn__infer_same, .forward = sign_forward,
                           .backward_ops = sign_backward_ops};
TN__SAMPLES(sign, samples);

tn_tensor *tn_sign(tn_tensor *x) { return tn_apply(&tn__op_sign, x); }

#else /* ==================================================================== kernels: contiguous, one dtype */

static void TN__(sign_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *x = in[0];
    TN__REAL       *y = out[0];
    (void)args;
    for (int64_t i = 0; i < n; i++) y[i] = (TN__REAL)((x[i] > 0) - (x[i] < 0));
}
#endif
