/* gguf_model.c — writes a model to a GGUF file: config.json's members and the weights, with GGUF's names. */
#include "core/files/safetensors.h"
#include "models/files/model_file.h"

#include <stdio.h>
#include <string.h>

#define TIED "tie_word_embeddings"

typedef struct {
    const char          *path;
    const tn__gguf_arch *arch;
    const tn_json       *config;
    tn_gguf_writer      *w;
} output;

static int64_t number(const output *t, const char *member) { return tn_json_i64_or(tn_json_get(t->config, member), 0); }
static double  number_of(const output *t, const char *member)
{
    return tn_json_double_or(tn_json_get(t->config, member), 0);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static const char *key(const output *t, const char *name, char to[128])
{
    snprintf(to, 128, "%s.%s", t->arch->name, name);
    return to;
}

static void put_members(const output *t)
{
    char k[128];
    for (const tn__gguf_member *m = t->arch->members; m->gguf && tn_error() == TN_OK; m++) {
        const tn_json *v = tn_json_get(t->config, m->hf);
        if (!v || tn_json_type_of(v) == TN_JSON_NULL) continue;
        if (m->real) tn_gguf_put_float(t->w, key(t, m->gguf, k), tn_json_double(v));
        else tn_gguf_put_u32(t->w, key(t, m->gguf, k), tn_json_i64(v));
    }
}

/* The scaling of rotary positions: linear is a value, LLaMA 3's is a tensor, dynamic is not supported by GGUF. */
static void put_scaling(const output *t, int64_t head)
{
    const tn_json *r = tn_json_get(t->config, "rope_scaling");
    const char    *type = tn_json_string_or(tn_json_get(r, "rope_type"), "default");
    const double   theta = tn_json_double_or(tn_json_get(t->config, "rope_theta"), 10000),
                 factor = tn_json_double_or(tn_json_get(r, "factor"), 1);
    char k[128];
    if (!r || !strcmp(type, "default")) return;
    if (!strcmp(type, "linear")) {
        tn_gguf_put_string(t->w, key(t, "rope.scaling.type", k), type);
        tn_gguf_put_float(t->w, key(t, "rope.scaling.factor", k), factor);
    } else if (!strcmp(type, "llama3") && t->arch->pairs) { /* llama.cpp's qwen2 has no such tensor */
        const double low = tn_json_double(tn_json_get(r, "low_freq_factor")),
                     high = tn_json_double(tn_json_get(r, "high_freq_factor"));
        const int64_t trained = tn_json_i64(tn_json_get(r, "original_max_position_embeddings"));
        tn_tensor    *f = tn_empty(TN_SHAPE(head / 2));
        float        *to = f ? tn_data_mut(f) : NULL;
        if (to) tn__gguf_factors(theta, factor, low, high, (double)trained, head / 2, to);
        tn_safetensors_put(tn_gguf_writer_tensors(t->w), "rope_freqs.weight", f);
        tn_gguf_put_float(t->w, key(t, TN__GGUF_FACTOR, k), factor);
        tn_gguf_put_float(t->w, key(t, TN__GGUF_LOW, k), low);
        tn_gguf_put_float(t->w, key(t, TN__GGUF_HIGH, k), high);
        tn_gguf_put_u32(t->w, key(t, TN__GGUF_TRAINED, k), trained);
    } else
        tn_raise(TN_EUNSUPPORTED, "'%s': GGUF cannot represent rotary positions with scaling '%s' of %s", t->path, type,
                 t->arch->name);
}

/* True if the layers have Gemma's windows; else raises. */
static bool fits_its_layers(const output *t)
{
    int64_t i = 1;
    bool    fits = number(t, "sliding_window") > 0;
    for (const tn_json *x = tn_json_first(tn_json_get(t->config, "layer_types")); x; x = tn_json_next(x), i++)
        fits = fits && !strcmp(tn_json_string(x), "full_attention") == !(i % t->arch->period);
    const int64_t heads = number(t, "num_attention_heads"), head = number(t, "head_dim"),
                  scale = tn__gguf_query_scale(t->arch, number(t, "num_hidden_layers"), number(t, "hidden_size"), heads,
                                               head);
    const bool capped = t->arch->period != 2 ||
                        (number_of(t, "attn_logit_softcapping") > 0 && number_of(t, "final_logit_softcapping") > 0);
    if (!fits)
        return tn_raise_false(TN_EUNSUPPORTED,
                              "'%s': GGUF's %s has a window in all layers but every %d-th, and this model in others; "
                              "save to a directory",
                              t->path, t->arch->name, t->arch->period);
    if (number(t, "query_pre_attn_scalar") != scale)
        return tn_raise_false(TN_EUNSUPPORTED, "'%s': GGUF cannot represent query_pre_attn_scalar %lld, only %lld",
                              t->path, (long long)number(t, "query_pre_attn_scalar"), (long long)scale);
    return capped ||
           tn_raise_false(TN_EUNSUPPORTED, "'%s': GGUF's gemma2 has both caps of logits, and this model not", t->path);
}

/* llama.cpp's other architectures ignore a sliding window: raises if a text can be longer than the window. */
static bool fits_its_window(const output *t)
{
    if (t->arch->period) return fits_its_layers(t);
    const int64_t window = number(t, "sliding_window"), positions = number(t, "max_position_embeddings");
    if (window < 1 || window >= positions) return true;
    return tn_raise_false(
        TN_EUNSUPPORTED,
        "'%s': GGUF cannot represent a sliding window of %lld tokens, less than the %lld positions; save to a "
        "directory, or set max_position_embeddings to the window",
        t->path, (long long)window, (long long)positions);
}

/* llama.cpp's smollm3 has no rotary positions in every fourth layer: raises if the config has other ones. */
static bool fits_its_positions(const output *t)
{
    int64_t i = 1;
    for (const tn_json *x = tn_json_first(tn_json_get(t->config, "no_rope_layers")); x; x = tn_json_next(x), i++)
        if ((tn_json_i64(x) != 0) != (i % 4 != 0))
            return tn_raise_false(TN_EUNSUPPORTED,
                                  "'%s': GGUF cannot represent rotary positions in other layers than all but every "
                                  "fourth; save to a directory",
                                  t->path);
    return tn_error() == TN_OK;
}

/* llama.cpp's gptneox has an output layer of its own, and biases: raises for one without. */
static bool fits_its_weights(const output *t)
{
    const bool neox = !strcmp(t->arch->name, "gptneox"), tied = tn_json_bool_or(tn_json_get(t->config, TIED), false);
    if (!neox || (!tied && tn_json_bool_or(tn_json_get(t->config, "attention_bias"), true))) return true;
    return tn_raise_false(TN_EUNSUPPORTED, "'%s': GGUF's gptneox cannot represent %s; save to a directory", t->path,
                          tied ? TIED : "attention_bias false");
}

/* llama.cpp divides the weights of a token's experts by their sum. */
static bool fits_its_experts(const output *t)
{
    if (tn_json_bool_or(tn_json_get(t->config, "norm_topk_prob"), true)) return true;
    return tn_raise_false(TN_EUNSUPPORTED, "'%s': GGUF cannot represent norm_topk_prob false; save to a directory",
                          t->path);
}

static bool put_values(const output *t, const char *packed)
{
    const char *const *is = t->arch->activation;
    const char        *activation = tn_json_string_or(tn_json_get(t->config, is[0]), "");
    const int64_t      heads = number(t, "num_attention_heads");
    char               k[128];
    if (strcmp(activation, is[1]) != 0 && strcmp(activation, is[2]) != 0)
        return tn_raise_false(TN_EUNSUPPORTED, "'%s': GGUF cannot represent the activation '%s'", t->path, activation);
    if (!fits_its_window(t) || !fits_its_positions(t) || !fits_its_weights(t) || !fits_its_experts(t)) return false;
    tn_gguf_put_string(t->w, "general.architecture", t->arch->name);
    tn_gguf_put_string(t->w, "general.type", "model");
    tn_gguf_put_u32(t->w, "general.file_type", !packed || *packed == 'F' ? 0 : *packed == 'B' ? 32 : 7);
    if (packed && *packed == 'Q') tn_gguf_put_u32(t->w, "general.quantization_version", 2);
    tn_gguf_put_u32(t->w, key(t, "vocab_size", k), number(t, "vocab_size"));
    put_members(t);
    if (!strcmp(t->arch->name, TN__GGUF_BERT)) {
        tn_gguf_put_bool(t->w, key(t, "attention.causal", k), false);
        tn_gguf_put_u32(t->w, key(t, "pooling_type", k), 1); /* mean */
        tn_gguf_put_u32(t->w, "tokenizer.ggml.token_type_count", number(t, "type_vocab_size"));
        return tn_error() == TN_OK;
    }
    if (heads < 1) return tn_error() == TN_OK; /* GPT-2 and GPT-J */
    const int64_t own = number(t, "head_dim"), head = own ? own : number(t, "hidden_size") / heads;
    if (!own) tn_gguf_put_u32(t->w, key(t, "attention.key_length", k), head);
    tn_gguf_put_u32(t->w, key(t, "attention.value_length", k), head);
    const double part = t->arch->part ? number_of(t, t->arch->part) : 1;
    tn_gguf_put_u32(t->w, key(t, "rope.dimension_count", k), (int64_t)((double)head * part));
    if (tn_json_get(t->config, "use_parallel_residual"))
        tn_gguf_put_bool(t->w, key(t, "use_parallel_residual", k),
                         tn_json_bool(tn_json_get(t->config, "use_parallel_residual")));
    put_scaling(t, head);
    return tn_error() == TN_OK;
}

/* ---- weights ----------------------------------------------------------------------------------------------------- */

/* Reorders the rows of each head to 0 n/2 1 n/2+1 …: the inverse of the reordering on reading. */
static tn_tensor *in_pairs(tn_tensor *t, int64_t heads)
{
    const int64_t rows = tn_size(t, 0), cols = tn_ndim(t) > 1 ? tn_size(t, 1) : 1;
    tn_tensor    *y = tn_reshape(t, TN_SHAPE(heads, 2, rows / heads / 2, cols));
    y = tn_contiguous(tn_transpose(y, 1, 2));
    return tn_ndim(t) > 1 ? tn_reshape(y, TN_SHAPE(rows, cols)) : tn_reshape(y, TN_SHAPE(rows));
}

/* Queries, keys and values that alternate by heads, one after the other. */
static tn_tensor *in_turn(tn_tensor *t, int64_t heads)
{
    tn_tensor *y = tn_reshape(t, TN_SHAPE(heads, 3, tn_numel(t) / heads / 3));
    return tn_reshape(tn_contiguous(tn_transpose(y, 0, 1)), tn_shape_of(t));
}

/* The matrices of all experts, one after the other: of this item and those that follow it; sets their number. */
static tn_tensor *stacked(const output *t, const char *name, const struct tn__st_item *item, uint32_t left, uint32_t *n)
{
    enum { MOST = 1024 };
    tn_tensor *all[MOST];
    char       next[256];
    for (*n = 0; *n < left && *n < MOST; ++*n) {
        if (!tn__gguf_rename(t->arch, item[*n].name, false, next, sizeof next) || strcmp(next, name) != 0) break;
        all[*n] = item[*n].tensor;
    }
    return tn_stack_list(0, (int)*n, all);
}

/* Writes the item, or the first n of the `left` ones from it on; sets n. */
static bool put_tensor(const output *t, const struct tn__st_item *item, uint32_t left, uint32_t *n)
{
    char                 name[256];
    const tn__gguf_name *row = tn__gguf_rename(t->arch, item->name, false, name, sizeof name);
    tn_tensor           *x = item->tensor;
    const bool           bert = !strcmp(t->arch->name, TN__GGUF_BERT);
    *n = 1;
    if (!row && bert && (!strncmp(item->name, "cls.", 4) || !strncmp(item->name, "bert.pooler.", 12)))
        return true; /* the encoder alone, as llama.cpp's converter does */
    if (!row) return tn_raise_false(TN_EUNSUPPORTED, "'%s': GGUF has no name for the weight '%s'", t->path, item->name);
    const tn_scope s = tn_scope_begin();
    if (row->layout == TN__STACKED) x = stacked(t, name, item, left, n);
    if (row->layout == TN__TRANSPOSED && tn_ndim(x) == 2) x = tn_transpose(x, 0, 1);
    if (t->arch->pairs && row->layout == TN__QUERIES) x = in_pairs(x, number(t, "num_attention_heads"));
    if (t->arch->pairs && row->layout == TN__KEYS) x = in_pairs(x, number(t, "num_key_value_heads"));
    if (row->layout == TN__PLUS_ONE) x = tn_add_scalar(tn_to(x, TN_F32), 1);
    if (row->layout == TN__ALTERNATING) x = in_turn(x, number(t, "num_attention_heads"));
    if (x) tn_safetensors_put(tn_gguf_writer_tensors(t->w), name, x);
    tn_scope_end(s);
    return tn_error() == TN_OK;
}

static bool put_weights(const output *t, void *m, const tn_hf_files *f)
{
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    uint32_t               n = 0;
    bool ok = w && tn_save_run(m, (tn_save_args){.writer = w, .rename = f->rules, .renames = f->renames}) == TN_OK;
    const struct tn__st_item *items = ok ? tn__st_items(w, &n) : NULL;
    for (uint32_t i = 0, used = 0; ok && i < n; i += used) ok = put_tensor(t, &items[i], n - i, &used);
    tn_safetensors_writer_free(w);
    return ok;
}

tn_status tn__gguf_write(void *m, const char *path, const tn_hf_files *f, const tn_json *config,
                         const tn__gguf_options *gguf)
{
    const char    *type = tn_json_string_or(tn_json_get(config, "model_type"), "");
    const tn_scope no_grad = tn_no_grad_begin();
    output         t = {.path = path, .config = config};
    t.arch = tn__gguf_arch_of(path, !strcmp(type, "mistral") ? "llama" : type, true);
    if (t.arch && (t.w = tn_gguf_writer_new()) && put_values(&t, gguf->packed) &&
        (!gguf->more || gguf->more(t.w, gguf->user) == TN_OK) && put_weights(&t, m, f) &&
        tn_gguf_save(t.w, path, gguf->packed) != TN_OK)
        t.arch = NULL;
    tn_gguf_writer_free(t.w);
    tn_scope_end(no_grad);
    return tn_error();
}
