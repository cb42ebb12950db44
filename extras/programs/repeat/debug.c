/* debug.c — PROGRAM debug DIR: shows what a step of a training read and computed, finds the first step at which a
 * condition holds, or repeats the training without a text.
 *
 * Nothing but the training checkpoints and record.jsonl is stored for it. The steps are those of tn_fit, which resumes
 * from a link to the newest training checkpoint before them, in a temporary folder, with the run's arguments: a resumed
 * run has the same bits. The loss is wrapped to observe one step; each repeated step must have the recorded loss. */
#include "core/system/system.h"

#include "debug.h"
#include "repeat.h"

#include "programs/common/messages.h"
#include "programs/common/resume.h"

#include <stdlib.h>
#include <string.h>

static option_list steps;
static const char *when, *out;
static int64_t     without, from = 1, rows = 8, depth;

const option debug_options[] = {
    OPTION_LIST("step", 0, "N", &steps,
                "show step N, instead of the first of --when: batch, loss, gradients, results; may be repeated",
                .single = true),
    OPTION_TEXT("when", 'w', "CONDITION", &when,
                "show the first step where it holds, such as \"loss > 4\" or \"loss is nan\"; instead of loss: row, "
                "grad, lr, copies or leak"),
    OPTION_INT("from", 0, "N", &from, "with --when: the first step to consider", .least = 1, .most = 1e15),
    OPTION_INT("without", 0, "LINE", &without,
               "repeat the training without this line of its text, from 1, instead of showing a step", .least = 1,
               .most = 1e15),
    OPTION_TEXT("out", 'o', "DIR", &out, "with --without: save the model in this folder (default: it is not saved)"),
    OPTION_INT("rows", 0, "N", &rows, "show N rows of the batch, those with the largest losses; 0: all", .least = 0,
               .most = 1e9),
    OPTION_INT("depth", 0, "N", &depth, "show modules whose paths have at most N parts (default: all)", .least = 1,
               .most = 48),
    {0},
};

/* ---- conditions -------------------------------------------------------------------------------------------------- */

typedef enum { OF_LOSS, OF_ROW, OF_GRAD, OF_LR, OF_COPIES, OF_LEAK, QUANTITIES } quantity;
static const char *const quantities[] = {"loss", "row", "grad", "lr", "copies", "leak"};
typedef enum { ABOVE, BELOW, AT_LEAST, AT_MOST, IS_NAN, IS_INF } relation;
static const char *const relations[] = {">", "<", ">=", "<=", "is nan", "is inf"};
typedef struct {
    quantity of;
    relation is;
    double   value;
} condition;
static condition  awaited;
static debugging *debugged; /* by the functions that tn_fit calls, whose user is the training's */

/* Parses "NAME > NUMBER" or "NAME is nan". Returns 0 or the exit code of a message. */
static int read_condition(const char *text, condition *c)
{
    static const char form[] =
        "expected loss, row, grad, lr, copies or leak, then > < >= or <= and a number, or is nan or is inf";
    const char  *at = text + strspn(text, " ");
    const size_t name = strspn(at, "abcdefghijklmnopqrstuvwxyz");
    int          of = 0, is = -1;
    while (of < QUANTITIES && (strlen(quantities[of]) != name || strncmp(quantities[of], at, name) != 0)) of++;
    if (of == QUANTITIES) return program_usage("--when: '%.*s' in '%s' is unknown; %s", (int)name, at, text, form);
    at += name, at += strspn(at, " ");
    for (int i = 0; i < (int)(sizeof relations / sizeof *relations); i++) {
        const size_t n = strlen(relations[i]);
        if (!strncmp(at, relations[i], n) && (is < 0 || n > strlen(relations[is]))) is = i;
    }
    if (is < 0) return program_usage("--when: after '%s', '%s' is no relation; %s", quantities[of], at, form);
    at += strlen(relations[is]), at += strspn(at, " ");
    size_t n = strlen(at);
    while (n && at[n - 1] == ' ') n--;
    const bool number = is < IS_NAN;
    if (number != (n > 0) || (number && !tn_parse_double(at, n, &c->value)))
        return program_usage("--when: '%s' after '%s %s' is %s; %s", at, quantities[of], relations[is],
                             number ? "not a number" : "unexpected", form);
    c->of = (quantity)of, c->is = (relation)is;
    return 0;
}

static bool holds(const condition *c, double v)
{
    switch (c->is) {
    case ABOVE: return v > c->value;
    case BELOW: return v < c->value;
    case AT_LEAST: return v >= c->value;
    case AT_MOST: return v <= c->value;
    case IS_NAN: return isnan(v);
    default: return isinf(v) != 0;
    }
}

