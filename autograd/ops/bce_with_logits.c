/* bce_with_logits — binary cross-entropy of each pair, a logit x and a target probability t:
 *
 *   w ((1 - t) x + (1 + (v - 1) t) softplus(-x))        w: weight, v: pos_weight, else 1; softplus(z) = log(1 + eᶻ)
 *
 * then the mean or the sum. No logit overflows: softplus(-x) = log(1 + exp(-|x|)) + max(-x, 0).
 *
 *   gx = gy w ((1 - t) - (1 + (v - 1) t) σ(-x))        gt = gy w ((v - 1) softplus(-x) - x) */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/losses.h"
#define TN__TEMPLATE "autograd/ops/bce_with_logits.c"
#include "core/real.h"

static bool weights(const tn_ctx *c, int i, const char *name)
{
    const tn_tensor *w = c->in[i];
    char             a[192], b[192];
    if (!w) return true;
    if (!tn__need_real(c, i)) return false;
    if (!tn__broadcastable(w->l.shape, c->in[0]->l.shape))
        return tn_infer_fail(c, TN_ESHAPE, "%s %s does not broadcast to the input's %s", name,
                             tn_shape_text(w->l.shape, a, sizeof a), tn_shape_text(c->in[0]->l.shape, b, sizeof b));
    if (tn_needs_grad(w) && tn_grad_enabled())
        return tn_infer_fail(c, TN_EUNSUPPORTED, "%s requires grad, but has no gradient here; pass tn_detach(%s)", name,
                             name);
    return true;
}
static bool bce_with_logits_infer(tn_ctx *c)
{
    return tn__infer_pairs(c) && weights(c, 2, "weight") && weights(c, 3, "pos_weight");
}
static void bce_with_logits_forward(tn_ctx *c)
{
    tn__map(TN__REALS(bce_with_logits_fwd), TN__LIST(c->out[0]), TN__LIST(c->in[0], c->in[1], c->in[2], c->in[3]),
            NULL);
}

static tn_tensor *target_gradient(const tn_back *b)
{
    tn_tensor *x = b->in[0], *w = b->in[2], *v = b->in[3], *g = tn_neg(x);
    if (v) g = tn_sub(g, tn_mul(tn_add_scalar(v, -1), tn_logsigmoid(x))); /* softplus(-x) = -logsigmoid(x) */
    return tn_mul(w ? tn_mul(b->gy[0], w) : b->gy[0], g);
}
static void bce_with_logits_backward(tn_back *b)
{
    if (b->need[0] && (b->gx[0] = tn_empty_like(b->in[0])))
        tn__map(TN__REALS(bce_with_logits_bwd), TN__LIST(b->gx[0]),
                TN__LIST(b->in[0], b->in[1], b->in[2], b->in[3], b->gy[0]), NULL);
    if (b->need[1]) b->gx[1] = target_gradient(b);
}
static void bce_with_logits_backward_ops(tn_back *b)
{
    tn_tensor *x = b->in[0], *t = b->in[1], *w = b->in[2], *v = b->in[3], *g;
    if (b->need[0]) {
        g = tn_sigmoid(tn_neg(x));
        if (v) g = tn_mul(g, tn_add_scalar(tn_mul(tn_add_scalar(v, -1), t), 1));
        g = tn_sub(tn_rsub_scalar(t, 1), g);
        b->gx[0] = tn_mul(w ? tn_mul(b->gy[0], w) : b->gy[0], g);
    }
    if (b->need[1]) b->gx[1] = target_gradient(b);
}

