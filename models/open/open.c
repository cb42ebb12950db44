/* open.c — opens a model of any family: looks up its model_type in the lists of the families. */
#include "models/bert/bert_private.h"
#include "models/files/hf_config.h"
#include "models/heads/heads_private.h"
#include "models/lm/lm_private.h"
#include "models/vit/vit_private.h"

#include <string.h>

static const char *const translators[] = {"tenon-seq2seq", NULL};

static bool is_listed(const char *const *types, const char *type)
{
    int i = 0;
    while (type && types[i] && strcmp(types[i], type) != 0) i++;
    return type && types[i];
}

/* The model_type of a directory, as one of the strings in the lists; NULL: raised. */
static const char *type_of(const char *dir)
{
    enum { MOST = 32 };
    const char *const *const lists[] = {tn__bert_types, tn__lm_types, tn__vit_types, translators};
    const char              *all[MOST + 1] = {NULL}, *type = NULL;
    int                      n = 0;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (int k = 0; lists[i][k] && n < MOST; k++) all[n++] = lists[i][k];
    const tn_hf_row   row = {"model_type", TN_HF_TYPE, .choices = all, .needed = true};
    const tn_hf_files files = {&row, 1, NULL, 0};
    return tn_hf_config_read(dir, &files, &type) ? type : NULL;
}

static void check_sizes(const tn_model *m, const char *dir, int64_t words)
{
    const int64_t pieces = m->tokenizer ? tn_tokenizer_size(m->tokenizer) : 0;
    if (pieces > words && tn_error() == TN_OK)
        tn_raise(TN_EFORMAT,
                 "'%s': the tokenizer has %lld tokens, but the model only %lld token ids; the files are from "
                 "different models",
                 dir, (long long)pieces, (long long)words);
}

static void open_decoder(tn_model *m, const char *path)
{
    tn_decoder d = tn_decoder_open(path);
    m->family = TN_MODEL_DECODER, m->module = d.model, m->tokenizer = d.tokenizer;
    if (d.model) m->type = tn_lm_about(d.model).type;
    d.model = NULL, d.tokenizer = NULL; /* m owns them */
    tn_decoder_close(&d);
}

/* Opens an encoder, with or without a task head, or a translation model. */
static void open_other(tn_model *m, const char *dir)
{
    int64_t words = 0;
    if (!is_listed(tn__bert_types, m->type)) {
        m->family = TN_MODEL_SEQ2SEQ, m->seq2seq = tn_seq2seq_load(dir);
        if (m->seq2seq) words = m->seq2seq->config.source_words;
    } else if (tn__is_tuned_directory(dir)) {
        m->family = TN_MODEL_TUNED, m->tuned = tn_tuned_load(dir);
        if (m->tuned) words = m->tuned->encoder->config.vocab;
    } else {
        m->family = TN_MODEL_ENCODER, m->bert = tn_bert_load(dir);
        if (m->bert) words = m->bert->config.vocab;
    }
    if (m->module && tn__has_tokenizer(dir)) m->tokenizer = tn_tokenizer_load(dir);
    if (m->module) check_sizes(m, dir, words);
}

tn_model tn_model_open(const char *dir)
{
    tn_model m = {TN_MODEL_NONE, .tokenizer = NULL};
    if (tn_error() != TN_OK) return m;
    if (!dir || !*dir) return tn_raise(TN_EINVAL, "tn_model_open: the directory is %s", dir ? "empty" : "NULL"), m;
    m.type = tn__is_file(dir) ? NULL : type_of(dir);
    if (tn_error() == TN_OK && (!m.type || is_listed(tn__lm_types, m.type))) open_decoder(&m, dir);
    else if (tn_error() == TN_OK && is_listed(tn__vit_types, m.type))
        m.family = TN_MODEL_IMAGES, m.vit = tn_vit_load(dir);
    else if (tn_error() == TN_OK) open_other(&m, dir);
    if (tn_error() != TN_OK) tn_model_close(&m);
    return m;
}

void tn_model_close(tn_model *m)
{
    if (!m) return;
    if (m->module) tn_module_free(m->module);
    tn_tokenizer_free(m->tokenizer);
    *m = (tn_model){TN_MODEL_NONE, .tokenizer = NULL};
}
