/* lr_find.c — the range test of learning rates: the loss as the rate grows, and the rate at which it falls fastest.
 *
 * The loss is smoothed by an exponential mean with 0.9, corrected for its start; its slope by log(rate) is the
 * difference of the neighbours. */
#include "optim/optim_private.h"

static const char who[] = "tn_lr_find";

/* ---- what the test changes --------------------------------------------------------------------------------------- */

typedef struct {
    tn_tensor  **before; /* copies of the parameters and buffers, in the order of tn_module_each */
    int64_t      n;
    tn_generator generator;
    tn_schedule *follower;
} saved;

static int64_t each(void *module, saved *s, bool restore)
{
    int64_t n = 0;
    for (int kind = 0; kind < 2; kind++)
        for (tn_each p = tn_module_each(module, kind ? TN_EACH_BUFFER : TN_EACH_PARAMETER); tn_next(&p); n++) {
            if (!s->before) continue;
            if (restore) {
                tn_zero_grad(p.tensor);
                if (s->before[n]) (void)tn_copy_from(p.tensor, s->before[n]);
            } else if ((s->before[n] = tn_empty_like(p.tensor))) {
                (void)tn_copy_from(s->before[n], p.tensor);
            }
        }
    return n;
}

/* The copies belong to the open scope. */
static bool save(const tn_lr_find_args *a, saved *s)
{
    *s = (saved){.generator = *tn_current_generator(), .follower = a->optimizer->follower};
    s->n = each(a->module, s, false);
    s->before = tn_mem_get((size_t)s->n * sizeof(tn_tensor *));
    if (s->before) each(a->module, s, false);
    return tn_error() == TN_OK;
}

static void restore(const tn_lr_find_args *a, saved *s, double lr)
{
    tn_optimizer  *o = a->optimizer;
    tn_error_state failed;
    tn_error_push(&failed);
    const tn_scope scope = tn_no_grad_begin();
    each(a->module, s, true);
    tn_scope_end(scope);
    for (int64_t i = 0; i < o->weights; i++) tn_optimizer_forget(o, o->weight[i].t);
    o->group->option[TN_OPT_LR] = lr;
    o->steps = o->waiting = 0, o->norm = NAN, o->follower = s->follower;
    *tn_current_generator() = s->generator;
    tn_error_pop(&failed);
    tn_mem_put(s->before, (size_t)s->n * sizeof(tn_tensor *));
}

/* ---- the test ---------------------------------------------------------------------------------------------------- */

static bool args_valid(const tn_lr_find_args *a)
{
    if (!a->module || !a->optimizer || !a->closure)
        return tn_raise_false(TN_EINVAL, "%s: %s is NULL", who,
                              !a->module     ? "the module"
                              : a->optimizer ? ".closure"
                                             : ".optimizer");
    if (!(a->from > 0 && a->to > a->from && a->to < INFINITY))
        return tn_raise_false(TN_EINVAL, "%s: rates from %g to %g, expected 0 < .from < .to", who, a->from, a->to);
    if (!tn__within(who, "steps", a->steps, 10, INT32_MAX)) return false;
    if (!(a->stop > 1)) return tn_raise_false(TN_EINVAL, "%s: .stop is %g, expected more than 1", who, a->stop);
    if (a->optimizer->steps || a->optimizer->waiting || a->optimizer->groups > 1)
        return tn_raise_false(TN_ESTATE, "%s: the optimizer has made %lld steps and has %d groups, expected none and 1",
                              who, (long long)a->optimizer->steps, a->optimizer->groups);
    return true;
}

/* One step; returns the loss before it, NaN if an error is set. */
static double step(const tn_lr_find_args *a)
{
    const tn_scope s = tn_scope_begin();
    tn_tensor     *loss = a->closure(a->user);
    double         f = NAN;
    if (!loss && tn_error() == TN_OK) tn_raise(TN_EINVAL, "%s: the closure returned NULL", who);
    if (tn_error() == TN_OK && tn_backward(loss) == TN_OK) f = tn_item(loss);
    tn_scope_end(s);
    tn_step(a->optimizer);
    return tn_error() == TN_OK ? f : NAN;
}

/* True if the loss is above stop times the lowest one; for a lowest loss that is not positive, if it has risen by
 * stop - 1 times the magnitude of that or of the fall from the first one. True for NaN. */
static bool diverged(double f, double lowest, double first, double stop)
{
    if (lowest > 0) return !(f <= stop * lowest);
    return !(f - lowest <= (stop - 1) * fmax(-lowest, first - lowest));
}

/* Fills smooth[]; returns the number of steps made. */
static int64_t run(const tn_lr_find_args *a, double *smooth)
{
    double mean = 0, weight = 0, lowest = INFINITY;
    for (int64_t i = 0; i < a->steps; i++) {
        const double lr = a->from * tn__libm_pow(a->to / a->from, (double)i / (double)(a->steps - 1));
        a->optimizer->group->option[TN_OPT_LR] = lr;
        const double f = step(a);
        if (tn_error() != TN_OK) return i;
        if (a->lrs) a->lrs[i] = lr;
        if (a->losses) a->losses[i] = f;
        mean = 0.9 * mean + 0.1 * f, weight = 0.9 * weight + 0.1;
        smooth[i] = mean / weight;
        if (i && diverged(smooth[i], lowest, smooth[0], a->stop)) return i + 1;
        lowest = fmin(lowest, smooth[i]);
    }
    return a->steps;
}

double tn_lr_find_run(tn_lr_find_args a)
{
    double best = 0, lr = NAN;
    if (tn__blocked() || !args_valid(&a)) return NAN;
    for (int64_t i = 0; i < a.steps; i++) {
        if (a.lrs) a.lrs[i] = NAN;
        if (a.losses) a.losses[i] = NAN;
    }
    const double   before = a.optimizer->group->option[TN_OPT_LR];
    const tn_scope s = tn_scope_begin();
    const size_t   bytes = (size_t)a.steps * sizeof(double);
    double        *smooth = tn_mem_get(bytes);
    saved          kept;
    if (save(&a, &kept)) {
        a.optimizer->follower = NULL;
        const int64_t n = smooth ? run(&a, smooth) : 0;
        for (int64_t i = 1; i + 1 < n; i++)
            if (smooth[i + 1] - smooth[i - 1] < best) {
                best = smooth[i + 1] - smooth[i - 1];
                lr = a.from * tn__libm_pow(a.to / a.from, (double)i / (double)(a.steps - 1));
            }
    }
    restore(&a, &kept, before);
    if (tn_error() == TN_OK && !(best < 0))
        tn_raise(TN_ESTATE, "%s: the loss never fell; check that the closure computes the loss of this module", who);
    tn_mem_put(smooth, bytes);
    tn_scope_end(s);
    return tn_error() == TN_OK ? lr : NAN;
}
