/* dropout.c — Dropout: tn_dropout in training, else the identity. */
#include "nn/base/nn_private.h"

static tn_tensor *dropout_forward(void *self, tn_tensor *x)
{
    const tn_dropout *m = self;
    return m->base.training && m->p > 0 ? tn_dropout(x, m->p) : x;
}

static void dropout_describe(const void *self, char *text, size_t size)
{
    snprintf(text, size, "p=%s, inplace=False", tn__format_python(((const tn_dropout *)self)->p));
}

static const tn_class tn_dropout_class = {.size = sizeof(tn_class),
                                          .name = "Dropout",
                                          .bytes = sizeof(tn_dropout),
                                          .forward = dropout_forward,
                                          .describe = dropout_describe};

tn_dropout *tn_dropout_create(tn_dropout_config c)
{
    if (!tn__probability("tn_dropout_new", "p", c.p)) return NULL;
    tn_dropout *m = tn_module_new(tn_dropout);
    if (!m) return NULL;
    m->p = c.p;
    return tn_built(m);
}
