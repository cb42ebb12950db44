/* train.c — elmo train: the part of a training that is specific to ELMo and skip-thought; the rest is in
 * common/train.c. Each line is a sentence of words separated by blanks. A step takes some lines at random, an epoch
 * each line once. Skip-thought learns to generate the lines before and after a line. */
#include "../common/checksum.h"
#include "elmo.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 60 /* words of a sentence; the rest is ignored */, MOST_ROWS = 4096 };

typedef struct {
    training    base;
    option_list text, valid;
    const char *model;
    int64_t     batch, hidden;
    double      valid_part;
    tn_string   all;
    text_lines  learned, held;
    int64_t    *order; /* order of the training lines in this epoch */
    int64_t     epoch, at, held_at, words;
    tn_shard    shard, held_shard;
    void       *now; /* the model being trained or timed; borrowed */
} elmo_training;

static elmo_training *of(training *t) { return (elmo_training *)t; }

/* ---- sentences --------------------------------------------------------------------------------------------------- */

/* Cuts a line after LONGEST words. Returns the number of words. */
static int64_t cut(tn_text *line)
{
    int64_t n = 0;
    tn_text word;
    for (size_t at = 0; n < LONGEST && texts_word(*line, &at, &word);)
        if (++n == LONGEST) line->bytes = at;
    return n;
}

static bool split(text_lines *l, tn_text text, int64_t *words)
{
    for (size_t at = 0; at < text.bytes && tn_error() == TN_OK;) {
        const char *end = memchr(text.at + at, '\n', text.bytes - at);
        tn_text     line = {text.at + at, (end ? (size_t)(end - text.at) : text.bytes) - at};
        at += line.bytes + 1;
        if (line.bytes && line.at[line.bytes - 1] == '\r') line.bytes--;
        const int64_t n = cut(&line);
        *words += n;
        if (n) lines_add(l, line);
    }
    return tn_error() == TN_OK;
}

/* Writes the token ids of a line's words to `to`; 0 for an unknown word. */
static void number(const tn_tokenizer *t, tn_text line, int64_t *to)
{
    char    name[256];
    tn_text word;
    for (size_t at = 0; texts_word(line, &at, &word);) {
        const int n = word.bytes < sizeof name ? (int)word.bytes : 0;
        snprintf(name, sizeof name, "%.*s", n, word.at);
        const int64_t id = n ? tn_tokenizer_id(t, name) : -1;
        *to++ = id < 0 ? 0 : id;
    }
}

static bool is_thoughts(const elmo_training *g) { return strcmp(g->model, "elmo") != 0; }

/* Token ids [n, longest] of the lines which[0..n-1] + by, padded with `pad`. If by is not 0, each line ends with <eos>;
 * a line that does not exist is empty. lengths, if not NULL, receives the number of tokens of each line. */
static tn_tensor *rows_of(const elmo_training *g, const text_lines *l, int64_t n, const int64_t *which, int64_t by,
                          int64_t pad, tn_tensor *lengths)
{
    int64_t of[MOST_ROWS], most = 1;
    for (int64_t i = 0; i < n; i++) {
        const int64_t k = which[i] + by;
        tn_text       line = k >= 0 && k < l->count ? l->line[k] : (tn_text){"", 0};
        of[i] = k >= 0 && k < l->count ? cut(&line) + (by != 0) : 0;
        most = of[i] > most ? of[i] : most;
        if (lengths) tn_set_i64(lengths, i, of[i]);
    }
    tn_tensor *t = tn_full_of(TN_I64, TN_SHAPE(n, most), (double)pad);
    int64_t   *to = t ? tn_data_mut(t) : NULL;
    for (int64_t i = 0; to && i < n; i++) {
        if (!of[i]) continue;
        number(g->base.tokens, l->line[which[i] + by], to + i * most);
        if (by) to[i * most + of[i] - 1] = 1; /* <eos> */
    }
    return t;
}

