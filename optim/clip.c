/* clip.c — clips the gradients of a module in place, as in torch.nn.utils. */
#ifndef TN__REAL
#include "optim/norm.h"

#define TN__TEMPLATE "optim/clip.c"
#include "core/real.h"

static const char who[] = "tn_clip_grads";

/* Lists all gradients in the sweep. They may be written in place, since they are not leaves themselves. */
static void gather(void *module, tn__sweep *w)
{
    for (tn_each p = tn_module_each(module, TN_EACH_PARAMETER); tn_next(&p) && w->count < w->most;) {
        tn_tensor *g = tn__gradient(p.tensor);
        if (!g || !tn_numel(g)) continue;
        void *data = tn_data_mut(g);
        if (data) tn__sweep_add(w, tn_dtype_of(g), tn_numel(g), NULL, data);
    }
}

static const char *name_of(void *module, int64_t index, tn_each *p)
{
    for (*p = tn_module_each(module, TN_EACH_PARAMETER); tn_next(p);)
        if (tn__gradient(p->tensor) && tn_numel(tn__gradient(p->tensor)) && !index--) return p->name;
    return "?";
}

static double clip(const tn_clip_grads_args *c, tn__sweep *w)
{
    int64_t      bad = -1;
    const double norm = tn__sweep_norm(w, 1, c->clip.largest, false, c->clip.error_if_nonfinite ? &bad : NULL);
    double       scale = 1;
    if (bad >= 0) {
        tn_each p;
        tn_raise(TN_ENUMERIC, "%s: the gradient of '%s' %s; nothing was changed", who, name_of(c->module, bad, &p),
                 tn__sweep_problem(&w->segment[bad]));
        return NAN;
    }
    if (c->clip.norm > 0 && c->clip.norm < INFINITY) scale = c->clip.norm / (norm + 1e-6);
    if (scale > 1) scale = 1;
    for (int64_t i = 0; i < w->count; i++) {
        w->segment[i].number.scale = scale;
        w->segment[i].number.bound = c->clip.value > 0 ? c->clip.value : INFINITY;
    }
    tn__sweep_run(w, TN__PASS(cut, TN__WRITES_G));
    return norm;
}

double tn_clip_grads_run(tn_clip_grads_args c)
{
    int64_t   segments = 0, elements = 0;
    tn__sweep w;
    double    norm = NAN;
    if (tn__blocked()) return NAN;
    if (!c.module) return tn_raise(TN_EINVAL, "%s: the module is NULL", who), NAN;
    if (!tn__clip_check(who, &c.clip)) return NAN;
    if (c.clip.norm == 0 && c.clip.value == 0)
        return tn_raise(TN_EINVAL, "%s: set .clip.norm or .clip.value", who), NAN;
    for (tn_each p = tn_module_each(c.module, TN_EACH_PARAMETER); tn_next(&p);) {
        if (!tn__gradient(p.tensor)) continue;
        if (!tn_is_contiguous(tn__gradient(p.tensor)))
            return tn_raise(TN_ESTATE, "%s: the gradient of '%s' is not contiguous", who, p.name), NAN;
        segments++, elements += tn_numel(tn__gradient(p.tensor));
    }
    if (tn_error() != TN_OK || !segments) return tn_error() == TN_OK ? 0 : NAN;
    if (!tn__sweep_init(&w, segments, elements)) return NAN;
    const tn_scope s = tn_no_grad_begin();
    gather(c.module, &w);
    if (tn_error() == TN_OK) norm = clip(&c, &w);
    tn_scope_end(s);
    tn__sweep_free(&w);
    return norm;
}

/* clang-format off */
#else /* ==================================================================================== per dtype */
/* clang-format on */

static void TN__(cut)(const tn__segment *s, int64_t at, int64_t n, void *weights, void *gradients, double sum[TN__SUMS])
{
    (void)at, (void)weights, (void)sum;
    const TN__REAL scale = (TN__REAL)s->number.scale, bound = (TN__REAL)s->number.bound;
    TN__REAL *restrict g = gradients;
    for (int64_t i = 0; i < n; i++) g[i] = TN__CUT(scale * g[i], bound);
}
#endif
