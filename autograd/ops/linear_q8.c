/* linear_q8 — y = f(x Wᵀ + b) over the last dim of x, W [out, in] in 8 bits or f16 (tn_q8_pack, tn_f16_pack), f the
 * identity, relu or gelu
 *
 * tn_linear, tn_linear_relu and tn_linear_gelu call it for such a weight: the same bits as with the weight unpacked to
 * f32. The weight itself has no gradient; that of x is gx = gv W with the weight unpacked for the time of this product.
 * int8 also rounds x, which the gradient counts as the identity. .count restricts W to some of its rows, without
 * computing the others. */
#include "autograd/rooms/q8.h"

typedef struct {
    tn__act act;
    int64_t first, count; /* rows of W, whole panels of them before; count 0: all rows */
} args_t;

/* Describes the weight, input 1 of an op. */
static bool weight_of(const tn_tensor *t, const args_t *a, tn__q8 *w)
{
    if (!tn__q8_of(t, w)) return false;
    if (!a->count) return true;
    w->panels_at += a->first / w->rows * w->panel, w->out = a->count;
    w->panels = (a->count + w->rows - 1) / w->rows;
    return true;
}

static bool linear_q8_infer(tn_ctx *c)
{
    const tn_tensor *x = c->in[0], *bias = c->in[2];
    char             xs[300], bs[300];
    tn__q8           w;
    if (!tn__need_real(c, 0) || !tn__need_q8(c, 1, &w)) return false;
    weight_of(c->in[1], c->args, &w);
    if (x->dtype == TN_F64)
        return tn_infer_fail(c, TN_EDTYPE, "x is f64, but weights in 8 bits or f16 need x in f32 or bf16");
    if (bias && bias->dtype != x->dtype)
        return tn_infer_fail(c, TN_EDTYPE, "dtypes differ: x is %s, bias %s", tn_dtype_name(x->dtype),
                             tn_dtype_name(bias->dtype));
    tn_shape y = x->l.shape;
    if (y.n == 0 || y.d[y.n - 1] != w.in)
        return tn_infer_fail(c, TN_ESHAPE,
                             "x %s does not fit weight [%lld, %lld] ([out, in]): its last dim must be %lld",
                             tn__describe(x, xs, sizeof xs), (long long)w.out, (long long)w.in, (long long)w.in);
    if (bias && (bias->l.shape.n != 1 || bias->l.shape.d[0] != w.out))
        return tn_infer_fail(c, TN_ESHAPE, "bias %s does not fit weight [%lld, %lld] ([out, in]): it must be [%lld]",
                             tn_shape_text(bias->l.shape, bs, sizeof bs), (long long)w.out, (long long)w.in,
                             (long long)w.out);
    y.d[y.n - 1] = w.out;
    c->result[0] = (tn_result){x->dtype, y};
    return true;
}
static void linear_q8_forward(tn_ctx *c)
{
    tn__q8 w;
    if (weight_of(c->in[1], c->args, &w))
        tn__q8_linear(c->in[0], &w, c->in[2], TN_ARG(c, act), c->out[0], tn__kernels());
}

static unsigned linear_q8_saves_for(const bool *need) { return need[0] ? TN_SAVE_IN(1) : 0; }
static void     linear_q8_backward(tn_back *b)
{
    const args_t *a = b->args;
    tn_tensor    *g = b->gy[0], *w = b->need[0] ? tn__q8_unpacked(b->in[1], g->dtype) : NULL;
    if (w) b->gx[0] = tn_matmul(g, a->count ? tn_narrow(w, 0, a->first, a->count) : w);
    b->gx[2] = b->need[2] ? g : NULL;
}

#define NONE \
    .args = &(args_t) { .act = TN__ACT_NONE }
/* clang-format off */
static const tn__sample samples[] = {
    {.in = {{2, {2, 32}}, {2, {4, 32}}, {1, {4}}}, NONE, TN__FAILS(TN_EDTYPE,
     "linear_q8: weight is f32 [4, 32], but must be stored in 8 bits or f16; pack it with tn_q8_pack or "
     "tn_f16_pack")},
    {.in = {{2, {2, 32}}, {2, {4, 32}}}, .kind = {TN__ARG_INT, 0, TN__ARG_ABSENT}, NONE,
     TN__FAILS(TN_EDTYPE, "linear_q8: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
};
/* clang-format on */

const tn_op tn__op_linear_q8 = {TN__ROOM("linear_q8", TN_JOIN),
                                .inputs = 3,
                                .optional = TN__IN(2),
                                .saves = TN_SAVE_IN(1),
                                .saves_for = linear_q8_saves_for,
                                .args_size = sizeof(args_t),
                                .infer = linear_q8_infer,
                                .forward = linear_q8_forward,
                                .backward = linear_q8_backward};
TN__SAMPLES(linear_q8, samples);

tn_tensor *tn__linear_q8(tn_tensor *x, tn_tensor *weight, tn_tensor *bias, tn__act act)
{
    /* the gradient of f needs its input, which a fused f does not keep */
    const bool apart = act != TN__ACT_NONE && tn_grad_enabled() && (tn_needs_grad(x) || (bias && tn_needs_grad(bias)));
    const args_t args = {.act = apart ? TN__ACT_NONE : act};
    tn_tensor   *y = tn_apply_args(&tn__op_linear_q8, &args, x, weight, bias);
    if (!apart) return y;
    return act == TN__ACT_RELU ? tn_relu(y) : act == TN__ACT_GELU ? tn_gelu(y) : tn_gelu_tanh(y);
}

tn_tensor *tn__linear_rows(tn_tensor *x, tn_tensor *weight, tn_tensor *bias, int64_t first, int64_t count)
{
    tn__q8       w;
    const args_t args = {.act = TN__ACT_NONE, .first = first, .count = count};
    if (!tn__q8_of(weight, &w) || first % w.rows || count < 1)
        return tn_contiguous(tn_narrow(tn__linear_q8(x, weight, bias, TN__ACT_NONE), -1, first, count));
    return tn_apply_args(&tn__op_linear_q8, &args, x, weight, bias ? tn_narrow(bias, 0, first, count) : NULL);
}
