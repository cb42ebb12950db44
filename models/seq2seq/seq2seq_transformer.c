/* seq2seq_transformer.c — the Transformer (Vaswani et al. 2017) with its embeddings, and T5 (Raffel et al. 2020).
 *
 *   x = dropout(√dim · word + position), on both sides
 *   relative positions: x = dropout(√dim · word), and a bias of the attention scores
 *   .norm_embedding: x = dropout(norm(√dim · word + position)); BART and its relatives are in families.c */
#include "models/seq2seq/seq2seq_private.h"

#include <math.h>
#include <string.h>

/* T5's initial values: each matrix keeps the variance of its input, and queries are small enough for the scores to have
 * variance 1 with the factor .scale. */
static void initialise(tn_seq2seq *m)
{
    const tn_seq2seq_config *c = &m->config;
    const double head = (double)(c->head_dim ? c->head_dim : c->dim / c->heads), scale = c->scale > 0 ? c->scale : 1;
    for (tn_each p = tn_parameters(m->transformer); tn_next(&p);) {
        if (tn_ndim(p.tensor) != 2) continue;
        const bool   table = strstr(p.name, "relative.") != NULL;
        const double std = 1 / sqrt((double)(table ? c->dim : tn_size(p.tensor, 1)));
        tn_init_normal(p.tensor, 0, strstr(p.name, "q_proj") && c->scale > 0 ? std / (scale * sqrt(head)) : std);
    }
}

enum { UNUSED = 2 }; /* rows in front of a table of learned positions */

void tn__seq2seq_add_positions(tn_seq2seq *m)
{
    static const tn_sinusoids orders[] = {TN_SINUSOIDS_IN_TURN, TN_SINUSOIDS_HALVES, TN_SINUSOIDS_TENSOR2TENSOR};
    const tn_seq2seq_config  *c = &m->config;
    if (c->position_kind != TN_SEQ2SEQ_LEARNED && c->kind != TN_SEQ2SEQ_CONVS2S) {
        const bool shifted = c->position_kind == TN_SEQ2SEQ_TENSOR2TENSOR;
        m->positions = tn_child(m, "positions",
                                tn_sinusoidal_positions_new(.dim = c->dim, .length = c->positions,
                                                            .order = orders[c->position_kind],
                                                            .first = shifted ? c->padding + 1 : 0));
        return;
    }
    m->positions = tn_child(m, "positions", tn_learned_positions_new(.dim = c->dim, .length = c->positions + UNUSED));
    m->target_positions =
        tn_child(m, "target_positions", tn_learned_positions_new(.dim = c->dim, .length = c->positions + UNUSED));
    if (c->kind == TN_SEQ2SEQ_CONVS2S && m->positions && m->target_positions)
        tn_init_normal(m->positions->weight, 0, 0.1), tn_init_normal(m->target_positions->weight, 0, 0.1);
}

static tn_relative_positions *relative(const tn_seq2seq_config *c, int64_t heads, bool causal)
{
    return c->relative ? tn_relative_positions_new(.heads = heads, .buckets = c->relative,
                                                   .distance = c->relative_distance, .causal = causal)
                       : NULL;
}

static bool build(tn_seq2seq *m)
{
    const tn_seq2seq_config *c = &m->config;
    const int64_t            heads = c->decoder_heads ? c->decoder_heads : c->heads;
    if (c->norm_embedding) {
        m->source_norm = tn_child(m, "source_norm", tn_layer_norm_new(.dim = c->dim, .eps = c->eps));
        m->target_norm = tn_child(m, "target_norm", tn_layer_norm_new(.dim = c->dim, .eps = c->eps));
    }
    m->transformer = tn_child(
        m, "transformer",
        tn_transformer_new(.dim = c->dim, .heads = c->heads, .encoder_layers = c->layers,
                           .decoder_layers = c->decoder_layers, .decoder_heads = c->decoder_heads,
                           .decoder_ff = c->decoder_ff, .no_final_norm = c->no_final_norm, .ff = c->ff,
                           .gated = c->gated, .dropout = c->dropout, .attention_dropout = c->attention_dropout,
                           .activation_dropout = c->activation_dropout, .activation = tn_hf_activation(c->activation),
                           .norm = {c->rms_norm ? TN_NORM_RMS : TN_NORM_LAYER, c->eps, false},
                           .order = c->norm_first ? TN_NORM_FIRST : TN_NORM_LAST, .attention.head_dim = c->head_dim,
                           .attention.scores.scale = c->scale, .attention.positions = relative(c, c->heads, false),
                           .decoder_positions = relative(c, heads, true), .no_bias = c->no_bias));
    if (m->transformer && c->relative) initialise(m);
    return tn_error() == TN_OK;
}

