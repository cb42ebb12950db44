/* huber_loss — of each pair, with d = a - b: d² / 2 up to |d| = δ, and the straight line δ (|d| - δ / 2) beyond; then
 * the mean or the sum
 *
 *   ga = gy · d with d clamped to ±δ;  gb = -ga */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/losses.h"
typedef struct {
    double delta;
} args_t;
#define TN__TEMPLATE "autograd/ops/huber_loss.c"
#include "core/real.h"

static bool huber_loss_infer(tn_ctx *c)
{
    if (!tn__infer_pairs(c)) return false;
    if (TN_ARG(c, delta) > 0) return true;
    return tn_infer_fail(c, TN_EINVAL, "delta is %g, but must be positive", TN_ARG(c, delta));
}
static void huber_loss_forward(tn_ctx *c)
{
    tn__map(TN__REALS(huber_loss_fwd), TN__LIST(c->out[0]), TN__LIST(c->in[0], c->in[1]), c->args);
}
static void huber_loss_backward(tn_back *b)
{
    tn_tensor *g = tn_empty_like(b->gy[0]);
    if (g) tn__map(TN__REALS(huber_loss_bwd), TN__LIST(g), TN__LIST(b->in[0], b->in[1], b->gy[0]), b->args);
    if (b->need[0]) b->gx[0] = g;
    if (b->need[1]) b->gx[1] = tn_neg(g);
}
static void huber_loss_backward_ops(tn_back *b)
{
    const double delta = TN_ARG(b, delta);
    tn_tensor   *g = tn_mul(b->gy[0], tn_clamp(tn_sub(b->in[0], b->in[1]), -delta, delta));
    if (b->need[0]) b->gx[0] = g;
    if (b->need[1]) b->gx[1] = tn_neg(g);
}

/* clang-format off */
static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}, {2, {3, 4}}}, .args = &(args_t){5}},
    {.in = {{2, {3, 4}}, {2, {3, 4}}}, .args = &(args_t){0.5}, .low = {0, 1.6}, .high = {1, 3}},
    {.in = {{3, {2, 3, 4}}, {3, {2, 3, 4}}}, .args = &(args_t){0.5}, .low = {2, 0}, .high = {3, 1.4}},
    {.in = {{3, {2, 1, 4}}, {3, {2, 1, 4}}}, .args = &(args_t){6}},
    {.in = {{0, {0}}, {0, {0}}}, .args = &(args_t){7}},
    {.in = {{2, {0, 3}}, {2, {0, 3}}}, .args = &(args_t){1}},
    {.in = {{1, {3}}, {1, {3}}}, .args = &(args_t){-1},
     TN__FAILS(TN_EINVAL, "huber_loss: delta is -1, but must be positive")},
    {.in = {{2, {3, 1}}, {1, {3}}}, .args = &(args_t){1}, TN__FAILS( TN_ESHAPE,
     "huber_loss: input [3, 1] and target [3] must have the same shape; tn_reshape or tn_expand one of them")},
};
/* clang-format on */

const tn_op tn__op_huber_loss = {TN__ROOM("huber_loss", TN_WIDE),
                                 .inputs = 2,
                                 .saves = TN_SAVE_IN(0) | TN_SAVE_IN(1),
                                 .args_size = sizeof(args_t),
                                 .infer = huber_loss_infer,
                                 .forward = huber_loss_forward,
                                 .backward = huber_loss_backward,
                                 .backward_ops = huber_loss_backward_ops};
TN__SAMPLES(huber_loss, samples);

tn_tensor *tn_smooth_l1_loss(tn_tensor *input, tn_tensor *target, double beta, tn_reduction reduction)
{
    tn_loss_args a = {TN_LOSS_ARGS_DEFAULTS, .input = input, .target = target, .reduction = reduction};
    if (tn__blocked()) return NULL;
    if (!(beta >= 0 && beta < INFINITY))
        return tn_raise_null(TN_EINVAL, "smooth_l1_loss: beta is %g, but must be finite and not negative", beta);
    if (beta == 0) return tn_l1_loss_run(a);
    a.delta = beta;
    const tn_scope s = tn_scope_begin();
    return tn_scope_return(s, tn_div_scalar(tn_huber_loss_run(a), beta));
}
tn_tensor *tn_huber_loss_run(tn_loss_args a)
{
    if (!tn__loss_options("huber_loss", &a, TN__LOSS_DELTA)) return NULL;
    const tn_scope s = tn_scope_begin();
    const args_t   args = {a.delta};
    if (!tn__loss_types(&a.input, &a.target)) return tn_scope_return(s, NULL);
    return tn_scope_return(s,
                           tn__loss_reduced(tn_apply_args(&tn__op_huber_loss, &args, a.input, a.target), a.reduction));
}

#else /* ================================================================ kernels: contiguous, one real type */

static void TN__(huber_loss_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *a = in[0], *b = in[1], delta = (TN__REAL)((const args_t *)args)->delta;
    TN__REAL       *y = out[0];
    for (int64_t i = 0; i < n; i++) {
        const TN__REAL d = TN__M(fabs)(a[i] - b[i]), near = d <= delta ? d : delta; /* d keeps a NaN */
        y[i] = near * (d - (TN__REAL)0.5 * near);
    }
}

static void TN__(huber_loss_bwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *a = in[0], *b = in[1], *gy = in[2], delta = (TN__REAL)((const args_t *)args)->delta;
    TN__REAL       *g = out[0];
    for (int64_t i = 0; i < n; i++) {
        const TN__REAL d = a[i] - b[i];
        g[i] = gy[i] * (d > delta ? delta : d < -delta ? -delta : d);
    }
}
#endif
