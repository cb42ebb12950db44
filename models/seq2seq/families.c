/* families.c — encoder-decoders of transformers: a table for each model_type, with the options that its models have,
 * the members of config.json and the names of weights. BART, Marian and M2M-100 come from fairseq's Transformer. */
#include "models/seq2seq/seq2seq_private.h"

#include <string.h>

typedef tn__seq2seq_stored stored;

#define ROWS(r) .rows = (r), .count = TN_HF_COUNT_(r)
#define RULES(r) .rules = (r), .renames = TN_HF_COUNT_(r)
#define UNUSED(key)                      \
    {                                    \
        (key), TN_HF_ANY, .silent = true \
    } /* does not change results */

/* ---- members and names that BART, Marian and M2M-100 share, with BART's defaults --------------------------------- */

#define TOKEN(key, member, n) TN_HF(key, stored, member, .otherwise = (n), .high = 10000000)
#define PROBABILITY(key, member, p) TN_HF(key, stored, member, .otherwise = (p), .high = 1, .below = true)
#define COUNT(key, member, n, most) TN_HF(key, stored, member, .otherwise = (n), .low = 1, .high = (most))

#define FORCED_END(n, ...)                                                                                             \
    TN_HF("forced_eos_token_id", stored, search.last, .otherwise = (n), .nullable = true, .low = -1, .high = 10000000, \
          __VA_ARGS__)

static const tn_hf_row common[] = {
    PROBABILITY("activation_dropout", c.activation_dropout, 0),
    TN_HF("activation_function", stored, c.activation, .text = "gelu"),
    {"architectures", TN_HF_NAME, .at = offsetof(stored, architecture)},
    PROBABILITY("attention_dropout", c.attention_dropout, 0),
    TN__IDS("bos_token_id", stored, kept.begin),
    COUNT("d_model", c.dim, 1024, 65536),
    COUNT("decoder_attention_heads", c.decoder_heads, 16, 1024),
    COUNT("decoder_ffn_dim", c.decoder_ff, 4096, 1048576),
    TN_HF("decoder_layerdrop", stored, kept.decoder_layerdrop, .high = 1),
    COUNT("decoder_layers", c.decoder_layers, 12, 1024),
    TOKEN("decoder_start_token_id", c.begin, 2),
    PROBABILITY("dropout", c.dropout, 0.1),
    COUNT("encoder_attention_heads", c.heads, 16, 1024),
    COUNT("encoder_ffn_dim", c.ff, 4096, 1048576),
    TN_HF("encoder_layerdrop", stored, kept.layerdrop, .high = 1),
    COUNT("encoder_layers", c.layers, 12, 1024),
    TOKEN("eos_token_id", c.end, 2),
    FORCED_END(-1, .omitted = true),
    TN_HF("init_std", stored, kept.init, .otherwise = 0.02, .high = 1000),
    {"is_encoder_decoder", TN_HF_MUST, .otherwise = true},
    COUNT("max_position_embeddings", c.positions, 1024, 10000000),
    {"model_type", TN_HF_TYPE, .at = offsetof(stored, c.type), .choices = tn__seq2seq_types},
    TOKEN("pad_token_id", c.padding, 1),
    TN_HF("scale_embedding", stored, c.plain_embedding, .otherwise = false, .opposite = true),
    TN_HF("tie_word_embeddings", stored, tie, .otherwise = true),
    {"torch_dtype", TN_HF_NAME, .text = "float32"},
    TN_HF("vocab_size", stored, c.source_words, .needed = true, .low = 1, .high = 10000000),
    {"pruned_heads", TN_HF_PRUNED, .text = "paths"},
    {"quantization_config", TN_HF_EMPTY, .silent = true},
    {"is_decoder", TN_HF_MUST, .silent = true},
    {"per_layer_config", TN_HF_EMPTY, .silent = true},
    UNUSED("use_cache"),
};

#define ENCODER "transformer.encoder."
#define DECODER "transformer.decoder."
#define ENCODER_LAYER ENCODER "layers.*."
#define DECODER_LAYER DECODER "layers.*."
#define LAYER "transformer.*.layers.*."
#define PART(name, i)                                                                   \
    TN_RENAME("**." name "_proj.weight", "**.in_proj_weight", .part = (i), .parts = 3), \
        TN_RENAME("**." name "_proj.bias", "**.in_proj_bias", .part = (i), .parts = 3)

static const tn_rename common_rules[] = {
    TN_RENAME("shared", "model.shared", .load_only = true), /* of files without the output layer */
    TN_RENAME("encoder", "model.encoder", .load_only = true),
    TN_RENAME("decoder", "model.decoder", .load_only = true),
    TN_RENAME("final_logits_bias", "out.bias"),
    TN_RENAME("lm_head.weight", "out.weight"),
    TN_RENAME("model.*.version", NULL), /* of old files */
    TN_RENAME("model.encoder", "transformer.encoder"),
    TN_RENAME("model.decoder", "transformer.decoder"),
    TN_RENAME(ENCODER "embed_tokens", "source"),
    TN_RENAME(DECODER "embed_tokens", "target"),
    TN_RENAME("model.shared", "source"), /* unused if not shared */
    TN_RENAME(ENCODER "layer_norm", ENCODER "norm"),
    TN_RENAME(DECODER "layer_norm", DECODER "norm"),
    TN_RENAME(DECODER_LAYER "encoder_attn", DECODER_LAYER "multihead_attn"),
    PART("q", 0),
    PART("k", 1),
    PART("v", 2),
    TN_RENAME(LAYER "self_attn_layer_norm", LAYER "norm1"),
    TN_RENAME(DECODER_LAYER "encoder_attn_layer_norm", DECODER_LAYER "norm2"),
    TN_RENAME(DECODER_LAYER "final_layer_norm", DECODER_LAYER "norm3"),
    TN_RENAME(ENCODER_LAYER "final_layer_norm", ENCODER_LAYER "norm2"),
    TN_RENAME(LAYER "fc1", LAYER "linear1"),
    TN_RENAME(LAYER "fc2", LAYER "linear2"),
};