/* dropout(norm(x)), of the rows that are not padding: the norm's gradients are sums over the rows. Others become 0. */
static tn_tensor *normed(tn_seq2seq *m, tn_layer_norm *norm, tn_tensor *x, tn_tensor *padding)
{
    tn_unpadded u;
    x = tn_call(norm, tn_skip_padding(m, x, padding, &u));
    if (tn_error() != TN_OK || !u.rows) return tn_call(m->dropout, x);
    return tn_pad_rows(u, m->base.training ? tn_dropout_rows(x, m->dropout->p, u.rows, u.length) : x);
}

/* M2M-100 counts the tokens of a row that are not padding, and padding has no position (zeros). NULL without an error
 * if only masked padding at the end of rows has other positions than 0, 1 and so on: one table then serves all rows.
 * Tokens that a cache holds count as in transformers, padding included. */
static tn_tensor *counted(tn_seq2seq *m, tn_tensor *ids, int64_t at, bool masked)
{
    const int64_t batch = tn_size(ids, 0), n = tn_size(ids, 1);
    tn_tensor    *place = tn_empty_of(TN_I64, TN_SHAPE(batch * n));
    int64_t      *to = place ? tn_data_mut(place) : NULL;
    bool          plain = true;
    for (int64_t row = 0; to && row < batch; row++)
        for (int64_t t = 0, next = at; t < n; t++) {
            const bool padding = tn_get_i64(ids, row * n + t) == m->config.padding;
            if (padding ? !masked : next < at + t) plain = false;
            to[row * n + t] = padding ? at : next++;
        }
    if (!to || plain) return NULL;
    tn_tensor *rows = tn_reshape(tn_index_select(m->positions->weight, 0, place), TN_SHAPE(batch, n, m->config.dim));
    return tn_masked_fill(rows, tn_unsqueeze(tn_eq(ids, tn_full_like(ids, (double)m->config.padding)), 2), 0);
}

tn_tensor *tn_seq2seq_embedded(tn_seq2seq *m, bool target, tn_tensor *ids, int64_t at, tn_tensor *padding)
{
    if (!tn_ready(m)) return NULL;
    const int64_t  n = ids ? tn_size(ids, 1) : 0;
    tn_tensor     *x = tn_call(target ? m->target : m->source, ids);
    tn_layer_norm *norm = target ? m->target_norm : m->source_norm;
    tn_positions  *positions = target && m->target_positions ? m->target_positions : m->positions;
    if (!m->config.plain_embedding && m->config.kind != TN_SEQ2SEQ_CONVS2S)
        x = tn_mul_scalar(x, sqrt((double)m->config.dim));
    if (!m->positions) return tn_call(m->dropout, x);
    if (n > m->config.positions - at)
        return tn_raise_null(
            TN_ESHAPE, "seq2seq: a sequence of %lld tokens is longer than the model's %lld positions; truncate it",
            (long long)(at + n), (long long)m->config.positions);
    tn_tensor *rows = m->config.position_kind == TN_SEQ2SEQ_TENSOR2TENSOR ? counted(m, ids, at, padding != NULL) : NULL;
    x = rows ? tn_add(x, tn_to(rows, tn_dtype_of(x)))
             : tn_positions_forward(positions, x, at + (m->target_positions ? UNUSED : 0));
    return norm ? normed(m, norm, x, padding) : tn_call(m->dropout, x);
}

static void encode(tn_seq2seq *m, tn_tensor *source, tn_seq2seq_state *r)
{
    tn_tensor *x = tn_seq2seq_embedded(m, false, source, 0, r->padding);
    tn_path_push("transformer"); /* encoder and decoder are called separately */
    if (x)
        r->memory = tn_transformer_encoder_forward(m->transformer->encoder, x, .key_padding_mask = r->padding,
                                                   .skip_padding = true);
    tn_path_pop();
    if (r->memory && m->config.end_dropout) r->memory = tn_call(m->dropout, r->memory);
}

static tn_tensor *decode(tn_seq2seq *m, tn_seq2seq_state *r, tn_tensor *target, tn_tensor **alignment)
{
    tn_tensor *x = tn_seq2seq_embedded(m, true, target, r->at, r->unread), *y, **weights = NULL;
    if (!x) return NULL;
    const int64_t n = m->config.decoder_layers;
    if (alignment && !(weights = tn_mem_get((size_t)n * sizeof *weights))) return NULL;
    tn_path_push("transformer");
    y = tn_transformer_decoder_forward(m->transformer->decoder, x, r->cache && r->at ? NULL : r->memory, .causal = true,
                                       .key_padding_mask = r->unread, .memory_key_padding_mask = r->padding,
                                       .memory_weights = weights, .cache = r->cache, .skip_padding = true);
    tn_path_pop();
    if (y && alignment) *alignment = tn_mean(weights[n - 1], .dims = TN_DIMS(1));
    if (weights) tn_mem_put(weights, (size_t)n * sizeof *weights);
    return y && m->config.end_dropout ? tn_call(m->dropout, y) : y;
}

const tn_seq2seq_functions tn__seq2seq_transformer = {build, encode, decode, .positions = true};
