/* train.c — see train.h. */
#include "messages.h"
#include "train.h"

#include "checksum.h"
#include "resume.h"
#include "texts.h"
#include "weights.h"

#include <string.h>

int train_shape(training *t, int64_t layers, int64_t heads, int64_t dim, double rate)
{
    train_asked *a = &t->asked;
    if (!a->layers) a->layers = layers;
    if (!a->heads) a->heads = heads;
    if (!a->dim) a->dim = dim;
    if (isnan(a->lr)) a->lr = fmin(rate / (double)a->dim, 0.004);
    if (a->dim % a->heads == 0) return 0;
    return program_usage("a width of %lld is not divisible by %lld heads; change --dim or --heads", (long long)a->dim,
                         (long long)a->heads);
}

/* Of a resumed run: a duration on the command line replaces the one that was saved; otherwise the run keeps its number
 * of steps, which may be larger. The saved one counts if the run starts again. */
static void choose_duration(training *t)
{
    train_asked *a = &t->asked;
    if (!a->resume) return;
    if (!program_typed("steps") && !program_typed("epochs") && !program_typed("minutes")) {
        if (program_given("steps") || program_given("epochs") || program_given("minutes")) t->no_duration = true;
        return;
    }
    if (!program_typed("steps")) a->steps = 0;
    if (!program_typed("epochs")) a->epochs = 0;
    if (!program_typed("minutes")) a->minutes = 0;
}

/* Checks the options, before anything is created. Returns 0 or an exit code. */
int train_check(training *t)
{
    train_asked *a = &t->asked;
    choose_duration(t);
    if ((a->steps > 0) + (a->epochs > 0) + (a->minutes > 0) > 1)
        return program_usage("--steps, --epochs and --minutes exclude each other; give only one of them");
    if (a->resume && program_typed("vocab") && !program_typed("vocab-size")) a->vocab_size = 0;
    if (a->vocab && a->vocab_size)
        return program_usage("--vocab-size is for a new tokenizer, but --vocab names an existing one");
    if (!a->steps && !a->epochs && !(a->minutes > 0)) a->minutes = t->kind->minutes, t->no_duration = true;
    t->vocab_size_given = a->vocab_size > 0;
    if ((a->shards || a->zero) && !t->world)
        return program_usage("--%s is for several processes; set --ranks, too", a->zero ? "zero" : "shards");
    const int wrong = plan_budget(t);
    return wrong ? wrong : t->kind->check(t);
}

bool train_read(training *t)
{
    if (t->kind->read && !t->kind->read(t)) return false;
    if (!t->asked.vocab_size && t->kind->tokenizer) t->asked.vocab_size = 8000;
    return true;
}

/* The tokenizer of the run to resume, the one of --vocab, or a new one. */
tn_tokenizer *train_tokenizer(training *t)
{
    const int32_t end = t->kind->end;
    tn_tokenizer *made;
    if (!t->kind->tokenizer) return NULL;
    if (t->asked.resume || t->asked.vocab) made = tn_tokenizer_load(t->asked.resume ? t->asked.out : t->asked.vocab);
    else {
        progress bar = progress_begin("tokenizer", 100, "%");
        made = t->kind->tokenizer(t, &bar);
        progress_end(&bar);
    }
    if (made && end && end < tn_tokenizer_size(made)) (void)!tn_tokenizer_set_end(made, end); /* or open rejects it */
    return made;
}

/* With --resume and --vocab, checks that --vocab is the run's tokenizer. */
static bool check_tokenizer(const training *t)
{
    const train_asked *a = &t->asked;
    if (!a->resume || !program_typed("vocab") || !t->tokens) return tn_error() == TN_OK;
    tn_tokenizer *named = tn_tokenizer_load(a->vocab);
    if (tn_error() == TN_OK && tn_tokenizer_checksum(named) != tn_tokenizer_checksum(t->tokens))
        tn_raise(
            TN_EINVAL,
            "the run in '%s' has another tokenizer than '%s'; omit --vocab to resume with the run's own, or choose "
            "another folder",
            a->out, a->vocab);
    tn_tokenizer_free(named);
    return tn_error() == TN_OK;
}

