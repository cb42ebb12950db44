/* fit_verify.c — tn_verify: repeats segments of a run and compares each entry of its record, in order.
 *
 * A replay is a run of tn_fit that writes nothing: where the run appended an entry, tn__record_put compares it with the
 * next entry instead. When to validate is read from the record, too: a run that was stopped or lengthened did so at
 * other steps than its arguments specify. */
#include "core/files/io.h"
#include "models/fit/fit_private.h"

#include <stdarg.h>

struct tn__replay {
    tn__run_record record;
    int64_t        next;  /* the entry to compare next */
    int64_t        start; /* the entry from which this stretch started: the state was compared there */
    int64_t       *bound; /* [bounds]: the last point of each step that has one */
    int64_t        bounds;
    bool          *chosen; /* [bounds]: the segment that ends there is repeated */
    int64_t (*segment)[2];
    tn_verify_result *to;
};

static const tn__run_entry *entry(const tn__replay *r, int64_t i) { return r->record.entry + i; }
static const char          *record_line(const tn__replay *r, int64_t i)
{
    return (const char *)tn_data(r->record.text) + entry(r, i)->at;
}

/* The first difference is the result. */
static bool differs(tn__replay *r, int64_t step, const char *input, const char *fmt, ...) TN_PRINTF(4, 5);
static bool differs(tn__replay *r, int64_t step, const char *input, const char *fmt, ...)
{
    va_list ap;
    if (r->to->why == TN_VERIFY_DIFFERS) return false;
    r->to->why = TN_VERIFY_DIFFERS, r->to->step = step, r->to->input = input;
    va_start(ap, fmt);
    vsnprintf(r->to->text, sizeof r->to->text, fmt, ap);
    va_end(ap);
    return false;
}
static bool fine(const tn__replay *r) { return r->to->why != TN_VERIFY_DIFFERS && tn_error() == TN_OK; }

/* ---- comparing --------------------------------------------------------------------------------------------------- */

static bool same_number(double a, double b) { return a == b || (isnan(a) && isnan(b)); }
static bool known_and_other(uint64_t a, uint64_t b) { return a && b && a != b; }

static bool compare_step(tn__replay *r, const tn__run_entry *e, const tn__run_entry *was)
{
    if (known_and_other(e->sums[0], was->sums[0]))
        return differs(r, e->step, "data", "the batch has the sum %016llx, in the record %016llx",
                       (unsigned long long)e->sums[0], (unsigned long long)was->sums[0]);
    if (!same_number(e->lr, was->lr))
        return differs(r, e->step, "learning rate", "it is %.9g, in the record %.9g", e->lr, was->lr);
    if (!same_number(e->value, was->value))
        return differs(r, e->step, r->next == r->start + 1 ? "weights" : "configuration",
                       "the loss is %.9g, in the record %.9g, with the same batch and learning rate", e->value,
                       was->value);
    return true;
}

static bool compare_sums(tn__replay *r, const uint64_t sums[3], const tn__run_entry *was, const char *whose)
{
    static const char *const inputs[] = {"weights", "optimizer", "random generator"}, *const of[] = {
                                                                                          "weights have",
                                                                                          "optimizer's state has",
                                                                                          "generators have"};
    for (int i = 0; i < 3; i++)
        if (known_and_other(sums[i], was->sums[i]))
            return differs(r, was->step, inputs[i], "the %s the sum %016llx%s, in the record %016llx", of[i],
                           (unsigned long long)sums[i], whose, (unsigned long long)was->sums[i]);
    return true;
}

static bool compare(tn__fit *f, const tn__run_entry *e)
{
    static const char *const names[] = {"a run", "step", "a validation at step", "a best value at step",
                                        "a training checkpoint at step"};
    tn__replay              *r = f->replay;
    if (!fine(r)) return false;
    const tn__run_entry *was = entry(r, r->next);
    if (r->next >= r->record.n || was->kind != e->kind || was->step != e->step)
        return differs(r, e->step, "record", "the replay has %s %lld; the next line of the record is of %s %lld",
                       names[e->kind], (long long)e->step, r->next < r->record.n ? names[was->kind] : "its end, line",
                       (long long)(r->next < r->record.n ? was->step : r->record.n));
    if (e->kind == TN__ENTRY_STEP) compare_step(r, e, was);
    else if (e->kind == TN__VALID && !same_number(e->value, was->value))
        differs(r, e->step, "data", "the validation's value is %.9g, in the record %.9g", e->value, was->value);
    else if (e->kind >= TN__BEST) compare_sums(r, e->sums, was, "");
    r->next++;
    return fine(r);
}

