/* linear — y = x Wᵀ + b over the last dim of x: x [..., in], W [out, in], b [out] or NULL
 *
 *   gx = gy W,  gW = gyᵀ x over all rows of x,  gb = Σ gy over all rows */
#include "autograd/rooms/linear.h"
#include "autograd/rooms/q8.h"

bool tn__infer_linear(tn_ctx *c)
{
    const tn_tensor *x = c->in[0], *w = c->in[1], *bias = c->in[2];
    char             xs[300], ws[300], bs[300];
    if (!tn__need_weighted(c)) return false;
    tn_shape y = x->l.shape;
    if (w->l.shape.n != 2)
        return tn_infer_fail(c, TN_ESHAPE, "weight must be [out, in], got %s",
                             tn_shape_text(w->l.shape, ws, sizeof ws));
    if (y.n == 0 || y.d[y.n - 1] != w->l.shape.d[1])
        return tn_infer_fail(c, TN_ESHAPE, "x %s does not fit weight %s ([out, in]): its last dim must be %lld",
                             tn__describe(x, xs, sizeof xs), tn_shape_text(w->l.shape, ws, sizeof ws),
                             (long long)w->l.shape.d[1]);
    if (bias && (bias->l.shape.n != 1 || bias->l.shape.d[0] != w->l.shape.d[0]))
        return tn_infer_fail(c, TN_ESHAPE, "bias %s does not fit weight %s ([out, in]): it must be [%lld]",
                             tn_shape_text(bias->l.shape, bs, sizeof bs), tn_shape_text(w->l.shape, ws, sizeof ws),
                             (long long)w->l.shape.d[0]);
    y.d[y.n - 1] = w->l.shape.d[0];
    c->result[0] = (tn_result){x->dtype, y};
    return true;
}

void tn__linear_forward(tn_ctx *c, tn__act act, tn_tensor *pre)
{
    tn__layout x = c->in[0]->l, w, y = c->out[0]->l;
    tn__view_transpose("linear", &c->in[1]->l, 0, 1, &w);
    if (x.shape.n == 1) x = tn__layout_insert(x, 0), y = tn__layout_insert(y, 0);
    const tn_tensor    gx = tn__stack_view(c->in[0], &x), gw = tn__stack_view(c->in[1], &w);
    tn_tensor          gy = tn__stack_view(c->out[0], &y), gpre = pre ? tn__stack_view(pre, &y) : gy;
    const tn__epilogue e = {.bias = c->in[2], .act = act, .pre = pre ? &gpre : NULL};
    tn__gemm_with(&gx, &gw, &gy, &e);
}
static void linear_forward(tn_ctx *c) { tn__linear_forward(c, TN__ACT_NONE, NULL); }

static unsigned linear_saves_for(const bool *need)
{
    return (need[0] ? TN_SAVE_IN(1) : 0) | (need[1] ? TN_SAVE_IN(0) : 0);
}
void tn__linear_backward(tn_back *b, tn_tensor *g)
{
    if (b->need[0]) b->gx[0] = tn_matmul(g, b->in[1]);
    if (b->need[1]) {
        tn_shape lead = b->in_shape[0];
        lead.n--;
        const int64_t rows = tn_shape_numel(lead), in = b->in_shape[1].d[1], out = b->in_shape[1].d[0];
        b->gx[1] = tn__weight_grad(b, tn_reshape(g, TN_SHAPE(rows, out)), tn_reshape(b->in[0], TN_SHAPE(rows, in)));
    }
    if (b->need[2]) b->gx[2] = g;
}
static void linear_backward_ops(tn_back *b) { tn__linear_backward(b, b->gy[0]); }

/* clang-format off */
static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}, {2, {2, 4}}, {1, {2}}}},
    {.in = {{3, {2, 3, 4}}, {2, {5, 4}}, {1, {5}}}},
    {.in = {{3, {2, 3, 4}}, {2, {3, 4}}}, .kind = {0, 0, TN__ARG_ABSENT}},
    {.in = {{1, {4}}, {2, {3, 4}}, {1, {3}}}},
    {.in = {{2, {3, 1}}, {2, {1, 1}}, {1, {1}}}},
    {.in = {{2, {0, 4}}, {2, {3, 4}}, {1, {3}}}},
    {.in = {{2, {2, 0}}, {2, {3, 0}}, {1, {3}}}}, /* only the bias */
    {.in = {{2, {2, 4}}, {2, {0, 4}}, {1, {0}}}},
    {.in = {{2, {2, 3}}, {2, {2, 4}}, {1, {2}}},
     TN__FAILS(TN_ESHAPE, "linear: x [2, 3] does not fit weight [2, 4] ([out, in]): its last dim must be 4")},
    {.in = {{0, {0}}, {2, {2, 4}}, {1, {2}}},
     TN__FAILS(TN_ESHAPE, "linear: x [] does not fit weight [2, 4] ([out, in]): its last dim must be 4")},
    {.in = {{2, {2, 3}}, {1, {3}}, {1, {2}}}, TN__FAILS(TN_ESHAPE, "linear: weight must be [out, in], got [3]")},
    {.in = {{2, {2, 3}}, {2, {2, 3}}, {1, {3}}},
     TN__FAILS(TN_ESHAPE, "linear: bias [3] does not fit weight [2, 3] ([out, in]): it must be [2]")},
    {.in = {{2, {2, 3}}, {2, {2, 3}}, {2, {1, 2}}},
     TN__FAILS(TN_ESHAPE, "linear: bias [1, 2] does not fit weight [2, 3] ([out, in]): it must be [2]")},
    {.in = {{2, {2, 3}}, {2, {2, 3}}}, .kind = {0, TN__ARG_ABSENT, TN__ARG_ABSENT},
     TN__FAILS(TN_EINVAL, "linear: weight is NULL")},
    {.in = {{2, {2, 3}}, {2, {2, 3}}}, .kind = {TN__ARG_ABSENT, 0, TN__ARG_ABSENT},
     TN__FAILS(TN_EINVAL, "linear: x is NULL")},
    {.in = {{2, {2, 3}}, {2, {2, 3}}}, .kind = {TN__ARG_INT, TN__ARG_INT, TN__ARG_ABSENT},
     TN__FAILS(TN_EDTYPE, "linear: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
};
/* clang-format on */

const tn_op tn__op_linear = {TN__ROOM("linear", TN_NARROW(3)), .inputs = 3,
                             .optional = TN__FIRST_IN(3),      .saves = TN_SAVE_IN(0) | TN_SAVE_IN(1),
                             .saves_for = linear_saves_for,    .infer = tn__infer_linear,
                             .forward = linear_forward,        .backward_ops = linear_backward_ops};
TN__SAMPLES(linear, samples);

tn_tensor *tn_linear_run(tn_tensor *x, tn_tensor *weight, tn_tensor *bias)
{
    if (tn_is_packed(weight)) return tn__linear_q8(x, weight, bias, TN__ACT_NONE);
    tn_tensor *in[3] = {x, weight, bias};
    tn__promote_all(3, in);
    return tn_op_apply(&tn__op_linear, NULL, 3, in);
}
