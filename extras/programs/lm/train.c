/* train.c — lm train: the part of a training that is specific to recurrent language models; the rest is in
 * common/train.c.
 *
 * Averaged SGD as in AWD-LSTM (Merity and others 2018): plain SGD, until a validation loss is worse than the best of
 * those more than `patience` validations earlier; from then on the weights that are measured and saved are averages. */
#include "../repeat/repeat.h"
#include "programs/common/messages.h"
#include "lm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HISTORY = 4096, MOST_ROWS = 4096 };

typedef struct {
    training      base;
    train_texts   texts;
    const char   *pieces, *cell, *optimizer, *cutoffs, *decay;
    int64_t       batch, length, hidden, patience;
    double        dropout_in, dropout_between, dropout_words, weight_drop, alpha, beta, clip, weight_decay;
    bool          untied, unlocked, vary, awd;
    tn_columns   *columns, *held_columns;
    tn_optimizer *own;
    tn_ema       *means;
    double        history[HISTORY]; /* losses of all validations, for averaged SGD */
    int           known;
} lm_training;

static lm_training *of(training *t) { return (lm_training *)t; }

/* ---- options ----------------------------------------------------------------------------------------------------- */

/* Parses --cutoffs ("2000,10000") into `to`. Returns the number of cutoffs, or -1 for a syntax error. */
static int cutoffs_of(const lm_training *g, int64_t to[TN_CUTOFFS])
{
    int         n = 0;
    const char *at = g->cutoffs;
    memset(to, 0, TN_CUTOFFS * sizeof *to);
    for (char *end; at && *at && n < 3; at = *end == ',' ? end + 1 : end) {
        to[n] = strtoll(at, &end, 10);
        if (end == at || to[n] < 1 || (*end && *end != ',')) return -1;
        n++;
    }
    return at && *at ? -1 : n;
}

/* Sets the options that were not given to the values of AWD-LSTM. */
static void set_awd(lm_training *g)
{
    train_asked *a = &g->base.asked;
    if (!a->size) a->size = "awd";
    if (isnan(g->dropout_words)) g->dropout_words = 0.1;
    if (isnan(g->weight_drop)) g->weight_drop = 0.5;
    if (isnan(g->dropout_in)) g->dropout_in = 0.65;
    if (isnan(g->dropout_between)) g->dropout_between = 0.3;
    if (isnan(g->alpha)) g->alpha = 2;
    if (isnan(g->beta)) g->beta = 1;
    g->vary = true;
}

static void set_default(double *number, double otherwise)
{
    if (isnan(*number)) *number = otherwise;
}

/* Checks that the optimizer's options go together, and sets those that were not given. */
static int check_optimizer(lm_training *g)
{
    const bool asgd = !strcmp(g->optimizer, "asgd");
    if (g->decay && strcmp(g->optimizer, "adam") != 0)
        return program_usage("--decay is for --optimizer adam: %s",
                             asgd ? "asgd has a constant learning rate"
                                  : "sgd lowers the learning rate by validations");
    if (g->patience >= 0 && !asgd) return program_usage("--patience is for --optimizer asgd");
    if (asgd && !g->texts.valid.count && !(g->texts.valid_part > 0))
        return program_usage("--optimizer asgd needs validations to decide when averaging starts; set --valid, or "
                             "--valid-part above 0");
    if (!g->decay) g->decay = "linear";
    if (g->patience < 0) g->patience = 5;
    return 0;
}

/* Checks that the tokenizer's options go together. */
static int check_pieces(const lm_training *g)
{
    const train_asked *a = &g->base.asked;
    const bool         bpe = !strcmp(g->pieces, "bpe");
    if (a->vocab && strcmp(g->pieces, "words") != 0)
        return program_usage("--pieces %s is for a new tokenizer, but --vocab names an existing one", g->pieces);
    if (a->vocab_size && !bpe && strcmp(g->pieces, "words") != 0)
        return program_usage("--vocab-size is for --pieces words and bpe");
    if (bpe && a->vocab_size && a->vocab_size < 257)
        return program_usage("--vocab-size must be at least 257: 256 bytes and <|endoftext|>");
    return 0;
}

