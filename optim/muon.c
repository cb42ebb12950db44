/* muon.c — Muon (Jordan and others: Muon, an optimizer for hidden layers in neural networks, 2024): for a matrix p with
 * r rows and c columns, gradient g and B ← momentum · B + (1 - momentum) · g,
 *
 *     U = (1 - momentum) · g + momentum · B            or B, without Nesterov
 *     X = U / max(‖U‖, 1e-7)                           transposed if r > c
 *     five times:  A = X Xᵀ,  X ← 3.4445 X + (-4.775 A + 2.0315 A²) X
 *     p ← p · (1 - lr · weight_decay) - lr · √max(1, r / c) · X          with match_rms: lr · 0.2 √max(r, c)
 *
 * The products are computed before the sweep, because they allocate and may fail; they read B but do not change it.
 * Parameters that are not matrices are updated as by AdamW. */
#ifndef TN__REAL
#include "optim/optim_private.h"

enum { MOMENTUM, FIRST, SECOND, ITERATIONS = 5 }; /* states; FIRST of a matrix is X while a step runs */
#define TN__TEMPLATE "optim/muon.c"
#include "core/real.h"

static bool of_matrix(const tn_optimizer *o, const tn__weight *w, tn_shape *s)
{
    return tn__state_same(o, w, s) && w->shape.n == 2;
}
static bool of_others(const tn_optimizer *o, const tn__weight *w, tn_shape *s)
{
    return tn__state_same(o, w, s) && w->shape.n != 2;
}

static void numbers(const tn_optimizer *o, const tn__weight *w, const double *option, double t, tn__numbers *to)
{
    const double lr = option[TN_OPT_LR], b1 = option[TN_OPT_BETA1], b2 = option[TN_OPT_BETA2];
    to->keep = 1 - lr * option[TN_OPT_WEIGHT_DECAY];
    to->lr = lr;
    if (w->shape.n != 2) {
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

static tn_tensor *mixed(tn_tensor *a, double ka, tn_tensor *b, double kb)
{
    return tn_add(tn_mul_scalar(a, ka), tn_mul_scalar(b, kb));
}

/* X for one matrix, owned by the caller; NULL: raised. */
static tn_tensor *direction(const tn_optimizer *o, const tn__weight *w, double scale)
{
    const double   momentum = o->group[w->group].option[TN_OPT_MOMENTUM], bound = o->clip.value;
    const bool     tall = w->shape.d[0] > w->shape.d[1];
    const tn_dtype dt = tn_dtype_of(w->state[MOMENTUM]);
    const tn_scope s = tn_autocast_begin(false); /* bf16 is too coarse for the iteration */
    tn_tensor     *g = tn_mul_scalar(tn_to(tn_grad(w->t), dt), o->flags & TN__MAXIMIZE ? -scale : scale);
    if (bound > 0) g = tn_clamp(g, -bound, bound);
    tn_tensor *x = mixed(w->state[MOMENTUM], momentum, g, 1 - momentum);
    if (o->flags & TN__NESTEROV) x = mixed(g, 1 - momentum, x, momentum);
    if (tall) x = tn_transpose(x, 0, 1);
    x = tn_div(x, tn_clamp(tn_norm(x), 1e-7, INFINITY));
    for (int i = 0; i < ITERATIONS; i++) {
        tn_tensor *a = tn_matmul(x, tn_transpose(x, 0, 1));
        x = tn_add(tn_mul_scalar(x, 3.4445), tn_matmul(mixed(a, -4.775, tn_matmul(a, a), 2.0315), x));
    }
    x = tn_scope_return(s, tn_contiguous(tall ? tn_transpose(x, 0, 1) : x));
    return x ? tn_take(x) : NULL;
}

static void drop_directions(tn_optimizer *o)
{
    for (int64_t i = 0; i < o->weights; i++) {
        tn__weight *w = o->weight + i;
        if (w->shape.n == 2) tn_drop(w->state[FIRST]), w->state[FIRST] = NULL;
    }
}
static bool prepare(tn_optimizer *o, double scale)
{
    for (int64_t i = 0; i < o->sweep.count; i++) {
        tn__segment *s = o->sweep.segment + i;
        tn__weight  *w = o->weight + s->index;
        if (w->shape.n != 2) continue;
        if (!(w->state[FIRST] = direction(o, w, scale))) return drop_directions(o), false;
        s->state[FIRST] = (void *)(uintptr_t)tn_data(w->state[FIRST]);
    }
    return true;
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
    const unsigned flags =
        (c.no_nesterov ? 0u : TN__NESTEROV) | (c.maximize ? TN__MAXIMIZE : 0u) | (c.match_rms ? TN__MATCH_RMS : 0u);
    return tn__optimizer_make(&muon, c.module, flags, option, &c.clip);
}

/* clang-format off */
#else /* ==================================================================================== per dtype */
/* clang-format on */

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
