/* lbfgs.c — L-BFGS, as in torch.optim: quasi-Newton steps from the last `history` pairs of changes s of the weights and
 * y of the gradient (Nocedal and Wright: Numerical Optimization, algorithm 7.4), with a fixed rate or a line search for
 * the strong Wolfe conditions (algorithms 3.5 and 3.6, with cubic interpolation).
 *
 * All weights are one vector of f64; each evaluation writes it to the weights. Sums are serial, so that the bits do not
 * depend on the number of threads. */
#include "extras/lbfgs.h"

#include <math.h>
#include <string.h>

enum { BUFFERS = 8, LINE_SEARCH = 25 };
enum { START, WEIGHTS, DIRECTION, GRADIENT, BEFORE, TRIAL, LOW, HIGH }; /* buffers of n numbers */

struct tn_lbfgs {
    tn_lbfgs_config c;
    tn_tensor     **weight;
    int64_t         weights, n;
    double         *buffer;      /* BUFFERS vectors */
    double        **pair;        /* history pairs: y, then s; a ring from `oldest` */
    double         *rho, *alpha; /* of the pairs */
    int64_t         pairs, oldest;
    double          scale, rate; /* the initial inverse Hessian; the rate of the last iteration */
    int64_t         iterations, evaluations;
    int64_t         limit; /* .max_eval: the number of evaluations at which this step ends */
    tn_closure      closure;
    void           *user;
};

/* A point of the line WEIGHTS + t · DIRECTION: the loss, its derivative by t, the buffer of the gradient. */
typedef struct {
    double t, f, slope;
    int    gradient;
} point;

static double *vector(const tn_lbfgs *o, int which) { return o->buffer + which * o->n; }
static double  dot(const tn_lbfgs *o, const double *a, const double *b)
{
    double sum = 0;
    for (int64_t i = 0; i < o->n; i++) sum += a[i] * b[i];
    return sum;
}
static double largest(const tn_lbfgs *o, const double *a)
{
    double most = 0;
    for (int64_t i = 0; i < o->n; i++) most = fabs(a[i]) > most || a[i] != a[i] ? fabs(a[i]) : most;
    return most;
}
static void copy(const tn_lbfgs *o, int to, int from)
{
    memcpy(vector(o, to), vector(o, from), (size_t)o->n * sizeof(double));
}

/* ---- weights and evaluations ------------------------------------------------------------------------------------- */

static void read_weights(tn_lbfgs *o, double *to)
{
    for (int64_t k = 0; k < o->weights; to += tn_numel(o->weight[k++]))
        (void)!tn_copy_out(o->weight[k], TN_F64, to, (size_t)tn_numel(o->weight[k]) * sizeof *to);
}
static void write_weights(tn_lbfgs *o, const double *from)
{
    const tn_scope s = tn_no_grad_begin();
    for (int64_t k = 0; k < o->weights; from += tn_numel(o->weight[k++]))
        (void)tn_copy_in(o->weight[k], TN_F64, from, (size_t)tn_numel(o->weight[k]) * sizeof *from);
    tn_scope_end(s);
}

/* The loss at the weights; its gradient goes to the buffer. NaN with an error set: failed. */
static double evaluate(tn_lbfgs *o, int gradient)
{
    const tn_scope s = tn_scope_begin();
    tn_tensor     *loss = o->closure(o->user);
    double         f = NAN, *g = vector(o, gradient);
    if (!loss && tn_error() == TN_OK) tn_raise(TN_EINVAL, "tn_lbfgs_step: the closure returned NULL");
    if (tn_error() == TN_OK && tn_backward(loss) == TN_OK) f = tn_item(loss);
    for (int64_t k = 0; k < o->weights && tn_error() == TN_OK; k++) {
        const tn_tensor *of = tn_grad(o->weight[k]);
        const int64_t    n = tn_numel(o->weight[k]);
        if (of) (void)!tn_copy_out(of, TN_F64, g, (size_t)n * sizeof *g);
        else memset(g, 0, (size_t)n * sizeof *g);
        g += n;
    }
    for (int64_t k = 0; k < o->weights; k++) tn_zero_grad(o->weight[k]);
    tn_scope_end(s);
    o->evaluations++;
    return f;
}

