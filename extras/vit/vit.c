/* vit.c — ViT (Dosovitskiy et al. 2020) and DeiT (Touvron et al. 2020): an image is cut into patches, each of which is
 * embedded; an encoder reads a class token followed by the patches.
 *
 *   x = dropout([token, (distillation token,) patches W + b] + positions),  y = norm(blocks(x)),  logits = y₀ C + c
 *
 * With a teacher the logits are the mean of those and of y₁ D + d. */
#include "extras/vit/vit_private.h"

#include <math.h>
#include <string.h>

static void describe(const void *self, char *text, size_t size)
{
    const tn_vit_config *c = &((const tn_vit *)self)->config;
    snprintf(text, size, "image=%lld, patch=%lld, classes=%lld, dim=%lld, layers=%lld, heads=%lld", (long long)c->image,
             (long long)c->patch, (long long)c->classes, (long long)c->dim, (long long)c->layers, (long long)c->heads);
}
static tn_tensor *forward(void *self, tn_tensor *x)
{
    tn_vit    *m = self;
    tn_tensor *y = tn_vit_forward(m, x);
    return y && m->classifier ? tn_vit_logits(m, y, NULL) : y;
}
static const tn_class tn_vit_class = {.size = sizeof(tn_class),
                                      .name = "ViT",
                                      .bytes = sizeof(tn_vit),
                                      .forward = forward,
                                      .describe = describe,
                                      .names = tn__vit_names};

/* ---- building ---------------------------------------------------------------------------------------------------- */

/* ViT's initial weights: a truncated normal distribution, biases 0. */
static void initialise(tn_vit *m)
{
    const double std = m->config.init;
    for (tn_each p = tn_parameters(m); tn_error() == TN_OK && tn_next(&p);) {
        const size_t n = strlen(p.name);
        if (tn_ndim(p.tensor) > 1) tn_init_trunc_normal(p.tensor, 0, std, -2, 2);
        else if (n >= 4 && !strcmp(p.name + n - 4, "bias")) tn_init_zeros(p.tensor);
    }
}

/* The labels of a model without names: "0", "1", ... */
static void number_labels(tn_vit *m)
{
    enum { BYTES = 24 };
    m->labels = tn_array(m, m->config.classes * BYTES, char);
    m->label = tn_array(m, m->config.classes, int64_t);
    for (int64_t i = 0; m->labels && m->label && i < m->config.classes; i++)
        snprintf(m->labels + (m->label[i] = i * BYTES), BYTES, "%lld", (long long)i);
}

