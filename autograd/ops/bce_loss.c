/* bce_loss — binary cross-entropy of each pair, a probability x and a target t: -(t log x + (1 - t) log(1 - x)), with
 * logarithms of at least -100; then the mean or the sum
 *
 *   gx = gy (x - t) / max(x (1 - x), 1e-12)        gt = gy (log(1 - x) - log x)
 *
 * For logits, bce_with_logits is more exact. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/losses.h"
#define TN__TEMPLATE "autograd/ops/bce_loss.c"
#include "core/real.h"

static bool bce_loss_infer(tn_ctx *c)
{
    const tn_tensor *x = c->in[0];
    char             text[192];
    if (!tn__infer_pairs(c)) return false;
    for (int64_t i = 0, n = tn_numel(x); i < n; i++) {
        const double v = tn_get(x, i);
        if (!(v < 0 || v > 1)) continue; /* NaN gives NaN */
        return tn_infer_fail(c, TN_EINVAL, "input %g at %s is not a probability; for logits use tn_bce_with_logits", v,
                             tn__position_text(x->l.shape, i, text, sizeof text));
    }
    return true;
}
static void bce_loss_forward(tn_ctx *c)
{
    tn__map(TN__REALS(bce_loss_fwd), TN__LIST(c->out[0]), TN__LIST(c->in[0], c->in[1]), NULL);
}
static void bce_loss_backward_ops(tn_back *b)
{
    tn_tensor *x = b->in[0], *rest = tn_rsub_scalar(x, 1);
    if (b->need[0])
        b->gx[0] = tn_mul(b->gy[0], tn_div(tn_sub(x, b->in[1]), tn_clamp(tn_mul(x, rest), 1e-12, INFINITY)));
    if (b->need[1]) {
        tn_tensor *low = tn_clamp(tn_log(x), -100, INFINITY), *high = tn_clamp(tn_log1p(tn_neg(x)), -100, INFINITY);
        b->gx[1] = tn_mul(b->gy[0], tn_sub(high, low));
    }
}

/* clang-format off */
static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}, {2, {3, 4}}}, .low = {0.1, 0}, .high = {0.9, 1}},
    {.in = {{3, {2, 3, 4}}, {3, {2, 3, 4}}}, .low = {0.2, 0}, .high = {0.6, 1}},
    {.in = {{0, {0}}, {0, {0}}}, .low = {0.1, 0}, .high = {0.9, 1}},
    {.in = {{2, {0, 3}}, {2, {0, 3}}}},
    {.in = {{1, {2}}, {1, {2}}}, .low = {2}, .high = {2, 1},
     TN__FAILS(TN_EINVAL, "bce_loss: input 2 at [0] is not a probability; for logits use tn_bce_with_logits")},
    {.in = {{2, {3, 1}}, {1, {3}}}, TN__FAILS(TN_ESHAPE,
     "bce_loss: input [3, 1] and target [3] must have the same shape; tn_reshape or tn_expand one of them")},
};
/* clang-format on */

const tn_op tn__op_bce_loss = {TN__ROOM("bce_loss", TN_WIDE),
                               .inputs = 2,
                               .saves = TN_SAVE_IN(0) | TN_SAVE_IN(1),
                               .infer = bce_loss_infer,
                               .forward = bce_loss_forward,
                               .backward_ops = bce_loss_backward_ops};
TN__SAMPLES(bce_loss, samples);

tn_tensor *tn_bce_loss(tn_tensor *input, tn_tensor *target, tn_tensor *weight, tn_reduction reduction)
{
    const tn_loss_args options = {TN_LOSS_ARGS_DEFAULTS, .reduction = reduction};
    if (!tn__loss_options("bce_loss", &options, 0)) return NULL;
    const tn_scope s = tn_scope_begin();
    tn_tensor     *y = tn__binary(&tn__op_bce_loss, input, target, true);
    if (y && weight) {
        char a[192], b[192];
        if (!tn__broadcastable(weight->l.shape, y->l.shape))
            tn_raise(TN_ESHAPE, "bce_loss: weight %s does not broadcast to the input's %s",
                     tn_shape_text(weight->l.shape, a, sizeof a), tn_shape_text(y->l.shape, b, sizeof b));
        y = tn_mul(y, weight);
    }
    return tn_scope_return(s, tn__loss_reduced(y, reduction));
}

#else /* ================================================================ kernels: contiguous, one real type */

static void TN__(bce_loss_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *x = in[0], *t = in[1];
    TN__REAL       *y = out[0];
    (void)args;
    for (int64_t i = 0; i < n; i++) {
        const double low = tn__libm_log((double)x[i]), high = tn__libm_log1p(-(double)x[i]);
        y[i] = (TN__REAL)((t[i] - 1) * (high < -100 ? -100 : high) - t[i] * (low < -100 ? -100 : low));
    }
}
#endif
