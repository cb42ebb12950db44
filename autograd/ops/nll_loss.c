/* nll_loss — the loss of a target class t, given log-probabilities x: -w_t x_t
 *
 *   gx_c = -s w_t at c = t, else 0        s: gy, for the mean gy / the sum of the w_t
 *
 * If all targets are ignored, the loss and the gradient are 0. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/losses.h"
typedef tn__class_args args_t;
typedef struct {
    const args_t *a;
    int64_t       classes;
} kernel_args;
#define TN__TEMPLATE "autograd/ops/nll_loss.c"
#include "core/real.h"

static bool nll_loss_infer(tn_ctx *c)
{
    if (TN_ARG(c, smoothing) != 0)
        return tn_infer_fail(c, TN_EINVAL, "does not support label smoothing; use cross_entropy, on logits");
    return tn__infer_classes(c, false);
}
static void nll_loss_forward(tn_ctx *c)
{
    const args_t   *a = c->args;
    tn__class_views v;
    tn__class_sum   sums;
    tn__class_view(&v, c->in, c->in[0]->l.shape, a->dim, a->reduction == TN_NONE ? c->out[0] : NULL);
    tn__rows_sums(TN__REALS(nll_loss_fwd), a->dim, TN__LIST(v.column), TN__LIST(tn__class_sums(&sums)),
                  TN__LIST(c->in[0], v.target, v.weight), a);
    if (!tn_error()) tn__class_results(&sums, a->reduction, c->out[0], c->out[1], c->out[2]);
}

/* The gradient of x; if gy is NULL, its factor of gy. */
static tn_tensor *nll_loss_slope(const tn_back *b, const tn_tensor *gy)
{
    const args_t     *a = b->args;
    const tn_shape    x = b->in_shape[0];
    const kernel_args k = {a, x.d[a->dim < 0 ? a->dim + x.n : a->dim]};
    tn_tensor        *y = tn_empty_of(b->in_dtype[0], x);
    tn__class_views   v;
    tn__class_view(&v, b->in, x, a->dim, gy);
    if (y)
        tn__rows(TN__REALS(nll_loss_bwd), a->dim, TN__LIST(y), TN__LIST(v.target, v.weight, b->out[1], v.column), &k);
    return y;
}
static void nll_loss_backward(tn_back *b)
{
    if (b->gy[0] && b->need[0]) b->gx[0] = nll_loss_slope(b, b->gy[0]);
}
static void nll_loss_backward_ops(tn_back *b)
{
    tn_tensor *gy = b->gy[0];
    if (!gy || !b->need[0]) return;
    if (TN_ARG(b, reduction) == TN_NONE)
        gy = tn_unsqueeze(gy, TN_ARG(b, dim) < 0 ? TN_ARG(b, dim) + b->in_shape[0].n : TN_ARG(b, dim));
    b->gx[0] = tn_mul(gy, nll_loss_slope(b, NULL));
}

#define CLASSES .kind = {0, TN__ARG_INDEX, TN__ARG_ABSENT}
#define WEIGHTED .kind = {0, TN__ARG_INDEX, TN__ARG_CONST}, .low = {-2, 0, 0.1}
#define ARGS(...) \
    .args = &(args_t) { __VA_ARGS__ }
