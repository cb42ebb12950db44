/* families.c — LLaMA's relatives: a table for each model_type of transformers, with the options that its models have,
 * the members of config.json and the names of weights in which it differs from LLaMA. */
#include "models/llama/llama_private.h"

#include <string.h>

typedef tn__llama_stored stored;
enum { ABSENT = TN__LLAMA_ABSENT, NO_PADDING = TN__LLAMA_NO_PADDING };

static const char *const attentions[] = {"full_attention", "sliding_attention", NULL};
const char *const        tn__llama_scalings[] = {"default", "linear", "dynamic", "llama3", NULL};

#define LAYER "model.layers.*."
#define ROWS(r) .rows = (r), .count = TN_HF_COUNT_(r)
#define RULES(r) .rules = (r), .renames = TN_HF_COUNT_(r)
#define NESTED(name) .also = "rope_parameters." name " rope_parameters.full_attention." name
#define THETA(value)                                                                        \
    TN_HF("rope_theta", stored, c.rope.theta, .otherwise = (value), .low = 1, .high = 1e12, \
          .also = "rope_parameters.rope_theta rope_parameters.full_attention.rope_theta rope_scaling.rope_theta")
#define EPS(value) TN_HF("rms_norm_eps", stored, c.eps, .otherwise = (value), .low = 1e-15, .high = 0.1)
/* null is no padding, and so is a missing member only if that is the class's default. */
#define PADDING(id, ...)                                                                                        \
    TN_HF("pad_token_id", stored, padding, .otherwise = (id), .nullable = true, .low = NO_PADDING, .high = 1e7, \
          __VA_ARGS__)
#define POSITIONS(n) \
    TN_HF("max_position_embeddings", stored, c.positions, .otherwise = (n), .low = 1, .high = 1000000000)

/* ---- members that most families have, with LLaMA's defaults ------------------------------------------------------ */

static const tn_hf_row rows_of_all[] = {
    {"architectures", TN_HF_NAME, .at = offsetof(stored, architecture)},
    TN__IDS("bos_token_id", stored, begin),
    TN__IDS("decoder_start_token_id", stored, decoder_begin),
    TN__IDS("eos_token_id", stored, end),
    TN_HF("initializer_range", stored, c.init, .otherwise = 0.02, .high = 1),
    {"is_encoder_decoder", TN_HF_MUST, .silent = true},
    {"model_type", TN_HF_TYPE, .at = offsetof(stored, c.type), .choices = tn__llama_types},
    {"pruned_heads", TN_HF_PRUNED, .text = "paths"},
    PADDING(NO_PADDING, .omitted = true),
    TN_HF("tie_word_embeddings", stored, c.tied, .otherwise = false),
    {"torch_dtype", TN_HF_NAME, .text = "float32"},
    TN_HF("vocab_size", stored, c.vocab, .needed = true, .low = 1, .high = 10000000),
    TN__UNUSED("use_cache"),
};
static const tn_hf_row common[] = {
    TN_HF("attention_dropout", stored, c.attention_dropout, .high = 1, .below = true),
    TN_HF("head_dim", stored, c.head_dim, .high = 65536),
    TN_HF("hidden_act", stored, c.activation, .text = "silu"),
    TN_HF("hidden_size", stored, c.dim, .needed = true, .low = 1, .high = 65536),
    TN_HF("intermediate_size", stored, c.ff, .needed = true, .low = 1, .high = 1048576),
    POSITIONS(2048),
    TN_HF("num_attention_heads", stored, c.heads, .needed = true, .low = 1, .high = 1024),
    TN_HF("num_hidden_layers", stored, c.layers, .needed = true, .low = 1, .high = 1024),
    TN_HF("num_key_value_heads", stored, c.kv_heads, .otherwise = ABSENT, .nullable = true, .high = 1024),
    EPS(1e-6),
    TN_HF("rope_scaling.factor", stored, c.rope.factor, NESTED("factor"), .otherwise = TN__LLAMA_NO_FACTOR,
          .omitted = true, .low = 1e-3, .high = 1e6),
    TN_HF("rope_scaling.high_freq_factor", stored, high, NESTED("high_freq_factor"), .omitted = true, .high = 1e6),
    TN_HF("rope_scaling.low_freq_factor", stored, low, NESTED("low_freq_factor"), .omitted = true, .high = 1e6),
    TN_HF("rope_scaling.original_max_position_embeddings", stored, trained, .omitted = true, .high = 1000000000,
          .also = "original_max_position_embeddings rope_parameters.original_max_position_embeddings "
                  "rope_parameters.full_attention.original_max_position_embeddings"),
    {"rope_scaling.rope_type", TN_HF_CHOICE, .at = offsetof(stored, scaling), .choices = tn__llama_scalings,
     .omitted = true,
     .also = "rope_parameters.rope_type rope_parameters.type rope_parameters.full_attention.rope_type "
             "rope_scaling.type"},
    THETA(10000),

    {"partial_rotary_factor", TN_HF_MUST, .silent = true, .otherwise = 1,
     .also = "rope_parameters.partial_rotary_factor rope_scaling.partial_rotary_factor"},
    {"rope_parameters.full_attention", TN_HF_EMPTY, .silent = true},
    {"rope_parameters.sliding_attention", TN_HF_EMPTY, .silent = true},
    {"rope_scaling.full_attention rope_scaling.sliding_attention", TN_HF_EMPTY, .silent = true},
    TN__UNUSED("pretraining_tp"), /* only the order of summation */
};

