/* open_lm.c — detects a path's format, and loads and saves the model and tokenizer. */
#include "core/base/toolbox.h"
#include "models/open/open_private.h"
#include "models/files/hf_config.h"
#include "models/lm/lm_private.h"

#include <string.h>

void tn_decoder_close(tn_decoder *d)
{
    if (!d) return;
    if (d->model) tn_module_free(d->model);
    tn_tokenizer_free(d->tokenizer);
    tn_ids_free(&d->ends), tn_string_free(&d->chat_template);
    *d = (tn_decoder){.model = NULL};
}

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

static tn_tokenizer *own_tokenizer(const char *path, const char *form)
{
    if (!strcmp(form, "gguf")) return gguf_tokenizer(path);
    return !strcmp(form, "huggingface") && tn__has_tokenizer(path) ? tn_tokenizer_load(path) : NULL;
}

/* The stored dtype of all matrices of a file; NULL: they differ. */
static const char *stored_dtype(const char *path)
{
    char            file[1024];
    tn_safetensors *f = tn__weights_open(path, file);
    const char     *type = NULL;
    bool            several = false;
    for (int64_t i = 0; f && i < tn_safetensors_count(f); i++) {
        const tn_safetensors_entry e = tn_safetensors_at(f, i);
        if (e.shape.n < 2) continue;
        several = several || (type && strcmp(type, e.stored) != 0);
        type = e.stored;
    }
    tn_safetensors_close(f);
    return several ? NULL : type;
}

static void check_sizes(const tn_decoder *d, const char *path)
{
    const int64_t pieces = tn_tokenizer_size(d->tokenizer), words = tn_lm_about(d->model).vocab;
    if (pieces > words)
        tn_raise(TN_EFORMAT,
                 "'%s': the model has %lld token ids, but the tokenizer has %lld tokens; use the model's own "
                 "tokenizer",
                 path, (long long)words, (long long)pieces);
}

/* ---- opening and saving ------------------------------------------------------------------------------------------ */

tn_decoder tn_decoder_open_run(const char *path, tn_decoder_config c)
{
    tn_decoder d = {.model = NULL};
    if (tn_error() != TN_OK) return d;
    if (!path || !*path) return tn_raise(TN_EINVAL, "tn_decoder_open: the path is %s", path ? "empty" : "NULL"), d;
    if (!tn__path_exists(path)) return tn_raise(TN_EIO, "tn_decoder_open: '%s': no such file or directory", path), d;
    const char *form = tn__is_file(path) ? tn__file_format(path) : "huggingface";
    if (form) d.model = tn_lm_load(path);
    if (d.model && !c.no_tokenizer) {
        if (c.tokenizer)
            d.tokenizer = tn__is_file(c.tokenizer) ? file_tokenizer(c.tokenizer) : tn_tokenizer_load(c.tokenizer);
        else d.tokenizer = own_tokenizer(path, form);
    }
    if (d.tokenizer) check_sizes(&d, path);
    d.form = form;
    if (d.model) d.stored = stored_dtype(path), tn__chat_read(&d, path);
    if (tn_error() != TN_OK) tn_decoder_close(&d);
    return d;
}

static tn_status put_tokenizer(tn_gguf_writer *w, void *decoder)
{
    const tn_decoder *d = decoder;
    const int64_t     words = tn_lm_about(d->model).vocab;
    return tn__gguf_put_tokenizer(w, d->tokenizer, words) == TN_OK ? tn__chat_put_gguf(w, d) : tn_error();
}

tn_status tn_decoder_save_run(const tn_decoder *d, const char *path, tn_decoder_save_args a)
{
    static const char *const types[] = {"f32", "bf16", "q8_0", NULL}, *const packed[] = {"F32", "BF16", "Q8_0"};
    if (tn_error() != TN_OK) return tn_error();
    if (!d || !d->model || !path)
        return tn_raise(TN_EINVAL, "tn_decoder_save: the %s is NULL", path ? "model" : "path");
    const size_t n = strlen(path);
    const bool   gguf = n > 5 && !strcmp(path + n - 5, ".gguf");
    int          type = 0;
    while (a.type && types[type] && strcmp(types[type], a.type) != 0) type++;
    if (a.type && !gguf)
        return tn_raise(TN_EINVAL, "tn_decoder_save: .type needs a path that ends in .gguf, got '%s'", path);
    if (!types[type])
        return tn_raise(TN_EINVAL, "tn_decoder_save: .type is '%.20s', but must be f32, bf16 or q8_0", a.type);
    tn_decoder             all = *d;
    const tn__gguf_options options = {a.type ? packed[type] : NULL, put_tokenizer, &all};
    if (gguf && d->tokenizer) check_sizes(d, path);
    if (gguf) return tn__lm_save_as(d->model, path, &options);
    const bool written = tn__chat_save(d, path) == TN_OK && tn__lm_save_as(d->model, path, NULL) == TN_OK;
    return written && d->tokenizer && !a.no_tokenizer ? tn_tokenizer_save(d->tokenizer, path) : tn_error();
}
