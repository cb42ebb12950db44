/* llama.c — LLaMA (Touvron et al. 2023) and its relatives: a causal Transformer with RMS pre-norm, rotary positions, a
 * gated feed-forward and grouped-query attention. families.c lists what the relatives change.
 *
 *   x = dropout(word),  y = norm(blocks(x)),  logits = y Wᵀ, or, tied, y Eᵀ
 *   block: x + attention(norm1(x)), then x + down(silu(gate(n)) · up(n)) with n = norm2(x) */
#include "models/generate/lm_private.h"
#include "models/llama/llama_private.h"

#include <stdio.h>
#include <string.h>

static void describe(const void *self, char *text, size_t size)
{
    const tn_llama_config *c = &((const tn_llama *)self)->config;
    snprintf(text, size, "vocab=%lld, dim=%lld, layers=%lld, heads=%lld, kv_heads=%lld", (long long)c->vocab,
             (long long)c->dim, (long long)c->layers, (long long)c->heads, (long long)c->kv_heads);
}
static tn_tensor *forward(void *self, tn_tensor *ids) { return tn_llama_forward((tn_llama *)self, ids); }
static tn_status  save(void *self, const char *dir) { return tn_llama_save(self, dir); }

static tn_lm_info info(const void *self)
{
    const tn_llama        *m = self;
    const tn_llama_config *c = &m->config;
    tn_lm_info             i = {.type = c->type, .vocab = c->vocab, .dim = c->dim, .layers = c->layers};
    i.heads = c->heads, i.kv_heads = c->kv_heads, i.positions = c->positions;
    i.blocks = m->blocks, i.out = m->out, i.bias = m->bias, i.logit_cap = c->logit_cap;
    i.experts_per_token = c->experts_per_token;
    if (c->experts) i.balance = c->balanced ? c->balance : 0, i.router_z = c->router_z;
    return i;
}
static tn_tensor *hidden(void *self, tn_decoder_args a)
{
    const tn_llama *m = self;
    tn_tensor      *x = tn_call(m->words, a.ids);
    if (m->config.embedding_scale != 0) x = tn_mul_scalar(x, m->config.embedding_scale);
    return tn_blocks_forward(m->blocks, tn_call(m->dropout, x), .causal = true, .cache = a.cache,
                             .key_padding_mask = a.key_padding_mask, .skip_padding = a.skip_padding,
                             .router = a.router);
}
static tn_decoding *decoding(void *self, int64_t rows, int64_t length)
{
    tn_llama     *m = self;
    const char   *pattern = m->config.pattern;
    const int64_t window = pattern && strpbrk(pattern, "gn") ? 0 : m->config.scores.window;
    const int64_t room = window ? tn__windowed_room(length, window) : length;
    tn_kv_cache  *cache = tn_blocks_cache(m->blocks, rows, room, 0);
    return tn__replayed(window ? tn_windowed_decoding(m, tn__lm_step, cache, rows, length, window)
                               : tn_cached_decoding(m, tn__lm_step, cache, rows, length));
}

static int names(const void *self, tn_rename *to, int room);

static const tn_lm_ops ops = {.info = info, .hidden = hidden, .decoding = decoding, .save = save};
const tn_class         tn__llama_class = {.size = sizeof(tn_class),
                                          .name = "LLaMA",
                                          .bytes = sizeof(tn_llama),
                                          .forward = forward,
                                          .describe = describe,
                                          .lm = &ops,
                                          .names = names};

tn_tensor *tn_llama_run(tn_llama *m, tn_llama_args a) { return tn__lm_run(__func__, m, a); }
tn_tensor *tn_llama_loss(tn_llama *m, tn_tensor *ids, tn_tensor *targets)
{
    return tn__lm_loss(__func__, m, ids, targets);
}
tn_decoding *tn_llama_decoding(tn_llama *m, int64_t rows, int64_t n) { return tn__lm_decoding(__func__, m, rows, n); }

/* ---- building ---------------------------------------------------------------------------------------------------- */

/* The model's own copy of the pattern. */
static const char *pattern_of(tn_llama *m, const char *pattern)
{
    const size_t n = pattern ? strlen(pattern) : 0;
    char        *own = n ? tn_array(m, (int64_t)n + 1, char) : NULL;
    return own ? memcpy(own, pattern, n) : NULL;
}

/* The positions of the layers: of those that see all, and of those with a window if they have other angles. */
typedef struct {
    const tn_llama_config *c;
    tn_rotary             *local;
} positions;

/* Layer i's window and positions, by its letter in the pattern: g sees all, l has the window, n has no positions. */
static void set_layer(tn_block_config *b, int64_t i, void *user)
{
    positions             *p = user;
    const tn_llama_config *c = p->c;
    const char             kind = c->pattern ? c->pattern[i % (int64_t)strlen(c->pattern)] : 'l';
    tn_rope_config         rope = c->rope;
    rope.theta = c->local_theta, rope.scaling = TN_ROPE_PLAIN, rope.factor = 1;
    if (kind != 'l') b->attention.scores.window = 0;
    if (kind == 'n') b->attention.positions = NULL;
    if (kind != 'l' || !c->pattern || !(c->local_theta > 0)) return;
    if (!p->local) p->local = tn_rotary_create(rope);
    b->attention.positions = p->local;
}

