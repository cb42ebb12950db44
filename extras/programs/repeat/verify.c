/* verify.c — PROGRAM verify DIR: repeats segments of a training and compares all bits with those of its folder.
 *
 * Everything is made again from the texts and options that run.json names, in a temporary folder: the tokenizer, the
 * batches, the initial weights. A segment is the part from one training checkpoint to the next. tn_fit resumes there
 * from a link to the newest one before it, and writes its own record.jsonl, whose lines must be those of the run. Then
 * the model that the final weights give is saved and compared with the folder's, byte by byte. If a text has changed,
 * the run is repeated from its beginning up to the first step that differs. */
#include "core/system/system.h"

#include "repeat.h"
#include "replay.h"
#include "programs/common/messages.h"
#include "programs/common/resume.h"

#include <stdlib.h>
#include <string.h>

static int64_t segments, seed;

const option verify_options[] = {
    OPTION_INT("segments", 0, "K", &segments, "repeat K segments, chosen at random (default: all)", .least = 1,
               .most = 1e9),
    OPTION_INT("seed", 0, "N", &seed, "random seed of the choice of segments (default: from the clock)", .least = 1),
    {0},
};

typedef struct {
    replay    r;
    int64_t  *bound;            /* [bounds]: the index of the last line of each training checkpoint in the record */
    bool     *chosen;           /* [bounds]: the segment that ends there is repeated */
    int64_t   bounds, repeated; /* repeated: segments */
    int64_t   best;             /* the index of the last line of best weights that were made again; 0: none */
    int64_t   step, last;       /* step that differs; last step of the run */
    int64_t   limit;            /* step at which tn_fit ends, as soon as its checkpoint is saved; -1: it was reached */
    bool      validated;        /* the run validated at that step */
    bool      early;            /* a step differed */
    bool      differs;
    char      input[32], text[600];
    double    seconds; /* training time of the run; 0: not known */
    progress  bar;
    tn_string compared; /* names of the files that were compared, each after a line end */
} verification;

static bool differs(verification *v, int64_t step, const char *input, const char *text)
{
    if (v->differs) return false;
    v->differs = true, v->step = step;
    snprintf(v->input, sizeof v->input, "%s", input);
    snprintf(v->text, sizeof v->text, "%s", text);
    return false;
}

/* ---- the temporary folder ---------------------------------------------------------------------------------------- */

static bool make_scratch(verification *v)
{
    char path[1024], checkpoints[1024];
    if (!replay_folder(v->r.scratch)) return false;
    char      *real = realpath(in_folder(v->r.run, "checkpoints", checkpoints), NULL);
    const bool made = real && symlink(real, in_folder(v->r.scratch, "checkpoints", path)) == 0; /* translate reads it */
    free(real);
    return made || tn_raise_false(TN_EIO, "'%s' has no training checkpoints; they were deleted", v->r.run);
}

/* ---- comparing files --------------------------------------------------------------------------------------------- */

/* Compares the files of the temporary folder, `in` "", and of folders in it, with those of the run, and deletes them;
 * keeps their names. Caches of token ids are not compared. last: also SHA256SUMS, which is complete with the model. */
static bool same_folder(verification *v, int64_t step, const char *input, const char *what, const char *in, bool last)
{
    char            here[1024], there[1024], name[600], text[400];
    struct dirent **e;
    const int       n = scandir(*in ? in_folder(v->r.scratch, in, here) : v->r.scratch, &e, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        const char *dot = strrchr(e[i]->d_name, '.');
        struct stat st;
        snprintf(name, sizeof name, "%.250s%s%.300s", in, *in ? "/" : "", e[i]->d_name);
        const bool exists = e[i]->d_name[0] != '.' && !tn__sys_lstat(in_folder(v->r.scratch, name, here), &st),
                   file = exists && S_ISREG(st.st_mode) && strcmp(dot ? dot : "", ".tokens") != 0 &&
                          (last || strcmp(e[i]->d_name, "SHA256SUMS") != 0);
        if (file && !v->differs && tn_error() == TN_OK) {
            snprintf(text, sizeof text, "'%.200s' is %s", in_folder(v->r.run, name, there), what);
            if (!file_exists(there)) tn_raise(TN_EIO, "missing: '%s', which the run wrote", there);
            else if (!replay_same_file(here, there)) differs(v, step, input, text);
            tn_string_add(&v->compared, tn_text_of("\n")), tn_string_add(&v->compared, tn_text_of(name));
        }
        if (file) tn__sys_unlink(here);
        if (exists && S_ISDIR(st.st_mode) && !*in) same_folder(v, step, input, what, name, last);
        free(e[i]);
    }
    if (n >= 0) free(e);
    return !v->differs && tn_error() == TN_OK;
}

