/* nadam.c — NAdam and RAdam, as in torch.optim: with m and v as in Adam, at update t of a weight with gradient g,
 *
 *     NAdam:  mu_t = beta1 · (1 - 0.96^(t · momentum_decay) / 2),  M_t = mu_1 · … · mu_t
 *             p ← p - lr ((1 - mu_t) / (1 - M_t) g + mu_t+1 / (1 - M_t mu_t+1) m) / (√(v / (1 - beta2^t)) + eps)
 *     RAdam:  r∞ = 2 / (1 - beta2) - 1,  r = r∞ - 2 t beta2^t / (1 - beta2^t)
 *             p ← p - lr / (1 - beta1^t) · m                                                    if r ≤ 5, otherwise
 *             p ← p - lr / (1 - beta1^t) m √(1 - beta2^t) / (√v + eps) √((r - 4)(r - 2) r∞ / ((r∞ - 4)(r∞ - 2) r))
 *
 * Both are p ← p - (a · m + b · g) / (√v · root + eps), with root 0 and eps 1 for RAdam's first steps. */
#ifndef TN__REAL
#include "optim/optim_private.h"

#define TN__TEMPLATE "optim/nadam.c"
#include "core/real.h"

/* NAdam's product of momenta: one number. */
static bool one_number(const tn_optimizer *o, const tn__weight *w, tn_shape *s)
{
    (void)o, (void)w;
    return *s = (tn_shape){.n = 0}, true;
}

static void common(const tn_optimizer *o, const double *option, tn__numbers *to)
{
    const double b1 = option[TN_OPT_BETA1], b2 = option[TN_OPT_BETA2], decay = option[TN_OPT_WEIGHT_DECAY];
    to->adam = (tn__adam_numbers){.beta1 = b1, .rest1 = 1 - b1, .beta2 = b2, .rest2 = 1 - b2};
    if (o->flags & TN__DECOUPLED) to->keep = 1 - option[TN_OPT_LR] * decay;
    else to->add_weight = decay;
}

static void nadam_numbers(const tn_optimizer *o, const tn__weight *w, const double *option, double t, tn__numbers *to)
{
    const double lr = option[TN_OPT_LR], b1 = option[TN_OPT_BETA1], decay = option[TN_OPT_MOMENTUM_DECAY];
    const double mu = b1 * (1 - 0.5 * tn__libm_pow(0.96, t * decay));
    const double next = b1 * (1 - 0.5 * tn__libm_pow(0.96, (t + 1) * decay));
    const double product = (w->made >> 2 & 1 ? 1 : tn_get(w->state[2], 0)) * mu;
    tn_set(w->state[2], 0, product);
    common(o, option, to);
    to->lr = lr * next / (1 - product * next);
    to->adam.first = lr * (1 - mu) / (1 - product);
    to->adam.root = 1 / sqrt(1 - tn__libm_pow(option[TN_OPT_BETA2], t));
    to->eps = option[TN_OPT_EPS];
}

static void radam_numbers(const tn_optimizer *o, const tn__weight *w, const double *option, double t, tn__numbers *to)
{
    const double b2 = option[TN_OPT_BETA2], power = tn__libm_pow(b2, t), most = 2 / (1 - b2) - 1;
    const double r = most - 2 * t * power / (1 - power);
    (void)w;
    common(o, option, to);
    to->lr = option[TN_OPT_LR] / (1 - tn__libm_pow(option[TN_OPT_BETA1], t));
    to->eps = 1; /* root is 0 */
    if (r <= 5) return;
    to->lr *= sqrt((r - 4) * (r - 2) * most / ((most - 4) * (most - 2) * r)) * sqrt(1 - power);
    to->adam.root = 1, to->eps = option[TN_OPT_EPS];
}

static void run(tn_optimizer *o) { tn__sweep_run(&o->sweep, TN__PASS(nadam, TN__WRITES_P)); }

