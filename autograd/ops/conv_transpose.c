/* conv_transpose1d, conv_transpose2d — y[n, o, t · stride + k · dilation - padding] += w[c, o, k] · x[n, c, t], and the
 * bias: the gradient of a convolution with this weight by its input (conv2d_input_grad); made of ops */
#include "autograd/rooms/windows.h"

typedef struct {
    tn__windows windows; /* without size */
    int64_t     output_padding[2];
    int         dims;
} args_t;

/* The sizes of the result. False: raised. */
static bool result_size(const tn_ctx *c, tn__windows *g, int64_t out[2])
{
    const args_t  *a = c->args;
    const int64_t *x = c->in[0]->l.shape.d, *w = c->in[1]->l.shape.d;
    *g = a->windows;
    g->size[0] = out[0] = 1;
    for (int i = 2 - a->dims; i < 2; i++) {
        const int64_t n = x[a->dims + i], span = g->size[i] = w[a->dims + i], extra = a->output_padding[i];
        int64_t       steps, taps;
        if (g->stride[i] < 1 || g->stride[i] > INT32_MAX || g->dilation[i] < 1 || g->dilation[i] > INT32_MAX ||
            g->padding[i] < 0 || g->padding[i] > INT32_MAX || span < 1)
            return tn_infer_fail(
                c, TN_EINVAL,
                "stride %lld, dilation %lld and a kernel of %lld must be 1 to %d, and padding %lld not "
                "negative",
                (long long)g->stride[i], (long long)g->dilation[i], (long long)span, INT32_MAX,
                (long long)g->padding[i]);
        if (extra < 0 || extra >= g->stride[i])
            return tn_infer_fail(c, TN_EINVAL, "output_padding must be 0 to %lld, less than the stride; got %lld",
                                 (long long)g->stride[i] - 1, (long long)extra);
        if (!tn__mul_i64(n - 1, g->stride[i], &steps) || !tn__mul_i64(span - 1, g->dilation[i], &taps) ||
            steps > INT32_MAX || taps > INT32_MAX || n < 1 ||
            (out[i] = steps - 2 * g->padding[i] + taps + extra + 1) < 1)
            return tn_infer_fail(c, TN_ESHAPE,
                                 "%lld elements, stride %lld, padding %lld and a kernel of %lld leave no "
                                 "result, or too large a one",
                                 (long long)n, (long long)g->stride[i], (long long)g->padding[i], (long long)span);
    }
    return true;
}

static bool conv_transpose_infer(tn_ctx *c)
{
    const args_t    *a = c->args;
    const int        dims = a->dims;
    const tn_tensor *x = c->in[0], *w = c->in[1], *bias = c->in[2];
    char             xs[192], ws[192], bs[192];
    tn__windows      g;
    int64_t          out[2], channels;
    if (!tn__need_weighted(c)) return false;
    const int64_t *xd = x->l.shape.d, *wd = w->l.shape.d, groups = a->windows.groups;
    tn_shape_text(x->l.shape, xs, sizeof xs), tn_shape_text(w->l.shape, ws, sizeof ws);
    if (x->l.shape.n != dims + 2 || w->l.shape.n != dims + 2)
        return tn_infer_fail(
            c, TN_ESHAPE, "x and weight must be %s, got %s and %s",
            dims == 1 ? "[N, C, L] and [C, out/groups, K]" : "[N, C, H, W] and [C, out/groups, KH, KW]", xs, ws);
    if (groups < 1 || xd[1] != wd[0] || wd[0] % groups || !tn__mul_i64(wd[1], groups, &channels))
        return tn_infer_fail(c, TN_ESHAPE, "x %s does not fit weight %s in %lld groups", xs, ws, (long long)groups);
    if (bias && (bias->l.shape.n != 1 || bias->l.shape.d[0] != channels))
        return tn_infer_fail(c, TN_ESHAPE, "bias %s does not fit weight %s: it must be [%lld]",
                             tn_shape_text(bias->l.shape, bs, sizeof bs), ws, (long long)channels);
    return result_size(c, &g, out);
}

static void conv_transpose_compose(tn_ctx *c)
{
    const args_t *a = c->args;
    tn_tensor    *x = c->in[0], *w = c->in[1], *bias = c->in[2];
    tn__conv_grad g;
    result_size(c, &g.windows, g.in);
    if (a->dims == 1) x = tn__as_rows(x), w = tn__as_rows(w);
    tn_tensor *y = tn_apply_args(&tn__op_conv2d_input_grad, &g, x, w);
    if (bias) y = tn_add(y, tn_reshape(bias, TN_SHAPE(-1, 1, 1)));
    c->out[0] = a->dims == 1 ? tn__from_rows(y) : y;
}

#define ONE(s, p, o, d, groups) \
    .args = &(args_t) { {{0}, {1, s}, {0, p}, {1, d}, groups}, {0, o}, 1 }