/* Moves the weights to WEIGHTS + t · DIRECTION. */
static void move(tn_lbfgs *o, double t)
{
    const double *x = vector(o, WEIGHTS), *d = vector(o, DIRECTION);
    double       *to = vector(o, TRIAL); /* the next evaluation overwrites it with its gradient */
    for (int64_t i = 0; i < o->n; i++) to[i] = x[i] + t * d[i];
    write_weights(o, to);
}
static point evaluate_at(tn_lbfgs *o, double t)
{
    move(o, t);
    const double f = evaluate(o, TRIAL), slope = dot(o, vector(o, TRIAL), vector(o, DIRECTION));
    return (point){t, isfinite(f) && isfinite(slope) ? f : INFINITY, slope, TRIAL}; /* never the best point */
}

static bool exhausted(const tn_lbfgs *o) { return o->evaluations >= o->limit; }

/* ---- the line search --------------------------------------------------------------------------------------------- */

/* The minimum of the cubic through two points with their slopes, in [least, most]. */
static double cubic_minimum(point a, point b, double least, double most)
{
    if (a.t > b.t) {
        const point t = a;
        a = b, b = t;
    }
    const double d1 = a.slope + b.slope - 3 * (a.f - b.f) / (a.t - b.t), square = d1 * d1 - a.slope * b.slope;
    if (!(square >= 0 && isfinite(square))) return (least + most) / 2;
    const double d2 = sqrt(square), t = b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2));
    return fmin(fmax(t, least), most);
}

/* Keeps a point whose gradient is in TRIAL: the gradient goes to another buffer. */
static point kept(tn_lbfgs *o, point p, int where)
{
    if (p.gradient == where) return p;
    copy(o, where, p.gradient);
    p.gradient = where;
    return p;
}

static bool armijo_fails(const point *start, const point *p) { return p->f > start->f + 1e-4 * p->t * start->slope; }
static bool is_flat(const point *start, const point *p) { return fabs(p->slope) <= -0.9 * start->slope; }

/* Extends the step until side[0] … side[1] contains a point of the strong Wolfe conditions. True: side[0] is one. */
static bool bracket(tn_lbfgs *o, const point *start, double t, point side[2], int *tried)
{
    point before = *start, p = evaluate_at(o, t);
    for (; *tried < LINE_SEARCH && tn_error() == TN_OK; ++*tried) {
        const bool flat = is_flat(start, &p), worse = armijo_fails(start, &p) || (*tried > 1 && p.f >= before.f);
        if (!worse && flat) return side[0] = side[1] = kept(o, p, HIGH), true;
        if (worse || p.slope >= 0) return side[0] = kept(o, before, LOW), side[1] = kept(o, p, HIGH), false;
        if (exhausted(o)) break;
        t = cubic_minimum(before, p, p.t + 0.01 * (p.t - before.t), p.t * 10);
        before = kept(o, p, LOW);
        p = evaluate_at(o, t);
    }
    side[0] = kept(o, *start, LOW), side[1] = kept(o, p, HIGH);
    return false;
}

/* A point of the strong Wolfe conditions, or the best one that was found; its gradient is moved to GRADIENT. */
static point line_search(tn_lbfgs *o, point start, double t)
{
    const double size = largest(o, vector(o, DIRECTION));
    point        side[2];
    int          tried = 0;
    bool         done = bracket(o, &start, t, side, &tried), stuck = false;
    int          low = side[0].f <= side[1].f ? 0 : 1;
    for (; !done && tried < LINE_SEARCH && !exhausted(o) && tn_error() == TN_OK; tried++) {
        const double least = fmin(side[0].t, side[1].t), most = fmax(side[0].t, side[1].t), edge = 0.1 * (most - least);
        if ((most - least) * size < o->c.tolerance_change) break;
        t = cubic_minimum(side[0], side[1], least, most);
        if (fmin(most - t, t - least) < edge) { /* twice too near to an end: away from it */
            const bool move_away = stuck || t >= most || t <= least;
            if (move_away) t = fabs(t - most) < fabs(t - least) ? most - edge : least + edge;
            stuck = !move_away;
        } else stuck = false;
        point  p = evaluate_at(o, t);
        point *best = &side[low], *other = &side[1 - low];
        if (armijo_fails(&start, &p) || p.f >= best->f) {
            *other = kept(o, p, other->gradient);
            low = side[0].f <= side[1].f ? 0 : 1;
            continue;
        }
        done = is_flat(&start, &p);
        if (!done && p.slope * (other->t - best->t) >= 0) { /* the best point becomes the other side */
            const int free = other->gradient;
            *other = *best, best->gradient = free;
        }
        *best = kept(o, p, best->gradient);
    }
    return kept(o, side[low], GRADIENT);
}

