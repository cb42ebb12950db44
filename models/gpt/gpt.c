/* gpt.c — GPT-2 (Radford et al. 2019): a causal pre-norm Transformer whose output layer is the embedding.
 *
 *   x = dropout(word + position),  y = norm(blocks(x)),  logits = y Eᵀ, or, untied, y Wᵀ */
#include "models/files/hf_config.h"
#include "models/generate/lm_private.h"
#include "models/gpt/gpt_private.h"

#include <stdio.h>

static void describe(const void *self, char *text, size_t size)
{
    const tn_gpt *m = self;
    snprintf(text, size, "vocab=%lld, dim=%lld, layers=%lld, heads=%lld", (long long)m->config.vocab,
             (long long)m->config.dim, (long long)m->config.layers, (long long)m->config.heads);
}
static tn_tensor *forward(void *self, tn_tensor *ids) { return tn_gpt_forward((tn_gpt *)self, ids); }
static tn_status  save(void *self, const char *dir) { return tn_gpt_save(self, dir); }

static tn_lm_info info(const void *self)
{
    const tn_gpt        *m = self;
    const tn_gpt_config *c = &m->config;
    return (tn_lm_info){"gpt2", c->vocab, c->dim, c->layers, c->heads, c->heads, c->positions, true, m->blocks,
                        m->out, NULL,     0,      0,         0,        0};
}
static tn_tensor *hidden(void *self, tn_decoder_args a)
{
    const tn_gpt *m = self;
    tn_tensor    *at = tn_kv_cache_at(a.cache); /* in a step that is recorded */
    tn_tensor    *place = at ? tn_embedding(m->positions->weight, at, -1, false)
                             : tn_embedding_rows(m->positions, tn_kv_cache_length(a.cache), tn_size(a.ids, 1));
    tn_tensor    *x = tn_call(m->dropout, tn_add(tn_call(m->words, a.ids), place));
    return tn_blocks_forward(m->blocks, x, .causal = true, .cache = a.cache, .key_padding_mask = a.key_padding_mask,
                             .skip_padding = a.skip_padding);
}

static tn_decoding *decoding(void *self, int64_t rows, int64_t length)
{
    return tn__replayed(tn__lm_plain_decoding("tn_gpt_decoding", self, rows, length));
}

static int names(const void *self, tn_rename *to, int room);

static const tn_lm_ops ops = {.info = info, .hidden = hidden, .decoding = decoding, .save = save};
const tn_class         tn__gpt_class = {.size = sizeof(tn_class),
                                        .name = "GPT",
                                        .bytes = sizeof(tn_gpt),
                                        .forward = forward,
                                        .describe = describe,
                                        .lm = &ops,
                                        .names = names};

tn_tensor *tn_gpt_run(tn_gpt *m, tn_gpt_args a) { return tn__lm_run(__func__, m, a); }
tn_tensor *tn_gpt_loss(tn_gpt *m, tn_tensor *ids, tn_tensor *targets) { return tn__lm_loss(__func__, m, ids, targets); }
tn_decoding *tn_gpt_decoding(tn_gpt *m, int64_t rows, int64_t n) { return tn__lm_decoding(__func__, m, rows, n); }

tn_gpt_config tn_gpt_size(const char *name)
{
    static const tn_model_size sizes[] = {{"tiny", 128, 3, 4, 0, 0},
                                          {"mini", 256, 4, 4, 0, 0},
                                          {"baby", 384, 6, 6, 0, 0},
                                          {"small", 768, 12, 12, 0, 0},
                                          {"medium", 1024, 24, 16, 0, 0},
                                          {"large", 1280, 36, 20, 0, 0},
                                          {0}};
    const tn_model_size       *s = tn_model_size_find(__func__, sizes, name);
    return s ? TN_WITH(tn_gpt_config, TN_GPT_DEFAULTS, .dim = s->dim, .layers = s->layers, .heads = s->heads)
             : (tn_gpt_config){.zero_ = 0};
}

/* ---- config.json ------------------------------------------------------------------------------------------------- */

typedef struct {
    tn_gpt_config c;
    tn_token_ids  begin, end, padding, decoder_begin;
} stored;