void *train_model(training *t)
{
    tn_seed((uint64_t)t->asked.seed);
    return tn_error() == TN_OK ? t->kind->make(t) : NULL;
}

/* The number of steps; 0: an error is set. If the duration of a step is needed, trains and frees the model to measure
 * it, and creates a new one. K ranks are assumed to be K times as fast. */
static int64_t steps_for(training *t, double *seconds)
{
    const train_asked *a = &t->asked;
    *seconds = 0;
    if (a->resume) return train_resumed_steps(t);
    if (a->minutes > 0 || (!settings.quiet && !t->untimed)) {
        void *net = t->net;
        t->net = NULL; /* only one model is in memory at a time */
        *seconds = step_seconds(net, t->fit);
        if (tn_error() != TN_OK || !(t->net = train_model(t))) return 0;
    }
    if (a->steps || a->epochs) return a->steps ? a->steps : a->epochs * t->batches;
    *seconds /= tn_world_size(t->world);
    return plan_steps(t, *seconds);
}

static bool has_validation(const training *t) { return t->fit.valid.next || t->fit.score; }

static void announce(training *t, int64_t steps, double seconds)
{
    const train_asked *a = &t->asked;
    char               time[16];
    if (settings.quiet) return;
    tell("model    %s: %lld layers of width %lld, %.2f million parameters", a->size, (long long)a->layers,
         (long long)a->dim, weights_count(t->net) / 1e6);
    if (t->tokens) tell(", a vocabulary of %lld", (long long)tn_tokenizer_size(t->tokens));
    tell(", in %s\n", a->dtype);
    if (t->chosen) {
        tell("chosen   --size %s", a->size);
        if (!a->vocab) tell(" --vocab-size %lld", (long long)a->vocab_size);
        tell(" --lr %.3g", a->lr);
        if (a->minutes > 0) tell(", for %.3g minutes", a->minutes);
        tell("\n");
    }
    t->kind->print_info(t);
    tell("memory   about %.0f MiB\nsteps    %lld × %s", plan_memory(t) / 1048576, (long long)steps, t->each);
    const double epochs = t->batches > 0 ? (double)steps / (double)t->batches : 0;
    if (epochs > 0) tell(epochs < 0.01 ? " = %.1g epochs" : epochs < 100 ? " = %.2f epochs" : " = %.0f epochs", epochs);
    if (seconds > 0)
        tell("; %.0f ms each, about %s in all", 1e3 * seconds, progress_time(seconds * (double)steps, time));
    tell("\nreport   %s/report.html, written again at each %s\n", a->out,
         has_validation(t) ? "validation" : "training checkpoint");
}

/* The vocabulary size for run.json: of the resumed run, of the --vocab tokenizer, or --vocab-size. */
static int64_t vocabulary_of(const training *t)
{
    const train_asked *a = &t->asked;
    if (a->resume && !t->vocab_size_given) return record_count(a->out, "vocab_size");
    return a->vocab ? tn_tokenizer_size(t->tokens) : a->vocab_size;
}

/* The options that define the run, as JSON for run.json and for its checkpoints; a resumed run must have the same ones.
 * The number of steps is the one of the start, also if the run was lengthened. */