/* ---- a step ------------------------------------------------------------------------------------------------------ */

/* Adds the last change of weights and gradient to the history, unless the loss is not convex along it. */
static void remember(tn_lbfgs *o)
{
    const double *g = vector(o, GRADIENT), *before = vector(o, BEFORE), *d = vector(o, DIRECTION);
    const bool    full = o->pairs == o->c.history;
    const int64_t at = full ? o->oldest : o->pairs;
    double        ys = 0, yy = 0;
    for (int64_t i = 0; i < o->n; i++) {
        const double y = g[i] - before[i];
        ys += y * (d[i] * o->rate), yy += y * y;
    }
    if (!(ys > 1e-10)) return;
    double *y = o->pair[at], *s = y + o->n;
    for (int64_t i = 0; i < o->n; i++) y[i] = g[i] - before[i], s[i] = d[i] * o->rate;
    o->rho[at] = 1 / ys, o->scale = ys / yy;
    if (full) o->oldest = (o->oldest + 1) % o->c.history;
    else o->pairs++;
}

/* DIRECTION = -H · GRADIENT by the two loops over the history. */
static void choose_direction(tn_lbfgs *o)
{
    const double *g = vector(o, GRADIENT);
    double       *d = vector(o, DIRECTION);
    for (int64_t i = 0; i < o->n; i++) d[i] = -g[i];
    for (int64_t k = o->pairs - 1; k >= 0; k--) {
        const int64_t at = (o->oldest + k) % o->c.history;
        const double *y = o->pair[at], *s = y + o->n, a = o->alpha[k] = dot(o, s, d) * o->rho[at];
        for (int64_t i = 0; i < o->n; i++) d[i] -= a * y[i];
    }
    for (int64_t i = 0; i < o->n; i++) d[i] *= o->scale;
    for (int64_t k = 0; k < o->pairs; k++) {
        const int64_t at = (o->oldest + k) % o->c.history;
        const double *y = o->pair[at], *s = y + o->n, b = dot(o, y, d) * o->rho[at];
        for (int64_t i = 0; i < o->n; i++) d[i] += s[i] * (o->alpha[k] - b);
    }
}

/* True if the memory of the next pair exists. */
static bool room_for_pair(tn_lbfgs *o)
{
    if (o->pairs == o->c.history || o->pair[o->pairs]) return true;
    return (o->pair[o->pairs] = tn_mem_get(2 * (size_t)o->n * sizeof(double))) != NULL;
}

/* One iteration from the loss *f; false: stop. */
static bool iterate(tn_lbfgs *o, double *f, bool last)
{
    const double before = *f;
    const bool   first = o->iterations++ == 0;
    double       sum = 0, t = o->c.lr;
    if (!room_for_pair(o)) return false;
    if (!first) remember(o);
    choose_direction(o);
    copy(o, BEFORE, GRADIENT);
    for (int64_t i = 0; i < o->n; i++) sum += fabs(vector(o, GRADIENT)[i]);
    if (first) t *= fmin(1, 1 / sum);
    const double slope = dot(o, vector(o, GRADIENT), vector(o, DIRECTION));
    o->rate = t;
    if (!(slope <= -o->c.tolerance_change)) return false; /* also if it is NaN */
    read_weights(o, vector(o, WEIGHTS));
    if (o->c.strong_wolfe) {
        const point p = line_search(o, (point){0, *f, slope, GRADIENT}, t);
        *f = p.f, t = o->rate = p.t;
        move(o, t);
    } else {
        move(o, t);
        if (!last) *f = evaluate(o, GRADIENT);
    }
    return tn_error() == TN_OK && !last && !(largest(o, vector(o, GRADIENT)) <= o->c.tolerance_grad) &&
           !(largest(o, vector(o, DIRECTION)) * fabs(t) <= o->c.tolerance_change) &&
           !(fabs(*f - before) < o->c.tolerance_change);
}

