/* muon.c — Muon (Jordan and others: Muon, an optimizer for hidden layers in neural networks, 2024): for a matrix p with
 * r rows and c columns, gradient g and B ← momentum · B + (1 - momentum) · g,
 *
 *     U = (1 - momentum) · g + momentum · B            or B, without Nesterov
 *     X = U / max(‖U‖, 1e-7)
 *     five times:  A = X Xᵀ,  X ← 3.4445 X + (-4.775 A + 2.0315 A²) X      if r > c: A = Xᵀ X, to the right of X
 *     p ← p · (1 - lr · weight_decay) - lr · √max(1, r / c) · X            with match_rms: lr · 0.2 √max(r, c)
 *
 * The products are computed before the sweep, because they allocate and may fail; they read B but do not change it.
 * Matrices of one shape are iterated together, so that small ones occupy all threads. Parameters that are not matrices,
 * and the tables of embeddings, whose rows are looked up and not multiplied, are updated as by AdamW. */
#ifndef TN__REAL
#include "core/products/gemm.h"
#include "optim/optim_private.h"

enum { MOMENTUM, FIRST, SECOND, ITERATIONS = 5 }; /* states; FIRST of a matrix is U, then X, while a step runs */
#define TN__TEMPLATE "optim/muon.c"
#include "core/real.h"

static bool is_matrix(const tn__weight *w) { return w->shape.n == 2 && !w->table; }
static bool of_matrix(const tn_optimizer *o, const tn__weight *w, tn_shape *s)
{
    return tn__state_same(o, w, s) && is_matrix(w);
}
static bool of_others(const tn_optimizer *o, const tn__weight *w, tn_shape *s)
{
    return tn__state_same(o, w, s) && !is_matrix(w);
}

static void numbers(const tn_optimizer *o, const tn__weight *w, const double *option, double t, tn__numbers *to)
{
    const double lr = option[TN_OPT_LR], b1 = option[TN_OPT_BETA1], b2 = option[TN_OPT_BETA2];
    to->keep = 1 - lr * option[TN_OPT_WEIGHT_DECAY];
    to->lr = lr;
    if (!is_matrix(w)) {
        to->adam = (tn__adam_numbers){.beta1 = b1, .rest1 = 1 - b1, .beta2 = b2, .rest2 = 1 - b2};
        to->adam.root = 1 / sqrt(1 - tn__libm_pow(b2, t));
        to->lr = lr / (1 - tn__libm_pow(b1, t));
        to->eps = option[TN_OPT_EPS];
        return;
    }
    const double r = (double)w->shape.d[0], c = (double)w->shape.d[1];
    to->adam.beta1 = option[TN_OPT_MOMENTUM], to->adam.rest1 = 1 - option[TN_OPT_MOMENTUM];
    if (c > 0) to->lr *= o->flags & TN__MATCH_RMS ? 0.2 * sqrt(fmax(r, c)) : sqrt(fmax(1, r / c));
}

/* ---- the directions of the matrices ------------------------------------------------------------------------------ */

/* Matrices of one shape that are iterated together. */
enum { STACK = 64, STACK_ELEMENTS = 1 << 22 };
typedef struct {
    int64_t      n;
    tn__segment *of[STACK];
} stack;

/* The iterations, for matrices whose U and its squared norm, sum[0], are known; leaves X in place of U. */
static bool iterate(tn_optimizer *o, const stack *s)
{
    const tn_scope    scope = tn_scope_begin();
    const tn__weight *w = o->weight + s->of[0]->index;
    const int64_t     r = w->shape.d[0], c = w->shape.d[1], least = tn__min_i64(r, c);
    const tn_dtype    dt = o->flags & TN__BF16 ? TN_BF16 : tn_dtype_of(w->state[MOMENTUM]);
    tn_tensor        *x = tn_empty_of(dt, TN_SHAPE(s->n, r, c)), *next = tn_empty_like(x);
    tn_tensor        *a = tn_empty_of(dt, TN_SHAPE(s->n, least, least)), *q = tn_empty_like(a);
    for (int64_t i = 0; i < s->n && tn_error() == TN_OK; i++) {
        const double norm = sqrt(s->of[i]->sum[0]);
        tn_tensor   *u = o->weight[s->of[i]->index].state[FIRST];
        tn_copy_from(tn_select(x, 0, i), tn_mul_scalar(u, 1 / (norm < 1e-7 ? 1e-7 : norm)));
    }
    for (int i = 0; i < ITERATIONS && tn_error() == TN_OK; i++) {
        tn_tensor *const now = x, *const turned = tn_transpose(x, 1, 2);
        if (!turned) break;
        tn__gemm(1, r > c ? turned : x, r > c ? x : turned, 0, a);
        tn__gemm_onto(2.0315, a, a, -4.775, a, q);
        tn__gemm_onto(1, r > c ? x : q, r > c ? q : x, 3.4445, x, next);
        x = next, next = now;
    }
    for (int64_t i = 0; i < s->n && tn_error() == TN_OK; i++)
        tn_copy_from(o->weight[s->of[i]->index].state[FIRST], tn_select(x, 0, i));
    tn_scope_end(scope);
    return tn_error() == TN_OK;
}

