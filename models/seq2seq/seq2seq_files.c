/* seq2seq_files.c — loads and saves a seq2seq model: config.json and model.safetensors. */
#include "models/seq2seq/seq2seq_private.h"

/* A lower bound of the model's elements: embeddings and the largest matrices. */
static int64_t elements(const tn_seq2seq_config *c)
{
    const int64_t tables = c->source_words + (c->shared ? 0 : c->target_words) + (c->untied ? c->target_words : 0);
    const int64_t layer =
        c->kind == TN_SEQ2SEQ_TRANSFORMER ? 4 * c->dim * c->dim + 2 * c->dim * c->ff : 6 * c->dim * c->dim;
    return tables * c->dim + (c->layers + c->decoder_layers) * layer;
}

tn_seq2seq *tn_seq2seq_load(const char *dir)
{
    tn__seq2seq_stored s = {.kind = NULL};
    tn_seq2seq_config  c;
    char               path[1024];
    tn_seq2seq        *m = NULL;
    if (!tn_hf_config_read(dir, tn__seq2seq_files(), &s)) return NULL;
    tn__pruned pruned;
    if (!tn__pruned_open(dir, &pruned)) return NULL;
    c = s.c, c.kind = tn_seq2seq_kind_of(s.kind);
    tn_safetensors *f = tn__weights_open(dir, path);
    const tn_scope  blank = tn__blank_begin();
    if (f && tn__has_elements_pruned(f, path, elements(&c), &pruned, c.dim / c.heads * (4 * c.dim + 3)))
        m = tn_seq2seq_create(c);
    tn_scope_end(blank);
    tn__pruned_apply(&pruned, m);
    tn__pruned_close(&pruned);
    return tn__model_read(m, f, path, tn__seq2seq_files());
}

tn_status tn_seq2seq_save(tn_seq2seq *m, const char *dir)
{
    if (!tn_ready(m)) return tn_error();
    return tn_hf_write(m, dir, tn__seq2seq_files(),
                       &(tn__seq2seq_stored){m->config, tn_seq2seq_kind_name(m->config.kind)});
}
