/* reformer_config.c — Reformer's config: defaults, checks, and config.json. */
#include "extras/reformer/reformer_private.h"

#include <stdio.h>
#include <string.h>

typedef tn__reformer_stored stored;
_Static_assert(TN_HF_LETTERS_MOST == TN_REFORMER_LAYERS + 1, "a letter for each layer");

static const char *const layers[] = {"local", "lsh", NULL};
enum { WIDE = 1 << 20 };

/* clang-format off */
static const tn_hf_row rows[] = {
    {"architectures", TN_HF_NAME, .text = "ReformerModelWithLMHead"},
    TN_HF("attention_head_size", stored, c.head_dim, .otherwise = 64, .low = 1, .high = 65536),
    TN_HF("attn_layers", stored, kinds, .choices = layers, .text = "lh", .needed = true),
    TN_HF("axial_norm_std", stored, c.axial_init, .otherwise = 1, .high = 100),
    TN_HF("axial_pos_embds", stored, axial, .otherwise = true),
    TN_HF("axial_pos_embds_dim", stored, c.axial_dim, .omitted = true, .low = 1, .high = 65536),
    TN_HF("axial_pos_shape", stored, c.axial, .omitted = true, .low = 1, .high = 10000000),
    TN_HF("chunk_size_feed_forward", stored, c.ff_chunk, .omitted = true, .high = 10000000),
    TN_HF("feed_forward_size", stored, c.ff, .otherwise = 512, .low = 1, .high = 1048576),
    TN_HF("hash_seed", stored, c.seed, .otherwise = -1, .nullable = true, .low = -1, .high = 4294967295.0),
    TN_HF("hidden_act", stored, c.activation, .text = "relu"),
    TN_HF("hidden_dropout_prob", stored, c.dropout, .otherwise = 0.05, .high = 1, .below = true),
    TN_HF("hidden_size", stored, c.dim, .otherwise = 256, .low = 1, .high = 65536),
    TN_HF("initializer_range", stored, c.init, .otherwise = 0.02, .high = 1),
    {"is_decoder", TN_HF_MUST, .otherwise = true,
     .says = "is_decoder is false, which is not supported: only causal models are"},
    TN_HF("layer_norm_eps", stored, c.eps, .otherwise = 1e-12, .high = 0.1),
    TN_HF("local_attention_probs_dropout_prob", stored, c.local_dropout, .otherwise = 0.05, .high = 1, .below = true),
    TN_HF("local_attn_chunk_length", stored, c.local_chunk, .otherwise = 64, .low = 1, .high = WIDE),
    TN_HF("local_num_chunks_before", stored, c.local_before, .otherwise = 1, .high = 64),
    TN_HF("lsh_attention_probs_dropout_prob", stored, c.attention_dropout, .high = 1, .below = true),
    TN_HF("lsh_attn_chunk_length", stored, c.chunk, .otherwise = 64, .low = 1, .high = WIDE),
    TN_HF("lsh_num_chunks_before", stored, c.before, .otherwise = 1, .high = 64),
    TN_HF("max_position_embeddings", stored, c.positions, .otherwise = 4096, .low = 1, .high = 10000000),
    {"model_type", TN_HF_TYPE, .text = "reformer"},
    TN_HF("num_attention_heads", stored, c.heads, .otherwise = 12, .low = 1, .high = 1024),
    TN_HF("num_buckets", stored, c.buckets, .omitted = true, .low = 2, .high = WIDE),
    TN_HF("num_hashes", stored, c.rounds, .otherwise = 1, .low = 1, .high = 64),
    {"torch_dtype", TN_HF_NAME, .text = "float32"},
    TN_HF("vocab_size", stored, c.vocab, .otherwise = 320, .low = 1, .high = 10000000),
    {"local_num_chunks_after lsh_num_chunks_after tie_word_embeddings is_encoder_decoder", TN_HF_MUST, .silent = true},
    TN__IDS("bos_token_id", stored, begin),
    TN__IDS("decoder_start_token_id", stored, decoder_begin),
    TN__IDS("eos_token_id", stored, end),
    TN__IDS("pad_token_id", stored, padding), /* padding is masked */
    TN__UNUSED("chunk_size_lm_head classifier_dropout use_cache"), TN__UNUSED("num_hidden_layers"), /* attn_layers' */
};
/* clang-format on */
/* The output bias: before transformers 5.24 one tensor with two names, stored as lm_head.bias; since then
 * lm_head.decoder.bias is used, and lm_head.bias is not. */