static bool fill_thoughts(const elmo_training *g, tn_batch *b, const text_lines *l, int64_t n, const int64_t *which)
{
    tn_tensor *lengths = tn_zeros_of(TN_I64, TN_SHAPE(n));
    b->x = rows_of(g, l, n, which, 0, 0, lengths), b->y = rows_of(g, l, n, which, 1, -100, NULL);
    tn_tensor *before = rows_of(g, l, n, which, -1, -100, NULL);
    for (int64_t i = 0; lengths && i < n; i++) b->items += tn_get_i64(lengths, i);
    return tn_batch_put(b, "lengths", lengths) == TN_OK && tn_batch_put(b, "before", before) == TN_OK;
}

static bool fill(elmo_training *g, tn_batch *b, const text_lines *l, int64_t n, const int64_t *which)
{
    tn_text lines[MOST_ROWS];
    if (!n) { /* a shard without a row */
        b->x = tn_zeros_of(TN_I64, TN_SHAPE(0, 1)), b->y = tn_zeros_of(TN_I64, TN_SHAPE(0, 1));
        return tn_error() == TN_OK;
    }
    if (is_thoughts(g)) return fill_thoughts(g, b, l, n, which);
    for (int64_t i = 0; i < n; i++) lines[i] = l->line[which[i]];
    const tn_elmo_batch s = tn_elmo_sentences(g->now, n, lines);
    if (tn_error() != TN_OK) return false;
    const int64_t width = tn_size(s.rows, 1);
    b->x = s.words, b->y = tn_ones_of(TN_I64, tn_shape_of(s.rows)); /* 1 is <eos>, at both ends of a sentence */
    int64_t *to = b->y ? tn_data_mut(b->y) : NULL;
    for (int64_t i = 0; to && i < n; i++) number(g->base.tokens, lines[i], to + i * width + 1);
    for (int64_t i = 0; i < n; i++) b->items += tn_get_i64(s.lengths, i);
    return tn_batch_put(b, "rows", s.rows) == TN_OK && tn_batch_put(b, "lengths", s.lengths) == TN_OK;
}

/* Shuffles the lines; the order depends only on the seed and the epoch. */
static void shuffle(elmo_training *g)
{
    tn_generator r = {.seed = (uint64_t)g->base.asked.seed * 1000003u + (uint64_t)g->epoch};
    for (int64_t i = 0; i < g->learned.count; i++) g->order[i] = i;
    for (int64_t i = g->learned.count; i > 1;) {
        const int64_t k = tn_random_below(&r, i--), o = g->order[i];
        g->order[i] = g->order[k], g->order[k] = o;
    }
}

static bool draw(void *user, tn_batch *b)
{
    elmo_training *g = user;
    const int64_t  from = g->at, left = g->learned.count - from, n = left < g->batch ? left : g->batch;
    if (g->at >= g->learned.count) return g->at = 0, g->epoch++, shuffle(g), false;
    tn_batch_cut(b, g->shard, n);
    if (tn_shard_next(&g->shard)) g->at += n;
    return fill(g, b, &g->learned, b->rows, g->order + from + b->first);
}
static void begin(void *user, const tn_json *at)
{
    elmo_training *g = user;
    g->at = at ? tn_json_i64(tn_json_need(at, "at")) : 0, g->epoch = at ? tn_json_i64(tn_json_need(at, "epoch")) : 0;
    if (g->at < 0) g->at = 0;
    g->shard.done_ = 0;
    shuffle(g);
}
static void keep(void *user, tn_json_writer *w)
{
    tn_json_put_i64(w, "at", ((elmo_training *)user)->at), tn_json_put_i64(w, "epoch", ((elmo_training *)user)->epoch);
}
static bool go_through(void *user, tn_batch *b)
{
    elmo_training *g = user;
    const int64_t  left = g->held.count - g->held_at, n = left < g->batch ? left : g->batch;
    if (n < 1) return g->held_at = 0, false;
    int64_t which[MOST_ROWS];
    tn_batch_cut(b, g->held_shard, n);
    for (int64_t i = 0; i < b->rows; i++) which[i] = g->held_at + b->first + i;
    if (tn_shard_next(&g->held_shard)) g->held_at += n;
    return fill(g, b, &g->held, b->rows, which);
}
static void go_back(void *user, const tn_json *at)
{
    (void)at;
    elmo_training *g = user;
    g->held_at = 0, g->held_shard.done_ = 0;
}
static void shard_learned(void *user, tn_shard s) { ((elmo_training *)user)->shard = s; }
static void shard_held(void *user, tn_shard s) { ((elmo_training *)user)->held_shard = s; }

