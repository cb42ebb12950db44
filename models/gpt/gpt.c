/* gpt.c — GPT-2 (Radford et al. 2019): a causal pre-norm Transformer whose output layer is the embedding.
 *
 *   x = dropout(word + position),  y = norm(blocks(x)),  logits = y Eᵀ, or, untied, y Wᵀ */
#include "models/files/hf_config.h"
#include "models/generate/next_token.h"
#include "models/gpt/gpt_private.h"

#include <stdio.h>

static void describe(const void *self, char *text, size_t size)
{
    const tn_gpt *m = self;
    snprintf(text, size, "vocab=%lld, dim=%lld, layers=%lld, heads=%lld", (long long)m->config.vocab,
             (long long)m->config.dim, (long long)m->config.layers, (long long)m->config.heads);
}
static tn_tensor *forward(void *self, tn_tensor *ids) { return tn_gpt_forward((tn_gpt *)self, ids); }
const tn_class    tn__gpt_class = {
       .size = sizeof(tn_class), .name = "GPT", .bytes = sizeof(tn_gpt), .forward = forward, .describe = describe};

/* ---- config.json ------------------------------------------------------------------------------------------------- */

/* clang-format off */
static const tn_hf_row members[] = {
    TN_HF("activation_function", tn_gpt_config, activation, .text = "gelu_new"),
    {"architectures", TN_HF_NAME, .text = "GPT2LMHeadModel"},
    TN_HF("attn_pdrop", tn_gpt_config, attention_dropout, .otherwise = 0.1, .high = 1, .below = true),
    TN_HF("embd_pdrop", tn_gpt_config, embedding_dropout, .otherwise = 0.1, .high = 1, .below = true),
    TN_HF("initializer_range", tn_gpt_config, init, .otherwise = 0.02, .high = 1),
    TN_HF("layer_norm_epsilon", tn_gpt_config, eps, .otherwise = 1e-5, .low = 1e-15, .high = 0.1),
    {"model_type", TN_HF_TYPE, .text = "gpt2"},
    TN_HF("n_embd", tn_gpt_config, dim, .needed = true, .low = 1, .high = 65536),
    TN_HF("n_head", tn_gpt_config, heads, .needed = true, .low = 1, .high = 1024),
    TN_HF("n_inner", tn_gpt_config, ff, .low = 1, .high = 1048576),
    TN_HF("n_layer", tn_gpt_config, layers, .needed = true, .low = 1, .high = 1024),
    TN_HF("n_positions", tn_gpt_config, positions, .otherwise = 1024, .low = 1, .high = 10000000),
    TN_HF("resid_pdrop", tn_gpt_config, dropout, .otherwise = 0.1, .high = 1, .below = true),
    TN_HF("tie_word_embeddings", tn_gpt_config, untied, .otherwise = true, .opposite = true),
    {"torch_dtype", TN_HF_NAME, .text = "float32"},
    TN_HF("vocab_size", tn_gpt_config, vocab, .needed = true, .low = 1, .high = 10000000),
    {"add_cross_attention", TN_HF_MUST, .silent = true},
    {"pruned_heads", TN_HF_PRUNED, .text = NULL},
    {"scale_attn_by_inverse_layer_idx", TN_HF_MUST, .silent = true},
    {"scale_attn_weights", TN_HF_MUST, .silent = true, .otherwise = true},
    {"is_encoder_decoder", TN_HF_MUST, .silent = true},
    {"per_layer_config", TN_HF_EMPTY, .silent = true},
    {"quantization_config", TN_HF_EMPTY, .silent = true},
    {"bos_token_id", TN_HF_ANY, .silent = true},
    {"eos_token_id", TN_HF_ANY, .silent = true},
    {"n_ctx", TN_HF_ANY, .silent = true}, /* n_positions of old files */
    {"pad_token_id", TN_HF_ANY, .silent = true},
    {"reorder_and_upcast_attn", TN_HF_ANY, .silent = true}, /* always f32 here */
    {"summary_activation", TN_HF_ANY, .silent = true},      /* of a head that is not loaded */
    {"summary_first_dropout", TN_HF_ANY, .silent = true},
    {"summary_proj_to_labels", TN_HF_ANY, .silent = true},
    {"summary_type", TN_HF_ANY, .silent = true},
    {"summary_use_proj", TN_HF_ANY, .silent = true},
    {"use_cache", TN_HF_ANY, .silent = true},
};
/* clang-format on */

/* ---- building ---------------------------------------------------------------------------------------------------- */

static const tn_hf_files table = {members, TN_HF_COUNT_(members), NULL, 0};

static bool complete(tn_gpt_config *c)
{
    static const char *const who = "tn_gpt_new";
    if (c->ff == 0) c->ff = c->dim <= INT64_MAX / 4 ? 4 * c->dim : 0;
    if (c->embedding_dropout < 0) c->embedding_dropout = c->dropout;
    if (c->attention_dropout < 0) c->attention_dropout = c->dropout;
    if (!c->activation) c->activation = "gelu_new";
    return tn__init_and_activation(who, c->init, &c->activation) && tn_hf_config_within(who, &table, c);
}