/* Prints the names of the run's files that were not compared: logs, pages and caches. */
static void print_rest(const verification *v, const char *in)
{
    char            path[1024], name[600], listed[620];
    struct dirent **e;
    const int       n = scandir(*in ? in_folder(v->r.run, in, path) : v->r.run, &e, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        const char *file = e[i]->d_name;
        snprintf(name, sizeof name, "%.250s%s%.300s", in, *in ? "/" : "", file);
        snprintf(listed, sizeof listed, "\n%s", name);
        const char *at = v->compared.at ? strstr(v->compared.at, listed) : NULL;
        const bool  state = !strcmp(in, "checkpoints") && (!strncmp(file, "step-", 5) || !strcmp(file, "record.jsonl"));
        const bool  own = !*in && !strcmp(file, "run.json");
        if (!*in && !strcmp(file, "checkpoints")) print_rest(v, name);
        else if (file[0] != '.' && !state && !own &&
                 !(at && (!at[strlen(listed)] || strchr("\n/", at[strlen(listed)]))))
            tell(" %s", name);
        free(e[i]);
    }
    if (n >= 0) free(e);
}

/* ---- comparing what was computed --------------------------------------------------------------------------------- */

/* Compares two configurations; `where` is the other one. The checksum of a text is data, which is not compared if the
 * files are known to have changed. */
static bool same_config(verification *v, int64_t step, const tn_json *here, const tn_json *there, const char *where,
                        bool changed)
{
    char text[2][100], all[400];
    for (const tn_json *m = tn_json_first(here); m && !v->differs && tn_error() == TN_OK; m = tn_json_next(m)) {
        const char *key = tn_json_key(m);
        const bool  sum = tn_json_type_of(m) == TN_JSON_STRING && strlen(tn_json_string(m)) == 16;
        if (!strcmp(key, "run") || !strcmp(key, "chain") || (sum && changed)) continue;
        if (replay_same_json(m, tn_json_get(there, key), text)) continue;
        snprintf(all, sizeof all, "%s%s is %s, in %s %s", key, sum ? "'s checksum" : "", text[0], where, text[1]);
        differs(v, step, sum ? "data" : !strcmp(key, "lr") ? "learning rate" : "configuration", all);
    }
    snprintf(all, sizeof all, "%s has more options than the run", where);
    if (tn_json_count(there) > tn_json_count(here)) differs(v, step, "configuration", all);
    return !v->differs && tn_error() == TN_OK;
}

/* What lines of a record contain: the input to name if it differs. */
static const struct {
    char        kind;
    const char *name, *input, *before, *after;
} facts[] = {{'s', "batch", "data", "the batch has the sum", ""},
             {'s', "lr", "learning rate", "it is", ""},
             {'s', "loss", "configuration", "the loss is", ", with the same batch and learning rate"},
             {'v', "value", "data", "the validation's value is", ""},
             {'b', "weights", "weights", "the best weights have the sum", ""},
             {'p', "weights", "weights", "the weights have the sum", ""},
             {'p', "optimizer", "optimizer", "the optimizer's state has the sum", ""},
             {'p', "generators", "random generator", "the generators have the sum", ""}};

