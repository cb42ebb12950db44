/* lion.c — Lion (Chen and others: Symbolic discovery of optimization algorithms, 2023): with gradient g,
 *
 *     p ← p · (1 - lr · weight_decay) - lr · sign(beta1 · m + (1 - beta1) · g)
 *     m ← beta2 · m + (1 - beta2) · g */
#ifndef TN__REAL
#include "optim/optim_private.h"

#define TN__TEMPLATE "optim/lion.c"
#include "core/real.h"

static void numbers(const tn_optimizer *o, const tn__weight *w, const double *option, double t, tn__numbers *to)
{
    const double b1 = option[TN_OPT_BETA1], b2 = option[TN_OPT_BETA2];
    (void)o, (void)w, (void)t;
    to->adam = (tn__adam_numbers){.beta1 = b1, .rest1 = 1 - b1, .beta2 = b2, .rest2 = 1 - b2};
    to->lr = option[TN_OPT_LR];
    to->keep = 1 - option[TN_OPT_LR] * option[TN_OPT_WEIGHT_DECAY];
}

static void run(tn_optimizer *o) { tn__sweep_run(&o->sweep, TN__PASS(lion, TN__WRITES_P)); }

static const tn__kind lion = {
    .name = "Lion",
    .call = "tn_lion_new",
    .options =
        1u << TN_OPT_LR | 1u << TN_OPT_BASE_LR | 1u << TN_OPT_WEIGHT_DECAY | 1u << TN_OPT_BETA1 | 1u << TN_OPT_BETA2,
    .by_element = true,
    .state = {{"exp_avg", tn__state_same}},
    .numbers = numbers,
    .run = run,
};

tn_optimizer *tn_lion_create(tn_lion_config c)
{
    const double option[TN_OPTS] = {
        [TN_OPT_LR] = c.lr, [TN_OPT_WEIGHT_DECAY] = c.weight_decay, [TN_OPT_BETA1] = c.beta1, [TN_OPT_BETA2] = c.beta2};
    return tn__optimizer_make(&lion, c.module, c.maximize ? TN__MAXIMIZE : 0u, option, &c.clip);
}

/* clang-format off */
#else /* ==================================================================================== per dtype */
/* clang-format on */

static void TN__(lion)(const tn__segment *s, int64_t at, int64_t n, void *weights, void *gradients,
                       double sum[TN__SUMS])
{
    (void)sum;
    const tn__numbers *c = &s->number;
    const TN__REAL     scale = (TN__REAL)c->scale, bound = (TN__REAL)c->bound, keep = (TN__REAL)c->keep;
    const TN__REAL     beta1 = (TN__REAL)c->adam.beta1, rest1 = (TN__REAL)c->adam.rest1, lr = (TN__REAL)c->lr;
    const TN__REAL     beta2 = (TN__REAL)c->adam.beta2, rest2 = (TN__REAL)c->adam.rest2;
    TN__REAL *restrict p = weights, *restrict m = (TN__REAL *)s->state[0] + at;
    const TN__REAL *restrict g = gradients;
    for (int64_t i = 0; i < n; i++) {
        const TN__REAL x = TN__CUT(scale * g[i], bound), u = beta1 * m[i] + rest1 * x;
        const TN__REAL up = u > 0 ? 1 : u; /* compiled without a branch; NaN stays NaN */
        p[i] = keep * p[i] - lr * (u < 0 ? -1 : up);
        m[i] = beta2 * m[i] + rest2 * x;
    }
}
#endif
