/* prelu — x, and weight · x for x below 0, with one weight or one for each channel (dim 1); made of where
 *
 *   gx = gy, gy · weight below 0        gweight = the sum of gy · x below 0
 *
 * The product is computed at 0 where x > 0: a NaN weight or an infinite x, although not used, would make the gradients
 * NaN. */
#include "autograd/rooms/room.h"

static bool prelu_infer(tn_ctx *c)
{
    const tn_tensor *x = c->in[0], *w = c->in[1];
    char             a[192], b[192];
    if (!tn__need_real(c, 0) || !tn__need_real(c, 1)) return false;
    const int64_t channels = x->l.shape.n > 1 ? x->l.shape.d[1] : 1, n = tn_numel(w);
    if (w->l.shape.n > 1 || (n != 1 && n != channels))
        return tn_infer_fail(c, TN_ESHAPE,
                             "weight %s does not fit x %s: it must have 1 element, or %lld, one for each "
                             "channel",
                             tn_shape_text(w->l.shape, a, sizeof a), tn_shape_text(x->l.shape, b, sizeof b),
                             (long long)channels);
    return true;
}
static void prelu_compose(tn_ctx *c)
{
    tn_tensor *x = c->in[0], *w = c->in[1];
    tn_shape   s = {.n = x->l.shape.n};
    for (int i = 0; i < s.n; i++) s.d[i] = i == 1 ? tn_numel(w) : 1;
    w = tn_reshape(w, s.n > 1 ? s : (tn_shape){.n = 0});
    tn_tensor *above = tn_gt(x, tn_scalar(0));
    c->out[0] = tn_where(above, x, tn_mul(w, tn_masked_fill(x, above, 0)));
}

static const tn__sample samples[] = {
    {.in = {{3, {2, 3, 4}}, {1, {3}}}},
    {.in = {{2, {4, 5}}, {1, {1}}}},
    {.in = {{1, {6}}, {0, {0}}}},
    {.in = {{4, {2, 3, 1, 2}}, {1, {3}}}},
    {.in = {{0, {0}}, {1, {1}}}},
    {.in = {{3, {0, 3, 2}}, {1, {3}}}},
    {.in = {{3, {2, 3, 4}}, {1, {4}}},
     TN__FAILS(TN_ESHAPE,
               "prelu: weight [4] does not fit x [2, 3, 4]: it must have 1 element, or 3, one for each channel")},
    {.in = {{1, {4}}, {1, {1}}},
     .kind = {TN__ARG_INT},
     TN__FAILS(TN_EDTYPE, "prelu: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
};

const tn_op tn__op_prelu = {TN__ROOM("prelu", TN_JOIN), .inputs = 2, .infer = prelu_infer, .compose = prelu_compose};
TN__SAMPLES(prelu, samples);

tn_tensor *tn_prelu(tn_tensor *x, tn_tensor *weight) { return tn_apply(&tn__op_prelu, x, weight); }