/* Compares the state with the next entry, a point. */
static bool compare_point(tn__fit *f)
{
    const tn_fit_args *c = &f->c;
    tn__run_entry      e = {.kind = TN__POINT};
    tn_json           *state = tn_checkpoint_state(.module = c->module, .optimizer = c->optimizer, .ema = c->ema,
                                                   .trained_only = tn__fit_trained_only(f));
    tn__record_sums(state, NULL, e.sums);
    tn_json_free(state);
    return tn__record_put(f, e);
}

/* ---- the record and its arguments -------------------------------------------------------------------------------- */

/* Compares the members of two configs; differs at step 0. */
static bool same_config(tn__replay *r, const tn_json *here, const tn_json *there)
{
    char            text[2][100];
    const tn_json  *sides[] = {here, there}, *v[2];
    tn_json_writer *w = tn_json_writer_new(0);
    for (int s = 0; s < 2; s++)
        for (const tn_json *m = tn_json_first(sides[s]); m && fine(r); m = tn_json_next(m)) {
            v[s] = m, v[!s] = tn_json_get(sides[!s], tn_json_key(m));
            for (int i = 0; i < 2; i++) {
                tn_json_writer_clear(w);
                if (v[i]) tn_json_put(w, NULL, v[i]);
                const char *value = v[i] ? tn_json_text(w, NULL) : "absent";
                snprintf(text[i], sizeof text[i], "%s", value ? value : "");
            }
            if (strcmp(text[0], text[1]) != 0)
                differs(r, 0, !strcmp(tn_json_key(m), "lr") ? "learning rate" : "configuration",
                        "%.60s is %s, in the record %s", tn_json_key(m), text[0], text[1]);
        }
    tn_json_writer_free(w);
    return fine(r);
}

static tn_json *parse_line(const tn__replay *r, int64_t i)
{
    const int64_t end = i + 1 < r->record.n ? entry(r, i + 1)->at : r->record.bytes;
    return tn_json_parse(record_line(r, i), (size_t)(end - entry(r, i)->at));
}

/* The newest TN__RUN entry up to entry i; the first entry is one. */
static int64_t run_of(const tn__replay *r, int64_t i)
{
    while (i > 0 && entry(r, i)->kind != TN__RUN) i--;
    return i;
}

/* Sets the arguments that a run of this entry had. False: raised, or they differ. */
static bool set_run(tn__fit *f, int64_t i)
{
    tn__replay *r = f->replay;
    double      here = 0, there = 0;
    tn_json    *run = parse_line(r, i);
    const char *version = tn_json_string(tn_json_need(run, "version")),
               *name = run ? tn__record_differs(run, &f->c, false, &here, &there) : NULL;
    if (tn_error() == TN_OK && strcmp(version, tn_version()) != 0)
        tn_raise(TN_EUNSUPPORTED,
                 "tn_verify: '%.160s' is a run of version %.20s, but this is version %s, whose results may differ; "
                 "verify it with its own version",
                 f->c.folder, version, tn_version());
    if (name) differs(r, entry(r, i)->step, "configuration", "%s is %.9g, in the record %.9g", name, here, there);
    if (fine(r)) tn__record_apply(run, &f->c), tn__fit_count_steps(f);
    tn_json_free(run);
    return fine(r);
}

/* Compares the arguments of the call with the newest ones of the record. */
static bool same_arguments(tn__fit *f)
{
    tn__replay *r = f->replay;
    double      here = 0, there = 0;
    tn_json    *run = parse_line(r, run_of(r, r->record.n - 1)),
            *config = f->c.config ? tn_json_parse(f->c.config, strlen(f->c.config)) : NULL;
    const char *name = run && same_config(r, config, tn_json_get(run, "config"))
                           ? tn__record_differs(run, &f->c, true, &here, &there)
                           : NULL;
    if (name)
        differs(r, 0, !strcmp(name, "lr") ? "learning rate" : "configuration", "%s is %.9g, in the record %.9g", name,
                here, there);
    tn_json_free(run), tn_json_free(config);
    return fine(r);
}

