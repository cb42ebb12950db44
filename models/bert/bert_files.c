/* bert_files.c — loads and saves BERT and its family in Hugging Face's directory format. */
#include "models/bert/bert_private.h"

#include <string.h>

/* True if the file has the tensor, with or without the prefix. */
static bool has_weight(const tn_safetensors *f, const tn__bert_format *format, const char *name)
{
    const size_t k = strlen(format->prefix);
    if (!name) return false;
    return tn_safetensors_find(f, name) >= 0 ||
           (!strncmp(name, format->prefix, k) && tn_safetensors_find(f, name + k) >= 0);
}

static const char *const heads[] = {"classifier", "pre_classifier", "qa_outputs", "sequence_summary", NULL};

/* A lower bound of the encoder's elements. */
static int64_t elements(const tn_bert_config *c)
{
    const int64_t embedding = c->embedding ? c->embedding : c->dim, blocks = c->groups ? c->groups : c->layers;
    return (c->vocab + c->positions + c->types) * embedding + blocks * (4 * c->dim * (c->dim + 1) + 2 * c->dim * c->ff);
}

tn_bert *tn_bert_load(const char *dir)
{
    char           path[1024];
    tn_bert_config c = tn_bert_config_load(dir);
    if (tn_error() != TN_OK) return NULL;
    tn__pruned pruned;
    if (!tn__pruned_open(dir, &pruned)) return NULL;
    tn_safetensors *f = tn__weights_open(dir, path);
    tn_bert        *m = NULL;
    if (f && tn__has_elements_pruned(f, path, elements(&c), &pruned, c.dim / c.heads * (4 * c.dim + 3))) {
        const tn__bert_format *format = tn__bert_format_of(&c);
        c.no_pooler = !has_weight(f, format, format->pooler);
        c.no_words = !has_weight(f, format, format->words);
        c.no_next = c.no_pooler || !has_weight(f, format, format->next);
        c.replaced = has_weight(f, format, format->replaced);
        const tn_scope blank = tn__blank_begin();
        m = tn_bert_create(c);
        tn_scope_end(blank);
        tn__pruned_apply(&pruned, m);
    }
    tn__pruned_close(&pruned);
    if (m) tn__list_weights(f, heads, m->left, sizeof m->left);
    return tn__model_read(m, f, path, &tn__bert_format_of(&c)->files);
}

tn_status tn__bert_save_extra(tn_bert *m, const char *dir, const tn__hf_extra *more)
{
    char name[80];
    if (!tn_ready(m)) return tn_error();
    tn__bert_stored s = tn__bert_to_store(&m->config);
    if (more) { /* "BertModel" to "BertForTokenClassification" */
        const char *end = strstr(s.architecture, "Model"), *head = strstr(s.architecture, "For");
        const int   n = (int)((end ? end : head ? head : s.architecture + strlen(s.architecture)) - s.architecture);
        snprintf(name, sizeof name, "%.*s%s", n, s.architecture, more->architecture);
        s.architecture = name;
    }
    return tn__hf_write_extra(m, dir, &tn__bert_format_of(&m->config)->files, &s, more);
}
tn_status tn_bert_save(tn_bert *m, const char *dir)
{
    return tn_ready(m) ? tn__bert_save_extra(m, dir, NULL) : tn_error();
}
