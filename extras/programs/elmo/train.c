/* train.c — elmo train: the part of a training that is specific to ELMo and skip-thought; the rest is in
 * common/train.c. Each line is a sentence of words separated by blanks. A step takes some lines at random, an epoch
 * each line once. Skip-thought learns to generate the lines before and after a line. */
#include "programs/common/messages.h"
#include "programs/common/checksum.h"
#include "elmo.h"

#include <math.h>
#include <string.h>

enum { LONGEST = 60 /* words of a sentence; the rest is ignored */, MOST_ROWS = 4096 };

typedef struct elmo_training elmo_training;

/* The training or the validation sentences. */
typedef struct {
    elmo_training *g;
    text_lines     lines;
    tn_sentences  *sentences;
    tn_source      source; /* reads the sentences */
} half;

struct elmo_training {
    training    base;
    train_texts texts;
    const char *model;
    int64_t     batch, hidden;
    half        learned, held;
    int64_t     words;
    void       *now; /* the model being trained or timed; borrowed */
};

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

/* A tn_encoder: the token ids of a line's words; 0 for an unknown word. */
static tn_status encode(void *user, tn_text line, tn_ids *to)
{
    const training *t = user;
    char            name[256];
    tn_text         word;
    for (size_t at = 0; texts_word(line, &at, &word);) {
        const int n = word.bytes < sizeof name ? (int)word.bytes : 0;
        snprintf(name, sizeof name, "%.*s", n, word.at);
        const int64_t id = n ? tn_tokenizer_id(t->tokens, name) : -1;
        if (tn_ids_add(to, id < 0 ? 0 : (int32_t)id) != TN_OK) break;
    }
    return tn_error();
}

static bool is_thoughts(const elmo_training *g) { return strcmp(g->model, "elmo") != 0; }

/* A batch of sentences; for ELMo with their characters, and as targets the words with <eos> (1) at both ends. */
static bool next(void *user, tn_batch *b)
{
    const half *h = user;
    tn_text     lines[MOST_ROWS];
    if (!h->source.next(h->source.user, b)) return false;
    if (is_thoughts(h->g) || !b->rows) return true;
    const tn_tensor *index = tn_batch_get(b, "index");
    for (int64_t i = 0; i < b->rows; i++) lines[i] = h->lines.line[tn_get_i64(index, i)];
    const tn_elmo_batch s = tn_elmo_sentences(h->g->now, b->rows, lines);
    b->y = tn_pad(b->x, TN_SHAPE(0, 1), TN_SHAPE(0, 1), 1), b->x = s.words;
    return tn_batch_put(b, "rows", s.rows) == TN_OK;
}
static void begin(void *user, const tn_json *at) { ((half *)user)->source.begin(((half *)user)->source.user, at); }
static void keep(void *user, tn_json_writer *w) { ((half *)user)->source.save(((half *)user)->source.user, w); }
static void shard(void *user, tn_shard s) { ((half *)user)->source.shard(((half *)user)->source.user, s); }

static tn_tensor *loss(void *net, const tn_batch *b, void *user)
{
    if (is_thoughts(user))
        return tn_skip_thought_loss(net, b->x, tn_batch_get(b, "lengths"), tn_batch_get(b, "before"), b->y);
    const tn_elmo_batch s = {b->x, tn_batch_get(b, "rows"), tn_batch_get(b, "lengths")};
    return tn_elmo_loss(net, &s, b->y);
}

/* ---- a kind of training ------------------------------------------------------------------------------------------ */

static int check(training *t)
{
    elmo_training           *g = of(t);
    int                      code = train_texts_check(&g->texts, t->world, 0.02);
    static const char *const of_elmo[] = {"layers", "dropout", NULL};
    if (code) return code;
    t->load =
        is_thoughts(g) ? "" : "#include <tenon/extras.h>\n\ntn_elmo *m = tn_elmo_load(\"%s\"); /* tn_free frees it */";
    if (is_thoughts(g)) t->next = "echo \"a sentence\" | vectors sentence --model %s";
    if (is_thoughts(g) && (code = program_strays(of_elmo, "--kind elmo"))) return code;
    if (t->asked.layers && t->asked.layers != 2) return program_usage("--layers must be 2 for ELMo");
    const tn_elmo_config c = tn_elmo_size(t->asked.size);
    if (!g->hidden) g->hidden = t->asked.dim ? 4 * t->asked.dim : c.hidden;
    return train_shape(t, 2, 1, c.dim, TRAIN_RATE);
}

