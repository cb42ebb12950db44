/* train.c — translate train: a tokenizer for both languages, a model and its training, all in one folder. */
#include "translate.h"

#include <math.h>
#include <string.h>

/* ---- parts ------------------------------------------------------------------------------------------------------- */

/* The one in the folder to go on with, or a new one from both texts. */
static tn_tokenizer *tokenizer_for(const train_config *c)
{
    static const char *const special[] = {"<pad>", "<unk>", "<s>", "</s>", NULL};
    if (c->resume) return tn_tokenizer_load(c->out);
    progress      bar = progress_begin("tokenizer", 100, "%");
    tn_tokenizer *t = tn_tokenizer_train(2, ((const char *[]){c->source, c->target}), .kind = TN_BYTE_BPE,
                                         .vocab_size = c->vocab_size, .cased = true, .special = special,
                                         .progress = progress_part, .user = &bar);
    progress_end(&bar);
    return t;
}

static tn_seq2seq *net_for(const train_config *c, const tn_tokenizer *t)
{
    tn_seq2seq_config n = tn_seq2seq_size(c->size);
    n.kind = tn_seq2seq_kind_of(c->model);
    if (n.kind != TN_SEQ2SEQ_TRANSFORMER) n.layers = 1;
    n.source_words = tn_tokenizer_size(t), n.shared = true;
    n.padding = PADDING, n.begin = BEGIN, n.end = END;
    n.norm_first = c->norm_first, n.lstm = c->lstm;
    if (c->layers) n.layers = c->layers;
    if (c->dim) n.ff = n.ff / n.dim * c->dim, n.dim = c->dim;
    if (c->dropout > 0) n.dropout = c->dropout;
    if (c->longest >= 500) n.positions = 2 * c->longest + 24;
    tn_seed((uint64_t)c->seed);
    return tn_error() == TN_OK ? tn_seq2seq_create(n) : NULL;
}

static bool by_bleu(const train_config *c) { return !strcmp(c->stop_on, "bleu"); }

/* What the run is: to resume it, the same must be asked for. The number of steps is part of it. */
static const char *described(const train_config *c, int64_t steps, tn_json_writer *w)
{
    tn_json_open_object(w, NULL);
    tn_json_put_string(w, "model", c->model);
    tn_json_put_string(w, "size", c->size);
    tn_json_put_string(w, "dtype", c->dtype);
    tn_json_put_i64(w, "steps", steps);
    tn_json_put_i64(w, "tokens", c->tokens);
    tn_json_put_double(w, "lr", c->lr);
    tn_json_put_double(w, "warmup", c->warmup);
    tn_json_put_i64(w, "seed", c->seed);
    if (by_bleu(c)) tn_json_put_string(w, "stop_on", c->stop_on);
    if (c->valid_every) tn_json_put_i64(w, "valid_every", c->valid_every);
    tn_json_close(w);
    size_t bytes;
    return tn_json_text(w, &bytes);
}

