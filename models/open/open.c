/* open.c — opens a model of any family and its tokenizer: looks up its model_type among the families. */
#include "models/heads/heads_private.h"
#include "models/open/open_private.h"
#include "core/files/io.h"

#include <string.h>

static void *load_lm(const tn_hf_source *s)
{
    const char      *type;
    const tn_family *f = tn__family_of_source(s, TN_MODEL_DECODER, &type);
    return f ? f->load(s) : NULL;
}
tn_lm *tn_lm_load(const char *dir) { return tn_hf_load(dir, load_lm); }

/* ---- tokenizers -------------------------------------------------------------------------------------------------- */

static tn_tokenizer *gguf_tokenizer(const char *path)
{
    tn_gguf      *g = tn_gguf_open(path);
    tn_tokenizer *t = g ? tn__gguf_tokenizer(g, path) : NULL;
    tn_gguf_close(g);
    return t;
}

/* Loads a tokenizer file, whose format is detected by its first bytes. tn_tokenizer_load detects tokenizer.json,
 * SentencePiece's .model and vocab.txt; llama2.c's file starts with the length of its longest token, a little-endian
 * i32 below 2^16, whose last two bytes are 0. */
static tn_tokenizer *file_tokenizer(const char *path)
{
    enum { MOST = 256 << 20 };
    const tn_scope   s = tn_scope_begin();
    tn_tokenizer    *t = NULL;
    const tn_tensor *file = tn_file_read(path, MOST);
    const int64_t    n = file ? tn_numel(file) : 0;
    const char      *at = file ? tn_data(file) : NULL;
    const bool       gguf = n >= 4 && !memcmp(at, "GGUF", 4), llama2c = n >= 12 && !at[2] && !at[3];
    if (file && llama2c) t = tn__llama2c_tokenizer(path, at, (size_t)n);
    tn_scope_end(s);
    if (tn_error() != TN_OK || llama2c) return t;
    t = gguf ? gguf_tokenizer(path) : tn_tokenizer_load(path);
    if (!t && tn_error() == TN_OK) tn_raise(TN_EFORMAT, "'%s' does not contain a tokenizer", path);
    return t;
}

static tn_tokenizer *tokenizer_of(const tn_hf_source *s, const char *form, const char *path, const char *language)
{
    if (path) return tn__is_file(path) ? file_tokenizer(path) : tn_tokenizer_load(path, .language = language);
    if (!strcmp(form, "gguf")) return gguf_tokenizer(s->path);
    if (strcmp(form, "huggingface") != 0 || !tn__has_tokenizer(s->path)) return NULL;
    return tn_tokenizer_load(s->path, .config = s->config, .language = language);
}

/* The target's own tokenizer, and the token of its language, which comes first. */
static void open_target(tn_model *m, const char *dir, const char *language)
{
    char path[1024];
    if (tn__path_in(dir, "target.spm", path, sizeof path) && tn__file_exists(path))
        m->target = tn_tokenizer_load(dir, .target = true);
    const char   *stated = tn_tokenizer_languages(m->tokenizer, true);
    const int32_t id = tn_tokenizer_language(m->tokenizer, language ? language : stated);
    if (id >= 0) m->seq2seq->search.first = id;
    else if (language && tn_error() == TN_OK)
        tn_raise(TN_EINVAL, "'%s': the tokenizer has no language '%.32s'", dir, language);
}