static const tn_rename common_rules[] = {
    TN_RENAME("lm_head", "embed_tokens", .load_only = true), /* if tied; else this rule is skipped */
    TN_RENAME("layers", "model.layers", .load_only = true),  /* of files without the head */
    TN_RENAME("norm", "model.norm", .load_only = true),
    TN_RENAME("model.embed_tokens", "embed_tokens"),
    TN_RENAME(LAYER "self_attn.rotary_emb.inv_freq", NULL), /* of old files: recomputed */
    TN_RENAME(LAYER "self_attn.o_proj", LAYER "self_attn.out_proj"),
    TN_RENAME(LAYER "mlp.gate_proj", LAYER "gate"),
    TN_RENAME(LAYER "mlp.up_proj", LAYER "linear1"),
    TN_RENAME(LAYER "mlp.down_proj", LAYER "linear2"),
    TN_RENAME(LAYER "input_layernorm", LAYER "norm1"),
    TN_RENAME(LAYER "post_attention_layernorm", LAYER "norm2"),
};

/* ---- LLaMA, Mistral, Qwen2 and Qwen3 ----------------------------------------------------------------------------- */

static const tn_hf_row llama_rows[] = {
    TN_HF("attention_bias", stored, attention_bias, .omitted = true),
    TN_HF("mlp_bias", stored, mlp_bias, .omitted = true),
};

#define WINDOW_ROW(value) \
    TN_HF("sliding_window", stored, window, .otherwise = (value), .nullable = true, .low = -1, .high = 1000000000)
#define LAYERS_ROW TN_HF("layer_types", stored, layers, .choices = attentions, .text = "gl", .omitted = true)
#define KV_HEADS(n) TN_HF("num_key_value_heads", stored, c.kv_heads, .otherwise = (n), .nullable = true, .high = 1024)

static const tn_hf_row mistral_rows[] = {
    POSITIONS(131072), KV_HEADS(8), WINDOW_ROW(4096), LAYERS_ROW, /* AutoConfig passes it to MistralConfig, too */
};

#define QWEN_ROWS(n)                                                                                           \
    POSITIONS(n), KV_HEADS(32), WINDOW_ROW(4096), LAYERS_ROW,                                                  \
        TN_HF("max_window_layers", stored, max_window_layers, .otherwise = 28, .omitted = true, .high = 1024), \
        TN_HF("use_sliding_window", stored, use_sliding_window, .omitted = true)
