/* rmsprop.c — RMSprop, as in torch.optim: with g = gradient + weight_decay · p,
 *
 *     v ← alpha · v + (1 - alpha) · g²
 *     d = g / (√v + eps)                               centered:  a ← alpha · a + (1 - alpha) · g;  √(v - a²)
 *     p ← p - lr · d                                   momentum:  b ← momentum · b + d;  p ← p - lr · b */
#ifndef TN__REAL
#include "optim/optim_private.h"

#define TN__TEMPLATE "optim/rmsprop.c"
#include "core/real.h"

static bool has_average(const tn_optimizer *o, const tn__weight *w, tn_shape *s)
{
    return tn__state_same(o, w, s) && o->flags & TN__CENTERED;
}
static bool has_momentum(const tn_optimizer *o, const tn__weight *w, tn_shape *s)
{
    return tn__state_same(o, w, s) && o->group[w->group].option[TN_OPT_MOMENTUM] > 0;
}

static void numbers(const tn_optimizer *o, const tn__weight *w, const double *option, double t, tn__numbers *to)
{
    (void)o, (void)w, (void)t;
    to->lr = option[TN_OPT_LR];
    to->add_weight = option[TN_OPT_WEIGHT_DECAY];
    to->rmsprop.alpha = option[TN_OPT_ALPHA], to->rmsprop.rest = 1 - option[TN_OPT_ALPHA];
    to->rmsprop.momentum = option[TN_OPT_MOMENTUM];
    to->eps = option[TN_OPT_EPS];
}

static void run(tn_optimizer *o) { tn__sweep_run(&o->sweep, TN__PASS(rmsprop, TN__WRITES_P)); }

static const tn__kind rmsprop = {
    .name = "RMSprop",
    .call = "tn_rmsprop_new",
    .options = 1u << TN_OPT_LR | 1u << TN_OPT_BASE_LR | 1u << TN_OPT_WEIGHT_DECAY | 1u << TN_OPT_MOMENTUM |
               1u << TN_OPT_ALPHA | 1u << TN_OPT_EPS,
    .squares = true,
    .by_element = true,
    .state = {{"square_avg", tn__state_same}, {"grad_avg", has_average}, {"momentum_buffer", has_momentum}},
    .numbers = numbers,
    .run = run,
};

tn_optimizer *tn_rmsprop_create(tn_rmsprop_config c)
{
    const double   option[TN_OPTS] = {[TN_OPT_LR] = c.lr,
                                      [TN_OPT_WEIGHT_DECAY] = c.weight_decay,
                                      [TN_OPT_MOMENTUM] = c.momentum,
                                      [TN_OPT_ALPHA] = c.alpha,
                                      [TN_OPT_EPS] = c.eps};
    const unsigned flags = (c.centered ? TN__CENTERED : 0u) | (c.maximize ? TN__MAXIMIZE : 0u);
    return tn__optimizer_make(&rmsprop, c.module, flags, option, &c.clip);
}

/* clang-format off */
#else /* ==================================================================================== per dtype */
/* clang-format on */

/* The weights, gradients and states of a piece; a and b may be NULL. */
typedef struct {
    TN__REAL       *p, *v, *a, *b;
    const TN__REAL *g;
} TN__(operands);

/* Inlined once for each of the four cases, so that compilers can vectorise each loop. */
static inline __attribute__((always_inline)) void TN__(rmsprop_loop)(const bool centered, const bool by_momentum,
                                                                     const tn__numbers *c, int64_t n,
                                                                     const TN__(operands) * o)
{
    const TN__REAL scale = (TN__REAL)c->scale, bound = (TN__REAL)c->bound, add = (TN__REAL)c->add_weight;
    const TN__REAL lr = (TN__REAL)c->lr, eps = (TN__REAL)c->eps, momentum = (TN__REAL)c->rmsprop.momentum;
    const TN__REAL alpha = (TN__REAL)c->rmsprop.alpha, rest = (TN__REAL)c->rmsprop.rest;
    TN__REAL *restrict p = o->p, *restrict v = o->v, *restrict a = o->a, *restrict b = o->b;
    const TN__REAL *restrict g = o->g;
    for (int64_t i = 0; i < n; i++) {
        const TN__REAL x = TN__CUT(scale * g[i], bound) + add * p[i];
        v[i] = alpha * v[i] + rest * x * x;
        if (centered) a[i] = alpha * a[i] + rest * x;
        const TN__REAL variance = centered ? v[i] - a[i] * a[i] : v[i], d = x / (TN__M(sqrt)(variance) + eps);
        if (by_momentum) b[i] = momentum * b[i] + d;
        p[i] -= lr * (by_momentum ? b[i] : d);
    }
}

static void TN__(rmsprop)(const tn__segment *s, int64_t at, int64_t n, void *weights, void *gradients,
                          double sum[TN__SUMS])
{
    (void)sum;
    const tn__numbers *c = &s->number;
    TN__(operands) o = {.p = weights, .v = (TN__REAL *)s->state[0] + at, .g = gradients};
    if (s->state[1]) o.a = (TN__REAL *)s->state[1] + at;
    if (s->state[2] && c->rmsprop.momentum > 0) o.b = (TN__REAL *)s->state[2] + at;
    if (o.a && o.b) TN__(rmsprop_loop)(true, true, c, n, &o);
    else if (o.a) TN__(rmsprop_loop)(true, false, c, n, &o);
    else if (o.b) TN__(rmsprop_loop)(false, true, c, n, &o);
    else TN__(rmsprop_loop)(false, false, c, n, &o);
}
#endif
