/* adam.c — Adam and AdamW, as in torch.optim: at update t of a weight, with gradient g,
 *
 *     Adam:  g ← g + weight_decay · p                  AdamW:  p ← p · (1 - lr · weight_decay)
 *     m ← beta1 · m + (1 - beta1) · g
 *     v ← beta2 · v + (1 - beta2) · g²                 AMSGrad:  v in the next line is the largest v so far
 *     p ← p - lr / (1 - beta1^t) · m / (√v / √(1 - beta2^t) + eps)
 *
 * One pass over p, g, m and v, which also multiplies g by the clipping factor. */
#ifndef TN__REAL
#include "optim/optim_private.h"

#define TN__TEMPLATE "optim/adam.c"
#include "core/real.h"

static bool has_largest(const tn_optimizer *o, const tn__weight *w, tn_shape *s)
{
    return tn__state_same(o, w, s) && o->flags & TN__AMSGRAD;
}

static void moments(const double *option, double t, tn__numbers *to)
{
    const double b1 = option[TN_OPT_BETA1], b2 = option[TN_OPT_BETA2];
    to->adam = (tn__adam_numbers){.beta1 = b1, .rest1 = 1 - b1, .beta2 = b2, .rest2 = 1 - b2};
    to->adam.root = 1 / sqrt(1 - tn__libm_pow(b2, t));
    to->lr = option[TN_OPT_LR] / (1 - tn__libm_pow(b1, t));
    to->eps = option[TN_OPT_EPS];
}

static void adam_numbers(const tn_optimizer *o, const tn__weight *w, const double *option, double t, tn__numbers *to)
{
    (void)o, (void)w;
    moments(option, t, to);
    to->add_weight = option[TN_OPT_WEIGHT_DECAY];
}

static void adamw_numbers(const tn_optimizer *o, const tn__weight *w, const double *option, double t, tn__numbers *to)
{
    (void)o, (void)w;
    moments(option, t, to);
    to->keep = 1 - option[TN_OPT_LR] * option[TN_OPT_WEIGHT_DECAY];
}

static bool by_rows(const tn_optimizer *o, const double *option) { return (void)option, o->flags & TN__LAZY; }

static void run(tn_optimizer *o)
{
    tn__sweep_run(&o->sweep, o->flags & TN__AMSGRAD ? TN__PASS(amsgrad, TN__WRITES_P) : TN__PASS(adam, TN__WRITES_P));
}

enum {
    OPTIONS = 1u << TN_OPT_LR | 1u << TN_OPT_BASE_LR | 1u << TN_OPT_WEIGHT_DECAY | 1u << TN_OPT_BETA1 |
              1u << TN_OPT_BETA2 | 1u << TN_OPT_EPS
};
#define STATES                                                                                         \
    {                                                                                                  \
        {"exp_avg", tn__state_same}, {"exp_avg_sq", tn__state_same}, { "max_exp_avg_sq", has_largest } \
    }

static const tn__kind adam = {
    .name = "Adam",
    .call = "tn_adam_new",
    .options = OPTIONS,
    .squares = true,
    .by_element = true,
    .state = STATES,
    .by_rows = by_rows,
    .numbers = adam_numbers,
    .run = run,
};
static const tn__kind adamw = {
    .name = "AdamW",
    .call = "tn_adamw_new",
    .options = OPTIONS,
    .squares = true,
    .by_element = true,
    .state = STATES,
    .by_rows = by_rows,
    .numbers = adamw_numbers,
    .run = run,
};

static tn_optimizer *make(const tn__kind *kind, const tn_adam_config *c)
{
    const double   option[TN_OPTS] = {[TN_OPT_LR] = c->lr,
                                      [TN_OPT_WEIGHT_DECAY] = c->weight_decay,
                                      [TN_OPT_BETA1] = c->beta1,
                                      [TN_OPT_BETA2] = c->beta2,
                                      [TN_OPT_EPS] = c->eps};
    const unsigned flags =
        (c->amsgrad ? TN__AMSGRAD : 0u) | (c->maximize ? TN__MAXIMIZE : 0u) | (c->lazy ? TN__LAZY : 0u);
    return tn__optimizer_make(kind, c->module, flags, option, &c->clip);
}

tn_optimizer *tn_adam_create(tn_adam_config c) { return make(&adam, &c); }
tn_optimizer *tn_adamw_create(tn_adamw_config c)
{
    return make(&adamw, &(tn_adam_config){.module = c.module,
                                          .lr = c.lr,
                                          .beta1 = c.beta1,
                                          .beta2 = c.beta2,
                                          .eps = c.eps,
                                          .weight_decay = c.weight_decay,
                                          .amsgrad = c.amsgrad,
                                          .maximize = c.maximize,
                                          .lazy = c.lazy,
                                          .clip = c.clip});
}

/* clang-format off */
#else /* ==================================================================================== per dtype */
/* clang-format on */

typedef struct {
    TN__REAL scale, bound, add, keep, lr, eps, beta1, rest1, beta2, rest2, root;
} TN__(adam_numbers);

static inline TN__(adam_numbers) TN__(numbers_of)(const tn__numbers *c)
{
    return (TN__(adam_numbers)){(TN__REAL)c->scale,      (TN__REAL)c->bound,      (TN__REAL)c->add_weight,
                                (TN__REAL)c->keep,       (TN__REAL)c->lr,         (TN__REAL)c->eps,
                                (TN__REAL)c->adam.beta1, (TN__REAL)c->adam.rest1, (TN__REAL)c->adam.beta2,
                                (TN__REAL)c->adam.rest2, (TN__REAL)c->adam.root};
}

/* Inlined once for Adam and once for AMSGrad. */
static inline __attribute__((always_inline)) void TN__(adam_loop)(const bool amsgrad, const tn__segment *s, int64_t at,
                                                                  int64_t n, void *weights, void *gradients)
{
    const TN__(adam_numbers) c = TN__(numbers_of)(&s->number);
    TN__REAL *restrict p = weights, *restrict m = (TN__REAL *)s->state[0] + at,
                       *restrict v = (TN__REAL *)s->state[1] + at;
    TN__REAL *restrict most = amsgrad ? (TN__REAL *)s->state[2] + at : NULL;
    const TN__REAL *restrict g = gradients;
    for (int64_t i = 0; i < n; i++) {
        const TN__REAL x = TN__CUT(c.scale * g[i], c.bound) + c.add * p[i];
        m[i] = c.beta1 * m[i] + c.rest1 * x;
        v[i] = c.beta2 * v[i] + c.rest2 * x * x;
        if (amsgrad) most[i] = most[i] >= v[i] ? most[i] : v[i];
        p[i] = c.keep * p[i] - c.lr * m[i] / (TN__M(sqrt)(amsgrad ? most[i] : v[i]) * c.root + c.eps);
    }
}

static void TN__(adam)(const tn__segment *s, int64_t at, int64_t n, void *p, void *g, double sum[TN__SUMS])
{
    (void)sum;
    TN__(adam_loop)(false, s, at, n, p, g);
}

static void TN__(amsgrad)(const tn__segment *s, int64_t at, int64_t n, void *p, void *g, double sum[TN__SUMS])
{
    (void)sum;
    TN__(adam_loop)(true, s, at, n, p, g);
}
#endif
