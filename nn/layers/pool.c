/* pool.c — max pooling and average pooling, with windows of a given size or results of a given size. */
#include "nn/base/nn_private.h"

static tn_tensor *max_pool1d_forward(void *self, tn_tensor *x)
{
    const tn_pool *m = self;
    return tn_max_pool1d(x, .size = m->size[0], .stride = m->stride[0], .padding = m->padding[0],
                         .dilation = m->dilation[0]);
}
static tn_tensor *max_pool2d_forward(void *self, tn_tensor *x)
{
    const tn_pool *m = self;
    return tn_max_pool2d(x, .size = m->size[0], .size_w = m->size[1], .stride = m->stride[0], .stride_w = m->stride[1],
                         .padding = m->padding[0], .padding_w = m->padding[1], .dilation = m->dilation[0],
                         .dilation_w = m->dilation[1]);
}
static tn_tensor *avg_pool1d_forward(void *self, tn_tensor *x)
{
    const tn_pool *m = self;
    return tn_avg_pool1d(x, .size = m->size[0], .stride = m->stride[0], .padding = m->padding[0],
                         .ignore_padding = m->ignore_padding);
}
static tn_tensor *avg_pool2d_forward(void *self, tn_tensor *x)
{
    const tn_pool *m = self;
    return tn_avg_pool2d(x, .size = m->size[0], .size_w = m->size[1], .stride = m->stride[0], .stride_w = m->stride[1],
                         .padding = m->padding[0], .padding_w = m->padding[1], .ignore_padding = m->ignore_padding);
}

#define ADAPTIVE(lower, ...)                                               \
    static tn_tensor *adaptive_##lower##_forward(void *self, tn_tensor *x) \
    {                                                                      \
        const tn_pool *m = self;                                           \
        return tn_adaptive_##lower(x, __VA_ARGS__);                        \
    }
ADAPTIVE(avg_pool1d, m->size[0])
ADAPTIVE(avg_pool2d, m->size[0], m->size[1])
ADAPTIVE(max_pool1d, m->size[0])
ADAPTIVE(max_pool2d, m->size[0], m->size[1])

/* "3", or "(3, 2)" if the two sizes differ. */
static const char *size_text(const int64_t v[2], char *to, size_t size)
{
    if (v[0] != v[1]) return tn__tuple(TN_SHAPE(v[0], v[1]), to, size);
    snprintf(to, size, "%lld", (long long)v[0]);
    return to;
}

static void max_pool_describe(const void *self, char *text, size_t size)
{
    const tn_pool *m = self;
    char           a[64], b[64], c[64], d[64];
    snprintf(text, size, "kernel_size=%s, stride=%s, padding=%s, dilation=%s, ceil_mode=False",
             size_text(m->size, a, sizeof a), size_text(m->stride, b, sizeof b), size_text(m->padding, c, sizeof c),
             size_text(m->dilation, d, sizeof d));
}
static void avg_pool1d_describe(const void *self, char *text, size_t size)
{
    const tn_pool *m = self;
    snprintf(text, size, "kernel_size=(%lld,), stride=(%lld,), padding=(%lld,)", (long long)m->size[0],
             (long long)m->stride[0], (long long)m->padding[0]);
}
static void avg_pool2d_describe(const void *self, char *text, size_t size)
{
    const tn_pool *m = self;
    char           a[64], b[64], c[64];
    snprintf(text, size, "kernel_size=%s, stride=%s, padding=%s", size_text(m->size, a, sizeof a),
             size_text(m->stride, b, sizeof b), size_text(m->padding, c, sizeof c));
}
static void adaptive_describe(const void *self, char *text, size_t size)
{
    const tn_pool *m = self;
    char           a[64];
    snprintf(text, size, "output_size=%s", size_text(m->size, a, sizeof a));
}

#define CLASS(variable, Name, how, said) \
    static const tn_class variable = {   \
        .size = sizeof(tn_class), .name = Name, .bytes = sizeof(tn_pool), .forward = how, .describe = said}
CLASS(max1_class, "MaxPool1d", max_pool1d_forward, max_pool_describe);
CLASS(max2_class, "MaxPool2d", max_pool2d_forward, max_pool_describe);
CLASS(avg1_class, "AvgPool1d", avg_pool1d_forward, avg_pool1d_describe);
CLASS(avg2_class, "AvgPool2d", avg_pool2d_forward, avg_pool2d_describe);
CLASS(adaptive_avg1_class, "AdaptiveAvgPool1d", adaptive_avg_pool1d_forward, adaptive_describe);
CLASS(adaptive_avg2_class, "AdaptiveAvgPool2d", adaptive_avg_pool2d_forward, adaptive_describe);
CLASS(adaptive_max1_class, "AdaptiveMaxPool1d", adaptive_max_pool1d_forward, adaptive_describe);
CLASS(adaptive_max2_class, "AdaptiveMaxPool2d", adaptive_max_pool2d_forward, adaptive_describe);