/* Compares a line of the repeated run with the record's. first: of the first step after a training checkpoint. */
static bool same_line(verification *v, const history_line *now, const history_line *was, bool first)
{
    char text[2][100], all[400];
    if (now->kind != was->kind || (was->kind != 'r' && now->step != was->step))
        return differs(v, now->step, "record", "its next line is not of what the repeated run did");
    if (now->text.bytes == was->text.bytes && !memcmp(now->text.at, was->text.at, now->text.bytes)) return true;
    tn_json *here = tn_json_parse(now->text.at, now->text.bytes), *there = tn_json_parse(was->text.at, was->text.bytes);
    if (was->kind == 'r') same_config(v, was->step, here, there, "the record", false);
    for (size_t i = 0; i < sizeof facts / sizeof *facts && tn_error() == TN_OK; i++) {
        const tn_json *a = tn_json_get(here, facts[i].name), *b = tn_json_get(there, facts[i].name);
        if (facts[i].kind != was->kind || (!i && (!a || !b))) continue; /* of ranks, the sum of a batch is not known */
        if (replay_same_json(a, b, text)) continue;
        snprintf(all, sizeof all, "%s %s, in the record %s%s", facts[i].before, text[0], text[1], facts[i].after);
        differs(v, was->step, first && !strcmp(facts[i].name, "loss") ? "weights" : facts[i].input, all);
    }
    tn_json_free(here), tn_json_free(there);
    return !v->differs && tn_error() == TN_OK;
}

/* The line with the arguments of the run that wrote line i. */
static int64_t run_of(const history *h, int64_t i)
{
    while (i > 0 && h->line[i].kind != 'r') i--;
    return i;
}

/* Compares the lines after bound `from`, -1: all, up to bound `to`, with those of the repeated run. */
static bool same_lines(verification *v, int64_t from, int64_t to)
{
    const history *h = &v->r.h;
    history        now;
    int64_t        i = 0, k = 0;
    if (!history_read(&now, v->r.again)) return false;
    if (from >= 0) { /* tn_fit starts a record with its arguments and the state that it resumed from */
        for (; k < 2 && k < now.lines && !v->differs; k++)
            same_line(v, now.line + k, h->line + (k ? v->bound[from] : run_of(h, v->bound[from])), false);
        i = v->bound[from] + 1;
    }
    for (bool first = from >= 0; i <= v->bound[to] && !v->differs && tn_error() == TN_OK; i++, k++) {
        if (k >= now.lines) differs(v, h->line[i].step, "record", "it has more lines than the repeated run");
        else same_line(v, now.line + k, h->line + i, first);
        if (h->line[i].kind == 's') first = false;
        if (h->line[i].kind == 'b') v->best = i;
    }
    history_free(&now);
    return !v->differs && tn_error() == TN_OK;
}

/* ---- segments ---------------------------------------------------------------------------------------------------- */

static int64_t step_of(const verification *v, int64_t bound) { return v->r.h.line[v->bound[bound]].step; }

/* An error that a changed file causes is a difference; others stay errors. */
static bool damage(verification *v, int64_t step)
{
    char            text[600];
    const tn_status s = tn_error();
    if (s != TN_EFORMAT && s != TN_EINDEX && s != TN_EINVAL) return s == TN_OK;
    snprintf(text, sizeof text, "%.590s", tn_error_message());
    tn_clear_error();
    return differs(v, step, "weights", text);
}

/* Reads the record, and finds the last point of each step. */
static bool read_record(verification *v)
{
    history *h = &v->r.h;
    char     path[1024], text[100];
    if (!history_read(h, in_folder(v->r.run, "checkpoints", path))) return false;
    snprintf(text, sizeof text, "line %lld was changed or is not complete", (long long)h->damaged);
    if (h->damaged) return differs(v, h->lines ? h->line[h->lines - 1].step : 0, "record", text);
    v->bound = calloc((size_t)h->lines + 1, sizeof *v->bound), v->chosen = calloc((size_t)h->lines + 1, 1);
    if (!v->bound || !v->chosen) return tn_raise_false(TN_ENOMEM, "no memory for %lld lines", (long long)h->lines);
    for (int64_t i = 0; i < h->lines; i++) {
        if (h->line[i].kind != 'p') continue;
        v->bounds += !v->bounds || step_of(v, v->bounds - 1) != h->line[i].step;
        v->bound[v->bounds - 1] = i;
    }
    if (v->bounds < 2) return differs(v, 0, "record", "it has no step between two training checkpoints");
    v->last = step_of(v, v->bounds - 1);
    return true;
}

