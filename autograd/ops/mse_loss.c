/* mse_loss — (a - b)² of each pair, then the mean or the sum
 *
 *   ga = gy · 2 (a - b),  gb = -ga */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/losses.h"
#define TN__TEMPLATE "autograd/ops/mse_loss.c"
#include "core/real.h"

static bool mse_loss_infer(tn_ctx *c) { return tn__infer_pairs(c); }
static void mse_loss_forward(tn_ctx *c)
{
    tn__map(TN__REALS(mse_loss_fwd), TN__LIST(c->out[0]), TN__LIST(c->in[0], c->in[1]), NULL);
}
static void mse_loss_backward(tn_back *b)
{
    tn_tensor *g = tn_empty_like(b->gy[0]);
    if (g) tn__map(TN__REALS(mse_loss_bwd), TN__LIST(g), TN__LIST(b->in[0], b->in[1], b->gy[0]), NULL);
    if (b->need[0]) b->gx[0] = g;
    if (b->need[1]) b->gx[1] = tn_neg(g);
}
static void mse_loss_backward_ops(tn_back *b)
{
    tn_tensor *g = tn_mul(b->gy[0], tn_mul_scalar(tn_sub(b->in[0], b->in[1]), 2));
    if (b->need[0]) b->gx[0] = g;
    if (b->need[1]) b->gx[1] = tn_neg(g);
}

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}, {2, {3, 4}}}},
    {.in = {{3, {2, 3, 4}}, {3, {2, 3, 4}}}},
    {.in = {{3, {2, 1, 4}}, {3, {2, 1, 4}}}},
    {.in = {{0, {0}}, {0, {0}}}},
    {.in = {{2, {0, 3}}, {2, {0, 3}}}},
    {.in = {{2, {3, 1}}, {1, {3}}},
     TN__FAILS(TN_ESHAPE,
               "mse_loss: input [3, 1] and target [3] must have the same shape; tn_reshape or tn_expand one of them")},
};

const tn_op tn__op_mse_loss = {TN__ROOM("mse_loss", TN_WIDE),
                               .inputs = 2,
                               .saves = TN_SAVE_IN(0) | TN_SAVE_IN(1),
                               .infer = mse_loss_infer,
                               .forward = mse_loss_forward,
                               .backward = mse_loss_backward,
                               .backward_ops = mse_loss_backward_ops};
TN__SAMPLES(mse_loss, samples);

tn_tensor *tn_mse_loss_run(tn_loss_args a)
{
    if (!tn__loss_options("mse_loss", &a, 0)) return NULL;
    const tn_scope s = tn_scope_begin();
    return tn_scope_return(s, tn__loss_reduced(tn__binary(&tn__op_mse_loss, a.input, a.target, true), a.reduction));
}

#else /* ================================================================ kernels: contiguous, one real type */

static void TN__(mse_loss_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *a = in[0], *b = in[1];
    TN__REAL       *y = out[0];
    (void)args;
    for (int64_t i = 0; i < n; i++) y[i] = (a[i] - b[i]) * (a[i] - b[i]);
}

static void TN__(mse_loss_bwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *a = in[0], *b = in[1], *gy = in[2];
    TN__REAL       *g = out[0];
    (void)args;
    for (int64_t i = 0; i < n; i++) g[i] = gy[i] * (2 * (a[i] - b[i]));
}
#endif
