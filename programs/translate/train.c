/* train.c — translate train: the parts of a training that are specific to translation; common/train.c has the rest. */
#include "extras/programs/repeat/repeat.h"
#include "../common/messages.h"
#include "translate.h"

#include "../common/checksum.h"

#include <math.h>
#include <string.h>

static translate_training *of(training *t) { return (translate_training *)t; }
static bool                by_bleu(const translate_training *t) { return !strcmp(t->stop_on, "bleu"); }

/* The layers of the encoder and of the decoder that a kind has by default; Transformer 0: those of the size. */
static const struct {
    int64_t     layers;
    const char *network;
} of_kind[] = {
    [TN_SEQ2SEQ_TRANSFORMER] = {0, "Transformer"},       [TN_SEQ2SEQ_BAHDANAU] = {1, "recurrent network"},
    [TN_SEQ2SEQ_LUONG] = {1, "recurrent network"},       [TN_SEQ2SEQ_RNN] = {1, "recurrent network"},
    [TN_SEQ2SEQ_CONVS2S] = {4, "convolutional network"}, [TN_SEQ2SEQ_BYTENET] = {10, "convolutional network"},
    [TN_SEQ2SEQ_GNMT] = {3, "recurrent network"}};

static const train_choice choices[] = {{0, "nano", 1024, 0}, {10, "small", 4096, 0}, {.size = NULL}};

static int check_translation(training *t)
{
    translate_training      *p = of(t);
    const train_choice      *chosen = train_choose(t, choices, false);
    const tn_seq2seq_config  c = tn_seq2seq_size(t->asked.size);
    const tn_seq2seq_kind    kind = tn_seq2seq_kind_of(p->model);
    const bool               transformer = kind == TN_SEQ2SEQ_TRANSFORMER;
    static const char *const others[] = {"text", "valid", "valid-part", "length", NULL};
    const int                stray = program_strays(others, "--objective t5");
    if (stray) return stray;
    if (!p->source || !p->target) return program_usage("give --src and --tgt, or --objective t5 and --text");
    if (!p->valid_source != !p->valid_target)
        return program_usage("--%s needs --%s; the validation set consists of both files",
                             p->valid_source ? "valid-src" : "valid-tgt", p->valid_source ? "valid-tgt" : "valid-src");
    if (!p->valid_source && (by_bleu(p) || p->patience))
        return program_usage("--%s needs a validation set: --valid-src and --valid-tgt",
                             by_bleu(p) ? "stop-on bleu" : "patience");
    if (p->lstm && (transformer || kind > TN_SEQ2SEQ_RNN))
        return program_usage("--lstm is for --model rnn, bahdanau and luong");
    if (!transformer && (p->norm_first || t->asked.heads))
        return program_usage("--%s is for --model transformer; %s is a %s", p->norm_first ? "norm-first" : "heads",
                             p->model, of_kind[kind].network);
    if (t->asked.vocab_size && t->asked.vocab_size < 260)
        return program_usage("--vocab-size needs at least 260 tokens (256 bytes and 4 special tokens), got %lld",
                             (long long)t->asked.vocab_size);
    if (!p->pieces) p->pieces = chosen->batch;
    if (isnan(t->asked.dropout)) t->asked.dropout = c.dropout;
    return train_shape(t, transformer ? c.layers : of_kind[kind].layers, transformer ? c.heads : 1, c.dim, TRAIN_RATE);
}

/* The objective is an option of the run, also of one that verify or debug repeats. */
static int check(training *t)
{
    translate_training *p = of(t);
    if (strcmp(p->objective, "t5") != 0) return check_translation(t);
    t->kind = &t5_kind;
    return t->kind->check(t);
}

static bool check_files(training *t)
{
    translate_training *p = of(t);
    if (!pairs_check(p->source, p->target, &p->state) ||
        (p->valid_source && !pairs_check(p->valid_source, p->valid_target, &p->held_state)))
        return false;
    train_choose_vocabulary(t, p->state.bytes, 2);
    return true;
}

