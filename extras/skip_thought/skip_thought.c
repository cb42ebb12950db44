/* skip_thought.c — skip-thought vectors (Kiros et al. 2015).
 *
 *   v = last state of encoder(E w),   decoders: hₜ = gru([E wₜ₋₁; v]),  p(wₜ) = softmax(O hₜ + b) */
#include "extras/skip_thought.h"
#include "models/models.h"

#include <stdio.h>

static void describe(const void *self, char *text, size_t size)
{
    const tn_skip_thought_config *c = &((const tn_skip_thought *)self)->config;
    snprintf(text, size, "vocab=%lld, dim=%lld, hidden=%lld", (long long)c->vocab, (long long)c->dim,
             (long long)c->hidden);
}
static const tn_class tn_skip_thought_class = {
    .size = sizeof(tn_class), .name = "SkipThought", .bytes = sizeof(tn_skip_thought), .describe = describe};

/* clang-format off */
static const tn_hf_row members[] = {
    {"architectures", TN_HF_NAME, .text = "TenonSkipThought"},
    TN_HF("embedding_size", tn_skip_thought_config, dim, .needed = true, .low = 1, .high = 65536),
    TN_HF("hidden_size", tn_skip_thought_config, hidden, .needed = true, .low = 1, .high = 65536),
    {"model_type", TN_HF_TYPE, .text = "tenon_skip_thought"},
    TN_HF("vocab_size", tn_skip_thought_config, vocab, .needed = true, .low = 2, .high = 10000000),
};
/* clang-format on */
static const tn_hf_files table = {members, TN_HF_COUNT_(members), NULL, 0};

enum { BEGIN = 1 }; /* the first input of a decoder: <eos> */

tn_skip_thought *tn_skip_thought_create(tn_skip_thought_config c)
{
    if (tn_error() != TN_OK || !tn_hf_config_within("tn_skip_thought_new", &table, &c)) return NULL;
    tn_skip_thought *m = tn_module_new(tn_skip_thought);
    if (!m) return NULL;
    m->config = c;
    m->words = tn_child(m, "words", tn_embedding_new(.count = c.vocab, .dim = c.dim));
    if (m->words) tn_init_uniform(m->words->weight, -0.1, 0.1);
    m->encoder = tn_child(m, "encoder", tn_gru_new(.in = c.dim, .hidden = c.hidden));
    m->before = tn_child(m, "before", tn_gru_new(.in = c.dim + c.hidden, .hidden = c.hidden));
    m->after = tn_child(m, "after", tn_gru_new(.in = c.dim + c.hidden, .hidden = c.hidden));
    m->out = tn_weight(m, "decoder.weight", tn_uniform(TN_SHAPE(c.vocab, c.hidden), -0.1, 0.1));
    m->bias = tn_param(m, "decoder.bias", tn_zeros(TN_SHAPE(c.vocab)));
    return tn_built(m);
}

static tn_tensor *encode(tn_skip_thought *m, tn_tensor *x, tn_tensor *lengths)
{
    tn_tensor *last = NULL;
    tn_gru_forward(m->encoder, x, .lengths = lengths, .h_n = &last);
    return last ? tn_select(last, 0, 0) : NULL;
}

tn_tensor *tn_skip_thought_encode(tn_skip_thought *m, tn_tensor *x, tn_tensor *lengths)
{
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    return tn_leave(f, encode(m, x, lengths));
}

/* The input of a decoder: BEGIN, then the target without its last word; word 0 after the end. */
static tn_tensor *decoder_input(const tn_tensor *target)
{
    const int64_t rows = tn_size(target, 0), n = tn_size(target, 1);
    tn_tensor    *t = tn_empty_of(TN_I64, TN_SHAPE(rows, n));
    int64_t      *to = t ? tn_data_mut(t) : NULL;
    for (int64_t i = 0; to && i < rows * n; i++) {
        const int64_t id = i % n ? tn_get_i64(target, i - 1) : BEGIN;
        to[i] = id < 0 ? 0 : id;
    }
    return t;
}

static tn_tensor *decoder_loss(tn_skip_thought *m, tn_gru *decoder, tn_tensor *vector, tn_tensor *target)
{
    char text[192];
    if (!target || tn_ndim(target) != 2 || tn_size(target, 0) != tn_size(vector, 0))
        return tn_raise_null(TN_ESHAPE, "skip_thought: the neighbouring sentences must be i64 [%lld, T], got %s",
                             (long long)tn_size(vector, 0),
                             target ? tn_shape_text(tn_shape_of(target), text, sizeof text) : "NULL");
    tn_tensor *x = tn_call(m->words, decoder_input(target));
    tn_tensor *with = tn_expand(tn_unsqueeze(vector, 1), TN_SHAPE(-1, tn_size(target, 1), -1));
    return tn_linear_cross_entropy(tn_call(decoder, tn_cat(2, x, with)), m->out, m->bias, target);
}

tn_tensor *tn_skip_thought_loss(tn_skip_thought *m, tn_tensor *ids, tn_tensor *lengths, tn_tensor *before,
                                tn_tensor *after)
{
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    tn_tensor     *v = encode(m, tn_call(m->words, ids), lengths), *loss = NULL;
    if (v)
        loss = tn_mul_scalar(tn_add(decoder_loss(m, m->before, v, before), decoder_loss(m, m->after, v, after)), 0.5);
    return tn_leave(f, loss);
}

static void *load(const tn_hf_source *s)
{
    tn_skip_thought_config c = {.zero_ = 0};
    tn_hf_weights          w;
    if (!tn_hf_source_read(s, &table, &c)) return NULL;
    const int64_t n = c.vocab * (c.dim + c.hidden) + 3 * c.hidden * (3 * c.dim + 5 * c.hidden);
    const bool    ok = tn_hf_weights_open(&w, s, n, 0);
    return tn_hf_weights_load(&w, ok ? tn_skip_thought_create(c) : NULL, &table);
}
tn_skip_thought *tn_skip_thought_load(const char *dir) { return tn_hf_load(dir, load); }

tn_status tn_skip_thought_save(tn_skip_thought *m, const char *dir)
{
    return tn_ready(m) ? tn_hf_write(m, dir, &table, &m->config) : tn_error();
}