const char *train_describe(const training *t, int64_t steps, tn_json_writer *w)
{
    const train_asked *a = &t->asked;
    if (a->resume) steps = record_count(a->out, "steps");
    tn_json_open_object(w, NULL);
    t->kind->describe(t, w);
    tn_json_put_string(w, "size", a->size);
    tn_json_put_string(w, "dtype", a->dtype);
    if (t->tokens) tn_json_put_i64(w, "vocab_size", vocabulary_of(t));
    tn_json_put_i64(w, "steps", steps);
    if (t->speed > 0) tn_json_put_double(w, "speed", t->speed);
    tn_json_put_double(w, "minutes", a->resume ? record_number(a->out, "minutes") : a->minutes);
    tn_json_put_i64(w, "layers", a->layers);
    tn_json_put_i64(w, "heads", a->heads);
    tn_json_put_i64(w, "dim", a->dim);
    tn_json_put_double(w, "lr", a->lr);
    tn_json_put_double(w, "warmup", a->warmup);
    tn_json_put_double(w, "dropout", a->dropout);
    tn_json_put_i64(w, "seed", a->seed);
    if (t->world) tn_json_put_i64(w, "shards", a->shards);
    tn_json_close(w);
    return tn_json_text(w, NULL);
}

void train_put_path(const training *t, tn_json_writer *w, const char *name, const char *path)
{
    tn_json    *j = t->asked.resume ? record_asked(t->asked.out) : NULL;
    const char *was = tn_json_string_or(tn_json_get(tn_json_get(j, "asked"), name), "");
    texts_put(w, name, *was && (!program_typed(name) || same_file(path, was)) ? was : path);
    tn_json_free(j);
}

static bool is_number(const tn_json *v)
{
    return tn_json_type_of(v) == TN_JSON_INTEGER || tn_json_type_of(v) == TN_JSON_REAL;
}

/* An option that was not given when the run started, and now has another value than the run: raises. */
static bool check_value(const char *folder, const tn_json *here, const tn_json *was)
{
    char name[64];
    snprintf(name, sizeof name, "%s", tn_json_key(here));
    for (char *c = name; *c; c++)
        if (*c == '_') *c = '-';
    const bool   number = is_number(here) && is_number(was);
    const double is = number ? tn_json_double(here) : 0, before = number ? tn_json_double(was) : 0;
    if (!number || !program_typed(name) || is == before) return true;
    return tn_raise_false(TN_EINVAL,
                          "'%s' is another run: --%s is %g in the run, %g here; omit it to resume it, or choose "
                          "another folder",
                          folder, name, before, is);
}

/* If the texts differ from those of the run, raises an error that names the file; if an option differs, one that names
 * the option. tn_fit compares the other values. */
static bool check_same_run(const training *t, const char *config)
{
    tn_json *here = config ? tn_json_parse(config, strlen(config)) : NULL, *there = record_asked(t->asked.out);
    bool     same = true;
    for (const tn_json *v = tn_json_first(here); v && same; v = tn_json_next(v)) {
        const tn_json *was = tn_json_get(tn_json_get(there, "asked"), tn_json_key(v));
        if (tn_json_type_of(v) == TN_JSON_STRING && strlen(tn_json_string(v)) == 16)
            same = was && tn_json_type_of(was) == TN_JSON_STRING && !strcmp(tn_json_string(v), tn_json_string(was));
        else if (was && !check_value(t->asked.out, v, was)) break;
    }
    tn_json_free(here), tn_json_free(there);
    return tn_error() == TN_OK && (same || resume_same_files());
}

/* Sets the number of shards. It is part of the run's definition: a resumed run keeps it, even in one process. */
static bool set_shards(training *t)
{
    train_asked  *a = &t->asked;
    const int64_t before = a->resume ? record_count(a->out, "shards") : 0;
    if (!t->world && before) t->world = tn_world_single();
    if (!a->shards) a->shards = before ? before : 12;
    return tn_error() == TN_OK;
}

static bool prepare(training *t)
{
    train_asked *a = &t->asked;
    t->fit = TN_WITH(tn_fit_args, TN_FIT_ARGS_DEFAULTS, .autocast = !strcmp(a->dtype, "bf16"), .lr = a->lr,
                     .memory = t->fit.memory);
    if (!run_check(&a->compare) || !train_read(t)) return false;
    if (!record_lock_folder(a->out, &a->resume)) return false;
    t->new_folder = !a->resume;
    if (!set_shards(t)) return false;
    t->tokens = train_tokenizer(t);
    if (!check_tokenizer(t) || !t->kind->open(t)) return false;
    return (t->net = train_model(t)) && record_memory(plan_memory(t), a->force) &&
           record_space(a->out, plan_disk(t), a->force);
}