/* ---- what tn_fit calls ------------------------------------------------------------------------------------------- */

static bool awaits(const debugging *d, quantity of) { return d->from && d->done + 1 >= d->from && awaited.of == of; }

static tn_tensor *observed_loss(void *module, const tn_batch *b, void *user)
{
    debugging *d = debugged;
    tn_tensor *l;
    if (d->done + 1 == d->show) l = debug_loss(&d->seen, d->t, b, d->loss);
    else {
        if (awaits(d, OF_ROW) || awaits(d, OF_COPIES) || awaits(d, OF_LEAK))
            debug_rows(&d->seen, d->t, b, d->loss, awaits(d, OF_ROW));
        if (awaits(d, OF_LEAK)) debug_leak(&d->seen, d->t, b, d->loss);
        l = d->loss(module, b, user);
    }
    if (l && tn_numel(l) == 1) d->seen.loss = tn_item(l);
    return l;
}

static tn_status observed_gradients(void *module, tn_optimizer *o, int64_t step, void *user)
{
    debugging *d = user;
    (void)o;
    if (step == d->show) debug_gradients(&d->seen, module);
    else if (awaits(d, OF_GRAD)) d->seen.norm = debug_norm(module);
    return tn_error();
}

static bool is_found(const debugging *d, double loss, double lr)
{
    const double v[] = {loss, debug_worst(&d->seen),          d->seen.norm,
                        lr,   (double)debug_copies(&d->seen), d->seen.leak.size};
    return d->from && d->done >= d->from && holds(&awaited, v[awaited.of]);
}

/* Observed modules run without fused ops, which with bf16 round at other places. */
static bool is_bf16(const debugging *d) { return !strcmp(d->t->asked.dtype, "bf16"); }

static void compare_loss(const debugging *d, double loss)
{
    const history *h = &d->h;
    if (d->without || d->done < h->first || d->done > h->last || (d->done == d->show && is_bf16(d))) return;
    const double was = h->loss[d->done];
    if (loss != was && !(isnan(loss) && isnan(was)))
        tn_raise(TN_ESTATE,
                 "the loss of step %lld is %.9g, in the record %.9g, so that the run cannot be repeated; the command "
                 "verify finds the input that differs",
                 (long long)d->done, loss, was);
}

static void on_event(const tn_fit_event *e, void *user)
{
    debugging *d = user;
    if (e->what == TN_FIT_START || e->what == TN_FIT_STEP) d->done = e->step;
    if (e->what == TN_FIT_STEP) {
        progress_at(&d->bar, d->done, "");
        compare_loss(d, e->loss);
        if (d->done < d->room) d->other[d->done] = e->loss;
        if (d->done == d->show) d->seen.loss = e->loss, d->seen.lr = e->lr;
        if (is_found(d, e->loss, e->lr)) d->found = d->done;
        if ((d->found || d->done >= d->limit) && !stop_flag) stop_flag = STOP_PLAN;
    }
    if (e->what == TN_FIT_VALID && e->step < d->room) d->other_valid[e->step] = e->value;
    if (d->t->on && tn_error() == TN_OK) d->t->on(d->t, e);
}

/* ---- repeating steps --------------------------------------------------------------------------------------------- */

static const char *checkpoint_name(int64_t step, char to[64])
{
    snprintf(to, 64, "step-%012lld.ckpt", (long long)step);
    return to;
}

/* The step of the newest training checkpoint before `below`; -1: none. Deletes those from `from` on. */
static int64_t newest(const char *folder, int64_t below, int64_t delete_from)
{
    char            path[1024], name[64];
    int64_t         best = -1;
    struct dirent **e;
    const int       n = scandir(folder, &e, NULL, NULL);
    for (int i = 0; i < n; i++) {
        const int64_t step = strncmp(e[i]->d_name, "step-", 5) ? -1 : strtoll(e[i]->d_name + 5, NULL, 10);
        const bool    is_one = step >= 0 && !strcmp(e[i]->d_name, checkpoint_name(step, name));
        if (is_one && step < below && step > best) best = step;
        if (is_one && step >= delete_from) tn__sys_unlink(in_folder(folder, name, path));
        free(e[i]);
    }
    if (n >= 0) free(e);
    return best;
}

/* A second name for a file, or a copy on another file system. */
static bool link_file(const char *from_path, const char *to_path)
{
    static char block[1 << 16];
    if (!link(from_path, to_path)) return true;
    FILE  *f = fopen(from_path, "rb"), *to = fopen(to_path, "wb");
    size_t n = 1;
    bool   fine = f && to;
    while (fine && n && (n = fread(block, 1, sizeof block, f))) fine = fwrite(block, 1, n, to) == n;
    fine = fine && !ferror(f);
    if (f) fclose(f);
    if (to && fclose(to)) fine = false;
    return fine || tn_raise_false(TN_EIO, "cannot copy '%s' to '%s'; check the disk space", from_path, to_path);
}

