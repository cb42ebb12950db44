/* attention_weights — w = softmax over the keys of scores + added, where masked scores have weight 0
 *
 *   gs = w · (gy - Σ gy·w), and 0 where w = 0, for any gy;  gadded = gs        (saves w only)
 *
 * Scores [..., T, S]; added (floating), attn_mask and padding (bool; true: masked) broadcast to them, or are absent.
 * causal: query t attends to keys 0 … past + t. window: only to keys less than `window` positions away. A sum of -inf
 * also counts as masked. Masked scores are skipped, not made small by addition: a NaN there is never read. A query
 * whose keys are all masked has weights 0 and gradient 0. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/attention_args.h"
#include "autograd/rooms/room.h"
#include "core/kernels/sum_lanes.h"
typedef tn__attention_weights_args args_t;
#define TN__TEMPLATE "autograd/ops/attention_weights.c"
#include "core/real.h"

static bool attention_weights_infer(tn_ctx *c)
{
    static const char *const name[] = {"scores", "added", "attn_mask", "padding"};
    const tn_shape           s = c->in[0]->l.shape;
    char                     text[192], scores[192];
    if (!tn__need_real(c, 0)) return false;
    if (s.n < 2)
        return tn_infer_fail(c, TN_ESHAPE, "scores must be [..., T, S], got %s",
                             tn_shape_text(s, scores, sizeof scores));
    for (int i = 1; i < 4; i++) {
        if (!c->in[i]) continue;
        if (i == 1 ? !tn__is_float(c->in[i]->dtype) : c->in[i]->dtype != TN_BOOL)
            return tn_infer_fail(c, TN_EDTYPE, "%s must be %s, got %s", name[i], i == 1 ? "floating" : "bool",
                                 tn_dtype_name(c->in[i]->dtype));
        if (!tn__broadcastable(c->in[i]->l.shape, s))
            return tn_infer_fail(c, TN_ESHAPE, "%s %s does not broadcast to scores %s", name[i],
                                 tn_shape_text(c->in[i]->l.shape, text, sizeof text),
                                 tn_shape_text(s, scores, sizeof scores));
    }
    return tn_infer_like(c, 0, 0);
}

static void attention_weights_forward(tn_ctx *c)
{
    const tn_shape shape = c->in[0]->l.shape;
    tn_scope       s = tn_scope_begin();
    tn_tensor      wide[4], *x[4], *last = NULL;
    const double   past = (double)TN_ARG(c, past);
    for (int i = 0; i < 4; i++) {
        if (!(x[i] = c->in[i])) continue;
        const tn__layout l = tn__layout_expand(&x[i]->l, shape);
        wide[i] = tn__stack_view(x[i], &l), x[i] = &wide[i];
    }
    if ((TN_ARG(c, causal) || TN_ARG(c, window)) &&
        (last = tn_arange_of(TN_I64, past, past + (double)shape.d[shape.n - 2],
                             1))) { /* the position of each query: [T, 1] */
        const tn__layout column = tn__layout_insert(last->l, 1);
        last = tn__alias(last, &column);
    }
    if (!tn__self.error)
        tn__rows(TN__REALS(attention_weights_fwd), -1, TN__LIST(c->out[0]), TN__LIST(x[0], x[1], x[2], x[3], last),
                 c->args);
    tn_scope_end(s);
}

static void attention_weights_backward(tn_back *b)
{
    tn_tensor *gx = tn_empty_like(b->gy[0]);
    if (!gx) return;
    tn__rows(TN__REALS(attention_weights_bwd), -1, TN__LIST(gx), TN__LIST(b->out[0], b->gy[0]), NULL);
    for (int i = 0; i < 2; i++)
        if (b->need[i]) b->gx[i] = gx;
}
static void attention_weights_backward_ops(tn_back *b)
{
    tn_tensor *w = b->out[0], *zero = tn_eq(w, tn_zeros_of(w->dtype, TN_SCALAR)),
              *gy = tn_masked_fill(b->gy[0], zero, 0);
    tn_tensor *gx = tn_mul(w, tn_sub(gy, tn_sum(tn_mul(gy, w), .dims = TN_DIMS(-1), .keepdim = true)));
    gx = tn_masked_fill(gx, zero, 0); /* even if the sum is NaN because of other keys */
    for (int i = 0; i < 2; i++)
        if (b->need[i]) b->gx[i] = gx;
}

#define CAUSAL(yes) \
    .args = &(args_t) { yes, 0, 0 }
