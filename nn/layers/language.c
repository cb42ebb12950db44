/* language.c — variational dropout, highway layers, and the weighted sum of a model's layers. */
#include "nn/base/nn_private.h"

/* ---- variational dropout ----------------------------------------------------------------------------------------- */

static tn_tensor *locked_dropout_forward(void *self, tn_tensor *x)
{
    const tn_locked_dropout *m = self;
    char                     text[192];
    if (!m->base.training || m->p <= 0 || !x) return x;
    tn_shape s = tn_shape_of(x);
    if (s.n != 3)
        return tn_raise_null(TN_ESHAPE, "locked_dropout: x %s must be [%s, n]", tn_shape_text(s, text, sizeof text),
                             m->time_first ? "T, B" : "B, T");
    s.d[m->time_first ? 0 : 1] = 1;
    return tn_mul(x, tn_dropout(tn_ones_of(tn_dtype_of(x), s), m->p));
}

static void locked_dropout_describe(const void *self, char *text, size_t size)
{
    snprintf(text, size, "p=%s", tn__format_python(((const tn_locked_dropout *)self)->p));
}

static const tn_class tn_locked_dropout_class = {.size = sizeof(tn_class),
                                                 .name = "LockedDropout",
                                                 .bytes = sizeof(tn_locked_dropout),
                                                 .forward = locked_dropout_forward,
                                                 .describe = locked_dropout_describe};

tn_locked_dropout *tn_locked_dropout_create(tn_locked_dropout_config c)
{
    if (!tn__probability("tn_locked_dropout_new", "p", c.p)) return NULL;
    tn_locked_dropout *m = tn_module_new(tn_locked_dropout);
    if (!m) return NULL;
    m->p = c.p, m->time_first = c.time_first;
    return tn_built(m);
}

/* ---- highway layers ---------------------------------------------------------------------------------------------- */

static tn_tensor *highway_forward(void *self, tn_tensor *x)
{
    const tn_highway *m = self;
    for (int64_t i = 0; i < m->layers && tn_error() == TN_OK; i++) {
        tn_tensor *both = tn_call(m->layer[i], x);
        tn_tensor *fresh = m->activation(tn_narrow(both, -1, 0, m->dim)),
                  *gate = tn_sigmoid(tn_narrow(both, -1, m->dim, m->dim));
        x = tn_add(fresh, tn_mul(gate, tn_sub(x, fresh)));
    }
    return x;
}

static void highway_describe(const void *self, char *text, size_t size)
{
    snprintf(text, size, "dim=%lld", (long long)((const tn_highway *)self)->dim);
}

static const tn_class tn_highway_class = {.size = sizeof(tn_class),
                                          .name = "Highway",
                                          .bytes = sizeof(tn_highway),
                                          .forward = highway_forward,
                                          .describe = highway_describe};

tn_highway *tn_highway_create(tn_highway_config c)
{
    const char *who = "tn_highway_new";
    if (!tn__at_least(who, "dim", c.dim, 1) || !tn__at_least(who, "layers", c.layers, 1) || !tn__floating(who, c.dtype))
        return NULL;
    tn_highway *m = tn_module_new(tn_highway);
    if (!m) return NULL;
    m->dim = c.dim, m->layers = c.layers, m->activation = c.activation ? c.activation : tn_relu;
    m->layer = tn_array(m, c.layers, tn_linear *);
    tn_module_list *list = tn_child(m, "layers", tn_module_list_new());
    for (int64_t i = 0; list && i < c.layers && tn_error() == TN_OK; i++) {
        m->layer[i] = tn_append(list, tn_linear_new(.in = c.dim, .out = 2 * c.dim, .dtype = c.dtype));
        if (!m->layer[i]) break;
        const tn_scope s = tn_no_grad_begin();
        tn_fill(tn_narrow(m->layer[i]->bias, 0, c.dim, c.dim), 1);
        tn_scope_end(s);
    }
    return tn_built(m);
}

/* ---- weighted sum of layers -------------------------------------------------------------------------------------- */

static void scalar_mix_describe(const void *self, char *text, size_t size)
{
    snprintf(text, size, "count=%lld", (long long)((const tn_scalar_mix *)self)->count);
}

static const tn_class tn_scalar_mix_class = {
    .size = sizeof(tn_class), .name = "ScalarMix", .bytes = sizeof(tn_scalar_mix), .describe = scalar_mix_describe};

tn_scalar_mix *tn_scalar_mix_create(tn_scalar_mix_config c)
{
    if (!tn__at_least("tn_scalar_mix_new", "count", c.count, 1) || !tn__floating("tn_scalar_mix_new", c.dtype))
        return NULL;
    tn_scalar_mix *m = tn_module_new(tn_scalar_mix);
    if (!m) return NULL;
    m->count = c.count;
    m->weight = tn_param(m, "weight", tn_zeros_of(c.dtype, TN_SHAPE(c.count)));
    m->gamma = tn_param(m, "gamma", tn_ones_of(c.dtype, TN_SCALAR));
    return tn_built(m);
}

tn_tensor *tn_scalar_mix_forward(tn_scalar_mix *m, int n, tn_tensor *const *x)
{
    if (!tn_ready(m)) return NULL;
    tn_frame f = tn_enter(m);
    if (n != m->count || !x)
        return tn_raise(TN_EINVAL, "scalar_mix: %d layers, expected %lld", x ? n : 0, (long long)m->count),
               tn_leave(f, NULL);
    tn_tensor *share = tn_mul(tn_softmax(m->weight, 0), m->gamma), *sum = NULL;
    for (int i = 0; i < n && tn_error() == TN_OK; i++) {
        tn_tensor *part = tn_mul(x[i], tn_select(share, 0, i));
        sum = sum ? tn_add(sum, part) : part;
    }
    return tn_leave(f, sum);
}
