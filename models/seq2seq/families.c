/* families.c — encoder-decoders of transformers: a table for each model_type, with the options that its models have,
 * the members of config.json and the names of weights. BART, Marian and M2M-100 come from fairseq's Transformer. */
#include "core/base/toolbox.h"
#include "models/seq2seq/seq2seq_private.h"

#include <string.h>

typedef tn__seq2seq_stored stored;

#define ROWS(r) .rows = (r), .count = TN_HF_COUNT_(r)
#define RULES(r) .rules = (r), .renames = TN_HF_COUNT_(r)

/* ---- members and names that BART, Marian and M2M-100 share, with BART's defaults --------------------------------- */

#define TOKEN(key, member, n) \
    TN_HF(key, stored, member, .otherwise = (n), .nullable = true, .low = -1, .high = 10000000)
#define PROBABILITY(key, member, p) TN_HF(key, stored, member, .otherwise = (p), .high = 1, .below = true)
#define COUNT(key, member, n, most) TN_HF(key, stored, member, .otherwise = (n), .low = 1, .high = (most))

#define FORCED_END(n, ...)                                                                                             \
    TN_HF("forced_eos_token_id", stored, search.last, .otherwise = (n), .nullable = true, .low = -1, .high = 10000000, \
          __VA_ARGS__)