/* Prepares the folder from which tn_fit resumes: with the newest training checkpoint before the step, of the run or of
 * steps repeated before. Sets done. */
static bool go_before(debugging *d, int64_t step, const char *checkpoints)
{
    char          source[1024], path[2][1024], name[64];
    const int64_t there = d->without ? -1 : newest(in_folder(d->run, "checkpoints", source), step, INT64_MAX),
                  here = newest(checkpoints, step, INT64_MAX), start = there > here ? there : here;
    if (start < 0 && d->h.first > 1)
        return tn_raise_false(TN_EIO,
                              "the record of '%s' starts at step %lld, and there is no training checkpoint before step "
                              "%lld",
                              d->run, (long long)d->h.first, (long long)step);
    newest(checkpoints, 0, start + 1);
    tn__sys_unlink(in_folder(checkpoints, "record.jsonl", path[0]));
    checkpoint_name(start, name);
    if (start > here && !link_file(in_folder(source, name, path[0]), in_folder(checkpoints, name, path[1])))
        return false;
    if (d->used) {
        tn_module_free(d->t->net);
        d->t->net = NULL; /* only one model is in memory at a time */
        d->t->net = train_model(d->t);
    }
    d->used = true, d->done = start < 0 ? 0 : start;
    return tn_error() == TN_OK;
}

/* The arguments of a part of the run, observed. */
static tn_fit_args arguments(debugging *d, int64_t part, const char *checkpoints)
{
    tn_fit_args f = train_fit_args(d->t, d->h.part[part].steps, checkpoints, d->config);
    d->loss = f.loss;
    if (f.valid.next && !f.measure) f.measure = f.loss; /* validations are not observed */
    if (!d->without) f.restore_best = false;
    f.loss = observed_loss, f.exchange = observed_gradients, f.exchange_user = d;
    f.on = on_event, f.on_user = d, f.resume = true, f.stop = &stop_flag;
    return f;
}

bool debug_repeat(debugging *d, int64_t first, int64_t until)
{
    const history *h = &d->h;
    char           checkpoints[1024];
    in_folder(d->folder, "checkpoints", checkpoints);
    if (!make_folder(checkpoints) || !go_before(d, first, checkpoints)) return false;
    if (!settings.quiet) tell("replay   steps %lld to %lld\n", (long long)d->done + 1, (long long)until);
    d->bar = progress_begin("replay", until, "step");
    d->bar.from = d->done;
    debugged = d;
    stop_begin("ending");
    for (int64_t p = 0; p < h->parts && d->done < until && tn_error() == TN_OK && !stop_flag && !d->found; p++) {
        const int64_t end = p + 1 < h->parts ? h->part[p + 1].from : until;
        if (d->done >= end) continue;
        d->limit = end < until ? end : until;
        if (d->without && d->limit == h->part[p].steps) d->limit = INT64_MAX; /* it ends with a validation */
        d->why = tn_fit_run(arguments(d, p, checkpoints)).why;
        if (stop_flag == STOP_PLAN) stop_flag = 0;
    }
    progress_end(&d->bar);
    return tn_error() == TN_OK && !stop_flag;
}

/* ---- showing a step ---------------------------------------------------------------------------------------------- */

static void print_step(debugging *d, int64_t step, bool failed)
{
    const history *h = &d->h;
    printf("step      %lld of %lld\n", (long long)step, (long long)h->part[h->parts - 1].steps);
    printf("loss      %.6g%s\n", isnan(d->seen.loss) ? (double)NAN : d->seen.loss,
           failed ? ": the run failed at this step" : "");
    if (!failed) printf("lr        %.6g\n", d->seen.lr);
    if (!failed) printf("gradient  %.6g\n", d->seen.norm);
    printf("batch     %lld rows, %lld items", (long long)d->seen.rows, (long long)d->seen.items);
    if (debug_copies(&d->seen)) printf(", %lld rows are copies", (long long)debug_copies(&d->seen));
    for (int64_t i = h->first; i < step && step <= h->last; i++)
        if (h->batch[i] && h->batch[i] == h->batch[step]) {
            printf(", the batch of step %lld", (long long)i);
            break;
        }
    printf("\n");
    debug_print(&d->seen, rows, depth);
}