static tn_tensor *loss(void *net, const tn_batch *b, void *user)
{
    if (is_thoughts(user))
        return tn_skip_thought_loss(net, b->x, tn_batch_get(b, "lengths"), tn_batch_get(b, "before"), b->y);
    const tn_elmo_batch s = {b->x, tn_batch_get(b, "rows"), tn_batch_get(b, "lengths")};
    return tn_elmo_loss(net, &s, b->y);
}

/* ---- a kind of training ------------------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    int64_t     dim, hidden;
} sizes[] = {{"tiny", 32, 64}, {"small", 128, 512}, {"medium", 256, 1024}, {"large", 512, 4096}};

static int check(training *t)
{
    elmo_training           *g = of(t);
    int                      code = texts_check(t->world, &g->text, &g->valid, &g->valid_part, 0.02);
    static const char *const of_elmo[] = {"layers", "dropout", NULL};
    if (code) return code;
    if (is_thoughts(g) && (code = program_strays(of_elmo, "--kind elmo"))) return code;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (strcmp(t->asked.size, sizes[i].name) != 0) continue;
        if (!g->hidden) g->hidden = t->asked.dim ? 4 * t->asked.dim : sizes[i].hidden;
        if (t->asked.layers && t->asked.layers != 2) return program_usage("--layers must be 2 for ELMo");
        return train_shape(t, 2, 1, sizes[i].dim);
    }
    return program_usage("unknown --size %s", t->asked.size);
}

static bool look(training *t)
{
    elmo_training *g = of(t);
    if (!texts_read(&g->text, &g->all)) return false;
    size_t bytes = g->all.bytes;
    if (g->valid.count && !texts_read(&g->valid, &g->all)) return false;
    if (!g->valid.count) bytes -= (size_t)(g->valid_part * (double)bytes);
    while (bytes < g->all.bytes && bytes && g->all.at[bytes - 1] != '\n') bytes++;
    int64_t held = 0;
    if (!split(&g->learned, (tn_text){g->all.at, bytes}, &g->words) ||
        !split(&g->held, (tn_text){g->all.at + bytes, g->all.bytes - bytes}, &held))
        return false;
    if (!texts_held(&g->valid, g->held.count, "a line with a word")) return false;
    if (!g->learned.count)
        tn_raise(TN_EFORMAT, "the text has no sentences; each line must be one, with words separated by blanks");
    g->order = malloc((size_t)(g->learned.count + 1) * sizeof *g->order);
    if (!g->order) tn_raise(TN_ENOMEM, "no memory for the order of %lld lines", (long long)g->learned.count);
    return tn_error() == TN_OK;
}

static tn_tokenizer *tokenizer(training *t, progress *bar)
{
    (void)bar;
    return texts_words((tn_text){of(t)->all.at, of(t)->all.bytes}, t->asked.vocab_size);
}

static bool open_all(training *t)
{
    elmo_training *g = of(t);
    t->batches = (g->learned.count - 1) / g->batch + 1;
    t->fit.train = (tn_source){draw, begin, keep, shard_learned, g, t->batches}, t->fit.loss = loss, t->fit.user = g;
    if (g->held.count) {
        t->fit.valid = (tn_source){.next = go_through, .begin = go_back, .shard = shard_held, .user = g};
        t->fit.restore_best = true;
    }
    t->width = g->batch * (g->words / g->learned.count + 3), t->every = t->batches < 500 ? t->batches : 500;
    snprintf(t->each, sizeof t->each, "%lld sentences", (long long)g->batch);
    shuffle(g);
    return true;
}

static void *make(training *t)
{
    elmo_training *g = of(t);
    const int64_t  vocab = tn_tokenizer_size(t->tokens);
    if (is_thoughts(g)) return g->now = tn_skip_thought_new(.vocab = vocab, .dim = t->asked.dim, .hidden = g->hidden);
    return g->now = tn_elmo_new(.vocab = vocab, .dim = t->asked.dim, .hidden = g->hidden, .dropout = t->asked.dropout);
}

static void say(training *t)
{
    const elmo_training *g = of(t);
    fprintf(stderr, "text     %lld sentences, %lld words; validation: %lld sentences\n", (long long)g->learned.count,
            (long long)g->words, (long long)g->held.count);
}

static uint64_t sum_of(const text_lines *l)
{
    uint64_t sum = CHECKSUM;
    for (int64_t i = 0; i < l->count; i++) sum = checksum(checksum(sum, l->line[i].at, l->line[i].bytes), "\n", 1);
    return sum;
}

static void describe(const training *t, tn_json_writer *w)
{
    const elmo_training *g = (const elmo_training *)t;
    tn_json_put_string(w, "model", g->model);
    checksum_put(w, "text", sum_of(&g->learned)), checksum_put(w, "valid", sum_of(&g->held));
    tn_json_put_i64(w, "batch", g->batch), tn_json_put_i64(w, "hidden", g->hidden);
}

static bool save(training *t, tn_fit_why why)
{
    (void)why;
    if (is_thoughts(of(t))) return tn_skip_thought_save(t->net, t->asked.out) == TN_OK;
    return tn_elmo_save(t->net, t->asked.out) == TN_OK;
}

static void close_all(training *t)
{
    elmo_training *g = of(t);
    lines_free(&g->learned), lines_free(&g->held);
    tn_string_free(&g->all);
    free(g->order);
}

static const train_kind kind = {
    "A bidirectional language model", 1000, 20, check, look, tokenizer, open_all, make, say, describe, save, close_all};

/* ---- the command ------------------------------------------------------------------------------------------------- */

