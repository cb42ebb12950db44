/* norm.c — the norm of gradients, which clipping needs, and the check that they are finite. */
#ifndef TN__REAL
#include "optim/norm.h"

enum { LANES = TN__SUM_LANES };

#define TN__TEMPLATE "optim/norm.c"
#include "core/real.h"

/* The sum of squares of all gradients times unit, or their largest magnitude. */
static double sums(tn__sweep *w, double unit, bool by_largest)
{
    double all = 0;
    for (int64_t s = 0; s < w->count; s++) w->segment[s].number.scale = unit;
    tn__sweep_run(w, by_largest ? TN__PASS(largest, TN__LARGEST) : TN__PASS(squares, TN__READS));
    for (int64_t s = 0; s < w->count; s++)
        all = by_largest ? tn__larger(all, w->segment[s].sum[0]) : all + w->segment[s].sum[0];
    return all;
}

double tn__sweep_norm(tn__sweep *w, double scale, bool by_largest, bool squared, int64_t *bad)
{
    double unit = 1, all = sums(w, unit, by_largest);
    bool   f64 = false;
    for (int64_t s = 0; s < w->count; s++) f64 |= w->segment[s].dtype == TN_F64;
    if (!by_largest && f64 && isinf(all))
        unit = 0x1p-600, all = sums(w, unit, false); /* the sum of squares overflowed */
    if (bad) *bad = -1;
    for (int64_t s = 0; bad && s < w->count && *bad < 0; s++) {
        const tn__segment *segment = w->segment + s;
        const double       own = (by_largest ? segment->sum[0] : sqrt(segment->sum[0])) / unit * fabs(scale);
        if (!isfinite(own) || (squared && own > (segment->dtype == TN_F64 ? 1.3407807e154 : 1.8446742e19))) *bad = s;
    }
    return (by_largest ? all : sqrt(all)) / unit * fabs(scale);
}

const char *tn__sweep_problem(const tn__segment *bad)
{
    if (!isfinite(bad->sum[0])) return "has a NaN or Inf";
    return bad->dtype == TN_F64 ? "is too large: its square overflows f64" : "is too large: its square overflows f32";
}

bool tn__clip_check(const char *who, const tn_clip *c)
{
    if (!(c->norm >= 0) || !(c->value >= 0)) {
        const bool norm = !(c->norm >= 0);
        return tn_raise_false(TN_EINVAL, "%s: .clip.%s is %s, but must not be negative; 0 disables clipping", who,
                              norm ? "norm" : "value", tn__format_number(norm ? c->norm : c->value));
    }
    if (c->largest && !(c->norm > 0))
        return tn_raise_false(TN_EINVAL, "%s: .clip.largest is set but has no effect because .clip.norm is 0", who);
    if (c->norm > 0 && c->value > 0)
        return tn_raise_false(TN_EINVAL, "%s: .clip.norm and .clip.value are both set; choose one", who);
    return true;
}

bool tn__step_scale(tn_optimizer *o, double *scale, double *norm)
{
    const tn_clip *c = &o->clip;
    int64_t        bad = -1;
    *scale = 1 / (double)o->accumulate;
    *norm = NAN;
    if (!(c->norm > 0) && !c->error_if_nonfinite) return true;
    *norm = tn__sweep_norm(&o->sweep, *scale, c->largest, o->kind->squares, c->error_if_nonfinite ? &bad : NULL);
    if (bad >= 0) {
        const tn__segment *s = o->sweep.segment + bad;
        return tn_raise_false(
            TN_ENUMERIC,
            "tn_step: the gradient of '%s' %s; nothing was changed; to continue, call tn_clear_error and "
            "tn_zero_grads",
            o->weight[s->index].name, tn__sweep_problem(s));
    }
    if (c->norm > 0 && c->norm < INFINITY) { /* NaN and Inf propagate, as in PyTorch */
        const double k = c->norm / (*norm + 1e-6);
        *scale *= k < 1 || k != k ? k : 1;
    }
    return true;
}

/* clang-format off */
#else /* ==================================================================================== per dtype */
/* clang-format on */

/* Sums in lanes, so that compilers can use vectors and the order is fixed. */
static void TN__(squares)(const tn__segment *s, int64_t at, int64_t n, void *p, void *g, double sum[TN__SUMS])
{
    (void)at, (void)p;
    const TN__REAL *restrict x = g;
    const double unit = s->number.scale;
    double       lane[LANES] = {0};
    int64_t      i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) lane[k] += unit * (double)x[i + k] * (unit * (double)x[i + k]);
    for (int k = 0; i + k < n; k++) lane[k] += unit * (double)x[i + k] * (unit * (double)x[i + k]);
    sum[0] += tn__lanes_in_order(lane);
}

static void TN__(largest)(const tn__segment *s, int64_t at, int64_t n, void *p, void *g, double sum[TN__SUMS])
{
    (void)s, (void)at, (void)p;
    const TN__REAL *restrict x = g;
    for (int64_t i = 0; i < n; i++) sum[0] = tn__larger(sum[0], fabs((double)x[i]));
}
#endif