static int check(training *t)
{
    lm_training *g = of(t);
    train_asked *a = &t->asked;
    const bool   sgd = strcmp(g->optimizer, "adam") != 0;
    t->load = "#include <tenon/extras.h>\n\ntn_rnn_lm *m = tn_rnn_lm_load(\"%s\"); /* tn_free frees it */";
    int64_t cutoffs[TN_CUTOFFS];
    int     code = train_texts_check(&g->texts, t->world, 0.1);
    if (code || (code = check_optimizer(g)) || (code = check_pieces(g))) return code;
    if (cutoffs_of(g, cutoffs) < 0)
        return program_usage("--cutoffs takes 1 to 3 numbers separated by commas, such as 2000,10000");
    if (g->cutoffs && !g->untied)
        return program_usage("--cutoffs needs --untied: an adaptive softmax has its own output weights");
    if (g->awd) set_awd(g);
    if (!a->size) a->size = "small";
    const tn_rnn_lm_config c = tn_rnn_lm_size(a->size);
    if (a->layers > TN_RNN_LM_LAYERS) return program_usage("--layers must be at most %d", TN_RNN_LM_LAYERS);
    if (!g->hidden) g->hidden = a->dim ? a->dim : c.hidden;
    set_default(&a->dropout, c.dropout);
    set_default(&g->dropout_in, a->dropout), set_default(&g->dropout_between, a->dropout);
    set_default(&g->dropout_words, 0), set_default(&g->weight_drop, 0), set_default(&g->alpha, 0),
        set_default(&g->beta, 0);
    set_default(&g->clip, sgd ? 0.25 : 1), set_default(&a->lr, sgd ? 20 : 1e-3);
    set_default(&g->weight_decay, sgd ? 1.2e-6 : 0.01);
    return train_shape(t, c.layers, 1, c.dim, TRAIN_RATE);
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

static bool look(training *t) { return train_texts_read(&of(t)->texts); }

static tn_tokenizer *tokenizer(training *t, progress *bar)
{
    const lm_training *g = of(t);
    const tn_text      all = train_texts_training(&g->texts);
    if (!strcmp(g->pieces, "words")) return texts_words(all, t->asked.vocab_size);
    if (!strcmp(g->pieces, "characters")) return texts_characters(all);
    return tn_tokenizer_train_text(all.at, all.bytes, .kind = TN_BYTE_BPE, .cased = true,
                                   .vocab_size = strcmp(g->pieces, "bytes") ? t->asked.vocab_size : 257,
                                   .progress = progress_part, .user = bar);
}

/* The source of batches: the columns, and in its saved state also the validation losses for averaged SGD. */
static bool next(void *user, tn_batch *b)
{
    const tn_source s = tn_columns_source(((lm_training *)user)->columns);
    return s.next(s.user, b);
}
static void begin(void *user, const tn_json *at)
{
    lm_training    *g = user;
    const tn_source s = tn_columns_source(g->columns);
    s.begin(s.user, at);
    g->known = 0;
    for (const tn_json *v = at ? tn_json_first(tn_json_get(at, "validations")) : NULL; v && g->known < HISTORY;
         v = tn_json_next(v))
        g->history[g->known++] = tn_json_double(v);
}
static void keep(void *user, tn_json_writer *w)
{
    const lm_training *g = user;
    const tn_source    s = tn_columns_source(g->columns);
    s.save(s.user, w);
    tn_json_open_array(w, "validations");
    for (int i = 0; i < g->known; i++) tn_json_put_double(w, NULL, g->history[i]);
    tn_json_close(w);
}

static void cut(void *user, tn_shard shard)
{
    const tn_source s = tn_columns_source(((lm_training *)user)->columns);
    s.shard(s.user, shard);
}

static bool open_all(training *t)
{
    enum { HELD_ROWS = 10, OFTEN = 1000 /* maximum number of steps between checkpoints; for SGD, an epoch */ };
    lm_training  *g = of(t);
    const tn_ids *ids = &g->texts.ids, *held = &g->texts.held;
    if (!numbers_of(t->tokens, train_texts_training(&g->texts), &g->texts.ids) ||
        !numbers_of(t->tokens, train_texts_validation(&g->texts), &g->texts.held))
        return false;
    g->columns = tn_columns_new(ids->at, ids->n, .batch = g->batch, .length = g->length, .vary = g->vary,
                                .seed = (uint64_t)t->asked.seed);
    if (!g->columns) return false;
    t->fit.train = (tn_source){next, begin, keep, cut, g, tn_columns_source(g->columns).batches};
    t->fit.loss = tn_carried_lm_loss;
    if (!train_texts_check_valid(&g->texts, held->n > 1, "two tokens")) return false;
    if (held->n > 1) {
        const int64_t rows = held->n >= 100 * HELD_ROWS ? HELD_ROWS : 1;
        g->held_columns = tn_columns_new(held->at, held->n, .batch = held->n > 2 ? rows : 1, .length = g->length);
        t->fit.valid = tn_columns_source(g->held_columns);
        t->fit.restore_best = true;
    }
    t->uniform = log((double)tn_tokenizer_size(t->tokens));
    t->batches = ids->n / (g->batch * g->length) + 1, t->width = g->batch * g->length;
    t->every = t->batches < OFTEN || strcmp(g->optimizer, "adam") != 0 ? t->batches : OFTEN;
    snprintf(t->each, sizeof t->each, "%lld columns of %s%lld tokens", (long long)g->batch, g->vary ? "about " : "",
             (long long)g->length);
    return tn_error() == TN_OK;
}

/* ---- the model and its optimizer --------------------------------------------------------------------------------- */

static void forget_optimizer(lm_training *g)
{
    tn_ema_free(g->means);
    tn_optimizer_free(g->own);
    g->means = NULL, g->own = NULL;
}

/* Configures the optimizer: Adam; SGD whose learning rate falls to a quarter when a validation is not better; or
 * averaged SGD. */
static void optimizer_for(lm_training *g, tn_carried_lm *m)
{
    training *t = &g->base;
    forget_optimizer(g);
    t->fit.optimizer = NULL, t->fit.plateau = NULL, t->fit.ema = NULL;
    t->fit.clip = g->clip, t->fit.weight_decay = g->weight_decay;
    t->fit.decay = !strcmp(g->decay, "cosine") ? TN_DECAY_COSINE
                   : !strcmp(g->decay, "none") ? TN_DECAY_NONE
                                               : TN_DECAY_LINEAR;
    if (!m || !strcmp(g->optimizer, "adam")) return;
    g->own = tn_sgd_new(m, .lr = t->asked.lr, .weight_decay = g->weight_decay, .clip.norm = g->clip);
    t->fit.optimizer = g->own;
    if (!strcmp(g->optimizer, "asgd")) t->fit.ema = g->means = tn_ema_new(m, .mean = true);
    else if (t->fit.valid.next)
        t->fit.plateau = tn_plateau_lr_new(g->own, .factor = 0.25, .patience = 0, .threshold = 0);
}

static void *make(training *t)
{
    lm_training       *g = of(t);
    const train_asked *a = &t->asked;
    tn_rnn_lm_config   c = {TN_RNN_LM_DEFAULTS};
    c.vocab = tn_tokenizer_size(t->tokens), c.cell = g->cell, c.dim = a->dim, c.hidden = g->hidden;
    c.layers = a->layers, c.untied = g->untied, c.unlocked = g->unlocked;
    c.dropout = a->dropout, c.dropout_in = g->dropout_in, c.dropout_between = g->dropout_between;
    c.dropout_words = g->dropout_words, c.weight_drop = g->weight_drop;
    cutoffs_of(g, c.cutoffs);
    tn_carried_lm *m = tn_carried_lm_new(tn_rnn_lm_create(c), g->batch);
    if (m) m->alpha = g->alpha, m->beta = g->beta;
    optimizer_for(g, m);
    return m;
}

static void on_event(void *training_, const tn_fit_event *e)
{
    lm_training *g = training_;
    if (e->what != TN_FIT_VALID || !g->means || g->known == HISTORY) return;
    double best = HUGE_VAL;
    for (int i = 0; i + g->patience < g->known; i++) best = fmin(best, g->history[i]);
    g->history[g->known++] = e->value;
    if (tn_ema_started(g->means) || !(e->value > best)) return;
    tn_ema_start(g->means);
    if (!settings.quiet) tell("averaging the weights from step %lld\n", (long long)e->step);
}

/* ---- a kind of training ------------------------------------------------------------------------------------------ */

static void say(training *t) { train_texts_print(&of(t)->texts); }

static void describe(const training *t, tn_json_writer *w)
{
    const lm_training *g = (const lm_training *)t;
    train_texts_describe(&g->texts, w);
    tn_json_put_string(w, "pieces", g->pieces);
    tn_json_put_string(w, "cell", g->cell), tn_json_put_string(w, "optimizer", g->optimizer);
    tn_json_put_string(w, "decay", g->decay), tn_json_put_string(w, "cutoffs", g->cutoffs ? g->cutoffs : "");
    const struct {
        const char *name;
        int64_t     value;
    } whole[] = {{"batch", g->batch},   {"length", g->length},     {"hidden", g->hidden}, {"patience", g->patience},
                 {"untied", g->untied}, {"unlocked", g->unlocked}, {"vary", g->vary}};
    const struct {
        const char *name;
        double      value;
    } real[] = {{"dropout_in", g->dropout_in},
                {"dropout_between", g->dropout_between},
                {"dropout_words", g->dropout_words},
                {"weight_drop", g->weight_drop},
                {"alpha", g->alpha},
                {"beta", g->beta},
                {"clip", g->clip},
                {"weight_decay", g->weight_decay}};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) tn_json_put_i64(w, whole[i].name, whole[i].value);
    for (size_t i = 0; i < sizeof real / sizeof *real; i++) tn_json_put_double(w, real[i].name, real[i].value);
}

