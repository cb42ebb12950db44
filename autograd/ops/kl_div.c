/* kl_div — of each pair: t (log t - x), for a log-probability x and a probability t; then the mean, the sum, or the sum
 * divided by the first dim's size (batchmean). With log_target t is also a log-probability: exp(t) (t - x).
 *
 *   gx = -t gy,            gt = (log t + 1 - x) gy        (t = 0: 0 · log 0 is 0, and gt is 0)
 *   gx = -exp(t) gy,       gt = exp(t) (t + 1 - x) gy     with log_target */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/losses.h"
typedef struct {
    bool log_target;
} args_t;
#define TN__TEMPLATE "autograd/ops/kl_div.c"
#include "core/real.h"

static bool kl_div_infer(tn_ctx *c) { return tn__infer_pairs(c); }
static void kl_div_forward(tn_ctx *c)
{
    tn__map(TN__REALS(kl_div_fwd), TN__LIST(c->out[0]), TN__LIST(c->in[0], c->in[1]), c->args);
}

static unsigned kl_div_saves_for(const bool *need) { return TN_SAVE_IN(1) | (need[1] ? TN_SAVE_IN(0) : 0); }
static void     kl_div_backward_ops(tn_back *b)
{
    tn_tensor *x = b->in[0], *t = b->in[1], *gy = b->gy[0];
    if (TN_ARG(b, log_target)) {
        tn_tensor *g = tn_mul(gy, tn_exp(t));
        if (b->need[0]) b->gx[0] = tn_neg(g);
        if (b->need[1]) b->gx[1] = tn_mul(g, tn_add_scalar(tn_sub(t, x), 1));
        return;
    }
    if (b->need[0]) b->gx[0] = tn_neg(tn_mul(gy, t));
    if (b->need[1]) {
        tn_tensor *none = tn_eq(t, tn_scalar(0)), *some = tn_to(tn_logical_not(none), b->in_dtype[1]);
        tn_tensor *slope = tn_add(tn_log(tn_masked_fill(t, none, 1)), some);
        b->gx[1] = tn_mul(gy, tn_sub(slope, x));
    }
}

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}, {2, {3, 4}}}, .low = {-3, 0.1}, .high = {0, 1}, .args = &(args_t){false}},
    {.in = {{2, {3, 4}}, {2, {3, 4}}}, .low = {-3, -3}, .high = {0, 0}, .args = &(args_t){true}},
    {.in = {{3, {2, 3, 4}}, {3, {2, 3, 4}}}, .low = {-3, 0.1}, .high = {0, 1}, .args = &(args_t){false}},
    {.in = {{0, {0}}, {0, {0}}}, .low = {-3, 0.1}, .high = {0, 1}, .args = &(args_t){false}},
    {.in = {{2, {0, 3}}, {2, {0, 3}}}, .low = {-3, 0.1}, .high = {0, 1}, .args = &(args_t){true}},
    {.in = {{2, {3, 1}}, {1, {3}}},
     .args = &(args_t){false},
     TN__FAILS(TN_ESHAPE,
               "kl_div: input [3, 1] and target [3] must have the same shape; tn_reshape or tn_expand one of them")},
};

const tn_op tn__op_kl_div = {TN__ROOM("kl_div", TN_WIDE),
                             .inputs = 2,
                             .saves = TN_SAVE_IN(0) | TN_SAVE_IN(1),
                             .saves_for = kl_div_saves_for,
                             .args_size = sizeof(args_t),
                             .infer = kl_div_infer,
                             .forward = kl_div_forward,
                             .backward_ops = kl_div_backward_ops};
TN__SAMPLES(kl_div, samples);

tn_tensor *tn_kl_div_run(tn_loss_args a)
{
    if (!tn__loss_options("kl_div", &a, TN__LOSS_LOG_TARGET | TN__LOSS_BATCHMEAN)) return NULL;
    if (a.batchmean && a.input && a.input->l.shape.n == 0)
        return tn_raise_null(TN_ESHAPE,
                             "kl_div: batchmean divides by the size of the first dim, and a 0-d input has none");
    const tn_scope s = tn_scope_begin();
    const args_t   args = {a.log_target};
    if (!tn__loss_types(&a.input, &a.target)) return tn_scope_return(s, NULL);
    tn_tensor *y = tn_apply_args(&tn__op_kl_div, &args, a.input, a.target);
    if (!a.batchmean || !y) return tn_scope_return(s, tn__loss_reduced(y, a.reduction));
    const int64_t batch = a.input->l.shape.d[0];
    y = tn_sum(y);
    return tn_scope_return(s, batch ? tn_div_scalar(y, (double)batch) : y);
}

#else /* ================================================================ kernels: contiguous, one real type */

static void TN__(kl_div_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *x = in[0], *t = in[1];
    TN__REAL       *y = out[0];
    if (((const args_t *)args)->log_target)
        for (int64_t i = 0; i < n; i++) y[i] = TN__M(exp)(t[i]) * (t[i] - x[i]);
    else
        for (int64_t i = 0; i < n; i++) y[i] = t[i] == 0 ? 0 : t[i] * (TN__M(log)(t[i]) - x[i]);
}
#endif