static const tn_hf_row qwen2_rows[] = {QWEN_ROWS(32768)};
static const tn_hf_row qwen3_rows[] = {
    QWEN_ROWS(32768),
    TN_HF("attention_bias", stored, attention_bias, .omitted = true),
    TN_HF("head_dim", stored, c.head_dim, .otherwise = 128, .high = 65536),
};

/* ---- Gemma 2 and 3 ----------------------------------------------------------------------------------------------- */

#define GEMMA_ROWS                                                                                                   \
    TN_HF("attention_bias", stored, attention_bias, .omitted = true), KV_HEADS(4), WINDOW_ROW(4096), LAYERS_ROW,     \
        TN_HF("head_dim", stored, c.head_dim, .otherwise = 256, .high = 65536), TN__UNUSED("hidden_act"),            \
        TN_HF("hidden_activation", stored, c.activation, .text = "gelu_pytorch_tanh"), PADDING(0, .omitted = false), \
        TN_HF("query_pre_attn_scalar", stored, query_scale, .otherwise = 256, .low = 1, .high = 1000000),            \
        TN_HF("tie_word_embeddings", stored, c.tied, .otherwise = true),                                             \
    {                                                                                                                \
        "use_bidirectional_attention", TN_HF_MUST, .silent = true                                                    \
    }
#define CAP(key, member, value) TN_HF(key, stored, member, .otherwise = (value), .nullable = true, .high = 1e9)

static const tn_hf_row gemma2_rows[] = {
    GEMMA_ROWS,
    POSITIONS(8192),
    CAP("attn_logit_softcapping", c.scores.cap, 50),
    CAP("final_logit_softcapping", c.logit_cap, 30),
    TN_HF("sliding_window_pattern", stored, period, .otherwise = 2, .low = 2, .high = 2, .silent = true),
};
#define FLAT "expected in rope_parameters.full_attention and rope_parameters.sliding_attention"
static const tn_hf_row gemma3_rows[] = {
    GEMMA_ROWS,
    POSITIONS(131072),
    CAP("final_logit_softcapping", c.logit_cap, 0),
    {"attn_logit_softcapping", TN_HF_EMPTY, .silent = true},
    THETA(1e6),
    TN_HF("rope_local_base_freq", stored, c.local_theta, .otherwise = 10000, .low = 1, .high = 1e12,
          .also = "rope_parameters.sliding_attention.rope_theta"),
    {"rope_parameters.sliding_attention.rope_type", TN_HF_MUST, .text = "default", .silent = true},
    TN__UNUSED("rope_parameters.full_attention rope_parameters.sliding_attention"),
    {"rope_parameters.rope_theta rope_parameters.rope_type rope_parameters.type rope_parameters.factor", TN_HF_EMPTY,
     .silent = true, .says = FLAT},
    TN_HF("sliding_window_pattern", stored, period, .otherwise = 6, .low = 1, .high = 1024, .silent = true,
          .also = "_sliding_window_pattern"),
};
static const tn_rename gemma_rules[] = {
    TN_RENAME(LAYER "post_attention_layernorm", LAYER "result_norm1"),
    TN_RENAME(LAYER "pre_feedforward_layernorm", LAYER "norm2"),
    TN_RENAME(LAYER "post_feedforward_layernorm", LAYER "result_norm2"),
};

/* ---- OLMo 2, SmolLM3, Phi-3 -------------------------------------------------------------------------------------- */

static const tn_hf_row olmo2_rows[] = {
    TN_HF("attention_bias", stored, attention_bias, .omitted = true),
    EPS(1e-5),
    PADDING(1, .omitted = false),
};
static const tn_rename olmo2_rules[] = {
    TN_RENAME(LAYER "post_attention_layernorm", LAYER "result_norm1"),
    TN_RENAME(LAYER "post_feedforward_layernorm", LAYER "result_norm2"),
};