static bool read_record(tn__fit *f)
{
    tn__replay     *r = f->replay;
    tn__run_record *record = &r->record;
    char            path[TN__FILE_ROOM];
    const int64_t   n = (tn__folder_record(&f->folder, path), tn__file_probe(path));
    if (!n)
        return tn_raise_false(TN_EIO,
                              "tn_verify: '%.200s' does not exist; a run of an earlier version has none, and neither "
                              "has a run whose checkpoints were deleted",
                              path);
    if (!tn__record_read(record, path)) return false;
    if (record->damaged)
        return differs(r, record->n ? entry(r, record->n - 1)->step : 0, "record",
                       "line %lld of '%.200s' was changed or is not complete", (long long)record->damaged, path);
    if (!record->n || entry(r, 0)->kind != TN__RUN)
        return differs(r, 0, "record", "'%.200s' does not start with the arguments of a run", path);
    return true;
}

/* ---- segments ---------------------------------------------------------------------------------------------------- */

/* Finds the last point of each step. */
static bool find_bounds(tn__replay *r)
{
    const size_t n = (size_t)r->record.n;
    if (!(r->bound = tn_mem_get(n * sizeof *r->bound)) || !(r->chosen = tn_mem_get(n * sizeof *r->chosen)) ||
        !(r->segment = tn_mem_get(n * sizeof *r->segment)))
        return false;
    for (int64_t i = 0; i < r->record.n; i++) {
        if (entry(r, i)->kind != TN__POINT) continue;
        const bool again = r->bounds && entry(r, r->bound[r->bounds - 1])->step == entry(r, i)->step;
        r->bound[again ? r->bounds - 1 : r->bounds++] = i;
    }
    if (r->bounds < 2) return differs(r, 0, "record", "it has no step between two training checkpoints");
    return true;
}

static int64_t step_of(const tn__replay *r, int64_t bound) { return entry(r, r->bound[bound])->step; }

static bool exists(const tn__fit *f, int64_t bound)
{
    char path[TN__FILE_ROOM];
    return tn__file_exists(tn__folder_file(&f->folder, step_of(f->replay, bound), path));
}

/* The bound to start from, to repeat segment i: the newest checkpoint, or `at`, where the replay is. -1: none. */
static int64_t start_of(const tn__fit *f, const tn_verify_args *a, int64_t i, int64_t at)
{
    for (int64_t k = i - 1; k > at && !a->whole; k--)
        if (exists(f, k)) return k;
    return at;
}

/* Chooses the segments and counts their steps; false: raised. */
static bool choose(tn__fit *f, const tn_verify_args *a, tn_verify_plan *p)
{
    tn__replay  *r = f->replay;
    tn_generator g = {.seed = a->seed ? a->seed : (uint64_t)(tn__seconds() * 1e9)};
    int64_t      at = entry(r, 0)->step ? -1 : 0;
    p->segments_in_all = r->bounds - 1, p->last = step_of(r, r->bounds - 1), p->steps_in_all = p->last - step_of(r, 0);
    p->segments = a->segments && a->segments < p->segments_in_all ? a->segments : p->segments_in_all;
    for (int64_t i = 1, left = p->segments; i < r->bounds; i++) { /* each subset is equally likely */
        r->chosen[i] = tn_random_below(&g, r->bounds - i) < left;
        left -= r->chosen[i];
    }
    for (int64_t i = 1, n = 0; i < r->bounds; i++) {
        if (!r->chosen[i]) continue;
        const int64_t from = start_of(f, a, i, at);
        if (from < 0)
            return tn_raise_false(TN_EIO,
                                  "tn_verify: the record starts at step %lld, and '%.160s' has no training checkpoint "
                                  "from which steps up to %lld can be repeated",
                                  (long long)entry(r, 0)->step, f->c.folder, (long long)step_of(r, i));
        p->steps += step_of(r, i) - step_of(r, from);
        r->segment[n][0] = step_of(r, i - 1) + 1, r->segment[n++][1] = step_of(r, i);
        at = i;
    }
    p->segment = (const int64_t(*)[2])r->segment;
    return true;
}

/* ---- training checkpoints ---------------------------------------------------------------------------------------- */