static const tn_rename   rules[] = {TN_RENAME("lm_head.bias", NULL), TN_RENAME("lm_head.decoder.bias", "lm_head.bias")};
static const tn_hf_files table = TN_HF_FILES(rows, rules), old_table = {rows, TN_HF_COUNT_(rows), NULL, 0};
const tn_hf_files       *tn__reformer_table(void) { return &table; }
const tn_hf_files       *tn__reformer_table_of(const tn_safetensors *f)
{
    return f && tn_safetensors_find(f, "lm_head.decoder.bias") >= 0 ? &table : &old_table;
}

/* ---- in the program ---------------------------------------------------------------------------------------------- */

static bool wrong(const char *fmt, long long a, long long b)
{
    char text[300];
    snprintf(text, sizeof text, fmt, a, b);
    return tn_raise_false(TN_EINVAL, "tn_reformer_new: %s", text);
}

static bool kinds_of(tn_reformer_config *c, char kinds[TN_REFORMER_LAYERS + 1])
{
    const char *of = c->kinds ? c->kinds : "lh";
    memset(kinds, 0, TN_REFORMER_LAYERS + 1);
    if (c->layers < 1 || c->layers > TN_REFORMER_LAYERS)
        return wrong(".layers is %lld, but must be from 1 to %lld", (long long)c->layers, TN_REFORMER_LAYERS);
    if (!*of || of[strspn(of, "lh")])
        return wrong(".kinds must consist of the letters l (local) and h (LSH)%.0lld%.0lld", 0, 0);
    for (int64_t i = 0; i < c->layers; i++) kinds[i] = of[(size_t)i % strlen(of)];
    c->kinds = kinds;
    return true;
}

static bool axial_fits(tn_reformer_config *c)
{
    const int64_t *s = c->axial;
    if (!s[0] && !s[1]) return true;
    if (s[0] < 1 || s[1] < 1 || s[0] > 10000000 || s[1] > 10000000)
        return wrong(".axial is {%lld, %lld}, but must be rows and columns from 1 to 10000000", (long long)s[0],
                     (long long)s[1]);
    if (!c->axial_dim[0] && !c->axial_dim[1]) c->axial_dim[0] = c->dim / 4, c->axial_dim[1] = c->dim - c->dim / 4;
    if (c->axial_dim[0] < 1 || c->axial_dim[1] < 1 || c->axial_dim[0] != c->dim - c->axial_dim[1])
        return wrong(".axial_dim is {%lld, %lld}, but its sum must be .dim", (long long)c->axial_dim[0],
                     (long long)c->axial_dim[1]);
    if (s[0] * s[1] < c->positions) c->positions = s[0] * s[1];
    return true;
}

static bool buckets_fit(const tn_reformer_config *c)
{
    const int64_t *n = c->buckets;
    const bool     fine = n[0] >= 0 && n[1] >= 0 && n[0] % 2 == 0 && n[1] % 2 == 0 && n[0] <= WIDE && n[1] <= WIDE;
    return (fine && (n[0] || !n[1])) ||
           wrong(".buckets is {%lld, %lld}, but must be even numbers up to 1048576", (long long)n[0], (long long)n[1]);
}

bool tn__reformer_complete(tn_reformer_config *c, char kinds[TN_REFORMER_LAYERS + 1])
{
    static const char *const who = "tn_reformer_new";
    if (!c->activation) c->activation = "relu";
    const stored s = {.c = *c};
    return tn_hf_init_and_activation(who, c->init, &c->activation) && tn_hf_config_within(who, &table, &s) &&
           kinds_of(c, kinds) && axial_fits(c) && buckets_fit(c);
}