/* A NaN or infinite loss ends a run: then the step has no gradients, and that is no error here. */
static bool show(debugging *d, int64_t step)
{
    char checkpoints[1024];
    d->show = step, d->from = d->found = 0;
    const bool fine = debug_repeat(d, step, step);
    const bool failed = !fine && tn_error() == TN_ENUMERIC && d->done + 1 == step && d->seen.rows;
    if (failed) tn_clear_error();
    if (!fine && !failed) return false;
    if (d->done + 1 < step) return tn_raise_false(TN_EINVAL, "the run ends before step %lld", (long long)step);
    print_step(d, step, failed);
    if (is_bf16(d)) newest(in_folder(d->folder, "checkpoints", checkpoints), 0, step); /* these are of other bits */
    d->show = 0;
    return fflush(stdout) == 0;
}

/* The last step that can be repeated: a run that failed or was killed is continued up to its number of steps. */
static int64_t last_step(const history *h) { return h->ended ? h->last : h->part[h->parts - 1].steps; }

/* The first recorded step at which a condition on the loss or the learning rate holds; 0: none. */
static int64_t recorded(const debugging *d)
{
    const history *h = &d->h;
    const double  *v = awaited.of == OF_LR ? h->lr : h->loss;
    for (int64_t i = from > h->first ? from : h->first; i <= h->last; i++)
        if (holds(&awaited, v[i])) return i;
    return 0;
}

static bool find(debugging *d)
{
    const history *h = &d->h;
    const bool     known = awaited.of == OF_LOSS || awaited.of == OF_LR;
    const int64_t  end = last_step(h), first = known && from <= h->last ? h->last + 1 : from;
    int64_t        step = known ? recorded(d) : 0;
    if (!step && first <= end) {
        d->from = from;
        const bool fine = debug_repeat(d, first, end);
        if (d->found) step = d->found;
        if (!fine && tn_error() == TN_ENUMERIC && (d->done++, is_found(d, d->seen.loss, NAN))) step = d->done;
        if (!fine && !step && tn_error() != TN_ENUMERIC) return false;
        tn_clear_error();
    }
    if (step) return show(d, step);
    return tn_raise_false(TN_EINDEX, "--when '%s' does not hold at any step from %lld to %lld", when, (long long)from,
                          (long long)end);
}

static bool show_steps(debugging *d)
{
    const int64_t last = last_step(&d->h);
    for (int i = 0; i < steps.count && tn_error() == TN_OK; i++) {
        const int64_t step = strtoll(steps.value[i], NULL, 10);
        if (step > last)
            tn_raise(TN_EINVAL, "--step %lld is beyond the end: the run in '%s' has %lld steps", (long long)step,
                     d->run, (long long)last);
        if (i && tn_error() == TN_OK) printf("\n");
        if (tn_error() == TN_OK) show(d, step);
    }
    return tn_error() == TN_OK;
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

/* Returns 0 or the exit code of a message. */
static int check_options(void)
{
    const bool chosen[] = {steps.count > 0, when != NULL, without > 0};
    if (chosen[0] + chosen[1] + chosen[2] != 1)
        return program_usage("give one of --step, --when and --without: what to show");
    int code = !when && program_given("from") ? program_stray("from", "--when") : 0;
    if (!code && !without) code = program_stray("out", "--without");
    for (int i = 0; i < steps.count && !code; i++) {
        char         *end;
        const int64_t step = strtoll(steps.value[i], &end, 10);
        if (step < 1 || *end) code = program_usage("--step is '%s', but must be a number from 1", steps.value[i]);
    }
    return !code && when ? read_condition(when, &awaited) : code;
}

/* Everything up to the point from which steps can be repeated. */
static bool open_run(debugging *d, tn_json_writer *w)
{
    if (!history_read(&d->h, d->run) || !resume_same_files() || !replay_folder(d->scratch)) return false;
    d->folder = d->scratch;
    if (without) return true;
    if (!replay_texts(d->t, d->scratch) || !replay_model(d->t)) return false;
    return (d->config = train_describe(d->t, replay_steps(d->t, d->run), w));
}

int debug_main(int count, char **operands)
{
    const command *train = program_command()->repeats;
    training      *t = train->training;
    const char    *run = operands[0];
    debugging      d = {.t = t, .train = train, .run = run};
    int            code = check_options();
    (void)count;
    if (code || (code = replay_open(train, t, run))) return code;
    tn_json_writer *w = tn_json_writer_new(2);
    if (w && open_run(&d, w)) {
        if (without) (void)!debug_without(&d, without, out); /* program_end reports errors */
        else if (when) (void)!find(&d);
        else (void)!show_steps(&d);
    }
    if (d.folder) t->kind->close(t);
    debug_forget(&d.seen);
    replay_delete(d.scratch);
    history_free(&d.h);
    tn_json_writer_free(w);
    replay_close(t);
    return program_end();
}
