/* plan.c — what a training does with its time: the size of its model, and the number of steps, as asked or, with
 * --minutes, planned again while it runs; and the memory and disk space that it takes. */
#include "resume.h"
#include "stop.h"
#include "train.h"

#include <math.h>
#include <string.h>

enum { USUAL_SPEED = 95 /* 10⁹ multiply-adds per second: two cores of Zen 3 in f32 */ };

/* The dtype of the run to resume, or the fastest one of this CPU. */
static const char *choose_dtype(const char *run)
{
    tn_json    *j = run ? record_asked(run) : NULL;
    const char *was = tn_json_string_or(tn_json_get(tn_json_get(j, "asked"), "dtype"), "");
    const bool  narrow = run ? !strcmp(was, "bf16") : tn_has_bf16();
    tn_json_free(j);
    return narrow ? "bf16" : "f32";
}

/* Multiply-adds per second of this machine, in 10⁹, in products as wide as those of a small model: the best of those of
 * a hundredth of the run, at most three seconds, as another process may disturb the first ones. */
static double measure_speed(bool narrow, double minutes)
{
    enum { LEAST_TRIES = 12, MOST_SECONDS = 3 };
    const double   end = seconds_now() + fmin(0.6 * minutes, MOST_SECONDS);
    const tn_scope s = tn_no_grad_begin(), c = tn_autocast_begin(narrow);
    tn_tensor     *x = tn_ones(TN_SHAPE(1024, 256)), *w = tn_ones(TN_SHAPE(256, 1024));
    double         least = INFINITY;
    for (int i = 0; (i < LEAST_TRIES || seconds_now() < end) && tn_error() == TN_OK; i++) {
        const tn_scope product = tn_scope_begin();
        const double   began = seconds_now();
        tn_matmul(x, w);
        least = fmin(least, seconds_now() - began);
        tn_scope_end(product);
    }
    tn_scope_end(c), tn_scope_end(s);
    return tn_error() == TN_OK && least > 0 ? 1024.0 * 256 * 1024 / 1e9 / least : USUAL_SPEED;
}

/* The number of minutes in which two cores of USUAL_SPEED would do the work of this run. Only --minutes depends on the
 * machine: --steps gives the same model everywhere. */
static double usual_minutes(training *t)
{
    const train_asked *a = &t->asked;
    t->speed = USUAL_SPEED;
    if (t->recorded) t->speed = record_number(a->out, "speed");
    else if (a->minutes > 0 && !t->world) t->speed = measure_speed(!strcmp(a->dtype, "bf16"), a->minutes);
    return t->minutes * (t->speed > 0 ? t->speed : USUAL_SPEED) / USUAL_SPEED;
}

int64_t train_valid_tokens(const training *t)
{
    enum { LEAST = 1 << 14, MOST = 1 << 17, EACH_MINUTE = 1 << 11 };
    return (int64_t)fmin(fmax(t->minutes * EACH_MINUTE, LEAST), MOST);
}

const train_choice *train_choose(training *t, const train_choice *rows, bool by_speed)
{
    char         path[1024];
    train_asked *a = &t->asked;
    t->recorded |= a->resume && file_exists(in_folder(a->out, "run.json", path)) && !record_only_begun(path);
    if (!a->dtype) a->dtype = choose_dtype(t->recorded ? a->out : NULL);
    t->minutes = t->recorded ? record_number(a->out, "minutes") : a->minutes;
    if (!(t->minutes > 0)) t->minutes = t->kind->minutes;
    const double minutes = by_speed ? usual_minutes(t) : t->minutes;
    while (rows[1].size && minutes >= rows[1].minutes) rows++;
    t->chosen = !a->size;
    if (t->chosen) a->size = rows->size;
    return rows;
}

/* With more tokens, most are too rare to be learned, and their product is most of a small model's work. */
void train_choose_vocabulary(training *t, size_t bytes, int share)
{
    enum { LEAST = 300, MOST = 4000 };
    const double good = round(share * sqrt((double)bytes) / 100) * 100;
    if (!t->asked.vocab_size) t->asked.vocab_size = (int64_t)fmin(fmax(good, LEAST), share * MOST);
}

/* The number of steps that the duration asks for: of the --minutes of the start the run's own, which may have been
 * planned again; of others, in proportion to the number at the start. 0: raised. */
static int64_t steps_asked(const training *t, int64_t first, int64_t before)
{
    const train_asked *a = &t->asked;
    const double       minutes = record_number(a->out, "minutes");
    if (a->steps || a->epochs) return a->steps ? a->steps : a->epochs * t->batches;
    if (minutes > 0) return a->minutes == minutes ? before : (int64_t)((double)first * (a->minutes / minutes));
    tn_raise(TN_EINVAL,
             "'%s' is a run of %lld steps, but --minutes %g is given now; omit it to resume, or give --steps or "
             "--epochs to lengthen the run",
             a->out, (long long)record_steps(a->out), a->minutes);
    return 0;
}