static const tn_hf_row smollm3_rows[] = {
    PADDING(128004, .omitted = false),
    TN_HF("attention_bias", stored, attention_bias, .omitted = true),
    TN_HF("mlp_bias", stored, mlp_bias, .omitted = true),
    POSITIONS(32768),
    KV_HEADS(4),
    WINDOW_ROW(-1),
    LAYERS_ROW,
    TN_HF("use_sliding_window", stored, use_sliding_window, .omitted = true),
    TN_HF("no_rope_layers", stored, rotated, .text = "ng"),
    TN_HF("no_rope_layer_interval", stored, interval, .otherwise = 4, .high = 1024, .silent = true),
    THETA(2e6),
    TN_HF("tie_word_embeddings", stored, c.tied, .otherwise = true),
};

#define PARTIAL_ROW(value)                                                                        \
    TN_HF("partial_rotary_factor", stored, partial, .otherwise = (value), .low = 1e-3, .high = 1, \
          .also = "rope_parameters.partial_rotary_factor rope_scaling.partial_rotary_factor")
static const tn_hf_row phi3_rows[] = {
    POSITIONS(4096), PARTIAL_ROW(1), PADDING(32000, .omitted = false),
    WINDOW_ROW(-1),  EPS(1e-5),      {"embd_pdrop resid_pdrop", TN_HF_MUST, .silent = true},
};
/* A matrix of the file that joins the queries, keys and values; one that joins two. More options follow. */
#define JOINED_QKV(file, ...)                                                            \
    TN_RENAME(file, LAYER "self_attn.q_proj", .piece = 0, .pieces = 3, __VA_ARGS__),     \
        TN_RENAME(file, LAYER "self_attn.k_proj", .piece = 1, .pieces = 3, __VA_ARGS__), \
        TN_RENAME(file, LAYER "self_attn.v_proj", .piece = 2, .pieces = 3, __VA_ARGS__)
#define JOINED_PAIR(file, first, second) \
    TN_RENAME(file, first, .piece = 0, .pieces = 2), TN_RENAME(file, second, .piece = 1, .pieces = 2)
static const tn_rename phi3_rules[] = {
    JOINED_QKV(LAYER "self_attn.qkv_proj", .groups = 0),
    JOINED_PAIR(LAYER "mlp.gate_up_proj", LAYER "gate", LAYER "linear1"),
};

/* ---- Mixtral and Qwen3-MoE --------------------------------------------------------------------------------------- */

#define ROUTER(k)                                                                                        \
    TN_HF("num_experts_per_tok", stored, c.experts_per_token, .otherwise = (k), .low = 1, .high = 1024), \
        TN_HF("output_router_logits", stored, c.balanced, .otherwise = false),                           \
        TN_HF("router_aux_loss_coef", stored, c.balance, .otherwise = 0.001, .high = 1e6)
static const tn_hf_row mixtral_rows[] = {
    ROUTER(2),
    POSITIONS(131072),
    KV_HEADS(8),
    TN_HF("num_local_experts", stored, c.experts, .also = "num_experts", .otherwise = 8, .low = 1, .high = 1024),
    WINDOW_ROW(-1),
    EPS(1e-5),
    THETA(1e6),
    TN_HF("router_jitter_noise", stored, c.router_jitter, .high = 1),
};
static const tn_hf_row qwen3_moe_rows[] = {
    ROUTER(8),
    POSITIONS(32768),
    KV_HEADS(4),
    TN_HF("num_experts", stored, c.experts, .also = "num_local_experts", .otherwise = 128, .low = 1, .high = 1024),
    WINDOW_ROW(4096),
    TN_HF("attention_bias", stored, attention_bias, .omitted = true),
    {"decoder_sparse_step", TN_HF_MUST, .otherwise = 1, .silent = true},
    TN__UNUSED("intermediate_size"), /* of layers without experts */
    {"mlp_only_layers", TN_HF_EMPTY, .silent = true},
    TN_HF("moe_intermediate_size", stored, c.ff, .otherwise = 768, .low = 1, .high = 1048576),
    TN_HF("norm_topk_prob", stored, shares, .otherwise = false),
    TN_HF("use_sliding_window", stored, use_sliding_window, .otherwise = false),
};
#define MOE_RULES(router, gate, up, down)                                                           \
    TN_RENAME(LAYER router, LAYER "experts.router"), TN_RENAME(LAYER gate, LAYER "experts.gate.*"), \
        TN_RENAME(LAYER up, LAYER "experts.linear1.*"), TN_RENAME(LAYER down, LAYER "experts.linear2.*")
