/* rnn_lm.c — a recurrent language model with the regularisation of AWD-LSTM (Merity, Keskar and Socher 2018).
 *
 *   x = drop(E w),  hᵢ = rnnᵢ(drop(hᵢ₋₁)),  logits = drop(h) Eᵀ + b, or, untied, drop(h) Wᵀ + b or an adaptive softmax
 *   loss + α mean(drop(h)²) + β mean((hₜ₊₁ - hₜ)²) */
#include "extras/rnn_lm/rnn_lm_private.h"

#include <stdio.h>
#include <string.h>

static void describe(const void *self, char *text, size_t size)
{
    const tn_rnn_lm_config *c = &((const tn_rnn_lm *)self)->config;
    snprintf(text, size, "vocab=%lld, dim=%lld, hidden=%lld, layers=%lld, cell=%s", (long long)c->vocab,
             (long long)c->dim, (long long)c->hidden, (long long)c->layers, c->cell);
}
static tn_tensor *forward(void *self, tn_tensor *ids) { return tn_rnn_lm_forward((tn_rnn_lm *)self, ids); }

/* Sequences may have any length; the length used in training is not stored. */
static tn_lm_info info(const void *self)
{
    enum { LONG = 1 << 16 };
    const tn_rnn_lm_config *c = &((const tn_rnn_lm *)self)->config;
    return (tn_lm_info){TN__RNN_LM_TYPE, c->vocab, c->dim, c->layers, 1, 1, LONG, false, NULL, NULL, NULL, 0, 0, 0, 0};
}
static tn_tensor *run(void *self, tn_decoder_args a)
{
    if (a.cache) return tn_raise_null(TN_EUNSUPPORTED, "RnnLm: this model has no key/value cache; omit .cache");
    return tn_rnn_lm_forward((tn_rnn_lm *)self, a.ids, .last = a.last, .vectors = a.vectors);
}
static tn_tensor *loss(void *self, tn_tensor *ids, tn_tensor *targets)
{
    return tn_rnn_lm_loss((tn_rnn_lm *)self, ids, targets);
}
static tn_decoding *new_decoding(void *self, int64_t rows, int64_t n) { return tn_rnn_lm_decoding(self, rows, n); }
static tn_status    save(void *self, const char *dir) { return tn_rnn_lm_save(self, dir); }

static const tn_lm_ops ops = {.info = info, .run = run, .loss = loss, .decoding = new_decoding, .save = save};
static const tn_class  tn_rnn_lm_class = {.size = sizeof(tn_class),
                                          .name = "RnnLm",
                                          .bytes = sizeof(tn_rnn_lm),
                                          .forward = forward,
                                          .describe = describe,
                                          .lm = &ops};

/* ---- config.json ------------------------------------------------------------------------------------------------- */

static const char *const cells[] = {"lstm", "gru", "elman", NULL};
/* clang-format off */
#define CUTOFF(i) TN_HF("cutoff_" #i, tn_rnn_lm_config, cutoffs[i], .high = 10000000, .omitted = true)
#define CHANCE(key, member) TN_HF(key, tn_rnn_lm_config, member, .high = 1, .below = true)
static const tn_hf_row members[] = {
    {"architectures", TN_HF_NAME, .text = "TenonRnnLm"},
    {"cell", TN_HF_CHOICE, .at = offsetof(tn_rnn_lm_config, cell), .choices = cells, .name = "cell"},
    CUTOFF(0), CUTOFF(1), CUTOFF(2),
    CHANCE("dropout", dropout), CHANCE("dropout_between", dropout_between), CHANCE("dropout_in", dropout_in),
    CHANCE("dropout_words", dropout_words),
    TN_HF("embedding_size", tn_rnn_lm_config, dim, .needed = true, .low = 1, .high = 65536),
    TN_HF("hidden_size", tn_rnn_lm_config, hidden, .needed = true, .low = 1, .high = 65536),
    TN_HF("initializer_range", tn_rnn_lm_config, init, .otherwise = 0.1, .high = 1),
    {"model_type", TN_HF_TYPE, .text = TN__RNN_LM_TYPE},
    TN_HF("num_layers", tn_rnn_lm_config, layers, .needed = true, .low = 1, .high = TN_RNN_LM_LAYERS),
    TN_HF("tie_word_embeddings", tn_rnn_lm_config, untied, .otherwise = true, .opposite = true),
    TN_HF("unlocked_dropout", tn_rnn_lm_config, unlocked, .omitted = true),
    TN_HF("vocab_size", tn_rnn_lm_config, vocab, .needed = true, .low = 1, .high = 10000000),
    CHANCE("weight_drop", weight_drop),
};
/* clang-format on */
static const tn_hf_files table = {members, TN_HF_COUNT_(members), NULL, 0};

