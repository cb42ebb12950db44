/* user_modules.h — modules like those of a user, for the tests of nn/base: mlp, the smallest useful one; and model,
 * with an array of children, its own parameter and buffers, a tied head, a shared child, and no unary forward. */
#ifndef TENON_TESTS_COMMON_USER_MODULES_H
#define TENON_TESTS_COMMON_USER_MODULES_H

#include "nn/nn.h"

#include <stdio.h>

typedef struct {
    tn_module  base;
    tn_linear *up, *down;
} mlp;

static inline tn_tensor *mlp_forward(mlp *m, tn_tensor *x)
{
    if (!tn_ready(m)) return NULL;
    tn_frame f = tn_enter(m);
    x = tn_gelu(tn_call(m->up, x));
    return tn_leave(f, tn_call(m->down, x));
}
TN_FORWARD(mlp);

static inline mlp *mlp_new(int64_t dim)
{
    mlp *m = tn_module_new(mlp);
    if (!m) return NULL;
    m->up = tn_child(m, "up", tn_linear_new(.in = dim, .out = 4 * dim));
    m->down = tn_child(m, "down", tn_linear_new(.in = 4 * dim, .out = dim));
    return tn_built(m);
}

typedef struct {
    tn_module     base;
    tn_embedding *words;
    mlp         **layers;
    int           count;
    tn_tensor    *scale, *seen, *mask;
    tn_linear    *head;
    mlp          *again;
    tn_tensor    *bias; /* the bias of layers.0.up: a member of the root that points to a grandchild's parameter */
} model;

static inline tn_tensor *model_forward(model *m, tn_tensor *x, tn_tensor **hidden)
{
    if (hidden) *hidden = NULL;
    if (!tn_ready(m)) return NULL;
    tn_frame   f = tn_enter(m);
    tn_tensor *h = tn_call(m->words, x), *y;
    for (int i = 0; i < m->count; i++) h = tn_add(h, mlp_forward(m->layers[i], h));
    h = tn_mul(h, m->scale);
    y = tn_call(m->head, h);
    tn_leave_n(f, &y, &h);
    if (hidden) *hidden = h;
    return y;
}
TN_MODULE(model);

static inline model *model_new(int count)
{
    model *m = tn_module_new(model);
    if (!m) return NULL;
    m->words = tn_child(m, "words", tn_embedding_new(.count = 10, .dim = 4, .padding = 0));
    m->count = count;
    m->layers = tn_array(m, count, mlp *);
    for (int i = 0; m->layers && i < count; i++) m->layers[i] = tn_child(m, tn_name("layers.%d", i), mlp_new(4));
    m->scale = tn_param(m, "scale", tn_ones(TN_SHAPE(4)));
    m->seen = tn_buffer(m, "seen", tn_scalar_of(TN_I64, 0));
    m->mask = tn_buffer_unsaved(m, "mask", tn_zeros(TN_SHAPE(3)));
    m->head = tn_child(m, "head", tn_linear_new(.in = 4, .out = 10, .no_bias = true));
    tn_tie_to(m, "head.weight", "words.weight");
    m->again = m->layers ? tn_share(m, "again", m->layers[0]) : NULL;
    m->bias = m->again ? m->again->up->bias : NULL;
    return tn_built(m);
}

/* The names of a walk, separated by spaces: "a b c". */
static inline const char *names(tn_each e)
{
    static char text[4000];
    size_t      at = 0;
    text[0] = 0;
    while (tn_next(&e)) at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", at ? " " : "", e.name);
    return text;
}

static inline const char *printed(void *m, void (*print)(FILE *, void *))
{
    static char text[8000];
    FILE       *f = fmemopen(text, sizeof text, "w");
    print(f, m);
    fclose(f);
    return text;
}

#endif
