/* linear.c — Linear, y = x Wᵀ + b over the last dim. */
#include "nn/layers/fuse.h"
#include "nn/layers/lora.h"
#include "nn/layers/weight.h"

#include <math.h>

static tn_tensor *linear_forward(void *self, tn_tensor *x)
{
    const tn_linear *m = self;
    tn_tensor       *w = tn__weight_of(m->weight, m->weight_g, m->weight_v);
    return tn__lora_added(m->lora, x, tn_linear(x, w, m->bias), 0, m->out);
}

static void linear_describe(const void *self, char *text, size_t size)
{
    const tn_linear *m = self;
    snprintf(text, size, "in_features=%lld, out_features=%lld, bias=%s", (long long)m->in, (long long)m->out,
             tn__python_bool(m->bias));
}

static const tn_class tn_linear_class = {
    .size = sizeof(tn_class),
    .name = "Linear",
    .bytes = sizeof(tn_linear),
    .forward = linear_forward,
    .describe = linear_describe,
};

bool tn__is_linear(const tn_module *m) { return m->kind == &tn_linear_class; }

tn_linear *tn_linear_create(tn_linear_config c)
{
    if (!tn__at_least("tn_linear_new", "in", c.in, 1) || !tn__at_least("tn_linear_new", "out", c.out, 1) ||
        !tn__floating("tn_linear_new", c.dtype))
        return NULL;
    tn_linear *m = tn_module_new(tn_linear);
    if (!m) return NULL;
    const double k = 1 / sqrt((double)c.in);
    m->in = c.in, m->out = c.out;
    m->weight = tn__weight_new(m, c.weight_norm, tn_uniform_of(c.dtype, TN_SHAPE(c.out, c.in), -k, k), &m->weight_g,
                               &m->weight_v);
    if (!c.no_bias) m->bias = tn_param(m, "bias", tn_uniform_of(c.dtype, TN_SHAPE(c.out), -k, k));
    return tn_built(m);
}