#define SPARSE "block_sparse_moe."
static const tn_rename mixtral_rules[] = {
    MOE_RULES(SPARSE "gate", SPARSE "experts.*.w1", SPARSE "experts.*.w3", SPARSE "experts.*.w2"),
};
static const tn_rename qwen3_moe_rules[] = {
    MOE_RULES("mlp.gate", "mlp.experts.*.gate_proj", "mlp.experts.*.up_proj", "mlp.experts.*.down_proj"),
};

/* ---- GPT-NeoX and GPT-J ------------------------------------------------------------------------------------------ */

static const tn_hf_row neox_rows[] = {
    TN_HF("attention_bias", stored, attention_bias, .otherwise = true),
    TN_HF("hidden_act", stored, c.activation, .text = "gelu"),
    TN_HF("hidden_dropout", stored, c.dropout, .high = 1, .below = true),
    TN_HF("layer_norm_eps", stored, c.eps, .otherwise = 1e-5, .low = 1e-15, .high = 0.1),
    TN_HF("rotary_emb_base", stored, c.rope.theta, .otherwise = 10000, .low = 1, .high = 1e12,
          .also = "rope_scaling.rope_theta rope_parameters.rope_theta"),
    TN_HF("rotary_pct", stored, partial, .otherwise = 0.25, .low = 1e-3, .high = 1,
          .also = "rope_scaling.partial_rotary_factor rope_parameters.partial_rotary_factor"),
    TN_HF("head_dim", stored, head, .high = 65536, .silent = true), /* of the rotary positions only */
    TN_HF("use_parallel_residual", stored, parallel, .otherwise = true),
    TN__UNUSED("classifier_dropout is_decoder num_key_value_heads partial_rotary_factor rms_norm_eps rope_theta"),
};
#define NEOX "gpt_neox.layers.*."
static const tn_rename neox_rules[] = {
    TN_RENAME("embed_out", "embed_tokens", .load_only = true),
    TN_RENAME("embed_out", "lm_head"),
    TN_RENAME("gpt_neox.embed_in", "embed_tokens"),
    TN_RENAME("gpt_neox.final_layer_norm", "model.norm"),
    TN_RENAME(NEOX "attention.bias", NULL), /* of old files: constants */
    TN_RENAME(NEOX "attention.masked_bias", NULL),
    TN_RENAME(NEOX "attention.rotary_emb.inv_freq", NULL),
    JOINED_QKV(NEOX "attention.query_key_value", .groups = -1),
    JOINED_QKV(NEOX "attention.in_turn", .load_only = true), /* of GGUF files */
    TN_RENAME(NEOX "attention.dense", LAYER "self_attn.out_proj"),
    TN_RENAME(NEOX "mlp.dense_h_to_4h", LAYER "linear1"),
    TN_RENAME(NEOX "mlp.dense_4h_to_h", LAYER "linear2"),
    TN_RENAME(NEOX "input_layernorm", LAYER "norm1"),
    TN_RENAME(NEOX "post_attention_layernorm", LAYER "norm2"),
};

