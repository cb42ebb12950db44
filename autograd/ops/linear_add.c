/* linear_add — y = c + x Wᵀ over the last dim of x, with c added while the product is still in the cache: x [..., in],
 * W [out, in], c [..., out]
 *
 *   gx = gy W,  gW = gyᵀ x over all rows of x,  gc = gy */
#include "autograd/rooms/linear.h"

static bool linear_add_infer(tn_ctx *c)
{
    tn_tensor *const in[3] = {c->in[0], c->in[1], NULL}, *more = c->in[2];
    tn_ctx           product = *c;
    char             cs[300], ys[192];
    product.in = in;
    if (!tn__infer_linear(&product)) return false;
    if (more->dtype != in[0]->dtype)
        return tn_infer_fail(c, TN_EDTYPE, "dtypes differ: x is %s, c %s", tn_dtype_name(in[0]->dtype),
                             tn_dtype_name(more->dtype));
    if (tn_shape_equal(more->l.shape, c->result[0].shape)) return true;
    return tn_infer_fail(c, TN_ESHAPE, "c is %s, but must be %s, the shape of x Wᵀ",
                         tn_shape_text(more->l.shape, cs, sizeof cs), tn_shape_text(c->result[0].shape, ys, sizeof ys));
}
static void linear_add_forward(tn_ctx *c)
{
    tn__layout x = c->in[0]->l, w, more = c->in[2]->l, y = c->out[0]->l;
    tn__view_transpose("linear_add", &c->in[1]->l, 0, 1, &w);
    if (x.shape.n == 1) x = tn__layout_insert(x, 0), more = tn__layout_insert(more, 0), y = tn__layout_insert(y, 0);
    const tn_tensor    gx = tn__stack_view(c->in[0], &x), gw = tn__stack_view(c->in[1], &w);
    const tn_tensor    gc = tn__stack_view(c->in[2], &more);
    tn_tensor          gy = tn__stack_view(c->out[0], &y);
    const tn__epilogue e = {.more = &gc};
    tn__gemm_with(&gx, &gw, &gy, &e);
}

static unsigned linear_add_saves_for(const bool *need)
{
    return (need[0] ? TN_SAVE_IN(1) : 0) | (need[1] ? TN_SAVE_IN(0) : 0);
}
static void linear_add_backward_ops(tn_back *b) { tn__linear_backward(b, b->gy[0]); }

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}, {2, {2, 4}}, {2, {3, 2}}}},
    {.in = {{3, {2, 3, 4}}, {2, {5, 4}}, {3, {2, 3, 5}}}},
    {.in = {{1, {4}}, {2, {3, 4}}, {1, {3}}}},
    {.in = {{2, {0, 4}}, {2, {3, 4}}, {2, {0, 3}}}},
    {.in = {{2, {2, 0}}, {2, {3, 0}}, {2, {2, 3}}}}, /* only c */
    {.in = {{2, {2, 3}}, {2, {2, 4}}, {2, {2, 2}}},
     TN__FAILS(TN_ESHAPE, "linear_add: x [2, 3] does not fit weight [2, 4] ([out, in]): its last dim must be 4")},
    {.in = {{2, {2, 4}}, {2, {3, 4}}, {1, {3}}},
     TN__FAILS(TN_ESHAPE, "linear_add: c is [3], but must be [2, 3], the shape of x Wᵀ")},
    {.in = {{2, {2, 3}}, {2, {2, 3}}, {2, {2, 2}}},
     .kind = {TN__ARG_INT, TN__ARG_INT, 0},
     TN__FAILS(TN_EDTYPE, "linear_add: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
};

const tn_op tn__op_linear_add = {TN__ROOM("linear_add", TN_NARROW(3)),
                                 .inputs = 3,
                                 .saves = TN_SAVE_IN(0) | TN_SAVE_IN(1),
                                 .saves_for = linear_add_saves_for,
                                 .infer = linear_add_infer,
                                 .forward = linear_add_forward,
                                 .backward_ops = linear_add_backward_ops};
TN__SAMPLES(linear_add, samples);

tn_tensor *tn_linear_add(tn_tensor *x, tn_tensor *weight, tn_tensor *c)
{
    tn_tensor *in[3] = {x, weight, c};
    tn__promote_all(3, in);
    return tn_op_apply(&tn__op_linear_add, NULL, 3, in);
}
