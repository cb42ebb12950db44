/* group_norm.c — group norm: splits the channels of a sample into groups and normalises each to mean 0 and variance 1.
 * With one channel per group it is instance norm. */
#include "nn/base/nn_private.h"

static tn_tensor *normalise_groups(tn_group_norm *m, tn_tensor *x, const char *who, const char *shape, int least,
                                   int most)
{
    char           text[192];
    const tn_shape s = tn_shape_of(x);
    if (s.n < least || s.n > most || s.d[1] != m->channels)
        return tn_raise_null(TN_ESHAPE, "%s: the input must be %s with C = %lld, got %s", who, shape,
                             (long long)m->channels, tn_shape_text(s, text, sizeof text));
    int64_t values = m->channels / m->groups;
    for (int i = 2; i < s.n; i++) values *= s.d[i];
    if (least == most && values == 1) /* instance norm: the result would be the bias */
        return tn_raise_null(TN_ESHAPE, "%s: each channel needs more than one value, but the input is %s", who,
                             tn_shape_text(s, text, sizeof text));
    tn_tensor *y = tn_layer_norm(tn_reshape(x, TN_SHAPE(s.d[0] * m->groups, values)), NULL, NULL, m->eps);
    y = tn_reshape(y, s);
    if (!m->weight) return y;
    tn_shape per_channel = {.n = s.n - 1, .d = {m->channels}};
    for (int i = 1; i < per_channel.n; i++) per_channel.d[i] = 1;
    return tn_add(tn_mul(y, tn_reshape(m->weight, per_channel)), tn_reshape(m->bias, per_channel));
}

static tn_tensor *group_norm_forward(void *m, tn_tensor *x)
{
    return normalise_groups(m, x, "group_norm", "[N, C, ...]", 2, TN_MAX_DIMS);
}
static tn_tensor *instance_norm1d_forward(void *m, tn_tensor *x)
{
    return normalise_groups(m, x, "instance_norm", "[N, C, L]", 3, 3);
}
static tn_tensor *instance_norm2d_forward(void *m, tn_tensor *x)
{
    return normalise_groups(m, x, "instance_norm", "[N, C, H, W]", 4, 4);
}

static void group_norm_describe(const void *self, char *text, size_t size)
{
    const tn_group_norm *m = self;
    snprintf(text, size, "%lld, %lld, eps=%s, affine=%s", (long long)m->groups, (long long)m->channels,
             tn__format_python(m->eps), tn__python_bool(m->weight));
}

static void instance_norm_describe(const void *self, char *text, size_t size)
{
    const tn_group_norm *m = self;
    snprintf(text, size, "%lld, eps=%s, momentum=0.1, affine=%s, track_running_stats=False", (long long)m->channels,
             tn__format_python(m->eps), tn__python_bool(m->weight));
}

static const tn_class group_class = {.size = sizeof(tn_class),
                                     .name = "GroupNorm",
                                     .bytes = sizeof(tn_group_norm),
                                     .forward = group_norm_forward,
                                     .describe = group_norm_describe};
static const tn_class class1 = {.size = sizeof(tn_class),
                                .name = "InstanceNorm1d",
                                .bytes = sizeof(tn_group_norm),
                                .forward = instance_norm1d_forward,
                                .describe = instance_norm_describe};
static const tn_class class2 = {.size = sizeof(tn_class),
                                .name = "InstanceNorm2d",
                                .bytes = sizeof(tn_group_norm),
                                .forward = instance_norm2d_forward,
                                .describe = instance_norm_describe};

static tn_group_norm *group_norm_create(const tn_class *kind, tn_group_norm_config c)
{
    tn_group_norm *m = tn_module_create(kind);
    if (!m) return NULL;
    m->groups = c.groups, m->channels = c.channels, m->eps = c.eps;
    if (!c.no_affine) {
        m->weight = tn_param(m, "weight", tn_ones_of(c.dtype, TN_SHAPE(c.channels)));
        m->bias = tn_param(m, "bias", tn_zeros_of(c.dtype, TN_SHAPE(c.channels)));
    }
    return tn_built(m);
}

tn_group_norm *tn_group_norm_create(tn_group_norm_config c)
{
    const char *who = "tn_group_norm_new";
    if (!tn__at_least(who, "groups", c.groups, 1) || !tn__at_least(who, "channels", c.channels, 1) ||
        !tn__floating(who, c.dtype))
        return NULL;
    if (c.channels % c.groups)
        return tn_raise_null(TN_EINVAL, "%s: %lld groups do not divide %lld channels", who, (long long)c.groups,
                             (long long)c.channels);
    return group_norm_create(&group_class, c);
}

static tn_group_norm *create_instance(const char *who, const tn_class *kind, tn_instance_norm_config c)
{
    if (!tn__at_least(who, "features", c.features, 1) || !tn__floating(who, c.dtype)) return NULL;
    return group_norm_create(
        kind,
        (tn_group_norm_config){
            .groups = c.features, .channels = c.features, .eps = c.eps, .no_affine = !c.affine, .dtype = c.dtype});
}

tn_group_norm *tn_instance_norm1d_create(tn_instance_norm_config c)
{
    return create_instance("tn_instance_norm1d_new", &class1, c);
}
tn_group_norm *tn_instance_norm2d_create(tn_instance_norm_config c)
{
    return create_instance("tn_instance_norm2d_new", &class2, c);
}