static const pair_ids    own_ids = {PADDING, BEGIN, END, false};
static const char *const special[] = {"<pad>", "<unk>", "<s>", "</s>", NULL}; /* PADDING, UNKNOWN, BEGIN, END */

static tn_tokenizer *tokenizer(training *t, progress *bar)
{
    return tn_tokenizer_train(2, ((const char *[]){of(t)->source, of(t)->target}), .kind = TN_BYTE_BPE,
                              .vocab_size = t->asked.vocab_size, .cased = true, .special = special,
                              .progress = progress_part, .user = bar);
}

/* The maximum number of tokens of a line, END included. */
static int64_t positions_of(const translate_training *p)
{
    return p->longest >= 500 ? 2 * p->longest + 24 : tn_seq2seq_size(p->base.asked.size).positions;
}

static bool open_all(training *t)
{
    translate_training *p = of(t);
    const bool          bleu = by_bleu(p);
    for (int i = 0; special[i]; i++)
        if (tn_tokenizer_id(t->tokens, special[i]) != i)
            return tn_raise_false(
                TN_EFORMAT,
                "token %d of this tokenizer is not %s; translate needs <pad>, <unk>, <s> and </s> as its first "
                "tokens",
                i, special[i]);
    if (!pairs_open(&p->pairs, t->tokens, own_ids, p->source, p->target, p->pieces, p->longest, (uint64_t)t->asked.seed,
                    false))
        return false;
    t->fit.train = tn_pairs_source(p->pairs.batches), t->fit.loss = pairs_loss;
    t->uniform = log((double)tn_tokenizer_size(t->tokens));
    t->fit.keep = p->average > 2 ? p->average : 2;
    t->batches = t->fit.train.batches, t->width = p->pieces, t->every = p->valid_every;
    snprintf(t->each, sizeof t->each, "up to %lld tokens", (long long)p->pieces);
    if (!p->valid_source) return true;
    if (!pairs_open(&p->held, t->tokens, own_ids, p->valid_source, p->valid_target, p->pieces, positions_of(p) - 1, 1,
                    true))
        return false;
    t->fit.valid = tn_pairs_source(p->held.batches), t->fit.measure = tn_seq2seq_fit_loss;
    t->fit.restore_best = true, t->fit.patience = p->patience;
    if (!bleu) return true;
    t->fit.score = bleu_set_score, t->fit.user = &p->bleu, t->fit.rising = true, t->score = "BLEU";
    return bleu_set_open(&p->bleu, t->tokens, p->valid_source, p->valid_target, 0);
}

static void *new_model(training *t)
{
    const translate_training *p = of(t);
    const train_asked        *a = &t->asked;
    tn_seq2seq_config         c = tn_seq2seq_size(a->size);
    c.kind = tn_seq2seq_kind_of(p->model);
    c.source_words = tn_tokenizer_size(t->tokens), c.shared = true;
    c.padding = PADDING, c.begin = BEGIN, c.end = END;
    c.norm_first = p->norm_first, c.lstm = p->lstm;
    if (c.kind == TN_SEQ2SEQ_TRANSFORMER) c.heads = a->heads;
    c.ff = c.ff / c.dim * a->dim, c.layers = a->layers, c.dim = a->dim, c.dropout = a->dropout;
    c.positions = positions_of(p);
    return tn_seq2seq_create(c);
}

static void print_summary(training *t)
{
    const translate_training *p = of(t);
    const tn_pairs           *all = p->pairs.pairs;
    const int64_t             longer = tn_pairs_dropped(all) - p->state.empty;
    tell("text     %lld sentence pairs, %lld source and %lld target tokens\n", (long long)tn_pairs_count(all),
         (long long)tn_pairs_tokens(all, false), (long long)tn_pairs_tokens(all, true));
    if (p->state.empty)
        tell("         skipped: %lld pairs with an empty line; the first is line %lld\n", (long long)p->state.empty,
             (long long)p->state.first_empty);
    if (longer > 0)
        tell("         skipped: %lld pairs longer than %lld tokens (--longest)\n", (long long)longer,
             (long long)p->longest);
    const int64_t held = p->valid_source ? tn_pairs_dropped(p->held.pairs) - p->held_state.empty : 0;
    if (held > 0)
        tell("         skipped in validation: %lld pairs longer than the model's %lld positions\n", (long long)held,
             (long long)positions_of(p));
}

