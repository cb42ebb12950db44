/* gguf_names.c — GGUF's names of the members of config.json and of the weights: tables for reading and writing. */
#include "core/base/toolbox.h"
#include "models/files/model_file.h"

#include <stdio.h>
#include <string.h>

/* ---- members of config.json -------------------------------------------------------------------------------------- */

/* clang-format off */
#define SIZES(positions, dim, layers, heads)                                                               \
    {"context_length", positions, false, true}, {"embedding_length", dim, false, true},                    \
    {"block_count", layers, false, true}, {"attention.head_count", heads, false, true}
#define USUAL_SIZES SIZES("max_position_embeddings", "hidden_size", "num_hidden_layers", "num_attention_heads")
#define OLD_SIZES SIZES("n_positions", "n_embd", "n_layer", "n_head")
#define INNER(name) {"feed_forward_length", name, false, true}
#define LAYER_NORM(name) {"attention.layer_norm_epsilon", name, true, true}
#define LLAMA_SIZES                                                                                         \
    USUAL_SIZES, {"attention.head_count_kv", "num_key_value_heads", false, false},                          \
    {"attention.key_length", "head_dim", false, false},                                                     \
    {"attention.sliding_window", "sliding_window", false, false},                                           \
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps", true, true}, {TN__GGUF_THETA, "rope_theta", true, false}
#define ROUTER(experts) \
    {"expert_count", experts, false, true}, {"expert_used_count", "num_experts_per_tok", false, true}
#define NO_MORE {NULL, NULL, false, false}
static const tn__gguf_member llama_members[] = {
    LLAMA_SIZES,
    INNER("intermediate_size"),
    {"attn_logit_softcapping", "attn_logit_softcapping", true, false}, /* Gemma 2 */
    {"final_logit_softcapping", "final_logit_softcapping", true, false},
    {"rope.freq_base_swa", "rope_local_base_freq", true, false}, /* Gemma 3 */
    NO_MORE,
};
static const tn__gguf_member mixtral_members[] = {
    LLAMA_SIZES, INNER("intermediate_size"), ROUTER("num_local_experts"), NO_MORE,
};
static const tn__gguf_member qwen3_moe_members[] = {
    LLAMA_SIZES, {"expert_feed_forward_length", "moe_intermediate_size", false, true}, ROUTER("num_experts"), NO_MORE,
};
static const tn__gguf_member neox_members[] = {
    USUAL_SIZES, INNER("intermediate_size"), LAYER_NORM("layer_norm_eps"),
    {TN__GGUF_THETA, "rotary_emb_base", true, false}, NO_MORE,
};
static const tn__gguf_member gptj_members[] = {
    OLD_SIZES, INNER("n_inner"), LAYER_NORM("layer_norm_epsilon"),
    {"rope.dimension_count", "rotary_dim", false, true}, NO_MORE,
};
static const tn__gguf_member bert_members[] = {
    USUAL_SIZES, INNER("intermediate_size"), LAYER_NORM("layer_norm_eps"), NO_MORE,
};
static const tn__gguf_member gpt2_members[] = {
    OLD_SIZES, INNER("n_inner"), LAYER_NORM("layer_norm_epsilon"), NO_MORE,
};

/* ---- names of weights -------------------------------------------------------------------------------------------- */

#define PLAIN(gguf, hf) {gguf, hf, TN__PLAIN}
#define END {NULL, NULL, TN__PLAIN}
#define TOP(words, norm, layout, out) PLAIN("token_embd", words), {"output_norm", norm, layout}, PLAIN("output", out)
#define HEADS(q, k, v, out) \
    {"attn_q", q, TN__QUERIES}, {"attn_k", k, TN__KEYS}, PLAIN("attn_v", v), PLAIN("attn_output", out)