/* Rank 0, or the only process: everything up to the point from which the run can be resumed. NULL: raised. */
static const char *lead(training *t, tn_json_writer *w, int64_t *steps)
{
    double seconds;
    if (!prepare(t) || !(*steps = steps_for(t, &seconds)) || tn_error() != TN_OK) return NULL;
    announce(t, *steps, seconds);
    const char *config = train_describe(t, *steps, w);
    t->new_folder = false;
    if (t->asked.resume && !check_same_run(t, config)) return NULL;
    const bool longer = t->asked.resume && *steps > record_steps(t->asked.out);
    if (longer && !record_set_steps(t->asked.out, *steps)) return NULL;
    const double    epochs = t->batches > 0 ? (double)*steps / (double)t->batches : 0;
    const run_start start = {weights_count(t->net), epochs, tn_tokenizer_size(t->tokens)};
    return record_run(t->asked.out, t->asked.resume, t->tokens, config) && run_begin(t->asked.out, &start, longer)
               ? config
               : NULL;
}

/* The other ranks: wait for rank 0, then read the files it has written. */
static const char *follow(training *t, tn_json_writer *w, int64_t *steps)
{
    train_asked *a = &t->asked;
    if (tn_world_barrier(t->world) != TN_OK) return NULL;
    t->fit = TN_WITH(tn_fit_args, TN_FIT_ARGS_DEFAULTS, .autocast = !strcmp(a->dtype, "bf16"), .lr = a->lr);
    a->resume = true;
    if (!set_shards(t) || !train_read(t)) return NULL;
    t->tokens = train_tokenizer(t);
    if (tn_error() != TN_OK || !t->kind->open(t)) return NULL;
    *steps = record_steps(a->out);
    return *steps && (t->net = train_model(t)) ? train_describe(t, *steps, w) : NULL;
}

run_page train_page(const training *t, bool live)
{
    const train_kind *k = t->kind;
    return (run_page){.folder = t->asked.out,
                      .title = k->title,
                      .score = t->score,
                      .rising = t->fit.rising,
                      .live = live,
                      .unigram = t->unigram,
                      .compare = &t->asked.compare,
                      .next = t->next ? t->next : k->next,
                      .tag = t->tag ? t->tag : k->tag,
                      .load = t->load};
}

/* The page and the card of a run that is complete; a stopped run has no card yet. */
static bool finish(const training *t, const tn_fit_result *r)
{
    const run_page p = train_page(t, false);
    return run_end(&p, fmax(r->seconds, t->plan.before)) && run_write(&p) && (r->why == TN_FIT_STOPPED || run_card(&p));
}

/* True if a loss is not clearly below that of a guess by the tokens' frequencies. A model that has learned only those
 * and a few neighbours is a few percent below it; one that uses its context falls far below within minutes. */
static bool only_frequencies(const training *t, double loss) { return t->unigram > 0 && loss > 0.92 * t->unigram; }

typedef struct {
    record         rec;
    training      *t;
    sentence_pairs pairs; /* a sample of the file t->pairs */
} listener;

/* Prints and records the percentage of sentence pairs that the model orders correctly. */
static void measure_pairs(listener *l, int64_t step)
{
    const char *name = "valid/pairs";
    if (!l->pairs.of.n || tn_error() != TN_OK) return;
    if (!sentence_pairs_measure(&l->pairs, l->t->kind->score_pairs, l->t->net, l->t->tokens, true)) return;
    progress_say(&l->rec.bar, "step %lld: %.1f %% of sentence pairs right; chance is 50 %%", (long long)step,
                 l->pairs.mean);
    tn_runlog_put(l->rec.log, step, 1, &name, &l->pairs.mean);
}

