/* sin — y = sin x
 *
 *   gx = gy · cos x */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
#include "core/kernels/vecmath.h"
#define TN__TEMPLATE "autograd/ops/sin.c"
#include "core/real.h"

static void sin_forward(tn_ctx *c) { tn__map(TN__REALS(sin_fwd), TN__LIST(c->out[0]), TN__LIST(c->in[0]), NULL); }
static void sin_backward_ops(tn_back *b) { b->gx[0] = tn_mul(b->gy[0], tn_cos(b->in[0])); }

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}}},
    {.in = {{0, {0}}}},
    {.in = {{3, {2, 0, 3}}}},
    {.in = {{3, {2, 1, 5}}}},
    {.in = {{2, {2, 3}}}, .low = {-30}, .high = {30}},
    {.in = {{1, {2}}},
     .kind = {TN__ARG_INT},
     TN__FAILS(TN_EDTYPE, "sin: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
};

const tn_op tn__op_sin = {TN__ROOM("sin", TN_AS_IS), .inputs = 1,
                          .saves = TN_SAVE_IN(0),    .infer = tn__infer_real,
                          .forward = sin_forward,    .backward_ops = sin_backward_ops};
TN__SAMPLES(sin, samples);

tn_tensor *tn_sin(tn_tensor *x) { return tn_apply(&tn__op_sin, x); }

#else /* ================================================================ kernels: contiguous, one real type */

static void TN__(sin_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    (void)args;
    TN__(tn__sin)(n, out[0], in[0]);
}
#endif
