/* gguf_read.c — reads a model from a GGUF file as a config.json and a table of tensors with Hugging Face's names. */
#include "core/files/safetensors.h"
#include "core/tensor/tensor.h"
#include "models/files/hf_config.h"
#include "models/files/model_file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    tn_gguf             *g;
    const char          *path;
    const tn__gguf_arch *arch;
} source;

static bool source_open(source *s, const char *path)
{
    *s = (source){.g = tn_gguf_open(path), .path = path};
    const char *name = s->g ? tn_gguf_string_or(s->g, "general.architecture", "") : NULL;
    if (name && tn_error() == TN_OK) s->arch = tn__gguf_arch_of(path, name, false);
    if (name && !strcmp(name, "llama") && tn_gguf_i64_or(s->g, "llama.expert_count", 0) > 0)
        s->arch = tn__gguf_arch_of(path, "mixtral", true);
    if (s->arch && tn_gguf_i64_or(s->g, "split.count", 1) > 1)
        tn_raise(TN_EUNSUPPORTED, "'%s' is one of several files; join them with llama.cpp's gguf-split --merge", path);
    return s->arch && tn_error() == TN_OK;
}

static const char *key(const source *s, const char *name, char to[128])
{
    snprintf(to, 128, "%s.%s", s->arch->name, name);
    return to;
}
static int64_t number(const source *s, const char *name, int64_t fallback)
{
    char k[128];
    return tn_gguf_i64_or(s->g, key(s, name, k), fallback);
}
static bool has_tensor(const source *s, const char *tensor)
{
    return tn_safetensors_find(tn_gguf_tensors(s->g), tensor) >= 0;
}

/* ---- unsupported options ----------------------------------------------------------------------------------------- */

static bool unsupported(const source *s, const char *name)
{
    char k[128];
    return tn_raise_false(TN_EUNSUPPORTED, "'%s': %s has a value that is not supported", s->path, key(s, name, k));
}

/* True if the value is missing or has no effect. */
static bool is_neutral(const source *s, const char *name, double neutral)
{
    char                k[128];
    const tn_gguf_value v = tn_gguf_find(s->g, key(s, name, k));
    const bool          real = v.type == TN_GGUF_F32 || v.type == TN_GGUF_F64, yes = v.type == TN_GGUF_BOOL;
    if (v.type == TN_GGUF_NONE) return true;
    return (yes    ? (double)tn_gguf_bool_or(s->g, k, true)
            : real ? tn_gguf_double_or(s->g, k, -1)
                   : (double)tn_gguf_i64_or(s->g, k, -1)) == neutral;
}

/* True for GPT-2 and GPT-J, whose members have older names and whose keys have as many heads as queries. */
static bool is_old(const source *s) { return s->arch->members[0].hf[0] == 'n'; }
static bool is_bert(const source *s) { return !strcmp(s->arch->name, TN__GGUF_BERT); }
static bool is_neox(const source *s) { return !strcmp(s->arch->name, "gptneox"); }
static bool is_qwen3_moe(const source *s) { return !strcmp(s->arch->type, "qwen3_moe"); }
static bool has_experts(const source *s) { return is_qwen3_moe(s) || !strcmp(s->arch->type, "mixtral"); }

static bool is_supported(const source *s)
{
    const bool  capped = s->arch->period != 0, neox = is_neox(s);
    const char *experts = has_experts(s) ? "expert_shared_count" : "expert_count";
    const struct {
        const char *name;
        double      neutral;
    } none[] = {{capped ? experts : "attn_logit_softcapping", 0},
                {capped ? experts : "final_logit_softcapping", 0},
                {neox ? experts : "use_parallel_residual", 0},
                {experts, 0},
                {"logit_scale", 0},
                {"embedding_scale", 0},
                {"residual_scale", 0},
                {"attention.scale", 0},
                {"attention.clamp_kqv", 0},
                {"attention.max_alibi_bias", 0},
                {"attention.temperature_scale", 0},
                {"rope.scaling.attn_factor", 1},
                {NULL, 0}};
    char k[128];
    for (int i = 0; none[i].name; i++)
        if (!is_neutral(s, none[i].name, none[i].neutral)) return unsupported(s, none[i].name);
    if (tn_gguf_bool_or(s->g, key(s, "attention.causal", k), !is_bert(s)) == is_bert(s))
        return unsupported(s, "attention.causal");
    const int64_t heads = number(s, "attention.head_count", 0);
    const int64_t head = number(s, "attention.key_length", heads > 0 ? number(s, "embedding_length", 0) / heads : 0);
    if (number(s, "attention.value_length", head) != head) return unsupported(s, "attention.value_length");
    const bool all = !s->arch->part && (!is_old(s) || !strcmp(s->arch->name, "gpt2"));
    if (all && number(s, "rope.dimension_count", head) != head) return unsupported(s, "rope.dimension_count");
    return tn_error() == TN_OK;
}