/* clang-format off */
static const tn_hf_row members[] = {
    TN_HF("activation_function", tn_gpt_config, activation, .text = "gelu_new"),
    {"architectures", TN_HF_NAME, .text = "GPT2LMHeadModel"},
    TN_HF("attn_pdrop", tn_gpt_config, attention_dropout, .otherwise = 0.1, .high = 1, .below = true),
    TN__IDS("bos_token_id", stored, begin),
    TN__IDS("decoder_start_token_id", stored, decoder_begin),
    TN_HF("embd_pdrop", tn_gpt_config, embedding_dropout, .otherwise = 0.1, .high = 1, .below = true),
    TN__IDS("eos_token_id", stored, end),
    TN_HF("initializer_range", tn_gpt_config, init, .otherwise = 0.02, .high = 1),
    TN_HF("layer_norm_epsilon", tn_gpt_config, eps, .otherwise = 1e-5, .low = 1e-15, .high = 0.1),
    {"model_type", TN_HF_TYPE, .text = "gpt2"},
    TN_HF("n_embd", tn_gpt_config, dim, .needed = true, .low = 1, .high = 65536),
    TN_HF("n_head", tn_gpt_config, heads, .needed = true, .low = 1, .high = 1024),
    TN_HF("n_inner", tn_gpt_config, ff, .low = 1, .high = 1048576),
    TN_HF("n_layer", tn_gpt_config, layers, .needed = true, .low = 1, .high = 1024),
    TN_HF("n_positions", tn_gpt_config, positions, .otherwise = 1024, .low = 1, .high = 10000000),
    TN__IDS("pad_token_id", stored, padding),
    TN_HF("resid_pdrop", tn_gpt_config, dropout, .otherwise = 0.1, .high = 1, .below = true),
    TN_HF("tie_word_embeddings", tn_gpt_config, untied, .otherwise = true, .opposite = true),
    {"torch_dtype", TN_HF_NAME, .text = "float32"},
    TN_HF("vocab_size", tn_gpt_config, vocab, .needed = true, .low = 1, .high = 10000000),
    {"pruned_heads", TN_HF_PRUNED, .text = NULL},
    {"scale_attn_weights", TN_HF_MUST, .silent = true, .otherwise = true},
    {"add_cross_attention is_encoder_decoder scale_attn_by_inverse_layer_idx", TN_HF_MUST, .silent = true},
    TN__UNUSED("n_ctx use_cache"), TN__UNUSED("reorder_and_upcast_attn"), /* always f32 here */
    TN__UNUSED("summary_activation summary_first_dropout summary_proj_to_labels summary_type summary_use_proj"),
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
    return tn_hf_init_and_activation(who, c->init, &c->activation) && tn_hf_config_within(who, &table, c);
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
                                       .norm.eps = c.eps, .order = TN_NORM_FIRST, .final_norm = true));
    if (c.untied) m->out = tn_weight(m, "lm_head.weight", tn_empty(TN_SHAPE(c.vocab, c.dim)));
    else if (m->words) m->out = m->words->weight;
    if (tn_error() == TN_OK) tn__lm_init(m, c.init, c.layers);
    return tn_built(m);
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

static int names(const void *self, tn_rename *to, int room)
{
    return tn__hf_names(((const tn_gpt *)self)->config.untied ? &untied : &tied, to, room);
}

void *tn__gpt_load(const tn_hf_source *s)
{
    stored        read = {.c = {.zero_ = 0}};
    tn_hf_weights w;
    if (!tn_hf_source_read(s, &tied, &read)) return NULL;
    const tn_gpt_config c = read.c;
    if (c.dim % c.heads)
        return tn_raise_null(TN_EFORMAT, "'%s': n_head %lld does not divide n_embd %lld", s->name, (long long)c.heads,
                             (long long)c.dim);
    const int64_t ff = c.ff ? c.ff : 4 * c.dim, tables = c.vocab * (c.untied ? 2 : 1) + c.positions;
    const int64_t all = tables * c.dim + c.layers * c.dim * (4 * c.dim + 2 * ff);
    const bool    ok = tn_hf_weights_open(&w, s, all, c.dim / c.heads * (4 * c.dim + 3));
    tn_gpt       *m = ok ? tn_gpt_create(c) : NULL;
    if (m) m->begin = read.begin, m->end = read.end, m->padding = read.padding, m->decoder_begin = read.decoder_begin;
    return tn_hf_weights_load(&w, m, c.untied ? &untied : &tied);
}
tn_gpt *tn_gpt_load(const char *dir) { return tn_hf_load(dir, tn__gpt_load); }

tn_status tn__gpt_save_as(tn_gpt *m, const char *to, const tn__gguf_options *gguf)
{
    const stored s = {m->config, m->begin, m->end, m->padding, m->decoder_begin};
    return tn__hf_write_as(m, to, m->config.untied ? &untied : &tied, &s, gguf);
}
tn_status tn_gpt_save(tn_gpt *m, const char *dir) { return tn_ready(m) ? tn__gpt_save_as(m, dir, NULL) : tn_error(); }
