/* llama.c — LLaMA (Touvron et al. 2023), Mistral and Qwen2: a causal Transformer with RMS pre-norm, rotary positions, a
 * gated feed-forward and grouped-query attention.
 *
 *   x = dropout(word),  y = norm(blocks(x)),  logits = y Wᵀ, or, tied, y Eᵀ
 *   block: x + attention(norm1(x)), then x + down(silu(gate(n)) · up(n)) with n = norm2(x) */
#include "models/generate/next_token.h"
#include "models/llama/llama_private.h"

#include <stdio.h>

static void describe(const void *self, char *text, size_t size)
{
    const tn_llama_config *c = &((const tn_llama *)self)->config;
    snprintf(text, size, "vocab=%lld, dim=%lld, layers=%lld, heads=%lld, kv_heads=%lld", (long long)c->vocab,
             (long long)c->dim, (long long)c->layers, (long long)c->heads, (long long)c->kv_heads);
}
static tn_tensor *forward(void *self, tn_tensor *ids) { return tn_llama_forward((tn_llama *)self, ids); }
const tn_class    tn__llama_class = {
       .size = sizeof(tn_class), .name = "LLaMA", .bytes = sizeof(tn_llama), .forward = forward, .describe = describe};

/* ---- building ---------------------------------------------------------------------------------------------------- */

tn_llama *tn_llama_create(tn_llama_config c)
{
    if (tn_error() != TN_OK || !tn__llama_complete("tn_llama_new", &c)) return NULL;
    tn_llama *m = tn_module_create(&tn__llama_class);
    if (!m) return NULL;
    m->config = c;
    m->words = tn_child(m, "embed_tokens", tn_embedding_new(.count = c.vocab, .dim = c.dim));
    m->dropout = tn_child(m, "dropout", tn_dropout_new(.p = c.dropout));
    m->blocks = tn_child(m, "model",
                         tn_blocks_new(.layers = c.layers, .dim = c.dim, .heads = c.heads, .kv_heads = c.kv_heads,
                                       .head_dim = c.head_dim, .ff = c.ff, .norm = TN_NORM_RMS, .eps = c.eps,
                                       .norm_first = true, .final_norm = true, .rotary = true, .rope = c.rope,
                                       .gated = true, .window = c.window, .full_layers = c.full_layers,
                                       .activation = tn_hf_activation(c.activation), .no_attention_bias = !c.qkv_bias,
                                       .no_out_bias = !c.out_bias, .no_ff_bias = !c.ff_bias, .dropout = c.dropout,
                                       .attention_dropout = c.attention_dropout, .activation_dropout = 0));
    if (!c.tied) m->out = tn_weight(m, "lm_head.weight", tn_empty(TN_SHAPE(c.vocab, c.dim)));
    else if (m->words) m->out = m->words->weight;
    if (tn_error() == TN_OK) tn__next_token_init(m, c.init, c.layers);
    return tn_built(m);
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

/* The hidden states after the last norm. */
static tn_tensor *hidden_states(tn_llama *m, tn_tensor *ids, tn_kv_cache *cache)
{
    if (!tn__ids_fit("llama", ids)) return NULL;
    tn_tensor *x = tn_call(m->dropout, tn_call(m->words, ids));
    return tn_blocks_forward(m->blocks, x, .causal = true, .cache = cache);
}

tn_tensor *tn_llama_run(tn_llama *m, tn_llama_args a)
{
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    tn_tensor     *y = hidden_states(m, a.ids, a.cache);
    return tn_leave(f, y ? tn__next_token_logits(y, m->out, NULL, &a) : NULL);
}

tn_tensor *tn_llama_loss(tn_llama *m, tn_tensor *ids, tn_tensor *targets)
{
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    tn_tensor     *y = hidden_states(m, ids, NULL);
    return tn_leave(f, y ? tn__next_token_loss("llama", y, m->out, NULL, ids, targets) : NULL);
}

static tn_tensor *next_logits(void *m, tn_tensor *ids, tn_kv_cache *cache)
{
    return tn_llama_forward((tn_llama *)m, ids, .cache = cache, .last = true);
}

tn_decoding *tn_llama_decoding(tn_llama *m, int64_t rows, int64_t length)
{
    if (!tn_ready(m)) return NULL;
    const int64_t window = m->config.full_layers ? 0 : m->config.window;
    if (!window) return tn_cached_decoding(m, next_logits, tn_blocks_cache(m->blocks, rows, length, 0), rows, length);
    tn_kv_cache *cache = tn_blocks_cache(m->blocks, rows, tn__windowed_room(length, window), 0);
    return tn_windowed_decoding(m, next_logits, cache, rows, length, window);
}
