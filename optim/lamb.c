/* lamb.c — LAMB: Adam with the step's norm scaled to lr times the weight's norm (You and others: Large batch
 * optimization for deep learning, 2020): with m and v as in Adam, at update t of a weight,
 *
 *     r = (m / (1 - beta1^t)) / (√(v / (1 - beta2^t)) + eps) + weight_decay · p
 *     p ← p - lr · (‖p‖ / ‖r‖) · r                     the ratio is 1 if one of the norms is 0
 *
 * Two passes: the first updates m and v and computes the norms, the second recomputes r and updates p. */
#ifndef TN__REAL
#include "optim/optim_private.h"

enum { LANES = TN__SUM_LANES };
#define TN__TEMPLATE "optim/lamb.c"
#include "core/real.h"

static void numbers(const tn_optimizer *o, const tn__weight *w, const double *option, double t, tn__numbers *to)
{
    const double b1 = option[TN_OPT_BETA1], b2 = option[TN_OPT_BETA2];
    (void)o, (void)w;
    to->adam = (tn__adam_numbers){.beta1 = b1, .rest1 = 1 - b1, .beta2 = b2, .rest2 = 1 - b2};
    to->adam.first = 1 / (1 - tn__libm_pow(b1, t));
    to->adam.root = 1 / sqrt(1 - tn__libm_pow(b2, t));
    to->lr = option[TN_OPT_LR];
    to->eps = option[TN_OPT_EPS];
    to->add_weight = option[TN_OPT_WEIGHT_DECAY];
}

static void run(tn_optimizer *o)
{
    tn__sweep_run(&o->sweep, TN__PASS(moments, TN__READS));
    for (int64_t i = 0; i < o->sweep.count; i++) {
        tn__segment *s = o->sweep.segment + i;
        if (s->sum[0] > 0 && s->sum[1] > 0) s->number.lr *= sqrt(s->sum[0]) / sqrt(s->sum[1]);
    }
    tn__sweep_run(&o->sweep, TN__PASS(update, TN__WRITES_P));
}

static const tn__kind lamb = {
    .name = "LAMB",
    .call = "tn_lamb_new",
    .options = 1u << TN_OPT_LR | 1u << TN_OPT_BASE_LR | 1u << TN_OPT_WEIGHT_DECAY | 1u << TN_OPT_BETA1 |
               1u << TN_OPT_BETA2 | 1u << TN_OPT_EPS,
    .squares = true,
    .state = {{"exp_avg", tn__state_same}, {"exp_avg_sq", tn__state_same}},
    .numbers = numbers,
    .run = run,
};

tn_optimizer *tn_lamb_create(tn_lamb_config c)
{
    const double option[TN_OPTS] = {[TN_OPT_LR] = c.lr,
                                    [TN_OPT_WEIGHT_DECAY] = c.weight_decay,
                                    [TN_OPT_BETA1] = c.beta1,
                                    [TN_OPT_BETA2] = c.beta2,
                                    [TN_OPT_EPS] = c.eps};
    return tn__optimizer_make(&lamb, c.module, c.maximize ? TN__MAXIMIZE : 0u, option, &c.clip);
}

/* clang-format off */
#else /* ==================================================================================== per dtype */
/* clang-format on */

typedef struct {
    TN__REAL scale, bound, add, lr, eps, beta1, rest1, beta2, rest2, first, root;
} TN__(lamb_numbers);

static inline TN__(lamb_numbers) TN__(numbers_of)(const tn__numbers *c)
{
    return (TN__(lamb_numbers)){(TN__REAL)c->scale,      (TN__REAL)c->bound,      (TN__REAL)c->add_weight,
                                (TN__REAL)c->lr,         (TN__REAL)c->eps,        (TN__REAL)c->adam.beta1,
                                (TN__REAL)c->adam.rest1, (TN__REAL)c->adam.beta2, (TN__REAL)c->adam.rest2,
                                (TN__REAL)c->adam.first, (TN__REAL)c->adam.root};
}
static inline TN__REAL TN__(step_of)(const TN__(lamb_numbers) * c, TN__REAL m, TN__REAL v, TN__REAL p)
{
    return c->first * m / (TN__M(sqrt)(v) * c->root + c->eps) + c->add * p;
}

/* Updates the moments of an element; adds p² and r² to pp and rr. */
static inline void TN__(moment)(const TN__(lamb_numbers) * c, TN__REAL p, TN__REAL g, TN__REAL *m, TN__REAL *v,
                                double *pp, double *rr)
{
    const TN__REAL x = TN__CUT(c->scale * g, c->bound);
    *m = c->beta1 * *m + c->rest1 * x;
    *v = c->beta2 * *v + c->rest2 * x * x;
    const TN__REAL r = TN__(step_of)(c, *m, *v, p);
    *pp += (double)p * (double)p;
    *rr += (double)r * (double)r;
}

static void TN__(moments)(const tn__segment *s, int64_t at, int64_t n, void *weights, void *gradients,
                          double sum[TN__SUMS])
{
    const TN__(lamb_numbers) c = TN__(numbers_of)(&s->number);
    const TN__REAL *restrict p = weights, *restrict g = gradients;
    TN__REAL *restrict m = (TN__REAL *)s->state[0] + at, *restrict v = (TN__REAL *)s->state[1] + at;
    double  pp[LANES] = {0}, rr[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) TN__(moment)(&c, p[i + k], g[i + k], m + i + k, v + i + k, pp + k, rr + k);
    for (int k = 0; i + k < n; k++) TN__(moment)(&c, p[i + k], g[i + k], m + i + k, v + i + k, pp + k, rr + k);
    sum[0] += tn__lanes_in_order(pp), sum[1] += tn__lanes_in_order(rr);
}

static void TN__(update)(const tn__segment *s, int64_t at, int64_t n, void *weights, void *gradients,
                         double sum[TN__SUMS])
{
    (void)gradients, (void)sum;
    const TN__(lamb_numbers) c = TN__(numbers_of)(&s->number);
    const TN__REAL *restrict m = (const TN__REAL *)s->state[0] + at, *restrict v = (const TN__REAL *)s->state[1] + at;
    TN__REAL *restrict p = weights;
    for (int64_t i = 0; i < n; i++) p[i] -= c.lr * TN__(step_of)(&c, m[i], v[i], p[i]);
}
#endif