bool tn__model_sizes_fit(const tn_model *m, const char *path)
{
    const int64_t tokens = m->tokenizer ? tn_tokenizer_size(m->tokenizer) : 0;
    const int64_t ids = m->family == TN_MODEL_ENCODER   ? m->bert->config.vocab
                        : m->family == TN_MODEL_TUNED   ? m->tuned->encoder->config.vocab
                        : m->family == TN_MODEL_SEQ2SEQ ? m->seq2seq->config.source_words
                        : m->family == TN_MODEL_DECODER ? tn_lm_info_of(m->lm).vocab
                                                        : INT64_MAX;
    if (tokens > ids)
        tn_raise(TN_EFORMAT,
                 "'%s': the tokenizer has %lld tokens, but the model only %lld token ids; use the model's own "
                 "tokenizer",
                 path, (long long)tokens, (long long)ids);
    return tn_error() == TN_OK;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* A router of experts, by Mixtral's or Qwen3-MoE's name: GGUF stores it as F32 whatever the type of the others. */
static bool is_router(const char *name)
{
    const size_t n = strlen(name), end = sizeof ".gate.weight" - 1;
    return n > end && !strcmp(name + n - end, ".gate.weight");
}

/* The stored dtype of all matrices of a file, except routers; NULL: they differ. */
static const char *stored_dtype(const char *path)
{
    char            file[1024];
    tn_safetensors *f = tn__weights_file(path, file);
    const char     *type = NULL;
    bool            several = false;
    for (int64_t i = 0; f && i < tn_safetensors_count(f); i++) {
        const tn_safetensors_entry e = tn_safetensors_at(f, i);
        if (e.shape.n < 2 || is_router(e.name)) continue;
        several = several || (type && strcmp(type, e.stored) != 0);
        type = e.stored;
    }
    tn_safetensors_close(f);
    return several ? NULL : type;
}

static void open_source(tn_model *m, const tn_hf_source *s, tn_model_config c)
{
    const tn_family *f = tn__family_of_source(s, c.family, &m->type);
    if (!f) return;
    const bool tuned = f->family == TN_MODEL_ENCODER && (c.family == TN_MODEL_TUNED || (!c.family && tn__is_tuned(s)));
    m->family = tuned ? TN_MODEL_TUNED : f->family;
    m->form = tn__is_file(s->path) ? tn__file_format(s->path) : "huggingface";
    m->module = tuned ? tn__tuned_load(s) : f->load(s);
    if (!m->module) return;
    if (!c.no_tokenizer) m->tokenizer = tokenizer_of(s, m->form, c.tokenizer, c.from);
    if (m->tokenizer && m->family == TN_MODEL_SEQ2SEQ && m->seq2seq->config.type && tn_error() == TN_OK)
        open_target(m, c.tokenizer ? c.tokenizer : s->path, c.to);
    if (c.needs_tokenizer && !m->tokenizer && tn_error() == TN_OK)
        tn_raise(TN_EFORMAT, "'%s' contains no tokenizer; name its file or folder, or copy it to the model's folder",
                 s->path);
    if (tn_error() != TN_OK || !tn__model_sizes_fit(m, s->path) || m->family != TN_MODEL_DECODER) return;
    m->type = tn_lm_info_of(m->lm).type;
    m->stored = stored_dtype(s->path);
    tn__chat_read(m, s);
}

tn_model tn_model_open_run(const char *path, tn_model_config c)
{
    tn_hf_source s;
    tn_model     m = {TN_MODEL_NONE, .tokenizer = NULL};
    if (tn_error() != TN_OK) return m;
    if (!path || !*path) return tn_raise(TN_EINVAL, "tn_model_open: the path is %s", path ? "empty" : "NULL"), m;
    if (!tn__path_exists(path)) return tn_raise(TN_EIO, "tn_model_open: '%s': no such file or directory", path), m;
    if (tn__hf_open(&s, path)) s.packed = c.packed, s.pack = c.pack, open_source(&m, &s, c);
    tn__hf_close(&s);
    if (tn_error() != TN_OK) tn_model_close(&m);
    return m;
}

void tn_model_close(tn_model *m)
{
    if (!m) return;
    if (m->module) tn_module_free(m->module);
    tn_tokenizer_free(m->tokenizer), tn_tokenizer_free(m->target);
    tn_ids_free(&m->ends), tn_string_free(&m->chat_template);
    *m = (tn_model){TN_MODEL_NONE, .tokenizer = NULL};
}