static void *experts(const tn_block_config *b)
{
    const tn_llama_config *c = ((const positions *)b->user)->c;
    return tn_experts_new(.dim = c->dim, .ff = c->ff, .experts = c->experts, .per_token = c->experts_per_token,
                          .weights = c->expert_weights, .gated = b->gated, .activation = b->activation,
                          .jitter = c->router_jitter, .no_bias = b->no_ff_bias);
}

tn_llama *tn_llama_create(tn_llama_config c)
{
    if (tn_error() != TN_OK || !tn__llama_complete("tn_llama_new", &c)) return NULL;
    tn_llama *m = tn_module_create(&tn__llama_class);
    if (!m) return NULL;
    m->config = c;
    m->config.pattern = pattern_of(m, c.pattern);
    positions own = {&m->config, NULL};
    m->words = tn_child(m, "embed_tokens", tn_embedding_new(.count = c.vocab, .dim = c.dim, .padding = c.padding));
    m->dropout = tn_child(m, "dropout", tn_dropout_new(.p = c.dropout));
    m->blocks = tn_child(
        m, "model",
        tn_blocks_new(.layers = c.layers, .final_norm = true, .dim = c.dim, .heads = c.heads,
                      .attention.kv_heads = c.kv_heads, .attention.head_dim = c.head_dim, .attention.scores = c.scores,
                      .attention.no_bias = !c.qkv_bias, .attention.no_out_bias = !c.out_bias,
                      .attention.positions = tn_rotary_create(c.rope), .ff = c.ff, .gated = !c.plain_ff,
                      .feed_forward = c.experts ? experts : NULL, .activation = tn_hf_activation(c.activation),
                      .dropout = c.dropout, .attention_dropout = c.attention_dropout, .activation_dropout = 0,
                      .norm = {c.norm, c.eps, c.norm_add_one}, .order = c.order, .each = set_layer, .user = &own,
                      .no_ff_bias = !c.ff_bias));
    if (!c.tied) m->out = tn_weight(m, "lm_head.weight", tn_empty(TN_SHAPE(c.vocab, c.dim)));
    else if (m->words) m->out = m->words->weight;
    if (c.head_bias) m->bias = tn_param(m, "lm_head.bias", tn_zeros(TN_SHAPE(c.vocab)));
    if (tn_error() == TN_OK) tn__lm_init(m, c.init, c.layers);
    if (m->words && tn_error() == TN_OK && c.padding >= 0) tn_init_zeros(tn_narrow(m->words->weight, 0, c.padding, 1));
    return tn_built(m);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static int names(const void *self, tn_rename *to, int room)
{
    const tn_llama_config  *c = &((const tn_llama *)self)->config;
    const tn__llama_family *family = tn__llama_family_of(c->type);
    tn__hf_tables           files;
    if (!family) return 0;
    tn__llama_files_of(family, c, &files);
    return tn__hf_names(&files.files, to, room);
}

void *tn__llama_load(const tn_hf_source *s)
{
    tn__llama_stored       read;
    tn_hf_weights          w;
    const tn_llama_config *k = &read.c;
    if (!tn__llama_config_read(s, &read)) return NULL;
    const int64_t d = k->head_dim ? k->head_dim : k->dim / k->heads;
    const int64_t each = (k->plain_ff ? 2 : 3) * k->ff; /* of a feed-forward */
    const int64_t layer = k->dim * (2 * d * (k->heads + k->kv_heads) + (k->experts ? k->experts * (each + 1) : each));
    tn__hf_tables files;
    tn__llama_files_of(read.family, k, &files);
    const int64_t all = k->vocab * k->dim * (k->tied ? 1 : 2) + k->layers * layer;
    const bool    ok = tn_hf_weights_open(&w, s, all, d * (4 * k->dim + 3));
    tn_llama     *m = ok ? tn_llama_create(read.c) : NULL;
    if (m) m->begin = read.begin, m->end = read.end, m->decoder_begin = read.decoder_begin;
    if (m && read.padding != TN__LLAMA_NO_PADDING) m->padding = (tn_token_ids){.n = 1, .id = {read.padding}};
    return tn_hf_weights_load(&w, m, &files.files);
}
tn_llama *tn_llama_load(const char *dir) { return tn_hf_load(dir, tn__llama_load); }

tn_status tn__llama_save_as(tn_llama *m, const char *to, const tn__gguf_options *gguf)
{
    tn__llama_stored s;
    tn__hf_tables    files;
    if (!tn__llama_config_write(&m->config, to, &s)) return tn_error();
    const bool same = m->padding.n && tn__llama_padding(s.family, &m->config, m->padding.id[0]) == m->config.padding;
    s.begin = m->begin, s.end = m->end, s.decoder_begin = m->decoder_begin;
    if (same) s.padding = m->padding.id[0];
    tn__llama_files_of(s.family, &m->config, &files);
    return tn__hf_write_as(m, to, &files.files, &s, gguf);
}
tn_status tn_llama_save(tn_llama *m, const char *dir)
{
    return tn_ready(m) ? tn__llama_save_as(m, dir, NULL) : tn_error();
}
