/* conv2d — y[n, o] = b[o] + Σ over the channels c of o's group and the taps k of w[o, c, k] · x[n, c, under tap k]
 *
 * x [N, C, H, W], w [O, C/groups, KH, KW], b [O] or NULL; cross-correlation, as in PyTorch. The sum <gy, conv(x, w)> is
 * linear in each of gy, x and w: its derivative by x is conv2d_input_grad, by w conv2d_weight_grad. The derivatives of
 * these three ops are again these three ops, so gradients of any order exist.
 *
 *   gx = input_grad(gy, w),  gw = weight_grad(x, gy),  gb = Σ gy over n and the positions */
#include "autograd/rooms/windows.h"
#include "core/products/convolve.h"

static bool conv2d_infer(tn_ctx *c) { return tn__infer_convolution(c, 2); }

static void conv2d_forward(tn_ctx *c)
{
    tn__windows g = *(const tn__windows *)c->args;
    g.size[0] = c->in[1]->l.shape.d[2], g.size[1] = c->in[1]->l.shape.d[3];
    tn__convolve(&g, c->in[0], c->in[1], c->in[2], c->out[0]);
}

static unsigned conv2d_saves_for(const bool *need)
{
    return (need[0] ? TN_SAVE_IN(1) : 0) | (need[1] ? TN_SAVE_IN(0) : 0);
}
static void conv2d_backward_ops(tn_back *b)
{
    const int64_t *x = b->in_shape[0].d, *w = b->in_shape[1].d;
    tn__conv_grad  a = {*(const tn__windows *)b->args, {x[2], x[3]}};
    a.windows.size[0] = w[2], a.windows.size[1] = w[3];
    if (b->need[0]) b->gx[0] = tn_apply_args(&tn__op_conv2d_input_grad, &a, b->gy[0], b->in[1]);
    if (b->need[1]) b->gx[1] = tn_apply_args(&tn__op_conv2d_weight_grad, &a, b->in[0], b->gy[0]);
    if (b->need[2]) b->gx[2] = tn_sum(b->gy[0], .dims = TN_DIMS(0, 2, 3));
}

#define WINDOWS(s0, s1, p0, p1, d0, d1, groups) \
    .args = &(tn__windows) { {0}, {s0, s1}, {p0, p1}, {d0, d1}, groups }
