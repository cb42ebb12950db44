/* tune.c — translate tune: trains a model further on two parallel files: a model of translate train, or one that was
 * trained elsewhere. A task given as text is a pair of files, too: line i of one is the question, of the other the
 * answer. common/train.c has the rest of a training. */
#include "../common/checksum.h"
#include "../common/messages.h"
#include "translate.h"

#include <math.h>

typedef struct {
    training    base;
    const char *model, *source, *target, *valid_source, *valid_target;
    int64_t     tokens, longest, patience, valid_every;
    model       from; /* what --model opens: its tokenizer, and its model until `make` takes it */
    pairs       pairs, held;
    pairs_state state, held_state;
} tuning;

static tuning *of(training *t) { return (tuning *)t; }

/* ---- a kind of training ------------------------------------------------------------------------------------------ */

static int check(training *b)
{
    tuning      *t = of(b);
    train_asked *a = &b->asked;
    if (!t->valid_source != !t->valid_target)
        return program_usage("--%s needs --%s; the validation set consists of both files",
                             t->valid_source ? "valid-src" : "valid-tgt", t->valid_source ? "valid-tgt" : "valid-src");
    if (!t->valid_source && t->patience)
        return program_usage("--patience needs a validation set: --valid-src and --valid-tgt");
    if (!a->steps && !a->epochs && !(a->minutes > 0)) a->epochs = 3;
    a->size = "custom";
    return 0;
}

static bool look(training *b)
{
    tuning      *t = of(b);
    train_asked *a = &b->asked;
    if (!model_open(t->model, &t->from)) return false;
    if (t->from.target)
        return tn_raise_false(TN_EUNSUPPORTED,
                              "'%s' has a tokenizer for each language; only models with one can be tuned", t->model);
    const tn_seq2seq_config *c = &t->from.net->config;
    a->layers = c->layers, a->heads = c->heads, a->dim = c->dim;
    a->vocab_size = tn_tokenizer_size(t->from.tokens);
    /* a quarter of the rate for a new model of this width */
    if (isnan(a->lr)) a->lr = fmin(0.1 / (double)a->dim, 1e-3);
    b->fit.lr = a->lr;
    return pairs_check(t->source, t->target, &t->state) &&
           (!t->valid_source || pairs_check(t->valid_source, t->valid_target, &t->held_state));
}

static tn_tokenizer *tokenizer(training *b, progress *bar)
{
    tn_tokenizer *mine = of(b)->from.tokens;
    (void)bar;
    return of(b)->from.tokens = NULL, mine;
}

static bool open_all(training *b)
{
    tuning                  *t = of(b);
    const tn_seq2seq_config *c = &t->from.net->config;
    const pair_ids           ids = {(int32_t)c->padding, (int32_t)c->begin, (int32_t)c->end, c->type != NULL};
    const int64_t            most = c->positions - 1;
    if (!pairs_open(&t->pairs, b->tokens, ids, t->source, t->target, t->tokens, t->longest < most ? t->longest : most,
                    (uint64_t)b->asked.seed, false))
        return false;
    b->fit.train = tn_pairs_source(t->pairs.batches), b->fit.loss = tn_seq2seq_fit_loss;
    b->uniform = log((double)c->target_words);
    b->batches = b->fit.train.batches, b->width = t->tokens, b->every = t->valid_every;
    snprintf(b->each, sizeof b->each, "up to %lld tokens", (long long)t->tokens);
    if (!t->valid_source) return true;
    if (!pairs_open(&t->held, b->tokens, ids, t->valid_source, t->valid_target, t->tokens, most, 1, true)) return false;
    b->fit.valid = tn_pairs_source(t->held.batches), b->fit.measure = tn_seq2seq_fit_loss;
    b->fit.restore_best = true, b->fit.patience = t->patience;
    return true;
}

/* The model that `look` opened; if it has been taken, a new one. */
static void *make(training *b)
{
    tuning     *t = of(b);
    tn_seq2seq *net = t->from.net;
    t->from.net = NULL;
    if (!net) net = tn_model_open(t->model, .family = TN_MODEL_SEQ2SEQ, .no_tokenizer = true).seq2seq;
    if (net) tn_train(net, true);
    return net;
}