/* ---- building ---------------------------------------------------------------------------------------------------- */

static bool complete(tn_rnn_lm_config *c)
{
    static const char *const who = "tn_rnn_lm_new";
    if (c->dropout_in < 0) c->dropout_in = c->dropout;
    if (c->dropout_between < 0) c->dropout_between = c->dropout;
    int k = 0;
    for (; c->cell && cells[k] && strcmp(c->cell, cells[k]) != 0;) k++;
    if (!cells[k])
        return tn_raise_false(TN_EINVAL, "%s: .cell is '%.20s', but must be lstm, gru or elman", who, c->cell);
    c->cell = cells[k];
    if (!tn_hf_config_within(who, &table, c)) return false;
    if (c->cutoffs[0] && !c->untied)
        return tn_raise_false(TN_EINVAL, "%s: .cutoffs need .untied, because an adaptive softmax has its own weights",
                              who);
    if (c->cutoffs[3]) return tn_raise_false(TN_EINVAL, "%s: .cutoffs has more than 3 values", who);
    return true;
}

static int64_t width(const tn_rnn_lm_config *c, int64_t layer)
{
    return layer == c->layers - 1 && !c->untied ? c->dim : c->hidden;
}

static tn_rnn *layer_of(const tn_rnn_lm_config *c, int64_t i)
{
    const tn_rnn_config r = {TN_RNN_DEFAULTS, .in = i ? width(c, i - 1) : c->dim, .hidden = width(c, i),
                             .weight_drop = c->weight_drop};
    return c->cell == cells[0] ? tn_lstm_create(r) : c->cell == cells[1] ? tn_gru_create(r) : tn_rnn_create(r);
}

tn_rnn_lm_config tn_rnn_lm_size(const char *name)
{
    static const tn_model_size sizes[] = {{"tiny", 64, 1, 0, 64, 0.1},     {"small", 200, 2, 0, 200, 0.2},
                                          {"medium", 650, 2, 0, 650, 0.5}, {"large", 1500, 2, 0, 1500, 0.65},
                                          {"awd", 400, 3, 0, 1150, 0.4},   {0}};
    const tn_model_size       *s = tn_model_size_find(__func__, sizes, name);
    return s ? TN_WITH(tn_rnn_lm_config, TN_RNN_LM_DEFAULTS, .dim = s->dim, .hidden = s->hidden, .layers = s->layers,
                       .dropout = s->dropout)
             : (tn_rnn_lm_config){.zero_ = 0};
}

