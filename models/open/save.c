/* save.c — saves a model of any family and its tokenizer to a directory, or a language model or BERT to a GGUF file. */
#include "models/bert/bert_private.h"
#include "models/gpt/gpt_private.h"
#include "models/llama/llama_private.h"
#include "models/open/open_private.h"

#include <string.h>

static tn_status put_tokenizer(tn_gguf_writer *w, void *model)
{
    const tn_model *m = model;
    if (m->family == TN_MODEL_ENCODER) return tn__gguf_put_tokenizer(w, m->tokenizer, m->bert->config.vocab);
    return tn__gguf_put_tokenizer(w, m->tokenizer, tn_lm_info_of(m->lm).vocab) == TN_OK ? tn__chat_put_gguf(w, m)
                                                                                        : tn_error();
}

static tn_status save_gguf(const tn_model *m, const char *path, const char *packed)
{
    tn_model               all = *m;
    const tn__gguf_options options = {packed, put_tokenizer, &all};
    const tn_class        *kind = ((const tn_module *)m->module)->kind;
    if (!tn__model_sizes_fit(m, path)) return tn_error();
    if (m->family == TN_MODEL_ENCODER) return tn__bert_save_gguf(m->bert, path, &options);
    if (kind == &tn__gpt_class) return tn__gpt_save_as(m->module, path, &options);
    if (kind == &tn__llama_class) return tn__llama_save_as(m->module, path, &options);
    return tn_raise(TN_EUNSUPPORTED, "'%s': GGUF does not support a %s; save to a directory", path, kind->name);
}

static tn_status save_module(const tn_model *m, const char *dir)
{
    if (m->family == TN_MODEL_TUNED) return tn_tuned_save(m->tuned, dir);
    if (m->family == TN_MODEL_ENCODER) return tn_bert_save(m->bert, dir);
    if (m->family == TN_MODEL_SEQ2SEQ) return tn_seq2seq_save(m->seq2seq, dir);
    if (m->family == TN_MODEL_DECODER) return tn__chat_save(m, dir) == TN_OK ? tn_lm_save(m->lm, dir) : tn_error();
    const tn_family *f = tn__family_find(m->type);
    if (f && f->save) return f->save(m->module, dir);
    return tn_raise(TN_EUNSUPPORTED, "tn_model_save: no registered family saves the model_type '%s'",
                    m->type ? m->type : "NULL");
}

tn_status tn_model_save_run(const tn_model *m, const char *path, tn_model_save_args a)
{
    static const char *const types[] = {"f32", "bf16", "q8_0", NULL}, *const packed[] = {"F32", "BF16", "Q8_0"};
    if (tn_error() != TN_OK) return tn_error();
    if (!m || !m->family || !m->module || !path)
        return tn_raise(TN_EINVAL, "tn_model_save: the %s is NULL", path ? "model" : "path");
    const size_t n = strlen(path);
    const bool   gguf = n > 5 && !strcmp(path + n - 5, ".gguf");
    int          type = 0;
    while (a.type && types[type] && strcmp(types[type], a.type) != 0) type++;
    if (a.type && !gguf)
        return tn_raise(TN_EINVAL, "tn_model_save: .type needs a path that ends in .gguf, got '%s'", path);
    if (!types[type])
        return tn_raise(TN_EINVAL, "tn_model_save: .type is '%.20s', but must be f32, bf16 or q8_0", a.type);
    if (gguf) return save_gguf(m, path, a.type ? packed[type] : NULL);
    const bool written = save_module(m, path) == TN_OK;
    if (!written || !m->tokenizer || a.no_tokenizer) return tn_error();
    if (m->target && tn_tokenizer_save(m->target, path) != TN_OK) return tn_error();
    return tn_tokenizer_save(m->tokenizer, path);
}