static const tn_hf_row gptj_rows[] = {
    TN_HF("activation_function", stored, c.activation, .text = "gelu_new"),
    TN_HF("attn_pdrop", stored, c.attention_dropout, .high = 1, .below = true),
    TN_HF("embd_pdrop", stored, c.dropout, .high = 1, .below = true),
    TN_HF("layer_norm_epsilon", stored, c.eps, .otherwise = 1e-5, .low = 1e-15, .high = 0.1),
    TN_HF("n_embd", stored, c.dim, .needed = true, .low = 1, .high = 65536),
    TN_HF("n_head", stored, c.heads, .needed = true, .low = 1, .high = 1024),
    TN_HF("n_inner", stored, c.ff, .nullable = true, .high = 1048576),
    TN_HF("n_layer", stored, c.layers, .needed = true, .low = 1, .high = 1024),
    TN_HF("n_positions", stored, c.positions, .otherwise = 2048, .low = 1, .high = 1000000000),
    TN_HF("resid_pdrop", stored, residual_dropout, .high = 1, .below = true),
    TN_HF("rotary_dim", stored, rotary_dim, .otherwise = 64, .low = 2, .high = 65536),
};
#define GPTJ "transformer.h.*."
static const tn_rename gptj_rules[] = {
    TN_RENAME("lm_head.weight", "embed_tokens.weight", .load_only = true),
    TN_RENAME("transformer.wte", "embed_tokens"),
    TN_RENAME("transformer.ln_f", "model.norm"),
    TN_RENAME(GPTJ "attn.bias", NULL), /* of old files: constants */
    TN_RENAME(GPTJ "attn.masked_bias", NULL),
    TN_RENAME(GPTJ "attn.q_proj", LAYER "self_attn.q_proj"),
    TN_RENAME(GPTJ "attn.k_proj", LAYER "self_attn.k_proj"),
    TN_RENAME(GPTJ "attn.v_proj", LAYER "self_attn.v_proj"),
    TN_RENAME(GPTJ "attn.out_proj", LAYER "self_attn.out_proj"),
    TN_RENAME(GPTJ "mlp.fc_in", LAYER "linear1"),
    TN_RENAME(GPTJ "mlp.fc_out", LAYER "linear2"),
    TN_RENAME(GPTJ "ln_1", LAYER "norm1"),
};

/* ---- the families ------------------------------------------------------------------------------------------------ */

enum {
    ANY = TN__HEAD_DIM | TN__GROUPED | TN__ROPE_SCALING,
    WINDOWS = ANY | TN__WINDOW | TN__PATTERN,
    GEMMA = TN__SANDWICH | TN__NORM_ADD_ONE | TN__EMBEDDING_SCALE,
    GEMMA_MAY = WINDOWS | TN__ATTENTION_BIAS | TN__SCALE | TN__CAPS,
};
const char *const tn__llama_types[] = {"llama",   "mistral", "qwen2",    "qwen3", "gemma2",  "gemma3_text", "olmo2",
                                       "smollm3", "phi3",    "gpt_neox", "gptj",  "mixtral", "qwen3_moe",   NULL};
