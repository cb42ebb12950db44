/* llama_config.c — the configs of LLaMA, Mistral and Qwen2: defaults, checks, and config.json. */
#include "models/llama/llama_private.h"

#include <string.h>

static const char        llama[] = "llama", mistral[] = "mistral", qwen2[] = "qwen2";
static const char *const types[] = {llama, mistral, qwen2, NULL};
static const char *const scalings[] = {"default", "linear", "dynamic", "llama3", NULL}; /* as tn_rope_scaling */
static const char *const attentions[] = {"full_attention", "sliding_attention", NULL};

typedef tn__llama_stored stored;
enum { ABSENT = -2, NO_PADDING = -20000000 };

#define NO_FACTOR 1e-300 /* rope_scaling.factor is absent */

#define NESTED(name) .also = "rope_parameters." name
static const tn_hf_row rows[] = {
    {"architectures", TN_HF_NAME, .at = offsetof(stored, architecture)},
    TN_HF("attention_bias", stored, attention_bias, .omitted = true),
    TN_HF("attention_dropout", stored, c.attention_dropout, .high = 1, .below = true),
    TN__IDS("bos_token_id", stored, begin),
    TN__IDS("eos_token_id", stored, end),
    TN_HF("head_dim", stored, c.head_dim, .high = 65536),
    TN_HF("hidden_act", stored, c.activation, .text = "silu"),
    TN_HF("hidden_size", stored, c.dim, .needed = true, .low = 1, .high = 65536),
    TN_HF("initializer_range", stored, c.init, .otherwise = 0.02, .high = 1),
    TN_HF("intermediate_size", stored, c.ff, .needed = true, .low = 1, .high = 1048576),
    TN_HF("max_position_embeddings", stored, c.positions, .otherwise = ABSENT, .low = 1, .high = 1000000000),
    TN_HF("max_window_layers", stored, max_window_layers, .otherwise = ABSENT, .omitted = true, .high = 1024),
    TN_HF("mlp_bias", stored, mlp_bias, .omitted = true),
    {"model_type", TN_HF_TYPE, .at = offsetof(stored, c.type), .choices = types},
    TN_HF("num_attention_heads", stored, c.heads, .needed = true, .low = 1, .high = 1024),
    TN_HF("num_hidden_layers", stored, c.layers, .needed = true, .low = 1, .high = 1024),
    TN_HF("num_key_value_heads", stored, c.kv_heads, .otherwise = ABSENT, .nullable = true, .high = 1024),
    TN_HF("pad_token_id", stored, padding, .otherwise = NO_PADDING, .omitted = true, .low = -1e7, .high = 1e7),
    TN_HF("rms_norm_eps", stored, c.eps, .otherwise = 1e-6, .low = 1e-15, .high = 0.1),
    TN_HF("rope_scaling.factor", stored, c.rope.factor, NESTED("factor"), .otherwise = NO_FACTOR, .omitted = true,
          .low = 1e-3, .high = 1e6),
    TN_HF("rope_scaling.high_freq_factor", stored, high, NESTED("high_freq_factor"), .omitted = true, .high = 1e6),
    TN_HF("rope_scaling.low_freq_factor", stored, low, NESTED("low_freq_factor"), .omitted = true, .high = 1e6),
    TN_HF("rope_scaling.original_max_position_embeddings", stored, trained, .omitted = true, .high = 1000000000,
          .also = "original_max_position_embeddings rope_parameters.original_max_position_embeddings"),
    {"rope_scaling.rope_type", TN_HF_CHOICE, .at = offsetof(stored, scaling), .choices = scalings, .omitted = true,
     .also = "rope_parameters.rope_type rope_parameters.type rope_scaling.type"},
    TN_HF("rope_theta", stored, c.rope.theta, .also = "rope_parameters.rope_theta rope_scaling.rope_theta",
          .otherwise = 10000, .low = 1, .high = 1e12),
    TN_HF("sliding_window", stored, window, .otherwise = ABSENT, .nullable = true, .omitted = true, .low = -1,
          .high = 1000000000),
    TN_HF("tie_word_embeddings", stored, c.tied, .otherwise = false),
    {"torch_dtype", TN_HF_NAME, .text = "float32"},
    TN_HF("use_sliding_window", stored, use_sliding_window, .omitted = true),
    TN_HF("vocab_size", stored, c.vocab, .needed = true, .low = 1, .high = 10000000),

    TN_HF("layer_types", stored, layers, .choices = attentions),
    {"partial_rotary_factor", TN_HF_MUST, .silent = true, .otherwise = 1,
     .also = "rope_parameters.partial_rotary_factor rope_scaling.partial_rotary_factor"},
    {"rope_parameters.full_attention", TN_HF_EMPTY, .silent = true},
    {"rope_parameters.sliding_attention", TN_HF_EMPTY, .silent = true},
    {"pruned_heads", TN_HF_PRUNED, .text = "paths"},
    {"quantization_config", TN_HF_EMPTY, .silent = true},
    {"is_encoder_decoder", TN_HF_MUST, .silent = true},
    {"per_layer_config", TN_HF_EMPTY, .silent = true},
    {"pretraining_tp", TN_HF_ANY, .silent = true}, /* only the order of summation */
    {"use_cache", TN_HF_ANY, .silent = true},
};

