/* exp — y = eˣ
 *
 *   gx = gy · y          (saves y only) */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
#include "core/kernels/vecmath.h"
#define TN__TEMPLATE "autograd/ops/exp.c"
#include "core/real.h"

static void exp_forward(tn_ctx *c) { tn__map(TN__REALS(exp_fwd), TN__LIST(c->out[0]), TN__LIST(c->in[0]), NULL); }
static void exp_backward_ops(tn_back *b) { b->gx[0] = tn_mul(b->gy[0], b->out[0]); }

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}}},
    {.in = {{0, {0}}}},
    {.in = {{3, {2, 0, 3}}}},
    {.in = {{3, {2, 1, 5}}}},
    {.in = {{2, {2, 3}}}, .low = {-30}, .high = {-20}},
    {.in = {{1, {2}}},
     .kind = {TN__ARG_INT},
     TN__FAILS(TN_EDTYPE, "exp: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
};

const tn_op tn__op_exp = {TN__ROOM("exp", TN_WIDE), .inputs = 1,
                          .saves = TN_SAVE_OUT(0),  .infer = tn__infer_real,
                          .forward = exp_forward,   .backward_ops = exp_backward_ops,
                          .inplace = true};
TN__SAMPLES(exp, samples);

tn_tensor *tn_exp(tn_tensor *x) { return tn_apply(&tn__op_exp, x); }
tn_tensor *tn_exp_(tn_tensor *x) { return tn_apply_args_(&tn__op_exp, NULL, x); }

#else /* ================================================================ kernels: contiguous, one real type */

static void TN__(exp_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    (void)args;
    TN__(tn__exp)(n, out[0], in[0]);
}
#endif
