/* twins.c — deep networks that are alike but for residual connections and norms, on two spirals. */
#include "twins.h"

#include <math.h>

enum { WIDTH = 24, POINTS = 256, STEPS = 600 };

typedef struct {
    tn_module       base;
    tn_linear      *in, *out;
    tn_module_list *layers, *norms;
    int64_t         depth;
    bool            residual;
} twin;

static tn_tensor *twin_forward(twin *m, tn_tensor *x)
{
    if (!tn_ready(m)) return NULL;
    tn_frame f = tn_enter(m);
    x = tn_call(m->in, x);
    for (int64_t i = 0; i < m->depth; i++) {
        tn_tensor *h = tn_relu(
            tn_call((tn_linear *)tn_at(m->layers, i), m->norms ? tn_call((tn_layer_norm *)tn_at(m->norms, i), x) : x));
        x = m->residual ? tn_add(x, h) : h;
    }
    return tn_leave(f, tn_call(m->out, x));
}
TN_FORWARD(twin);

static twin *twin_new(int64_t depth, bool residual, bool normed)
{
    twin *m = tn_module_new(twin);
    if (!m) return NULL;
    m->depth = depth, m->residual = residual;
    m->in = tn_child(m, "in", tn_linear_new(.in = 2, .out = WIDTH));
    m->layers = tn_child(m, "layers", tn_module_list_new());
    if (normed) m->norms = tn_child(m, "norms", tn_module_list_new());
    for (int64_t i = 0; i < depth && tn_error() == TN_OK; i++) {
        tn_linear *l = tn_append(m->layers, tn_linear_new(.in = WIDTH, .out = WIDTH));
        if (l) tn_init_normal(l->weight, 0, sqrt(2.0 / WIDTH) * (residual ? 1 / sqrt((double)depth) : 1));
        if (normed) tn_append(m->norms, tn_layer_norm_new(.dim = WIDTH));
    }
    m->out = tn_child(m, "out", tn_linear_new(.in = WIDTH, .out = 2));
    return tn_built(m);
}

tn_tensor *twin_loss(void *net, void *user)
{
    const twin_data *d = user;
    return tn_cross_entropy(tn_call((twin *)net, d->x), d->y);
}

static void spirals(twin_data *d)
{
    float   x[2 * POINTS];
    int64_t y[POINTS];
    for (int i = 0; i < POINTS; i++) {
        const int    at = i / 2; /* both arms have as many points */
        const double t = 0.5 + 15.0 * at / POINTS, turn = i % 2 ? 3.14159265358979 : 0;
        x[2 * i] = (float)(t / 4 * cos(t + turn)), x[2 * i + 1] = (float)(t / 4 * sin(t + turn)), y[i] = i % 2;
    }
    d->x = tn_from_data(TN_F32, TN_SHAPE(POINTS, 2), x), d->y = tn_from_data(TN_I64, TN_SHAPE(POINTS), y);
}

tn_module *twin_trained(int64_t depth, bool residual, bool normed, uint64_t seed, twin_data *data)
{
    tn_seed(seed);
    spirals(data);
    twin         *m = twin_new(depth, residual, normed);
    tn_optimizer *opt = m ? tn_adamw_new(m, .lr = 2e-3, .clip.norm = 1) : NULL;
    for (int step = 0; step < STEPS && tn_error() == TN_OK; step++) {
        const tn_scope s = tn_scope_begin();
        tn_backward(twin_loss(m, data));
        tn_step(opt);
        tn_scope_end(s);
    }
    tn_optimizer_free(opt);
    if (tn_error() == TN_OK) return &m->base;
    tn_free(m);
    return NULL;
}