const tn__llama_family tn__llama_families[] = {
    {"llama", "LlamaForCausalLM", 0, ANY | TN__ATTENTION_BIAS | TN__FF_BIAS, ROWS(llama_rows)},
    {"mistral", "MistralForCausalLM", 0, ANY | TN__WINDOW, ROWS(mistral_rows)},
    {"qwen2", "Qwen2ForCausalLM", TN__QKV_BIAS, WINDOWS, ROWS(qwen2_rows)},
    {"qwen3", "Qwen3ForCausalLM", TN__QK_NORM_HEAD, WINDOWS | TN__ATTENTION_BIAS, ROWS(qwen3_rows)},
    {"gemma2", "Gemma2ForCausalLM", GEMMA, GEMMA_MAY, ROWS(gemma2_rows), RULES(gemma_rules)},
    {"gemma3_text", "Gemma3ForCausalLM", GEMMA | TN__QK_NORM_HEAD, GEMMA_MAY | TN__LOCAL_THETA, ROWS(gemma3_rows),
     RULES(gemma_rules)},
    {"olmo2", "Olmo2ForCausalLM", TN__QK_NORM_ALL | TN__NORM_RESULT, ANY | TN__ATTENTION_BIAS, ROWS(olmo2_rows),
     RULES(olmo2_rules)},
    {"smollm3", "SmolLM3ForCausalLM", 0, WINDOWS | TN__UNROTATED | TN__ATTENTION_BIAS | TN__FF_BIAS,
     ROWS(smollm3_rows)},
    {"phi3", "Phi3ForCausalLM", 0, ANY | TN__WINDOW | TN__PARTIAL, ROWS(phi3_rows), RULES(phi3_rules)},
    {"gpt_neox", "GPTNeoXForCausalLM", TN__LAYER_NORM | TN__PLAIN_FF | TN__FF_BIAS,
     TN__PARALLEL | TN__PARTIAL | TN__ATTENTION_BIAS | TN__ROPE_SCALING, ROWS(neox_rows), RULES(neox_rules),
     .own_rules = true, .no_padding = true},
    {"gptj", "GPTJForCausalLM",
     TN__LAYER_NORM | TN__PLAIN_FF | TN__FF_BIAS | TN__HEAD_BIAS | TN__PARALLEL_ONE | TN__INTERLEAVED, TN__PARTIAL,
     ROWS(gptj_rows), RULES(gptj_rules), .own_rows = true, .own_rules = true, .no_padding = true},
    {"mixtral", "MixtralForCausalLM", TN__EXPERTS, ANY | TN__WINDOW | TN__ROUTER_JITTER, ROWS(mixtral_rows),
     RULES(mixtral_rules)},
    {"qwen3_moe", "Qwen3MoeForCausalLM", TN__EXPERTS | TN__QK_NORM_HEAD,
     ANY | TN__WINDOW | TN__ATTENTION_BIAS | TN__EXPERT_PROBABILITIES, ROWS(qwen3_moe_rows), RULES(qwen3_moe_rules)},
    {NULL, NULL, 0, 0, NULL, NULL, 0, 0, false, false, false},
};

const tn__llama_family *tn__llama_family_of(const char *type)
{
    for (const tn__llama_family *f = tn__llama_families; type && f->type; f++)
        if (!strcmp(f->type, type)) return f;
    return NULL;
}

/* ---- the tables of a family -------------------------------------------------------------------------------------- */

static bool is_replaced(const tn__llama_family *f, const char *file)
{
    for (int i = 0; i < f->renames; i++)
        if (!strcmp(f->rules[i].file, file)) return true;
    return false;
}

/* True if the rule reads the output layer as the embedding, which is right for tied ones only. */
static bool ties(const tn_rename *r) { return r->load_only && r->module && !strncmp(r->module, "embed_tokens", 12); }

static void add_rule(tn__hf_tables *to, tn_rename rule, const tn_llama_config *c)
{
    if (ties(&rule) && !c->tied) return;
    if (rule.groups < 0) rule.groups = c->heads;
    tn__hf_add_rules(to, &rule, 1);
}

void tn__llama_files_of(const tn__llama_family *f, const tn_llama_config *c, tn__hf_tables *to)
{
    _Static_assert(TN_HF_COUNT_(rows_of_all) + TN_HF_COUNT_(common) + TN_HF_COUNT_(gemma3_rows) <= TN__HF_ROWS,
                   "room for the rows");
    tn__hf_begin(to);
    tn__hf_add_rows(to, f->rows, f->count);
    if (!f->own_rows) tn__hf_add_rows(to, common, TN_HF_COUNT_(common));
    tn__hf_add_rows(to, rows_of_all, TN_HF_COUNT_(rows_of_all));
    for (int i = 0; !f->own_rules && i < TN_HF_COUNT_(common_rules); i++)
        if (!is_replaced(f, common_rules[i].file)) add_rule(to, common_rules[i], c);
    for (int i = 0; i < f->renames; i++) add_rule(to, f->rules[i], c);
}
