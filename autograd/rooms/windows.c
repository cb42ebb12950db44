/* windows.c — shape rules and default options of convolutions and poolings. */
#include "autograd/rooms/windows.h"
#include "core/products/convolve.h"

tn__windows tn__pool_windows(const tn_pool2d_args *a)
{
    tn__windows w = {.groups = 1};
    tn__window2d(a->size, a->size_w, w.size), tn__window2d(a->stride, a->stride_w, w.stride),
        tn__window2d_or(w.size, w.stride);
    tn__window2d(a->padding, a->padding_w, w.padding), tn__window2d(a->dilation, a->dilation_w, w.dilation);
    return w;
}
tn__windows tn__pool_windows_1d(const tn_pool1d_args *a)
{
    return (tn__windows){{1, a->size}, {1, a->stride == 0 ? a->size : a->stride}, {0, a->padding}, {1, a->dilation}, 1};
}

static bool within(const tn_ctx *c, const char *name, int64_t v, int64_t least)
{
    if (v >= least && v <= INT32_MAX) return true;
    return tn_infer_fail(c, TN_EINVAL, "%s must be %lld to %d, got %lld", name, (long long)least, INT32_MAX,
                         (long long)v);
}

bool tn__windows_fit(const tn_ctx *c, const tn__windows *w, int dims, const int64_t in[2], int64_t out[2])
{
    out[0] = out[1] = 1;
    for (int i = dims == 2 ? 0 : 1; i < 2; i++) {
        int64_t span;
        if (!within(c, "stride", w->stride[i], 1) || !within(c, "padding", w->padding[i], 0) ||
            !within(c, "dilation", w->dilation[i], 1))
            return false;
        if (w->size[i] < 1)
            return tn_infer_fail(c, TN_EINVAL, "a window of size %lld in dim %d; it must be at least 1",
                                 (long long)w->size[i], dims == 1 ? 2 : i + 2);
        const int64_t room = in[i] + 2 * w->padding[i];
        if (!tn__mul_i64(w->size[i] - 1, w->dilation[i], &span) || span >= room)
            return tn_infer_fail(
                c, TN_ESHAPE,
                "a window of size %lld and dilation %lld is larger than the %lld elements of dim %d with padding %lld",
                (long long)w->size[i], (long long)w->dilation[i], (long long)in[i], dims == 1 ? 2 : i + 2,
                (long long)w->padding[i]);
        out[i] = (room - span - 1) / w->stride[i] + 1;
    }
    return true;
}

static const char *const image_dims[] = {"", "[N, C, L]", "[N, C, H, W]"};

bool tn__infer_convolution(tn_ctx *c, int dims)
{
    static const char *const weight_dims[] = {"", "[out, in/groups, K]", "[out, in/groups, KH, KW]"};
    const tn_tensor         *x = c->in[0], *w = c->in[1], *bias = c->in[2];
    tn__windows              g = *(const tn__windows *)c->args;
    char                     xs[192], ws[192], bs[192];
    if (!tn__need_weighted(c)) return false;
    const int64_t *xd = x->l.shape.d, *wd = w->l.shape.d;
    tn_shape_text(x->l.shape, xs, sizeof xs), tn_shape_text(w->l.shape, ws, sizeof ws);
    if (x->l.shape.n != dims + 2) return tn_infer_fail(c, TN_ESHAPE, "x must be %s, got %s", image_dims[dims], xs);
    if (w->l.shape.n != dims + 2)
        return tn_infer_fail(c, TN_ESHAPE, "weight must be %s, got %s", weight_dims[dims], ws);
    if (!within(c, "groups", g.groups, 1)) return false;
    if (xd[1] % g.groups || xd[1] / g.groups != wd[1])
        return tn_infer_fail(c, TN_ESHAPE, "x %s has %lld channels in %lld group%s, weight %s takes %lld in each group",
                             xs, (long long)xd[1], (long long)g.groups, g.groups == 1 ? "" : "s", ws, (long long)wd[1]);
    if (wd[0] % g.groups)
        return tn_infer_fail(c, TN_ESHAPE, "%lld groups do not divide the %lld output channels of weight %s",
                             (long long)g.groups, (long long)wd[0], ws);
    if (bias && (bias->l.shape.n != 1 || bias->l.shape.d[0] != wd[0]))
        return tn_infer_fail(c, TN_ESHAPE, "bias %s does not fit weight %s: it must be [%lld]",
                             tn_shape_text(bias->l.shape, bs, sizeof bs), ws, (long long)wd[0]);
    int64_t in[2] = {1, xd[dims + 1]}, out[2];
    g.size[1] = wd[dims + 1];
    if (dims == 2) in[0] = xd[2], g.size[0] = wd[2];
    if (!tn__windows_fit(c, &g, dims, in, out)) return false;
    c->result[0] = (tn_result){x->dtype, {.n = dims + 2, .d = {xd[0], wd[0], out[2 - dims], out[1]}}};
    return true;
}

