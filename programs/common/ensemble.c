/* ensemble.c — a tn_decoding whose scores are the logarithm of the mean of several models' probabilities. */
#include "ensemble.h"

#include <math.h>

typedef struct {
    tn_decoding  base;
    int          n;
    tn_decoding *of[ENSEMBLE_MOST];
} ensemble;

/* log (1/n Σ p_i) = logsumexp_i log p_i - log n */
static tn_tensor *scores(tn_decoding *d, tn_tensor *tokens)
{
    const ensemble *e = (const ensemble *)(void *)d;
    tn_tensor      *each[ENSEMBLE_MOST] = {NULL};
    for (int i = 0; i < e->n; i++) {
        tn_tensor *y = e->of[i]->kind->scores(e->of[i], tokens);
        if (!y || !(each[i] = tn_unsqueeze(tn_log_softmax(tn_to(y, TN_F32), -1), 0))) return NULL;
    }
    tn_tensor *all = each[0];
    for (int i = 1; i < e->n; i++) all = tn_cat(0, all, each[i]);
    return tn_add_scalar(tn_logsumexp(all, .dims = TN_DIMS(0)), -log((double)e->n));
}

static tn_status reorder(tn_decoding *d, tn_tensor *index)
{
    const ensemble *e = (const ensemble *)(void *)d;
    for (int i = 0; i < e->n; i++)
        if (e->of[i]->kind->reorder(e->of[i], index) != TN_OK) return tn_error();
    return TN_OK;
}

static void release(tn_decoding *d)
{
    ensemble *e = (ensemble *)(void *)d;
    for (int i = 0; i < e->n; i++) tn_decoding_free(e->of[i]);
    tn_mem_put(e, sizeof *e);
}

tn_decoding *ensemble_decoding(int n, tn_seq2seq *const *models, tn_tensor *source, int64_t beams, int64_t length)
{
    static const tn_decoding_kind kind = {.size = sizeof kind, .scores = scores, .reorder = reorder, .free = release};
    ensemble                     *e = source ? tn_mem_get(sizeof *e) : NULL;
    if (!e) return NULL;
    *e = (ensemble){.base = {.kind = &kind, .rows = beams * tn_size(source, 0), .length = length}};
    for (; e->n < n && (e->of[e->n] = tn_seq2seq_decoding(models[e->n], source, beams, length)) != NULL; e->n++) {}
    if (e->n == n) return &e->base;
    release(&e->base);
    return NULL;
}