static void describe(const training *t, tn_json_writer *w)
{
    const translate_training *p = (const translate_training *)t;
    const char               *file[] = {p->source, p->target, p->valid_source, p->valid_target};
    const char *const         name[] = {"src", "tgt", "valid-src", "valid-tgt"};
    for (int i = 0; i < 4; i++)
        if (file[i]) checksum_put(w, name[i], checksum_file(CHECKSUM, file[i]));
    tn_json_put_string(w, "model", p->model);
    tn_json_put_i64(w, "tokens", p->pieces);
    tn_json_put_i64(w, "longest", p->longest);
    tn_json_put_bool(w, "norm_first", p->norm_first);
    tn_json_put_bool(w, "lstm", p->lstm);
    if (by_bleu(p)) tn_json_put_string(w, "stop_on", p->stop_on);
    if (p->valid_every) tn_json_put_i64(w, "valid_every", p->valid_every);
    if (p->average) tn_json_put_i64(w, "average", p->average);
    if (p->patience) tn_json_put_i64(w, "patience", p->patience);
}

/* Replaces the best weights with the mean of the last training checkpoints. */
static bool average_checkpoints(training *t)
{
    static weights w;
    char           folder[1024];
    bleu_set      *j = &of(t)->bleu;
    const double   best = t->score ? bleu_set_score(t->net, j) : 0;
    w.n = 0;
    if (!weights_add(&w, in_folder(t->asked.out, "checkpoints", folder), of(t)->average) ||
        !weights_average(&w, t->net))
        return false;
    if (settings.quiet) return true;
    tell("model    mean of the last %d checkpoints", w.n);
    if (t->score) tell(": BLEU %.2f on the validation set; best checkpoint: %.2f", bleu_set_score(t->net, j), best);
    tell("\n");
    return true;
}

static bool save(training *t, tn_fit_why why)
{
    if (why != TN_FIT_STOPPED && of(t)->average && !average_checkpoints(t)) return false;
    return tn_seq2seq_save(t->net, t->asked.out) == TN_OK;
}

static void close_all(training *t)
{
    bleu_set_close(&of(t)->bleu);
    pairs_close(&of(t)->pairs), pairs_close(&of(t)->held);
}

/* "source => target" */
static void row(training *t, const tn_batch *b, int64_t i, const tn_ids *ids, char place[64], tn_string *text)
{
    const tn_tensor *pair = tn_batch_get(b, "pair");
    const int64_t    width = pair ? tn_size(b->y, 1) : 0, line = pair ? tn_get_i64(pair, i) : -1;
    tn_ids           target = {0};
    for (int64_t k = 0; k < width; k++) tn_ids_add(&target, (int32_t)tn_get_i64(b->y, i * width + k));
    if (tn_tokenizer_decode(t->tokens, ids->at, ids->n, text) == TN_OK &&
        tn_string_add(text, tn_text_of(" => ")) == TN_OK)
        (void)!tn_tokenizer_decode(t->tokens, target.at, target.n, text); /* the caller sees the error */
    tn_ids_free(&target);
    if (line >= 0) snprintf(place, 64, "line %lld", (long long)tn_pairs_line(of(t)->pairs.pairs, line) + 1);
}

const train_kind translate_kind = {
    .title = "Training of a translation model",
    .max_interval = 1000,
    .minutes = 60,
    .check = check,
    .read = check_files,
    .tokenizer = tokenizer,
    .end = END, /* pairs.c and run add it themselves; Python's generate and other readers of the folder do not */
    .open = open_all,
    .make = new_model,
    .print_info = print_summary,
    .describe = describe,
    .save = save,
    .close = close_all,
    .next = "echo \"a sentence\" | translate run --model %s",
    .tag = "translation",
    .row = row,
    .causal = "y",
};