/* ---- config.json ------------------------------------------------------------------------------------------------- */

static void put_members(const source *s, tn_json_writer *w)
{
    char k[128];
    for (const tn__gguf_member *m = s->arch->members; m->gguf && tn_error() == TN_OK; m++) {
        key(s, m->gguf, k);
        if (tn_gguf_find(s->g, k).type == TN_GGUF_NONE) {
            if (m->needed) tn_raise(TN_EFORMAT, "'%s': %s is missing", s->path, k);
            else if (!strcmp(m->gguf, TN__GGUF_THETA)) tn_json_put_float(w, m->hf, TN__GGUF_THETA_DEFAULT);
        } else if (m->real) tn_json_put_float(w, m->hf, (float)tn_gguf_double_or(s->g, k, 0));
        else tn_json_put_i64(w, m->hf, tn_gguf_i64_or(s->g, k, 0));
    }
}

/* rope_freqs.weight contains LLaMA 3's scaling factor of each angle; only Tenon's files also contain the parameters.
 * In Meta's models low, high and the trained length are 1, 4 and 8192, and the factor is the table's last element; the
 * table is recomputed from them to verify that. */
static bool put_factors(const source *s, tn_json_writer *w, bool linear)
{
    static const char name[] = "rope_freqs.weight";
    if (!has_tensor(s, name)) return true;
    char             k[128];
    const tn_scope   scope = tn_scope_begin();
    const tn_tensor *t = tn_gguf_get_as(s->g, name, TN_F32);
    const int64_t    n = t ? tn_numel(t) : 0;
    const float     *is = t ? tn_data(t) : NULL;
    float           *want = n ? tn_mem_get((size_t)n * sizeof *want) : NULL;
    const double     low = tn_gguf_double_or(s->g, key(s, TN__GGUF_LOW, k), 1),
                 high = tn_gguf_double_or(s->g, key(s, TN__GGUF_HIGH, k), 4),
                 factor = tn_gguf_double_or(s->g, key(s, TN__GGUF_FACTOR, k), n ? (double)is[n - 1] : 1);
    const int64_t trained = tn_gguf_i64_or(s->g, key(s, TN__GGUF_TRAINED, k), 8192);
    bool          ones = true, fits = want != NULL;
    for (int64_t i = 0; i < n; i++) ones = ones && is[i] == 1;
    if (want) {
        const double theta = tn_gguf_double_or(s->g, key(s, TN__GGUF_THETA, k), TN__GGUF_THETA_DEFAULT);
        tn__gguf_factors(theta, factor, low, high, (double)trained, n, want);
        for (int64_t i = 0; i < n; i++) fits = fits && fabsf(is[i] - want[i]) <= 1e-5F * fabsf(want[i]);
    }
    if (want && !ones && linear)
        tn_raise(TN_EUNSUPPORTED, "'%s': angles are scaled twice, by rope.scaling.factor and by rope_freqs.weight",
                 s->path);
    else if (want && !ones && !fits)
        tn_raise(TN_EUNSUPPORTED, "'%s': rope_freqs.weight does not match LLaMA 3's scaling", s->path);
    else if (want && !ones) {
        tn_json_open_object(w, "rope_scaling");
        tn_json_put_string(w, "rope_type", "llama3");
        tn_json_put_float(w, "factor", (float)factor);
        tn_json_put_float(w, "low_freq_factor", (float)low);
        tn_json_put_float(w, "high_freq_factor", (float)high);
        tn_json_put_i64(w, "original_max_position_embeddings", trained);
        tn_json_close(w);
    }
    tn_mem_put(want, (size_t)n * sizeof *want);
    tn_scope_end(scope);
    return tn_error() == TN_OK;
}

/* As in llama.cpp: the default type is linear, a missing factor is read from its older key, and factor 0 means no
 * scaling. */
static void put_scaling(const source *s, tn_json_writer *w)
{
    char         k[128];
    const char  *type = tn_gguf_string_or(s->g, key(s, "rope.scaling.type", k), "linear");
    const double older = tn_gguf_double_or(s->g, key(s, "rope.scale_linear", k), 0),
                 factor = tn_gguf_double_or(s->g, key(s, "rope.scaling.factor", k), older);
    const bool is_linear = !strcmp(type, "linear"), scales = is_linear && factor != 0 && factor != 1;
    if (tn_error() != TN_OK || !put_factors(s, w, scales)) return;
    if (!is_linear && strcmp(type, "none") != 0) unsupported(s, "rope.scaling.type");
    if (!scales || tn_error() != TN_OK) return;
    tn_json_open_object(w, "rope_scaling");
    tn_json_put_string(w, "rope_type", "linear");
    tn_json_put_float(w, "factor", (float)factor);
    tn_json_close(w);
}