static void on_event(const tn_fit_event *e, void *user)
{
    listener *l = user;
    plan_watch(&l->t->plan, e, &l->rec.bar);
    if (e->what == TN_FIT_END && l->t->plan.steps) return; /* it goes on with another number of steps */
    record_fit(e, &l->rec);
    if (e->what == TN_FIT_VALID && !l->t->score && only_frequencies(l->t, e->value))
        progress_say(&l->rec.bar, "step %lld: the model knows only word frequencies so far, whose loss is %.4f",
                     (long long)e->step, l->t->unigram);
    if (e->what == TN_FIT_VALID) measure_pairs(l, e->step);
    const tn_fit_what when = has_validation(l->t) ? TN_FIT_VALID : TN_FIT_SAVED;
    if ((e->what == TN_FIT_START || e->what == when) && tn_error() == TN_OK) {
        const run_page p = train_page(l->t, true);
        run_write(&p);
    }
    if (l->t->on && tn_error() == TN_OK) l->t->on(l->t, e);
}

/* Resets the arguments that tn_fit rejects together with a custom optimizer, which has its own. */
static void clear_optimizer_args(tn_fit_args *f)
{
    const tn_fit_args d = {TN_FIT_ARGS_DEFAULTS};
    f->lr = d.lr, f->weight_decay = d.weight_decay, f->clip = d.clip, f->warmup = d.warmup;
}

tn_fit_args train_fit_args(const training *t, int64_t steps, const char *folder, const char *config)
{
    int64_t every = steps / 20 > t->kind->max_interval ? t->kind->max_interval : steps / 20 > 10 ? steps / 20 : 10;
    if (t->every) every = t->every;
    tn_fit_args f = t->fit;
    f.module = t->net, f.steps = steps, f.warmup = (int64_t)(t->asked.warmup * (double)steps) + 1;
    f.folder = folder, f.config = config;
    f.save_every = every, f.valid_every = has_validation(t) ? every : 0;
    if (t->asked.keep > f.keep) f.keep = t->asked.keep;
    f.world = t->world;
    if (f.world) f.shards = (int)t->asked.shards, f.zero = t->asked.zero;
    if (f.optimizer) clear_optimizer_args(&f);
    return f;
}

static tn_fit_result run_fit(training *t, int64_t steps, const char *config)
{
    char        folder[1024];
    listener    l = {.rec = record_begin(t->asked.out, steps, t->asked.resume), .t = t};
    tn_fit_args f = train_fit_args(t, steps, in_folder(t->asked.out, "checkpoints", folder), config);
    l.rec.bar.score = t->score, l.rec.bar.before = t->plan.before;
    const bool first = tn_world_rank(t->world) == 0;
    stop_begin("saving, then ending; press again to end at once");
    if (first) f.on = on_event, f.on_user = &l;
    f.resume = t->asked.resume, f.stop = &stop_flag;
    if (first && t->pairs) sentence_pairs_open(t->pairs, 5, &l.pairs);
    const tn_fit_result r = tn_fit_run(f);
    record_end(&l.rec);
    sentence_pairs_close(&l.pairs);
    return r;
}

/* After an error, names the checkpoints and how to resume. */
static void advise(const training *t)
{
    char path[1024], again[1200];
    if (tn_error() == TN_EINVAL || settings.quiet || !file_exists(in_folder(t->asked.out, "checkpoints", path))) return;
    if (tn_error() == TN_ENUMERIC) /* --resume would do the same again */
        tell("Start again in another folder, with a smaller --lr than %g.\n", t->asked.lr);
    else
        tell("The training up to the last checkpoint is saved in '%s'. Remove the cause%s, then continue with %s.\n",
             path, tn_error() == TN_EIO ? " (check the disk space)" : "", resume_command(t->asked.out, again));
}

