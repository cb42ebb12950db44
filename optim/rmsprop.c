/* rmsprop.c — as torch.optim.RMSprop: with g the gradient plus weight_decay · p,
 *
 *     v ← alpha · v + (1 - alpha) · g²
 *     d = g / (√v + eps)                               centered:  a ← alpha · a + (1 - alpha) · g;  √(v - a²)
 *     p ← p - lr · d                                   momentum:  b ← momentum · b + d;  p ← p - lr · b */
#ifndef TN_REAL
#include "optim/optim_private.h"

#define TN_TEMPLATE "optim/rmsprop.c"
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
    to->b2 = option[TN_OPT_ALPHA], to->c2 = 1 - option[TN_OPT_ALPHA];
    to->b1 = option[TN_OPT_MOMENTUM];
    to->eps = option[TN_OPT_EPS];
}

static void run(tn_optimizer *o) { tn__sweep_run(&o->sweep, TN__PASS(rmsprop, TN__WRITES_P)); }

static const tn__kind rmsprop = {
    .name = "RMSprop",
    .call = "tn_rmsprop_new",
    .options = 1u << TN_OPT_LR | 1u << TN_OPT_BASE_LR | 1u << TN_OPT_WEIGHT_DECAY | 1u << TN_OPT_MOMENTUM |
               1u << TN_OPT_ALPHA | 1u << TN_OPT_EPS,
    .squares = true,
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
#else /* ============================================================================== one number type */
/* clang-format on */

/* What the kinds have in common, and what they add; each is a loop of its own, for the compiler's sake. */
#define RMSPROP(variance, step)                                      \
    for (int64_t i = 0; i < n; i++) {                                \
        const TN_REAL x = TN__CUT(scale * g[i], bound) + add * p[i]; \
        v[i] = b2 * v[i] + c2 * x * x;                               \
        const TN_REAL d = x / (TN_M(sqrt)(variance) + eps);          \
        step;                                                        \
    }
#define AVERAGE (a[i] = b2 * a[i] + c2 * x, v[i] - a[i] * a[i])
#define STRAIGHT p[i] -= lr * d
#define BY_MOMENTUM b[i] = b1 * b[i] + d, p[i] -= lr * b[i]

static void TN_(rmsprop)(const tn__segment *s, int64_t at, int64_t n, void *weights, void *gradients,
                         double sum[TN__SUMS])
{
    (void)sum;
    const tn__numbers *c = &s->number;
    const TN_REAL      scale = (TN_REAL)c->scale, bound = (TN_REAL)c->bound, add = (TN_REAL)c->add_weight;
    const TN_REAL      lr = (TN_REAL)c->lr, eps = (TN_REAL)c->eps;
    const TN_REAL      b1 = (TN_REAL)c->b1, b2 = (TN_REAL)c->b2, c2 = (TN_REAL)c->c2;
    TN_REAL *restrict p = weights, *restrict v = (TN_REAL *)s->state[0] + at;
    TN_REAL *restrict a = s->state[1] ? (TN_REAL *)s->state[1] + at : NULL;
    TN_REAL *restrict b = s->state[2] && c->b1 > 0 ? (TN_REAL *)s->state[2] + at : NULL;
    const TN_REAL *restrict g = gradients;
    if (a && b) RMSPROP(AVERAGE, BY_MOMENTUM)
    else if (a) RMSPROP(AVERAGE, STRAIGHT)
    else if (b) RMSPROP(v[i], BY_MOMENTUM)
    else RMSPROP(v[i], STRAIGHT)
}
#undef RMSPROP
#undef AVERAGE
#undef STRAIGHT
#undef BY_MOMENTUM
#endif