static bool alike(const tn__weight *a, const tn__weight *b)
{
    return is_matrix(a) && is_matrix(b) && a->dtype == b->dtype && tn_shape_equal(a->shape, b->shape);
}

/* Iterates segment i and those like it, if it is the first of them. */
static bool iterate_alike(tn_optimizer *o, int64_t i)
{
    const tn__weight *w = o->weight + o->sweep.segment[i].index;
    stack             s = {.n = 0};
    if (!is_matrix(w) || !w->n) return true;
    for (int64_t k = 0; k < i; k++)
        if (alike(w, o->weight + o->sweep.segment[k].index)) return true;
    for (int64_t k = i; k < o->sweep.count; k++) {
        if (!alike(w, o->weight + o->sweep.segment[k].index)) continue;
        s.of[s.n++] = o->sweep.segment + k;
        if (s.n < STACK && (s.n + 1) * w->n <= STACK_ELEMENTS) continue;
        if (!iterate(o, &s)) return false;
        s.n = 0;
    }
    return !s.n || iterate(o, &s);
}

static void drop_directions(tn_optimizer *o)
{
    for (int64_t i = 0; i < o->weights; i++) {
        tn__weight *w = o->weight + i;
        if (is_matrix(w)) tn_drop(w->state[FIRST]), w->state[FIRST] = NULL;
    }
}

/* Allocates U of each matrix and sets the numbers of the pass that computes it. */
static bool begin_directions(tn_optimizer *o, double scale)
{
    for (int64_t i = 0; i < o->sweep.count; i++) {
        tn__segment *s = o->sweep.segment + i;
        tn__weight  *w = o->weight + s->index;
        if (!is_matrix(w)) continue;
        const double momentum = o->group[w->group].option[TN_OPT_MOMENTUM];
        const bool   nesterov = o->flags & TN__NESTEROV;
        w->state[FIRST] = tn_take(tn_empty_of(tn_dtype_of(w->state[MOMENTUM]), w->shape));
        if (!w->state[FIRST]) return false;
        s->state[FIRST] = tn_data_mut(w->state[FIRST]);
        s->number = (tn__numbers){.scale = o->flags & TN__MAXIMIZE ? -scale : scale,
                                  .bound = o->clip.value > 0 ? o->clip.value : INFINITY};
        s->number.sgd.momentum = nesterov ? momentum * momentum : momentum;
        s->number.sgd.fresh = (1 - momentum) * (nesterov ? 1 + momentum : 1);
    }
    return true;
}

static bool prepare(tn_optimizer *o, double scale)
{
    const tn_scope s = tn_autocast_begin(false);
    bool           done = begin_directions(o, scale);
    if (done) tn__sweep_run(&o->sweep, TN__PASS(direction, TN__READS));
    for (int64_t i = 0; done && i < o->sweep.count; i++) done = iterate_alike(o, i);
    if (!done) drop_directions(o);
    tn_scope_end(s);
    return done;
}

static void run(tn_optimizer *o)
{
    tn__sweep_run(&o->sweep, TN__PASS(muon, TN__WRITES_P));
    drop_directions(o);
}

static const tn__kind muon = {
    .name = "Muon",
    .call = "tn_muon_new",
    .options = 1u << TN_OPT_LR | 1u << TN_OPT_BASE_LR | 1u << TN_OPT_WEIGHT_DECAY | 1u << TN_OPT_MOMENTUM |
               1u << TN_OPT_BETA1 | 1u << TN_OPT_BETA2 | 1u << TN_OPT_EPS,
    .squares = true,
    .state = {{"momentum_buffer", of_matrix}, {"exp_avg", of_others}, {"exp_avg_sq", of_others}},
    .numbers = numbers,
    .prepare = prepare,
    .undo = drop_directions,
    .run = run,
};