static const tn_hf_row rows_of_all[] = {
    {"architectures", TN_HF_NAME, .at = offsetof(stored, architecture)},
    {"is_decoder", TN_HF_MUST, .silent = true},
    {"is_encoder_decoder", TN_HF_MUST, .otherwise = true},
    {"model_type", TN_HF_TYPE, .at = offsetof(stored, c.type), .choices = tn__seq2seq_types},
    {"pruned_heads", TN_HF_PRUNED, .text = "paths"},
    {"torch_dtype", TN_HF_NAME, .text = "float32"},
    TN_HF("vocab_size", stored, c.source_words, .needed = true, .low = 1, .high = 10000000),
    TN__UNUSED("use_cache"),
};
static const tn_hf_row common[] = {
    PROBABILITY("activation_dropout", c.activation_dropout, 0),
    TN_HF("activation_function", stored, c.activation, .text = "gelu"),
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
    COUNT("max_position_embeddings", c.positions, 1024, 10000000),
    TOKEN("pad_token_id", c.padding, 1),
    TN_HF("scale_embedding", stored, c.plain_embedding, .otherwise = false, .opposite = true),
    TN_HF("tie_word_embeddings", stored, tie, .otherwise = true),
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

static const tn_hf_row bart_rows[] = {FORCED_END(2, .omitted = false), TN__UNUSED("classifier_dropout")};
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

/* ---- T5, T5 v1.1 and Flan-T5 ------------------------------------------------------------------------------------- */

/* The activation, after "gated-" if there is a gate; gated-gelu is gelu_new. The second list is dense_act_fn's, which
 * transformers writes, too; "": absent. */
static const char *const t5_feed_forwards[] = {"relu",       "gated-gelu", "gelu",       "gelu_new",
                                               "silu",       "gated-relu", "gated-silu", "gated-gelu_new",
                                               "gated-tanh", "tanh",       NULL};
static const char *const t5_activations[] = {"", "relu", "gelu", "gelu_new", "silu", "tanh", NULL};

static const tn_hf_row t5_rows[] = {
    TN__IDS("bos_token_id", stored, kept.begin),
    COUNT("d_ff", c.ff, 2048, 1048576),
    COUNT("d_kv", c.head_dim, 64, 65536),
    COUNT("d_model", c.dim, 512, 65536),
    TOKEN("decoder_start_token_id", c.begin, -1), /* no default */
    {"dense_act_fn", TN_HF_CHOICE, .at = offsetof(stored, dense), .choices = t5_activations, .silent = true},
    PROBABILITY("dropout_rate", c.dropout, 0.1),
    TOKEN("eos_token_id", c.end, 1),
    {"feed_forward_proj", TN_HF_CHOICE, .at = offsetof(stored, feed_forward), .choices = t5_feed_forwards},
    TN_HF("initializer_factor", stored, kept.init, .otherwise = 1, .high = 1000),
    TN_HF("layer_norm_epsilon", stored, c.eps, .otherwise = 1e-6, .low = 1e-15, .high = 0.1),
    TN_HF("num_decoder_layers", stored, c.decoder_layers, .high = 1024),
    COUNT("num_heads", c.heads, 8, 1024),
    COUNT("num_layers", c.layers, 6, 1024),
    TOKEN("pad_token_id", c.padding, 0),
    COUNT("relative_attention_max_distance", c.relative_distance, 128, INT32_MAX),
    TN_HF("relative_attention_num_buckets", stored, c.relative, .otherwise = 32, .low = 4, .high = 1 << 20),
    TN_HF("tie_word_embeddings", stored, tie, .otherwise = true, .also = "scale_decoder_outputs"),
    TN__UNUSED("classifier_dropout"),
    TN__UNUSED("is_gated_act"), /* as feed_forward_proj says, or the weights' names do not fit */
};

#define T5_ATTENTION(file, module)                                                  \
    TN_RENAME(file ".q", module ".q_proj"), TN_RENAME(file ".k", module ".k_proj"), \
        TN_RENAME(file ".v", module ".v_proj"), TN_RENAME(file ".o", module ".out_proj")
#define T5_FEED_FORWARD(file, module)                                                \
    TN_RENAME(file ".wi", module "linear1"), TN_RENAME(file ".wi_0", module "gate"), \
        TN_RENAME(file ".wi_1", module "linear1"), TN_RENAME(file ".wo", module "linear2")
static const tn_rename t5_rules[] = {
    TN_RENAME("encoder.embed_tokens", NULL), /* copies of shared */
    TN_RENAME("decoder.embed_tokens", NULL),
    TN_RENAME("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias", NULL), /* of old files: unused */
    TN_RENAME("shared", "source"),
    TN_RENAME("lm_head", "out"),
    TN_RENAME("encoder.final_layer_norm", ENCODER "norm"),
    TN_RENAME("decoder.final_layer_norm", DECODER "norm"),
    TN_RENAME("encoder.block.0.layer.0.SelfAttention.relative_attention_bias", ENCODER "layers.0.relative"),
    TN_RENAME("decoder.block.0.layer.0.SelfAttention.relative_attention_bias", DECODER "layers.0.relative"),
    T5_ATTENTION("encoder.block.*.layer.0.SelfAttention", ENCODER_LAYER "self_attn"),
    T5_ATTENTION("decoder.block.*.layer.0.SelfAttention", DECODER_LAYER "self_attn"),
    T5_ATTENTION("decoder.block.*.layer.1.EncDecAttention", DECODER_LAYER "multihead_attn"),
    T5_FEED_FORWARD("encoder.block.*.layer.1.DenseReluDense", ENCODER_LAYER),
    T5_FEED_FORWARD("decoder.block.*.layer.2.DenseReluDense", DECODER_LAYER),
    TN_RENAME("encoder.block.*.layer.0.layer_norm", ENCODER_LAYER "norm1"),
    TN_RENAME("encoder.block.*.layer.1.layer_norm", ENCODER_LAYER "norm2"),
    TN_RENAME("decoder.block.*.layer.0.layer_norm", DECODER_LAYER "norm1"),
    TN_RENAME("decoder.block.*.layer.1.layer_norm", DECODER_LAYER "norm2"),
    TN_RENAME("decoder.block.*.layer.2.layer_norm", DECODER_LAYER "norm3"),
};

/* True for the name that the ungated matrix of a feed-forward has in files of the other kind. */
static bool is_other_name(const tn_rename *r, bool gated)
{
    const char *last = strrchr(r->file, '.');
    return last && !strcmp(last, gated ? ".wi" : ".wi_1");
}

static double t5_out_scale(const tn_seq2seq_config *c) { return tn__libm_pow((double)c->dim, -0.5); }

/* The name of the feed-forward; NULL: none. */
static const char *t5_feed_forward(const tn_seq2seq_config *c)
{
    for (int i = 0; t5_feed_forwards[i]; i++) {
        const char *name = t5_feed_forwards[i];
        const bool  gated = !strncmp(name, "gated-", 6);
        const char *activation = !strcmp(name, "gated-gelu") ? "gelu_new" : name + (gated ? 6 : 0);
        if (gated == c->gated && !strcmp(activation, c->activation)) return name;
    }
    return NULL;
}

static bool read_t5(stored *s, const tn_hf_source *source)
{
    tn_seq2seq_config *c = &s->c;
    const char        *name = source->name;
    if (tn_json_type_of(tn_json_get(source->config, "scale_decoder_outputs")) == TN_JSON_NULL) s->tie = false;
    c->gated = !strncmp(s->feed_forward, "gated-", 6);
    c->activation = !strcmp(s->feed_forward, "gated-gelu") ? "gelu_new" : s->feed_forward + (c->gated ? 6 : 0);
    c->shared = true, c->untied = false, c->scale = 1, c->plain_embedding = true;
    c->out_scale = s->tie ? t5_out_scale(c) : 0;
    if (*s->dense && strcmp(s->dense, c->activation) != 0)
        return tn_raise_false(TN_EFORMAT, "'%s': dense_act_fn is '%s', but feed_forward_proj is '%s', which means '%s'",
                              name, s->dense, s->feed_forward, c->activation);
    if (c->relative_distance <= c->relative / 2)
        return tn_raise_false(TN_EFORMAT,
                              "'%s': relative_attention_max_distance is %lld, but must be more than half of "
                              "relative_attention_num_buckets, which is %lld",
                              name, (long long)c->relative_distance, (long long)c->relative);
    return true;
}

/* transformers ties the output layer, whatever the config says, unless the file has weights of its own for it. */
static void look_for_head(stored *s, const tn_safetensors *f)
{
    if (tn_safetensors_find(f, "lm_head.weight") < 0) return;
    if (tn_safetensors_find(f, "shared.weight") < 0) return;
    const tn_scope   scope = tn_no_grad_begin();
    const tn_tensor *head = tn_safetensors_get(f, "lm_head.weight"), *table = tn_safetensors_get(f, "shared.weight");
    const bool       like = head && table && tn_shape_equal(tn_shape_of(head), tn_shape_of(table)) &&
                      tn_dtype_of(head) == tn_dtype_of(table);
    s->c.untied =
        !like || memcmp(tn_data(head), tn_data(table), (size_t)tn_numel(head) * tn_dtype_size(tn_dtype_of(head))) != 0;
    tn_scope_end(scope);
}

static void write_t5(stored *s) { s->feed_forward = t5_feed_forward(&s->c), s->tie = s->c.out_scale > 0; }

static bool is_t5(const tn_seq2seq_config *c)
{
    return c->scale == 1 && (c->out_scale == 0 || c->out_scale == t5_out_scale(c)) && t5_feed_forward(c);
}

/* ---- the families ------------------------------------------------------------------------------------------------ */

enum {
    FAIRSEQ = TN__S2S_PLAIN_EMBEDDING | TN__S2S_DROPOUTS | TN__S2S_DECODER | TN__S2S_UNTIED | TN__S2S_UNSHARED |
              TN__S2S_NO_OUT_BIAS,
    BIASED = FAIRSEQ | TN__S2S_FIXED_OUT_BIAS,
    T5 = TN__S2S_RELATIVE | TN__S2S_NORM_FIRST | TN__S2S_RMS_NORM | TN__S2S_NO_BIAS | TN__S2S_NO_OUT_BIAS |
         TN__S2S_PLAIN_EMBEDDING | TN__S2S_FREE_PADDING | TN__S2S_END_DROPOUT | TN__S2S_HEAD_DIM | TN__S2S_SCALE,
    T5_MAY = TN__S2S_GATED | TN__S2S_OUT_SCALE | TN__S2S_EPS | TN__S2S_UNTIED,
};
const char *const               tn__seq2seq_types[] = {"tenon-seq2seq", "bart", "marian", "m2m_100", "t5", NULL};
static const tn__seq2seq_family families[] = {
    {"bart", "BartForConditionalGeneration", TN__S2S_LEARNED | TN__S2S_NORM_EMBEDDING | TN__S2S_NO_FINAL_NORM, BIASED,
     ROWS(bart_rows), RULES(bart_rules), .look = look_for_bias},
    {"marian", "MarianMTModel", TN__S2S_HALVES | TN__S2S_NO_FINAL_NORM, BIASED | TN__S2S_TWO_SIZES, ROWS(marian_rows),
     RULES(static_positions), .look = look_for_bias},
    {"m2m_100", "M2M100ForConditionalGeneration", TN__S2S_TENSOR2TENSOR | TN__S2S_NORM_FIRST | TN__S2S_NO_OUT_BIAS,
     FAIRSEQ, ROWS(m2m_rows), RULES(static_positions), .look = NULL},
    {"t5", "T5ForConditionalGeneration", T5, T5_MAY, ROWS(t5_rows), RULES(t5_rules), .own_rows = true,
     .own_rules = true, .read = read_t5, .look = look_for_head, .write = write_t5, .fits = is_t5},
};

const tn__seq2seq_family *tn__seq2seq_family_of(const char *type)
{
    for (size_t i = 0; type && i < sizeof families / sizeof *families; i++)
        if (!strcmp(families[i].type, type)) return &families[i];
    return NULL;
}

/* ---- the tables of a family -------------------------------------------------------------------------------------- */

void tn__seq2seq_tables_of(const tn__seq2seq_family *f, const tn_seq2seq_config *c, tn__hf_tables *to)
{
    tn__hf_begin(to);
    tn__hf_add_rows(to, f->rows, f->count);
    if (!f->own_rows) tn__hf_add_rows(to, common, TN_HF_COUNT_(common));
    tn__hf_add_rows(to, rows_of_all, TN_HF_COUNT_(rows_of_all));
    for (int i = 0; !f->own_rules && i < TN_HF_COUNT_(common_rules); i++) {
        tn_rename r = common_rules[i];
        if (!c->shared && !strcmp(r.file, "model.shared")) r.module = NULL;
        tn__hf_add_rules(to, &r, 1);
    }
    for (int i = 0; i < f->renames; i++)
        if (!is_other_name(&f->rules[i], c->gated)) tn__hf_add_rules(to, &f->rules[i], 1);
    const tn_rename tied = TN_RENAME(c->shared ? "source.weight" : "target.weight", "out.weight");
    if (!c->untied) tn__hf_add_rules(to, &tied, 1); /* stored under the embedding's name */
}

int tn__seq2seq_names(const void *m, tn_rename *to, int room)
{
    const tn_seq2seq_config  *c = &((const tn_seq2seq *)m)->config;
    const tn__seq2seq_family *f = tn__seq2seq_family_of(c->type);
    tn__hf_tables             tables;
    if (!f) return 0;
    tn__seq2seq_tables_of(f, c, &tables);
    return tn__hf_names(&tables.files, to, room);
}