static bool save(training *t, tn_fit_why why)
{
    (void)why;
    return tn_rnn_lm_save(((tn_carried_lm *)t->net)->lm, t->asked.out) == TN_OK;
}

static void close_all(training *t)
{
    lm_training *g = of(t);
    forget_optimizer(g);
    tn_columns_free(g->columns), tn_columns_free(g->held_columns);
    train_texts_free(&g->texts);
}

/* Words have no line ends in their text; the ids have <eos>. */
static void row(training *t, const tn_batch *b, int64_t i, const tn_ids *ids, char place[64], tn_string *text)
{
    const lm_training *g = of(t);
    const int64_t      column = g->texts.ids.n / g->batch;
    int64_t            at = (b->first + i) * column, line = 1, more = 0;
    const int64_t      end = at + column;
    if (tn_tokenizer_decode(t->tokens, ids->at, ids->n, text, .keep_special = true) != TN_OK || !text->bytes) return;
    if (!texts_are_words(t->tokens)) {
        texts_place(train_texts_training(&g->texts), (tn_text){text->at, text->bytes}, place);
        return;
    }
    const int32_t eos = (int32_t)tn_tokenizer_id(t->tokens, "<eos>");
    while (at + ids->n <= end && memcmp(g->texts.ids.at + at, ids->at, (size_t)ids->n * sizeof *ids->at) != 0) at++;
    if (at + ids->n > end) return;
    for (int64_t k = 0; k < at; k++) line += g->texts.ids.at[k] == eos;
    for (int64_t k = 0; k + 1 < ids->n; k++) more += ids->at[k] == eos;
    if (more) snprintf(place, 64, "lines %lld-%lld", (long long)line, (long long)(line + more));
    else snprintf(place, 64, "line %lld", (long long)line);
}

