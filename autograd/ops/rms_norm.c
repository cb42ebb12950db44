/* rms_norm — y = x / √(mean(x²) + eps) · weight over the last dims: those of weight, or one
 *
 *   With r = 1 / √(mean(x²) + eps), x̂ = x r and g = gy · weight, means over the same dims:
 *   gx = r (g - x̂ · mean(g x̂))        gweight = Σ gy x̂        (over the rows)
 *
 * r is a hidden second result for the backward. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"

typedef struct {
    double eps;
} args_t;
#define TN__TEMPLATE "autograd/ops/rms_norm.c"
#include "core/real.h"

static bool rms_norm_infer(tn_ctx *c) { return tn__infer_real(c) && tn__infer_norm(c, 1, -1, TN_ARG(c, eps), 1, 1); }
static void rms_norm_forward(tn_ctx *c)
{
    const tn_scope           s = tn_no_grad_begin();
    const int                k = c->in[0]->l.shape.n - c->out[1]->l.shape.n + 1;
    tn_tensor               *x = tn__joined(c->in[0], k), *w = tn__joined(c->in[1], k), *y = tn__joined(c->out[0], k);
    const tn__norm_arguments a = tn__norm_args(TN_ARG(c, eps), 2, c->in[0]);
    if (!tn_error()) tn__rows(TN__REALS(rms_norm_fwd), -1, TN__LIST(y, c->out[1]), TN__LIST(x, w), &a);
    tn_scope_end(s);
}

static unsigned rms_norm_saves_for(const bool *need)
{
    return (need[0] || need[1] ? TN_SAVE_IN(0) : 0) | (need[0] ? TN_SAVE_IN(1) : 0);
}
static void rms_norm_backward(tn_back *b)
{
    const int k = b->in_shape[0].n - b->out[1]->l.shape.n + 1;
    for (int i = 0; i < 2; i++)
        if (b->need[i]) b->gx[i] = tn_empty_of(b->in_dtype[i], b->in_shape[i]);
    tn_tensor               *x = tn__joined(b->in[0], k), *w = b->need[0] ? tn__joined(b->in[1], k) : NULL;
    tn_tensor               *gy = tn__joined(b->gy[0], k), *gx = tn__joined(b->gx[0], k);
    const tn__norm_arguments a = tn__norm_args(0, 3, b->gx[0]);
    if (!tn_error())
        tn__rows_columns(TN__REALS_AT(rms_norm_bwd), -1, TN__LIST(gx), TN__LIST(b->gx[1]),
                         TN__LIST(gy, x, b->out[1], w), &a);
}
static void rms_norm_backward_ops(tn_back *b)
{
    tn_tensor *gy = b->gy[0], *x = b->in[0];
    tn_dims    dims = {.n = b->in_shape[0].n - b->out[1]->l.shape.n + 1};
    for (int i = 0; i < dims.n; i++) dims.d[i] = -1 - i;
    tn_tensor *r = tn_rsqrt(tn_add_scalar(tn_mean(tn_square(x), .dims = dims, .keepdim = true), TN_ARG(b, eps)));
    tn_tensor *normed = tn_mul(x, r), *g = b->need[0] && b->in[1] ? tn_mul(gy, b->in[1]) : gy;
    if (b->need[1]) b->gx[1] = tn_mul(gy, normed);
    if (b->need[0])
        b->gx[0] = tn_mul(r, tn_sub(g, tn_mul(normed, tn_mean(tn_mul(g, normed), .dims = dims, .keepdim = true))));
}

/* clang-format off */
static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}, {1, {4}}}, .args = &(args_t){1e-5}},
    {.in = {{3, {2, 3, 4}}, {2, {3, 4}}}, .args = &(args_t){1e-5}},
    {.in = {{2, {3, 5}}}, .kind = {[1] = TN__ARG_ABSENT}, .args = &(args_t){1e-3}},
    {.in = {{2, {2, 17}}, {1, {17}}}, .args = &(args_t){1e-12}},
    {.in = {{2, {3, 1}}, {1, {1}}}, .args = &(args_t){0.5}},
    {.in = {{2, {0, 3}}, {1, {3}}}, .args = &(args_t){1e-5}},
    {.in = {{2, {3, 0}}, {1, {0}}}, .args = &(args_t){1e-5}},
    {.in = {{2, {3, 4}}, {1, {5}}}, .args = &(args_t){1e-5}, TN__FAILS(TN_ESHAPE,
     "rms_norm: weight [5] must have the shape of the last dims of [3, 4], over which it normalises")},
    {.in = {{0, {0}}}, .kind = {[1] = TN__ARG_ABSENT}, .args = &(args_t){1e-5},
     TN__FAILS(TN_ESHAPE, "rms_norm: a 0-d tensor has no dim to normalise over")},
    {.in = {{1, {4}}}, .kind = {[1] = TN__ARG_ABSENT}, .args = &(args_t){-1},
     TN__FAILS(TN_EINVAL, "rms_norm: eps is -1, but must not be negative")},
    {.in = {{1, {4}}}, .kind = {TN__ARG_INT, TN__ARG_ABSENT}, .args = &(args_t){1},
     TN__FAILS(TN_EDTYPE, "rms_norm: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
};
/* clang-format on */

const tn_op tn__op_rms_norm = {TN__ROOM("rms_norm", TN_AS_IS),
                               .inputs = 2,
                               .outputs = 2,
                               .optional = TN__IN(1),
                               .saves = TN_SAVE_IN(0) | TN_SAVE_IN(1) | TN_SAVE_OUT(1),
                               .saves_for = rms_norm_saves_for,
                               .args_size = sizeof(args_t),
                               .infer = rms_norm_infer,
                               .forward = rms_norm_forward,
                               .backward = rms_norm_backward,
                               .backward_ops = rms_norm_backward_ops};
TN__SAMPLES(rms_norm, samples);

tn_tensor *tn_rms_norm_run(tn_tensor *x, tn_tensor *weight, double eps)
{
    tn_tensor *out[2];
    tn_op_call(&tn__op_rms_norm, 2, (tn_tensor *[]){x, weight}, 2, out, &(args_t){eps});
    return out[0];
}

#else /* =========================================================== kernels: contiguous rows, one real type */

static void TN__(rms_norm_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const tn__norm_arguments *a = args;
    TN__REAL                  stat[3];
    const TN__(tn__norm_row) row = {out[0], stat, in[0], in[1], NULL, a->eps, true, a->stream};
    tn__kernels()->TN__(rows)->norm(n, &row);
    *(TN__REAL *)out[1] = stat[2];
}

static void TN__(rms_norm_bwd)(int64_t row, int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL            stat[3] = {0, 0, *(const TN__REAL *)in[2]};
    const tn__norm_arguments *a = args;
    const TN__(tn__norm_back_row) s = {out[0], out[1], NULL, in[0], in[1], in[3], stat, true, a->stream};
    (void)row;
    tn__kernels()->TN__(rows)->norm_back(n, &s);
}
#endif