enum {
    OPTIONS = 1u << TN_OPT_LR | 1u << TN_OPT_BASE_LR | 1u << TN_OPT_WEIGHT_DECAY | 1u << TN_OPT_BETA1 |
              1u << TN_OPT_BETA2 | 1u << TN_OPT_EPS
};
static const tn__kind nadam = {
    .name = "NAdam",
    .call = "tn_nadam_new",
    .options = OPTIONS | 1u << TN_OPT_MOMENTUM_DECAY,
    .squares = true,
    .state = {{"exp_avg", tn__state_same}, {"exp_avg_sq", tn__state_same}, {"mu_product", one_number}},
    .numbers = nadam_numbers,
    .run = run,
};
static const tn__kind radam = {
    .name = "RAdam",
    .call = "tn_radam_new",
    .options = OPTIONS,
    .squares = true,
    .by_element = true,
    .state = {{"exp_avg", tn__state_same}, {"exp_avg_sq", tn__state_same}},
    .numbers = radam_numbers,
    .run = run,
};

static tn_optimizer *make(const tn__kind *kind, const tn_nadam_config *c)
{
    const double option[TN_OPTS] = {[TN_OPT_LR] = c->lr,       [TN_OPT_WEIGHT_DECAY] = c->weight_decay,
                                    [TN_OPT_BETA1] = c->beta1, [TN_OPT_BETA2] = c->beta2,
                                    [TN_OPT_EPS] = c->eps,     [TN_OPT_MOMENTUM_DECAY] = c->momentum_decay};
    return tn__optimizer_make(kind, c->module, (c->decoupled ? TN__DECOUPLED : 0u) | (c->maximize ? TN__MAXIMIZE : 0u),
                              option, &c->clip);
}
tn_optimizer *tn_nadam_create(tn_nadam_config c) { return make(&nadam, &c); }
tn_optimizer *tn_radam_create(tn_radam_config c)
{
    return make(&radam, &(tn_nadam_config){.module = c.module,
                                           .lr = c.lr,
                                           .beta1 = c.beta1,
                                           .beta2 = c.beta2,
                                           .eps = c.eps,
                                           .weight_decay = c.weight_decay,
                                           .decoupled = c.decoupled,
                                           .maximize = c.maximize,
                                           .clip = c.clip});
}

/* clang-format off */
#else /* ==================================================================================== per dtype */
/* clang-format on */

static void TN__(nadam)(const tn__segment *s, int64_t at, int64_t n, void *weights, void *gradients,
                        double sum[TN__SUMS])
{
    (void)sum;
    const tn__numbers *c = &s->number;
    const TN__REAL     scale = (TN__REAL)c->scale, bound = (TN__REAL)c->bound, add = (TN__REAL)c->add_weight;
    const TN__REAL     keep = (TN__REAL)c->keep, a = (TN__REAL)c->lr, b = (TN__REAL)c->adam.first;
    const TN__REAL     beta1 = (TN__REAL)c->adam.beta1, rest1 = (TN__REAL)c->adam.rest1;
    const TN__REAL     beta2 = (TN__REAL)c->adam.beta2, rest2 = (TN__REAL)c->adam.rest2;
    const TN__REAL     root = (TN__REAL)c->adam.root, eps = (TN__REAL)c->eps;
    TN__REAL *restrict p = weights, *restrict m = (TN__REAL *)s->state[0] + at,
                       *restrict v = (TN__REAL *)s->state[1] + at;
    const TN__REAL *restrict g = gradients;
    for (int64_t i = 0; i < n; i++) {
        const TN__REAL x = TN__CUT(scale * g[i], bound) + add * p[i];
        m[i] = beta1 * m[i] + rest1 * x;
        v[i] = beta2 * v[i] + rest2 * x * x;
        p[i] = keep * p[i] - (a * m[i] + b * x) / (TN__M(sqrt)(v[i]) * root + eps);
    }
}
#endif