static const train_kind kind = {
    .title = "A recurrent language model",
    .max_interval = 2000,
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
    .next = "lm write --model %s --prompt \"Once\"",
    .tag = "text-generation",
    .row = row,
};

/* ---- the command ------------------------------------------------------------------------------------------------- */

static lm_training asked = {.base = {.kind = &kind,
                                     .asked = {.dtype = "f32", .lr = NAN, .warmup = 0.1, .seed = 1, .dropout = NAN},
                                     .on = on_event},
                            .pieces = "words",
                            .cell = "lstm",
                            .optimizer = "adam",
                            .batch = 20,
                            .length = 35,
                            .patience = -1,
                            .texts.valid_part = NAN,
                            .dropout_in = NAN,
                            .dropout_between = NAN,
                            .dropout_words = NAN,
                            .weight_drop = NAN,
                            .alpha = NAN,
                            .beta = NAN,
                            .clip = NAN,
                            .weight_decay = NAN};

#define PART(name, to, what) OPTION_REAL(name, 0, "P", to, what, .least = 0, .most = 0.95)
static const option options[] = {
    TRAIN_TEXTS_OPTIONS(asked.texts, "text", "", "0.1"),
    OPTION_TEXT("pieces", 0, "KIND", &asked.pieces,
                "tokens of a new tokenizer: words, characters, bytes, or bpe for byte-level BPE",
                .choices = "words|characters|bytes|bpe"),
    OPTION_TEXT("cell", 'c', "NAME", &asked.cell, "type of the layers: lstm, gru or elman",
                .choices = "lstm|gru|elman"),
    OPTION_INT("batch", 'b', "N", &asked.batch, "columns of the text that are read in parallel", .least = 1,
               .most = MOST_ROWS),
    OPTION_INT("length", 'l', "N", &asked.length, "tokens per step; gradients are propagated through as many",
               .least = 1, .most = 65536),
    OPTION_FLAG("vary", 0, &asked.vary, "random step lengths, mostly around --length, sometimes around half of it"),
    OPTION_INT("hidden", 0, "N", &asked.hidden, "hidden size of the layers (default: --dim, else of --size)",
               .least = 1, .most = 65536),
    OPTION_FLAG("awd", 0, &asked.awd, "use AWD-LSTM's settings: size, dropouts, weight drop, AR and TAR, --vary"),
    PART("dropout-in", &asked.dropout_in, "dropout probability of the embeddings (default: --dropout; --awd: 0.65)"),
    PART("dropout-between", &asked.dropout_between,
         "dropout probability between layers (default: --dropout; --awd: 0.3)"),
    PART("dropout-words", &asked.dropout_words, "dropout probability of whole words (default: 0; --awd: 0.1)"),
    PART("weight-drop", &asked.weight_drop, "dropout probability of the recurrent weights (default: 0; --awd: 0.5)"),
    OPTION_FLAG("unlocked", 0, &asked.unlocked, "new dropout masks in each step, instead of one per sequence"),
    OPTION_FLAG("untied", 0, &asked.untied, "separate output weights, instead of the embeddings"),
    OPTION_TEXT("cutoffs", 0, "N,N", &asked.cutoffs,
                "with --untied: adaptive softmax with clusters that start at these token ids"),
    OPTION_REAL("alpha", 0, "X", &asked.alpha, "weight of the penalty on large activations (AR) (default: 0; --awd: 2)",
                .least = 0, .most = 1000),
    OPTION_REAL("beta", 0, "X", &asked.beta,
                "weight of the penalty on changes of activations (TAR) (default: 0; --awd: 1)", .least = 0,
                .most = 1000),
    OPTION_TEXT("optimizer", 0, "NAME", &asked.optimizer,
                "adam; sgd: divides the learning rate by 4 when a validation is not better; asgd: averages the "
                "weights instead",
                .choices = "adam|sgd|asgd"),
    OPTION_TEXT("decay", 0, "NAME", &asked.decay,
                "decay of adam's learning rate: linear, cosine or none (default: linear)",
                .choices = "linear|cosine|none"),
    OPTION_INT(
        "patience", 0, "N", &asked.patience,
        "with asgd: start averaging when a validation is worse than the best one more than N earlier (default: 5)",
        .least = 0, .most = 1000),
    OPTION_REAL("clip", 0, "X", &asked.clip, "maximum norm of the gradients (default: 1; sgd and asgd: 0.25)",
                .least = 0, .most = 1e6),
    OPTION_REAL("weight-decay", 0, "X", &asked.weight_decay, "weight decay (default: 0.01; sgd and asgd: 1.2e-6)",
                .least = 0, .most = 10),
    TRAIN_SIZE(asked.base.asked, 's', "tiny|small|medium|large|awd", "small; --awd: awd"),
    TRAIN_WIDTH(asked.base.asked),
    TRAIN_TEXT(asked.base.asked, "default: 8000"),
    TRAIN_RUN(asked.base.asked, "texts", "20", "0.001; sgd and asgd: 20"),
    TRAIN_KEEP(asked.base.asked),
    TRAIN_RANKS(asked.base.asked),
    {0},
};
const command train_command = TRAIN_COMMAND(
    "train", "train a model on text files", options, &asked.base,
    .text =
        "Reads the text in parallel columns, and carries the states from step to step. With --pieces words, the "
        "vocabulary is the --vocab-size most frequent words (default: 8000), <unk> for all others, and <eos> for the "
        "end of a line. The default --size is small, or awd with --awd. Ctrl-C saves and ends; --resume continues an "
        "interrupted run, with the same bits as without the interruption.\n\n"
        "  lm train --text train.txt --valid valid.txt --vocab-size 10000 --out book --epochs 10\n"
        "  lm train --text train.txt --valid valid.txt --awd --optimizer asgd --lr 30 --out book --epochs 100\n"
        "  lm train --text book.txt --pieces characters --cell gru --out letters --minutes 10");

const command verify_command = VERIFY_COMMAND("lm");
const command debug_command = DEBUG_COMMAND("lm");