static void announce(const train_config *c, tn_seq2seq *net, const pairs *p, const pairs_state *state, int64_t steps,
                     double seconds)
{
    if (settings.quiet) return;
    char          time[16];
    const int64_t longer = tn_pairs_dropped(p->pairs) - state->empty;
    fprintf(stderr, "model    %s: %.2f million parameters, a vocabulary of %lld\n", c->model,
            (double)tn_count(net) / 1e6, (long long)net->config.source_words);
    fprintf(stderr, "text     %lld pairs of lines, %lld and %lld pieces", (long long)tn_pairs_count(p->pairs),
            (long long)tn_pairs_tokens(p->pairs, false), (long long)tn_pairs_tokens(p->pairs, true));
    if (state->empty)
        fprintf(stderr, "\n         left out: %lld pairs with an empty line, the first of them line %lld",
                (long long)state->empty, (long long)state->first_empty);
    if (longer > 0)
        fprintf(stderr, "\n         left out: %lld pairs longer than %lld pieces (--longest)", (long long)longer,
                (long long)c->longest);
    fprintf(stderr, "\nsteps    %lld of at most %lld pieces", (long long)steps, (long long)c->tokens);
    if (seconds > 0)
        fprintf(stderr, "; %.0f ms each, about %s in all", 1e3 * seconds, progress_time(seconds * (double)steps, time));
    fprintf(stderr, "\n");
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

/* Its last checkpoints in the place of the best one. */
static bool averaged(const train_config *c, model *m, judge *j)
{
    static weights w;
    char           folder[1024];
    const double   best = by_bleu(c) ? judge_bleu(m->net, j) : 0;
    w.n = 0;
    if (!weights_add(&w, in_folder(c->out, "checkpoints", folder), c->average) || !weights_average(&w, m->net))
        return false;
    if (settings.quiet) return true;
    fprintf(stderr, "the mean of the last %d checkpoints is the model", w.n);
    if (by_bleu(c))
        fprintf(stderr, ": BLEU %.2f on validation, where the best one has %.2f", judge_bleu(m->net, j), best);
    fprintf(stderr, "\n");
    return true;
}

tn_fit_result train_model(const train_config *c, model *m)
{
    tn_fit_result   r = {.why = TN_FIT_FAILED};
    pairs           train = {.pairs = NULL}, valid = {.pairs = NULL};
    pairs_state     state, valid_state;
    judge           j = {.source = NULL};
    char            folder[1024];
    tn_json_writer *w = tn_json_writer_new(2);
    record          rec = {.log = NULL};
    const bool      cast = !strcmp(c->dtype, "bf16"), bleu = by_bleu(c);
    *m = (model){.net = NULL};
    if (!w || !pairs_check(c->source, c->target, &state)) goto out;
    if (c->valid_source && !pairs_check(c->valid_source, c->valid_target, &valid_state)) goto out;
    if (!record_may_begin(c->out, c->resume) || !(m->tokens = tokenizer_for(c))) goto out;
    if (!pairs_open(&train, m->tokens, c->source, c->target, c->tokens, c->longest, (uint64_t)c->seed, false)) goto out;
    if (c->valid_source && !pairs_open(&valid, m->tokens, c->valid_source, c->valid_target, c->tokens, 0, 1, true))
        goto out;
    if (!(m->net = net_for(c, m->tokens))) goto out;
    if (bleu && !judge_open(&j, m, c->valid_source, c->valid_target)) goto out;

    int64_t steps = c->resume ? record_steps(c->out) : 0;
    double  seconds = 0;
    if (!steps) {
        seconds = step_seconds(tn_copy(m->net), tn_pairs_source(train.batches), pairs_loss, cast);
        steps = c->steps ? c->steps : c->epochs ? c->epochs * tn_pairs_batches_count(train.batches) : 0;
        if (!steps) steps = (int64_t)fmax(60 * c->minutes / seconds, 1);
    }
    if (tn_error() != TN_OK) goto out;
    announce(c, m->net, &train, &state, steps, seconds);
    const char *config = described(c, steps, w);
    if (!record_run(c->out, c->resume, m->tokens, config)) goto out;

    rec = record_begin(c->out, steps, c->resume);
    rec.bar.score = bleu ? "BLEU" : NULL;
    stop_begin("saving, then ending; press again to end at once");
    int64_t every = steps / 20 > 1000 ? 1000 : steps / 20 > 10 ? steps / 20 : 10;
    if (c->valid_every) every = c->valid_every;
    r = tn_fit(m->net, .train = tn_pairs_source(train.batches), .loss = pairs_loss, .steps = steps, .autocast = cast,
               .lr = c->lr, .warmup = (int64_t)(c->warmup * (double)steps) + 1, .valid = tn_pairs_source(valid.batches),
               .measure = valid.batches ? pairs_plain_loss : NULL, .score = bleu ? judge_bleu : NULL, .user = &j,
               .rising = bleu, .valid_every = valid.batches ? every : 0, .restore_best = valid.batches != NULL,
               .patience = valid.batches ? c->patience : 0, .folder = in_folder(c->out, "checkpoints", folder),
               .save_every = every, .keep = c->average > 2 ? c->average : 2, .resume = c->resume, .config = config,
               .on = record_fit, .on_user = &rec, .stop = &stop_flag);
    if (r.why != TN_FIT_FAILED) {
        tn_eval(m->net);
        const bool over = r.why != TN_FIT_STOPPED;
        if ((!over || !c->average || averaged(c, m, &j)) && tn_seq2seq_save(m->net, c->out) == TN_OK)
            record_page(c->out, "A translator in training");
    }
out:
    if (tn_error() != TN_OK) r.why = TN_FIT_FAILED;
    record_end(&rec);
    tn_json_writer_free(w);
    judge_close(&j);
    pairs_close(&train), pairs_close(&valid);
    return r;
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static train_config asked = TRAIN_DEFAULTS;

static int run(int count, char **operands)
{
    (void)count, (void)operands;
    if ((asked.steps > 0) + (asked.epochs > 0) + (asked.minutes > 0) > 1)
        return program_usage("--steps, --epochs and --minutes are three ways to say one thing: give one of them");
    if (!asked.valid_source != !asked.valid_target) return program_usage("--valid-src and --valid-tgt belong together");
    if (!asked.valid_source && (by_bleu(&asked) || asked.patience))
        return program_usage("--%s needs --valid-src and --valid-tgt, to see how good the model is",
                             by_bleu(&asked) ? "stop-on bleu" : "patience");
    if (!asked.steps && !asked.epochs && !(asked.minutes > 0)) asked.minutes = 60;
    model               m;
    const tn_fit_result r = train_model(&asked, &m);
    if (r.why == TN_FIT_STOPPED && !settings.quiet)
        fprintf(stderr, "stopped at step %lld; the same command with --resume goes on\n", (long long)r.steps);
    else if (r.why != TN_FIT_FAILED) {
        printf("%s: step %lld, loss %.4f", asked.out, (long long)r.steps, r.loss);
        if (isfinite(r.best))
            printf(", best on validation %s%.4f at step %lld", by_bleu(&asked) ? "BLEU " : "", r.best,
                   (long long)r.best_step);
        printf("\n");
    }
    model_close(&m);
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("src", 's', "FILE", &asked.source, "what is to be translated, a sentence a line", .required = true),
    OPTION_TEXT("tgt", 't', "FILE", &asked.target, "its translations, line by line", .required = true),
    OPTION_TEXT("valid-src", 0, "FILE", &asked.valid_source, "the same, to choose the best by"),
    OPTION_TEXT("valid-tgt", 0, "FILE", &asked.valid_target, "and its translations"),
    OPTION_TEXT("out", 'o', "DIR", &asked.out, "where the model goes", .required = true),
    OPTION_TEXT("model", 0, "KIND", &asked.model, "which network", .choices = "transformer|bahdanau|luong|rnn"),
    OPTION_TEXT("size", 0, "NAME", &asked.size, "of a Transformer", .choices = "tiny|small|base|big"),
    OPTION_INT("dim", 0, "N", &asked.dim, "another width", .least = 1, .most = 65536),
    OPTION_INT("layers", 0, "N", &asked.layers, "another number of layers", .least = 1, .most = 1024),
    OPTION_REAL("dropout", 0, "P", &asked.dropout, "another dropout", .least = 0.001, .most = 0.9),
    OPTION_FLAG("norm-first", 0, &asked.norm_first, "norms before the layers' parts"),
    OPTION_FLAG("lstm", 0, &asked.lstm, "recurrent networks of LSTMs, not GRUs"),
    OPTION_INT("vocab-size", 0, "N", &asked.vocab_size, "pieces of both languages", .least = 260, .most = 1e7),
    OPTION_INT("steps", 'n', "N", &asked.steps, "how long: steps, or ...", .least = 1, .most = 1e9),
    OPTION_INT("epochs", 0, "N", &asked.epochs, "... times through the texts, or ...", .least = 1, .most = 1e6),
    OPTION_REAL("minutes", 'm', "N", &asked.minutes, "... about so many minutes; without all three, 60", .least = 0.01,
                .most = 1e6),
    OPTION_TEXT("stop-on", 0, "WHAT", &asked.stop_on, "what says which model is the best on the validation files",
                .choices = "loss|bleu"),
    OPTION_INT("valid-every", 0, "N", &asked.valid_every, "steps from one validation and checkpoint to the next",
               .least = 1, .most = 1e9),
    OPTION_INT("average", 0, "N", &asked.average, "at the end, the mean of the last N checkpoints is the model",
               .least = 1, .most = MOST_WEIGHTS),
    OPTION_INT("patience", 0, "N", &asked.patience, "end when validation was no better so many times", .least = 1,
               .most = 1e6),
    OPTION_INT("tokens", 'b', "N", &asked.tokens, "pieces in a batch", .least = 16, .most = 1e7),
    OPTION_INT("longest", 0, "N", &asked.longest, "pieces of the longest line to learn from", .least = 1,
               .most = 16384),
    OPTION_TEXT("dtype", 0, "TYPE", &asked.dtype, "bf16 is faster where the CPU has it", .choices = "f32|bf16"),
    OPTION_REAL("lr", 0, "RATE", &asked.lr, "the highest learning rate", .least = 1e-9, .most = 10),
    OPTION_FLAG("resume", 'r', &asked.resume, "go on where a run was broken off"),
    OPTION_INT("seed", 0, "N", &asked.seed, "of everything that is drawn"),
    {0},
};
const command train_command = {
    .name = "train",
    .summary = "train a model from two files",
    .options = options,
    .run = run,
    .text = "Line i of --tgt is the translation of line i of --src. Ctrl-C saves and ends;\n"
            "the same command with --resume goes on, and ends with the same bits.\n"
            "\n"
            "  translate train --src train.en --tgt train.de --valid-src val.en \\\n"
            "                  --valid-tgt val.de --out ende",
};
