/* conv.c — 1-d and 2-d convolutions and transposed convolutions; weights and biases are initialised from
 * U(±1/√(n · kernel)) with n the size of the weight's dim 1. */
#include "nn/layers/weight.h"

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

static bool check_window(const char *who, int64_t size, int64_t stride, int64_t padding, int64_t dilation,
                         bool transposed, int64_t output_padding)
{
    if (!tn__at_least(who, "size", size, 1) || !tn__at_least(who, "stride", stride, 1) ||
        !tn__at_least(who, "padding", padding, 0) || !tn__at_least(who, "dilation", dilation, 1) ||
        !tn__at_least(who, "output_padding", output_padding, 0))
        return false;
    if (!transposed && output_padding)
        return tn_raise_false(TN_EINVAL, "%s: .output_padding is only for transposed convolutions", who);
    if (output_padding < stride) return true;
    return tn_raise_false(TN_EINVAL, "%s: .output_padding is %lld, but must be less than the stride, %lld", who,
                          (long long)output_padding, (long long)stride);
}

/* As in PyTorch, options at their defaults are not printed. */
static void conv_describe(char *text, size_t size, int dims, int64_t in, int64_t out, const int64_t *const value[5],
                          int64_t groups, bool bias)
{
    static const struct {
        const char *name;
        int64_t     usual;
    } options[] = {{"kernel_size", 0}, {"stride", 0}, {"padding", 0}, {"dilation", 1}, {"output_padding", 0}};
    char line[500], a[64];
    int  n = snprintf(line, sizeof line, "%lld, %lld", (long long)in, (long long)out);
    for (int o = 0; o < 5; o++) {
        tn_shape s = {.n = dims};
        bool     shown = false;
        for (int i = 0; i < dims; i++) s.d[i] = value[o][i], shown = shown || s.d[i] != options[o].usual;
        if (shown)
            n += snprintf(line + n, sizeof line - (size_t)n, ", %s=%s", options[o].name, tn__tuple(s, a, sizeof a));
    }
    if (groups != 1) snprintf(line + n, sizeof line - (size_t)n, ", groups=%lld", (long long)groups);
    snprintf(text, size, "%s%s", line, bias ? "" : ", bias=False");
}

