/* adagrad.c — Adagrad, as in torch.optim: at update t of a weight, with g = gradient + weight_decay · p,
 *
 *     sum ← sum + g²
 *     p ← p - lr / (1 + (t - 1) · lr_decay) · g / (√sum + eps) */
#ifndef TN__REAL
#include "optim/optim_private.h"

#define TN__TEMPLATE "optim/adagrad.c"
#include "core/real.h"

static void numbers(const tn_optimizer *o, const tn__weight *w, const double *option, double t, tn__numbers *to)
{
    (void)o, (void)w;
    to->lr = option[TN_OPT_LR] / (1 + (t - 1) * option[TN_OPT_LR_DECAY]);
    to->add_weight = option[TN_OPT_WEIGHT_DECAY];
    to->eps = option[TN_OPT_EPS];
}

/* Without weight decay, a gradient of zero changes nothing. */
static bool by_rows(const tn_optimizer *o, const double *option) { return (void)o, option[TN_OPT_WEIGHT_DECAY] == 0; }

static void run(tn_optimizer *o) { tn__sweep_run(&o->sweep, TN__PASS(adagrad, TN__WRITES_P)); }

static const tn__kind adagrad = {
    .name = "Adagrad",
    .call = "tn_adagrad_new",
    .options =
        1u << TN_OPT_LR | 1u << TN_OPT_BASE_LR | 1u << TN_OPT_WEIGHT_DECAY | 1u << TN_OPT_LR_DECAY | 1u << TN_OPT_EPS,
    .squares = true,
    .by_element = true,
    .state = {{"sum", tn__state_same}},
    .by_rows = by_rows,
    .numbers = numbers,
    .run = run,
};

tn_optimizer *tn_adagrad_create(tn_adagrad_config c)
{
    const double option[TN_OPTS] = {[TN_OPT_LR] = c.lr,
                                    [TN_OPT_WEIGHT_DECAY] = c.weight_decay,
                                    [TN_OPT_LR_DECAY] = c.lr_decay,
                                    [TN_OPT_EPS] = c.eps};
    const double initial = c.initial;
    if (tn__blocked()) return NULL;
    if (!(initial >= 0 && initial < INFINITY))
        return tn_raise_null(TN_EINVAL, "tn_adagrad_new: .initial is %s, but must not be negative, nor infinite",
                             tn__format_number(initial));
    tn_optimizer *o = tn__optimizer_make(&adagrad, c.module, c.maximize ? TN__MAXIMIZE : 0u, option, &c.clip);
    if (o) o->initial = initial;
    return o;
}

/* clang-format off */
#else /* ==================================================================================== per dtype */
/* clang-format on */

static void TN__(adagrad)(const tn__segment *s, int64_t at, int64_t n, void *weights, void *gradients,
                          double sum[TN__SUMS])
{
    (void)sum;
    const tn__numbers *c = &s->number;
    const TN__REAL     scale = (TN__REAL)c->scale, bound = (TN__REAL)c->bound, add = (TN__REAL)c->add_weight;
    const TN__REAL     lr = (TN__REAL)c->lr, eps = (TN__REAL)c->eps;
    TN__REAL *restrict p = weights, *restrict squares = (TN__REAL *)s->state[0] + at;
    const TN__REAL *restrict g = gradients;
    for (int64_t i = 0; i < n; i++) {
        const TN__REAL x = TN__CUT(scale * g[i], bound) + add * p[i];
        squares[i] += x * x;
        p[i] -= lr * x / (TN__M(sqrt)(squares[i]) + eps);
    }
}
#endif