/* The model_type in transformers that computes the same. */
static const char *type_of(const source *s)
{
    if (strcmp(s->arch->type, "llama") != 0) return s->arch->type;
    return number(s, "attention.sliding_window", 0) > 0 ? "mistral" : "llama";
}

/* The members that GGUF has in another form, or that follow from the architecture in llama.cpp. */
static void put_derived(const source *s, tn_json_writer *w)
{
    char          k[128];
    const int64_t dim = number(s, "embedding_length", 1), heads = number(s, "attention.head_count", 0),
                  head = number(s, "attention.key_length", heads > 0 ? dim / heads : 1);
    if (s->arch->part && head > 0)
        tn_json_put_double(w, s->arch->part, tn__part_of_head(number(s, "rope.dimension_count", head), head));
    const int64_t types = is_bert(s) ? tn_safetensors_find(tn_gguf_tensors(s->g), "token_types.weight") : -1;
    if (types >= 0) {
        const tn_shape table = tn_safetensors_at(tn_gguf_tensors(s->g), types).shape;
        tn_json_put_i64(w, "type_vocab_size", table.n ? table.d[0] : 0);
    }
    if (is_neox(s))
        tn_json_put_bool(w, "use_parallel_residual", tn_gguf_bool_or(s->g, key(s, "use_parallel_residual", k), true));
    if (is_qwen3_moe(s)) tn_json_put_bool(w, "norm_topk_prob", true); /* llama.cpp's only choice */
    if (!s->arch->period) return;
    tn_json_put_i64(w, "query_pre_attn_scalar",
                    tn__gguf_query_scale(s->arch, number(s, "block_count", 0), dim, heads, head));
    if (s->arch->period == 6 && tn_gguf_find(s->g, key(s, "attention.sliding_window", k)).type == TN_GGUF_NONE)
        tn_raise(TN_EUNSUPPORTED, "'%s': %s is missing; a gemma3 without windows is not supported", s->path, k);
}

static void put_config(const source *s, tn_json_writer *w)
{
    const bool is_llama = s->arch->pairs, is_gpt2 = is_old(s);
    char       k[128];
    tn_json_open_object(w, NULL);
    tn_json_put_string(w, "model_type", type_of(s));
    put_members(s, w);
    if (!is_gpt2 && tn_gguf_find(s->g, key(s, "attention.head_count_kv", k)).type == TN_GGUF_NONE)
        tn_json_put_i64(w, "num_key_value_heads", number(s, "attention.head_count", 1));
    const int64_t i = tn_safetensors_find(tn_gguf_tensors(s->g), "token_embd.weight");
    if (i < 0) tn_raise(TN_EFORMAT, "'%s': the tensor token_embd.weight is missing", s->path);
    else {
        const tn_shape table = tn_safetensors_at(tn_gguf_tensors(s->g), i).shape;
        tn_json_put_i64(w, "vocab_size", table.n ? table.d[0] : 0);
    }
    tn_json_put_bool(w, "tie_word_embeddings", !has_tensor(s, "output.weight"));
    if (!is_gpt2 && !is_bert(s)) tn_json_put_null(w, "pad_token_id"); /* not in the file; Gemma's default is 0 */
    if (!is_gpt2 && strcmp(s->arch->name, "qwen2") != 0)              /* a Qwen2 has biases */
        tn_json_put_bool(w, "attention_bias", has_tensor(s, is_neox(s) ? "blk.0.attn_qkv.bias" : "blk.0.attn_q.bias"));
    if (is_llama) tn_json_put_bool(w, "mlp_bias", has_tensor(s, "blk.0.ffn_up.bias"));
    if (!is_gpt2) put_scaling(s, w);
    put_derived(s, w);
    tn_json_close(w);
}

tn_json *tn__gguf_config(const char *path)
{
    source   s;
    tn_json *doc = NULL;
    if (source_open(&s, path) && is_supported(&s)) {
        tn_json_writer *w = tn_json_writer_new(0);
        size_t          bytes;
        if (w) put_config(&s, w);
        const char *text = tn_error() == TN_OK ? tn_json_text(w, &bytes) : NULL;
        if (text) doc = tn_json_parse(text, bytes);
        tn_json_writer_free(w);
    }
    tn_gguf_close(s.g);
    return doc;
}

/* ---- weights ----------------------------------------------------------------------------------------------------- */

