/* lamb.c — Adam's step, made as long as lr times the weights (You and others: Large batch optimization for deep
 * learning, 2020): with m and v as in Adam, at the weight's step t,
 *
 *     r = (m / (1 - beta1^t)) / (√(v / (1 - beta2^t)) + eps) + weight_decay · p
 *     p ← p - lr · (‖p‖ / ‖r‖) · r                     the ratio is 1 where one of the norms is 0
 *
 * Two passes: the first brings m and v up to date and takes the norms, the second computes r again. */
#ifndef TN_REAL
#include "optim/optim_private.h"

enum { LANES = 16 };
#define TN_TEMPLATE "optim/lamb.c"
#include "core/real.h"

static void numbers(const tn_optimizer *o, const tn__weight *w, const double *option, double t, tn__numbers *to)
{
    const double b1 = option[TN_OPT_BETA1], b2 = option[TN_OPT_BETA2];
    (void)o, (void)w;
    to->b1 = b1, to->c1 = 1 - b1;
    to->b2 = b2, to->c2 = 1 - b2;
    to->first = 1 / (1 - pow(b1, t));
    to->root = 1 / sqrt(1 - pow(b2, t));
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
#else /* ============================================================================== one number type */
/* clang-format on */

#define STEP_OF(i) (first * m[i] / (TN_M(sqrt)(v[i]) * root + eps) + add * p[i])
#define MOMENTS(i)                                      \
    do {                                                \
        const TN_REAL x = TN__CUT(scale * g[i], bound); \
        m[i] = b1 * m[i] + c1 * x;                      \
        v[i] = b2 * v[i] + c2 * x * x;                  \
        const TN_REAL r = STEP_OF(i);                   \
        pp[k] += (double)p[i] * (double)p[i];           \
        rr[k] += (double)r * (double)r;                 \
    } while (0)

static void TN_(moments)(const tn__segment *s, int64_t at, int64_t n, void *weights, void *gradients,
                         double sum[TN__SUMS])
{
    const tn__numbers *c = &s->number;
    const TN_REAL      scale = (TN_REAL)c->scale, bound = (TN_REAL)c->bound, add = (TN_REAL)c->add_weight;
    const TN_REAL      first = (TN_REAL)c->first, root = (TN_REAL)c->root, eps = (TN_REAL)c->eps;
    const TN_REAL      b1 = (TN_REAL)c->b1, c1 = (TN_REAL)c->c1, b2 = (TN_REAL)c->b2, c2 = (TN_REAL)c->c2;
    const TN_REAL *restrict p = weights, *restrict g = gradients;
    TN_REAL *restrict m = (TN_REAL *)s->state[0] + at, *restrict v = (TN_REAL *)s->state[1] + at;
    double  pp[LANES] = {0}, rr[LANES] = {0};
    int64_t from = 0;
    for (; from + LANES <= n; from += LANES)
        for (int k = 0; k < LANES; k++) MOMENTS(from + k);
    for (int k = 0; from + k < n; k++) MOMENTS(from + k);
    for (int k = 0; k < LANES; k++) sum[0] += pp[k], sum[1] += rr[k];
}
#undef MOMENTS

static void TN_(update)(const tn__segment *s, int64_t at, int64_t n, void *weights, void *gradients,
                        double sum[TN__SUMS])
{
    (void)gradients, (void)sum;
    const tn__numbers *c = &s->number;
    const TN_REAL      first = (TN_REAL)c->first, root = (TN_REAL)c->root, eps = (TN_REAL)c->eps;
    const TN_REAL      add = (TN_REAL)c->add_weight, lr = (TN_REAL)c->lr;
    const TN_REAL *restrict m = (const TN_REAL *)s->state[0] + at, *restrict v = (const TN_REAL *)s->state[1] + at;
    TN_REAL *restrict p = weights;
    for (int64_t i = 0; i < n; i++) p[i] -= lr * STEP_OF(i);
}
#undef STEP_OF
#endif