/* ---- the command ------------------------------------------------------------------------------------------------- */

static translate_training asked = TRANSLATE_TRAINING;

static const option options[] = {
    OPTION_TEXT("objective", 0, "NAME", &asked.objective,
                "what is learned: to translate --src, or the removed spans of --text, as T5 is pretrained",
                .choices = "translation|t5"),
    OPTION_TEXT("src", 0, "FILE", &asked.source, "source text, one sentence per line"),
    OPTION_TEXT("tgt", 0, "FILE", &asked.target, "target text: translations of --src, line by line"),
    OPTION_LIST("text", 0, "FILE", &asked.texts.text, "t5: training text: files, folders, or - for standard input"),
    OPTION_LIST("valid", 0, "FILE", &asked.texts.valid, "t5: validation text, used to select the best model"),
    OPTION_REAL("valid-part", 0, "P", &asked.texts.valid_part,
                "t5: fraction of the text, from its end, to validate on instead of --valid (default: 0.1)", .least = 0,
                .most = 0.5),
    OPTION_INT("length", 'l', "N", &asked.length,
               "t5: tokens of an input, sentinels included (default: 128; below 10 minutes: 64)", .least = 16,
               .most = 1809), /* of which 100 spans, as many as there are sentinels */
    OPTION_TEXT("valid-src", 0, "FILE", &asked.valid_source, "source text of the validation set"),
    OPTION_TEXT("valid-tgt", 0, "FILE", &asked.valid_target, "target text of the validation set"),
    OPTION_TEXT("model", 0, "KIND", &asked.model, "network architecture",
                .choices = "transformer|bahdanau|luong|rnn|convs2s|bytenet|gnmt"),
    OPTION_FLAG("norm-first", 0, &asked.norm_first, "layer norm before each sublayer, not after it (transformer only)"),
    OPTION_FLAG("lstm", 0, &asked.lstm, "LSTM cells instead of GRU cells (bahdanau, luong and rnn only)"),
    OPTION_TEXT("stop-on", 0, "METRIC", &asked.stop_on, "validation metric that selects the best model",
                .choices = "loss|bleu"),
    OPTION_INT(
        "valid-every", 0, "N", &asked.valid_every,
        "steps between validations, which write checkpoints (default: a twentieth of the steps, from 10 to 1000)",
        .least = 1, .most = 1e9),
    OPTION_INT("average", 0, "N", &asked.average,
               "save the mean of the last N checkpoints as the model, instead of the best or the last one", .least = 1,
               .most = MOST_WEIGHTS),
    OPTION_INT("patience", 0, "N", &asked.patience, "stop after N validations without improvement (default: no limit)",
               .least = 1, .most = 1e6),
    OPTION_INT("tokens", 0, "N", &asked.pieces, "maximum tokens per batch (default: 4096; below 10 minutes: 1024)",
               .least = 16, .most = 1e7),
    OPTION_INT("longest", 0, "N", &asked.longest, "skip training pairs with a line of more than N tokens", .least = 1,
               .most = 16384),
    TRAIN_OPTIONS(asked.base.asked, 0, "nano|tiny|small|base|big", "60", "0.384 divided by the width"),
    {0},
};
const command train_command = TRAIN_COMMAND(
    "train", "train a model on two parallel files", options, &asked.base,
    .text = "Line i of --tgt is the translation of line i of --src. Ctrl-C saves and ends; --out DIR "
            "--resume continues, and ends with the same bits as an uninterrupted run.\n"
            "\n"
            "  translate train --src train.en --tgt train.de --valid-src val.en \\\n"
            "                  --valid-tgt val.de --out ende\n"
            "\n"
            "With --objective t5, the model learns from plain text instead: it reads the text without some "
            "spans and writes these. DIR is then a directory of T5, which 'translate tune' trains further on "
            "a task that is given as text.\n"
            "\n"
            "  translate train --objective t5 --text books/ --out t5");

const command verify_command = VERIFY_COMMAND("translate");
const command debug_command = DEBUG_COMMAND("translate");
