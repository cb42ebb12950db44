/* ema.c — exponential moving averages of the weights: average += (1 - decay) · (weight - average); or plain means, with
 * 1 - decay = 1 / n at update n, and 1 before tn_ema_start. */
#ifndef TN__REAL
#include "optim/ema.h"

#define TN__TEMPLATE "optim/ema.c"
#include "core/real.h"

tn_ema *tn_ema_create(tn_ema_config c)
{
    static const char who[] = "tn_ema_new";
    const double      decay = c.decay;
    int64_t           n = 0, all = 0;
    if (tn__blocked()) return NULL;
    if (!c.module)
        return tn_raise_null(TN_EINVAL, "%s: the module is NULL: its constructor failed and the error was cleared",
                             who);
    if (!(decay >= 0 && decay <= 1))
        return tn_raise_null(TN_EINVAL, "%s: .decay is %s, but must be from 0 to 1", who, tn__format_number(decay));
    if (c.mean && (c.warmup || decay != (tn_ema_config){TN_EMA_DEFAULTS}.decay))
        return tn_raise_null(TN_EINVAL, "%s: .mean is a plain mean, which excludes .decay and .warmup", who);
    for (tn_each p = tn_module_each(c.module, TN_EACH_PARAMETER); tn_next(&p);) n++, all += tn_numel(p.tensor);
    if (tn_error() != TN_OK) return NULL;
    if (!n) return tn_raise_null(TN_EINVAL, "%s: the module has no parameters", who);
    tn_ema *e = tn_mem_get(sizeof *e);
    if (!e) return NULL;
    e->decay = decay, e->warmup = c.warmup, e->mean = c.mean;
    const tn_scope s = tn_no_grad_begin();
    if ((e->item = tn_mem_get((size_t)n * sizeof *e->item))) e->items = n;
    if (e->item && tn__sweep_init(&e->sweep, n, all)) {
        n = 0;
        for (tn_each p = tn_module_each(c.module, TN_EACH_PARAMETER); tn_next(&p) && n < e->items; n++) {
            tn__average *a = e->item + n;
            const bool   narrow = tn_dtype_of(p.tensor) == TN_BF16;
            a->name = tn__strdup(p.name);
            a->t = tn_keep(p.tensor);
            a->average = tn_take(tn_empty_of(narrow ? TN_F32 : tn_dtype_of(p.tensor), tn_shape_of(p.tensor)));
            a->dense = narrow || !tn_is_contiguous(p.tensor) ? tn_take(tn_empty_like(p.tensor)) : NULL;
            if (tn_error() != TN_OK) break;
            tn_copy_from(a->average, p.tensor);
        }
    }
    tn_scope_end(s);
    if (tn_error() != TN_OK) return tn_ema_free(e), NULL;
    return e;
}

void tn_ema_free(tn_ema *e)
{
    if (!e) return;
    for (int64_t i = 0; i < e->items; i++) {
        tn_drop(e->item[i].average);
        tn_drop(e->item[i].dense);
        tn_drop(e->item[i].t);
        tn__strfree(e->item[i].name);
    }
    tn__sweep_free(&e->sweep);
    tn_mem_put(e->item, (size_t)e->items * sizeof *e->item);
    tn_mem_put(e, sizeof *e);
}

/* Lists all weights with their averages in the sweep; a bf16 or strided weight takes part as `aside`, a contiguous
 * copy. / */
static bool gather(const char *who, tn_ema *e, bool writes)
{
    tn__sweep_clear(&e->sweep);
    for (int64_t i = 0; i < e->items; i++) {
        tn__average   *a = e->item + i;
        const tn_dtype dt = tn_dtype_of(a->t), kept = tn_dtype_of(a->average);
        if (!tn_shape_equal(tn_shape_of(a->t), tn_shape_of(a->average)) || (dt == TN_BF16 ? TN_F32 : dt) != kept ||
            (!a->dense && !tn_is_contiguous(a->t)) || (a->dense && tn_dtype_of(a->dense) != dt))
            return tn_raise_false(TN_ESTATE, "%s: the shape or dtype of '%s' has changed since tn_ema_new", who,
                                  a->name);
        if (a->dense && writes && !tn_data_mut(a->t)) return false;
    }
    for (int64_t i = 0; i < e->items; i++) {
        tn__average *a = e->item + i;
        if (!tn_numel(a->t)) continue;
        if (a->dense && !e->swapped) (void)tn_copy_from(a->dense, a->t);
        if (a->dense && writes) continue;
        tn_tensor *p = a->dense ? a->dense : a->t;
        /* only a pass that writes may increment the weight's version */
        tn__segment *s = tn__sweep_add(&e->sweep, tn_dtype_of(p), tn_numel(p),
                                       writes ? tn_data_mut(p) : (void *)(uintptr_t)tn_data(p), NULL);
        s->state[0] = tn_data_mut(a->average);
    }
    return true;
}