/* Files may lack the output layer's bias, which is 0 then. */
static void look_for_bias(stored *s, const tn_safetensors *f)
{
    s->c.fixed_out_bias = tn_safetensors_find(f, "final_logits_bias") >= 0;
    s->c.no_out_bias = !s->c.fixed_out_bias;
}

/* ---- BART -------------------------------------------------------------------------------------------------------- */

static const tn_hf_row bart_rows[] = {FORCED_END(2, .omitted = false), UNUSED("classifier_dropout")};
static const tn_rename bart_rules[] = {
    TN_RENAME(ENCODER "embed_positions", "positions"),
    TN_RENAME(DECODER "embed_positions", "target_positions"),
    TN_RENAME(ENCODER "layernorm_embedding", "source_norm"),
    TN_RENAME(DECODER "layernorm_embedding", "target_norm"),
};

/* ---- Marian (OPUS-MT) -------------------------------------------------------------------------------------------- */

static const tn_hf_row marian_rows[] = {
    TN__IDS("bos_token_id", stored, kept.begin),
    TOKEN("decoder_start_token_id", c.begin, 58100),
    TN_HF("decoder_vocab_size", stored, c.target_words, .high = 10000000),
    TOKEN("eos_token_id", c.end, 0),
    FORCED_END(0, .omitted = false),
    TOKEN("pad_token_id", c.padding, 58100),
    TN_HF("share_encoder_decoder_embeddings", stored, share, .otherwise = true),
};
static const tn_rename static_positions[] = {TN_RENAME("transformer.*.embed_positions", NULL)}; /* of old files */

/* ---- M2M-100 and NLLB -------------------------------------------------------------------------------------------- */

static const tn_hf_row m2m_rows[] = {
    TN_HF("activation_function", stored, c.activation, .text = "relu"),
    PROBABILITY("attention_dropout", c.attention_dropout, 0.1),
    TN_HF("decoder_layerdrop", stored, kept.decoder_layerdrop, .otherwise = 0.05, .high = 1),
    TN_HF("encoder_layerdrop", stored, kept.layerdrop, .otherwise = 0.05, .high = 1),
    TN_HF("scale_embedding", stored, c.plain_embedding, .otherwise = true, .opposite = true),
};

/* ---- the families ------------------------------------------------------------------------------------------------ */

enum {
    FAIRSEQ = TN__S2S_PLAIN_EMBEDDING | TN__S2S_DROPOUTS | TN__S2S_DECODER | TN__S2S_UNTIED | TN__S2S_UNSHARED |
              TN__S2S_NO_OUT_BIAS,
    BIASED = FAIRSEQ | TN__S2S_FIXED_OUT_BIAS,
};
const char *const               tn__seq2seq_types[] = {"tenon-seq2seq", "bart", "marian", "m2m_100", NULL};
static const tn__seq2seq_family families[] = {
    {"bart", "BartForConditionalGeneration", TN__S2S_LEARNED | TN__S2S_NORM_EMBEDDING | TN__S2S_NO_FINAL_NORM, BIASED,
     ROWS(bart_rows), RULES(bart_rules), .look = look_for_bias},
    {"marian", "MarianMTModel", TN__S2S_HALVES | TN__S2S_NO_FINAL_NORM, BIASED | TN__S2S_TWO_SIZES, ROWS(marian_rows),
     RULES(static_positions), .look = look_for_bias},
    {"m2m_100", "M2M100ForConditionalGeneration", TN__S2S_TENSOR2TENSOR | TN__S2S_NORM_FIRST | TN__S2S_NO_OUT_BIAS,
     FAIRSEQ, ROWS(m2m_rows), RULES(static_positions), .look = NULL},
};

const tn__seq2seq_family *tn__seq2seq_family_of(const char *type)
{
    for (size_t i = 0; type && i < sizeof families / sizeof *families; i++)
        if (!strcmp(families[i].type, type)) return &families[i];
    return NULL;
}

/* ---- the tables of a family -------------------------------------------------------------------------------------- */

static bool has_key(const tn_hf_row *rows, int n, const char *key)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(rows[i].key, key)) return true;
    return false;
}

void tn__seq2seq_tables_of(const tn__seq2seq_family *f, const tn_seq2seq_config *c, tn__seq2seq_tables *to)
{
    _Static_assert(TN_HF_COUNT_(common) + TN_HF_COUNT_(marian_rows) <= TN_HF_COUNT_(to->rows), "room for the rows");
    to->files = (tn_hf_files){to->rows, 0, to->rules, 0};
    for (int i = 0; !f->own_rows && i < TN_HF_COUNT_(common); i++)
        if (!has_key(f->rows, f->count, common[i].key)) to->rows[to->files.count++] = common[i];
    for (int i = 0; i < f->count; i++) to->rows[to->files.count++] = f->rows[i];
    for (int i = 0; !f->own_rules && i < TN_HF_COUNT_(common_rules); i++) {
        tn_rename *r = &to->rules[to->files.renames++];
        *r = common_rules[i];
        if (!c->shared && !strcmp(r->file, "model.shared")) r->module = NULL;
    }
    for (int i = 0; i < f->renames; i++) to->rules[to->files.renames++] = f->rules[i];
    if (!c->untied) /* stored under the embedding's name */
        to->rules[to->files.renames++] =
            (tn_rename)TN_RENAME(c->shared ? "source.weight" : "target.weight", "out.weight");
}