/* Compares the version of the run, and its newest configuration. */
static bool same_run(verification *v)
{
    const history     *h = &v->r.h;
    const history_line line = h->line[run_of(h, h->lines - 1)];
    tn_json           *run = tn_json_parse(line.text.at, line.text.bytes),
            *config = tn_json_parse(v->r.config, strlen(v->r.config));
    const char *version = tn_json_string(tn_json_need(run, "version"));
    if (tn_error() == TN_OK && strcmp(version, tn_version()) != 0)
        tn_raise(TN_EUNSUPPORTED,
                 "'%.160s/checkpoints' is a run of version %.20s, but this is version %s, whose results may differ; "
                 "verify it with its own version",
                 v->r.run, version, tn_version());
    if (tn_error() == TN_OK) same_config(v, 0, config, tn_json_get(run, "config"), "the record", false);
    tn_json_free(run), tn_json_free(config);
    return !v->differs && tn_error() == TN_OK;
}

/* Checks all training checkpoints of the folder. */
static bool check_files(verification *v)
{
    char folder[1024], path[1024], name[64], text[200];
    in_folder(v->r.run, "checkpoints", folder);
    for (int64_t step = INT64_MAX; !v->differs && (step = replay_newest(folder, step, INT64_MAX)) >= 0;) {
        int64_t i = v->bounds - 1;
        snprintf(name, sizeof name, "step-%012lld.ckpt", (long long)step);
        snprintf(text, sizeof text, "it has no line for '%s'", name);
        while (i > 0 && step_of(v, i) > step) i--;
        if (step_of(v, i) != step) return differs(v, step, "record", text);
        tn_checkpoint_file *file = tn_checkpoint_open(in_folder(folder, name, path));
        if (file && tn_checkpoint_verify(file) == TN_OK && tn_checkpoint_step(file) != step)
            tn_raise(TN_EFORMAT, "'%s' is of step %lld", path, (long long)tn_checkpoint_step(file));
        tn_checkpoint_close(file);
        if (!damage(v, step)) return false;
    }
    return !v->differs;
}

/* The bound to start from, to repeat segment i: that of the newest training checkpoint, or `at`, up to which steps were
 * repeated, -1: none. */
static int64_t start_of(const verification *v, int64_t i, int64_t at)
{
    char          folder[1024];
    const int64_t step = replay_newest(in_folder(v->r.run, "checkpoints", folder), step_of(v, i), INT64_MAX);
    for (int64_t k = i - 1; k > at && !v->r.whole; k--)
        if (step_of(v, k) == step) return k;
    return at;
}

/* Chooses the segments; each choice is equally likely. */
static void choose(verification *v)
{
    tn_generator  g = {.seed = seed ? (uint64_t)seed : (uint64_t)(seconds_now() * 1e9)};
    const int64_t all = v->bounds - 1, steps = v->last - step_of(v, 0);
    const int64_t want = segments && segments < all && !v->r.whole ? segments : all;
    int64_t       repeats = 0, at = -1;
    char          time[16] = "";
    for (int64_t i = 1, left = want; i < v->bounds; i++) {
        v->chosen[i] = tn_random_below(&g, v->bounds - i) < left;
        if (!v->chosen[i]) continue;
        const int64_t from = start_of(v, i, at);
        repeats += step_of(v, i) - (from < 0 ? 0 : step_of(v, from));
        left--, at = i;
    }
    v->bar = progress_begin("verify", repeats, "step");
    if (settings.quiet) return;
    tell("verify   %lld of %lld segments: %lld of %lld steps", (long long)want, (long long)all, (long long)repeats,
         (long long)steps);
    if (v->seconds > 0 && steps)
        tell("; about %s, the time of as many steps of the training",
             progress_time(v->seconds * (double)repeats / (double)steps, time));
    tell("\n");
}

