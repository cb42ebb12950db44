/* debug.c — PROGRAM debug DIR: shows what a step of a training read and computed, finds the first step at which a
 * condition holds.
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
static const char *when;
static int64_t     from = 1, rows = 8, depth;

const option debug_options[] = {
    OPTION_LIST("step", 0, "N", &steps,
                "show step N, instead of the first of --when: batch, loss, gradients, results; may be repeated",
                .single = true),
    OPTION_TEXT("when", 'w', "CONDITION", &when,
                "show the first step where it holds, such as \"loss > 4\" or \"loss is nan\"; instead of loss: row, "
                "grad, lr, copies or leak"),
    OPTION_INT("from", 0, "N", &from, "with --when: the first step to consider", .least = 1, .most = 1e15),
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

static bool awaits(const debugging *d, quantity of) { return d->from && d->r.done + 1 >= d->from && awaited.of == of; }

static tn_tensor *observed_loss(void *module, const tn_batch *b, void *user)
{
    debugging *d = debugged;
    tn_tensor *l;
    if (d->r.done + 1 == d->show) l = debug_loss(&d->seen, d->r.t, b, d->loss);
    else {
        if (awaits(d, OF_ROW) || awaits(d, OF_COPIES) || awaits(d, OF_LEAK))
            debug_rows(&d->seen, d->r.t, b, d->loss, awaits(d, OF_ROW));
        if (awaits(d, OF_LEAK)) debug_leak(&d->seen, d->r.t, b, d->loss);
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
    return d->from && d->r.done >= d->from && holds(&awaited, v[awaited.of]);
}

/* Observed modules run without fused ops, which with bf16 round at other places. */
static bool is_bf16(const debugging *d) { return !strcmp(d->r.t->asked.dtype, "bf16"); }

static void compare_loss(const debugging *d, double loss)
{
    const history *h = &d->r.h;
    if (d->r.done < h->first || d->r.done > h->last || (d->r.done == d->show && is_bf16(d))) return;
    const double was = h->loss[d->r.done];
    if (loss != was && !(isnan(loss) && isnan(was)))
        tn_raise(TN_ESTATE,
                 "the loss of step %lld is %.9g, in the record %.9g, so that the run cannot be repeated; the command "
                 "verify finds the input that differs",
                 (long long)d->r.done, loss, was);
}

static void on_event(const tn_fit_event *e, void *user)
{
    debugging *d = user;
    if (e->what == TN_FIT_START || e->what == TN_FIT_STEP) d->r.done = e->step;
    if (e->what == TN_FIT_STEP) {
        progress_at(&d->bar, d->r.done, "");
        compare_loss(d, e->loss);
        if (d->r.done == d->show) d->seen.loss = e->loss, d->seen.lr = e->lr;
        if (is_found(d, e->loss, e->lr)) d->found = d->r.done;
        if ((d->found || d->r.done >= d->limit) && !stop_flag) stop_flag = STOP_PLAN;
    }
    if (d->r.t->on && tn_error() == TN_OK) d->r.t->on(d->r.t, e);
}

/* ---- repeating steps --------------------------------------------------------------------------------------------- */

/* The arguments of a part of the run, observed. */
static tn_fit_args arguments(debugging *d, int64_t part)
{
    tn_fit_args f = replay_arguments(&d->r, part);
    d->loss = f.loss;
    if (f.valid.next && !f.measure) f.measure = f.loss; /* validations are not observed */
    f.restore_best = false;
    f.loss = observed_loss, f.exchange = observed_gradients, f.exchange_user = d;
    f.on = on_event, f.on_user = d;
    return f;
}

/* Repeats steps up to `until`, from the newest training checkpoint before step `first`. False: raised. */
static bool repeat(debugging *d, int64_t first, int64_t until)
{
    replay *r = &d->r;
    int64_t p;
    if (!replay_before(r, first)) return false;
    if (!settings.quiet) tell("replay   steps %lld to %lld\n", (long long)r->done + 1, (long long)until);
    d->bar = progress_begin("replay", until, "step");
    d->bar.from = r->done;
    debugged = d;
    stop_begin("ending");
    while (tn_error() == TN_OK && !stop_flag && !d->found && (p = replay_part(r, until, &d->limit)) >= 0) {
        const int64_t before = r->done;
        tn_fit_run(arguments(d, p));
        if (stop_flag == STOP_PLAN) stop_flag = 0;
        if (r->done == before) break; /* the run ended before */
    }
    progress_end(&d->bar);
    return tn_error() == TN_OK && !stop_flag;
}

/* ---- showing a step ---------------------------------------------------------------------------------------------- */