tn_optimizer *tn_muon_create(tn_muon_config c)
{
    const double   option[TN_OPTS] = {[TN_OPT_LR] = c.lr,
                                      [TN_OPT_WEIGHT_DECAY] = c.weight_decay,
                                      [TN_OPT_MOMENTUM] = c.momentum,
                                      [TN_OPT_BETA1] = c.beta1,
                                      [TN_OPT_BETA2] = c.beta2,
                                      [TN_OPT_EPS] = c.eps};
    const unsigned flags = (c.no_nesterov ? 0u : TN__NESTEROV) | (c.maximize ? TN__MAXIMIZE : 0u) |
                           (c.match_rms ? TN__MATCH_RMS : 0u) | (c.bf16 ? TN__BF16 : 0u);
    tn_optimizer *o = tn__optimizer_make(&muon, c.module, flags, option, &c.clip);
    if (!o) return NULL;
    for (tn_each p = tn_module_each(c.module, TN_EACH_PARAMETER); tn_next(&p);)
        o->weight[tn__weight_find(o, p.tensor)].table = !strcmp(p.module->kind->name, "Embedding");
    return o;
}

/* clang-format off */
#else /* ==================================================================================== per dtype */
/* clang-format on */

/* U, in place of FIRST, and the sum of its squares. */
static void TN__(direction)(const tn__segment *s, int64_t at, int64_t n, void *weights, void *gradients,
                            double sum[TN__SUMS])
{
    (void)weights;
    if (!s->state[MOMENTUM]) return;
    const tn__numbers *c = &s->number;
    const TN__REAL     scale = (TN__REAL)c->scale, bound = (TN__REAL)c->bound;
    const TN__REAL     kept = (TN__REAL)c->sgd.momentum, fresh = (TN__REAL)c->sgd.fresh;
    const TN__REAL *restrict g = gradients, *restrict buf = (const TN__REAL *)s->state[MOMENTUM] + at;
    TN__REAL *restrict u = (TN__REAL *)s->state[FIRST] + at;
    double lane[TN__SUM_LANES] = {0};
    for (int64_t i = 0; i < n; i++) {
        u[i] = kept * buf[i] + fresh * TN__CUT(scale * g[i], bound);
        lane[i % TN__SUM_LANES] += (double)u[i] * (double)u[i];
    }
    sum[0] += tn__lanes_in_order(lane);
}

static void TN__(muon)(const tn__segment *s, int64_t at, int64_t n, void *weights, void *gradients,
                       double sum[TN__SUMS])
{
    (void)sum;
    const tn__numbers *c = &s->number;
    const TN__REAL     scale = (TN__REAL)c->scale, bound = (TN__REAL)c->bound, keep = (TN__REAL)c->keep;
    const TN__REAL     beta1 = (TN__REAL)c->adam.beta1, rest1 = (TN__REAL)c->adam.rest1, lr = (TN__REAL)c->lr;
    const TN__REAL     beta2 = (TN__REAL)c->adam.beta2, rest2 = (TN__REAL)c->adam.rest2;
    const TN__REAL     root = (TN__REAL)c->adam.root, eps = (TN__REAL)c->eps;
    TN__REAL *restrict p = weights, *restrict m = (TN__REAL *)s->state[FIRST] + at;
    const TN__REAL *restrict g = gradients;
    if (s->state[MOMENTUM]) {
        TN__REAL *restrict buf = (TN__REAL *)s->state[MOMENTUM] + at;
        for (int64_t i = 0; i < n; i++) {
            buf[i] = beta1 * buf[i] + rest1 * TN__CUT(scale * g[i], bound);
            p[i] = keep * p[i] - lr * m[i];
        }
        return;
    }
    TN__REAL *restrict v = (TN__REAL *)s->state[SECOND] + at;
    for (int64_t i = 0; i < n; i++) {
        const TN__REAL x = TN__CUT(scale * g[i], bound);
        m[i] = beta1 * m[i] + rest1 * x;
        v[i] = beta2 * v[i] + rest2 * x * x;
        p[i] = keep * p[i] - lr * m[i] / (TN__M(sqrt)(v[i]) * root + eps);
    }
}
#endif