/* Sets how a tensor is converted on reading: transposed, or with the rows of its heads reordered. False: raised. */
static bool set_layout(const source *s, tn__st_entry *e, tn__gguf_layout layout)
{
    const int64_t heads = number(s, "attention.head_count", 0), kv = number(s, "attention.head_count_kv", heads);
    const int64_t n = layout == TN__QUERIES ? heads : kv;
    if (layout == TN__TRANSPOSED && e->shape.n == 2) {
        const int64_t out = e->shape.d[0], in = e->shape.d[1];
        e->shape = TN_SHAPE(in, out), e->stride = TN_SHAPE(1, in), e->strided = true;
    }
    if (layout == TN__PLUS_ONE && (e->element >= TN__ELEMENTS || tn__elements[e->element].dtype != TN_F32))
        return tn_raise_false(TN_EUNSUPPORTED, "'%s': '%s' is not stored as F32, which is not supported", s->path,
                              e->name);
    e->plus_one = layout == TN__PLUS_ONE;
    if ((layout != TN__QUERIES && layout != TN__KEYS) || !s->arch->pairs) return true;
    if (n < 1 || n > INT32_MAX || !e->shape.n || e->shape.d[0] % (2 * n))
        return tn_raise_false(TN_EFORMAT, "'%s': the rows of '%s' do not match %lld heads", s->path, e->name,
                              (long long)n);
    e->heads = (int32_t)n;
    return true;
}

/* The number of tensors in which transformers has this one; 0: raised. */
static int64_t parts_of(const source *s, const tn__st_entry *e, const tn__gguf_name *row)
{
    const int64_t experts = number(s, "expert_count", 0);
    if (!row || row->layout != TN__STACKED) return 1;
    if (e->shape.n == 3 && e->shape.d[0] == experts && experts > 0 && experts <= 1024) return experts;
    tn_raise(TN_EFORMAT,
             "'%s': '%s' has %d dims, the first one is %lld; expected 3 dims, the first one %s.expert_count, "
             "which is %lld",
             s->path, e->name, e->shape.n, (long long)(e->shape.n ? e->shape.d[0] : 0), s->arch->name,
             (long long)experts);
    return 0;
}

/* Adds the tensor, or one for each of its n parts, whose numbers replace the * of the name. */
static bool add_parts(const source *s, tn_safetensors *f, const tn__st_entry *e, const tn__gguf_name *row,
                      const char *name, int64_t n)
{
    const int    head = (int)strcspn(name, "*");
    const bool   stacked = row && row->layout == TN__STACKED;
    const size_t bytes = strlen(name);
    char         one[1300];
    for (int64_t i = 0; i < n; i++) {
        if (stacked) snprintf(one, sizeof one, "%.*s%lld%s", head, name, (long long)i, name + head + 1);
        tn__st_entry *mine = tn__st_add(f, stacked ? one : name, stacked ? strlen(one) : bytes);
        if (!mine) return false;
        mine->shape = stacked ? TN_SHAPE(e->shape.d[1], e->shape.d[2]) : e->shape, mine->element = e->element;
        mine->begin = e->begin + (e->end - e->begin) / n * i, mine->end = mine->begin + (e->end - e->begin) / n;
        if (row && !set_layout(s, mine, row->layout)) return false;
    }
    return true;
}

/* Copies the tensor table `from` with Hugging Face's names; both have the same source. */
static bool rename_all(const source *s, tn_safetensors *f, const tn_safetensors *from)
{
    char    to[1200];
    size_t  names = 0;
    int64_t all = 0;
    for (uint32_t i = 0; i < from->count; i++) {
        const tn__st_entry *e = &from->entries[i];
        const int64_t       n = parts_of(s, e, tn__gguf_rename(s->arch, e->name, true, to, sizeof to));
        if (!n) return false;
        if ((all += n) > TN__ST_TENSORS)
            return tn_raise_false(TN_EUNSUPPORTED,
                                  "'%s' has more than %d tensors, the matrices of experts counted "
                                  "one by one",
                                  s->path, TN__ST_TENSORS);
        names += (size_t)n * (e->name_bytes + 64);
    }
    if (!tn__st_reserve(f, (uint32_t)all, names)) return false;
    for (uint32_t i = 0; i < from->count; i++) {
        const tn__st_entry  *e = &from->entries[i];
        const tn__gguf_name *row = tn__gguf_rename(s->arch, e->name, true, to, sizeof to);
        if (!row && !strcmp(e->name, "rope_freqs.weight")) continue; /* in config.json */
        if (!add_parts(s, f, e, row, row ? to : e->name, parts_of(s, e, row))) return false;
    }
    return tn__st_index_names(f);
}

tn_safetensors *tn__gguf_tensors(const char *path)
{
    source          s;
    tn_safetensors *f = source_open(&s, path) ? tn__st_begin("tn_gguf_open", path) : NULL;
    if (f) {
        tn_safetensors *from = tn_gguf_tensors(s.g);
        f->base = from->base, f->source = from->source, f->source.label = f->label, from->source.fd = -1;
        if (!rename_all(&s, f, from)) tn_safetensors_close(f), f = NULL;
    }
    tn_gguf_close(s.g);
    return f;
}