tn_rnn_lm *tn_rnn_lm_create(tn_rnn_lm_config c)
{
    if (tn_error() != TN_OK || !complete(&c)) return NULL;
    tn_rnn_lm *m = tn_module_new(tn_rnn_lm);
    if (!m) return NULL;
    m->config = c;
    m->words = tn_child(m, "encoder", tn_embedding_new(.count = c.vocab, .dim = c.dim, .dropout = c.dropout_words));
    if (m->words) tn_init_uniform(m->words->weight, -c.init, c.init);
    m->layer = tn_array(m, c.layers, tn_rnn *);
    for (int64_t i = 0; i < c.layers && tn_error() == TN_OK; i++)
        m->layer[i] = tn_child(m, tn_name("rnns.%lld", (long long)i), layer_of(&c, i));
    const int64_t last = width(&c, c.layers - 1);
    if (c.cutoffs[0]) {
        tn_adaptive_softmax_config a = {TN_ADAPTIVE_SOFTMAX_DEFAULTS, .in = last, .classes = c.vocab};
        memcpy(a.cutoffs, c.cutoffs, sizeof a.cutoffs);
        m->adaptive = tn_child(m, "decoder", tn_adaptive_softmax_create(a));
        return tn_built(m);
    }
    if (c.untied) m->out = tn_weight(m, "decoder.weight", tn_uniform(TN_SHAPE(c.vocab, last), -c.init, c.init));
    else if (m->words) m->out = m->words->weight;
    m->bias = tn_param(m, "decoder.bias", tn_zeros(TN_SHAPE(c.vocab)));
    return tn_built(m);
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static tn_tensor *dropped(const tn_rnn_lm *m, tn_tensor *x, double p)
{
    if (!m->base.training || p <= 0 || !x) return x;
    if (m->config.unlocked) return tn_dropout(x, p);
    return tn_mul(x, tn_dropout(tn_ones_of(tn_dtype_of(x), TN_SHAPE(tn_size(x, 0), 1, tn_size(x, 2))), p));
}

static tn_tensor *state_in(tn_tensor *state) { return state ? tn_unsqueeze(state, 0) : NULL; }
static tn_tensor *state_out(tn_tensor *state) { return state ? tn_detach(tn_select(state, 0, 0)) : NULL; }

static bool ids_fit(const tn_tensor *ids)
{
    char text[192];
    if (ids && tn_ndim(ids) == 2) return true;
    return tn_raise_false(TN_ESHAPE, "RnnLm: ids must be [batch, length], got %s",
                          ids ? tn_shape_text(tn_shape_of(ids), text, sizeof text) : "NULL");
}

/* The last layer's hidden states [B, T, n], before dropout; updates `states` if not NULL. */
static tn_tensor *hidden_states(tn_rnn_lm *m, tn_tensor *ids, tn_tensor **states)
{
    const tn_rnn_lm_config *c = &m->config;
    if (!ids_fit(ids)) return NULL;
    tn_tensor *x = dropped(m, tn_call(m->words, ids), c->dropout_in), *h, *cell;
    for (int64_t i = 0; i < c->layers && tn_error() == TN_OK; i++) {
        const bool  lstm = c->cell == cells[0];
        tn_rnn_args a = {.x = x, .h_n = states ? &h : NULL, .c_n = states && lstm ? &cell : NULL};
        if (states) a.h0 = state_in(states[2 * i]), a.c0 = lstm ? state_in(states[2 * i + 1]) : NULL;
        x = tn_rnn_run(m->layer[i], a);
        if (states) states[2 * i] = state_out(h), states[2 * i + 1] = lstm ? state_out(cell) : NULL;
        if (i + 1 < c->layers) x = dropped(m, x, c->dropout_between);
    }
    return x;
}

/* Leaves the frame with the result y and the new states; on failure `states` is unchanged. */
static tn_tensor *leave(const tn_rnn_lm *m, tn_frame f, tn_tensor *y, tn_tensor **now, tn_tensor **states)
{
    tn_tensor **out[TN_RNN_LM_STATES + 1] = {&y};
    int         n = 1;
    for (int64_t i = 0; states && i < 2 * m->config.layers; i++)
        if (now[i]) out[n++] = &now[i];
    tn_leave_list(f, n, out);
    for (int64_t i = 0; y && states && i < 2 * m->config.layers; i++) states[i] = now[i];
    return y;
}

static void copy_states(const tn_rnn_lm *m, tn_tensor **now, tn_tensor **states)
{
    for (int64_t i = 0; states && i < 2 * m->config.layers; i++) now[i] = states[i];
}

tn_tensor *tn_rnn_lm_run(tn_rnn_lm *m, tn_rnn_lm_args a)
{
    tn_tensor *now[TN_RNN_LM_STATES] = {NULL};
    if (!tn_ready(m)) return NULL;
    copy_states(m, now, a.states);
    const tn_frame f = tn_enter(m);
    tn_tensor     *y = dropped(m, hidden_states(m, a.ids, a.states ? now : NULL), m->config.dropout);
    if (y && a.last) y = tn_narrow(y, 1, tn_size(y, 1) - 1, 1);
    if (y && !a.vectors) y = m->adaptive ? tn_adaptive_softmax_log_prob(m->adaptive, y) : tn_linear(y, m->out, m->bias);
    return leave(m, f, y, now, a.states);
}

static tn_tensor *regularised(tn_tensor *loss, tn_tensor *raw, tn_tensor *y, const tn_rnn_lm_args *a)
{
    const int64_t n = tn_size(raw, 1);
    if (a->alpha > 0) loss = tn_add(loss, tn_mul_scalar(tn_mean(tn_square(y)), a->alpha));
    if (a->beta > 0 && n > 1) {
        tn_tensor *change = tn_sub(tn_narrow(raw, 1, 1, n - 1), tn_narrow(raw, 1, 0, n - 1));
        loss = tn_add(loss, tn_mul_scalar(tn_mean(tn_square(change)), a->beta));
    }
    return loss;
}

tn_tensor *tn_rnn_lm_loss_run(tn_rnn_lm *m, tn_rnn_lm_args a)
{
    tn_tensor *now[TN_RNN_LM_STATES] = {NULL}, *loss = NULL;
    if (!tn_ready(m)) return NULL;
    copy_states(m, now, a.states);
    const tn_frame f = tn_enter(m);
    if (!a.targets && ids_fit(a.ids)) { /* each token from those before it */
        const int64_t n = tn_size(a.ids, 1);
        if (n < 2)
            tn_raise(TN_ESHAPE, "RnnLm: a sequence of length %lld has no next token as target; pass targets",
                     (long long)n);
        else a.targets = tn_narrow(a.ids, 1, 1, n - 1), a.ids = tn_narrow(a.ids, 1, 0, n - 1);
    }
    tn_tensor *raw = tn_error() == TN_OK ? hidden_states(m, a.ids, a.states ? now : NULL) : NULL;
    tn_tensor *y = dropped(m, raw, m->config.dropout);
    if (y) {
        loss = m->adaptive ? tn_adaptive_softmax_forward(m->adaptive, y, a.targets, NULL)
                           : tn_linear_cross_entropy(y, m->out, m->bias, a.targets);
        if (loss && m->base.training) loss = regularised(loss, raw, y, &a);
    }
    return leave(m, f, loss, now, a.states);
}

/* ---- generating -------------------------------------------------------------------------------------------------- */

typedef struct {
    tn_decoding base;
    tn_rnn_lm  *m;
    tn_tensor  *state[TN_RNN_LM_STATES]; /* NULL before the first tokens */
    int64_t     read;                    /* tokens of each row */
} decoding;

static void replace(tn_tensor **place, tn_tensor *t)
{
    if (t) tn_keep(t);
    if (*place) tn_drop(*place);
    *place = t;
}

static tn_tensor *scores(tn_decoding *base, tn_tensor *tokens)
{
    decoding  *d = (decoding *)base;
    tn_tensor *now[TN_RNN_LM_STATES];
    memcpy(now, d->state, sizeof now);
    tn_tensor *y = tn_rnn_lm_forward(d->m, tokens, .states = now, .last = true);
    for (int i = 0; y && i < TN_RNN_LM_STATES; i++) replace(&d->state[i], now[i]);
    if (y) d->read += tn_size(tokens, 1);
    return tn_select(y, 1, 0);
}

static tn_status reorder(tn_decoding *base, tn_tensor *index)
{
    decoding  *d = (decoding *)base;
    tn_tensor *now[TN_RNN_LM_STATES] = {NULL};
    for (int i = 0; i < TN_RNN_LM_STATES; i++)
        if (d->state[i]) now[i] = tn_index_select(d->state[i], 0, index);
    for (int i = 0; tn_error() == TN_OK && i < TN_RNN_LM_STATES; i++) replace(&d->state[i], now[i]);
    return tn_error();
}

static void end(tn_decoding *base)
{
    decoding *d = (decoding *)base;
    for (int i = 0; i < TN_RNN_LM_STATES; i++) replace(&d->state[i], NULL);
    tn_mem_put(d, sizeof *d);
}
static int64_t                tokens_read(const tn_decoding *base) { return ((const decoding *)base)->read; }
static const tn_decoding_kind kind = {sizeof(tn_decoding_kind), scores, reorder, end, tokens_read};

tn_decoding *tn_rnn_lm_decoding(tn_rnn_lm *m, int64_t rows, int64_t length)
{
    if (!tn_ready(m)) return NULL;
    if (rows < 1 || length < 1)
        return tn_raise_null(TN_EINVAL, "tn_rnn_lm_decoding: %lld rows of length %lld, but both must be at least 1",
                             (long long)rows, (long long)length);
    decoding *d = tn_mem_get(sizeof *d);
    if (!d) return NULL;
    *d = (decoding){.base = {&kind, rows, length}, .m = m};
    return &d->base;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

void *tn__rnn_lm_load(const tn_hf_source *s)
{
    tn_rnn_lm_config c = {.zero_ = 0};
    tn_hf_weights    w;
    if (!tn_hf_source_read(s, &table, &c)) return NULL;
    int64_t n = c.vocab * c.dim;
    for (int64_t i = 0; i < c.layers; i++) n += width(&c, i) * ((i ? width(&c, i - 1) : c.dim) + width(&c, i));
    const bool ok = tn_hf_weights_open(&w, s, n, 0);
    return tn_hf_weights_load(&w, ok ? tn_rnn_lm_create(c) : NULL, &table);
}
tn_rnn_lm *tn_rnn_lm_load(const char *dir) { return tn_hf_load(dir, tn__rnn_lm_load); }

tn_status tn_rnn_lm_save(tn_rnn_lm *m, const char *dir)
{
    return tn_ready(m) ? tn_hf_write(m, dir, &table, &m->config) : tn_error();
}
