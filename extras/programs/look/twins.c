/* twins.c — deep networks that differ only in residual connections and norms: ReLU layers that classify two spirals or
 * digits, or Transformers that reverse words. */
#include "twins.h"

#include <math.h>

enum { WIDTH = 24, POINTS = 256, STEPS = 600, HEADS = 3, LETTERS = 6, LENGTH = 8, WORDS = 64, SIDE = 14 };

/* ---- ReLU network ------------------------------------------------------------------------------------------------ */

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

static twin *twin_new(int64_t in, int64_t out, int64_t depth, bool residual, bool normed)
{
    twin *m = tn_module_new(twin);
    if (!m) return NULL;
    m->depth = depth, m->residual = residual;
    m->in = tn_child(m, "in", tn_linear_new(.in = in, .out = WIDTH));
    m->layers = tn_child(m, "layers", tn_module_list_new());
    if (normed) m->norms = tn_child(m, "norms", tn_module_list_new());
    for (int64_t i = 0; i < depth && tn_error() == TN_OK; i++) {
        tn_linear *l = tn_append(m->layers, tn_linear_new(.in = WIDTH, .out = WIDTH));
        if (l) tn_init_normal(l->weight, 0, sqrt(2.0 / WIDTH) * (residual ? 1 / sqrt((double)depth) : 1));
        if (normed) tn_append(m->norms, tn_layer_norm_new(.dim = WIDTH));
    }
    m->out = tn_child(m, "out", tn_linear_new(.in = WIDTH, .out = out));
    return tn_built(m);
}

/* ---- Transformer ------------------------------------------------------------------------------------------------- */

typedef struct {
    tn_module       base;
    tn_embedding   *letters, *places;
    tn_module_list *attention, *in, *out, *norms; /* norms: two per layer; NULL: none */
    tn_linear      *say;
    int64_t         depth;
    bool            residual;
} reader;

/* The input of sublayer k (0: attention, 1: feed-forward) of layer i. */
static tn_tensor *read_by(reader *m, int64_t i, int k, tn_tensor *x)
{
    return m->norms ? tn_call((tn_layer_norm *)tn_at(m->norms, 2 * i + k), x) : x;
}

static tn_tensor *reader_forward(reader *m, tn_tensor *ids)
{
    if (!tn_ready(m)) return NULL;
    tn_frame   f = tn_enter(m);
    tn_tensor *x = tn_add(tn_call(m->letters, ids), tn_call(m->places, tn_arange(tn_size(ids, 1))));
    for (int64_t i = 0; i < m->depth; i++) {
        tn_tensor *h = read_by(m, i, 0, x);
        h = tn_mha_forward((tn_mha *)tn_at(m->attention, i), h, h, h);
        x = m->residual ? tn_add(x, h) : h;
        h = tn_relu(tn_call((tn_linear *)tn_at(m->in, i), read_by(m, i, 1, x)));
        h = tn_call((tn_linear *)tn_at(m->out, i), h);
        x = m->residual ? tn_add(x, h) : h;
    }
    return tn_leave(f, tn_call(m->say, x));
}
TN_FORWARD(reader);

static reader *reader_new(int64_t depth, bool residual, bool normed)
{
    reader *m = tn_module_new(reader);
    if (!m) return NULL;
    m->depth = depth, m->residual = residual;
    m->letters = tn_child(m, "letters", tn_embedding_new(.count = LETTERS, .dim = WIDTH));
    m->places = tn_child(m, "places", tn_embedding_new(.count = LENGTH, .dim = WIDTH));
    m->attention = tn_child(m, "attention", tn_module_list_new());
    m->in = tn_child(m, "in", tn_module_list_new());
    m->out = tn_child(m, "out", tn_module_list_new());
    if (normed) m->norms = tn_child(m, "norms", tn_module_list_new());
    for (int64_t i = 0; i < depth && tn_error() == TN_OK; i++) {
        tn_append(m->attention, tn_mha_new(.dim = WIDTH, .heads = HEADS));
        tn_append(m->in, tn_linear_new(.in = WIDTH, .out = 2 * WIDTH));
        tn_append(m->out, tn_linear_new(.in = 2 * WIDTH, .out = WIDTH));
        for (int k = 0; normed && k < 2; k++) tn_append(m->norms, tn_layer_norm_new(.dim = WIDTH));
    }
    m->say = tn_child(m, "say", tn_linear_new(.in = WIDTH, .out = LETTERS));
    return tn_built(m);
}