/* clang-format off */
static const tn__sample samples1d[] = {
    {.in = {{3, {2, 3, 4}}, {3, {3, 2, 3}}, {1, {2}}}, ONE(2, 1, 1, 1, 1)},
    {.in = {{3, {1, 4, 3}}, {3, {4, 1, 2}}, {1, {2}}}, ONE(1, 0, 0, 2, 2)},
    {.in = {{3, {2, 2, 1}}, {3, {2, 3, 1}}}, .kind = {0, 0, TN__ARG_ABSENT}, ONE(3, 0, 2, 1, 1)},
    {.in = {{3, {0, 2, 3}}, {3, {2, 3, 2}}, {1, {3}}}, ONE(1, 0, 0, 1, 1)},
    {.in = {{3, {1, 2, 3}}, {3, {3, 2, 2}}, {1, {2}}}, ONE(1, 0, 0, 1, 1),
     TN__FAILS(TN_ESHAPE, "conv_transpose1d: x [1, 2, 3] does not fit weight [3, 2, 2] in 1 groups")},
    {.in = {{3, {1, 2, 3}}, {3, {2, 2, 2}}, {1, {2}}}, ONE(1, 0, 1, 1, 1),
     TN__FAILS(TN_EINVAL, "conv_transpose1d: output_padding must be 0 to 0, less than the stride; got 1")},
    {.in = {{3, {1, 2, 1}}, {3, {2, 2, 2}}, {1, {2}}}, ONE(1, 1, 0, 1, 1),
     TN__FAILS(TN_ESHAPE, "conv_transpose1d: 1 elements, stride 1, padding 1 and a kernel of 2 leave no result, or too "
     "large a one")},
    {.in = {{2, {2, 3}}, {3, {3, 2, 2}}, {1, {2}}}, ONE(1, 0, 0, 1, 1),
     TN__FAILS(TN_ESHAPE, "conv_transpose1d: x and weight must be [N, C, L] and [C, out/groups, K], got [2, 3] and "
     "[3, 2, 2]")},
};
/* clang-format on */
#define TWO(s0, s1, p0, p1, o0, o1, d0, d1, groups) \
    .args = &(args_t) { {{0}, {s0, s1}, {p0, p1}, {d0, d1}, groups}, {o0, o1}, 2 }
/* clang-format off */
static const tn__sample samples2d[] = {
    {.in = {{4, {2, 3, 2, 3}}, {4, {3, 2, 3, 2}}, {1, {2}}}, TWO(2, 1, 1, 0, 1, 0, 1, 2, 1)},
    {.in = {{4, {1, 4, 3, 2}}, {4, {4, 1, 2, 3}}, {1, {2}}}, TWO(1, 2, 0, 1, 0, 1, 1, 1, 2)},
    {.in = {{4, {2, 2, 1, 2}}, {4, {2, 3, 1, 1}}}, .kind = {0, 0, TN__ARG_ABSENT}, TWO(1, 1, 0, 0, 0, 0, 1, 1, 1)},
    {.in = {{4, {0, 2, 2, 2}}, {4, {2, 3, 2, 2}}, {1, {3}}}, TWO(1, 1, 0, 0, 0, 0, 1, 1, 1)},
    {.in = {{4, {1, 2, 2, 2}}, {4, {2, 3, 2, 2}}, {1, {2}}}, TWO(1, 1, 0, 0, 0, 0, 1, 1, 1),
     TN__FAILS(TN_ESHAPE, "conv_transpose2d: bias [2] does not fit weight [2, 3, 2, 2]: it must be [3]")},
    {.in = {{4, {1, 2, 2, 2}}, {4, {2, 3, 2, 2}}, {1, {3}}}, TWO(0, 1, 0, 0, 0, 0, 1, 1, 1), TN__FAILS(TN_EINVAL,
     "conv_transpose2d: stride 0, dilation 1 and a kernel of 2 must be 1 to 2147483647, and padding "
     "0 not negative")},
};
/* clang-format on */

#define ROOM                                                                                              \
    .inputs = 3, .optional = TN__FIRST_IN(3), .args_size = sizeof(args_t), .infer = conv_transpose_infer, \
    .compose = conv_transpose_compose
const tn_op tn__op_conv_transpose1d = {TN__ROOM("conv_transpose1d", TN_NARROW(3)), ROOM};
TN__SAMPLES(conv_transpose1d, samples1d);
const tn_op tn__op_conv_transpose2d = {TN__ROOM("conv_transpose2d", TN_NARROW(3)), ROOM};
TN__SAMPLES(conv_transpose2d, samples2d);

tn_tensor *tn_conv_transpose1d_run(tn_conv_transpose1d_args a)
{
    tn_tensor   *in[3] = {a.x, a.weight, a.bias};
    const args_t g = {{{0, 0}, {1, a.stride}, {0, a.padding}, {1, a.dilation}, a.groups}, {0, a.output_padding}, 1};
    tn__promote_all(3, in);
    return tn_op_apply(&tn__op_conv_transpose1d, &g, 3, in);
}
tn_tensor *tn_conv_transpose2d_run(tn_conv_transpose2d_args a)
{
    tn_tensor *in[3] = {a.x, a.weight, a.bias};
    args_t     g = {.windows.groups = a.groups, .dims = 2};
    tn__window2d(a.stride, a.stride_w, g.windows.stride), tn__window2d(a.padding, a.padding_w, g.windows.padding);
    tn__window2d(a.dilation, a.dilation_w, g.windows.dilation);
    tn__window2d(a.output_padding, a.output_padding_w, g.output_padding);
    tn__promote_all(3, in);
    return tn_op_apply(&tn__op_conv_transpose2d, &g, 3, in);
}
