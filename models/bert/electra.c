/* electra.c — the head for replaced tokens: ELECTRA's (Clark et al. 2020) w · gelu(V y) for each token y, and DeBERTa's
 * w · gelu(V norm(y₀ + y)). */
#include "models/bert/bert_private.h"

void tn__electra_add(tn_bert *m, const tn_bert_config *c)
{
    if (c->kind == TN_DEBERTA)
        m->replaced_norm =
            tn_child(m, "discriminator_predictions.norm", tn_layer_norm_new(.dim = c->dim, .eps = c->eps));
    m->replaced = tn_child(m, "discriminator_predictions.dense", tn_linear_new(.in = c->dim, .out = c->dim));
    m->replaced_out = tn_child(m, "discriminator_predictions.dense_prediction", tn_linear_new(.in = c->dim, .out = 1));
}

/* Of y, to which DeBERTa's first tokens are added. */
static tn_tensor *replaced_logits(tn_bert *m, tn_tensor *y)
{
    if (m->replaced_norm) y = tn_call(m->replaced_norm, y);
    y = tn_call(m->replaced_out, tn_hf_activation(m->config.activation)(tn_call(m->replaced, y)));
    return y ? tn_squeeze(y, -1) : NULL;
}
static tn_tensor *plus_first(tn_bert *m, tn_tensor *y)
{
    return m->replaced_norm ? tn_add(y, tn_narrow(y, 1, 0, 1)) : y;
}
tn_tensor *tn_bert_replaced_logits(tn_bert *m, tn_tensor *y)
{
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    if (!tn__bert_has(y, m->replaced, "head for replaced tokens")) return tn_leave(f, NULL);
    return tn_leave(f, replaced_logits(m, plus_first(m, y)));
}

/* The mean over all tokens except padding. */
tn_tensor *tn__electra_loss(tn_bert *m, tn_tensor *y, const tn_bert_loss_args *b)
{
    if (!tn__bert_has(y, m->replaced, "head for replaced tokens")) return NULL;
    tn_tensor *x = plus_first(m, y), *want = b->replaced;
    if (b->key_padding_mask) {
        const tn_unpadded u = tn_unpad(b->key_padding_mask);
        x = tn_unpad_rows(u, x), want = tn_unpad_rows(u, want);
    }
    tn_tensor *scores = replaced_logits(m, x);
    if (!scores) return NULL;
    want = tn_to(want, tn_dtype_of(scores));
    if (!tn_numel(scores)) return tn_sum(tn_narrow(y, 0, 0, 0));
    return tn_bce_with_logits(scores, want);
}