int64_t train_resumed_steps(const training *t)
{
    const train_asked *a = &t->asked;
    const int64_t      before = record_steps(a->out);
    if (tn_error() != TN_OK || t->no_duration) return before;
    const int64_t steps = steps_asked(t, record_count(a->out, "steps"), before);
    const char   *name = a->steps ? "steps" : a->epochs ? "epochs" : "minutes";
    if (tn_error() == TN_OK && steps < before)
        tn_raise(TN_EINVAL,
                 "'%s' is a run of %lld steps, but --%s %g is %lld steps; give more to lengthen the run, or omit it to "
                 "resume",
                 a->out, (long long)before, name,
                 a->steps    ? (double)a->steps
                 : a->epochs ? (double)a->epochs
                             : a->minutes,
                 (long long)steps);
    return tn_error() == TN_OK ? steps : 0;
}

int64_t plan_steps(training *t, double seconds)
{
    const double all = 60 * t->asked.minutes, left = all - (seconds_now() - t->plan.began);
    t->plan.all = tn_world_size(t->world) == 1 && !t->fit.optimizer ? all : 0;
    return (int64_t)fmax(fmax(left, all / 2) / seconds, 1);
}

/* The parts of the time after which the number of steps is planned again. */
static const double looks[] = {0.1, 0.25, 0.5, 0.75, 0.9};
enum { LOOKS = sizeof looks / sizeof *looks };

void plan_begin(training *t) { t->plan = (plan){.began = seconds_now()}; }

void plan_watch(plan *p, const tn_fit_event *e, progress *bar)
{
    const double now = seconds_now(), part = p->all > 0 ? (now - p->began) / p->all : 0;
    if (e->what == TN_FIT_START) p->step = e->step, p->time = now;
    if (e->what == TN_FIT_END) p->before += e->seconds;
    if (e->what != TN_FIT_STEP || p->steps || p->look == LOOKS || part < looks[p->look] || stop_flag) return;
    while (p->look < LOOKS && part >= looks[p->look]) p->look++;
    const double  left = fmax(p->all - (now - p->began), 0), each = (now - p->time) / (double)(e->step - p->step);
    const int64_t steps = e->step + (int64_t)fmax(left / each, e->step < e->steps); /* no step beyond a run's end */
    p->step = e->step, p->time = now;
    if (fabs((double)(steps - e->steps)) <= fmax(0.03 * (double)e->steps, 1)) return;
    progress_say(bar, "step %lld: %.0f ms per step, so the run has %lld steps now, not %lld, to end after %.3g min",
                 (long long)e->step, 1e3 * each, (long long)steps, (long long)e->steps, p->all / 60);
    p->steps = steps, stop_flag = STOP_PLAN;
}

bool plan_again(training *t, int64_t *steps)
{
    if (!t->plan.steps || stop_flag != STOP_PLAN) return false;
    *steps = t->plan.steps;
    t->plan.steps = 0, t->asked.resume = true, stop_flag = 0;
    return record_set_steps(t->asked.out, *steps);
}

/* ---- memory and disk space --------------------------------------------------------------------------------------- */

int plan_budget(training *t)
{
    static const char units[] = "KMGT";
    const char       *text = t->asked.memory;
    if (!text) return 0;
    const size_t n = strlen(text);
    const char  *unit = n ? strchr(units, text[n - 1]) : NULL;
    double       bytes = 0;
    const bool   valid = n && tn_parse_double(text, unit ? n - 1 : n, &bytes);
    for (int64_t i = unit ? unit - units : -1; i >= 0; i--) bytes *= 1024;
    if (!valid || !(bytes >= 1 << 20 && bytes < 0x1p50))
        return program_usage("--memory is '%s', but must be a number of bytes of at least 1M, such as 500M or 2G",
                             text);
    if (t->world) return program_usage("--memory is for one process; omit --ranks");
    t->fit.memory = (size_t)bytes;
    return 0;
}

/* The approximate bytes of memory of the training: four f32 values per weight that is trained, one per frozen weight,
 * and the activations kept for the backward pass; at most --memory. */
double plan_memory(const training *t)
{
    const double inner = (double)t->asked.dim * (22 * (double)t->asked.layers + 8);
    const double all = 4 * (double)tn_module_count(t->net, false) + 12 * (double)tn_module_count(t->net, true) +
                       4 * (double)t->width * inner;
    return t->fit.memory ? fmin(all, (double)t->fit.memory) : all;
}

/* The approximate bytes on disk: fit.keep + 1 checkpoints of three f32 values per weight (one if it is frozen), the
 * best weights, and the model. */
double plan_disk(const training *t)
{
    const double checkpoints = t->asked.resume ? 1 : fmax((double)t->fit.keep, (double)t->asked.keep) + 1;
    return 4 * (double)tn_module_count(t->net, false) * (checkpoints + 2) +
           8 * (double)tn_module_count(t->net, true) * checkpoints + (1 << 20);
}