/* clang-format off */
static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}}, .kind = {0, TN__ARG_ABSENT, TN__ARG_ABSENT, TN__ARG_ABSENT}, CAUSAL(false)},
    {.in = {{3, {2, 3, 5}}}, .kind = {0, TN__ARG_ABSENT, TN__ARG_ABSENT, TN__ARG_ABSENT}, CAUSAL(true)},
    {.in = {{3, {2, 4, 3}}, {2, {4, 3}}}, .kind = {0, 0, TN__ARG_ABSENT, TN__ARG_ABSENT}, CAUSAL(true)},
    {.in = {{3, {2, 2, 4}}, {1, {4}}, {2, {2, 4}}, {3, {2, 1, 4}}}, .kind = {0, 0, TN__ARG_MASK, TN__ARG_MASK},
     CAUSAL(false)},
    {.in = {{3, {2, 3, 3}}, {0}, {3, {2, 3, 3}}}, .kind = {0, TN__ARG_ABSENT, TN__ARG_MASK, TN__ARG_ABSENT},
     CAUSAL(true)},
    {.in = {{2, {2, 3}}}, .low = {80}, .high = {90}, .kind = {0, TN__ARG_ABSENT, TN__ARG_ABSENT, TN__ARG_ABSENT},
     CAUSAL(false)},
    {.in = {{3, {2, 4, 6}}}, .kind = {0, TN__ARG_ABSENT, TN__ARG_ABSENT, TN__ARG_ABSENT},
     .args = &(args_t){true, 2, 3}},
    {.in = {{3, {2, 4, 6}}}, .kind = {0, TN__ARG_ABSENT, TN__ARG_ABSENT, TN__ARG_ABSENT},
     .args = &(args_t){false, 0, 2}},
    {.in = {{2, {3, 1}}}, .kind = {0, TN__ARG_ABSENT, TN__ARG_ABSENT, TN__ARG_ABSENT}, CAUSAL(false)},
    {.in = {{2, {3, 0}}}, .kind = {0, TN__ARG_ABSENT, TN__ARG_ABSENT, TN__ARG_ABSENT}, CAUSAL(true)},
    {.in = {{3, {2, 0, 3}}}, .kind = {0, TN__ARG_ABSENT, TN__ARG_ABSENT, TN__ARG_ABSENT}, CAUSAL(true)},
    {.in = {{1, {3}}}, .kind = {0, TN__ARG_ABSENT, TN__ARG_ABSENT, TN__ARG_ABSENT}, CAUSAL(false),
     TN__FAILS(TN_ESHAPE, "attention_weights: scores must be [..., T, S], got [3]")},
    {.in = {{2, {2, 3}}, {2, {2, 2}}}, .kind = {0, 0, TN__ARG_ABSENT, TN__ARG_ABSENT}, CAUSAL(false),
     TN__FAILS(TN_ESHAPE, "attention_weights: added [2, 2] does not broadcast to scores [2, 3]")},
    {.in = {{2, {2, 3}}, {0}, {2, {2, 3}}}, .kind = {0, TN__ARG_ABSENT, 0, TN__ARG_ABSENT}, CAUSAL(false),
     TN__FAILS(TN_EDTYPE, "attention_weights: attn_mask must be bool, got f32")},
    {.in = {{2, {2, 3}}, {2, {2, 3}}}, .kind = {0, TN__ARG_MASK, TN__ARG_ABSENT, TN__ARG_ABSENT}, CAUSAL(false),
     TN__FAILS(TN_EDTYPE, "attention_weights: added must be floating, got bool")},
    {.in = {{2, {2, 3}}}, .kind = {TN__ARG_INT, TN__ARG_ABSENT, TN__ARG_ABSENT, TN__ARG_ABSENT}, CAUSAL(false),
     TN__FAILS(TN_EDTYPE, "attention_weights: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
};
/* clang-format on */

const tn_op tn__op_attention_weights = {TN__ROOM("attention_weights", TN_AS_IS),
                                        .inputs = 4,
                                        .optional = TN__IN(1) | TN__IN(2) | TN__IN(3),
                                        .args_size = sizeof(args_t),
                                        .saves = TN_SAVE_OUT(0),
                                        .infer = attention_weights_infer,
                                        .forward = attention_weights_forward,
                                        .backward = attention_weights_backward,
                                        .backward_ops = attention_weights_backward_ops};
TN__SAMPLES(attention_weights, samples);

#else /* =========================================================== kernels: contiguous rows, one real type */

static void TN__(attention_weights_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *x = in[0], *added = in[1], *attn_mask = in[2], *padding = in[3], none = -(TN__REAL)INFINITY;
    const tn__attention_weights_args *a = args;
    const int64_t *at = in[4], window = a->window ? a->window : INT64_MAX / 2, ahead = a->causal ? 0 : window - 1;
    TN__REAL      *y = out[0], max = none;
    bool           any = false;
    for (int64_t i = 0; i < n; i++) {
        const bool out_of_sight = (attn_mask && attn_mask[i] != 0) || (padding && padding[i] != 0) ||
                                  (at && (i > *at + ahead || i <= *at - window));
        y[i] = out_of_sight ? none : added && added[i] == none ? none : added ? x[i] + added[i] : x[i];
        if (y[i] != none) any = true;
        if (y[i] > max) max = y[i];
    }
    for (int64_t i = 0; i < n; i++) y[i] = y[i] == none ? 0 : TN__M(exp)(y[i] - max);
    if (!any) return;
    const double sum = TN__(tn__sum)(n, y);
    for (int64_t i = 0; i < n; i++) y[i] = y[i] == 0 ? 0 : (TN__REAL)((double)y[i] / sum);
}

static void TN__(attention_weights_bwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *w = in[0], *gy = in[1];
    TN__REAL       *gx = out[0];
    (void)args;
    for (int64_t i = 0; i < n; i++) gx[i] = w[i] == 0 ? 0 : gy[i];
    const TN__REAL dot = (TN__REAL)TN__(tn__dot)(n, w, gx);
    for (int64_t i = 0; i < n; i++) gx[i] = w[i] == 0 ? 0 : w[i] * (gx[i] - dot);
}
#endif