static void print_step(debugging *d, int64_t step, bool failed)
{
    const history *h = &d->r.h;
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
    d->show = step, d->from = d->found = 0;
    const bool fine = repeat(d, step, step);
    const bool failed = !fine && tn_error() == TN_ENUMERIC && d->r.done + 1 == step && d->seen.rows;
    if (failed) tn_clear_error();
    if (!fine && !failed) return false;
    if (d->r.done + 1 < step) return tn_raise_false(TN_EINVAL, "the run ends before step %lld", (long long)step);
    print_step(d, step, failed);
    if (is_bf16(d)) replay_newest(d->r.again, 0, step); /* these are of other bits */
    d->show = 0;
    return fflush(stdout) == 0;
}

/* The last step that can be repeated: a run that failed or was killed is continued up to its number of steps. */
static int64_t last_step(const history *h) { return h->ended ? h->last : h->part[h->parts - 1].steps; }

/* The first recorded step at which a condition on the loss or the learning rate holds; 0: none. */
static int64_t recorded(const debugging *d)
{
    const history *h = &d->r.h;
    const double  *v = awaited.of == OF_LR ? h->lr : h->loss;
    for (int64_t i = from > h->first ? from : h->first; i <= h->last; i++)
        if (holds(&awaited, v[i])) return i;
    return 0;
}

static bool find(debugging *d)
{
    const history *h = &d->r.h;
    const bool     known = awaited.of == OF_LOSS || awaited.of == OF_LR;
    const int64_t  end = last_step(h), first = known && from <= h->last ? h->last + 1 : from;
    int64_t        step = known ? recorded(d) : 0;
    if (!step && first <= end) {
        d->from = from;
        const bool fine = repeat(d, first, end);
        if (d->found) step = d->found;
        if (!fine && tn_error() == TN_ENUMERIC && (d->r.done++, is_found(d, d->seen.loss, NAN))) step = d->r.done;
        if (!fine && !step && tn_error() != TN_ENUMERIC) return false;
        tn_clear_error();
    }
    if (step) return show(d, step);
    return tn_raise_false(TN_EINDEX, "--when '%s' does not hold at any step from %lld to %lld", when, (long long)from,
                          (long long)end);
}

static bool show_steps(debugging *d)
{
    const int64_t last = last_step(&d->r.h);
    for (int i = 0; i < steps.count && tn_error() == TN_OK; i++) {
        const int64_t step = strtoll(steps.value[i], NULL, 10);
        if (step > last)
            tn_raise(TN_EINVAL, "--step %lld is beyond the end: the run in '%s' has %lld steps", (long long)step,
                     d->r.run, (long long)last);
        if (i && tn_error() == TN_OK) printf("\n");
        if (tn_error() == TN_OK) show(d, step);
    }
    return tn_error() == TN_OK;
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

/* Returns 0 or the exit code of a message. */
static int check_options(void)
{
    if ((steps.count > 0) == (when != NULL)) return program_usage("give one of --step and --when: what to show");
    int code = !when && program_given("from") ? program_stray("from", "--when") : 0;
    for (int i = 0; i < steps.count && !code; i++) {
        char         *end;
        const int64_t step = strtoll(steps.value[i], &end, 10);
        if (step < 1 || *end) code = program_usage("--step is '%s', but must be a number from 1", steps.value[i]);
    }
    return !code && when ? read_condition(when, &awaited) : code;
}

/* Everything up to the point from which steps can be repeated. */
static bool open_run(replay *r, tn_json_writer *w)
{
    char checkpoints[1024];
    return history_read(&r->h, in_folder(r->run, "checkpoints", checkpoints)) && resume_same_files() &&
           replay_folder(r->scratch) && replay_texts(r->t, r->scratch) && replay_model(r->t) &&
           (r->config = train_describe(r->t, replay_steps(r->t, r->run), w));
}

int debug_main(int count, char **operands)
{
    const command *train = program_command()->repeats;
    training      *t = train->training;
    debugging      d = {.r = {.t = t, .run = operands[0]}};
    int            code = check_options();
    (void)count;
    if (code || (code = replay_open(train, t, d.r.run))) return code;
    tn_json_writer *w = tn_json_writer_new(2);
    if (w && open_run(&d.r, w)) {
        if (when) (void)!find(&d); /* program_end reports errors */
        else (void)!show_steps(&d);
    }
    if (*d.r.scratch) t->kind->close(t);
    debug_forget(&d.seen);
    replay_delete(d.r.scratch);
    history_free(&d.r.h);
    tn_json_writer_free(w);
    replay_close(t);
    return program_end();
}