tn_gpt *tn_gpt_create(tn_gpt_config c)
{
    if (tn_error() != TN_OK || !complete(&c)) return NULL;
    tn_gpt *m = tn_module_create(&tn__gpt_class);
    if (!m) return NULL;
    m->config = c;
    m->words = tn_child(m, "transformer.wte", tn_embedding_new(.count = c.vocab, .dim = c.dim));
    m->positions = tn_child(m, "transformer.wpe", tn_embedding_new(.count = c.positions, .dim = c.dim));
    m->dropout = tn_child(m, "transformer.drop", tn_dropout_new(.p = c.embedding_dropout));
    m->blocks = tn_child(m, "transformer.h",
                         tn_blocks_new(.layers = c.layers, .dim = c.dim, .heads = c.heads, .ff = c.ff,
                                       .dropout = c.dropout, .attention_dropout = c.attention_dropout,
                                       .activation_dropout = 0, .activation = tn_hf_activation(c.activation),
                                       .eps = c.eps, .norm_first = true, .final_norm = true));
    if (c.untied) m->out = tn_weight(m, "lm_head.weight", tn_empty(TN_SHAPE(c.vocab, c.dim)));
    else if (m->words) m->out = m->words->weight;
    if (tn_error() == TN_OK) tn__next_token_init(m, c.init, c.layers);
    return tn_built(m);
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

/* The hidden states after the last norm. */
static tn_tensor *hidden_states(tn_gpt *m, tn_tensor *ids, tn_kv_cache *cache)
{
    if (!tn__ids_fit("gpt", ids)) return NULL;
    const int64_t n = tn_size(ids, 1), at = tn_kv_cache_length(cache);
    if (n > m->config.positions - at)
        return tn_raise(TN_ESHAPE,
                        "gpt: a sequence of %lld tokens is longer than the model's %lld positions; "
                        "truncate it",
                        (long long)(at + n), (long long)m->config.positions),
               NULL;
    tn_tensor *x = tn_add(tn_call(m->words, ids), tn_embedding_rows(m->positions, at, n));
    return tn_blocks_forward(m->blocks, tn_call(m->dropout, x), .causal = true, .cache = cache);
}

tn_tensor *tn_gpt_run(tn_gpt *m, tn_gpt_args a)
{
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    tn_tensor     *y = hidden_states(m, a.ids, a.cache);
    return tn_leave(f, y ? tn__next_token_logits(y, m->out, NULL, &a) : NULL);
}

tn_tensor *tn_gpt_loss(tn_gpt *m, tn_tensor *ids, tn_tensor *targets)
{
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    tn_tensor     *y = hidden_states(m, ids, NULL);
    return tn_leave(f, y ? tn__next_token_loss("gpt", y, m->out, NULL, ids, targets) : NULL);
}

/* ---- generating -------------------------------------------------------------------------------------------------- */

static tn_tensor *next_logits(void *m, tn_tensor *ids, tn_kv_cache *cache)
{
    return tn_gpt_forward((tn_gpt *)m, ids, .cache = cache, .last = true);
}

tn_decoding *tn_gpt_decoding(tn_gpt *m, int64_t rows, int64_t length)
{
    if (!tn_ready(m)) return NULL;
    if (length > m->config.positions)
        return tn_raise(TN_EINVAL, "tn_gpt_decoding: length is %lld, but the model has only %lld positions",
                        (long long)length, (long long)m->config.positions),
               NULL;
    return tn_cached_decoding(m, next_logits, tn_blocks_cache(m->blocks, rows, length, 0), rows, length);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

#define IN "transformer.h.*."
#define OUR "transformer.h.layers.*."
static const tn_rename rules[] = {
    TN_RENAME("lm_head", "transformer.wte", .load_only = true), /* if tied; else this rule is skipped */
    TN_RENAME("h", "transformer.h", .load_only = true),         /* of files without the head */
    TN_RENAME("wte", "transformer.wte", .load_only = true),
    TN_RENAME("wpe", "transformer.wpe", .load_only = true),
    TN_RENAME("ln_f", "transformer.ln_f", .load_only = true),
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
static const tn_hf_files tied = TN_HF_FILES(members, rules),
                         untied = {members, TN_HF_COUNT_(members), rules + 1, TN_HF_COUNT_(rules) - 1};

tn_gpt *tn_gpt_load(const char *dir)
{
    tn_gpt_config c = {.zero_ = 0};
    char          path[1024];
    if (!tn_hf_config_read(dir, &tied, &c)) return NULL;
    if (c.dim % c.heads)
        return tn_raise(TN_EFORMAT, "'%s/config.json': n_head %lld does not divide n_embd %lld", dir,
                        (long long)c.heads, (long long)c.dim),
               NULL;
    tn__pruned pruned;
    if (!tn__pruned_open(dir, &pruned)) return NULL;
    tn_safetensors *f = tn__weights_open(dir, path);
    const int64_t   ff = c.ff ? c.ff : 4 * c.dim, tables = c.vocab * (c.untied ? 2 : 1) + c.positions;
    const int64_t   all = tables * c.dim + c.layers * c.dim * (4 * c.dim + 2 * ff);
    tn_gpt         *m = NULL;
    const tn_scope  blank = tn__blank_begin();
    if (f && tn__has_elements_pruned(f, path, all, &pruned, c.dim / c.heads * (4 * c.dim + 3))) m = tn_gpt_create(c);
    tn_scope_end(blank);
    tn__pruned_apply(&pruned, m);
    tn__pruned_close(&pruned);
    return tn__model_read(m, f, path, c.untied ? &untied : &tied);
}

tn_status tn__gpt_save_as(tn_gpt *m, const char *to, const tn__gguf_options *gguf)
{
    return tn__hf_write_as(m, to, m->config.untied ? &untied : &tied, &m->config, gguf);
}
tn_status tn_gpt_save(tn_gpt *m, const char *dir) { return tn_ready(m) ? tn__gpt_save_as(m, dir, NULL) : tn_error(); }
