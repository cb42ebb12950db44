/* sgd.c — stochastic gradient descent, as in torch.optim: with g = gradient + weight_decay · p,
 *
 *     buf ← momentum · buf + (1 - dampening) · g      (first update: buf ← g)
 *     p ← p - lr · buf                                (Nesterov: p - lr · (g + momentum · buf))
 *
 * and without momentum p ← p - lr · g. */
#ifndef TN__REAL
#include "optim/optim_private.h"

#define TN__TEMPLATE "optim/sgd.c"
#include "core/real.h"

static bool has_momentum(const tn_optimizer *o, const tn__weight *w, tn_shape *s)
{
    return tn__state_same(o, w, s) && o->group[w->group].option[TN_OPT_MOMENTUM] != 0;
}

static void numbers(const tn_optimizer *o, const tn__weight *w, const double *option, double t, tn__numbers *to)
{
    (void)t;
    to->lr = option[TN_OPT_LR];
    to->add_weight = option[TN_OPT_WEIGHT_DECAY];
    to->sgd.momentum = option[TN_OPT_MOMENTUM];
    to->sgd.fresh = w->made & 1 ? 1 : 1 - option[TN_OPT_DAMPENING];
    to->sgd.nesterov = o->flags & TN__NESTEROV;
}

/* Without weight decay and momentum, a gradient of zero changes nothing. */
static bool by_rows(const tn_optimizer *o, const double *option)
{
    return (void)o, option[TN_OPT_WEIGHT_DECAY] == 0 && option[TN_OPT_MOMENTUM] == 0;
}

static void run(tn_optimizer *o) { tn__sweep_run(&o->sweep, TN__PASS(sgd, TN__WRITES_P)); }

static const tn__kind sgd = {
    .name = "SGD",
    .call = "tn_sgd_new",
    .options = 1u << TN_OPT_LR | 1u << TN_OPT_BASE_LR | 1u << TN_OPT_WEIGHT_DECAY | 1u << TN_OPT_MOMENTUM |
               1u << TN_OPT_DAMPENING,
    .by_element = true,
    .state = {{"momentum_buffer", has_momentum}},
    .by_rows = by_rows,
    .numbers = numbers,
    .run = run,
};

tn_optimizer *tn_sgd_create(tn_sgd_config c)
{
    const double option[TN_OPTS] = {[TN_OPT_LR] = c.lr,
                                    [TN_OPT_WEIGHT_DECAY] = c.weight_decay,
                                    [TN_OPT_MOMENTUM] = c.momentum,
                                    [TN_OPT_DAMPENING] = c.dampening};
    if (tn__blocked()) return NULL;
    if (c.nesterov && (option[TN_OPT_MOMENTUM] == 0 || option[TN_OPT_DAMPENING] != 0))
        return tn_raise_null(TN_EINVAL, "tn_sgd_new: .nesterov needs a .momentum and no .dampening");
    if (c.dampening != 0 && c.momentum == 0)
        return tn_raise_null(
            TN_EINVAL,
            "tn_sgd_new: .dampening is %s but has no effect because .momentum is 0; set .momentum or remove "
            ".dampening",
            tn__format_number(c.dampening));
    return tn__optimizer_make(&sgd, c.module, (c.nesterov ? TN__NESTEROV : 0u) | (c.maximize ? TN__MAXIMIZE : 0u),
                              option, &c.clip);
}

/* clang-format off */
#else /* ==================================================================================== per dtype */
/* clang-format on */

static void TN__(sgd)(const tn__segment *s, int64_t at, int64_t n, void *weights, void *gradients, double sum[TN__SUMS])
{
    (void)sum;
    const tn__numbers *c = &s->number;
    const TN__REAL     scale = (TN__REAL)c->scale, bound = (TN__REAL)c->bound, add = (TN__REAL)c->add_weight;
    const TN__REAL     lr = (TN__REAL)c->lr, momentum = (TN__REAL)c->sgd.momentum;
    const TN__REAL     fresh = (TN__REAL)c->sgd.fresh;
    TN__REAL *restrict p = weights;
    const TN__REAL *restrict g = gradients;
    if (c->sgd.momentum == 0) {
        for (int64_t i = 0; i < n; i++) p[i] -= lr * (TN__CUT(scale * g[i], bound) + add * p[i]);
        return;
    }
    TN__REAL *restrict buf = (TN__REAL *)s->state[0] + at;
    if (c->sgd.nesterov) {
        for (int64_t i = 0; i < n; i++) {
            const TN__REAL x = TN__CUT(scale * g[i], bound) + add * p[i];
            buf[i] = momentum * buf[i] + fresh * x;
            p[i] -= lr * (x + momentum * buf[i]);
        }
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        buf[i] = momentum * buf[i] + fresh * (TN__CUT(scale * g[i], bound) + add * p[i]);
        p[i] -= lr * buf[i];
    }
}
#endif
