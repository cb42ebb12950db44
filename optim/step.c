/* step.c — tn_step. First all work that can fail: list the weights with a gradient as segments of a sweep, creating
 * their states, and compute the factor of the gradients (norm.c). Then the work that cannot fail: set each segment's
 * parameters, run the optimizer's kernels over all segments, zero the gradients. */
#include "optim/norm.h"
#include "optim/step_private.h"

/* Creates missing states, and for a weight that is not contiguous a contiguous copy. False: raised. */
static bool ready_weight(tn_optimizer *o, tn__weight *w)
{
    tn_shape shape;
    for (int k = 0; k < TN__STATES; k++) {
        if (w->state[k] || !o->kind->state[k].name || !o->kind->state[k].shape(o, w, &shape)) continue;
        if (!(w->state[k] = tn__state_make(o, w, shape))) return false;
        w->made |= 1u << k;
    }
    if (tn_is_contiguous(w->t)) return true;
    if (!tn_data_mut(w->t) && w->n) return false; /* raises an error if it may not be written */
    if (!w->dense) w->dense = tn_take(tn_empty_of(w->dtype, w->shape));
    return w->dense != NULL;
}

/* Adds n elements of a weight, from element `first`, to the sweep; their gradient is g from element `at`. */
static void add_segment(tn_optimizer *o, int64_t index, int64_t first, int64_t n, const tn_tensor *g, int64_t at)
{
    const tn__weight *w = o->weight + index;
    const int64_t     state = w->dtype == TN_F64 ? 8 : 4;
    char             *from = (char *)(uintptr_t)tn_data(g);
    tn__segment      *s = tn__sweep_add(&o->sweep, w->dtype, n, NULL, from + at * (int64_t)tn_dtype_size(w->dtype));
    s->index = index, s->first = first;
    for (int k = 0; k < TN__STATES; k++)
        s->state[k] = w->state[k] ? (char *)(uintptr_t)tn_data(w->state[k]) + (first - w->from) * state : NULL;
}

static void add_sparse_rows(tn_optimizer *o, int64_t index, const tn_tensor *g, const tn_tensor *rows)
{
    const int64_t *row = tn_data(rows), width = tn_size(g, 1);
    for (int64_t at = 0, n; (n = tn__adjacent_rows(rows, at)); at += n)
        add_segment(o, index, row[at] * width, n * width, g, at * width);
}

/* Lists the weights with a gradient as segments of the sweep and allocates everything. False: raised. */
static bool list_segments(tn_optimizer *o)
{
    int64_t    taking_part = 0, segments = 0, elements = 0;
    tn_tensor *rows;
    for (int64_t i = 0; i < o->weights; i++) {
        const tn__weight *w = o->weight + i;
        segments += tn__sparse_rows(o, w, &rows) ? tn_numel(rows) : 1, elements += w->n;
    }
    if (!tn__sweep_reserve(&o->sweep, segments, elements)) return false;
    tn__sweep_clear(&o->sweep);
    for (int64_t i = 0; i < o->weights; i++) {
        tn__weight      *w = o->weight + i;
        const tn_tensor *some = tn__sparse_rows(o, w, &rows), *g = some ? some : tn_grad(w->t);
        if (!g) continue;
        if ((!some && !tn__weight_unchanged(o, w, g)) || !ready_weight(o, w)) return false;
        taking_part++;
        if (some) add_sparse_rows(o, i, g, rows);
        else if (w->to > w->from) add_segment(o, i, w->from, w->to - w->from, g, w->from);
    }
    if (tn_error() != TN_OK) return false;
    bool frozen = !taking_part;
    for (int64_t i = 0; i < o->weights && frozen; i++) frozen = !tn_needs_grad(o->weight[i].t);
    if (frozen)
        tn_raise(TN_ESTATE, "tn_step: all %lld parameters are frozen; unfreeze some with tn_requires_grad",
                 (long long)o->weights);
    else if (!taking_part)
        tn_raise(TN_ESTATE, "tn_step: none of the %lld parameters has a gradient; call tn_backward first%s",
                 (long long)o->weights, o->steps ? "; each step zeroes the gradients" : "");
    return taking_part;
}

