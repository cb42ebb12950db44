/* elmo.c — ELMo, a bidirectional language model (Peters et al. 2018).
 *
 *   x  = projection(highway(max over positions of relu(conv(characters))))      once per distinct word
 *   h₁ = lstm₁(x),  h₂ = lstm₂(h₁) + h₁                                          for each direction
 *   loss: each word is predicted from h₂ of the word before, and from h₂ of the word after; one output layer for both
 *
 * The backward direction runs forward over rows that are reversed, each by its own length. */
#include "data/data.h"
#include "extras/elmo.h"
#include "models/models.h"

#include <stdio.h>
#include <string.h>

static void describe(const void *self, char *text, size_t size)
{
    const tn_elmo_config *c = &((const tn_elmo *)self)->config;
    snprintf(text, size, "vocab=%lld, dim=%lld, hidden=%lld", (long long)c->vocab, (long long)c->dim,
             (long long)c->hidden);
}
static const tn_class tn_elmo_class = {
    .size = sizeof(tn_class), .name = "Elmo", .bytes = sizeof(tn_elmo), .describe = describe};

/* ---- config.json and building ------------------------------------------------------------------------------------ */

/* clang-format off */
static const tn_hf_row members[] = {
    {"architectures", TN_HF_NAME, .text = "TenonElmo"},
    TN_HF("char_embedding_size", tn_elmo_config, letters, .needed = true, .low = 1, .high = 1024),
    TN_HF("conv_filters", tn_elmo_config, filters, .needed = true, .low = 1, .high = 4096),
    TN_HF("conv_widths", tn_elmo_config, widths, .needed = true, .low = 1, .high = TN_ELMO_WIDTHS),
    TN_HF("dropout", tn_elmo_config, dropout, .high = 1, .below = true),
    TN_HF("hidden_size", tn_elmo_config, hidden, .needed = true, .low = 2, .high = 65536),
    TN_HF("max_word_bytes", tn_elmo_config, longest, .needed = true, .low = 5, .high = 1024),
    {"model_type", TN_HF_TYPE, .text = "tenon_elmo"},
    TN_HF("num_highways", tn_elmo_config, highways, .needed = true, .low = 1, .high = 16),
    TN_HF("projection_size", tn_elmo_config, dim, .needed = true, .low = 1, .high = 65535),
    TN_HF("vocab_size", tn_elmo_config, vocab, .needed = true, .low = 2, .high = 10000000),
};
/* clang-format on */
static const tn_hf_files table = {members, TN_HF_COUNT_(members), NULL, 0};

/* Character ids. 0: padding; a byte is its value + 1; the begin and end of a word; the two sentence markers. */
enum { LETTER_NONE, LETTER_BEGIN = 257, LETTER_END, LETTER_FIRST, LETTER_LAST, LETTERS };

static int64_t filters_in_all(const tn_elmo_config *c) { return c->filters * c->widths * (c->widths + 1) / 2; }

tn_elmo_config tn_elmo_size(const char *name)
{
    static const tn_model_size sizes[] = {{.name = "tiny", .dim = 32, .hidden = 64},
                                          {.name = "small", .dim = 128, .hidden = 512},
                                          {.name = "medium", .dim = 256, .hidden = 1024},
                                          {.name = "large", .dim = 512, .hidden = 4096},
                                          {0}};
    const tn_model_size       *s = tn_model_size_find(__func__, sizes, name);
    return s ? TN_WITH(tn_elmo_config, TN_ELMO_DEFAULTS, .dim = s->dim, .hidden = s->hidden)
             : (tn_elmo_config){.zero_ = 0};
}