/* Stops where the run did: before, or after, its validation at this step. */
static void on_event(const tn_fit_event *e, void *user)
{
    verification  *v = user;
    const history *h = &v->r.h;
    if (e->what == TN_FIT_START || e->what == TN_FIT_STEP) v->r.done = e->step;
    if (e->what == TN_FIT_STEP) {
        progress_at(&v->bar, v->bar.done + 1, "");
        v->early = e->step > v->limit || e->step > h->last || e->loss != h->loss[e->step] || e->lr != h->lr[e->step];
    }
    const bool ends = e->step == v->limit && (e->what == TN_FIT_VALID || (e->what == TN_FIT_STEP && !v->validated));
    if ((v->early || ends) && !stop_flag) stop_flag = STOP_PLAN;
    if (v->r.t->on && tn_error() == TN_OK) v->r.t->on(v->r.t, e);
    /* before tn_fit loads its best weights, which the folder may not have */
    if (e->what == TN_FIT_SAVED && (v->early || e->step == v->limit) && tn_error() == TN_OK)
        tn_raise(TN_ESTATE, "verify: step %lld was repeated", (long long)e->step), v->limit = -1;
}

/* Repeats the segments from the one that ends at bound `first` to the one that ends at bound `to`, and compares. */
static bool repeat_segments(verification *v, int64_t first, int64_t to)
{
    replay *r = &v->r;
    int64_t from = first - 1, part;
    if (!replay_before(r, step_of(v, from) + 1)) return false;
    while (from >= 0 && step_of(v, from) != r->done) from--;
    while (!stop_flag && !v->early && (part = replay_part(r, step_of(v, to), &v->limit)) >= 0) {
        tn_fit_args f = replay_arguments(&v->r, part);
        f.on = on_event, f.on_user = v;
        v->validated = history_validated(&r->h, part, v->limit);
        tn_fit_run(f);
        if (stop_flag == STOP_PLAN) stop_flag = 0;
        if (v->limit < 0 || stop_flag) tn_clear_error();
        else break; /* the run ended before, or raised */
    }
    return tn_error() == TN_OK && !stop_flag && same_lines(v, from, to);
}

static bool repeat(verification *v)
{
    bool good = true;
    choose(v);
    stop_begin("ending");
    for (int64_t i = 1; good && i < v->bounds; i++) {
        const int64_t first = i;
        if (!v->chosen[i]) continue;
        while (i + 1 < v->bounds && v->chosen[i + 1]) i++;
        good = repeat_segments(v, first, i);
        v->repeated += i + 1 - first;
    }
    progress_end(&v->bar);
    return good;
}

/* Loads the weights that the run ended with: tn_fit does so if it is stopped before a step. The best ones are those of
 * the run, if they were not made again. */
static bool load_result(verification *v)
{
    replay *r = &v->r;
    char    folder[1024], from[1024], to[1024];
    int64_t best = r->h.lines - 1;
    while (best > 0 && r->h.line[best].kind != 'b') best--;
    if (!replay_before(r, v->last + 1)) return false;
    if (r->done != v->last)
        return tn_raise_false(TN_EIO, "'%s' has no training checkpoint of its last step, %lld", r->run,
                              (long long)v->last);
    const tn_fit_args f = replay_arguments(r, r->h.parts - 1);
    if (f.restore_best && best != v->best) {
        in_folder(in_folder(r->run, "checkpoints", folder), "best.safetensors", from);
        tn__sys_unlink(in_folder(r->again, "best.safetensors", to));
        if (!replay_link(from, to)) return false;
    }
    stop_flag = STOP_PLAN;
    tn_fit_run(f);
    stop_flag = 0;
    return damage(v, v->last);
}

/* ---- the run, made again ----------------------------------------------------------------------------------------- */

/* True if the files of the run have not changed; false, with the reason in `text`: they have, or raised. */
static bool same_files(char text[400])
{
    *text = 0;
    if (resume_same_files()) return true;
    if (tn_error() != TN_EINVAL) return false;
    snprintf(text, 400, "%.*s", (int)strcspn(tn_error_message(), ";"), tn_error_message());
    tn_clear_error();
    return false;
}

/* Tokenizer, batches and initial weights, in the temporary folder. False: raised, or they differ. */
static bool make_again(verification *v)
{
    training *t = v->r.t;
    if (!replay_texts(t, v->r.scratch) ||
        !same_folder(v, 0, "data", "another tokenizer than the one of the texts", "", false))
        return false;
    return (!t->tokens || tn_tokenizer_save(t->tokens, v->r.scratch) == TN_OK) && replay_model(t);
}

