/* reformer.c — Reformer (Kitaev, Kaiser, Levskaya 2020): a decoder with reversible layers, so that training memory does
 * not depend on their number, and with local or LSH attention, so that memory is linear in the length.
 *
 *   x1 = x2 = dropout(word + position),  x1 += attention_i(x2), x2 += ff_i(x1) for each layer,
 *   y = dropout(norm([x1 x2])),  logits = y Wᵀ + b
 *
 * (transformers applies dropout to token and position embeddings separately, and to whole rows of axial positions.)
 *
 * A sequence longer than the shortest chunk is padded to a multiple of all chunks; the padding is masked. */
#include "models/generate/lm_private.h"
#include "extras/reformer/reformer_private.h"

#include <stdio.h>
#include <string.h>

static void describe(const void *self, char *text, size_t size)
{
    const tn_reformer_config *c = &((const tn_reformer *)self)->config;
    snprintf(text, size, "vocab=%lld, dim=%lld, layers=%lld, heads=%lld, kinds=%s", (long long)c->vocab,
             (long long)c->dim, (long long)c->layers, (long long)c->heads, c->kinds);
}
static tn_tensor *forward(void *self, tn_tensor *ids) { return tn_reformer_forward((tn_reformer *)self, ids); }
static void       copied(void *self, const void *from)
{
    (void)from;
    ((tn_reformer *)self)->config.kinds = ((tn_reformer *)self)->kinds;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

/* The position embeddings, [1, n, dim]. */
static tn_tensor *positions_of(tn_reformer *m, int64_t n)
{
    const tn_reformer_config *c = &m->config;
    if (m->table) return tn_embedding_rows(m->table, 0, n);
    const int64_t columns = c->axial[1], rows = (n + columns - 1) / columns;
    tn_tensor    *a = tn_expand(tn_narrow(m->axial[0], 0, 0, rows), TN_SHAPE(rows, columns, c->axial_dim[0]));
    tn_tensor    *b = tn_expand(m->axial[1], TN_SHAPE(rows, columns, c->axial_dim[1]));
    tn_tensor    *all = tn_reshape(tn_cat(-1, a, b), TN_SHAPE(1, rows * columns, c->dim));
    return tn_narrow(all, 1, 0, n);
}

/* n rounded up to a multiple of the chunk lengths of all layers. */
static int64_t padded(const tn_reformer *m, int64_t n)
{
    const tn_reformer_config *c = &m->config;
    const bool                hashed = strchr(m->kinds, 'h') != NULL, local = strchr(m->kinds, 'l') != NULL;
    int64_t a = hashed ? c->chunk : c->local_chunk, b = local ? c->local_chunk : c->chunk, x = a, y = b;
    if (a < 1 || b < 1 || n <= (a < b ? a : b)) return n;
    while (y) {
        const int64_t rest = x % y;
        x = y, y = rest;
    }
    const int64_t all = a / x * b;
    return (n + all - 1) / all * all;
}

static tn_tensor *hidden(void *self, tn_decoder_args a) /* [B, T, 2 dim] */
{
    tn_reformer            *m = self;
    tn_tensor              *ids = a.ids;
    const int64_t           n = tn_size(ids, 1), all = padded(m, n);
    const double            p = m->base.training ? m->config.dropout : 0;
    const tn__reformer_call call = {m, n};
    tn_tensor              *x = tn_dropout(tn_add(tn_call(m->words, ids), positions_of(m, n)), p), *y[2];
    if (all > n) x = tn_pad(x, TN_SHAPE(0, 0, 0), TN_SHAPE(0, all - n, 0), 0);
    if (tn_error() != TN_OK ||
        tn_reversible(tn__reformer_half, &call, sizeof call, m->config.layers, (tn_tensor *const[2]){x, x}, y) != TN_OK)
        return NULL;
    x = tn_cat(-1, y[0], y[1]);
    return tn_dropout(tn_call(m->norm, all > n ? tn_narrow(x, 1, 0, n) : x), p);
}

static tn_lm_info info(const void *self)
{
    const tn_reformer        *m = self;
    const tn_reformer_config *c = &m->config;
    return (tn_lm_info){"reformer", c->vocab, c->dim, c->layers, c->heads, c->heads, c->positions, true, NULL,
                        m->out,     m->bias,  0,      0,         0,        0};
}
static tn_status       save(void *self, const char *dir) { return tn_reformer_save(self, dir); }
static const tn_lm_ops ops = {.info = info, .hidden = hidden, .save = save};
static const tn_class  tn_reformer_class = {.size = sizeof(tn_class),
                                            .name = "Reformer",
                                            .bytes = sizeof(tn_reformer),
                                            .forward = forward,
                                            .describe = describe,
                                            .copied = copied,
                                            .lm = &ops};

tn_tensor *tn_reformer_run(tn_reformer *m, tn_decoder_args a) { return tn__lm_run(__func__, m, a); }
tn_tensor *tn_reformer_loss(tn_reformer *m, tn_tensor *ids, tn_tensor *targets)
{
    return tn__lm_loss(__func__, m, ids, targets);
}
tn_decoding *tn_reformer_decoding(tn_reformer *m, int64_t rows, int64_t length)
{
    return tn__lm_decoding(__func__, m, rows, length);
}

/* ---- building ---------------------------------------------------------------------------------------------------- */

static void positions_new(tn_reformer *m, const tn_reformer_config *c)
{
#define POSITIONS "reformer.embeddings.position_embeddings."
    if (!c->axial[0]) {
        m->table = tn_child(m, POSITIONS "embedding", tn_embedding_new(.count = c->positions, .dim = c->dim));
        return;
    }
    m->axial[0] =
        tn_param(m, POSITIONS "weights.0", tn_normal(TN_SHAPE(c->axial[0], 1, c->axial_dim[0]), 0, c->axial_init));
    m->axial[1] =
        tn_param(m, POSITIONS "weights.1", tn_normal(TN_SHAPE(1, c->axial[1], c->axial_dim[1]), 0, c->axial_init));
}

/* Matrices and tables normal, biases 0. */
static void initialise(tn_reformer *m, double init)
{
    for (tn_each p = tn_parameters(m); tn_error() == TN_OK && tn_next(&p);) {
        if (p.tensor == m->axial[0] || p.tensor == m->axial[1]) continue;
        if (tn_ndim(p.tensor) > 1) tn_init_normal(p.tensor, 0, init);
        else if (strstr(p.name, "bias")) tn_init_zeros(p.tensor);
    }
}

tn_reformer *tn_reformer_create(tn_reformer_config c)
{
    char kinds[TN_REFORMER_LAYERS + 1];
    if (tn_error() != TN_OK || !tn__reformer_complete(&c, kinds)) return NULL;
    tn_reformer *m = tn_module_new(tn_reformer);
    if (!m) return NULL;
    memcpy(m->kinds, kinds, sizeof kinds);
    m->config = c, m->config.kinds = m->kinds;
    m->words = tn_child(m, "reformer.embeddings.word_embeddings", tn_embedding_new(.count = c.vocab, .dim = c.dim));
    positions_new(m, &c);
    m->layers = tn_child(m, "reformer.encoder.layers", tn_module_list_new());
    for (int64_t i = 0; i < c.layers && tn_error() == TN_OK; i++)
        tn_append(m->layers, tn__reformer_layer_new(&c, m->kinds[i] == 'h'));
    m->norm = tn_child(m, "reformer.encoder.layer_norm", tn_layer_norm_new(.dim = 2 * c.dim, .eps = c.eps));
    m->out = tn_weight(m, "lm_head.decoder.weight", tn_empty(TN_SHAPE(c.vocab, 2 * c.dim)));
    m->bias = tn_param(m, "lm_head.bias", tn_zeros(TN_SHAPE(c.vocab)));
    if (tn_error() == TN_OK) initialise(m, c.init);
    return tn_built(m);
}

/* ---- files: the weights have Hugging Face's names ---------------------------------------------------------------- */

void *tn__reformer_load(const tn_hf_source *source)
{
    tn__reformer_stored s = {.c = {TN_REFORMER_DEFAULTS}};
    tn_hf_weights       w;
    if (!tn_hf_source_read(source, tn__reformer_table(), &s)) return NULL;
    tn_reformer_config *c = &s.c;
    if (s.axial && !c->axial[0]) c->axial[0] = c->axial[1] = 64, c->axial_dim[0] = 64, c->axial_dim[1] = 192;
    if (!s.axial) c->axial[0] = c->axial[1] = 0;
    c->layers = (int64_t)strlen(s.kinds), c->kinds = s.kinds;
    const int64_t inner = c->dim * (3 * c->heads * c->head_dim + 2 * c->ff);
    const int64_t positions = s.axial ? 0 : c->positions * c->dim;
    const bool    ok = tn_hf_weights_open(&w, source, 3 * c->vocab * c->dim + positions + c->layers * inner, 0);
    tn_reformer  *m = ok ? tn_reformer_create(*c) : NULL;
    if (m) m->begin = s.begin, m->end = s.end, m->padding = s.padding, m->decoder_begin = s.decoder_begin;
    return tn_hf_weights_load(&w, m, tn__reformer_table_of(w.file));
}
tn_reformer *tn_reformer_load(const char *dir) { return tn_hf_load(dir, tn__reformer_load); }

tn_status tn_reformer_save(tn_reformer *m, const char *dir)
{
    if (!tn_ready(m)) return tn_error();
    tn__reformer_stored s = {.c = m->config,
                             .axial = m->axial[0] != NULL,
                             .begin = m->begin,
                             .end = m->end,
                             .padding = m->padding,
                             .decoder_begin = m->decoder_begin};
    memcpy(s.kinds, m->kinds, sizeof s.kinds);
    return tn_hf_write(m, dir, tn__reformer_table(), &s);
}
