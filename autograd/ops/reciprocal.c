/* reciprocal — y = 1 / x
 *
 *   gx = -gy · y²        (saves y only) */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
#define TN__TEMPLATE "autograd/ops/reciprocal.c"
#include "core/real.h"

static void reciprocal_forward(tn_ctx *c)
{
    tn__map(TN__REALS(reciprocal_fwd), TN__LIST(c->out[0]), TN__LIST(c->in[0]), NULL);
}

static void reciprocal_backward(tn_back *b)
{
    if ((b->gx[0] = tn_empty_like(b->gy[0])))
        tn__map(TN__REALS(reciprocal_bwd), TN__LIST(b->gx[0]), TN__LIST(b->out[0], b->gy[0]), NULL);
}
static void reciprocal_backward_ops(tn_back *b) { b->gx[0] = tn_neg(tn_mul(b->gy[0], tn_square(b->out[0]))); }

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}}, .low = {0.5}, .high = {3}},
    {.in = {{0, {0}}}, .low = {0.5}, .high = {3}},
    {.in = {{3, {2, 0, 3}}}, .low = {0.5}, .high = {3}},
    {.in = {{3, {2, 1, 5}}}, .low = {0.5}, .high = {3}},
    {.in = {{2, {2, 3}}}, .low = {-3000}, .high = {-1000}},
    {.in = {{1, {2}}},
     .kind = {TN__ARG_INT},
     TN__FAILS(TN_EDTYPE, "reciprocal: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
};

const tn_op tn__op_reciprocal = {TN__ROOM("reciprocal", TN_AS_IS),
                                 .inputs = 1,
                                 .saves = TN_SAVE_OUT(0),
                                 .infer = tn__infer_real,
                                 .forward = reciprocal_forward,
                                 .backward = reciprocal_backward,
                                 .backward_ops = reciprocal_backward_ops};
TN__SAMPLES(reciprocal, samples);

tn_tensor *tn_reciprocal(tn_tensor *x) { return tn_apply(&tn__op_reciprocal, x); }

#else /* ================================================================ kernels: contiguous, one real type */

static void TN__(reciprocal_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *x = in[0];
    TN__REAL       *y = out[0];
    (void)args;
    for (int64_t i = 0; i < n; i++) y[i] = 1 / x[i];
}

static void TN__(reciprocal_bwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *y = in[0], *gy = in[1];
    TN__REAL       *gx = out[0];
    (void)args;
    for (int64_t i = 0; i < n; i++) gx[i] = -gy[i] * (y[i] * y[i]);
}
#endif
