/* uncached.c — the tn_decoding of a model without a cache: reads the whole text again for each token. */
#include "models/generate/lm_private.h"

typedef struct {
    tn_decoding     base;
    void           *model;
    tn_decoder_step step;
    tn_tensor      *ids; /* the texts, [rows, tokens], owned; NULL: nothing read yet */
} uncached;

static void set(uncached *d, tn_tensor *ids)
{
    tn_drop(d->ids);
    d->ids = ids;
}

static tn_tensor *scores(tn_decoding *base, tn_tensor *tokens)
{
    uncached      *d = (uncached *)base;
    const tn_scope s = tn_scope_begin();
    tn_tensor     *more = tn_to(tokens, TN_I64), *all = d->ids ? tn_cat(1, d->ids, more) : more;
    tn_tensor     *y = all ? tn_select(d->step(d->model, all, NULL), 1, 0) : NULL;
    if (tn_error() == TN_OK) set(d, tn_keep(tn_clone(all)));
    return tn_scope_return(s, y);
}
static tn_status reorder(tn_decoding *base, tn_tensor *index)
{
    uncached      *d = (uncached *)base;
    const tn_scope s = tn_no_grad_begin();
    tn_tensor     *ids = d->ids ? tn_index_select(d->ids, 0, index) : NULL;
    if (tn_error() == TN_OK && ids) set(d, tn_keep(ids));
    tn_scope_end(s);
    return tn_error();
}
static void end(tn_decoding *base)
{
    tn_drop(((uncached *)base)->ids);
    tn_mem_put(base, sizeof(uncached));
}
static int64_t tokens_read(const tn_decoding *base)
{
    const uncached *d = (const uncached *)base;
    return d->ids ? tn_size(d->ids, 1) : 0;
}
static const tn_decoding_kind kind = {sizeof(tn_decoding_kind), scores, reorder, end, tokens_read};

tn_decoding *tn__uncached_decoding(void *model, tn_decoder_step step, int64_t rows, int64_t length)
{
    uncached *d = tn_error() == TN_OK ? tn_mem_get(sizeof *d) : NULL;
    if (d) *d = (uncached){{&kind, rows, length}, model, step, NULL};
    return d ? &d->base : NULL;
}
