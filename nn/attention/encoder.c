/* encoder.c — the Transformer's encoder: a layer, and a stack of them.
 *
 *   x = norm1(x + self_attn(x)),  x = norm2(x + linear2(activation(linear1(x))))       or, norm_first:
 *   x = x + self_attn(norm1(x)),  x = x + linear2(activation(linear1(norm2(x))))       each with dropout
 *
 * With a causal mask it is the decoder of a language model, which has no memory to attend to. */
#include "nn/attention/block.h"

/* ---- a layer ----------------------------------------------------------------------------------------------------- */

static tn_tensor *encoder_layer_forward(void *self, tn_tensor *x)
{
    return tn_transformer_encoder_layer_forward((tn_transformer_encoder_layer *)self, x);
}

static const tn_class tn_transformer_encoder_layer_class = {.size = sizeof(tn_class),
                                                            .name = "TransformerEncoderLayer",
                                                            .bytes = sizeof(tn_transformer_encoder_layer),
                                                            .forward = encoder_layer_forward};

tn_transformer_encoder_layer *tn_transformer_encoder_layer_create(tn_transformer_layer_config c)
{
    if (!tn__layer_config("tn_transformer_encoder_layer_new", &c)) return NULL;
    tn_transformer_encoder_layer *m = tn_module_new(tn_transformer_encoder_layer);
    if (!m) return NULL;
    m->activation = c.activation, m->norm_first = c.norm_first;
    m->self_attn = tn_child(m, "self_attn", tn__layer_mha(&c));
    m->linear1 = tn_child(m, "linear1", tn__layer_linear(&c, c.dim, c.ff));
    m->dropout = tn_child(m, "dropout", tn__layer_dropout(&c));
    m->linear2 = tn_child(m, "linear2", tn__layer_linear(&c, c.ff, c.dim));
    m->norm1 = tn_child(m, "norm1", tn__layer_norm(&c));
    m->norm2 = tn_child(m, "norm2", tn__layer_norm(&c));
    m->dropout1 = tn_child(m, "dropout1", tn__layer_dropout(&c));
    m->dropout2 = tn_child(m, "dropout2", tn__layer_dropout(&c));
    return tn_built(m);
}

static tn_tensor *attended(tn_transformer_encoder_layer *m, tn_tensor *x, const tn_encoder_args *a, tn_tensor **w)
{
    return tn_mha_forward(m->self_attn, x, x, x, .blocked = a->blocked, .blocked_keys = a->blocked_keys,
                          .causal = a->causal, .weights = w, .weights_per_head = true, .cache = a->cache,
                          .layer = a->layer);
}

static tn_tensor *fed_forward(tn_transformer_encoder_layer *m, tn_tensor *x)
{
    return tn_call(m->linear2, tn_call(m->dropout, tn__linear_activated(m->linear1, x, m->activation)));
}

tn_tensor *tn_transformer_encoder_layer_run(tn_transformer_encoder_layer *m, tn_encoder_args a)
{
    const tn_frame   f = tn_enter(m);
    const tn__cached before = tn__cache_of(a.cache, a.layer);
    tn_tensor       *x = a.x, *w = NULL, **weights = a.weights ? &w : NULL;
    if (tn_error() == TN_OK) {
        if (m->norm_first) {
            tn_tensor         *h = attended(m, tn_call(m->norm1, x), &a, weights);
            const tn__residual r = tn__add_and_norm(x, h, m->dropout1, m->norm2);
            x = tn_add(r.sum, tn_call(m->dropout2, fed_forward(m, r.normed)));
        } else {
            x = tn__add_and_norm(x, attended(m, x, &a, weights), m->dropout1, m->norm1).normed;
            x = tn__add_and_norm(x, fed_forward(m, x), m->dropout2, m->norm2).normed;
        }
        if (tn_error() != TN_OK) tn__cache_back(a.cache, a.layer, before);
    }
    if (!weights) return tn_leave(f, x);
    tn_leave_n(f, &x, &w);
    *a.weights = w;
    return x;
}

/* ---- the stack --------------------------------------------------------------------------------------------------- */

static tn_tensor *encoder_forward(void *self, tn_tensor *x)
{
    return tn_transformer_encoder_forward((tn_transformer_encoder *)self, x);
}

static const tn_class tn_transformer_encoder_class = {.size = sizeof(tn_class),
                                                      .name = "TransformerEncoder",
                                                      .bytes = sizeof(tn_transformer_encoder),
                                                      .forward = encoder_forward};

tn_transformer_encoder *tn_transformer_encoder_create(tn_transformer_stack_config c)
{
    static const char *const          who = "tn_transformer_encoder_new";
    const tn_transformer_layer_config given = tn__layer_of_stack(&c);
    tn_transformer_layer_config       full = given;
    if (!tn__at_least(who, "layers", c.layers, 1) || !tn__layer_config(who, &full)) return NULL;
    tn_transformer_encoder *m = tn_module_new(tn_transformer_encoder);
    if (!m) return NULL;
    m->layers = tn_child(m, "layers", tn_module_list_new());
    for (int64_t i = 0; i < c.layers && tn_error() == TN_OK; i++)
        tn_append(m->layers, tn_transformer_encoder_layer_create(given));
    if (c.final_norm) m->norm = tn_child(m, "norm", tn__layer_norm(&full));
    return tn_built(m);
}

tn_tensor *tn_transformer_encoder_run(tn_transformer_encoder *m, tn_encoder_args a)
{
    const tn_frame   f = tn_enter(m);
    const tn__cached before = tn__cache_of(a.cache, 0);
    const int64_t    n = m ? tn_length(m->layers) : 0;
    tn_tensor       *mine = NULL; /* a layer's result lives until the next has used it */
    tn_encoder_args  b = a;
    tn_path_push("layers");
    for (b.layer = 0; b.layer < n && tn_error() == TN_OK; b.layer++) {
        const bool last = b.layer + 1 == n && !m->norm;
        if (a.weights) b.weights = a.weights + b.layer;
        b.x = tn_transformer_encoder_layer_run(tn_at(m->layers, b.layer), b);
        tn_drop(mine);
        mine = last ? NULL : tn_take(b.x);
    }
    tn_path_pop();
    if (m && tn_error() == TN_OK && m->norm) b.x = tn_call(m->norm, b.x);
    tn_drop(mine);
    tn_tensor *y = tn__leave_all(f, b.x, n, a.weights, NULL);
    for (int64_t i = 0; i < n && tn_error() != TN_OK; i++) tn__cache_back(a.cache, i, before);
    return y;
}

tn_kv_cache *tn_transformer_encoder_cache(tn_transformer_encoder *m, int64_t batch, int64_t length)
{
    if (!tn_ready(m)) return NULL;
    const tn_transformer_encoder_layer *layer = tn_at(m->layers, 0);
    return layer ? tn__layer_cache(layer->self_attn, tn_length(m->layers), batch, length, 0) : NULL;
}
