/* l1_loss — |a - b| of each pair, then the mean or the sum
 *
 *   ga = gy · sign(a - b),  gb = -ga */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/losses.h"
#define TN__TEMPLATE "autograd/ops/l1_loss.c"
#include "core/real.h"

static bool l1_loss_infer(tn_ctx *c) { return tn__infer_pairs(c); }
static void l1_loss_forward(tn_ctx *c)
{
    tn__map(TN__REALS(l1_loss_fwd), TN__LIST(c->out[0]), TN__LIST(c->in[0], c->in[1]), NULL);
}
static void l1_loss_backward(tn_back *b)
{
    tn_tensor *g = tn_empty_like(b->gy[0]);
    if (g) tn__map(TN__REALS(l1_loss_bwd), TN__LIST(g), TN__LIST(b->in[0], b->in[1], b->gy[0]), NULL);
    if (b->need[0]) b->gx[0] = g;
    if (b->need[1]) b->gx[1] = tn_neg(g);
}
static void l1_loss_backward_ops(tn_back *b)
{
    tn_tensor *g = tn_mul(b->gy[0], tn_sign(tn_sub(b->in[0], b->in[1])));
    if (b->need[0]) b->gx[0] = g;
    if (b->need[1]) b->gx[1] = tn_neg(g);
}

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}, {2, {3, 4}}}, .low = {0, 1.1}, .high = {1, 3}},
    {.in = {{3, {2, 3, 4}}, {3, {2, 3, 4}}}, .low = {2, 0}, .high = {3, 1.9}},
    {.in = {{3, {2, 1, 4}}, {3, {2, 1, 4}}}, .low = {-1, 0.1}, .high = {0, 2}},
    {.in = {{0, {0}}, {0, {0}}}, .low = {-1, 0.1}, .high = {0, 2}},
    {.in = {{2, {0, 3}}, {2, {0, 3}}}},
    {.in = {{2, {3, 1}}, {1, {3}}},
     TN__FAILS(TN_ESHAPE,
               "l1_loss: input [3, 1] and target [3] must have the same shape; tn_reshape or tn_expand one of them")},
};

const tn_op tn__op_l1_loss = {TN__ROOM("l1_loss", TN_WIDE),
                              .inputs = 2,
                              .saves = TN_SAVE_IN(0) | TN_SAVE_IN(1),
                              .infer = l1_loss_infer,
                              .forward = l1_loss_forward,
                              .backward = l1_loss_backward,
                              .backward_ops = l1_loss_backward_ops};
TN__SAMPLES(l1_loss, samples);

tn_tensor *tn_l1_loss_run(tn_loss_args a)
{
    if (!tn__loss_options("l1_loss", &a, 0)) return NULL;
    const tn_scope s = tn_scope_begin();
    return tn_scope_return(s, tn__loss_reduced(tn__binary(&tn__op_l1_loss, a.input, a.target, true), a.reduction));
}

#else /* ================================================================ kernels: contiguous, one real type */

static void TN__(l1_loss_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *a = in[0], *b = in[1];
    TN__REAL       *y = out[0];
    (void)args;
    for (int64_t i = 0; i < n; i++) y[i] = TN__M(fabs)(a[i] - b[i]);
}

static void TN__(l1_loss_bwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *a = in[0], *b = in[1], *gy = in[2];
    TN__REAL       *g = out[0];
    (void)args;
    for (int64_t i = 0; i < n; i++) {
        const TN__REAL d = a[i] - b[i], way = d > 0 ? 1 : d; /* compiled without a branch */
        g[i] = gy[i] * (d < 0 ? -1 : way);                   /* 0; NaN for NaN */
    }
}
#endif
