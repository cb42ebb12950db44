/* bert_heads.c — the heads for masked tokens and for the next sentence, computed from hidden states. */
#include "models/bert/bert_private.h"

bool tn__bert_has(const tn_tensor *y, const void *head, const char *which)
{
    if (!y) return tn_raise_false(TN_EINVAL, "bert: the hidden states are NULL; pass the result of tn_bert_forward");
    if (head) return true;
    return tn_raise_false(TN_ESTATE, "bert: this model has no %s; load a model trained for that, or create it with one",
                          which);
}

tn_tensor *tn__bert_rows(tn_bert *m, tn_tensor *y, tn_tensor *where)
{
    y = tn_reshape(y, TN_SHAPE(-1, m->config.dim));
    return where ? tn_index_select(y, 0, where) : y;
}
tn_tensor *tn_bert_mlm_logits(tn_bert *m, tn_tensor *y, tn_tensor *where)
{
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    return tn_leave(f, tn__bert_has(y, m->head, "head for masked tokens") ? tn_call(m->head, tn__bert_rows(m, y, where))
                                                                          : NULL);
}
tn_tensor *tn_bert_pooled(tn_bert *m, tn_tensor *y)
{
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    return tn_leave(f, tn__bert_has(y, m->pooler, "pooler") ? tn_tanh(tn_call(m->pooler, tn_select(y, 1, 0))) : NULL);
}
tn_tensor *tn_bert_nsp_logits(tn_bert *m, tn_tensor *y)
{
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    tn_tensor     *first = tn__bert_has(y, m->next, "head for the next sentence") ? tn_bert_pooled(m, y) : NULL;
    if (first && m->head_dropout) first = tn_call(m->head_dropout, first);
    return tn_leave(f, first ? tn_call(m->next, first) : NULL);
}
