/* conv.c — 1-d and 2-d convolutions; weights and biases are initialised from U(±1/√(in/groups · kernel)). */
#include "nn/base/nn_private.h"

#include <math.h>

static bool check(const char *who, int64_t in, int64_t out, int64_t groups, tn_dtype dt)
{
    if (!tn__at_least(who, "in", in, 1) || !tn__at_least(who, "out", out, 1) ||
        !tn__at_least(who, "groups", groups, 1) || !tn__floating(who, dt))
        return false;
    if (groups > 0 && in % groups == 0 && out % groups == 0) return true;
    return tn_raise_false(TN_EINVAL, "%s: %lld groups do not divide %lld channels in and %lld out", who,
                          (long long)groups, (long long)in, (long long)out);
}

static bool check_window(const char *who, int64_t size, int64_t stride, int64_t padding, int64_t dilation)
{
    return tn__at_least(who, "size", size, 1) && tn__at_least(who, "stride", stride, 1) &&
           tn__at_least(who, "padding", padding, 0) && tn__at_least(who, "dilation", dilation, 1);
}

/* As in PyTorch, options at their defaults are not printed. */
static void conv_describe(char *text, size_t size, int dims, int64_t in, int64_t out, const int64_t *kernel,
                          const int64_t *stride, const int64_t *padding, const int64_t *dilation, int64_t groups,
                          bool bias)
{
    char     a[64], b[64], c[80] = "", d[80] = "", g[40] = "";
    tn_shape s[4] = {{.n = dims}, {.n = dims}, {.n = dims}, {.n = dims}};
    bool     padded = false, dilated = false;
    for (int i = 0; i < dims; i++) {
        s[0].d[i] = kernel[i], s[1].d[i] = stride[i], s[2].d[i] = padding[i], s[3].d[i] = dilation[i];
        padded = padded || padding[i] != 0, dilated = dilated || dilation[i] != 1;
    }
    tn__tuple(s[0], a, sizeof a), tn__tuple(s[1], b, sizeof b);
    if (padded) memcpy(c, ", padding=", 11), tn__tuple(s[2], c + 10, sizeof c - 10);
    if (dilated) memcpy(d, ", dilation=", 12), tn__tuple(s[3], d + 11, sizeof d - 11);
    if (groups != 1) snprintf(g, sizeof g, ", groups=%lld", (long long)groups);
    snprintf(text, size, "%lld, %lld, kernel_size=%s, stride=%s%s%s%s%s", (long long)in, (long long)out, a, b, c, d, g,
             bias ? "" : ", bias=False");
}

/* ---- one dim --------------------------------------------------------------------------------------------------- */

static tn_tensor *conv1d_forward(void *self, tn_tensor *x)
{
    const tn_conv1d *m = self;
    return tn_conv1d(x, m->weight, m->bias, .stride = m->stride, .padding = m->padding, .dilation = m->dilation,
                     .groups = m->groups);
}

static void conv1d_describe(const void *self, char *text, size_t size)
{
    const tn_conv1d *m = self;
    conv_describe(text, size, 1, m->in, m->out, &m->size, &m->stride, &m->padding, &m->dilation, m->groups, m->bias);
}

static const tn_class tn_conv1d_class = {.size = sizeof(tn_class),
                                         .name = "Conv1d",
                                         .bytes = sizeof(tn_conv1d),
                                         .forward = conv1d_forward,
                                         .describe = conv1d_describe};

tn_conv1d *tn_conv1d_create(tn_conv1d_config c)
{
    const char *who = "tn_conv1d_new";
    if (!check(who, c.in, c.out, c.groups, c.dtype) || !check_window(who, c.size, c.stride, c.padding, c.dilation))
        return NULL;
    tn_conv1d *m = tn_module_new(tn_conv1d);
    if (!m) return NULL;
    const int64_t fan = c.in / c.groups;
    const double  k = 1 / sqrt((double)fan * (double)c.size);
    m->in = c.in, m->out = c.out, m->size = c.size, m->stride = c.stride, m->padding = c.padding,
    m->dilation = c.dilation;
    m->groups = c.groups;
    m->weight = tn_param(m, "weight", tn_uniform_of(c.dtype, TN_SHAPE(c.out, c.in / c.groups, c.size), -k, k));
    if (!c.no_bias) m->bias = tn_param(m, "bias", tn_uniform_of(c.dtype, TN_SHAPE(c.out), -k, k));
    return tn_built(m);
}

/* ---- two dims -------------------------------------------------------------------------------------------------- */

static tn_tensor *conv2d_forward(void *self, tn_tensor *x)
{
    const tn_conv2d *m = self;
    return tn_conv2d(x, m->weight, m->bias, .stride = m->stride[0], .stride_w = m->stride[1], .padding = m->padding[0],
                     .padding_w = m->padding[1], .dilation = m->dilation[0], .dilation_w = m->dilation[1],
                     .groups = m->groups);
}

static void conv2d_describe(const void *self, char *text, size_t size)
{
    const tn_conv2d *m = self;
    conv_describe(text, size, 2, m->in, m->out, m->size, m->stride, m->padding, m->dilation, m->groups, m->bias);
}

static const tn_class tn_conv2d_class = {.size = sizeof(tn_class),
                                         .name = "Conv2d",
                                         .bytes = sizeof(tn_conv2d),
                                         .forward = conv2d_forward,
                                         .describe = conv2d_describe};

tn_conv2d *tn_conv2d_create(tn_conv2d_config c)
{
    const char *who = "tn_conv2d_new";
    int64_t     size[2], stride[2], padding[2], dilation[2];
    tn__window2d(c.size, c.size_w, size), tn__window2d(c.stride, c.stride_w, stride);
    tn__window2d(c.padding, c.padding_w, padding), tn__window2d(c.dilation, c.dilation_w, dilation);
    if (!check(who, c.in, c.out, c.groups, c.dtype)) return NULL;
    for (int i = 0; i < 2; i++)
        if (!check_window(who, size[i], stride[i], padding[i], dilation[i])) return NULL;
    tn_conv2d *m = tn_module_new(tn_conv2d);
    if (!m) return NULL;
    const int64_t fan = c.in / c.groups;
    const double  k = 1 / sqrt((double)fan * (double)size[0] * (double)size[1]);
    m->in = c.in, m->out = c.out, m->groups = c.groups;
    for (int i = 0; i < 2; i++)
        m->size[i] = size[i], m->stride[i] = stride[i], m->padding[i] = padding[i], m->dilation[i] = dilation[i];
    m->weight =
        tn_param(m, "weight", tn_uniform_of(c.dtype, TN_SHAPE(c.out, c.in / c.groups, size[0], size[1]), -k, k));
    if (!c.no_bias) m->bias = tn_param(m, "bias", tn_uniform_of(c.dtype, TN_SHAPE(c.out), -k, k));
    return tn_built(m);
}