/* An error that a changed file causes is a difference; others stay errors. */
static bool damage(tn__replay *r, int64_t step)
{
    char            text[400];
    const tn_status s = tn_error();
    if (s != TN_EFORMAT && s != TN_EINDEX && s != TN_EINVAL) return false;
    snprintf(text, sizeof text, "%s", tn_error_message());
    tn_clear_error();
    return differs(r, step, "weights", "%s", text);
}

/* Compares all training checkpoints of the folder with the record. */
static bool check_files(tn__fit *f)
{
    tn__replay *r = f->replay;
    char        path[TN__FILE_ROOM];
    uint64_t    sums[3];
    for (int64_t step = INT64_MAX; fine(r) && (step = tn__folder_newest(&f->folder, step)) >= 0;) {
        int64_t i = r->bounds - 1;
        while (i > 0 && step_of(r, i) > step) i--;
        if (step_of(r, i) != step)
            return differs(r, step, "record", "it has no line for '%.200s'", tn__folder_file(&f->folder, step, path));
        tn_checkpoint_file *file = tn_checkpoint_open(tn__folder_file(&f->folder, step, path));
        if (file && tn_checkpoint_step(file) != step)
            tn_raise(TN_EFORMAT, "'%.200s' is of step %lld", path, (long long)tn_checkpoint_step(file));
        if (file && tn_error() == TN_OK && tn_checkpoint_verify(file) == TN_OK) {
            tn__record_sums(tn_checkpoint_record(file), NULL, sums);
            compare_sums(r, sums, entry(r, r->bound[i]), " in the training checkpoint");
        }
        tn_checkpoint_close(file);
        damage(r, step);
    }
    return fine(r);
}

static bool restore_at(tn__fit *f, int64_t bound)
{
    tn__replay         *r = f->replay;
    char                path[TN__FILE_ROOM];
    tn_checkpoint_file *file = tn_checkpoint_open(tn__folder_file(&f->folder, step_of(r, bound), path));
    f->epoch_over = false;
    if (file) tn__fit_restore(f, file, path);
    tn_checkpoint_close(file);
    damage(r, step_of(r, bound));
    r->start = r->bound[bound], r->next = r->start + 1;
    return fine(r);
}

/* ---- the replay -------------------------------------------------------------------------------------------------- */

/* Continues with the arguments of a lengthened run. */
static bool next_run(tn__fit *f, int64_t i)
{
    if (!set_run(f, i)) return false;
    if (f->own) {
        tn_schedule_free(f->schedule);
        tn_set_lr(f->own, -1, f->c.lr);
        if (tn__fit_schedule(f)) tn_schedule_goto(f->schedule, f->r.steps);
    }
    return fine(f->replay);
}

/* True if entry i, a validation or a point, was made because of a stop or at the end of a run. */
static bool at_the_end(const tn__replay *r, int64_t i)
{
    if (entry(r, i)->kind == TN__POINT) return entry(r, i)->end;
    for (i++; i < r->record.n && entry(r, i)->kind == TN__BEST;) i++;
    return i == r->record.n || entry(r, i)->kind == TN__RUN || (entry(r, i)->kind == TN__POINT && entry(r, i)->end);
}

/* True if the run made entry i after an epoch: then its source had already reported the end of the epoch. */
static bool after_epoch(const tn__fit *f, int64_t i)
{
    const tn_fit_args *c = &f->c;
    if (!f->r.steps || f->epoch_over || at_the_end(f->replay, i)) return false;
    return !c->valid_every && (entry(f->replay, i)->kind == TN__VALID || !c->save_every);
}

/* Repeats the entries between two steps, up to entry `last`. */
static void between_steps(tn__fit *f, int64_t last)
{
    tn__replay *r = f->replay;
    while (fine(r) && r->next <= last && entry(r, r->next)->step == f->r.steps) {
        const tn__run_entry *e = entry(r, r->next);
        if (e->kind == TN__ENTRY_STEP || e->kind == TN__BEST) return;
        if (e->kind == TN__RUN) next_run(f, r->next++);
        else if (after_epoch(f, r->next)) {
            tn__fit_step(f);
            if (fine(r) && !f->epoch_over) differs(r, e->step, "data", "an epoch does not end here");
        } else if (e->kind == TN__VALID) tn__fit_validate(f);
        else compare_point(f);
        if (tn__fit_is_stopped(f)) return;
    }
}

