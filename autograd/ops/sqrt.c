/* sqrt — y = √x; NaN below 0
 *
 *   gx = gy / (2y)        (saves y only; infinite at 0) */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
#define TN__TEMPLATE "autograd/ops/sqrt.c"
#include "core/real.h"

static void sqrt_forward(tn_ctx *c) { tn__map(TN__REALS(sqrt_fwd), TN__LIST(c->out[0]), TN__LIST(c->in[0]), NULL); }
static void sqrt_backward_ops(tn_back *b) { b->gx[0] = tn_div(b->gy[0], tn_mul_scalar(b->out[0], 2)); }

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}}, .low = {0.5}, .high = {3}},
    {.in = {{0, {0}}}, .low = {0.5}, .high = {3}},
    {.in = {{3, {2, 0, 3}}}, .low = {0.5}, .high = {3}},
    {.in = {{3, {2, 1, 5}}}, .low = {0.5}, .high = {3}},
    {.in = {{2, {2, 3}}}, .low = {1000}, .high = {3000}},
    {.in = {{1, {2}}},
     .kind = {TN__ARG_INT},
     TN__FAILS(TN_EDTYPE, "sqrt: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
};

const tn_op tn__op_sqrt = {TN__ROOM("sqrt", TN_AS_IS),
                           .inputs = 1,
                           .saves = TN_SAVE_OUT(0),
                           .infer = tn__infer_real,
                           .forward = sqrt_forward,
                           .backward_ops = sqrt_backward_ops,
                           .inplace = true};
TN__SAMPLES(sqrt, samples);

tn_tensor *tn_sqrt(tn_tensor *x) { return tn_apply(&tn__op_sqrt, x); }
tn_tensor *tn_sqrt_(tn_tensor *x) { return tn_apply_args_(&tn__op_sqrt, NULL, x); }

#else /* ================================================================ kernels: contiguous, one real type */

static void TN__(sqrt_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *x = in[0];
    TN__REAL       *y = out[0];
    (void)args;
    for (int64_t i = 0; i < n; i++) y[i] = TN__M(sqrt)(x[i]);
}
#endif
