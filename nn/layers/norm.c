/* norm.c — layer norm and RMS norm over the last dims: normalise each row to mean 0 and variance 1, or to mean square
 * 1. / */
#include "nn/base/nn_private.h"
#include "nn/layers/fuse.h"

/* True if the last dims of x are `shape`; else raises an error. */
static bool norm_fits(const char *who, const tn_tensor *x, tn_shape shape)
{
    char           a[192], b[192];
    const tn_shape s = tn_shape_of(x);
    bool           ok = s.n >= shape.n;
    for (int i = 0; ok && i < shape.n; i++) ok = s.d[s.n - shape.n + i] == shape.d[i];
    if (ok) return true;
    return tn_raise_false(TN_ESHAPE, "%s: the last dims of the input must be %s, but it is %s", who,
                          tn_shape_text(shape, a, sizeof a), tn_shape_text(s, b, sizeof b));
}

/* Joins the dims to normalise: without a weight, the op normalises only the last dim. */
static tn_tensor *join_dims(tn_tensor *x, tn_shape shape)
{
    return shape.n == 1 ? x : tn_flatten(x, tn_ndim(x) - shape.n, -1);
}

static void describe_shape(tn_shape shape, const char *eps, bool affine, char *text, size_t size)
{
    char dims[256];
    snprintf(text, size, "%s, eps=%s, elementwise_affine=%s", tn__tuple(shape, dims, sizeof dims), eps,
             tn__python_bool(affine));
}

/* ---- layer norm ------------------------------------------------------------------------------------------------ */

static tn_tensor *layer_norm_forward(void *self, tn_tensor *x)
{
    const tn_layer_norm *m = self;
    if (!norm_fits("layer_norm", x, m->shape)) return NULL;
    if (m->weight) return tn_layer_norm(x, m->weight, m->bias, m->eps);
    return tn_reshape(tn_layer_norm(join_dims(x, m->shape), NULL, NULL, m->eps), tn_shape_of(x));
}

static void layer_norm_describe(const void *self, char *text, size_t size)
{
    const tn_layer_norm *m = self;
    describe_shape(m->shape, tn__format_python(m->eps), !m->no_affine, text, size);
}

static const tn_class tn_layer_norm_class = {.size = sizeof(tn_class),
                                             .name = "LayerNorm",
                                             .bytes = sizeof(tn_layer_norm),
                                             .forward = layer_norm_forward,
                                             .describe = layer_norm_describe};

bool tn__is_layer_norm(const tn_module *m) { return m->kind == &tn_layer_norm_class; }

tn_layer_norm *tn_layer_norm_create(tn_layer_norm_config c)
{
    tn_shape shape;
    if (!tn__last_dims("tn_layer_norm_new", c.dim, c.shape, &shape) || !tn__floating("tn_layer_norm_new", c.dtype) ||
        !tn__epsilon("tn_layer_norm_new", c.eps))
        return NULL;
    tn_layer_norm *m = tn_module_new(tn_layer_norm);
    if (!m) return NULL;
    m->shape = shape, m->eps = c.eps, m->no_affine = c.no_affine;
    if (!c.no_affine) m->weight = tn_param(m, "weight", tn_ones_of(c.dtype, shape));
    if (!c.no_affine && !c.no_bias) m->bias = tn_param(m, "bias", tn_zeros_of(c.dtype, shape));
    return tn_built(m);
}

/* ---- RMS norm -------------------------------------------------------------------------------------------------- */

/* PyTorch's default: the machine epsilon of the dtype in which means are computed; for bf16 that is f32. */
static double eps_of(const tn_rms_norm *m, const tn_tensor *x)
{
    return m->eps >= 0 ? m->eps : tn__dtype_epsilon(tn_dtype_of(x) == TN_F64 ? TN_F64 : TN_F32);
}

static tn_tensor *rms_norm_forward(void *self, tn_tensor *x)
{
    const tn_rms_norm *m = self;
    const double       eps = eps_of(m, x);
    if (!norm_fits("rms_norm", x, m->shape)) return NULL;
    tn_tensor *weight = m->weight;
    if (m->add_one) /* 1 + w is rounded after the product, not before */
        weight = tn_add_scalar(tn_dtype_of(weight) == TN_BF16 ? tn_to(weight, TN_F32) : weight, 1);
    if (weight) return tn_rms_norm(x, weight, eps);
    return tn_reshape(tn_rms_norm(join_dims(x, m->shape), NULL, eps), tn_shape_of(x));
}

static void rms_norm_describe(const void *self, char *text, size_t size)
{
    const tn_rms_norm *m = self;
    describe_shape(m->shape, m->eps >= 0 ? tn__format_python(m->eps) : "None", m->weight, text, size);
}

static const tn_class tn_rms_norm_class = {.size = sizeof(tn_class),
                                           .name = "RMSNorm",
                                           .bytes = sizeof(tn_rms_norm),
                                           .forward = rms_norm_forward,
                                           .describe = rms_norm_describe};

tn_rms_norm *tn_rms_norm_create(tn_rms_norm_config c)
{
    tn_shape shape;
    if (c.add_one && c.no_affine)
        return tn_raise_null(TN_EINVAL, "tn_rms_norm_new: .add_one needs a weight; unset .no_affine");
    if (!tn__last_dims("tn_rms_norm_new", c.dim, c.shape, &shape) || !tn__floating("tn_rms_norm_new", c.dtype) ||
        !tn__epsilon("tn_rms_norm_new", c.eps < 0 ? 0 : c.eps)) /* below 0: chosen by dtype */
        return NULL;
    tn_rms_norm *m = tn_module_new(tn_rms_norm);
    if (!m) return NULL;
    m->shape = shape, m->eps = c.eps, m->no_affine = c.no_affine, m->add_one = c.add_one;
    if (!c.no_affine)
        m->weight = tn_param(m, "weight", c.add_one ? tn_zeros_of(c.dtype, shape) : tn_ones_of(c.dtype, shape));
    return tn_built(m);
}