#define LLAMA_HEADS HEADS("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj")
#define INNER_PAIR(up, down) PLAIN("ffn_up", up), PLAIN("ffn_down", down)
#define GATED PLAIN("ffn_gate", "mlp.gate_proj"), INNER_PAIR("mlp.up_proj", "mlp.down_proj")
#define EXPERTS(router, gate, up, down)                                                                         \
    PLAIN("ffn_gate_inp", router), {"ffn_gate_exps", gate, TN__STACKED}, {"ffn_up_exps", up, TN__STACKED}, \
    {"ffn_down_exps", down, TN__STACKED}
#define FIRST_NORMS PLAIN("attn_norm", "input_layernorm"), PLAIN("ffn_norm", "post_attention_layernorm")
#define QK_NORMS(layout) {"attn_q_norm", "self_attn.q_norm", layout}, {"attn_k_norm", "self_attn.k_norm", layout}
#define GEMMA_NORMS                                                                                                \
    {"attn_norm", "input_layernorm", TN__PLUS_ONE}, {"ffn_norm", "pre_feedforward_layernorm", TN__PLUS_ONE},       \
    {"post_attention_norm", "post_attention_layernorm", TN__PLUS_ONE},                                             \
    {"post_ffw_norm", "post_feedforward_layernorm", TN__PLUS_ONE}

static const tn__gguf_name llama_top[] = {TOP("model.embed_tokens", "model.norm", TN__PLAIN, "lm_head"), END};
static const tn__gguf_name llama_layer[] = {FIRST_NORMS, LLAMA_HEADS, GATED, END};
static const tn__gguf_name qwen3_layer[] = {FIRST_NORMS, QK_NORMS(TN__PLAIN), LLAMA_HEADS, GATED, END};
#define SPARSE "block_sparse_moe."
static const tn__gguf_name mixtral_layer[] = {
    FIRST_NORMS, LLAMA_HEADS,
    EXPERTS(SPARSE "gate", SPARSE "experts.*.w1", SPARSE "experts.*.w3", SPARSE "experts.*.w2"), END,
};
static const tn__gguf_name qwen3_moe_layer[] = {
    FIRST_NORMS, QK_NORMS(TN__PLAIN), LLAMA_HEADS,
    EXPERTS("mlp.gate", "mlp.experts.*.gate_proj", "mlp.experts.*.up_proj", "mlp.experts.*.down_proj"), END,
};
static const tn__gguf_name olmo2_layer[] = {
    QK_NORMS(TN__PLAIN), LLAMA_HEADS, GATED, PLAIN("post_attention_norm", "post_attention_layernorm"),
    PLAIN("post_ffw_norm", "post_feedforward_layernorm"), END,
};
static const tn__gguf_name gemma_top[] = {TOP("model.embed_tokens", "model.norm", TN__PLUS_ONE, "lm_head"), END};
static const tn__gguf_name gemma2_layer[] = {GEMMA_NORMS, LLAMA_HEADS, GATED, END};
static const tn__gguf_name gemma3_layer[] = {GEMMA_NORMS, QK_NORMS(TN__PLUS_ONE), LLAMA_HEADS, GATED, END};
static const tn__gguf_name phi3_layer[] = {
    FIRST_NORMS, PLAIN("attn_qkv", "self_attn.qkv_proj"), PLAIN("attn_output", "self_attn.o_proj"),
    INNER_PAIR("mlp.gate_up_proj", "mlp.down_proj"), END,
};
static const tn__gguf_name neox_top[] = {
    TOP("gpt_neox.embed_in", "gpt_neox.final_layer_norm", TN__PLAIN, "embed_out"), END,
};
static const tn__gguf_name neox_layer[] = {
    FIRST_NORMS,
    PLAIN("attn_qkv", "attention.in_turn"),                     /* read: queries, keys, values */
    {"attn_qkv", "attention.query_key_value", TN__ALTERNATING}, /* written */
    PLAIN("attn_output", "attention.dense"), INNER_PAIR("mlp.dense_h_to_4h", "mlp.dense_4h_to_h"), END,
};
static const tn__gguf_name gptj_top[] = {TOP("transformer.wte", "transformer.ln_f", TN__PLAIN, "lm_head"), END};
static const tn__gguf_name gptj_layer[] = {
    PLAIN("attn_norm", "ln_1"), HEADS("attn.q_proj", "attn.k_proj", "attn.v_proj", "attn.out_proj"),
    INNER_PAIR("mlp.fc_in", "mlp.fc_out"), END,
};
static const tn__gguf_name bert_top[] = {
    PLAIN("token_embd", "bert.embeddings.word_embeddings"),
    PLAIN("position_embd", "bert.embeddings.position_embeddings"),
    PLAIN("token_types", "bert.embeddings.token_type_embeddings"),
    PLAIN("token_embd_norm", "bert.embeddings.LayerNorm"),
    END,
};
static const tn__gguf_name bert_layer[] = {
    HEADS("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"),
    PLAIN("attn_output_norm", "attention.output.LayerNorm"), INNER_PAIR("intermediate.dense", "output.dense"),
    PLAIN("layer_output_norm", "output.LayerNorm"), END,
};
static const tn__gguf_name gpt2_top[] = {
    TOP("transformer.wte", "transformer.ln_f", TN__PLAIN, "lm_head"), PLAIN("position_embd", "transformer.wpe"), END,
};
static const tn__gguf_name gpt2_layer[] = {
    PLAIN("attn_norm", "ln_1"), {"attn_qkv", "attn.c_attn", TN__TRANSPOSED},
    {"attn_output", "attn.c_proj", TN__TRANSPOSED}, PLAIN("ffn_norm", "ln_2"),
    {"ffn_up", "mlp.c_fc", TN__TRANSPOSED}, {"ffn_down", "mlp.c_proj", TN__TRANSPOSED}, END,
};

