/* attention_scores — s = scale · q kᵀ: [..., T, D] x [..., S, D] → [..., T, S]; with a cap c, c · tanh(s / c)
 *
 *   gq = scale · gs k, gk = scale · gsᵀ q, in which terms with a zero of gs are skipped (select_matmul); with a cap,
 *   gs (1 - s² / c²) in place of gs
 *
 * A masked key may hold NaN. Then its scores are also NaN; attention_weights ignores them and returns gradient 0 for
 * them, and the skipped zeros keep the NaN out of the gradients here. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/attention_args.h"
#include "autograd/rooms/room.h"
#include "core/kernels/vecmath.h"
typedef tn__attention_scores_args args_t;
#define TN__TEMPLATE "autograd/ops/attention_scores.c"
#include "core/real.h"

/* kᵀ as a view on the stack, valid as long as k. */
static tn_tensor transposed(const tn_tensor *k)
{
    tn__layout l = k->l;
    const int  a = l.shape.n - 1, b = l.shape.n - 2;
    l.shape.d[a] = k->l.shape.d[b], l.stride[a] = k->l.stride[b];
    l.shape.d[b] = k->l.shape.d[a], l.stride[b] = k->l.stride[a];
    return tn__stack_view(k, &l);
}

static bool attention_scores_infer(tn_ctx *c)
{
    if (c->in[0]->l.shape.n < 2 || c->in[1]->l.shape.n < 2)
        return tn_infer_fail(c, TN_ESHAPE, "takes matrices, got %d-d by %d-d", c->in[0]->l.shape.n,
                             c->in[1]->l.shape.n);
    tn_tensor k = transposed(c->in[1]);
    tn_ctx    product = *c;
    product.in = (tn_tensor *[]){c->in[0], &k};
    return tn__infer_matmul(&product);
}
static void attention_scores_forward(tn_ctx *c)
{
    const tn_tensor k = transposed(c->in[1]);
    tn__gemm(TN_ARG(c, scale), c->in[0], &k, 0, c->out[0]);
    if (TN_ARG(c, cap) > 0) tn__map(TN__REALS(capped), TN__LIST(c->out[0]), TN__LIST(c->out[0]), c->args);
}

static void attention_scores_backward_ops(tn_back *b)
{
    tn_tensor   *gs = b->gy[0];
    const double scale = TN_ARG(b, scale), cap = TN_ARG(b, cap);
    if (cap > 0) { /* 0 stays 0 where the score is NaN */
        tn_tensor *s = tn_op_apply(&tn__op_attention_scores, b->args, 2, b->in);
        tn_tensor *slope = tn_rsub_scalar(tn_square(tn_mul_scalar(s, 1 / cap)), 1);
        gs = tn_masked_fill(tn_mul(gs, slope), tn_eq(gs, tn_zeros_of(gs->dtype, TN_SCALAR)), 0);
    }
    if (b->need[0]) b->gx[0] = tn_mul_scalar(tn_apply(&tn__op_select_matmul, gs, b->in[1]), scale);
    if (b->need[1])
        b->gx[1] = tn_mul_scalar(tn_apply(&tn__op_select_matmul, tn_transpose(gs, -1, -2), b->in[0]), scale);
}

#define SCALE(s) \
    .args = &(args_t) { s, 0 }
static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}, {2, {2, 4}}}, SCALE(0.5)},
    {.in = {{3, {2, 3, 2}}, {3, {2, 4, 2}}}, SCALE(1)},
    {.in = {{4, {2, 2, 1, 3}}, {3, {2, 3, 3}}}, SCALE(-2)},
    {.in = {{2, {2, 0}}, {2, {3, 0}}}, SCALE(1)},
    {.in = {{3, {2, 3, 2}}, {3, {2, 4, 2}}}, .args = &(args_t){1.5, 2}},
    {.in = {{3, {0, 2, 3}}, {2, {2, 3}}}, SCALE(1)},
    {.in = {{2, {2, 3}}, {2, {2, 4}}},
     SCALE(1),
     TN__FAILS(TN_ESHAPE, "attention_scores: inner sizes differ: [2, 3] by [4, 2]: 3 and 4")},
    {.in = {{2, {2, 3}}, {1, {3}}}, SCALE(1), TN__FAILS(TN_ESHAPE, "attention_scores: takes matrices, got 2-d by 1-d")},
};

const tn_op tn__op_attention_scores = {TN__ROOM("attention_scores", TN_NARROW(2)),
                                       .inputs = 2,
                                       .args_size = sizeof(args_t),
                                       .saves = TN_SAVE_IN(0) | TN_SAVE_IN(1),
                                       .infer = attention_scores_infer,
                                       .forward = attention_scores_forward,
                                       .backward_ops = attention_scores_backward_ops};
TN__SAMPLES(attention_scores, samples);

#else /* ================================================================ kernels: contiguous, one real type */

static void TN__(capped)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL  cap = (TN__REAL)((const tn__attention_scores_args *)args)->cap, by = 1 / cap;
    const TN__REAL *x = in[0];
    TN__REAL       *y = out[0];
    for (int64_t i = 0; i < n; i++) y[i] = x[i] * by;
    TN__(tn__tanh)(n, y, y);
    for (int64_t i = 0; i < n; i++) y[i] *= cap;
}
#endif