tn_vit *tn_vit_create(tn_vit_config c)
{
    if (tn_error() != TN_OK || !tn__vit_complete("tn_vit_new", &c)) return NULL;
    tn_vit *m = tn_module_new(tn_vit);
    if (!m) return NULL;
    m->config = c;
    const int64_t d = c.dim, grid = tn__vit_grid(&c);
    m->token = tn_param(m, "vit.embeddings.cls_token", tn_empty(TN_SHAPE(1, 1, d)));
    if (c.distilled) m->distillation = tn_param(m, "vit.embeddings.distillation_token", tn_empty(TN_SHAPE(1, 1, d)));
    m->positions =
        tn_param(m, "vit.embeddings.position_embeddings", tn_empty(TN_SHAPE(1, tn__vit_tokens(&c) + grid * grid, d)));
    m->patches = tn_child(m, "vit.embeddings.patch_embeddings.projection",
                          tn_conv2d_new(.in = c.channels, .out = d, .size = c.patch, .stride = c.patch));
    m->dropout = tn_child(m, "vit.embeddings.dropout", tn_dropout_new(.p = c.dropout));
    m->encoder = tn_child(m, "vit.encoder",
                          tn_blocks_new(.layers = c.layers, .dim = d, .heads = c.heads, .ff = c.ff,
                                        .dropout = c.dropout, .attention_dropout = c.attention_dropout,
                                        .activation_dropout = 0, .activation = tn_hf_activation(c.activation),
                                        .norm.eps = c.eps, .order = TN_NORM_FIRST, .final_norm = true));
    if (c.pooler) m->pooler = tn_child(m, "vit.pooler.dense", tn_linear_new(.in = d, .out = c.pooler));
    if (c.classes)
        m->classifier =
            tn_child(m, c.teacher ? "cls_classifier" : "classifier", tn_linear_new(.in = d, .out = c.classes));
    if (c.teacher) m->taught = tn_child(m, "distillation_classifier", tn_linear_new(.in = d, .out = c.classes));
    if (tn_error() == TN_OK) initialise(m), number_labels(m);
    return tn_built(m);
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

/* The matrix [new, old] of PyTorch's bicubic interpolation from `old` to `new` points, a = -¾; points beyond the edge
 * repeat the outermost one. */
static tn_tensor *bicubic_matrix(int64_t old, int64_t new)
{
    const double a = -0.75, scale = (double)old / (double)new;
    tn_tensor   *w = tn_zeros(TN_SHAPE(new, old));
    float       *to = w ? tn_data_mut(w) : NULL;
    for (int64_t i = 0; to && i < new; i++) {
        const double  at = ((double)i + 0.5) * scale - 0.5, t = at - floor(at), u = 1 - t;
        const int64_t first = (int64_t)floor(at) - 1;
        const double  k[4] = {((a * (t + 1) - 5 * a) * (t + 1) + 8 * a) * (t + 1) - 4 * a,
                              ((a + 2) * t - (a + 3)) * t * t + 1, ((a + 2) * u - (a + 3)) * u * u + 1,
                              ((a * (u + 1) - 5 * a) * (u + 1) + 8 * a) * (u + 1) - 4 * a};
        for (int64_t j = 0; j < 4; j++) {
            const int64_t from = first + j < 0 ? 0 : first + j;
            to[i * old + (from < old ? from : old - 1)] += (float)k[j];
        }
    }
    return w;
}

/* The position embeddings of rows x columns patches: [1, tokens + rows · columns, dim]. */
static tn_tensor *positions(tn_vit *m, int64_t rows, int64_t columns)
{
    const int64_t grid = tn__vit_grid(&m->config), tokens = tn__vit_tokens(&m->config), d = m->config.dim;
    if (rows == grid && columns == grid) return m->positions;
    tn_tensor *p = tn_reshape(tn_narrow(m->positions, 1, tokens, grid * grid), TN_SHAPE(grid, grid, d));
    p = tn_matmul(bicubic_matrix(grid, columns), p);                                       /* [grid, columns, d] */
    p = tn_matmul(bicubic_matrix(grid, rows), tn_reshape(p, TN_SHAPE(grid, columns * d))); /* [rows, columns · d] */
    return tn_cat(1, tn_narrow(m->positions, 1, 0, tokens), tn_reshape(p, TN_SHAPE(1, rows * columns, d)));
}

static bool check_image(const tn_vit *m, const tn_vit_args *a)
{
    const tn_vit_config *c = &m->config;
    char                 text[192];
    if (!a->x || tn_ndim(a->x) != 4 || tn_size(a->x, 1) != c->channels)
        return tn_raise_false(TN_ESHAPE, "vit: x must be [batch, %lld, height, width], got %s", (long long)c->channels,
                              a->x ? tn_shape_text(tn_shape_of(a->x), text, sizeof text) : "NULL");
    const int64_t height = tn_size(a->x, 2), width = tn_size(a->x, 3);
    if (!a->interpolate && (height != c->image || width != c->image))
        return tn_raise_false(
            TN_ESHAPE,
            "vit: images of %lld x %lld pixels, but the model expects %lld x %lld; resize them, or set "
            ".interpolate",
            (long long)height, (long long)width, (long long)c->image, (long long)c->image);
    if (height >= c->patch && width >= c->patch) return true;
    return tn_raise_false(TN_ESHAPE, "vit: an image of %lld x %lld pixels is smaller than a patch of %lld",
                          (long long)height, (long long)width, (long long)c->patch);
}

static tn_tensor *embed(tn_vit *m, const tn_vit_args *a)
{
    const int64_t n = tn_size(a->x, 0), d = m->config.dim;
    tn_tensor    *p = tn_call(m->patches, a->x); /* [B, dim, rows, columns] */
    if (!p) return NULL;
    const int64_t rows = tn_size(p, 2), columns = tn_size(p, 3);
    tn_tensor    *x[3] = {tn_expand(m->token, TN_SHAPE(n, 1, d))}, *last = tn_transpose(tn_flatten(p, 2, 3), 1, 2);
    int           parts = 1;
    if (m->distillation) x[parts++] = tn_expand(m->distillation, TN_SHAPE(n, 1, d));
    x[parts++] = last;
    return tn_call(m->dropout, tn_add(tn_cat_list(1, parts, x), positions(m, rows, columns)));
}

tn_tensor *tn_vit_run(tn_vit *m, tn_vit_args a)
{
    for (int64_t i = 0; m && a.weights && i < m->config.layers; i++) a.weights[i] = NULL;
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    tn_tensor     *x = check_image(m, &a) ? embed(m, &a) : NULL;
    if (x) x = tn_blocks_forward(m->encoder, x, .weights = a.weights);
    if (!a.weights || tn_error() != TN_OK) return tn_leave(f, x);
    /* Return the attention weights and x from the frame in one list. */
    const int64_t n = m->config.layers;
    tn_tensor  ***all = tn_mem_get((size_t)(n + 1) * sizeof *all);
    if (!all) return tn_leave(f, NULL);
    all[0] = &x;
    for (int64_t i = 0; i < n; i++) all[i + 1] = &a.weights[i];
    tn_leave_list(f, (int)n + 1, all);
    tn_mem_put(all, (size_t)(n + 1) * sizeof *all);
    return x;
}

tn_tensor *tn_vit_pooled(tn_vit *m, tn_tensor *y)
{
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    if (!y) tn_raise(TN_EINVAL, "vit: the hidden states are NULL; pass the result of tn_vit_forward");
    else if (!m->pooler) tn_raise(TN_ESTATE, "vit: this model has no pooler; create it with .pooler");
    return tn_leave(f, tn_error() == TN_OK ? tn_tanh(tn_call(m->pooler, tn_select(y, 1, 0))) : NULL);
}

tn_tensor *tn_vit_logits(tn_vit *m, tn_tensor *y, tn_tensor *parts[2])
{
    tn_tensor *x[2] = {NULL, NULL}, *mean = NULL;
    if (parts) parts[0] = parts[1] = NULL;
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    if (!y) tn_raise(TN_EINVAL, "vit: the hidden states are NULL; pass the result of tn_vit_forward");
    else if (!m->classifier) tn_raise(TN_ESTATE, "vit: this model has no classifier; create it with .classes");
    else if (parts && !m->taught)
        tn_raise(TN_ESTATE, "vit: this model has one classifier, so .parts must be NULL; create it with .teacher");
    if (tn_error() == TN_OK) {
        mean = x[0] = tn_call(m->classifier, tn_select(y, 1, 0));
        if (m->taught) x[1] = tn_call(m->taught, tn_select(y, 1, 1)), mean = tn_mul_scalar(tn_add(x[0], x[1]), 0.5);
    }
    if (!parts) return tn_leave(f, mean);
    tn_leave_n(f, &mean, &x[0], &x[1]);
    parts[0] = x[0], parts[1] = x[1];
    return mean;
}

/* ---- names of the classes ---------------------------------------------------------------------------------------- */

tn_status tn_vit_set_labels(tn_vit *m, const char *const *names)
{
    if (!tn_ready(m)) return tn_error();
    int64_t bytes = 0, at = 0;
    for (int64_t i = 0; names && i < m->config.classes; i++) {
        if (!names[i]) return tn_raise(TN_EINVAL, "tn_vit_set_labels: the name of class %lld is NULL", (long long)i);
        bytes += (int64_t)strlen(names[i]) + 1;
    }
    if (!names || !m->config.classes)
        return tn_raise(TN_EINVAL, "tn_vit_set_labels: %s", names ? "this model has no classes" : "names is NULL");
    char    *labels = tn_array(m, bytes, char);
    int64_t *label = tn_array(m, m->config.classes, int64_t);
    if (!labels || !label) return tn_error();
    for (int64_t i = 0; i < m->config.classes; i++) {
        const size_t n = strlen(names[i]) + 1;
        memcpy(labels + at, names[i], n);
        label[i] = at, at += (int64_t)n;
    }
    m->labels = labels, m->label = label;
    return TN_OK;
}

const char *tn_vit_label(const tn_vit *m, int64_t i)
{
    return m && i >= 0 && i < m->config.classes ? m->labels + m->label[i] : "";
}
