/* seq2seq_transformer.c — the Transformer (Vaswani et al. 2017) with its embeddings.
 *
 *   x = dropout(√dim · word + position), on both sides */
#include "models/seq2seq/seq2seq_private.h"

#include <math.h>

bool tn__transformer_build(tn_seq2seq *m)
{
    const tn_seq2seq_config *c = &m->config;
    m->positions = tn_child(m, "positions", tn_sinusoidal_positions_new(.dim = c->dim, .length = c->positions));
    m->transformer = tn_child(m, "transformer",
                              tn_transformer_new(.dim = c->dim, .heads = c->heads, .encoder_layers = c->layers,
                                                 .decoder_layers = c->decoder_layers, .ff = c->ff,
                                                 .dropout = c->dropout, .norm_first = c->norm_first));
    return tn_error() == TN_OK;
}

static tn_tensor *embedded(tn_seq2seq *m, tn_embedding *words, tn_tensor *ids, int64_t at)
{
    const int64_t n = tn_size(ids, 1);
    if (n > m->config.positions - at)
        return tn_raise_null(
            TN_ESHAPE, "seq2seq: a sequence of %lld tokens is longer than the model's %lld positions; truncate it",
            (long long)(at + n), (long long)m->config.positions);
    tn_tensor *x = tn_mul_scalar(tn_call(words, ids), sqrt((double)m->config.dim));
    return tn_call(m->dropout, tn_positions_forward(m->positions, x, at));
}

void tn__transformer_encode(tn_seq2seq *m, tn_tensor *source, tn__seq2seq_state *r)
{
    tn_tensor *x = embedded(m, m->source, source, 0);
    tn_path_push("transformer"); /* encoder and decoder are called separately */
    if (x)
        r->memory = tn_transformer_encoder_forward(m->transformer->encoder, x, .key_padding_mask = r->padding,
                                                   .skip_padding = true);
    tn_path_pop();
}

tn_tensor *tn__transformer_decode(tn_seq2seq *m, tn__seq2seq_state *r, tn_tensor *target, tn_tensor **alignment)
{
    tn_tensor *x = embedded(m, m->target, target, r->at), *y, **weights = NULL;
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
    return y;
}