/* Gets write access to each weight, which increments its version for the tape, and sets the kernel's parameters. */
static void open_weights(tn_optimizer *o, double scale)
{
    for (int64_t i = 0; i < o->sweep.count; i++) {
        tn__segment       *s = o->sweep.segment + i;
        tn__weight        *w = o->weight + s->index;
        const tn__segment *before = i ? s - 1 : NULL;
        const int64_t      size = (int64_t)tn_dtype_size(w->dtype);
        if (before && before->index == s->index) { /* further rows of the same weight */
            s->p = (char *)before->p + (s->first - before->first) * size;
            if (before->copy) s->copy = before->copy + (s->first - before->first);
            s->number = before->number;
            continue;
        }
        if (w->dense) (void)tn_copy_from(w->dense, w->t);
        uint16_t *copy = w->dense ? NULL : tn__cast_open(w->t);
        s->copy = copy ? copy + s->first : NULL, w->cast = copy != NULL;
        s->p = (char *)tn_data_mut(w->dense ? w->dense : w->t) + s->first * size;
        s->number = (tn__numbers){.keep = 1};
        o->kind->numbers(o, w, o->group[w->group].option, (double)(w->steps + 1), &s->number);
        s->number.scale = o->flags & TN__MAXIMIZE ? -scale : scale;
        s->number.bound = o->clip.value > 0 ? o->clip.value : INFINITY;
    }
}

static void close_weights(tn_optimizer *o)
{
    for (int64_t i = 0; i < o->weights; i++) {
        tn__weight *w = o->weight + i;
        if (!tn__gradient(w->t)) continue;
        if (w->dense) (void)tn_copy_from(w->t, w->dense);
        if (w->cast) tn__cast_close(w->t), w->cast = false;
        w->steps++, w->made = 0;
        tn_zero_grad(w->t);
    }
}

static void delete_new_states(tn_optimizer *o)
{
    for (int64_t i = 0; i < o->weights; i++) {
        tn__weight *w = o->weight + i;
        for (int k = 0; k < TN__STATES; k++)
            if (w->made >> k & 1) tn_drop(w->state[k]), w->state[k] = NULL;
        w->made = 0;
    }
}

static bool has_gradient(const tn_optimizer *o)
{
    for (int64_t i = 0; i < o->weights; i++)
        if (tn__gradient(o->weight[i].t)) return true;
    return false;
}

static void release(tn_optimizer *o)
{
    for (int64_t i = 0; i < o->weights; i++)
        if (o->weight[i].claimed) o->weight[i].claimed = false, tn__leaf_release(o->weight[i].t);
}

/* Claims the weights with a gradient until the end of the step; false (raised): another thread changes one of them. */
static bool claim(tn_optimizer *o)
{
    bool any = false;
    for (int64_t i = 0; i < o->weights; i++) {
        tn__weight *w = o->weight + i;
        if (!tn__gradient(w->t)) continue;
        if (!tn__leaf_claim(w->t)) {
            tn_raise(
                TN_ESTATE,
                "tn_step: another thread is in tn_step or tn_backward of '%s'; a model is trained by one thread at "
                "a time",
                w->name);
            if (any) release(o); /* else the claims are those of the other thread, in this optimizer */
            return false;
        }
        w->claimed = any = true;
    }
    return true;
}

bool tn__step_begin(tn_optimizer *o, bool share)
{
    if (!claim(o)) return false;
    const tn_scope s = tn_no_grad_begin();
    if (o->follower) tn__schedule_check_next(o->follower);
    o->next_norm = NAN;
    if (share && !has_gradient(o)) tn__sweep_clear(&o->sweep);
    else if (tn_error() != TN_OK || !list_segments(o) || !tn__step_scale(o, &o->scale, &o->next_norm) ||
             (o->kind->prepare && !o->kind->prepare(o, o->scale)))
        delete_new_states(o);
    tn_scope_end(s);
    if (tn_error() != TN_OK) release(o);
    return tn_error() == TN_OK;
}

void tn__step_end(tn_optimizer *o, bool cancel)
{
    if (cancel) {
        if (o->kind->undo) o->kind->undo(o);
        delete_new_states(o);
        release(o);
        return;
    }
    const tn_scope s = tn_no_grad_begin();
    open_weights(o, o->scale);
    if (o->sweep.count) o->kind->run(o);
    close_weights(o);
    o->steps++, o->waiting = 0, o->norm = o->next_norm;
    if (o->follower) tn__schedule_advance(o->follower);
    tn_scope_end(s);
    release(o);
}

tn_status tn_step(tn_optimizer *o)
{
    if (tn__blocked()) return tn_error();
    if (!o) return tn_raise(TN_EINVAL, "tn_step: the optimizer is NULL");
    if (o->waiting + 1 < o->accumulate) {
        o->waiting++;
        for (int64_t i = 0; i < o->weights; i++) tn__grad_wait(o->weight[i].t);
        return TN_OK;
    }
    tn_span_begin("tn_step");
    if (tn__step_begin(o, false)) tn__step_end(o, false);
    tn_span_end();
    return tn_error();
}