#define CONV_CLASS(dims, lower, Name)                                  \
    static const tn_class lower##_class = {.size = sizeof(tn_class),   \
                                           .name = Name,               \
                                           .bytes = sizeof(tn_##dims), \
                                           .forward = lower##_forward, \
                                           .describe = dims##_describe}

/* ---- one dim --------------------------------------------------------------------------------------------------- */

static tn_tensor *conv1d_forward(void *self, tn_tensor *x)
{
    const tn_conv1d *m = self;
    return tn_conv1d(x, tn__weight_of(m->weight, m->weight_g, m->weight_v), m->bias, .stride = m->stride,
                     .padding = m->padding, .dilation = m->dilation, .groups = m->groups);
}
static tn_tensor *conv_transpose1d_forward(void *self, tn_tensor *x)
{
    const tn_conv1d *m = self;
    return tn_conv_transpose1d(x, tn__weight_of(m->weight, m->weight_g, m->weight_v), m->bias, .stride = m->stride,
                               .padding = m->padding, .output_padding = m->output_padding, .dilation = m->dilation,
                               .groups = m->groups);
}

static void conv1d_describe(const void *self, char *text, size_t size)
{
    const tn_conv1d *m = self;
    conv_describe(text, size, 1, m->in, m->out,
                  (const int64_t *const[]){&m->size, &m->stride, &m->padding, &m->dilation, &m->output_padding},
                  m->groups, m->bias);
}
CONV_CLASS(conv1d, conv1d, "Conv1d");
CONV_CLASS(conv1d, conv_transpose1d, "ConvTranspose1d");

static tn_conv1d *conv1d_create(const char *who, const tn_class *kind, tn_conv1d_config c)
{
    const bool transposed = kind == &conv_transpose1d_class;
    if (!check(who, c.in, c.out, c.groups, c.dtype) ||
        !check_window(who, c.size, c.stride, c.padding, c.dilation, transposed, c.output_padding))
        return NULL;
    tn_conv1d *m = tn_module_create(kind);
    if (!m) return NULL;
    const int64_t rows = transposed ? c.in : c.out, columns = (transposed ? c.out : c.in) / c.groups;
    const double  k = 1 / sqrt((double)columns * (double)c.size);
    m->in = c.in, m->out = c.out, m->size = c.size, m->stride = c.stride, m->padding = c.padding;
    m->dilation = c.dilation, m->groups = c.groups, m->output_padding = c.output_padding;
    m->weight = tn__weight_new(m, c.weight_norm, tn_uniform_of(c.dtype, TN_SHAPE(rows, columns, c.size), -k, k),
                               &m->weight_g, &m->weight_v);
    if (!c.no_bias) m->bias = tn_param(m, "bias", tn_uniform_of(c.dtype, TN_SHAPE(c.out), -k, k));
    return tn_built(m);
}
tn_conv1d *tn_conv1d_create(tn_conv1d_config c) { return conv1d_create("tn_conv1d_new", &conv1d_class, c); }
tn_conv1d *tn_conv_transpose1d_create(tn_conv1d_config c)
{
    return conv1d_create("tn_conv_transpose1d_new", &conv_transpose1d_class, c);
}

/* ---- two dims -------------------------------------------------------------------------------------------------- */

static tn_tensor *conv2d_forward(void *self, tn_tensor *x)
{
    const tn_conv2d *m = self;
    return tn_conv2d(x, tn__weight_of(m->weight, m->weight_g, m->weight_v), m->bias, .stride = m->stride[0],
                     .stride_w = m->stride[1], .padding = m->padding[0], .padding_w = m->padding[1],
                     .dilation = m->dilation[0], .dilation_w = m->dilation[1], .groups = m->groups);
}
static tn_tensor *conv_transpose2d_forward(void *self, tn_tensor *x)
{
    const tn_conv2d *m = self;
    return tn_conv_transpose2d(x, tn__weight_of(m->weight, m->weight_g, m->weight_v), m->bias, .stride = m->stride[0],
                               .stride_w = m->stride[1], .padding = m->padding[0], .padding_w = m->padding[1],
                               .output_padding = m->output_padding[0], .output_padding_w = m->output_padding[1],
                               .dilation = m->dilation[0], .dilation_w = m->dilation[1], .groups = m->groups);
}

static void conv2d_describe(const void *self, char *text, size_t size)
{
    const tn_conv2d *m = self;
    conv_describe(text, size, 2, m->in, m->out,
                  (const int64_t *const[]){m->size, m->stride, m->padding, m->dilation, m->output_padding}, m->groups,
                  m->bias);
}
CONV_CLASS(conv2d, conv2d, "Conv2d");
CONV_CLASS(conv2d, conv_transpose2d, "ConvTranspose2d");

static tn_conv2d *conv2d_create(const char *who, const tn_class *kind, tn_conv2d_config c)
{
    const bool transposed = kind == &conv_transpose2d_class;
    int64_t    size[2], stride[2], padding[2], dilation[2], output_padding[2];
    tn__window2d(c.size, c.size_w, size), tn__window2d(c.stride, c.stride_w, stride);
    tn__window2d(c.padding, c.padding_w, padding), tn__window2d(c.dilation, c.dilation_w, dilation);
    tn__window2d(c.output_padding, c.output_padding_w, output_padding);
    if (!check(who, c.in, c.out, c.groups, c.dtype)) return NULL;
    for (int i = 0; i < 2; i++)
        if (!check_window(who, size[i], stride[i], padding[i], dilation[i], transposed, output_padding[i])) return NULL;
    tn_conv2d *m = tn_module_create(kind);
    if (!m) return NULL;
    const int64_t rows = transposed ? c.in : c.out, columns = (transposed ? c.out : c.in) / c.groups;
    const double  k = 1 / sqrt((double)columns * (double)size[0] * (double)size[1]);
    m->in = c.in, m->out = c.out, m->groups = c.groups;
    for (int i = 0; i < 2; i++) {
        m->size[i] = size[i], m->stride[i] = stride[i], m->padding[i] = padding[i];
        m->dilation[i] = dilation[i], m->output_padding[i] = output_padding[i];
    }
    m->weight =
        tn__weight_new(m, c.weight_norm, tn_uniform_of(c.dtype, TN_SHAPE(rows, columns, size[0], size[1]), -k, k),
                       &m->weight_g, &m->weight_v);
    if (!c.no_bias) m->bias = tn_param(m, "bias", tn_uniform_of(c.dtype, TN_SHAPE(c.out), -k, k));
    return tn_built(m);
}
tn_conv2d *tn_conv2d_create(tn_conv2d_config c) { return conv2d_create("tn_conv2d_new", &conv2d_class, c); }
tn_conv2d *tn_conv_transpose2d_create(tn_conv2d_config c)
{
    return conv2d_create("tn_conv_transpose2d_new", &conv_transpose2d_class, c);
}