/* A run that ends above the loss of a uniform guess has learned nothing: its learning rate was too large. */
static void warn_diverged(const training *t, const tn_fit_result *r)
{
    const double loss = isfinite(r->value) && !t->score ? r->value : r->loss;
    if (r->why == TN_FIT_STOPPED) return;
    if (t->uniform > 0 && r->loss > 1.1 * t->uniform)
        warn("the loss, %.4g, is larger than that of a uniform guess, %.4g: the training has diverged; lower --lr (%g) "
             "and start again\n",
             r->loss, t->uniform, t->asked.lr);
    else if (only_frequencies(t, loss))
        warn("the model knows only word frequencies: its loss is %.4g, that of the frequencies alone %.4g; train "
             "longer, or on more text, or with another --lr than %g\n",
             loss, t->unigram, t->asked.lr);
}

tn_fit_result train_run(training *t)
{
    tn_fit_result   r = {.why = TN_FIT_FAILED};
    tn_json_writer *w = tn_json_writer_new(2);
    int64_t         steps = 0;
    const bool      first = tn_world_rank(t->world) == 0;
    plan_begin(t);
    t->usage = train_check(t);
    if (t->usage) return tn_json_writer_free(w), r;
    const char *config = !w || tn_error() != TN_OK ? NULL : first ? lead(t, w, &steps) : follow(t, w, &steps);
    if (config && first && t->world) tn_world_barrier(t->world);
    if (config && tn_error() == TN_OK) {
        r = run_fit(t, steps, config);
        while (r.why == TN_FIT_STOPPED && plan_again(t, &steps)) r = run_fit(t, steps, config);
        if (r.why == TN_FIT_FAILED && first) advise(t);
    }
    if (t->new_folder) record_forget(t->asked.out);
    if (r.why != TN_FIT_FAILED && first) {
        warn_diverged(t, &r);
        tn_module_train(t->net, false);
        if (t->kind->save(t, r.why)) finish(t, &r);
    }
    if (tn_error() != TN_OK) r.why = TN_FIT_FAILED;
    tn_json_writer_free(w);
    t->kind->close(t);
    return r;
}

void train_free(training *t)
{
    tn_module_free(t->net);
    tn_tokenizer_free(t->tokens);
    t->net = NULL, t->tokens = NULL;
}

tn_fit_result train_run_ranks(training *t)
{
    t->world = program_ranks(t->asked.ranks);
    tn_fit_result r = train_run(t);
    program_leave(t->world); /* from here, an error on one rank is set on all */
    t->world = NULL;
    if (tn_error() != TN_OK) r.why = TN_FIT_FAILED;
    return r;
}

void train_stopped(const tn_fit_result *r, const char *again)
{
    if (!settings.quiet) tell("stopped at step %lld; %s continues\n", (long long)r->steps, again);
}

void train_advise(const training *t)
{
    tn_string next = {0};
    if (settings.quiet || tn_error() != TN_OK) return;
    run_line(train_page(t, false).next, t->asked.out, &next);
    if (next.bytes) tell_command("next", next.at);
    tell("report   %s/report.html; the model's card is in README.md\n", t->asked.out);
    tn_string_free(&next);
}

int train_main(int count, char **operands)
{
    training *t = program_command()->training;
    (void)count, (void)operands;
    const tn_fit_result r = train_run_ranks(t);
    if (t->usage) return t->usage;
    if (!ranks_first()) {
        train_free(t);
        return program_end();
    }
    char again[1200], score[80];
    if (r.why == TN_FIT_STOPPED) train_stopped(&r, resume_command(t->asked.out, again));
    else if (r.why != TN_FIT_FAILED) {
        printf("%s: step %lld, loss %.4f", t->asked.out, (long long)r.steps, r.loss);
        if (isfinite(r.best) && t->fit.restore_best && t->score)
            printf(", best on validation %s at step %lld", progress_score(t->score, r.best, score),
                   (long long)r.best_step);
        else if (isfinite(r.best) && t->fit.restore_best)
            printf(", best on validation %.4f at step %lld", r.best, (long long)r.best_step);
        else if (isfinite(r.value)) printf(", on validation %.4f", r.value);
        printf("\n");
        if (t->kind->show) t->kind->show(t);
        fflush(stdout);
        train_advise(t);
    }
    train_free(t);
    return program_end();
}
