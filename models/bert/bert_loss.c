/* bert_loss.c — the training loss of BERT and its relatives: masked tokens, next sentence, replaced tokens. */
#include "models/bert/bert_private.h"

/* masked: of y's rows; NULL: all. The projection to the vocabulary is part of the loss, so that the logits are never
 * stored all at once. */
static tn_tensor *word_loss(tn_bert *m, tn_tensor *y, tn_tensor *masked, const tn_bert_loss_args *b)
{
    if (!tn__bert_has(y, m->head, "head for masked tokens")) return NULL;
    tn_tensor *x = tn_mlm_head_transform(m->head, tn__bert_rows(m, y, masked));
    return tn_linear_cross_entropy(x, m->head->weight, m->head->bias, b->words);
}

/* True if the arguments have targets; else raises. */
static bool has_targets(const tn_bert *m, const tn_bert_loss_args *b)
{
    if (!b->masked != !b->words)
        tn_raise(TN_EINVAL, "bert: .masked and .words must be set together: the positions of the masked tokens and "
                            "their token ids");
    if (tn_error() == TN_OK && !b->masked && !b->next && !b->replaced)
        tn_raise(TN_EINVAL, "bert: no targets; set .masked and .words, .next or .replaced");
    if (tn_error() == TN_OK && (m->streams ? b->next || b->replaced || b->segment < 0 : b->order || b->segment))
        tn_raise(TN_EINVAL,
                 "bert: .order and .segment, at least 0, are for XLNet, .next and .replaced for others; "
                 "this is %s",
                 tn_bert_kind_name(m->config.kind));
    return tn_error() == TN_OK;
}

/* The hidden states: those of the masked tokens alone if only they are read, which sets b->masked to NULL. */
static tn_tensor *states(tn_bert *m, tn_bert_loss_args *b)
{
    if (m->streams) {
        tn_tensor *y = tn__bert_other()->states(m, b);
        return b->masked = NULL, y;
    }
    tn_tensor *const masked = b->masked, *few = b->next || b->replaced || !masked || !tn_numel(masked) ? NULL : masked;
    if (few) b->masked = NULL;
    return tn_bert_forward(m, b->ids, .types = b->types, .key_padding_mask = b->key_padding_mask, .skip_padding = true,
                           .targets = few, .for_words = masked != NULL, .shared = b->shared);
}

tn_tensor *tn_bert_loss_run(tn_bert *m, tn_bert_loss_args b)
{
    if (b.word_loss) *b.word_loss = NULL;
    if (b.next_loss) *b.next_loss = NULL;
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    tn_tensor     *y = NULL, *loss = NULL, *word = NULL, *next = NULL;
    if (has_targets(m, &b)) y = states(m, &b);
    if (y && b.words) { /* without tokens 0, with a gradient of 0 */
        word = tn_numel(b.words) ? word_loss(m, y, b.masked, &b) : tn_sum(tn_narrow(y, 0, 0, 0));
        loss = word;
    }
    if (y && b.next) {
        next = tn_cross_entropy(tn_bert_nsp_logits(m, y), b.next);
        loss = loss ? tn_add(loss, next) : next;
    }
    if (y && b.replaced) {
        tn_tensor *part = tn__electra_loss(m, y, &b);
        loss = loss ? tn_add(loss, part) : part;
    }
    if (word && b.word_loss) word = tn_detach(word);
    if (next && b.next_loss) next = tn_detach(next);
    if (!b.word_loss && !b.next_loss) return tn_leave(f, loss);
    tn_leave_n(f, &loss, &word, &next);
    if (b.word_loss) *b.word_loss = word;
    if (b.next_loss) *b.next_loss = next;
    return loss;
}

tn_tensor *tn_bert_fit_loss(void *bert, const tn_batch *b, void *segment)
{
    tn_bert *m = bert;
    if (!tn_ready(m) || !tn__not_null("tn_bert_fit_loss", "the batch", b)) return NULL;
    return tn_bert_loss(m, .ids = b->x, .types = tn_batch_get(b, "segments"),
                        .key_padding_mask = tn_batch_get(b, "padding"), .masked = tn_batch_get(b, "masked_at"),
                        .words = b->y, .next = tn_batch_find(b, "next"), .order = tn_batch_find(b, "order"),
                        .segment = segment ? *(const int64_t *)segment : 0);
}