static elmo_training asked = {.base = {.kind = &kind, .asked = {TRAIN_DEFAULTS, .size = "small", .dropout = 0.1}},
                              .model = "elmo",
                              .batch = 32,
                              .valid_part = NAN};

static int run(int count, char **operands)
{
    (void)count, (void)operands;
    return train_main(&asked.base);
}

static const option options[] = {
    OPTION_LIST("text", 't', "FILE", &asked.text,
                "training sentences, one per line: files, folders, or - for standard input", .required = true),
    OPTION_LIST("valid", 0, "FILE", &asked.valid, "validation sentences, which select the best model"),
    OPTION_REAL("valid-part", 0, "P", &asked.valid_part,
                "fraction of the text, from its end, to validate on instead of --valid (default: 0.02)", .least = 0,
                .most = 0.5),
    OPTION_TEXT("kind", 'k', "NAME", &asked.model,
                "elmo: word vectors; skip-thought: sentence vectors, from lines in the order of their text",
                .choices = "elmo|skip-thought"),
    OPTION_INT("batch", 'b', "N", &asked.batch, "sentences per step", .least = 1, .most = MOST_ROWS),
    OPTION_INT("hidden", 0, "N", &asked.hidden, "hidden size of the LSTMs, instead of the one of --size", .least = 2,
               .most = 65536),
    TRAIN_SIZE(asked.base.asked, 's', "tiny|small|medium|large"),
    TRAIN_WIDTH(asked.base.asked),
    TRAIN_TEXT(asked.base.asked),
    TRAIN_RUN(asked.base.asked, "texts", "20"),
    TRAIN_RANKS(asked.base.asked),
    {0},
};
const command train_command =
    COMMAND("train", "train a model on sentences", options,
            .text = "Each line is a sentence of words separated by blanks; only its first 60 words are read.\n\n"
                    "  elmo train --text sentences.txt --vocab-size 20000 --out model --minutes 30\n"
                    "  elmo train --kind skip-thought --text story.txt --out thoughts --minutes 30");
