/* optimizer.c — creating and freeing an optimizer, and its parameters and state. */
#include "optim/norm.h"

/* ---- state ------------------------------------------------------------------------------------------------------- */

tn_tensor *tn__state_make(const tn_optimizer *o, const tn__weight *w, tn_shape s)
{
    if (w->to - w->from < w->n) s = TN_SHAPE(w->to - w->from);
    tn_tensor *t = tn_full_of(w->dtype == TN_F64 ? TN_F64 : TN_F32, s, o->initial);
    return t ? tn_take(t) : NULL;
}

bool tn__state_same(const tn_optimizer *o, const tn__weight *w, tn_shape *s)
{
    (void)o;
    *s = w->shape;
    return true;
}

enum { HANDLE = 512 }; /* bytes, at least those of a tensor's handle and storage */

size_t tn_optimizer_missing(const tn_optimizer *o)
{
    size_t   bytes = 0;
    tn_shape shape;
    for (int64_t i = 0; o && i < o->weights; i++) {
        const tn__weight *w = o->weight + i;
        for (int k = 0; k < TN__STATES && tn_needs_grad(w->t); k++) {
            if (w->state[k] || !o->kind->state[k].name || !o->kind->state[k].shape(o, w, &shape)) continue;
            const int64_t part = w->to - w->from, n = part < w->n ? part : tn_shape_numel(shape);
            bytes += (size_t)n * (w->dtype == TN_F64 ? 8 : 4) + HANDLE;
        }
    }
    return bytes;
}

/* ---- creating and freeing ---------------------------------------------------------------------------------------- */

static bool take_weights(tn_optimizer *o, void *module)
{
    int64_t n = 0, all = 0;
    for (tn_each p = tn_module_each(module, TN_EACH_PARAMETER); tn_next(&p);) n++;
    if (tn_error() != TN_OK) return false;
    if (!n) return tn_raise_false(TN_EINVAL, "%s: the module has no parameters", o->kind->call);
    if (!(o->weight = tn_mem_get((size_t)n * sizeof *o->weight))) return false;
    o->weights = n;
    n = 0;
    for (tn_each p = tn_module_each(module, TN_EACH_PARAMETER); tn_next(&p) && n < o->weights; n++) {
        tn__weight *w = o->weight + n;
        if (!(w->name = tn__strdup(p.name))) return false;
        tn_mark_trained(p.tensor);
        w->t = tn_keep(p.tensor), w->n = w->to = tn_numel(p.tensor);
        w->dtype = tn_dtype_of(p.tensor), w->shape = tn_shape_of(p.tensor);
        all += w->n;
    }
    return tn_error() == TN_OK && tn__sweep_init(&o->sweep, o->weights, all);
}

tn_optimizer *tn__optimizer_make(const tn__kind *kind, void *module, unsigned flags, const double option[TN_OPTS],
                                 const tn_clip *clip)
{
    if (tn__blocked()) return NULL;
    if (!module)
        return tn_raise_null(TN_EINVAL, "%s: the module is NULL: its constructor failed and the error was cleared",
                             kind->call);
    for (int i = 0; i < TN_OPTS; i++)
        if (kind->options >> i & 1 && !tn__option_check(kind->call, kind, (tn_opt)i, option[i])) return NULL;
    if (!tn__clip_check(kind->call, clip)) return NULL;
    tn_optimizer *o = tn_mem_get(sizeof *o);
    if (!o) return NULL;
    o->kind = kind, o->flags = flags, o->clip = *clip, o->accumulate = 1, o->norm = NAN;
    if (!take_weights(o, module) || !(o->group = tn_mem_get(sizeof *o->group))) return tn_optimizer_free(o), NULL;
    memcpy(o->group->option, option, sizeof o->group->option);
    o->group->option[TN_OPT_BASE_LR] = option[TN_OPT_LR];
    o->groups = 1;
    return o;
}

void tn_optimizer_free(tn_optimizer *o)
{
    if (!o) return;
    while (o->schedules) tn_schedule_free(o->schedules);
    for (int64_t i = 0; i < o->weights; i++) {
        tn__weight *w = o->weight + i;
        for (int k = 0; k < TN__STATES; k++) tn_drop(w->state[k]);
        tn_drop(w->dense);
        tn_drop(w->t);
        tn__strfree(w->name);
    }
    tn__sweep_free(&o->sweep);
    tn_mem_put(o->weight, (size_t)o->weights * sizeof *o->weight);
    tn_mem_put(o->group, (size_t)o->groups * sizeof *o->group);
    tn_mem_put(o, sizeof *o);
}

/* ---- readers ----------------------------------------------------------------------------------------------------- */

const char *tn_optimizer_name(const tn_optimizer *o) { return o ? o->kind->name : ""; }
int64_t     tn_steps(const tn_optimizer *o) { return o ? o->steps : 0; }
double      tn_grad_norm(const tn_optimizer *o) { return o ? o->norm : NAN; }

tn_tensor *tn_optimizer_state(const tn_optimizer *o, const tn_tensor *t, const char *name)
{
    const int64_t i = tn__weight_find(o, t);
    for (int k = 0; i >= 0 && name && k < TN__STATES; k++)
        if (o->kind->state[k].name && !strcmp(o->kind->state[k].name, name)) return o->weight[i].state[k];
    return NULL;
}