static const tn_hf_files table = {rows, TN_HF_COUNT_(rows), NULL, 0};
const tn_hf_files       *tn__llama_table(void) { return &table; }

static bool within(const char *who, const tn_llama_config *c)
{
    const stored s = {
        .c = *c, .padding = NO_PADDING, .max_window_layers = c->full_layers, .window = c->window ? c->window : -1};
    return tn_hf_config_within(who, &table, &s);
}

/* Llama has no window, and one flag for all biases of attention; Mistral no biases; Qwen2 those of q, k and v. */
static bool is_type(const tn_llama_config *c, const char *type)
{
    if (!strcmp(type, llama)) return !c->window && c->qkv_bias == c->out_bias;
    if (!strcmp(type, mistral)) return !c->qkv_bias && !c->ff_bias && !c->full_layers;
    return !strcmp(type, qwen2) && c->qkv_bias && !c->out_bias && !c->ff_bias;
}
static const char *type_of(const tn_llama_config *c)
{
    for (int i = 0; types[i]; i++)
        if ((!c->type || !strcmp(c->type, types[i])) && is_type(c, types[i])) return types[i];
    return NULL;
}

/* ---- in the program ---------------------------------------------------------------------------------------------- */

bool tn__llama_complete(const char *who, tn_llama_config *c)
{
    if (!c->activation) c->activation = "silu";
    if (!c->kv_heads) c->kv_heads = c->heads;
    if (!c->ff && c->dim > 0 && c->dim <= 65536) c->ff = (c->dim * 8 / 3 + 31) / 32 * 32;
    if (!tn__init_and_activation(who, c->init, &c->activation) || !within(who, c)) return false;
    if (!c->head_dim && c->dim % c->heads)
        return tn_raise_false(TN_EINVAL, "%s: .heads is %lld, which does not divide .dim %lld; set .head_dim", who,
                              (long long)c->heads, (long long)c->dim);
    if (!c->head_dim) c->head_dim = c->dim / c->heads;
    if (c->heads % c->kv_heads)
        return tn_raise_false(TN_EINVAL, "%s: .kv_heads is %lld, but must divide .heads, which is %lld", who,
                              (long long)c->kv_heads, (long long)c->heads);
    if (c->out_bias && !c->qkv_bias) return tn_raise_false(TN_EINVAL, "%s: .out_bias needs .qkv_bias", who);
    if (c->padding < -1 || c->padding >= c->vocab)
        return tn_raise_false(TN_EINVAL, "%s: .padding is %lld, but must be from 0 to %lld, or -1 for none", who,
                              (long long)c->padding, (long long)c->vocab - 1);
    if (c->full_layers && !c->window)
        return tn_raise_false(TN_EINVAL, "%s: .full_layers is %lld, but .window is 0", who, (long long)c->full_layers);
    if (!c->rope.dim) c->rope.dim = c->head_dim;
    if (!c->rope.trained) c->rope.trained = c->positions;
    const char *type = type_of(c);
    if (c->type && !type)
        return tn_raise_false(
            TN_EINVAL,
            "%s: .type is '%s', but must be 'llama', 'mistral' or 'qwen2', and support the window and "
            "biases",
            who, c->type);
    c->type = type;
    return true;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Applies the defaults of the model_type's class in transformers, and ignores members that the class does not have. */
static void apply_defaults(stored *s)
{
    tn_llama_config *c = &s->c;
    const bool       is_llama = c->type == llama, is_qwen2 = c->type == qwen2;
    if (c->positions == ABSENT) c->positions = is_llama ? 2048 : is_qwen2 ? 32768 : 131072;
    if (c->kv_heads == ABSENT) c->kv_heads = is_llama ? c->heads : is_qwen2 ? 32 : 8;
    if (!c->kv_heads) c->kv_heads = c->heads;
    c->qkv_bias = is_qwen2 || (is_llama && s->attention_bias);
    c->out_bias = is_llama && s->attention_bias, c->ff_bias = is_llama && s->mlp_bias;
    if (s->window == ABSENT) s->window = 4096;
    c->window = s->window > 0 && (c->type == mistral || (is_qwen2 && s->use_sliding_window)) ? s->window : 0;
    if (s->max_window_layers == ABSENT) s->max_window_layers = 28;
    if (!is_qwen2 || s->layers.count) s->max_window_layers = s->layers.first; /* AutoConfig: of mistral, too */
    if (s->max_window_layers >= c->layers) c->window = 0;
    c->full_layers = c->window ? s->max_window_layers : 0;
    c->padding = s->padding == NO_PADDING ? -1 : s->padding < 0 ? c->vocab + s->padding : s->padding;
}

static bool rope(stored *s, const char *name)
{
    tn_rope_config *r = &s->c.rope;
    while (strcmp(scalings[r->scaling], s->scaling) != 0) r->scaling++;
    r->low = s->low, r->high = s->high, r->trained = s->c.positions;
    if (r->scaling != TN_ROPE_PLAIN && r->factor == NO_FACTOR)
        return tn_raise_false(TN_EFORMAT, "'%s': rope_scaling.factor is missing; '%s' positions need it", name,
                              s->scaling);
    if (r->scaling == TN_ROPE_PLAIN) r->factor = 1;
    if (r->scaling != TN_ROPE_LLAMA3) return true;
    if (s->trained) r->trained = s->trained;
    if (r->low > 0 && r->high > r->low) return true;
    return tn_raise_false(TN_EFORMAT,
                          "'%s': with rope_scaling llama3 low_freq_factor must be above 0 and high_freq_factor above "
                          "that, got %g and %g",
                          name, r->low, r->high);
}

static bool check_consistent(const stored *s, const char *name)
{
    const tn_llama_config *c = &s->c;
    if (!c->head_dim && c->dim % c->heads)
        tn_raise(TN_EFORMAT, "'%s': num_attention_heads %lld does not divide hidden_size %lld", name,
                 (long long)c->heads, (long long)c->dim);
    else if (c->heads % c->kv_heads)
        tn_raise(TN_EFORMAT, "'%s': num_key_value_heads %lld does not divide num_attention_heads %lld", name,
                 (long long)c->kv_heads, (long long)c->heads);
    else if (c->head_dim % 2)
        tn_raise(TN_EFORMAT, "'%s': head_dim is %lld, but must be even for rotary positions", name,
                 (long long)c->head_dim);
    else if (s->padding != NO_PADDING && (c->padding < 0 || c->padding >= c->vocab))
        tn_raise(TN_EFORMAT, "'%s': pad_token_id is %lld, but must be less than vocab_size %lld", name,
                 (long long)s->padding, (long long)c->vocab);
    else if (s->window == 0) tn_raise(TN_EFORMAT, "'%s': sliding_window is 0, but must be null or at least 1", name);
    else if (c->type != llama && s->layers.count && s->layers.count != c->layers)
        tn_raise(TN_EFORMAT, "'%s': layer_types names %lld layers, but num_hidden_layers is %lld", name,
                 (long long)s->layers.count, (long long)c->layers);
    return tn_error() == TN_OK;
}

bool tn__llama_config_read(const tn__hf_source *source, stored *s)
{
    *s = (stored){.c = {TN_LLAMA_DEFAULTS}};
    if (!tn__hf_read(source, &table, s)) return false;
    apply_defaults(s);
    if (!rope(s, source->name) || !check_consistent(s, source->name)) return false;
    if (s->c.type == mistral && s->c.full_layers) s->c.type = NULL; /* MistralConfig cannot represent it */
    return true;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

bool tn__llama_config_write(const tn_llama_config *c, const char *dir, tn__llama_stored *s)
{
    const bool of_llama = c->type == llama, of_qwen2 = c->type == qwen2, three = c->rope.scaling == TN_ROPE_LLAMA3;
    if (!c->type)
        return tn_raise_false(
            TN_EUNSUPPORTED,
            "none of Llama, Mistral and Qwen2 supports this window and these biases, so '%s' cannot be "
            "written; use tn_save",
            dir);
    if (c->rope.dim != c->head_dim || c->rope.interleaved)
        return tn_raise_false(
            TN_EUNSUPPORTED,
            "none of Llama, Mistral and Qwen2 supports .rope.dim below head_dim or .rope.interleaved, so "
            "'%s' cannot be written; use tn_save",
            dir);
    if (c->rope.scaling == TN_ROPE_DYNAMIC && c->rope.trained != c->positions)
        return tn_raise_false(TN_EUNSUPPORTED,
                              "with dynamic rotary positions .rope.trained must equal .positions, which is "
                              "max_position_embeddings in the file");
    *s = (stored){.c = *c, .scaling = scalings[c->rope.scaling], .padding = c->padding < 0 ? NO_PADDING : c->padding};
    s->architecture = of_llama ? "LlamaForCausalLM" : of_qwen2 ? "Qwen2ForCausalLM" : "MistralForCausalLM";
    s->attention_bias = of_llama && c->qkv_bias, s->mlp_bias = c->ff_bias;
    if (c->rope.scaling == TN_ROPE_PLAIN) s->c.rope.factor = NO_FACTOR;
    if (three) s->low = c->rope.low, s->high = c->rope.high, s->trained = c->rope.trained;
    s->window = of_llama ? ABSENT : c->window ? c->window : -1;
    s->use_sliding_window = of_qwen2 && c->window, s->max_window_layers = of_qwen2 ? c->full_layers : ABSENT;
    return true;
}
