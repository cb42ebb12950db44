/* gpt.c — GPT-2 (Radford et al. 2019): a causal Transformer whose norms come first, with the embedding as its head.
 *
 *   x = dropout(word + position),  y = norm(blocks(x)),  scores = y Eᵀ */
#include "models/files/hf_config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void describe(const void *self, char *text, size_t size)
{
    const tn_gpt *m = self;
    snprintf(text, size, "vocab=%lld, dim=%lld, layers=%lld, heads=%lld", (long long)m->config.vocab,
             (long long)m->config.dim, (long long)m->config.layers, (long long)m->config.heads);
}
static tn_tensor     *forward(void *self, tn_tensor *ids) { return tn_gpt_forward((tn_gpt *)self, ids); }
static const tn_class tn_gpt_class = {
    .size = sizeof(tn_class), .name = "GPT", .bytes = sizeof(tn_gpt), .forward = forward, .describe = describe};

/* ---- building ---------------------------------------------------------------------------------------------------- */

static bool complete(tn_gpt_config *c)
{
    static const char *const who = "tn_gpt_new";
    if (c->ff == 0) c->ff = c->dim <= INT64_MAX / 4 ? 4 * c->dim : 0;
    if (!c->activation) c->activation = "gelu_new";
    if (!tn__within(who, "vocab", c->vocab, 1, 10000000) || !tn__within(who, "dim", c->dim, 1, 65536) ||
        !tn__within(who, "layers", c->layers, 1, 1024) || !tn__within(who, "heads", c->heads, 1, 1024) ||
        !tn__within(who, "ff", c->ff, 1, 1048576) || !tn__within(who, "positions", c->positions, 1, 10000000) ||
        !tn__chance(who, "dropout", c->dropout))
        return false;
    if (!(c->init >= 0 && c->init <= 1))
        return tn_raise(TN_EINVAL, "%s: .init is %g, but must be from 0 to 1", who, c->init), false;
    if (!tn__activation_of(c->activation))
        return tn_raise(TN_EINVAL, "%s: there is no activation '%s'; use " TN__ACTIVATIONS, who, c->activation), false;
    c->activation = tn__activation_name(c->activation);
    return true;
}

/* Matrices normal, biases 0; those that end in a residual smaller, as 2 layers of them add up. */
static void initialise(tn_gpt *m)
{
    const double last = m->config.init / sqrt(2 * (double)m->config.layers);
    for (tn_each p = tn_parameters(m); tn_error() == TN_OK && tn_next(&p);) {
        const bool residual = strstr(p.name, "out_proj.") || strstr(p.name, "linear2.");
        if (tn_ndim(p.tensor) > 1) tn_init_normal(p.tensor, 0, residual ? last : m->config.init);
        else if (strstr(p.name, "bias")) tn_init_zeros(p.tensor);
    }
}