tn_status tn_lbfgs_step(tn_lbfgs *o, tn_closure closure, void *user, double *loss)
{
    if (loss) *loss = NAN;
    if (tn_blocked()) return tn_error();
    if (!o || !closure) return tn_raise(TN_EINVAL, "tn_lbfgs_step: the %s is NULL", o ? "closure" : "optimizer");
    const int64_t evaluations = o->evaluations, n = o->c.max_iter;
    const int64_t most = o->c.max_eval >= 0 ? o->c.max_eval : n > INT64_MAX / 2 ? n : n / 4 * 5 + n % 4 * 5 / 4;
    o->closure = closure, o->user = user;
    read_weights(o, vector(o, START));
    o->limit = o->c.max_eval < 0 || o->c.max_eval > INT64_MAX - evaluations ? INT64_MAX : evaluations + o->c.max_eval;
    double f = evaluate(o, GRADIENT);
    if (loss) *loss = f;
    bool more = tn_error() == TN_OK && !(largest(o, vector(o, GRADIENT)) <= o->c.tolerance_grad);
    for (int64_t i = 1; more && i <= o->c.max_iter && !(o->c.strong_wolfe && exhausted(o)); i++)
        more = iterate(o, &f, i == o->c.max_iter || exhausted(o)) && o->evaluations - evaluations < most;
    if (tn_error() == TN_OK) return TN_OK;
    tn_error_state failed;
    tn_error_push(&failed); /* the weights of the start, and a new history */
    write_weights(o, vector(o, START));
    tn_error_pop(&failed);
    o->pairs = o->oldest = o->iterations = 0, o->scale = 1;
    return tn_error();
}

/* ---- creating and freeing ---------------------------------------------------------------------------------------- */

static bool config_valid(const tn_lbfgs_config *c)
{
    const char *wrong = !(c->lr >= 0 && c->lr < INFINITY)          ? ".lr"
                        : c->max_iter < 1                          ? ".max_iter"
                        : c->history < 1 || c->history > INT32_MAX ? ".history"
                        : !(c->tolerance_grad >= 0)                ? ".tolerance_grad"
                        : !(c->tolerance_change >= 0)              ? ".tolerance_change"
                                                                   : NULL;
    if (!c->module) return tn_raise_false(TN_EINVAL, "tn_lbfgs_new: the module is NULL");
    if (!wrong) return true;
    return tn_raise_false(TN_EINVAL,
                          "tn_lbfgs_new: %s must be finite and not negative, .max_iter and .history at least 1", wrong);
}

static bool take_weights(tn_lbfgs *o)
{
    for (tn_each p = tn_module_each(o->c.module, TN_EACH_PARAMETER); tn_next(&p);)
        o->weights += tn_needs_grad(p.tensor);
    if (tn_error() != TN_OK) return false;
    if (!o->weights) return tn_raise_false(TN_EINVAL, "tn_lbfgs_new: the module has no parameters that require grad");
    if (!(o->weight = tn_mem_get((size_t)o->weights * sizeof *o->weight))) return false;
    int64_t k = 0;
    for (tn_each p = tn_module_each(o->c.module, TN_EACH_PARAMETER); tn_next(&p);)
        if (tn_needs_grad(p.tensor) && k < o->weights) {
            tn_mark_trained(p.tensor);
            o->weight[k++] = tn_keep(p.tensor), o->n += tn_numel(p.tensor);
        }
    const size_t history = (size_t)o->c.history;
    return (o->buffer = tn_mem_get(BUFFERS * (size_t)o->n * sizeof(double))) &&
           (o->pair = tn_mem_get(history * sizeof *o->pair)) && (o->rho = tn_mem_get(history * sizeof(double))) &&
           (o->alpha = tn_mem_get(history * sizeof(double)));
}

tn_lbfgs *tn_lbfgs_create(tn_lbfgs_config c)
{
    if (tn_blocked() || !config_valid(&c)) return NULL;
    tn_lbfgs *o = tn_mem_get(sizeof *o);
    if (!o) return NULL;
    o->c = c, o->scale = 1;
    return take_weights(o) ? o : (tn_lbfgs_free(o), NULL);
}

void tn_lbfgs_free(tn_lbfgs *o)
{
    if (!o) return;
    const size_t history = (size_t)o->c.history, n = (size_t)o->n;
    for (int64_t k = 0; o->weight && k < o->weights; k++) tn_drop(o->weight[k]);
    for (size_t k = 0; o->pair && k < history; k++) tn_mem_put(o->pair[k], 2 * n * sizeof(double));
    tn_mem_put(o->weight, (size_t)o->weights * sizeof *o->weight);
    tn_mem_put(o->buffer, BUFFERS * n * sizeof(double));
    tn_mem_put(o->pair, history * sizeof *o->pair);
    tn_mem_put(o->rho, history * sizeof(double));
    tn_mem_put(o->alpha, history * sizeof(double));
    tn_mem_put(o, sizeof *o);
}