static tn_pool *pool_create(const char *who, const tn_class *kind, tn_pool2d_config c)
{
    int64_t size[2], stride[2], padding[2], dilation[2];
    tn__window2d(c.size, c.size_w, size), tn__window2d(c.stride, c.stride_w, stride), tn__window2d_or(size, stride);
    tn__window2d(c.padding, c.padding_w, padding), tn__window2d(c.dilation, c.dilation_w, dilation);
    for (int i = 0; i < 2; i++)
        if (!tn__at_least(who, "size", size[i], 1) || !tn__at_least(who, "stride", stride[i], 1) ||
            !tn__at_least(who, "padding", padding[i], 0) || !tn__at_least(who, "dilation", dilation[i], 1))
            return NULL;
    tn_pool *m = tn_module_create(kind);
    if (!m) return NULL;
    for (int i = 0; i < 2; i++)
        m->size[i] = size[i], m->stride[i] = stride[i], m->padding[i] = padding[i], m->dilation[i] = dilation[i];
    m->ignore_padding = c.ignore_padding;
    return tn_built(m);
}

static tn_pool *pool1d_create(const char *who, const tn_class *kind, tn_pool1d_config c)
{
    return pool_create(who, kind,
                       (tn_pool2d_config){.size_w = -1,
                                          .stride_w = -1,
                                          .padding_w = -1,
                                          .dilation_w = -1,
                                          .size = c.size,
                                          .stride = c.stride,
                                          .padding = c.padding,
                                          .dilation = c.dilation,
                                          .ignore_padding = c.ignore_padding});
}

static tn_pool *only_for_average(const char *who)
{
    return tn_raise_null(TN_EINVAL, "%s: .ignore_padding is only for average pooling; max pooling never uses padding",
                         who);
}

tn_pool *tn_max_pool1d_create(tn_pool1d_config c)
{
    static const char who[] = "tn_max_pool1d_new";
    return c.ignore_padding ? only_for_average(who) : pool1d_create(who, &max1_class, c);
}
tn_pool *tn_max_pool2d_create(tn_pool2d_config c)
{
    static const char who[] = "tn_max_pool2d_new";
    return c.ignore_padding ? only_for_average(who) : pool_create(who, &max2_class, c);
}
tn_pool *tn_avg_pool1d_create(tn_pool1d_config c)
{
    if (c.dilation > 1) return tn_raise_null(TN_EINVAL, "tn_avg_pool1d_new: .dilation is only for max pooling");
    return pool1d_create("tn_avg_pool1d_new", &avg1_class, c);
}
tn_pool *tn_avg_pool2d_create(tn_pool2d_config c)
{
    if (c.dilation > 1 || c.dilation_w > 1)
        return tn_raise_null(TN_EINVAL, "tn_avg_pool2d_new: .dilation is only for max pooling");
    return pool_create("tn_avg_pool2d_new", &avg2_class, c);
}

static tn_pool *adaptive_create(const char *who, const tn_class *kind, tn_adaptive_pool_config c, int dims)
{
    int64_t size[2];
    if (dims == 1 && c.out_w != -1)
        return tn_raise_null(TN_EINVAL, "%s: .out_w is %lld, but the pool has one dim; remove .out_w", who,
                             (long long)c.out_w);
    tn__window2d(c.out, c.out_w, size);
    if (!tn__at_least(who, "out", size[0], 1) || !tn__at_least(who, "out_w", size[1], 1)) return NULL;
    tn_pool *m = tn_module_create(kind);
    if (m) m->size[0] = size[0], m->size[1] = size[1];
    return tn_built(m);
}

tn_pool *tn_adaptive_avg_pool1d_create(tn_adaptive_pool_config c)
{
    return adaptive_create("tn_adaptive_avg_pool1d_new", &adaptive_avg1_class, c, 1);
}
tn_pool *tn_adaptive_avg_pool2d_create(tn_adaptive_pool_config c)
{
    return adaptive_create("tn_adaptive_avg_pool2d_new", &adaptive_avg2_class, c, 2);
}
tn_pool *tn_adaptive_max_pool1d_create(tn_adaptive_pool_config c)
{
    return adaptive_create("tn_adaptive_max_pool1d_new", &adaptive_max1_class, c, 1);
}
tn_pool *tn_adaptive_max_pool2d_create(tn_adaptive_pool_config c)
{
    return adaptive_create("tn_adaptive_max_pool2d_new", &adaptive_max2_class, c, 2);
}