tn_gpt *tn_gpt_create(tn_gpt_config c)
{
    if (tn_error() != TN_OK || !complete(&c)) return NULL;
    tn_gpt *m = tn_module_new(tn_gpt);
    if (!m) return NULL;
    m->config = c;
    const double p = c.dropout;
    m->words = tn_child(m, "transformer.wte", tn_embedding_new(.count = c.vocab, .dim = c.dim));
    m->positions = tn_child(m, "transformer.wpe", tn_embedding_new(.count = c.positions, .dim = c.dim));
    m->dropout = tn_child(m, "transformer.drop", tn_dropout_new(.p = p));
    m->blocks = tn_child(m, "transformer.h",
                         tn_transformer_encoder_new(.layers = c.layers, .dim = c.dim, .heads = c.heads, .ff = c.ff,
                                                    .dropout = p, .activation = tn__activation_of(c.activation),
                                                    .eps = c.eps, .norm_first = true, .final_norm = true));
    if (tn_error() == TN_OK) initialise(m);
    return tn_built(m);
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

/* The vectors behind the last norm. */
static tn_tensor *vectors(tn_gpt *m, tn_tensor *ids, tn_kv_cache *cache)
{
    if (!ids || tn_ndim(ids) != 2) {
        char text[192];
        return tn_raise(TN_ESHAPE, "ids must be [batch, length], got %s",
                        ids ? tn_shape_text(tn_shape_of(ids), text, sizeof text) : "NULL"),
               NULL;
    }
    const int64_t n = tn_size(ids, 1), at = tn_kv_cache_length(cache);
    if (n > m->config.positions - at)
        return tn_raise(TN_ESHAPE, "a text of %lld words is longer than the model's %lld positions: cut it",
                        (long long)(at + n), (long long)m->config.positions),
               NULL;
    tn_tensor *x = tn_add(tn_call(m->words, ids), tn_narrow(m->positions->weight, 0, at, n));
    return tn_transformer_encoder_forward(m->blocks, tn_call(m->dropout, x), .causal = true, .cache = cache);
}

tn_tensor *tn_gpt_run(tn_gpt *m, tn_gpt_args a)
{
    const tn_frame f = tn_enter(m);
    tn_tensor     *y = tn_error() == TN_OK ? vectors(m, a.ids, a.cache) : NULL;
    if (y && a.last) y = tn_narrow(y, 1, tn_size(y, 1) - 1, 1);
    return tn_leave(f, y ? tn_linear(y, m->words->weight, NULL) : NULL);
}

tn_tensor *tn_gpt_loss(tn_gpt *m, tn_tensor *ids, tn_tensor *targets)
{
    const tn_frame f = tn_enter(m);
    tn_tensor     *y = tn_error() == TN_OK ? vectors(m, ids, NULL) : NULL;
    if (y && !targets) {
        const int64_t n = tn_size(ids, 1);
        if (n < 2)
            return tn_raise(TN_ESHAPE, "a text of %lld words has no next one to learn; give targets", (long long)n),
                   tn_leave(f, NULL);
        y = tn_narrow(y, 1, 0, n - 1), targets = tn_narrow(ids, 1, 1, n - 1);
    }
    return tn_leave(f, y ? tn_linear_cross_entropy(y, m->words->weight, NULL, targets) : NULL);
}

/* ---- generating -------------------------------------------------------------------------------------------------- */

typedef struct {
    tn_decoding  base;
    tn_gpt      *m;
    tn_kv_cache *cache;
} decoding;

static tn_tensor *scores(tn_decoding *base, tn_tensor *tokens)
{
    decoding *d = (decoding *)base;
    return tn_select(tn_gpt_forward(d->m, tokens, .cache = d->cache, .last = true), 1, 0);
}
static tn_status reorder(tn_decoding *base, tn_tensor *index)
{
    return tn_kv_cache_reorder(((decoding *)base)->cache, index);
}
static void end(tn_decoding *base)
{
    tn_kv_cache_free(((decoding *)base)->cache);
    tn_mem_put(base, sizeof(decoding));
}
static const tn_decoding_kind kind = {sizeof(tn_decoding_kind), scores, reorder, end};

tn_decoding *tn_gpt_decoding(tn_gpt *m, int64_t rows, int64_t length)
{
    if (!tn_ready(m)) return NULL;
    if (length > m->config.positions)
        return tn_raise(TN_EINVAL, "tn_gpt_decoding: a text of %lld words is longer than the model's %lld positions",
                        (long long)length, (long long)m->config.positions),
               NULL;
    decoding *d = tn_mem_get(sizeof *d);
    if (!d) return NULL;
    *d = (decoding){.base = {&kind, rows, length}, .m = m};
    d->cache = tn_transformer_encoder_cache(m->blocks, rows, length);
    if (d->cache) return &d->base;
    tn_mem_put(d, sizeof *d);
    return NULL;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

#define IN "transformer.h.*."
#define OUR "transformer.h.layers.*."
static const tn_rename rules[] = {
    TN_RENAME("h", "transformer.h", .load_only = true), /* of files that hold the model without its head */
    TN_RENAME("wte", "transformer.wte", .load_only = true),
    TN_RENAME("wpe", "transformer.wpe", .load_only = true),
    TN_RENAME("ln_f", "transformer.ln_f", .load_only = true),
    TN_RENAME("lm_head", NULL),      /* the embedding */
    TN_RENAME(IN "attn.bias", NULL), /* masks of old files */
    TN_RENAME(IN "attn.masked_bias", NULL),
    TN_RENAME("transformer.ln_f", "transformer.h.norm"),
    TN_RENAME(IN "ln_1", OUR "norm1"),
    TN_RENAME(IN "ln_2", OUR "norm2"),
    TN_RENAME(IN "attn.c_attn.weight", OUR "self_attn.in_proj_weight", .transpose = true),
    TN_RENAME(IN "attn.c_attn.bias", OUR "self_attn.in_proj_bias"),
    TN_RENAME(IN "attn.c_proj.weight", OUR "self_attn.out_proj.weight", .transpose = true),
    TN_RENAME(IN "attn.c_proj.bias", OUR "self_attn.out_proj.bias"),
    TN_RENAME(IN "mlp.c_fc.weight", OUR "linear1.weight", .transpose = true),
    TN_RENAME(IN "mlp.c_fc.bias", OUR "linear1.bias"),
    TN_RENAME(IN "mlp.c_proj.weight", OUR "linear2.weight", .transpose = true),
    TN_RENAME(IN "mlp.c_proj.bias", OUR "linear2.bias"),
};
enum { RULES = sizeof rules / sizeof *rules };

static bool read_config(const tn__settings *s, tn_gpt_config *c)
{
    const char *type = tn__setting_text(s, "model_type", "gpt2");
    const char *name = tn__setting_text(s, "activation_function", "gelu_new");
    const bool  other = tn__setting_bool(s, "scale_attn_by_inverse_layer_idx", false) ||
                       tn__setting_bool(s, "add_cross_attention", false) ||
                       !tn__setting_bool(s, "scale_attn_weights", true);
    if (tn_error() == TN_OK && strcmp(type, "gpt2"))
        tn_raise(TN_EUNSUPPORTED, "'%s': model_type is '%s'; this reads 'gpt2'", s->path, type);
    else if (tn_error() == TN_OK && other)
        tn_raise(TN_EUNSUPPORTED,
                 "'%s': scale_attn_weights = false, scale_attn_by_inverse_layer_idx and add_cross_attention are not "
                 "supported",
                 s->path);
    else if (tn_error() == TN_OK && !tn__activation_of(name))
        tn_raise(TN_EUNSUPPORTED, "'%s': activation_function is '%s'; known are " TN__ACTIVATIONS, s->path, name);
    *c = (tn_gpt_config){
        .vocab = tn__setting_i64(s, "vocab_size", TN__NEEDED, 1, 10000000),
        .dim = tn__setting_i64(s, "n_embd", TN__NEEDED, 1, 65536),
        .layers = tn__setting_i64(s, "n_layer", TN__NEEDED, 1, 1024),
        .heads = tn__setting_i64(s, "n_head", TN__NEEDED, 1, 1024),
        .ff = tn__setting_i64(s, "n_inner", 0, 1, 1048576),
        .positions = tn__setting_i64(s, "n_positions", 1024, 1, 10000000),
        .dropout = tn__setting_double(s, "resid_pdrop", 0.1, 0, 0.999999),
        .init = tn__setting_double(s, "initializer_range", 0.02, 0, 1),
        .eps = tn__setting_double(s, "layer_norm_epsilon", 1e-5, 1e-15, 0.1),
        .activation = tn__activation_name(name),
    };
    if (tn_error() == TN_OK && c->dim % c->heads)
        tn_raise(TN_EFORMAT, "'%s': n_head %lld does not divide n_embd %lld", s->path, (long long)c->heads,
                 (long long)c->dim);
    return tn_error() == TN_OK;
}

tn_gpt *tn_gpt_load(const char *dir)
{
    tn__settings    s = {.doc = NULL};
    tn_gpt_config   c;
    char            path[1024];
    tn_safetensors *f = NULL;
    tn_gpt         *m = NULL;
    if (tn_error() == TN_OK && tn__settings_open(&s, dir) && read_config(&s, &c)) f = tn__weights_open(dir, path);
    tn__settings_close(&s);
    if (!f) return NULL;
    const int64_t ff = c.ff ? c.ff : 4 * c.dim;
    if (tn__enough(f, path, (c.vocab + c.positions) * c.dim + c.layers * c.dim * (4 * c.dim + 2 * ff)))
        m = tn_gpt_create(c);
    return tn__model_read(m, f, path, rules, RULES);
}

tn_status tn_gpt_save(tn_gpt *m, const char *dir)
{
    if (!tn_ready(m)) return tn_error();
    const tn_gpt_config *c = &m->config;
    tn_json_writer      *w = tn_json_writer_new(2);
    tn_json_open_object(w, NULL);
    tn_json_put_string(w, "activation_function", c->activation);
    tn_json_open_array(w, "architectures");
    tn_json_put_string(w, NULL, "GPT2LMHeadModel");
    tn_json_close(w);
    tn_json_put_double(w, "attn_pdrop", c->dropout);
    tn_json_put_double(w, "embd_pdrop", c->dropout);
    tn_json_put_double(w, "initializer_range", c->init);
    tn_json_put_double(w, "layer_norm_epsilon", c->eps);
    tn_json_put_string(w, "model_type", "gpt2");
    tn_json_put_i64(w, "n_embd", c->dim);
    tn_json_put_i64(w, "n_head", c->heads);
    tn_json_put_i64(w, "n_inner", c->ff);
    tn_json_put_i64(w, "n_layer", c->layers);
    tn_json_put_i64(w, "n_positions", c->positions);
    tn_json_put_double(w, "resid_pdrop", c->dropout);
    tn_json_put_bool(w, "tie_word_embeddings", true);
    tn_json_put_string(w, "torch_dtype", "float32");
    tn_json_put_i64(w, "vocab_size", c->vocab);
    tn_json_close(w);
    return tn__model_write(m, w, dir, rules, RULES);
}