/* ---- architectures ----------------------------------------------------------------------------------------------- */

#define LLAMA(name, type, top, layer, pairs) name, type, "model.layers", llama_members, top, layer, pairs
#define SILU {"hidden_act", "silu", "swish"}
#define TANH {"hidden_activation", "gelu_pytorch_tanh", "gelu_new"}
#define GELU {"hidden_act", "gelu", "gelu_python"}
#define GPT {"activation_function", "gelu_new", "gelu_pytorch_tanh"}
static const tn__gguf_arch archs[] = {
    {LLAMA("llama", "llama", llama_top, llama_layer, true), SILU, NULL, 0},
    {LLAMA("qwen2", "qwen2", llama_top, llama_layer, false), SILU, NULL, 0},
    {LLAMA("qwen3", "qwen3", llama_top, qwen3_layer, false), SILU, NULL, 0},
    {"llama", "mixtral", "model.layers", mixtral_members, llama_top, mixtral_layer, true, SILU, NULL, 0},
    {"qwen3moe", "qwen3_moe", "model.layers", qwen3_moe_members, llama_top, qwen3_moe_layer, false, SILU, NULL, 0},
    {LLAMA("olmo2", "olmo2", llama_top, olmo2_layer, false), SILU, NULL, 0},
    {LLAMA("smollm3", "smollm3", llama_top, llama_layer, true), SILU, NULL, 0},
    {LLAMA("phi3", "phi3", llama_top, phi3_layer, false), SILU, "partial_rotary_factor", 0},
    {LLAMA("gemma2", "gemma2", gemma_top, gemma2_layer, false), TANH, NULL, 2},
    {LLAMA("gemma3", "gemma3_text", gemma_top, gemma3_layer, false), TANH, NULL, 6},
    {"gptneox", "gpt_neox", "gpt_neox.layers", neox_members, neox_top, neox_layer, false, GELU, "rotary_pct", 0},
    {"gptj", "gptj", "transformer.h", gptj_members, gptj_top, gptj_layer, false, GPT, NULL, 0},
    {TN__GGUF_BERT, "bert", "bert.encoder.layer", bert_members, bert_top, bert_layer, false, GELU, NULL, 0},
    {"gpt2", "gpt2", "transformer.h", gpt2_members, gpt2_top, gpt2_layer, false, GPT, NULL, 0},
};
/* clang-format on */

