/* batch_norm.c — batch norm: normalises each channel to mean 0 and variance 1 over the batch; in evaluation with the
 * running statistics.
 *
 * In training the running statistics are updated last, and only if the result has been computed. */
#include "nn/base/nn_private.h"

/* A view of the per-channel values t [C] that broadcasts with x [N, C, ...]. */
static tn_tensor *per_channel(tn_tensor *t, const tn_tensor *x)
{
    tn_shape s = {.n = tn_ndim(x) - 1, .d = {tn_numel(t)}};
    for (int i = 1; i < s.n; i++) s.d[i] = 1;
    return tn_reshape(t, s);
}

static tn_tensor *affine(const tn_batch_norm *m, tn_tensor *y)
{
    if (!m->weight) return y;
    return tn_add(tn_mul(y, per_channel(m->weight, y)), per_channel(m->bias, y));
}

static tn_tensor *mixed(tn_tensor *old, tn_tensor *now, double share)
{
    return tn_add(tn_mul_scalar(old, 1 - share), tn_mul_scalar(now, share));
}

/* Updates the running statistics with those of rows [C, values]; by ops, which tn_functional_begin can replace. */
static void advance(tn_batch_norm *m, tn_tensor *rows)
{
    const tn_scope s = tn_no_grad_begin();
    if (tn_dtype_of(rows) == TN_BF16) rows = tn_to(rows, tn_dtype_of(m->running_mean));
    const double share = m->cumulative ? 1 / (1 + tn_item(tn_clone(m->num_batches_tracked))) : m->momentum;
    tn_tensor   *mean = mixed(m->running_mean, tn_mean(rows, .dims = TN_DIMS(1)), share);
    tn_tensor   *var = mixed(m->running_var, tn_var(rows, .dims = TN_DIMS(1)), share);
    if (tn_error() == TN_OK) {
        tn_copy_(m->running_mean, mean), tn_copy_(m->running_var, var);
        tn_add_scalar_(m->num_batches_tracked, 1);
    }
    tn_scope_end(s);
}

static tn_tensor *batch_norm_forward(tn_batch_norm *m, tn_tensor *x, int least, int most)
{
    char           text[192];
    const tn_shape s = tn_shape_of(x);
    if (s.n < least || s.n > most || s.d[1] != m->features)
        return tn_raise_null(TN_ESHAPE, "batch_norm: the input must be %s with C = %lld, got %s",
                             most == 3 ? "[N, C] or [N, C, L]" : "[N, C, H, W]", (long long)m->features,
                             tn_shape_text(s, text, sizeof text));
    if (!m->base.training && m->running_mean) {
        tn_tensor *scale = tn_rsqrt(tn_add_scalar(m->running_var, m->eps));
        return affine(m, tn_mul(tn_sub(x, per_channel(m->running_mean, x)), per_channel(scale, x)));
    }
    if (tn_numel(x) <= s.d[1] && (m->base.training || tn_numel(x)))
        return tn_raise_null(TN_ESHAPE, "batch_norm: %s each channel needs more than one value, but the input is %s",
                             m->base.training ? "in training" : "without running statistics",
                             tn_shape_text(s, text, sizeof text));
    tn_tensor *turned = tn_transpose(x, 0, 1), *rows = tn_flatten(turned, 1, -1); /* [C, N, ...], [C, values] */
    tn_tensor *y = tn_transpose(tn_reshape(tn_layer_norm(rows, NULL, NULL, m->eps), tn_shape_of(turned)), 0, 1);
    y = affine(m, y);
    if (y && m->base.training && m->running_mean) advance(m, tn_detach(rows));
    return y;
}

static tn_tensor *batch_norm1d_forward(void *m, tn_tensor *x) { return batch_norm_forward(m, x, 2, 3); }
static tn_tensor *batch_norm2d_forward(void *m, tn_tensor *x) { return batch_norm_forward(m, x, 4, 4); }

static void batch_norm_describe(const void *self, char *text, size_t size)
{
    const tn_batch_norm *m = self;
    snprintf(text, size, "%lld, eps=%s, momentum=%s, affine=%s, track_running_stats=%s", (long long)m->features,
             tn__format_python(m->eps), m->cumulative ? "None" : tn__format_python(m->momentum),
             tn__python_bool(m->weight), tn__python_bool(m->running_mean));
}

static const tn_class class1 = {.size = sizeof(tn_class),
                                .name = "BatchNorm1d",
                                .bytes = sizeof(tn_batch_norm),
                                .forward = batch_norm1d_forward,
                                .describe = batch_norm_describe};
static const tn_class class2 = {.size = sizeof(tn_class),
                                .name = "BatchNorm2d",
                                .bytes = sizeof(tn_batch_norm),
                                .forward = batch_norm2d_forward,
                                .describe = batch_norm_describe};

static tn_batch_norm *batch_norm_create(const char *who, const tn_class *kind, tn_batch_norm_config c)
{
    const tn_shape s = {.n = 1, .d = {c.features}};
    if (!tn__at_least(who, "features", c.features, 1) || !tn__floating(who, c.dtype) || !tn__epsilon(who, c.eps))
        return NULL;
    if (!(c.momentum >= 0 && c.momentum <= 1))
        return tn_raise_null(TN_EINVAL, "%s: .momentum is %s, but must be from 0 to 1", who,
                             tn__format_number(c.momentum));
    const bool set = c.cumulative || c.momentum != (tn_batch_norm_config){TN_BATCH_NORM_DEFAULTS}.momentum;
    if (set && c.no_running)
        return tn_raise_null(
            TN_EINVAL, "%s: .momentum and .cumulative have no effect with .no_running; remove them or .no_running",
            who);
    tn_batch_norm *m = tn_module_create(kind);
    if (!m) return NULL;
    m->features = c.features, m->eps = c.eps, m->momentum = c.momentum, m->cumulative = c.cumulative;
    if (!c.no_affine) {
        m->weight = tn_param(m, "weight", tn_ones_of(c.dtype, s));
        m->bias = tn_param(m, "bias", tn_zeros_of(c.dtype, s));
    }
    if (!c.no_running) {
        m->running_mean = tn_buffer(m, "running_mean", tn_zeros_of(c.dtype, s));
        m->running_var = tn_buffer(m, "running_var", tn_ones_of(c.dtype, s));
        m->num_batches_tracked = tn_buffer(m, "num_batches_tracked", tn_scalar_of(TN_I64, 0));
    }
    return tn_built(m);
}

tn_batch_norm *tn_batch_norm1d_create(tn_batch_norm_config c)
{
    return batch_norm_create("tn_batch_norm1d_new", &class1, c);
}
tn_batch_norm *tn_batch_norm2d_create(tn_batch_norm_config c)
{
    return batch_norm_create("tn_batch_norm2d_new", &class2, c);
}