/* clang-format off */
static const tn__sample samples[] = {
    /* ignore_index -8: all ignored */
    {.in = {{2, {4, 5}}, {1, {4}}}, CLASSES, .high = {2, 5}, .low = {-2}, ARGS(-100, 0, TN_MEAN, -1)},
    {.in = {{2, {4, 5}}, {1, {4}}, {1, {5}}}, WEIGHTED, .high = {2, 5, 2}, ARGS(2, 0, TN_MEAN, -1)},
    {.in = {{3, {2, 3, 4}}, {2, {2, 4}}, {1, {3}}}, WEIGHTED, .high = {2, 3, 2}, ARGS(1, 0, TN_NONE, 1)},
    {.in = {{3, {2, 3, 4}}, {2, {2, 3}}}, CLASSES, .high = {2, 4}, .low = {-2}, ARGS(-100, 0, TN_SUM, -1)},
    {.in = {{1, {4}}, {0, {0}}}, CLASSES, .high = {2, 4}, .low = {-2}, ARGS(-100, 0, TN_MEAN, -1)},
    {.in = {{2, {3, 1}}, {1, {3}}}, CLASSES, .high = {2, 1}, .low = {-2}, ARGS(-100, 0, TN_SUM, 1)},
    {.in = {{2, {3, 4}}, {1, {3}}}, CLASSES, .high = {2, -7}, .low = {-2, -8}, ARGS(-8, 0, TN_MEAN, -1)},
    {.in = {{2, {0, 4}}, {1, {0}}}, CLASSES, .high = {2, 4}, .low = {-2}, ARGS(-100, 0, TN_NONE, -1)},
    {.in = {{3, {1, 3, 2}}, {2, {1, 2}}}, CLASSES, .high = {2, 4}, .low = {-2, 3}, ARGS(-1, 0, TN_MEAN, 1),
     TN__FAILS(TN_EINDEX, "nll_loss: target 3 at [0, 0] is outside 0…2 and is not ignore_index -1")},
    {.in = {{2, {2, 3}}, {2, {2, 3}}}, .kind = {0, TN__ARG_REAL, TN__ARG_ABSENT}, ARGS(-100, 0, TN_MEAN, -1),
     TN__FAILS(TN_EDTYPE, "nll_loss: the target must be i64 or i32 (class indices); got f32")},
    {.in = {{2, {2, 3}}, {1, {2}}}, CLASSES, .high = {2, 3}, .low = {-2}, ARGS(-100, 0.1, TN_MEAN, -1),
     TN__FAILS(TN_EINVAL, "nll_loss: does not support label smoothing; use cross_entropy, on logits")},
    {.in = {{2, {2, 3}}, {1, {2}}}, CLASSES, .high = {2, 3}, .low = {-2}, ARGS(-100, 0, TN_MEAN, 2),
     TN__FAILS(TN_EINDEX, "nll_loss: dim 2 is out of range for a 2-d tensor")},
};
/* clang-format on */

const tn_op tn__op_nll_loss = {TN__ROOM("nll_loss", TN_WIDE),
                               .inputs = TN__CLASS_INPUTS,
                               .outputs = 3,
                               .optional = TN__IN(TN__CLASS_WEIGHT),
                               .saves = TN_SAVE_IN(1) | TN_SAVE_IN(2) | TN_SAVE_OUT(1),
                               .args_size = sizeof(args_t),
                               .infer = nll_loss_infer,
                               .forward = nll_loss_forward,
                               .backward = nll_loss_backward,
                               .backward_ops = nll_loss_backward_ops};
TN__SAMPLES(nll_loss, samples);

tn_tensor *tn_nll_loss_run(tn_cross_entropy_args a)
{
    return tn__class_loss(&tn__op_nll_loss, (tn__class_args){.smoothing = a.label_smoothing}, a, 3);
}

#else /* =========================================================== kernels: contiguous rows, one real type */

static void TN__(nll_loss_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *x = in[0], *w = in[2];
    const int64_t   t = *(const int64_t *)in[1];
    TN__REAL       *loss = out[0];
    double         *sums = out[1];
    (void)n;
    if (loss) *loss = 0;
    if (t == ((const args_t *)args)->ignore) return;
    const double weight = w ? (double)w[t] : 1, l = -weight * (double)x[t];
    if (loss) *loss = (TN__REAL)l;
    sums[0] += l, sums[1] += weight, sums[2] += 1;
}

static void TN__(nll_loss_bwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const int64_t      t = *(const int64_t *)in[0];
    const TN__REAL    *w = in[1], *divisor = in[2], *gy = in[3];
    const kernel_args *k = args;
    TN__REAL          *gx = out[0];
    (void)n; /* the target's length */
    for (int64_t c = 0; c < k->classes; c++) gx[c] = 0;
    if (t == k->a->ignore) return;
    gx[t] = -(w ? w[t] : 1) * (gy ? *gy : 1);
    if (k->a->reduction == TN_MEAN) gx[t] = *divisor != 0 ? gx[t] / *divisor : 0;
}
#endif