const tn__gguf_arch *tn__gguf_arch_of(const char *path, const char *name, bool type)
{
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++)
        if (!strcmp(type ? archs[i].type : archs[i].name, name)) return &archs[i];
    return tn_raise_null(TN_EUNSUPPORTED,
                         "'%s': %s is '%.60s'; supported are 'llama', %s'qwen2', 'qwen3', 'qwen3%smoe', 'olmo2', "
                         "'smollm3', 'phi3', 'gemma2', 'gemma3%s', 'gpt%sneox', 'gptj', 'bert' and 'gpt2'",
                         path, type ? "model_type" : "general.architecture", name, type ? "'mixtral', " : "",
                         type ? "_" : "", type ? "_text" : "", type ? "_" : "");
}

/* For a name "PREFIX.12.REST" returns REST and sets the number; NULL: another name. */
static const char *layer_of(const char *name, const char *prefix, long *number)
{
    const size_t n = strlen(prefix);
    if (strncmp(name, prefix, n) != 0 || name[n] != '.') return NULL;
    const char *p = name + n + 1;
    for (*number = 0; *p >= '0' && *p <= '9' && *number < 100000; p++) *number = *number * 10 + (*p - '0');
    return p > name + n + 1 && *p == '.' ? p + 1 : NULL;
}

/* True for the pattern's name; its *, if it has one, is any number. */
static bool fits(const char *pattern, const char *name, size_t bytes)
{
    const size_t head = strcspn(pattern, "*"), tail = pattern[head] ? strlen(pattern + head + 1) : 0;
    if (!pattern[head]) return head == bytes && !memcmp(pattern, name, bytes);
    return bytes > head + tail && !memcmp(pattern, name, head) &&
           !memcmp(pattern + head + 1, name + bytes - tail, tail) &&
           strspn(name + head, "0123456789") == bytes - head - tail;
}

static const tn__gguf_name *find(const tn__gguf_name *rows, const char *name, size_t bytes, bool to_hf)
{
    for (; rows->gguf; rows++)
        if (fits(to_hf ? rows->gguf : rows->hf, name, bytes)) return rows;
    return NULL;
}

const tn__gguf_name *tn__gguf_rename(const tn__gguf_arch *a, const char *name, bool to_hf, char *to, size_t size)
{
    long                 number = -1;
    const char          *rest = layer_of(name, to_hf ? "blk" : a->layers, &number);
    const char          *end = strrchr(name, '.');
    const bool           in_layer = rest != NULL;
    const tn__gguf_name *row = NULL;
    if (!rest) rest = name;
    if (end && end > rest && (!strcmp(end, ".weight") || !strcmp(end, ".bias")))
        row = find(in_layer ? a->layer : a->top, rest, (size_t)(end - rest), to_hf);
    if (!row) return NULL;
    if (in_layer)
        snprintf(to, size, "%s.%ld.%s%s", to_hf ? a->layers : "blk", number, to_hf ? row->hf : row->gguf, end);
    else snprintf(to, size, "%s%s", to_hf ? row->hf : row->gguf, end);
    return row;
}

void tn__gguf_factors(double theta, double factor, double low, double high, double trained, int64_t n, float *to)
{
    for (int64_t i = 0; i < n; i++) {
        const double turn =
            6.283185307179586477 * tn__libm_pow(theta, (double)i / (double)n); /* wavelength in positions */
        const double smooth = (trained / turn - low) / (high - low);
        to[i] = (float)(smooth >= 1 ? 1 : smooth <= 0 ? factor : 1 / ((1 - smooth) / factor + smooth));
    }
}