static void words(twin_data *d)
{
    int64_t      x[WORDS * LENGTH], y[WORDS * LENGTH];
    tn_generator g = {7, 0}; /* the same words for all twins */
    for (int i = 0; i < WORDS * LENGTH; i++) x[i] = tn_random_below(&g, LETTERS);
    for (int i = 0; i < WORDS * LENGTH; i++) y[i] = x[i / LENGTH * LENGTH + LENGTH - 1 - i % LENGTH];
    d->x = tn_from_data(TN_I64, TN_SHAPE(WORDS, LENGTH), x), d->y = tn_from_data(TN_I64, TN_SHAPE(WORDS * LENGTH), y);
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

tn_tensor *twin_loss(void *net, void *user)
{
    const twin_data *d = user;
    tn_tensor       *y = tn_module_call(net, d->x);
    return tn_cross_entropy(tn_reshape(y, TN_SHAPE(tn_numel(d->y), -1)), d->y);
}

static void spirals(twin_data *d)
{
    float   x[2 * POINTS];
    int64_t y[POINTS];
    for (int i = 0; i < POINTS; i++) {
        const int    at = i / 2; /* both arms have the same number of points */
        const double t = 0.5 + 15.0 * at / POINTS, turn = i % 2 ? 3.14159265358979 : 0;
        x[2 * i] = (float)(t / 4 * cos(t + turn)), x[2 * i + 1] = (float)(t / 4 * sin(t + turn)), y[i] = i % 2;
    }
    d->x = tn_from_data(TN_F32, TN_SHAPE(POINTS, 2), x), d->y = tn_from_data(TN_I64, TN_SHAPE(POINTS), y);
}

/* The first POINTS images, at half their size, as rows of values with mean 0 and deviation 1. */
static void digits(twin_data *d, const twin_kind *k)
{
    tn_tensor *x = tn_idx_load(k->images), *y = tn_idx_load(k->labels);
    if (!x || !y) return;
    if (tn_ndim(x) != 3 || tn_ndim(y) != 1 || tn_size(x, 0) != tn_size(y, 0) || tn_size(x, 0) < POINTS) {
        tn_raise(TN_EFORMAT, "'%s' and '%s' need at least %d images and as many labels", k->images, k->labels, POINTS);
        return;
    }
    x = tn_to(tn_image_resize(tn_contiguous(tn_narrow(x, 0, 0, POINTS)), SIDE, SIDE, TN_BILINEAR), TN_F32);
    x = tn_reshape(x, TN_SHAPE(POINTS, SIDE * SIDE));
    d->x = tn_div(tn_sub(x, tn_mean(x)), tn_std(x));
    d->y = tn_to(tn_narrow(y, 0, 0, POINTS), TN_I64);
}

tn_module *twin_trained(const twin_kind *k, bool residual, bool normed, twin_data *data)
{
    tn_seed(k->seed);
    *data = (twin_data){NULL, NULL};
    if (k->transformer) words(data);
    else if (k->images) digits(data, k);
    else spirals(data);
    if (tn_error() != TN_OK) return NULL;
    tn_module    *m = k->transformer ? (tn_module *)(void *)reader_new(k->depth, residual, normed)
                                     : (tn_module *)(void *)twin_new(tn_size(data->x, 1), k->images ? 10 : 2, k->depth,
                                                                     residual, normed);
    tn_optimizer *opt = m ? tn_adamw_new(m, .lr = 2e-3, .clip.norm = 1) : NULL;
    for (int step = 0; step < STEPS && tn_error() == TN_OK; step++) {
        const tn_scope s = tn_scope_begin();
        tn_backward(twin_loss(m, data));
        tn_step(opt);
        tn_scope_end(s);
    }
    tn_optimizer_free(opt);
    if (tn_error() == TN_OK) return m;
    tn_free(m);
    return NULL;
}