static const tn__sample samples[] = {
    {.in = {{4, {2, 2, 4, 5}}, {4, {3, 2, 2, 3}}, {1, {3}}}, WINDOWS(1, 1, 0, 0, 1, 1, 1)},
    {.in = {{4, {1, 2, 4, 4}}, {4, {2, 2, 3, 3}}}, .kind = {0, 0, TN__ARG_ABSENT}, WINDOWS(1, 1, 1, 1, 1, 1, 1)},
    {.in = {{4, {2, 1, 5, 4}}, {4, {2, 1, 2, 2}}, {1, {2}}}, WINDOWS(2, 1, 1, 0, 1, 2, 1)},
    {.in = {{4, {1, 4, 3, 3}}, {4, {4, 2, 2, 2}}, {1, {4}}}, WINDOWS(1, 1, 0, 0, 1, 1, 2)},
    {.in = {{4, {1, 2, 3, 3}}, {4, {2, 1, 3, 2}}, {1, {2}}}, WINDOWS(1, 2, 2, 1, 1, 1, 2)},
    {.in = {{4, {2, 3, 2, 3}}, {4, {2, 3, 1, 1}}, {1, {2}}},
     WINDOWS(1, 1, 0, 0, 1, 1, 1)}, /* the columns are x itself */
    {.in = {{4, {2, 3, 3, 3}}, {4, {2, 3, 1, 1}}, {1, {2}}}, WINDOWS(2, 2, 0, 0, 1, 1, 1)},
    {.in = {{4, {0, 2, 3, 3}}, {4, {2, 2, 2, 2}}, {1, {2}}}, WINDOWS(1, 1, 0, 0, 1, 1, 1)},
    {.in = {{4, {2, 0, 3, 3}}, {4, {2, 0, 2, 2}}, {1, {2}}}, WINDOWS(1, 1, 0, 0, 1, 1, 1)}, /* only the bias */
    {.in = {{4, {1, 2, 3, 3}}, {4, {0, 2, 2, 2}}, {1, {0}}}, WINDOWS(1, 1, 0, 0, 1, 1, 1)},
    {.in = {{3, {2, 3, 3}}, {4, {2, 3, 1, 1}}, {1, {2}}},
     WINDOWS(1, 1, 0, 0, 1, 1, 1),
     TN__FAILS(TN_ESHAPE, "conv2d: x must be [N, C, H, W], got [2, 3, 3]")},
    {.in = {{4, {1, 2, 3, 3}}, {3, {2, 2, 1}}, {1, {2}}},
     WINDOWS(1, 1, 0, 0, 1, 1, 1),
     TN__FAILS(TN_ESHAPE, "conv2d: weight must be [out, in/groups, KH, KW], got [2, 2, 1]")},
    {.in = {{4, {1, 3, 3, 3}}, {4, {2, 2, 1, 1}}, {1, {2}}},
     WINDOWS(1, 1, 0, 0, 1, 1, 1),
     TN__FAILS(TN_ESHAPE,
               "conv2d: x [1, 3, 3, 3] has 3 channels in 1 group, weight [2, 2, 1, 1] takes 2 in each group")},
    {.in = {{4, {1, 3, 3, 3}}, {4, {2, 1, 1, 1}}, {1, {2}}},
     WINDOWS(1, 1, 0, 0, 1, 1, 2),
     TN__FAILS(TN_ESHAPE,
               "conv2d: x [1, 3, 3, 3] has 3 channels in 2 groups, weight [2, 1, 1, 1] takes 1 in each group")},
    {.in = {{4, {1, 4, 3, 3}}, {4, {3, 2, 1, 1}}, {1, {3}}},
     WINDOWS(1, 1, 0, 0, 1, 1, 2),
     TN__FAILS(TN_ESHAPE, "conv2d: 2 groups do not divide the 3 output channels of weight [3, 2, 1, 1]")},
    {.in = {{4, {1, 2, 3, 3}}, {4, {3, 2, 1, 1}}, {1, {2}}},
     WINDOWS(1, 1, 0, 0, 1, 1, 1),
     TN__FAILS(TN_ESHAPE, "conv2d: bias [2] does not fit weight [3, 2, 1, 1]: it must be [3]")},
    {.in = {{4, {1, 2, 3, 3}}, {4, {3, 2, 2, 1}}, {1, {3}}},
     WINDOWS(1, 1, 0, 0, 3, 1, 1),
     TN__FAILS(TN_ESHAPE,
               "conv2d: a window of size 2 and dilation 3 is larger than the 3 elements of dim 2 with padding 0")},
    {.in = {{4, {1, 2, 3, 3}}, {4, {3, 2, 1, 6}}, {1, {3}}},
     WINDOWS(1, 1, 0, 1, 1, 1, 1),
     TN__FAILS(TN_ESHAPE,
               "conv2d: a window of size 6 and dilation 1 is larger than the 3 elements of dim 3 with padding 1")},
    {.in = {{4, {1, 2, 3, 3}}, {4, {3, 2, 0, 1}}, {1, {3}}},
     WINDOWS(1, 1, 0, 0, 1, 1, 1),
     TN__FAILS(TN_EINVAL, "conv2d: a window of size 0 in dim 2; it must be at least 1")},
    {.in = {{4, {1, 2, 3, 3}}, {4, {3, 2, 1, 1}}, {1, {3}}},
     WINDOWS(1, 1, 0, 0, 1, 1, -1),
     TN__FAILS(TN_EINVAL, "conv2d: groups must be 1 to 2147483647, got -1")},
    {.in = {{4, {1, 2, 3, 3}}, {4, {3, 2, 1, 1}}, {1, {3}}},
     WINDOWS(1, -2, 0, 0, 1, 1, 1),
     TN__FAILS(TN_EINVAL, "conv2d: stride must be 1 to 2147483647, got -2")},
    {.in = {{4, {1, 2, 3, 3}}, {4, {3, 2, 1, 1}}, {1, {3}}},
     WINDOWS(1, 1, -1, 0, 1, 1, 1),
     TN__FAILS(TN_EINVAL, "conv2d: padding must be 0 to 2147483647, got -1")},
    {.in = {{4, {1, 2, 3, 3}}, {4, {3, 2, 1, 1}}, {1, {3}}},
     WINDOWS(1, 1, 0, 0, 1, INT64_MAX, 1),
     TN__FAILS(TN_EINVAL, "conv2d: dilation must be 1 to 2147483647, got 9223372036854775807")},
    {.in = {{4, {1, 2, 3, 3}}, {4, {3, 2, 1, 1}}},
     .kind = {0, TN__ARG_ABSENT, TN__ARG_ABSENT},
     WINDOWS(1, 1, 0, 0, 1, 1, 1),
     TN__FAILS(TN_EINVAL, "conv2d: weight is NULL")},
    {.in = {{4, {1, 2, 3, 3}}, {4, {3, 2, 1, 1}}},
     .kind = {TN__ARG_INT, TN__ARG_INT, TN__ARG_ABSENT},
     WINDOWS(1, 1, 0, 0, 1, 1, 1),
     TN__FAILS(TN_EDTYPE, "conv2d: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
};

const tn_op tn__op_conv2d = {TN__ROOM("conv2d", TN_NARROW(3)),
                             .inputs = 3,
                             .optional = TN__FIRST_IN(3),
                             .args_size = sizeof(tn__windows),
                             .saves = TN_SAVE_IN(0) | TN_SAVE_IN(1),
                             .saves_for = conv2d_saves_for,
                             .infer = conv2d_infer,
                             .forward = conv2d_forward,
                             .backward_ops = conv2d_backward_ops};
TN__SAMPLES(conv2d, samples);

tn_tensor *tn_conv2d_run(tn_conv2d_args a)
{
    tn_tensor  *in[3] = {a.x, a.weight, a.bias};
    tn__windows g = {.groups = a.groups};
    tn__window2d(a.stride, a.stride_w, g.stride), tn__window2d(a.padding, a.padding_w, g.padding);
    tn__window2d(a.dilation, a.dilation_w, g.dilation);
    tn__promote_all(3, in);
    return tn_op_apply(&tn__op_conv2d, &g, 3, in);
}