/* Sets the config of the run. With changed files, it is the one in run.json, so that the replay finds the first step
 * that differs; else compares both. */
static bool same_options(verification *v, bool changed, tn_json_writer *w)
{
    replay        *r = &v->r;
    tn_json       *run = record_asked(r->run);
    const tn_json *asked = tn_json_get(run, "asked");
    if (changed) tn_json_put(w, NULL, asked);
    r->config = changed ? tn_json_text(w, NULL) : train_describe(r->t, replay_steps(r->t, r->run), w);
    tn_json *here = r->config ? tn_json_parse(r->config, strlen(r->config)) : NULL;
    if (here) same_config(v, 0, here, asked, "run.json", changed);
    tn_json_free(here), tn_json_free(run);
    return !v->differs && tn_error() == TN_OK;
}

/* Compares the folder's model with the one that the final weights give. */
static bool same_model(verification *v)
{
    training  *t = v->r.t;
    char       path[1024];
    const bool stopped = !t->fit.patience && v->last < record_steps(v->r.run);
    if (!file_exists(in_folder(v->r.run, "config.json", path))) return tn_error() == TN_OK; /* the run was killed */
    if (!load_result(v)) return false;
    tn_module_train(t->net, false);
    return t->kind->save(t, stopped ? TN_FIT_STOPPED : TN_FIT_DONE) &&
           same_folder(v, v->last, "weights", "not of the model that the training ended with", "", true);
}

/* What changed files cause: an error in reading them, another tokenizer, or other batches. */
static bool blame_files(verification *v, const char *changed)
{
    char text[600];
    if (tn_error() == TN_EFORMAT || tn_error() == TN_EINVAL) tn_clear_error(), differs(v, 0, "data", changed);
    if (tn_error() != TN_OK) return false;
    if (!strcmp(v->input, "data")) snprintf(v->text, sizeof v->text, "%s", changed);
    snprintf(text, sizeof text, "%s; no batch contains the change", changed);
    return differs(v, 0, "data", text);
}

static bool verify(verification *v)
{
    training       *t = v->r.t;
    char            changed[400];
    tn_json_writer *w = tn_json_writer_new(2);
    t->asked.out = v->r.run;
    bool good = w && (same_files(changed) || *changed) && make_scratch(v);
    v->r.whole = *changed;
    if (good) {
        good = make_again(v) && same_options(v, *changed, w) && read_record(v) && same_run(v) && check_files(v) &&
               repeat(v);
        if (*changed && (good || v->differs || tn_error() != TN_OK)) good = blame_files(v, changed);
        good = good && same_model(v) && tn_error() == TN_OK;
        t->kind->close(t);
    }
    tn_json_writer_free(w);
    return good;
}

int verify_main(int n, char **operands)
{
    const command *train = program_command()->repeats;
    training      *t = train->training;
    verification   v = {.r = {.t = t, .run = operands[0]}};
    const int      code = replay_open(train, t, v.r.run);
    (void)n;
    if (tn_error() == TN_EFORMAT) { /* for example another SHA-256 */
        printf("differs at step 0: configuration: %s\n", tn_error_message());
        return EXIT_FAILED;
    }
    if (code) return code;
    tn_json *j = tn_error() == TN_OK ? record_asked(v.r.run) : NULL;
    v.seconds = tn_json_double_or(tn_json_get(tn_json_get(j, "run"), "seconds"), 0);
    tn_json_free(j);
    const bool good = tn_error() == TN_OK && verify(&v);
    if (good && !settings.quiet) {
        tell("not compared:");
        print_rest(&v, "");
        tell("; of run.json, its member \"run\", with times and the command\n");
    }
    replay_delete(v.r.scratch);
    tn_string_free(&v.compared);
    history_free(&v.r.h);
    free(v.bound), free(v.chosen);
    replay_close(t);
    if (good) printf("identical %lld segments\n", (long long)v.repeated);
    if (!v.differs || tn_error() != TN_OK) return program_end();
    printf("differs at step %lld: %s: %s\n", (long long)v.step, v.input, v.text);
    return EXIT_FAILED;
}
