/* seq2seq_files.c — loads and saves a seq2seq model: config.json and model.safetensors. */
#include "models/seq2seq/seq2seq_private.h"

/* A lower bound of the model's elements: embeddings and the largest matrices. */
static int64_t elements(const tn_seq2seq_config *c)
{
    const int64_t tables = c->source_words + (c->shared ? 0 : c->target_words) + (c->untied ? c->target_words : 0);
    const int64_t width = c->head_dim ? c->heads * c->head_dim : c->dim;
    const int64_t layer =
        c->kind == TN_SEQ2SEQ_TRANSFORMER ? c->dim * (4 * width + (c->gated ? 3 : 2) * c->ff) : 6 * c->dim * c->dim;
    return tables * c->dim + (c->layers + c->decoder_layers) * layer;
}

void *tn__seq2seq_load(const tn__hf_source *source)
{
    tn__seq2seq_stored s = {.kind = NULL};
    tn__weights        w;
    if (!tn__hf_read(source, tn__seq2seq_files(), &s)) return NULL;
    s.c.kind = tn_seq2seq_kind_of(s.kind);
    const int64_t head = s.c.head_dim ? s.c.head_dim : s.c.dim / s.c.heads;
    const bool    ok = tn__weights_open(&w, source, elements(&s.c), head * (4 * s.c.dim + 3));
    return tn__weights_load(&w, ok ? tn_seq2seq_create(s.c) : NULL, tn__seq2seq_files());
}
tn_seq2seq *tn_seq2seq_load(const char *dir) { return tn__hf_load(dir, tn__seq2seq_load); }

tn_status tn_seq2seq_save(tn_seq2seq *m, const char *dir)
{
    if (!tn_ready(m)) return tn_error();
    return tn_hf_write(m, dir, tn__seq2seq_files(),
                       &(tn__seq2seq_stored){m->config, tn_seq2seq_kind_name(m->config.kind)});
}
