/* gguf_names.c — GGUF's names of the members of config.json and of the weights: tables for reading and writing. */
#include "core/base/toolbox.h"
#include "models/files/model_file.h"

#include <stdio.h>
#include <string.h>

static const tn__gguf_member llama_members[] = {
    {"context_length", "max_position_embeddings", false, true},
    {"embedding_length", "hidden_size", false, true},
    {"block_count", "num_hidden_layers", false, true},
    {"feed_forward_length", "intermediate_size", false, true},
    {"attention.head_count", "num_attention_heads", false, true},
    {"attention.head_count_kv", "num_key_value_heads", false, false},
    {"attention.key_length", "head_dim", false, false},
    {"attention.sliding_window", "sliding_window", false, false},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps", true, true},
    {"rope.freq_base", "rope_theta", true, false},
    {NULL, NULL, false, false},
};
static const tn__gguf_name llama_top[] = {
    {"token_embd", "model.embed_tokens", TN__PLAIN},
    {"output_norm", "model.norm", TN__PLAIN},
    {"output", "lm_head", TN__PLAIN},
    {NULL, NULL, TN__PLAIN},
};
#define PARTS                                                                                      \
    {"attn_q", "self_attn.q_proj", TN__QUERIES}, {"attn_k", "self_attn.k_proj", TN__KEYS},         \
        {"attn_v", "self_attn.v_proj", TN__PLAIN}, {"attn_output", "self_attn.o_proj", TN__PLAIN}, \
        {"ffn_gate", "mlp.gate_proj", TN__PLAIN}, {"ffn_up", "mlp.up_proj", TN__PLAIN},            \
    {                                                                                              \
        "ffn_down", "mlp.down_proj", TN__PLAIN                                                     \
    }
#define FIRST_NORMS \
    {"attn_norm", "input_layernorm", TN__PLAIN}, { "ffn_norm", "post_attention_layernorm", TN__PLAIN }
#define QK_NORMS \
    {"attn_q_norm", "self_attn.q_norm", TN__PLAIN}, { "attn_k_norm", "self_attn.k_norm", TN__PLAIN }
static const tn__gguf_name llama_layer[] = {FIRST_NORMS, PARTS, {NULL, NULL, TN__PLAIN}};
static const tn__gguf_name qwen3_layer[] = {FIRST_NORMS, QK_NORMS, PARTS, {NULL, NULL, TN__PLAIN}};
static const tn__gguf_name olmo2_layer[] = {
    QK_NORMS,
    PARTS,
    {"post_attention_norm", "post_attention_layernorm", TN__PLAIN},
    {"post_ffw_norm", "post_feedforward_layernorm", TN__PLAIN},
    {NULL, NULL, TN__PLAIN},
};

static const tn__gguf_member gpt2_members[] = {
    {"context_length", "n_positions", false, true},
    {"embedding_length", "n_embd", false, true},
    {"block_count", "n_layer", false, true},
    {"feed_forward_length", "n_inner", false, true},
    {"attention.head_count", "n_head", false, true},
    {"attention.layer_norm_epsilon", "layer_norm_epsilon", true, true},
    {NULL, NULL, false, false},
};
static const tn__gguf_name gpt2_top[] = {
    {"token_embd", "transformer.wte", TN__PLAIN},
    {"position_embd", "transformer.wpe", TN__PLAIN},
    {"output_norm", "transformer.ln_f", TN__PLAIN},
    {"output", "lm_head", TN__PLAIN},
    {NULL, NULL, TN__PLAIN},
};
static const tn__gguf_name gpt2_layer[] = {
    {"attn_norm", "ln_1", TN__PLAIN},
    {"attn_qkv", "attn.c_attn", TN__TRANSPOSED},
    {"attn_output", "attn.c_proj", TN__TRANSPOSED},
    {"ffn_norm", "ln_2", TN__PLAIN},
    {"ffn_up", "mlp.c_fc", TN__TRANSPOSED},
    {"ffn_down", "mlp.c_proj", TN__TRANSPOSED},
    {NULL, NULL, TN__PLAIN},
};

static const tn__gguf_arch archs[] = {
    {"llama", "model.layers", llama_members, llama_top, llama_layer, true},
    {"qwen2", "model.layers", llama_members, llama_top, llama_layer, false},
    {"qwen3", "model.layers", llama_members, llama_top, qwen3_layer, false},
    {"olmo2", "model.layers", llama_members, llama_top, olmo2_layer, false},
    {"smollm3", "model.layers", llama_members, llama_top, llama_layer, true},
    {"gpt2", "transformer.h", gpt2_members, gpt2_top, gpt2_layer, false},
};

const tn__gguf_arch *tn__gguf_arch_of(const char *path, const char *name)
{
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++)
        if (!strcmp(archs[i].name, name)) return &archs[i];
    return tn_raise_null(TN_EUNSUPPORTED,
                         "'%s': general.architecture is '%.60s'; supported are 'llama', 'qwen2', 'qwen3', 'olmo2', "
                         "'smollm3' and 'gpt2'",
                         path, name);
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

static const tn__gguf_name *find(const tn__gguf_name *rows, const char *name, size_t bytes, bool to_hf)
{
    for (; rows->gguf; rows++) {
        const char *from = to_hf ? rows->gguf : rows->hf;
        if (strlen(from) == bytes && !memcmp(from, name, bytes)) return rows;
    }
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