#define KIND(w, v) .kind = {0, 0, w, v}, .low = {-3, 0, 0.1, 0.5}, .high = {3, 1, 1, 3}
/* clang-format off */
static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}, {2, {3, 4}}}, KIND(TN__ARG_ABSENT, TN__ARG_ABSENT)},
    {.in = {{2, {3, 4}}, {2, {3, 4}}, {2, {3, 1}}, {1, {4}}}, KIND(TN__ARG_CONST, TN__ARG_CONST)},
    {.in = {{2, {3, 4}}, {2, {3, 4}}, {2, {3, 4}}}, KIND(TN__ARG_CONST, TN__ARG_ABSENT)},
    {.in = {{0, {0}}, {0, {0}}, {0, {0}}, {0, {0}}}, KIND(TN__ARG_ABSENT, TN__ARG_CONST)},
    {.in = {{2, {2, 3}}, {2, {2, 3}}}, .kind = {0, 0, TN__ARG_ABSENT, TN__ARG_ABSENT}, .low = {-1e4}, .high = {1e4, 1},
     .flat_kink = true},
    {.in = {{2, {0, 3}}, {2, {0, 3}}}, KIND(TN__ARG_ABSENT, TN__ARG_ABSENT)},
    {.in = {{2, {3, 1}}, {1, {3}}}, KIND(TN__ARG_ABSENT, TN__ARG_ABSENT), TN__FAILS( TN_ESHAPE,
     "bce_with_logits: input [3, 1] and target [3] must have the same shape; tn_reshape or tn_expand one of them")},
    {.in = {{1, {3}}, {1, {3}}, {1, {4}}}, KIND(TN__ARG_CONST, TN__ARG_ABSENT),
     TN__FAILS(TN_ESHAPE, "bce_with_logits: weight [4] does not broadcast to the input's [3]")},
    {.in = {{1, {3}}, {1, {3}}, {0, {0}}, {1, {3}}}, .kind = {0, 0, TN__ARG_ABSENT, TN__ARG_REAL},
     TN__FAILS(TN_EUNSUPPORTED,
     "bce_with_logits: pos_weight requires grad, but has no gradient here; pass tn_detach(pos_weight)")},
};
/* clang-format on */

const tn_op tn__op_bce_with_logits = {
    TN__ROOM("bce_with_logits", TN_WIDE), .inputs = 4,
    .optional = TN__IN(2) | TN__IN(3),    .saves = TN_SAVE_IN(0) | TN_SAVE_IN(1) | TN_SAVE_IN(2) | TN_SAVE_IN(3),
    .infer = bce_with_logits_infer,       .forward = bce_with_logits_forward,
    .backward = bce_with_logits_backward, .backward_ops = bce_with_logits_backward_ops};
TN__SAMPLES(bce_with_logits, samples);

tn_tensor *tn_bce_with_logits_run(tn_loss_args a)
{
    if (!tn__loss_options("bce_with_logits", &a, TN__LOSS_WEIGHTS)) return NULL;
    const tn_scope s = tn_scope_begin();
    if (!tn__loss_types(&a.input, &a.target)) return tn_scope_return(s, NULL);
    tn_tensor *y = tn_apply(&tn__op_bce_with_logits, a.input, a.target, a.weight, a.pos_weight);
    return tn_scope_return(s, tn__loss_reduced(y, a.reduction));
}

#else /* ================================================================ kernels: contiguous, one real type */

static void TN__(bce_with_logits_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *x = in[0], *t = in[1], *w = in[2], *v = in[3];
    TN__REAL       *y = out[0];
    (void)args;
    for (int64_t i = 0; i < n; i++) {
        const TN__REAL plus = TN__M(log1p)(TN__M(exp)(-TN__M(fabs)(x[i]))) + (x[i] < 0 ? -x[i] : 0);
        y[i] = (1 - t[i]) * x[i] + (v ? 1 + (v[i] - 1) * t[i] : 1) * plus;
    }
    for (int64_t i = 0; w && i < n; i++) y[i] *= w[i];
}

static void TN__(bce_with_logits_bwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *x = in[0], *t = in[1], *w = in[2], *v = in[3], *gy = in[4];
    TN__REAL       *gx = out[0];
    (void)args;
    for (int64_t i = 0; i < n; i++) {
        const TN__REAL e = TN__M(exp)(-TN__M(fabs)(x[i])), other = (x[i] < 0 ? 1 : e) / (1 + e); /* σ(-x) */
        gx[i] = gy[i] * ((1 - t[i]) - (v ? 1 + (v[i] - 1) * t[i] : 1) * other);
    }
    for (int64_t i = 0; w && i < n; i++) gx[i] *= w[i];
}
#endif
