/* flatten.c — Flatten: joins the dims from first to last. */
#include "nn/base/nn_private.h"

static tn_tensor *flatten_forward(void *self, tn_tensor *x)
{
    const tn_flatten *m = self;
    return tn_flatten(x, m->first, m->last);
}

static void flatten_describe(const void *self, char *text, size_t size)
{
    const tn_flatten *m = self;
    snprintf(text, size, "start_dim=%d, end_dim=%d", m->first, m->last);
}

static const tn_class tn_flatten_class = {.size = sizeof(tn_class),
                                          .name = "Flatten",
                                          .bytes = sizeof(tn_flatten),
                                          .forward = flatten_forward,
                                          .describe = flatten_describe};

tn_flatten *tn_flatten_create(tn_flatten_config c)
{
    tn_flatten *m = tn_module_new(tn_flatten);
    if (!m) return NULL;
    m->first = c.first, m->last = c.last;
    return tn_built(m);
}