static void say(training *b)
{
    const tuning *t = of(b);
    tell("text     %lld pairs, %lld source and %lld target tokens\n", (long long)tn_pairs_count(t->pairs.pairs),
         (long long)tn_pairs_tokens(t->pairs.pairs, false), (long long)tn_pairs_tokens(t->pairs.pairs, true));
    const int64_t longer = tn_pairs_dropped(t->pairs.pairs) - t->state.empty;
    if (t->state.empty || longer > 0)
        tell("         skipped: %lld pairs with an empty line, %lld longer than %lld tokens (--longest)\n",
             (long long)t->state.empty, (long long)longer, (long long)t->longest);
}

static void describe(const training *b, tn_json_writer *w)
{
    const tuning     *t = (const tuning *)b;
    const char       *file[] = {t->source, t->target, t->valid_source, t->valid_target};
    const char *const name[] = {"src", "tgt", "valid-src", "valid-tgt"};
    for (int i = 0; i < 4; i++)
        if (file[i]) checksum_put(w, name[i], checksum_file(CHECKSUM, file[i]));
    train_put_path(b, w, "model", t->model);
    tn_json_put_i64(w, "tokens", t->tokens);
    tn_json_put_i64(w, "longest", t->longest);
    if (t->valid_every) tn_json_put_i64(w, "valid_every", t->valid_every);
    if (t->patience) tn_json_put_i64(w, "patience", t->patience);
}

static bool save(training *b, tn_fit_why why)
{
    (void)why;
    return tn_seq2seq_save(b->net, b->asked.out) == TN_OK;
}

static void close_all(training *b)
{
    pairs_close(&of(b)->pairs), pairs_close(&of(b)->held);
    model_close(&of(b)->from);
}

static const train_kind kind = {
    .title = "A tuned translation model",
    .max_interval = 500,
    .check = check,
    .read = look,
    .tokenizer = tokenizer,
    .open = open_all,
    .make = make,
    .print_info = say,
    .describe = describe,
    .save = save,
    .close = close_all,
    .next = "echo \"a sentence\" | translate run --model %s",
    .tag = "translation",
};

/* ---- the command ------------------------------------------------------------------------------------------------- */

static tuning asked = {.base = {.kind = &kind, .untimed = true, .asked = {TRAIN_DEFAULTS_CHOSEN, .lr = NAN}},
                       .tokens = 2048,
                       .longest = 512};

static const option options[] = {
    OPTION_TEXT("model", 'm', "DIR", &asked.model, "folder of the model to train further", .required = true),
    OPTION_TEXT("src", 0, "FILE", &asked.source, "source text, one sentence or question per line", .required = true),
    OPTION_TEXT("tgt", 0, "FILE", &asked.target, "target text: translations or answers of --src, line by line",
                .required = true),
    OPTION_TEXT("valid-src", 0, "FILE", &asked.valid_source, "source text of the validation set"),
    OPTION_TEXT("valid-tgt", 0, "FILE", &asked.valid_target, "target text of the validation set"),
    OPTION_TEXT("out", 'o', "DIR", &asked.base.asked.out, "folder of the tuned model", .required = true,
                .resume = RESUME_FOLDER),
    OPTION_INT("tokens", 0, "N", &asked.tokens, "maximum tokens per batch", .least = 16, .most = 1e7),
    OPTION_INT("longest", 0, "N", &asked.longest, "skip training pairs with a line of more than N tokens", .least = 1,
               .most = 16384),
    OPTION_INT("valid-every", 0, "N", &asked.valid_every,
               "steps between validations, which write checkpoints (default: a twentieth of the steps, from 10 to 500)",
               .least = 1, .most = 1e9),
    OPTION_INT("patience", 0, "N", &asked.patience, "stop after N validations without improvement (default: no limit)",
               .least = 1, .most = 1e6),
    TRAIN_TUNE(asked.base.asked, "3", "0.1 divided by the width"),
    {0},
};
const command tune_command = TRAIN_COMMAND(
    "tune", "train a model further on two parallel files", options, &asked.base,
    .text =
        "Opens a model as translate run does, a published one or one of translate train, and trains it further. Line i "
        "of --tgt is the translation of line i of --src; for a model of T5, --src may be any task given as text. DIR "
        "then contains the tuned model. Ctrl-C saves and ends; --resume continues, with the same bits as without the "
        "interruption.\n\n"
        "  translate tune --model t5 --src questions.txt --tgt answers.txt --out answerer");
