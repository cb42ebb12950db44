/* layer_norm — y = (x - mean) / √(var + eps) · weight + bias over the last dims: those of weight or bias, or one
 *
 *   With r = 1 / √(var + eps), x̂ = (x - mean) r and g = gy · weight, means over the same dims:
 *   gx = r (g - mean(g) - x̂ · mean(g x̂))        gweight = Σ gy x̂        gbias = Σ gy        (sums over the rows)
 *
 * The variance is computed from the differences to the mean. A row's statistics are a hidden second result for the
 * backward: the mean as two values, itself and its rounding error, and r. So a large mean loses no digits. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
typedef struct {
    double eps;
} args_t;
#define TN__TEMPLATE "autograd/ops/layer_norm.c"
#include "core/real.h"

static bool layer_norm_infer(tn_ctx *c) { return tn__infer_real(c) && tn__infer_norm(c, 1, 2, TN_ARG(c, eps), 1, 3); }
static void layer_norm_forward(tn_ctx *c)
{
    const tn_scope           s = tn_no_grad_begin();
    const int                k = c->in[0]->l.shape.n - c->out[1]->l.shape.n + 1;
    tn_tensor               *x = tn__joined(c->in[0], k), *w = tn__joined(c->in[1], k), *bias = tn__joined(c->in[2], k);
    tn_tensor               *y = tn__joined(c->out[0], k);
    const tn__norm_arguments a = tn__norm_args(TN_ARG(c, eps), 2, c->in[0]);
    if (!tn_error()) tn__rows(TN__REALS(layer_norm_fwd), -1, TN__LIST(y, c->out[1]), TN__LIST(x, w, bias), &a);
    tn_scope_end(s);
}

static unsigned layer_norm_saves_for(const bool *need)
{
    return (need[0] || need[1] ? TN_SAVE_IN(0) : 0) | (need[0] ? TN_SAVE_IN(1) : 0);
}
static void layer_norm_backward(tn_back *b)
{
    const int k = b->in_shape[0].n - b->out[1]->l.shape.n + 1;
    for (int i = 0; i < 3; i++)
        if (b->need[i]) b->gx[i] = tn_empty_of(b->in_dtype[i], b->in_shape[i]);
    tn_tensor               *x = tn__joined(b->in[0], k), *w = b->need[0] ? tn__joined(b->in[1], k) : NULL;
    tn_tensor               *gy = tn__joined(b->gy[0], k), *gx = tn__joined(b->gx[0], k);
    const tn__norm_arguments a = tn__norm_args(0, 3, b->gx[0]);
    if (!tn_error())
        tn__rows_columns(TN__REALS_AT(layer_norm_bwd), -1, TN__LIST(gx), TN__LIST(b->gx[1], b->gx[2]),
                         TN__LIST(gy, x, b->out[1], w), &a);
}
static void layer_norm_backward_ops(tn_back *b)
{
    const int dims = b->in_shape[0].n - b->out[1]->l.shape.n + 1;
    if (b->need[2]) b->gx[2] = b->gy[0];
    if (b->in[0])
        tn__layer_norm_ops(b->in[0], b->in[1], b->gy[0], dims, TN_ARG(b, eps), b->need[0] ? &b->gx[0] : NULL,
                           b->need[1] ? &b->gx[1] : NULL);
}

/* clang-format off */
static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}, {1, {4}}, {1, {4}}}, .args = &(args_t){1e-5}},
    {.in = {{3, {2, 3, 4}}, {2, {3, 4}}, {2, {3, 4}}}, .args = &(args_t){1e-5}},
    {.in = {{2, {3, 5}}}, .kind = {[1] = TN__ARG_ABSENT, TN__ARG_ABSENT}, .args = &(args_t){1e-3}},
    {.in = {{2, {3, 5}}, {1, {5}}}, .kind = {[2] = TN__ARG_ABSENT}, .args = &(args_t){1e-5}},
    {.in = {{3, {2, 3, 4}}, {0, {0}}, {2, {3, 4}}}, .kind = {[1] = TN__ARG_ABSENT}, .args = &(args_t){1e-5}},
    {.in = {{2, {2, 17}}, {1, {17}}, {1, {17}}}, .args = &(args_t){1e-12}},
    {.in = {{2, {3, 1}}, {1, {1}}, {1, {1}}}, .args = &(args_t){1e-5}},
    {.in = {{2, {0, 3}}, {1, {3}}, {1, {3}}}, .args = &(args_t){1e-5}},
    {.in = {{2, {3, 0}}, {1, {0}}, {1, {0}}}, .args = &(args_t){1e-5}},
    {.in = {{2, {3, 4}}, {1, {5}}, {1, {4}}}, .args = &(args_t){1e-5}, TN__FAILS(TN_ESHAPE,
     "layer_norm: weight [5] must have the shape of the last dims of [3, 4], over which it normalises")},
    {.in = {{2, {3, 4}}, {2, {3, 4}}, {1, {4}}}, .args = &(args_t){1e-5}, TN__FAILS(TN_ESHAPE,
     "layer_norm: bias [4] must have the shape of the last dims of [3, 4], over which it normalises")},
    {.in = {{0, {0}}}, .kind = {[1] = TN__ARG_ABSENT, TN__ARG_ABSENT}, .args = &(args_t){1e-5},
     TN__FAILS(TN_ESHAPE, "layer_norm: a 0-d tensor has no dim to normalise over")},
    {.in = {{1, {4}}}, .kind = {[1] = TN__ARG_ABSENT, TN__ARG_ABSENT}, .args = &(args_t){-1},
     TN__FAILS(TN_EINVAL, "layer_norm: eps is -1, but must not be negative")},
    {.in = {{1, {4}}}, .kind = {TN__ARG_INT, TN__ARG_ABSENT, TN__ARG_ABSENT}, .args = &(args_t){1},
     TN__FAILS(TN_EDTYPE, "layer_norm: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
};
/* clang-format on */

const tn_op tn__op_layer_norm = {TN__ROOM("layer_norm", TN_AS_IS),
                                 .inputs = 3,
                                 .outputs = 2,
                                 .optional = TN__IN(1) | TN__IN(2),
                                 .saves = TN_SAVE_IN(0) | TN_SAVE_IN(1) | TN_SAVE_OUT(1),
                                 .saves_for = layer_norm_saves_for,
                                 .args_size = sizeof(args_t),
                                 .infer = layer_norm_infer,
                                 .forward = layer_norm_forward,
                                 .backward = layer_norm_backward,
                                 .backward_ops = layer_norm_backward_ops};
TN__SAMPLES(layer_norm, samples);

tn_tensor *tn_layer_norm_run(tn_tensor *x, tn_tensor *weight, tn_tensor *bias, double eps)
{
    tn_tensor *out[2];
    tn_op_call(&tn__op_layer_norm, 3, (tn_tensor *[]){x, weight, bias}, 2, out, &(args_t){eps});
    return out[0];
}

#else /* =========================================================== kernels: contiguous rows, one real type */

static void TN__(layer_norm_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const tn__norm_arguments *a = args;
    const TN__(tn__norm_row) row = {out[0], out[1], in[0], in[1], in[2], a->eps, false, a->stream};
    tn__kernels()->TN__(rows)->norm(n, &row);
}

static void TN__(layer_norm_bwd)(int64_t row, int64_t n, void *const *out, const void *const *in, const void *args)
{
    const tn__norm_arguments *a = args;
    const TN__(tn__norm_back_row) s = {out[0], out[1], out[2], in[0], in[1], in[3], in[2], false, a->stream};
    (void)row;
    tn__kernels()->TN__(rows)->norm_back(n, &s);
}
#endif
