/* seq2seq_rnn.c — a recurrent encoder, and a recurrent decoder that starts from its last state.
 *
 *   Bahdanau: c = Σ α h with α from v tanh(W s + U h), s = cell([word; c], s), y = tanh(W [s; c; word])
 *   Luong:    s = rnn(word), c = Σ α h with α from s W h, y = tanh(W [c; s])
 *   neither:  y = s */
#include "models/seq2seq/seq2seq_private.h"

static bool build(tn_seq2seq *m)
{
    const tn_seq2seq_config *c = &m->config;
    const int64_t            dim = c->dim, memory = c->one_way ? dim : 2 * dim;
    const double             between = c->layers > 1 ? c->dropout : 0;
    const tn_rnn_config      e = {
             .in = dim, .hidden = dim, .layers = c->layers, .dropout = between, .bidirectional = !c->one_way};
    const tn_rnn_config d = {
        .in = dim, .hidden = dim, .layers = c->decoder_layers, .dropout = c->decoder_layers > 1 ? c->dropout : 0};
    tn_seq2seq_recurrent *const p = m->recurrent = tn_array(m, 1, tn_seq2seq_recurrent);
    if (!p) return false;
    p->encoder = tn_child(m, "encoder", c->lstm ? tn_lstm_create(e) : tn_gru_create(e));
    p->bridge_h = tn_child(m, "bridge_h", tn_linear_new(.in = memory, .out = dim));
    if (c->lstm) p->bridge_c = tn_child(m, "bridge_c", tn_linear_new(.in = memory, .out = dim));
    if (c->kind == TN_SEQ2SEQ_BAHDANAU) {
        const tn_rnn_cell_config cell = {.in = dim + memory, .hidden = dim};
        p->cell = tn_child(m, "cell", c->lstm ? tn_lstm_cell_create(cell) : tn_gru_cell_create(cell));
        p->additive = tn_child(m, "attention", tn_additive_attention_new(.query = dim, .memory = memory));
        p->combine = tn_child(m, "combine", tn_linear_new(.in = 2 * dim + memory, .out = dim));
    } else {
        p->decoder = tn_child(m, "decoder", c->lstm ? tn_lstm_create(d) : tn_gru_create(d));
        if (c->kind == TN_SEQ2SEQ_LUONG) {
            p->dot = tn_child(m, "attention", tn_dot_attention_new(.query = dim, .memory = memory, .general = true));
            p->combine = tn_child(m, "combine", tn_linear_new(.in = dim + memory, .out = dim));
        }
    }
    return tn_error() == TN_OK;
}

/* Maps the encoder's last states [layers · directions, B, dim], with both directions of a layer concatenated, to the
 * decoder's first states: Bahdanau's from the last layer, [B, dim]; else [layers, B, dim], repeating the last layer if
 * the decoder has more. */
static tn_tensor *bridge_states(tn_seq2seq *m, tn_linear *bridge, tn_tensor *last)
{
    const tn_seq2seq_recurrent *p = m->recurrent;
    const int64_t               batch = tn_size(last, 1), layers = m->config.layers, want = m->config.decoder_layers;
    const int64_t               ways = tn_size(last, 0) / layers, dim = m->config.dim;
    tn_tensor                  *x = tn_reshape(last, TN_SHAPE(layers, ways, batch, dim));
    x = tn_reshape(tn_permute(x, TN_DIMS(0, 2, 1, 3)), TN_SHAPE(layers, batch, ways * dim));
    x = tn_tanh(tn_call(bridge, x));
    if (p->cell) return tn_select(x, 0, layers - 1);
    if (want <= layers) return tn_narrow(x, 0, layers - want, want);
    tn_tensor *more = tn_expand(tn_narrow(x, 0, layers - 1, 1), TN_SHAPE(want - layers, batch, dim));
    return tn_cat(0, x, more);
}

static void encode(tn_seq2seq *m, tn_tensor *source, tn_seq2seq_state *r)
{
    const tn_seq2seq_recurrent *p = m->recurrent;
    tn_tensor *lengths = tn_sum(tn_to(tn_logical_not(r->padding), TN_I64), .dims = TN_DIMS(1)), *h = NULL, *c = NULL;
    tn_tensor *x = tn_call(m->dropout, tn_call(m->source, source));
    r->memory = tn_rnn_forward(p->encoder, x, .lengths = lengths, .h_n = &h, .c_n = p->bridge_c ? &c : NULL);
    if (tn_error() != TN_OK) return;
    r->h = bridge_states(m, p->bridge_h, h);
    if (p->bridge_c) r->c = bridge_states(m, p->bridge_c, c);
    if (p->additive) r->keys = tn_additive_attention_keys(p->additive, r->memory);
}

/* Bahdanau's decoder runs token by token, because its attention's query is the previous state. */
static tn_tensor *bahdanau_decode(tn_seq2seq *m, tn_seq2seq_state *r, tn_tensor *words, tn_tensor **alignment)
{
    const tn_seq2seq_recurrent *p = m->recurrent;
    const int64_t               n = tn_size(words, 1);
    const size_t                bytes = 2 * (size_t)n * sizeof(tn_tensor *);
    tn_tensor                 **y = tn_mem_get(bytes), **looked = y ? y + n : NULL, *all = NULL;
    for (int64_t t = 0; y && t < n && tn_error() == TN_OK; t++) {
        tn_tensor *word = tn_select(words, 1, t), *c = NULL;
        tn_tensor *context =
            tn_additive_attention_forward(p->additive, r->h, r->memory, .keys = r->keys, .key_padding_mask = r->padding,
                                          .weights = alignment ? &looked[t] : NULL);
        r->h = tn_rnn_cell_forward(p->cell, tn_cat(1, word, context), .h = r->h, .c = r->c,
                                   .c_n = p->bridge_c ? &c : NULL);
        r->c = c;
        y[t] = tn_cat(1, r->h, context, word);
    }
    if (y && tn_error() == TN_OK) {
        all = tn_tanh(tn_call(p->combine, tn_stack_list(1, (int)n, y)));
        if (alignment) *alignment = tn_stack_list(1, (int)n, looked);
    }
    if (y) tn_mem_put(y, bytes);
    return all;
}

static tn_tensor *decode(tn_seq2seq *m, tn_seq2seq_state *r, tn_tensor *target, tn_tensor **alignment)
{
    const tn_seq2seq_recurrent *p = m->recurrent;
    tn_tensor                  *x = tn_call(m->dropout, tn_call(m->target, target)), *h = NULL, *c = NULL;
    if (p->cell) return tn_call(m->dropout, bahdanau_decode(m, r, x, alignment));
    x = tn_rnn_forward(p->decoder, x, .h0 = r->h, .c0 = r->c, .h_n = &h, .c_n = p->bridge_c ? &c : NULL);
    r->h = h, r->c = c;
    if (p->dot) {
        tn_tensor *context =
            tn_dot_attention_forward(p->dot, x, r->memory, .key_padding_mask = r->padding, .weights = alignment);
        x = tn_tanh(tn_call(p->combine, tn_cat(-1, context, x)));
    }
    return tn_call(m->dropout, x);
}

const tn_seq2seq_functions tn__seq2seq_bahdanau = {build, encode, decode, .batch_dim = 0},
                           tn__seq2seq_luong = {build, encode, decode, .batch_dim = 1},
                           tn__seq2seq_rnn = {build, encode, decode, .batch_dim = 1, .blind = true};
