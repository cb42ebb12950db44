/* gelu — y = x · Φ(x), with Φ the cumulative distribution function of the normal distribution and φ its density
 *
 *   Φ(x) = erfc(-x / √2) / 2        φ(x) = exp(-x² / 2) / √(2π)
 *   gx = gy · (Φ(x) + x φ(x))
 *
 * Beyond |x| = 100 Φ is 0 or 1 in any dtype, and φ is 0; infinity times 0 must not be computed there. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
#define ROOT_HALF 0.70710678118654752440 /* 1/√2 */
#define DENSITY 0.39894228040143267794   /* 1/√(2π) */
#define TN__TEMPLATE "autograd/ops/gelu.c"
#include "core/real.h"

static void gelu_forward(tn_ctx *c) { tn__map(TN__REALS(gelu_fwd), TN__LIST(c->out[0]), TN__LIST(c->in[0]), NULL); }

static void gelu_backward(tn_back *b)
{
    if ((b->gx[0] = tn__grad_room(b)))
        tn__map(TN__REALS(gelu_bwd), TN__LIST(b->gx[0]), TN__LIST(b->in[0], b->gy[0]), NULL);
}
tn_tensor *tn__gelu_derivative(tn_tensor *x)
{
    x = tn_clamp(x, -100, 100);
    tn_tensor *cdf = tn_mul_scalar(tn_add_scalar(tn_erf(tn_mul_scalar(x, ROOT_HALF)), 1), 0.5);
    tn_tensor *pdf = tn_mul_scalar(tn_exp(tn_mul_scalar(tn_square(x), -0.5)), DENSITY);
    return tn_add(cdf, tn_mul(x, pdf));
}
static void gelu_backward_ops(tn_back *b) { b->gx[0] = tn_mul(b->gy[0], tn__gelu_derivative(b->in[0])); }

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}}},
    {.in = {{0, {0}}}},
    {.in = {{2, {0, 3}}}},
    {.in = {{3, {2, 1, 5}}}},
    {.in = {{2, {2, 3}}}, .low = {-9}, .high = {9}},
    {.in = {{2, {2, 3}}}, .low = {-1e4}, .high = {-9e3}},
    {.in = {{2, {2, 3}}}, .low = {9e3}, .high = {1e4}},
    {.in = {{1, {2}}},
     .kind = {TN__ARG_INT},
     TN__FAILS(TN_EDTYPE, "gelu: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
};

const tn_op tn__op_gelu = {TN__ROOM("gelu", TN_AS_IS),       .inputs = 1,
                           .saves = TN_SAVE_IN(0),           .infer = tn__infer_real,
                           .forward = gelu_forward,          .backward = gelu_backward,
                           .backward_ops = gelu_backward_ops};
TN__SAMPLES(gelu, samples);

tn_tensor *tn_gelu(tn_tensor *x) { return tn_apply(&tn__op_gelu, x); }

#else /* ================================================================ kernels: contiguous, one real type */

static void TN__(gelu_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    (void)args;
    TN__(tn__gelu)(n, out[0], in[0]);
}

static void TN__(gelu_bwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    (void)args;
    TN__(tn__gelu_slope)(n, out[0], in[0], in[1]);
}
#endif