/* Repeats steps up to and including entry `last`. */
static void replay_until(tn__fit *f, int64_t last)
{
    tn__replay *r = f->replay;
    while (fine(r) && r->next <= last) {
        between_steps(f, last);
        if (!fine(r) || r->next > last) return;
        if (tn__fit_is_stopped(f)) r->to->why = TN_VERIFY_STOPPED;
        if (r->to->why == TN_VERIFY_STOPPED) return;
        f->epoch_over = false;
        tn__fit_step(f);
    }
}

static bool replay(tn__fit *f, const tn_verify_args *a)
{
    tn__replay *r = f->replay;
    int64_t     at = entry(r, 0)->step ? -1 : 0;
    for (int64_t i = 1; i < r->bounds && fine(r) && r->to->why != TN_VERIFY_STOPPED; i++) {
        if (!r->chosen[i]) continue;
        const int64_t from = start_of(f, a, i, at), before = step_of(r, from);
        if (from != at && (!next_run(f, run_of(r, r->bound[from])) || !restore_at(f, from))) return false;
        replay_until(f, r->bound[i]);
        r->to->steps += f->r.steps - before, r->to->segments++;
        at = i;
    }
    return fine(r);
}

/* Loads the weights that tn_fit ended with, and compares them with the record. */
static bool load_result(tn__fit *f)
{
    tn__replay   *r = f->replay;
    int64_t       best = r->record.n - 1;
    char          path[TN__FILE_ROOM];
    tn__run_entry e = {.kind = TN__BEST};
    while (best > 0 && entry(r, best)->kind != TN__BEST) best--;
    if (!f->c.restore_best || !best) {
        if (f->r.steps == step_of(r, r->bounds - 1)) return true;
        if (exists(f, r->bounds - 1)) return restore_at(f, r->bounds - 1);
        return tn_raise_false(TN_EIO, "tn_verify: '%.160s' has no training checkpoint of its last step, %lld",
                              f->c.folder, (long long)step_of(r, r->bounds - 1));
    }
    tn__fit_best_load(f->c.module, tn__folder_best(&f->folder, path), entry(r, best)->step);
    damage(r, entry(r, best)->step);
    if (!fine(r)) return false;
    tn__fit_best_sums(f->c.module, &e);
    return compare_sums(r, e.sums, entry(r, best), " in best.safetensors") && fine(r);
}

static bool verify(tn__fit *f, const tn_verify_args *a)
{
    tn__replay    *r = f->replay;
    tn_verify_plan p = {0};
    if (!read_record(f) || !find_bounds(r) || !same_arguments(f) || !check_files(f) || !choose(f, a, &p)) return false;
    if (a->plan) a->plan(&p, a->plan_user);
    if (!fine(r) || !set_run(f, 0)) return false;
    r->next = 1;
    if (!tn__fit_begin(f)) return false;
    if (!entry(r, 0)->step) between_steps(f, r->bound[0]); /* compares the state before the first step */
    if (!fine(r)) return false;
    return replay(f, a) && r->to->why != TN_VERIFY_STOPPED && load_result(f);
}

tn_verify_result tn_verify_run(tn_verify_args a)
{
    tn_verify_result to = {.input = ""};
    tn__replay       r = {.to = &to};
    if (tn__blocked()) return to;
    if (!a.run || !a.run->folder || a.segments < 0) {
        if (a.run && a.run->folder)
            tn_raise(TN_EINVAL, "tn_verify: .segments is %lld, but must not be negative", (long long)a.segments);
        else tn_raise(TN_EINVAL, "tn_verify: %s", a.run ? ".folder of the run is NULL" : "the run is NULL");
        return to;
    }
    __attribute__((cleanup(tn__fit_end)))
    tn__fit f = {.c = *a.run, .replay = &r, .compare = compare, .folder.path = a.run->folder};
    tn__fit_init(&f);
    if (f.open && verify(&f, &a)) to.why = TN_VERIFY_IDENTICAL;
    if (tn_error() != TN_OK) to.why = TN_VERIFY_FAILED;
    tn__record_free(&r.record);
    const size_t n = (size_t)r.record.n;
    tn_mem_put(r.bound, n * sizeof *r.bound), tn_mem_put(r.chosen, n * sizeof *r.chosen);
    tn_mem_put(r.segment, n * sizeof *r.segment);
    f.returns = true;
    return to;
}
