/* gnmt.c — GNMT (Wu et al. 2016): stacks of LSTMs with residual connections from the third layer on. The first
 * layer of the encoder is bidirectional. The decoder attends, as Bahdanau's, with the last output of its bottom layer;
 * all its layers read the context:
 *
 *   a_t = attention(y_{t-1});  y_t = LSTM₀(word, a_t);  x¹ = LSTM₁(y, a);  xⁱ = xⁱ⁻¹ + LSTMᵢ(xⁱ⁻¹, a)
 *
 * So only the bottom layer runs token by token in training. Dropout is applied to the input of each layer; layer i of
 * the decoder starts from the last state of the encoder's (of the first: the reverse direction's). */
#include "extras/translators/translators_private.h"

static bool build(tn_seq2seq *m)
{
    const tn_seq2seq_config    *c = &m->config;
    const int64_t               d = c->dim, memory = c->layers > 1 ? d : 2 * d;
    tn_seq2seq_recurrent *const p = m->recurrent = tn_array(m, 1, tn_seq2seq_recurrent);
    if (!p) return false;
    p->encoder = tn_child(m, "encoder.0", tn_lstm_new(.in = d, .hidden = d, .bidirectional = true));
    p->cell = tn_child(m, "decoder.0", tn_lstm_cell_new(.in = d + memory, .hidden = d));
    p->additive = tn_child(m, "attention", tn_additive_attention_new(.query = d, .memory = memory));
    p->upper[0] = tn_array(m, c->layers, tn_rnn *), p->upper[1] = tn_array(m, c->layers, tn_rnn *);
    for (int i = 1; p->upper[0] && p->upper[1] && i < c->layers; i++) {
        p->upper[0][i] = tn_child(m, tn_name("encoder.%d", i), tn_lstm_new(.in = i > 1 ? d : 2 * d, .hidden = d));
        p->upper[1][i] = tn_child(m, tn_name("decoder.%d", i), tn_lstm_new(.in = d + memory, .hidden = d));
    }
    return tn_error() == TN_OK;
}

/* The last states of the layers, [layers, B, dim]. */
typedef struct {
    tn_tensor **h, **c;
    size_t      bytes;
    int         n;
} gnmt_states;
static bool gnmt_states_open(gnmt_states *s, int64_t n)
{
    *s = (gnmt_states){.bytes = 2 * (size_t)n * sizeof(tn_tensor *), .n = (int)n};
    s->h = tn_mem_get(s->bytes), s->c = s->h ? s->h + n : NULL;
    return s->h != NULL;
}
static void gnmt_states_close(gnmt_states *s, tn_seq2seq_state *r)
{
    if (tn_error() == TN_OK) r->h = tn_cat_list(0, s->n, s->h), r->c = tn_cat_list(0, s->n, s->c);
    tn_mem_put(s->h, s->bytes);
}

static void encode(tn_seq2seq *m, tn_tensor *source, tn_seq2seq_state *r)
{
    const tn_seq2seq_recurrent *p = m->recurrent;
    gnmt_states                 s;
    tn_tensor                  *h = NULL, *c = NULL, *x = tn_call(m->dropout, tn_call(m->source, source));
    tn_tensor                  *lengths = tn_sum(tn_to(tn_logical_not(r->padding), TN_I64), .dims = TN_DIMS(1));
    if (!gnmt_states_open(&s, m->config.layers)) return;
    x = tn_lstm_forward(p->encoder, x, .lengths = lengths, .h_n = &h, .c_n = &c);
    s.h[0] = tn_narrow(h, 0, 1, 1), s.c[0] = tn_narrow(c, 0, 1, 1);
    for (int i = 1; i < s.n; i++) {
        tn_tensor *y =
            tn_lstm_forward(p->upper[0][i], tn_call(m->dropout, x), .lengths = lengths, .h_n = &s.h[i], .c_n = &s.c[i]);
        x = i > 1 ? tn_add(x, y) : y;
    }
    gnmt_states_close(&s, r);
    r->memory = x;
    if (tn_error() == TN_OK) r->keys = tn_additive_attention_keys(p->additive, x);
}

/* The bottom layer: returns its outputs [B, T, dim]; sets the contexts that it read, [B, T, memory], and its last
 * state, [1, B, dim]. */
static tn_tensor *gnmt_bottom(tn_seq2seq *m, tn_seq2seq_state *r, tn_tensor *words, tn_tensor **contexts,
                              gnmt_states *s, tn_tensor **alignment)
{
    const tn_seq2seq_recurrent *p = m->recurrent;
    const int64_t               n = tn_size(words, 1);
    const size_t                bytes = 3 * (size_t)n * sizeof(tn_tensor *);
    tn_tensor **y = tn_mem_get(bytes), **context = y ? y + n : NULL, **looked = y ? y + 2 * n : NULL, *all = NULL;
    tn_tensor  *h = tn_select(r->h, 0, 0), *c = tn_select(r->c, 0, 0);
    for (int64_t t = 0; y && t < n && tn_error() == TN_OK; t++) {
        context[t] =
            tn_additive_attention_forward(p->additive, h, r->memory, .keys = r->keys, .key_padding_mask = r->padding,
                                          .weights = alignment ? &looked[t] : NULL);
        tn_tensor *next = NULL, *x = tn_call(m->dropout, tn_cat(1, tn_select(words, 1, t), context[t]));
        y[t] = h = tn_lstm_cell_forward(p->cell, x, .h = h, .c = c, .c_n = &next);
        c = next;
    }
    if (y && tn_error() == TN_OK) {
        all = tn_stack_list(1, (int)n, y), *contexts = tn_stack_list(1, (int)n, context);
        if (alignment) *alignment = tn_stack_list(1, (int)n, looked);
        s->h[0] = tn_unsqueeze(h, 0), s->c[0] = tn_unsqueeze(c, 0);
    }
    if (y) tn_mem_put(y, bytes);
    return all;
}

static tn_tensor *decode(tn_seq2seq *m, tn_seq2seq_state *r, tn_tensor *target, tn_tensor **alignment)
{
    const tn_seq2seq_recurrent *p = m->recurrent;
    gnmt_states                 s;
    tn_tensor                  *words = tn_call(m->target, target), *contexts = NULL;
    if (!words || !gnmt_states_open(&s, m->config.layers)) return NULL;
    tn_tensor *x = gnmt_bottom(m, r, words, &contexts, &s, alignment);
    for (int i = 1; x && i < s.n; i++) {
        tn_tensor *y = tn_lstm_forward(p->upper[1][i], tn_call(m->dropout, tn_cat(-1, x, contexts)),
                                       .h0 = tn_narrow(r->h, 0, i, 1), .c0 = tn_narrow(r->c, 0, i, 1), .h_n = &s.h[i],
                                       .c_n = &s.c[i]);
        x = i > 1 ? tn_add(x, y) : y;
    }
    gnmt_states_close(&s, r);
    return x ? tn_call(m->dropout, x) : NULL;
}

const tn_seq2seq_functions tn__gnmt = {build, encode, decode, .batch_dim = 1};
