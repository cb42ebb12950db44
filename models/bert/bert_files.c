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

static const char *const heads[] = {"classifier",       "pre_classifier", "qa_outputs",
                                    "sequence_summary", "logits_proj",    NULL};

/* A lower bound of the encoder's elements. */
static int64_t elements(const tn_bert_config *c)
{
    const int64_t embedding = c->embedding ? c->embedding : c->dim, blocks = c->groups ? c->groups : c->layers;
    const int64_t rows = c->vocab + (c->kind == TN_DEBERTA ? 0 : c->positions) + c->types;
    if (c->kind == TN_XLNET) return c->vocab * c->dim + blocks * c->dim * (5 * c->dim + 2 * c->ff);
    if (c->kind == TN_MODERNBERT) return c->vocab * c->dim + blocks * c->dim * (4 * c->dim + 3 * c->ff);
    return rows * embedding + blocks * (4 * c->dim * (c->dim + 1) + 2 * c->dim * c->ff);
}

static void keep_ids(tn_bert *m, const tn__bert_stored *s)
{
    m->begin = s->begin, m->end = s->end, m->decoder_begin = s->decoder_begin, m->cls = s->cls, m->sep = s->sep;
}

void *tn__bert_load(const tn_hf_source *s)
{
    tn__bert_stored read;
    tn_hf_weights   w;
    tn__hf_tables   room;
    tn_bert        *m = NULL;
    if (!tn__bert_config_read(s, &read)) return NULL;
    tn_bert_config c = read.c;
    if (tn_hf_weights_open(&w, s, elements(&c), c.kind == TN_XLNET ? 0 : c.dim / c.heads * (4 * c.dim + 3))) {
        const tn__bert_format *format = tn__bert_format_of(&c);
        c.no_pooler = !has_weight(w.file, format, format->pooler);
        c.no_words = !has_weight(w.file, format, format->words);
        c.no_next = c.no_pooler || !has_weight(w.file, format, format->next);
        c.replaced = has_weight(w.file, format, format->replaced);
        if (c.kind == TN_DEBERTA) { /* whose config.json does not mention the head's form and the mask decoder */
            c.no_words = c.no_words && tn_safetensors_find(w.file, "cls.predictions.transform.dense.weight") < 0;
            c.mask_decoder =
                !c.input_positions && has_weight(w.file, format, "deberta.embeddings.position_embeddings.weight");
        }
        m = tn_bert_create(c);
        if (m) tn__list_weights(w.file, heads, m->left, sizeof m->left), keep_ids(m, &read);
    }
    return tn_hf_weights_load(&w, m, tn__bert_files(tn__bert_format_of(&c), &room));
}
tn_bert *tn_bert_load(const char *dir) { return tn_hf_load(dir, tn__bert_load); }

tn_status tn__bert_save_extra(tn_bert *m, const char *dir, const tn__hf_extra *more)
{
    char          name[80];
    tn__hf_tables room;
    if (!tn_ready(m)) return tn_error();
    tn__bert_stored s = tn__bert_to_store(&m->config);
    s.begin = m->begin, s.end = m->end, s.decoder_begin = m->decoder_begin, s.cls = m->cls, s.sep = m->sep;
    if (more) { /* "BertModel" to "BertForTokenClassification" */
        const char *end = strstr(s.architecture, "Model"), *head = strstr(s.architecture, "For");
        const int   n = (int)((end ? end : head ? head : s.architecture + strlen(s.architecture)) - s.architecture);
        snprintf(name, sizeof name, "%.*s%s", n, s.architecture, more->architecture);
        s.architecture = name;
    }
    return tn__hf_write_extra(m, dir, tn__bert_files(tn__bert_format_of(&m->config), &room), &s, more);
}
tn_status tn__bert_save_gguf(tn_bert *m, const char *path, const tn__gguf_options *gguf)
{
    if (!tn_ready(m)) return tn_error();
    tn__hf_tables         room;
    const tn__bert_stored s = tn__bert_to_store(&m->config);
    if (strcmp(s.type, "bert") != 0)
        return tn_raise(TN_EUNSUPPORTED, "'%s': of encoders GGUF has BERT only, not %s; save to a directory", path,
                        s.type);
    return tn__hf_write_as(m, path, tn__bert_files(tn__bert_format_of(&m->config), &room), &s, gguf);
}
tn_status tn_bert_save(tn_bert *m, const char *dir)
{
    return tn_ready(m) ? tn__bert_save_extra(m, dir, NULL) : tn_error();
}
