/* relatives.c — what the relatives of BERT change: a row for each kind, and the parts that some have.
 *
 * RoBERTa (Liu et al. 2019) counts positions from padding + 1, DistilBERT (Sanh et al. 2019) has no segments, ALBERT
 * (Lan et al. 2020) shares weights among its layers, ModernBERT (Warner et al. 2024) has rotary positions instead of
 * embeddings, and windows in most layers. DeBERTa (He et al. 2021, v3: 2023) has disentangled attention; its embeddings
 * are projected before the norm, and are 0 at padding. Its enhanced mask decoder is tn_block_args' .mask_decoder. */
#include "models/bert/bert_private.h"

/* BERT's family has no dropout after the activation, unlike PyTorch's encoder. */
const tn__bert_relative *tn__bert_relative_of(tn_bert_kind kind)
{
    static const tn__bert_relative rows[] = {
        [TN_BERT] = {.places = true},
        [TN_ROBERTA] = {.places = true, .gelu = true},
        [TN_XLM_ROBERTA] = {.places = true, .gelu = true},
        [TN_CAMEMBERT] = {.places = true, .gelu = true},
        [TN_DISTILBERT] = {.places = true, .dropout1 = TN__BERT_NO_DROPOUT},
        [TN_ALBERT] = {.places = true, .projects = true, .dropout2 = TN__BERT_NO_DROPOUT},
        [TN_ELECTRA] = {.places = true, .gelu = true},
        [TN_MODERNBERT] = {.modern = true,
                           .gelu = true,
                           .dropout1 = TN__BERT_ATTENTION_DROPOUT,
                           .dropout2 = TN__BERT_NO_DROPOUT},
        [TN_DEBERTA] = {.project_first = true},
        [TN_XLNET] = {.streams = true},
    };
    return &rows[kind];
}

/* ---- positions --------------------------------------------------------------------------------------------------- */

bool tn__bert_has_places(const tn_bert_config *c)
{
    return c->kind == TN_DEBERTA ? c->input_positions : tn__bert_relative_of(c->kind)->places;
}

/* ModernBERT: every n-th layer, from the first, sees all tokens; the others have windows, and angles of their own. The
 * first layer has no norm before its attention. */
void tn__bert_set_layer(tn_block_config *b, int64_t i, void *user)
{
    tn__bert_layers      *p = user;
    const tn_bert_config *c = p->c;
    if (i == 0) b->order = TN_NORM_FIRST_HALF;
    if (i % c->global_every == 0) {
        b->attention.scores.window = 0;
        return;
    }
    if (!p->local) p->local = tn_rotary_new(.theta = c->local_theta);
    b->attention.positions = p->local;
}

void *tn__bert_positions(const tn_bert_config *c)
{
    if (c->kind == TN_MODERNBERT) return tn_rotary_new(.theta = c->theta);
    if (c->disentangled.distance <= 0) return NULL;
    return tn_distances_new(.dim = c->dim, .of = c->disentangled, .eps = c->eps, .dropout = c->dropout);
}

/* RoBERTa's position embeddings: tokens are counted from padding + 1, and padding tokens have position `padding`. If
 * those are masked and at the end, their positions do not matter: rows in order are enough, [T, dim] instead of
 * [B, T, dim]. */
tn_tensor *tn__bert_places(tn_bert *m, const tn_bert_args *a)
{
    const int64_t batch = tn_size(a->ids, 0), n = tn_size(a->ids, 1), first = tn__bert_first_position(&m->config);
    const bool    masked = a->key_padding_mask && tn_shape_equal(tn_shape_of(a->key_padding_mask), tn_shape_of(a->ids));
    bool          plain = true;
    if (!first) return tn_embedding_rows(m->positions, 0, n);
    tn_tensor *at = tn_empty_of(TN_I64, TN_SHAPE(batch, n));
    int64_t   *to = at ? tn_data_mut(at) : NULL;
    for (int64_t row = 0, i = 0; to && row < batch; row++)
        for (int64_t next = first, end = i + n; i < end; i++) {
            const bool padding = tn_get_i64(a->ids, i) == first - 1;
            if (padding ? !masked || !tn_get_i64(a->key_padding_mask, i) : next < first + n - (end - i)) plain = false;
            to[i] = padding ? first - 1 : next++;
        }
    return plain ? tn_embedding_rows(m->positions, first, n) : tn_call(m->positions, at);
}