tn_status tn_ema_update(tn_ema *e)
{
    static const char who[] = "tn_ema_update";
    if (tn__blocked()) return tn_error();
    if (!e) return tn_raise(TN_EINVAL, "%s: the averages are NULL", who);
    if (e->swapped)
        return tn_raise(TN_ESTATE, "%s: the averages are swapped with the weights; call tn_ema_swap first", who);
    const double most = (1 + (double)e->updates) / (10 + (double)e->updates);
    double       decay = e->warmup && most < e->decay ? most : e->decay;
    if (e->mean) decay = e->updates ? 1 - 1 / (double)e->updates : 0;
    const tn_scope s = tn_no_grad_begin();
    if (gather(who, e, false)) {
        for (int64_t i = 0; i < e->sweep.count; i++) e->sweep.segment[i].number.ema_rest = 1 - decay;
        tn__sweep_run(&e->sweep, TN__PASS(blend, TN__READS));
        e->updates += !e->mean || e->updates;
    }
    tn_scope_end(s);
    return tn_error();
}

tn_status tn_ema_start(tn_ema *e)
{
    if (tn__blocked()) return tn_error();
    if (!e || !e->mean)
        return tn_raise(TN_EINVAL, "tn_ema_start: %s", e ? "these averages have no .mean" : "the averages are NULL");
    e->updates = 1;
    return TN_OK;
}
bool tn_ema_started(const tn_ema *e) { return e && (!e->mean || e->updates); }

/* Contiguous f32 and f64 weights are exchanged with their averages. Other weights are copied to `aside` and back, since
 * bf16 cannot represent the average. */
tn_status tn_ema_swap(tn_ema *e)
{
    static const char who[] = "tn_ema_swap";
    if (tn__blocked()) return tn_error();
    if (!e) return tn_raise(TN_EINVAL, "%s: the averages are NULL", who);
    const tn_scope s = tn_no_grad_begin();
    if (gather(who, e, true)) {
        tn__sweep_run(&e->sweep, TN__PASS(swap, TN__WRITES_P));
        for (int64_t i = 0; i < e->items; i++)
            if (e->item[i].dense) (void)tn_copy_from(e->item[i].t, e->swapped ? e->item[i].dense : e->item[i].average);
        e->swapped = !e->swapped;
    }
    tn_scope_end(s);
    return tn_error();
}

bool tn_ema_swapped(const tn_ema *e) { return e && e->swapped; }

bool tn_ema_has(const tn_ema *e, const tn_tensor *t)
{
    for (int64_t i = 0; e && t && i < e->items; i++)
        if (e->item[i].t == t) return true;
    return false;
}

/* clang-format off */
#else /* ==================================================================================== per dtype */
/* clang-format on */

static void TN__(blend)(const tn__segment *s, int64_t at, int64_t n, void *weights, void *gradients,
                        double sum[TN__SUMS])
{
    (void)gradients, (void)sum;
    const TN__REAL c = (TN__REAL)s->number.ema_rest;
    const TN__REAL *restrict p = weights;
    TN__REAL *restrict average = (TN__REAL *)s->state[0] + at;
    if (c == 1) { /* the formula would round, and turn an old Inf into a NaN */
        memcpy(average, p, (size_t)n * sizeof *p);
        return;
    }
    for (int64_t i = 0; i < n; i++) average[i] += c * (p[i] - average[i]);
}

static void TN__(swap)(const tn__segment *s, int64_t at, int64_t n, void *weights, void *gradients,
                       double sum[TN__SUMS])
{
    (void)gradients, (void)sum;
    TN__REAL *restrict p = weights, *restrict average = (TN__REAL *)s->state[0] + at;
    for (int64_t i = 0; i < n; i++) {
        const TN__REAL x = p[i];
        p[i] = average[i], average[i] = x;
    }
}
#endif