static bool look(training *t)
{
    elmo_training *g = of(t);
    int64_t        held = 0;
    if (!train_texts_read(&g->texts)) return false;
    if (!split(&g->learned.lines, train_texts_training(&g->texts), &g->words) ||
        !split(&g->held.lines, train_texts_validation(&g->texts), &held))
        return false;
    if (!train_texts_check_valid(&g->texts, g->held.lines.count, "a line with a word")) return false;
    if (!g->learned.lines.count)
        tn_raise(TN_EFORMAT, "the text has no sentences; each line must be one, with words separated by blanks");
    return tn_error() == TN_OK;
}

static tn_tokenizer *tokenizer(training *t, progress *bar)
{
    (void)bar;
    return texts_words((tn_text){of(t)->texts.all.at, of(t)->texts.all.bytes}, t->asked.vocab_size);
}

static tn_source source_of(elmo_training *g, half *h)
{
    const bool       thoughts = is_thoughts(g);
    const tn_encoder words = {encode, &g->base};
    h->g = g;
    h->sentences =
        tn_sentences_new(h->lines.count, h->lines.line, words, .batch = g->batch, .pad = !thoughts, .end = 1,
                         .neighbours = thoughts, .in_order = h == &g->held, .seed = (uint64_t)g->base.asked.seed);
    h->source = tn_sentences_source(h->sentences);
    return (tn_source){next, begin, keep, shard, h, h->source.batches};
}

static bool open_all(training *t)
{
    elmo_training *g = of(t);
    t->fit.train = source_of(g, &g->learned), t->fit.loss = loss, t->fit.user = g;
    t->batches = t->fit.train.batches;
    if (g->held.lines.count) t->fit.valid = source_of(g, &g->held), t->fit.restore_best = true;
    t->width = g->batch * (g->words / g->learned.lines.count + 3), t->every = t->batches < 500 ? t->batches : 500;
    snprintf(t->each, sizeof t->each, "%lld sentences", (long long)g->batch);
    return tn_error() == TN_OK;
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
    tell("text     %lld sentences, %lld words; validation: %lld sentences\n", (long long)g->learned.lines.count,
         (long long)g->words, (long long)g->held.lines.count);
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
    checksum_put(w, "text", sum_of(&g->learned.lines)), checksum_put(w, "valid", sum_of(&g->held.lines));
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
    lines_free(&g->learned.lines), lines_free(&g->held.lines);
    tn_sentences_free(g->learned.sentences), tn_sentences_free(g->held.sentences);
    train_texts_free(&g->texts);
}

static const train_kind kind = {
    .title = "A bidirectional language model",
    .max_interval = 1000,
    .minutes = 20,
    .check = check,
    .read = look,
    .tokenizer = tokenizer,
    .open = open_all,
    .make = make,
    .print_info = say,
    .describe = describe,
    .save = save,
    .close = close_all,
    .next = "echo \"a sentence\" | elmo embed --model %s",
    .tag = "feature-extraction",
};

/* ---- the command ------------------------------------------------------------------------------------------------- */

static elmo_training asked = {.base = {.kind = &kind, .asked = {TRAIN_DEFAULTS, .size = "small", .dropout = 0.1}},
                              .model = "elmo",
                              .batch = 32,
                              .texts.valid_part = NAN};

static const option options[] = {
    TRAIN_TEXTS_OPTIONS(asked.texts, "sentences", ", one per line", "0.02"),
    OPTION_TEXT("kind", 0, "NAME", &asked.model,
                "elmo: word vectors; skip-thought: sentence vectors, from lines in the order of their text",
                .choices = "elmo|skip-thought"),
    OPTION_INT("batch", 'b', "N", &asked.batch, "sentences per step", .least = 1, .most = MOST_ROWS),
    OPTION_INT("hidden", 0, "N", &asked.hidden, "hidden size of the LSTMs (default: four times --dim, else of --size)",
               .least = 2, .most = 65536),
    TRAIN_SIZE(asked.base.asked, 's', "tiny|small|medium|large", NULL),
    TRAIN_WIDTH(asked.base.asked),
    TRAIN_TEXT(asked.base.asked, "default: 8000"),
    TRAIN_RUN(asked.base.asked, "texts", "20", NULL),
    TRAIN_RANKS(asked.base.asked),
    {0},
};
const command train_command =
    TRAIN_COMMAND("train", "train a model on sentences", options, &asked.base,
                  .text = "Each line is a sentence of words separated by blanks; only its first 60 words are read.\n\n"
                          "  elmo train --text sentences.txt --vocab-size 20000 --out model --minutes 30\n"
                          "  elmo train --kind skip-thought --text story.txt --out thoughts --minutes 30");