tn_elmo *tn_elmo_create(tn_elmo_config c)
{
    if (tn_error() != TN_OK || !tn_hf_config_within("tn_elmo_new", &table, &c)) return NULL;
    if (c.dim >= c.hidden)
        return tn_raise_null(
            TN_EINVAL, "tn_elmo_new: .dim is %lld, but must be less than .hidden %lld, from which it is projected",
            (long long)c.dim, (long long)c.hidden);
    tn_elmo *m = tn_module_new(tn_elmo);
    if (!m) return NULL;
    m->config = c;
    m->letters =
        tn_child(m, "char_embedding", tn_embedding_new(.count = LETTERS, .dim = c.letters, .padding = LETTER_NONE));
    for (int64_t i = 0; i < c.widths && tn_error() == TN_OK; i++)
        m->conv[i] = tn_child(m, tn_name("char_conv_%lld", (long long)i),
                              tn_conv1d_new(.in = c.letters, .out = c.filters * (i + 1), .size = i + 1));
    const int64_t all = filters_in_all(&c);
    m->highway = tn_child(m, "highway", tn_highway_new(.dim = all, .layers = c.highways));
    m->projection = tn_child(m, "projection", tn_linear_new(.in = all, .out = c.dim));
    for (int i = 0; i < 2 && tn_error() == TN_OK; i++) {
        m->forward[i] = tn_child(m, tn_name("forward_layer_%d", i),
                                 tn_lstm_new(.in = c.dim, .hidden = c.hidden, .proj_size = c.dim));
        m->backward[i] = tn_child(m, tn_name("backward_layer_%d", i),
                                  tn_lstm_new(.in = c.dim, .hidden = c.hidden, .proj_size = c.dim));
    }
    m->out = tn_weight(m, "decoder.weight", tn_uniform(TN_SHAPE(c.vocab, c.dim), -0.1, 0.1));
    m->bias = tn_param(m, "decoder.bias", tn_zeros(TN_SHAPE(c.vocab)));
    return tn_built(m);
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static bool batch_fits(const tn_elmo *m, const tn_elmo_batch *b)
{
    if (b && b->words && b->rows && b->lengths && tn_ndim(b->words) == 2 && tn_ndim(b->rows) == 2 &&
        tn_size(b->words, 1) == m->config.longest + 2 && tn_size(b->rows, 1) >= 2 &&
        tn_numel(b->lengths) == tn_size(b->rows, 0))
        return true;
    return tn_raise_false(TN_EINVAL, "elmo: the batch was not made by tn_elmo_sentences for this model");
}

/* One vector for each distinct word, [U, dim]. */
static tn_tensor *encode_words(tn_elmo *m, tn_tensor *words)
{
    tn_tensor *x = tn_transpose(tn_call(m->letters, words), 1, 2), *part[TN_ELMO_WIDTHS]; /* [U, letters, bytes] */
    for (int64_t i = 0; i < m->config.widths && tn_error() == TN_OK; i++)
        part[i] = tn_relu(tn_amax(tn_call(m->conv[i], x), .dims = TN_DIMS(2)));
    if (tn_error() != TN_OK) return NULL;
    return tn_call(m->projection, tn_call(m->highway, tn_cat_list(1, (int)m->config.widths, part)));
}

/* The index that reverses each row of length n + 2: n + 1 - position; positions after the end map to themselves. */
static tn_tensor *reversing_index(const tn_elmo_batch *b)
{
    const int64_t rows = tn_size(b->rows, 0), width = tn_size(b->rows, 1);
    tn_tensor    *t = tn_empty_of(TN_I64, TN_SHAPE(rows, width));
    int64_t      *to = t ? tn_data_mut(t) : NULL;
    for (int64_t i = 0; to && i < rows * width; i++) {
        const int64_t n = tn_get_i64(b->lengths, i / width) + 2, at = i % width;
        to[i] = at < n ? n - 1 - at : at;
    }
    return t;
}

static tn_tensor *reversed(tn_tensor *x, tn_tensor *turn)
{
    return x ? tn_take_along(x, tn_expand(tn_unsqueeze(turn, 2), tn_shape_of(x)), 1) : NULL;
}

static tn_tensor *drop(const tn_elmo *m, tn_tensor *x)
{
    return m->base.training && m->config.dropout > 0 ? tn_dropout(x, m->config.dropout) : x;
}

/* Runs one direction: the outputs of both layers, [B, T + 2, dim]. */
static void direction(tn_elmo *m, tn_lstm *const *lstm, tn_tensor *x, tn_tensor *lengths, tn_tensor *to[2])
{
    to[0] = tn_lstm_forward(lstm[0], drop(m, x), .lengths = lengths);
    to[1] = to[0] ? tn_add(tn_lstm_forward(lstm[1], drop(m, to[0]), .lengths = lengths), to[0]) : NULL;
}

/* The word vectors, and the outputs of both layers, forward (left) and backward (right). */
static bool run_layers(tn_elmo *m, const tn_elmo_batch *b, tn_tensor **x, tn_tensor *left[2], tn_tensor *right[2])
{
    tn_tensor *rows = tn_embedding(encode_words(m, b->words), b->rows, -1, false), *turn = reversing_index(b);
    tn_tensor *whole = tn_add_scalar(b->lengths, 2);
    *x = rows;
    direction(m, m->forward, rows, whole, left);
    direction(m, m->backward, reversed(rows, turn), whole, right);
    for (int i = 0; i < 2 && tn_error() == TN_OK; i++) right[i] = reversed(right[i], turn);
    return tn_error() == TN_OK;
}

bool tn_elmo_vectors(tn_elmo *m, const tn_elmo_batch *b, tn_tensor *layer[TN_ELMO_LAYERS])
{
    tn_tensor *x, *left[2], *right[2];
    if (!layer) return tn_raise_false(TN_EINVAL, "tn_elmo_vectors: the output for the layers is NULL");
    for (int i = 0; i < TN_ELMO_LAYERS; i++) layer[i] = NULL;
    if (!tn_ready(m)) return false;
    const tn_frame f = tn_enter(m);
    if (batch_fits(m, b) && run_layers(m, b, &x, left, right)) {
        const int64_t n = tn_size(b->rows, 1) - 2;
        layer[0] = tn_narrow(tn_cat(2, x, x), 1, 1, n);
        for (int i = 0; i < 2; i++) layer[i + 1] = tn_narrow(tn_cat(2, left[i], right[i]), 1, 1, n);
    }
    tn_leave_n(f, &layer[0], &layer[1], &layer[2]);
    return tn_error() == TN_OK;
}

/* The targets of one direction; -100 after the end of a row. */
static tn_tensor *direction_targets(const tn_elmo_batch *b, const tn_tensor *targets, bool from_left)
{
    const int64_t rows = tn_size(b->rows, 0), width = tn_size(b->rows, 1);
    tn_tensor    *t = tn_empty_of(TN_I64, TN_SHAPE(rows, width - 1));
    int64_t      *to = t ? tn_data_mut(t) : NULL;
    for (int64_t i = 0; to && i < rows * (width - 1); i++) {
        const int64_t row = i / (width - 1), at = i % (width - 1), n = tn_get_i64(b->lengths, row) + 2;
        to[i] = at + 1 < n ? tn_get_i64(targets, row * width + at + from_left) : -100;
    }
    return t;
}

tn_tensor *tn_elmo_loss(tn_elmo *m, const tn_elmo_batch *b, tn_tensor *targets)
{
    tn_tensor *x, *left[2], *right[2], *loss = NULL;
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    if (batch_fits(m, b) && targets && !tn_shape_equal(tn_shape_of(targets), tn_shape_of(b->rows)))
        tn_raise(TN_ESHAPE, "elmo: the targets must have the shape of the batch's rows");
    if (tn_error() == TN_OK && !targets) tn_raise(TN_EINVAL, "elmo: the targets are NULL");
    if (tn_error() == TN_OK && run_layers(m, b, &x, left, right)) {
        const int64_t n = tn_size(b->rows, 1) - 1;
        tn_tensor    *next = tn_linear_cross_entropy(drop(m, tn_narrow(left[1], 1, 0, n)), m->out, m->bias,
                                                     direction_targets(b, targets, true));
        tn_tensor    *before = tn_linear_cross_entropy(drop(m, tn_narrow(right[1], 1, 1, n)), m->out, m->bias,
                                                       direction_targets(b, targets, false));
        loss = tn_mul_scalar(tn_add(next, before), 0.5);
    }
    return tn_leave(f, loss);
}

/* ---- sentences --------------------------------------------------------------------------------------------------- */

static void encode_word(const tn_elmo *m, const char *word, size_t bytes, int64_t *to)
{
    const int64_t longest = m->config.longest;
    int64_t       n = 0;
    to[n++] = LETTER_BEGIN;
    for (size_t i = 0; i < bytes && n <= longest; i++) to[n++] = (unsigned char)word[i] + 1;
    to[n++] = LETTER_END;
    while (n < longest + 2) to[n++] = LETTER_NONE;
}

/* Adds all words to v, which splits the lines; returns the maximum number of words in a line. */
static int64_t add_words(tn_vocab *v, int64_t n, const tn_text *lines, int64_t *lengths)
{
    int64_t most = 0;
    for (int64_t i = 0; i < n && tn_vocab_read(v, lines[i].at, lines[i].bytes) == TN_OK; i++) {
        const tn_tensor *ids = tn_vocab_encode(v, lines[i].at, lines[i].bytes);
        lengths[i] = ids ? tn_numel(ids) : 0;
        if (lengths[i] > most) most = lengths[i];
    }
    return most;
}

/* The row of a word in the batch, where 0 and 1 are begin and end. v's own ids 0 and 1, "<pad>" and "<unk>", are
 * ordinary words if a text contains them, and get the rows after all others. */
static int64_t row_of(const tn_vocab *v, int64_t id) { return id < TN_VOCAB_FIRST ? tn_vocab_size(v) + id : id; }
static bool    is_read(const tn_vocab *v, int64_t id) { return tn_vocab_count(v, id) > 0; }

static void encode_all(const tn_elmo *m, const tn_vocab *v, int64_t *to)
{
    const int64_t width = m->config.longest + 2;
    encode_word(m, "", 0, to), encode_word(m, "", 0, to + width);
    to[1] = LETTER_FIRST, to[width + 1] = LETTER_LAST, to[2] = to[width + 2] = LETTER_END;
    for (int64_t id = 0; id < tn_vocab_size(v); id++) {
        const char *word = tn_vocab_word(v, id);
        if (is_read(v, id)) encode_word(m, word, strlen(word), to + row_of(v, id) * width);
    }
}

tn_elmo_batch tn_elmo_sentences(const tn_elmo *m, int64_t n, const tn_text *lines)
{
    tn_elmo_batch b = {.words = NULL};
    if (!tn_module_ready(__func__, (void *)(uintptr_t)m)) return b;
    if (n < 1 || !lines) return tn_raise(TN_EINVAL, "tn_elmo_sentences: no lines"), b;
    const tn_scope s = tn_scope_begin();
    tn_vocab      *v = tn_vocab_new();
    b.lengths = tn_zeros_of(TN_I64, TN_SHAPE(n));
    const int64_t most = v && b.lengths ? add_words(v, n, lines, tn_data_mut(b.lengths)) : 0;
    const bool    special = v && (is_read(v, TN_VOCAB_PADDING) || is_read(v, TN_VOCAB_UNKNOWN));
    const int64_t words = tn_vocab_size(v) + (special ? TN_VOCAB_FIRST : 0);
    b.rows = tn_ones_of(TN_I64, TN_SHAPE(n, most + 2));
    b.words = tn_zeros_of(TN_I64, TN_SHAPE(words, m->config.longest + 2));
    int64_t *row = b.rows ? tn_data_mut(b.rows) : NULL, *to = b.words ? tn_data_mut(b.words) : NULL;
    if (row && to && tn_error() == TN_OK) encode_all(m, v, to);
    for (int64_t i = 0; row && to && i < n && tn_error() == TN_OK; i++, row += most + 2) {
        const tn_tensor *ids = tn_vocab_encode(v, lines[i].at, lines[i].bytes);
        row[0] = 0;
        for (int64_t k = 0; ids && k < tn_numel(ids); k++) row[k + 1] = row_of(v, tn_get_i64(ids, k));
    }
    tn_vocab_free(v);
    const bool failed = tn_error() != TN_OK;
    tn_scope_return_list(s, 3, (tn_tensor *[]){b.words, b.rows, b.lengths});
    return failed ? (tn_elmo_batch){.words = NULL} : b;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static void *load(const tn_hf_source *s)
{
    tn_elmo_config c = {.zero_ = 0};
    tn_hf_weights  w;
    if (!tn_hf_source_read(s, &table, &c)) return NULL;
    const int64_t all = filters_in_all(&c), lstm = 4 * c.hidden * 2 * c.dim + c.hidden * c.dim;
    const int64_t n = c.vocab * c.dim + 4 * lstm + all * (2 * all * c.highways + c.dim);
    const bool    ok = tn_hf_weights_open(&w, s, n, 0);
    return tn_hf_weights_load(&w, ok ? tn_elmo_create(c) : NULL, &table);
}
tn_elmo *tn_elmo_load(const char *dir) { return tn_hf_load(dir, load); }

tn_status tn_elmo_save(tn_elmo *m, const char *dir)
{
    return tn_ready(m) ? tn_hf_write(m, dir, &table, &m->config) : tn_error();
}
