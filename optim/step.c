/* step.c — one step of an optimizer: first all work that can fail, then the sweeps, which cannot fail. */
#include "optim/optim_private.h"

static const char who[] = "tn_step";

/* "f32 [2, 3]" */
static const char *type_text(tn_dtype dt, tn_shape s, char to[220])
{
    char shape[192];
    snprintf(to, 220, "%s %s", tn_dtype_name(dt), tn_shape_text(s, shape, sizeof shape));
    return to;
}

static bool unchanged(const tn_optimizer *o, const tn__weight *w, const tn_tensor *g)
{
    char now[220], then[220];
    if (tn_dtype_of(w->t) == w->dtype && tn_shape_equal(tn_shape_of(w->t), w->shape) && tn_dtype_of(g) == w->dtype &&
        tn_shape_equal(tn_shape_of(g), w->shape) && tn_is_contiguous(g))
        return true;
    tn_raise(TN_ESTATE, "%s: '%s' is %s now, but was %s in %s; create the optimizer after tn_module_to", who, w->name,
             type_text(tn_dtype_of(w->t), tn_shape_of(w->t), now), type_text(w->dtype, w->shape, then), o->kind->call);
    return false;
}

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

/* The rows of the gradient if it is row-sparse and only these rows need an update; else NULL. */
static const tn_tensor *sparse_rows(const tn_optimizer *o, const tn__weight *w, tn_tensor **rows)
{
    const tn_tensor *g = tn_grad_rows(w->t, rows);
    return g && w->n && w->to - w->from == w->n && tn_is_contiguous(w->t) && tn_dtype_of(w->t) == w->dtype &&
                   tn_dtype_of(g) == w->dtype && tn_shape_equal(tn_shape_of(w->t), w->shape) && o->kind->by_rows &&
                   o->kind->by_rows(o, o->group[w->group].option)
               ? g
               : NULL;
}

static void add_rows(tn_optimizer *o, int64_t index, const tn_tensor *g, const tn_tensor *rows)
{
    const int64_t *row = tn_data(rows), n = tn_numel(rows), width = tn_size(g, 1);
    for (int64_t i = 0, next; i < n; i = next) {
        for (next = i + 1; next < n && row[next] == row[next - 1] + 1;) next++;
        add_segment(o, index, row[i] * width, (next - i) * width, g, i * width);
    }
}

/* Lists the weights with a gradient as segments of the sweep and allocates everything. False: raised. */
static bool list_segments(tn_optimizer *o)
{
    int64_t    taking_part = 0, segments = 0, elements = 0;
    tn_tensor *rows;
    for (int64_t i = 0; i < o->weights; i++) {
        const tn__weight *w = o->weight + i;
        segments += sparse_rows(o, w, &rows) ? tn_numel(rows) : 1, elements += w->n;
    }
    if (!tn__sweep_reserve(&o->sweep, segments, elements)) return false;
    tn__sweep_clear(&o->sweep);
    for (int64_t i = 0; i < o->weights; i++) {
        tn__weight      *w = o->weight + i;
        const tn_tensor *some = sparse_rows(o, w, &rows), *g = some ? some : tn_grad(w->t);
        if (!g) continue;
        if ((!some && !unchanged(o, w, g)) || !ready_weight(o, w)) return false;
        taking_part++;
        if (some) add_rows(o, i, g, rows);
        else if (w->to > w->from) add_segment(o, i, w->from, w->to - w->from, g, w->from);
    }
    if (tn_error() != TN_OK) return false;
    if (!taking_part)
        tn_raise(TN_ESTATE, "%s: none of the %lld parameters has a gradient; call tn_backward first%s", who,
                 (long long)o->weights, o->steps ? "; each step zeroes the gradients" : "");
    return taking_part;
}

/* Computes the norm and the factor of the gradients. False: raised because a gradient is not finite. */
static bool measure(tn_optimizer *o, double *scale, double *norm)
{
    const tn_clip *c = &o->clip;
    int64_t        bad = -1;
    *scale = 1 / (double)o->accumulate;
    *norm = NAN;
    if (!(c->norm > 0) && !c->error_if_nonfinite) return true;
    *norm = tn__sweep_norm(&o->sweep, *scale, c->largest, o->kind->squares, c->error_if_nonfinite ? &bad : NULL);
    if (bad >= 0) {
        const tn__segment *s = o->sweep.segment + bad;
        tn_raise(TN_ENUMERIC,
                 "%s: the gradient of '%s' %s; nothing was changed; to continue, call tn_clear_error and "
                 "tn_zero_grads",
                 who, o->weight[s->index].name, tn__sweep_problem(s));
        return false;
    }
    if (c->norm > 0 && c->norm < INFINITY) { /* NaN and Inf propagate, as in PyTorch */
        const double k = c->norm / (*norm + 1e-6);
        *scale *= k < 1 || k != k ? k : 1;
    }
    return true;
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
            s->number = before->number;
            continue;
        }
        if (w->dense) (void)tn_copy_from(w->dense, w->t);
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

static void step(tn_optimizer *o)
{
    double scale, norm;
    if (o->follower) tn__schedule_check_next(o->follower);
    if (tn_error() != TN_OK || !list_segments(o) || !measure(o, &scale, &norm)) {
        delete_new_states(o);
        return;
    }
    open_weights(o, scale);
    o->kind->run(o);
    close_weights(o);
    o->steps++, o->waiting = 0, o->norm = norm;
    if (o->follower) tn__schedule_advance(o->follower);
}

tn_status tn_step(tn_optimizer *o)
{
    if (tn__blocked()) return tn_error();
    if (!o) return tn_raise(TN_EINVAL, "%s: the optimizer is NULL", who);
    if (o->waiting + 1 < o->accumulate) {
        o->waiting++;
        return TN_OK;
    }
    const tn_scope s = tn_no_grad_begin();
    tn_span_begin("tn_step");
    step(o);
    tn_span_end();
    tn_scope_end(s);
    return tn_error();
}

tn_status tn_accumulate(tn_optimizer *o, int64_t n)
{
    if (tn__blocked()) return tn_error();
    if (!o) return tn_raise(TN_EINVAL, "tn_accumulate: the optimizer is NULL");
    if (n < 1) return tn_raise(TN_EINVAL, "tn_accumulate: n is %lld, but must be at least 1", (long long)n);
    if (o->waiting)
        return tn_raise(TN_ESTATE, "tn_accumulate: %lld of %lld parts wait for the update; change n after it",
                        (long long)o->waiting, (long long)o->accumulate);
    o->accumulate = n;
    return TN_OK;
}

int64_t tn_optimizer_parts(const tn_optimizer *o) { return o ? o->accumulate : 1; }
