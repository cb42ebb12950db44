/* activation.c — activations, elementwise or along one dim, as modules for tn_sequential. */
#include "nn/base/nn_private.h"

/* F(class name, constructor name, expression in m and x); with options also the printf arguments of its description. */
#define PLAIN(F)                                                                    \
    F(ReLU, relu, tn_relu(x))                                                       \
    F(SELU, selu, tn_mul_scalar(tn_elu(x, 1.6732632423543772), 1.0507009873554805)) \
    F(SiLU, silu, tn_silu(x))                                                       \
    F(Mish, mish, tn_mish(x))                                                       \
    F(Tanh, tanh, tn_tanh(x))                                                       \
    F(Sigmoid, sigmoid, tn_sigmoid(x))                                              \
    F(LogSigmoid, logsigmoid, tn_logsigmoid(x))
#define WITH_OPTIONS(F)                                                                                       \
    F(LeakyReLU, leaky_relu, tn_leaky_relu(x, m->number), "negative_slope=%s", tn__format_python(m->number))  \
    F(ELU, elu, tn_elu(x, m->number), "alpha=%s", tn__format_python(m->number))                               \
    F(PReLU, prelu, tn_prelu(x, m->weight), "num_parameters=%lld", (long long)tn_numel(m->weight))            \
    F(GELU, gelu, m->tanh ? tn_gelu_tanh(x) : tn_gelu(x), "approximate='%s'", m->tanh ? "tanh" : "none")      \
    F(Softplus, softplus, tn_softplus(x, m->number), "beta=%s, threshold=20.0", tn__format_python(m->number)) \
    F(Softmax, softmax, tn_softmax(x, m->dim), "dim=%d", m->dim)                                              \
    F(LogSoftmax, log_softmax, tn_log_softmax(x, m->dim), "dim=%d", m->dim)                                   \
    F(GLU, glu, tn_glu(x, m->dim), "dim=%d", m->dim)

#define CLASS(Name, lower, how)                                            \
    static tn_tensor *lower##_forward(void *self, tn_tensor *x)            \
    {                                                                      \
        const tn_activation *m = self;                                     \
        (void)m;                                                           \
        return how;                                                        \
    }                                                                      \
    static const tn_class lower##_class = {.size = sizeof(tn_class),       \
                                           .name = #Name,                  \
                                           .bytes = sizeof(tn_activation), \
                                           .forward = lower##_forward DESCRIBED(lower)};
#define DESCRIBED(lower)
PLAIN(CLASS)
#undef DESCRIBED
#define DESCRIBED(lower) , .describe = lower##_describe
#define DESCRIBED_CLASS(Name, lower, how, ...)                              \
    static void lower##_describe(const void *self, char *text, size_t size) \
    {                                                                       \
        const tn_activation *m = self;                                      \
        snprintf(text, size, __VA_ARGS__);                                  \
    }                                                                       \
    CLASS(Name, lower, how)
WITH_OPTIONS(DESCRIBED_CLASS)

#define CONSTRUCTOR(Name, lower, how) \
    tn_activation *tn_##lower##_new(void) { return tn_module_built(tn_module_create(&lower##_class)); }
PLAIN(CONSTRUCTOR)

static tn_activation *activation_create(const tn_class *kind, double number, int dim, bool tanh)
{
    tn_activation *m = tn_module_create(kind);
    if (!m) return NULL;
    m->number = number, m->dim = dim, m->tanh = tanh;
    return tn_built(m);
}

tn_activation *tn_leaky_relu_create(tn_leaky_relu_config c)
{
    return activation_create(&leaky_relu_class, c.slope, 0, false);
}
tn_activation *tn_elu_create(tn_elu_config c) { return activation_create(&elu_class, c.alpha, 0, false); }
tn_activation *tn_prelu_create(tn_prelu_config c)
{
    if (!tn__at_least("tn_prelu_new", "parameters", c.parameters, 1) || !tn__floating("tn_prelu_new", c.dtype))
        return NULL;
    tn_activation *m = tn_module_create(&prelu_class);
    if (!m) return NULL;
    m->weight = tn_param(m, "weight", tn_full_of(c.dtype, TN_SHAPE(c.parameters), c.init));
    return tn_built(m);
}
tn_activation *tn_gelu_create(tn_gelu_config c) { return activation_create(&gelu_class, 0, 0, c.tanh); }
tn_activation *tn_softplus_create(tn_softplus_config c) { return activation_create(&softplus_class, c.beta, 0, false); }
tn_activation *tn_softmax_create(tn_along_config c) { return activation_create(&softmax_class, 0, c.dim, false); }
tn_activation *tn_log_softmax_create(tn_along_config c)
{
    return activation_create(&log_softmax_class, 0, c.dim, false);
}
tn_activation *tn_glu_create(tn_along_config c) { return activation_create(&glu_class, 0, c.dim, false); }