bool tn__pool_fit(const tn_ctx *c, const tn__windows *w, int dims, const int64_t in[2], int64_t out[2])
{
    if (!tn__windows_fit(c, w, dims, in, out)) return false;
    for (int i = dims == 2 ? 0 : 1; i < 2; i++) {
        if (w->padding[i] > w->size[i] / 2)
            return tn_infer_fail(c, TN_EINVAL, "padding %lld is more than half of the window's size %lld",
                                 (long long)w->padding[i], (long long)w->size[i]);
        if (in[i] >= w->dilation[i])
            continue; /* otherwise a window that starts in the padding may step over the image */
        const tn__image m = {.p.windows = *w, .in = {in[0], in[1]}};
        for (int64_t o = 0, start, first, end; o < out[i] && o * w->stride[i] < w->padding[i]; o++) {
            tn__taps(&m, i, o, &start, &first, &end);
            if (first < end) continue;
            return tn_infer_fail(
                c, TN_EINVAL, "with padding %lld and dilation %lld, window %lld of dim %d has no element",
                (long long)w->padding[i], (long long)w->dilation[i], (long long)o, dims == 1 ? 2 : i + 2);
        }
    }
    return true;
}

bool tn__no_ignore_padding(const char *caller, bool ignore_padding)
{
    if (!ignore_padding) return true;
    return tn_raise_false(TN_EINVAL, "%s: .ignore_padding is only for average pooling", caller);
}

bool tn__infer_pool(tn_ctx *c, int dims)
{
    const tn_shape x = c->in[0]->l.shape;
    char           text[192];
    int64_t        in[2] = {1, x.d[dims + 1]}, out[2];
    if (!tn__need_real(c, 0)) return false;
    if (x.n != dims + 2)
        return tn_infer_fail(c, TN_ESHAPE, "x must be %s, got %s", image_dims[dims],
                             tn_shape_text(x, text, sizeof text));
    if (dims == 2) in[0] = x.d[2];
    if (!tn__pool_fit(c, &((const tn__pool *)c->args)->windows, dims, in, out)) return false;
    c->result[0] = (tn_result){c->in[0]->dtype, {.n = dims + 2, .d = {x.d[0], x.d[1], out[2 - dims], out[1]}}};
    return true;
}

tn_tensor *tn__images(tn_tensor *x)
{
    const int64_t *d = x->l.shape.d;
    const tn_shape s = {.n = 3, .d = {d[0], d[1], d[2] * d[3]}};
    tn__layout     l;
    if (tn__layout_reshape(&x->l, s, &l)) return tn__alias(x, &l);
    tn_tensor *y = tn__new(x->dtype, s);
    if (!y) return NULL;
    const tn__layout four = tn__layout_of_shape(x->l.shape);
    tn_tensor        to = tn__stack_view(y, &four);
    tn__copy(&to, x);
    return y;
}
