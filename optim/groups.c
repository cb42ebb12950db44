/* groups.c — parameter groups and their options. */
#include "optim/optim_private.h"

const char *const tn__option_names[TN_OPTS] = {
    [TN_OPT_LR] = "lr",
    [TN_OPT_BASE_LR] = "base_lr",
    [TN_OPT_WEIGHT_DECAY] = "weight_decay",
    [TN_OPT_MOMENTUM] = "momentum",
    [TN_OPT_DAMPENING] = "dampening",
    [TN_OPT_BETA1] = "beta1",
    [TN_OPT_BETA2] = "beta2",
    [TN_OPT_EPS] = "eps",
    [TN_OPT_EPS2] = "eps2",
    [TN_OPT_ALPHA] = "alpha",
    [TN_OPT_LR_DECAY] = "lr_decay",
    [TN_OPT_BETA2_DECAY] = "beta2_decay",
    [TN_OPT_D] = "d",
    [TN_OPT_MOMENTUM_DECAY] = "momentum_decay",
};

/* ---- options ----------------------------------------------------------------------------------------------------- */

bool tn__option_check(const char *who, const tn__kind *kind, tn_opt which, double v)
{
    const char *must = NULL;
    switch (which) {
    case TN_OPT_BETA1:
    case TN_OPT_BETA2: must = v >= 0 && v < 1 ? NULL : "be at least 0 and less than 1"; break;
    case TN_OPT_ALPHA: must = v >= 0 && v <= 1 ? NULL : "be from 0 to 1"; break;
    case TN_OPT_BETA2_DECAY: must = v <= 0 && v > -INFINITY ? NULL : "not be positive"; break;
    case TN_OPT_D: must = v >= 1 && v < INFINITY ? NULL : "be at least 1"; break;
    case TN_OPT_DAMPENING: must = isfinite(v) ? NULL : "be finite"; break;
    default: must = v >= 0 && v < INFINITY ? NULL : "not be negative, nor infinite"; break;
    }
    if (which == TN_OPT_EPS && kind->eps_of_type)
        must = isfinite(v) ? NULL : "be finite; below 0 is the machine epsilon of the dtype";
    if (must)
        tn_raise(TN_EINVAL, "%s: %s is %s, but must %s", who, tn__option_names[which], tn__format_number(v), must);
    return !must;
}

static bool option_exists(const char *who, const tn_optimizer *o, int group, int least, tn_opt which)
{
    if (!o) return tn_raise_false(TN_EINVAL, "%s: the optimizer is NULL", who);
    if (group < least || group >= o->groups)
        return tn_raise_false(TN_EINDEX, "%s: group %d does not exist; the optimizer has %d", who, group, o->groups);
    if ((int)which < 0 || which >= TN_OPTS)
        return tn_raise_false(TN_EINVAL, "%s: there is no option %d", who, (int)which);
    if (!tn__has(o, which))
        return tn_raise_false(TN_EUNSUPPORTED, "%s: %s has no %s", who, o->kind->name, tn__option_names[which]);
    return true;
}

double tn_option(const tn_optimizer *o, int group, tn_opt which)
{
    return option_exists("tn_option", o, group, 0, which) ? o->group[group].option[which] : NAN;
}

uint64_t tn_optimizer_sum(const tn_optimizer *o)
{
    if (!o) return 0;
    const double numbers[] = {o->flags,   o->clip.norm, o->clip.largest, o->clip.value, o->clip.error_if_nonfinite,
                              o->initial, o->groups};
    uint64_t     sum = tn__fnv1a(TN__FNV1A, o->kind->name, strlen(o->kind->name));
    sum = tn__fnv1a_f64(sum, (int)(sizeof numbers / sizeof *numbers), numbers);
    for (int g = 0; g < o->groups; g++) sum = tn__fnv1a_f64(sum, TN_OPTS, o->group[g].option);
    return sum;
}

static tn_status set(const char *who, tn_optimizer *o, int group, tn_opt which, double v)
{
    if (tn__blocked()) return tn_error();
    if (!option_exists(who, o, group, -1, which) || !tn__option_check(who, o->kind, which, v)) return tn_error();
    for (int g = group < 0 ? 0 : group; g < (group < 0 ? o->groups : group + 1); g++) {
        double *option = o->group[g].option;
        if (which == TN_OPT_MOMENTUM && o->flags & TN__NESTEROV && v == 0)
            return tn_raise(TN_EINVAL, "%s: momentum is 0, but Nesterov momentum must be positive", who);
        option[which] = v;
    }
    return TN_OK;
}

tn_status tn_set_option(tn_optimizer *o, int group, tn_opt which, double v)
{
    return set("tn_set_option", o, group, which, v);
}

double tn_lr(const tn_optimizer *o, int group)
{
    return option_exists("tn_lr", o, group, 0, TN_OPT_LR) ? o->group[group].option[TN_OPT_LR] : NAN;
}

tn_status tn_set_lr(tn_optimizer *o, int group, double lr)
{
    return set("tn_set_lr", o, group, TN_OPT_LR, lr) == TN_OK ? set("tn_set_lr", o, group, TN_OPT_BASE_LR, lr)
                                                              : tn_error();
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

int64_t tn__weight_find(const tn_optimizer *o, const tn_tensor *t)
{
    for (int64_t i = 0; o && t && i < o->weights; i++)
        if (o->weight[i].t == t) return i;
    return -1;
}

int tn_group_count(const tn_optimizer *o) { return o ? o->groups : 0; }

int tn_group_of(const tn_optimizer *o, const tn_tensor *t)
{
    const int64_t i = tn__weight_find(o, t);
    return i < 0 ? -1 : o->weight[i].group;
}

static bool within(void *module, const tn_tensor *t)
{
    for (tn_each p = tn_module_each(module, TN_EACH_PARAMETER); tn_next(&p);)
        if (p.tensor == t) return true;
    return false;
}

static bool matches(const tn_group_config *c, const tn__weight *w)
{
    return (!c->vectors || tn_ndim(w->t) < 2) && (!c->match || c->match(w->name, w->t, c->user)) &&
           (!c->module || within(c->module, w->t));
}

static bool check(const char *who, const tn_group_config *c)
{
    const tn_optimizer *o = c->optimizer;
    if (!o) return tn_raise_false(TN_EINVAL, "%s: the optimizer is NULL", who);
    if (o->schedules)
        return tn_raise_false(TN_ESTATE, "%s: the optimizer already has a schedule; create groups before schedules",
                              who);
    if (c->weight_decay != -1 && !tn__option_check(who, o->kind, TN_OPT_WEIGHT_DECAY, c->weight_decay)) return false;
    return c->lr == -1 || tn__option_check(who, o->kind, TN_OPT_LR, c->lr);
}

/* The change to a group: number of its parameters, number of those that match, and their new group. */
typedef struct {
    int64_t count, take;
    int     now;
} change;

/* Finds the matching parameters, allocates the new groups, then changes the options, which cannot fail. Returns the
 * group of the first match, or -1. */
static int split(const tn_group_config *c, change *f, bool *taken)
{
    tn_optimizer *o = c->optimizer;
    const int     groups = o->groups;
    int           all = groups, first = -1;
    for (int64_t i = 0; i < o->weights; i++) {
        taken[i] = matches(c, o->weight + i);
        f[o->weight[i].group].count++, f[o->weight[i].group].take += taken[i];
    }
    for (int g = 0; g < groups; g++) f[g].now = f[g].take && f[g].take < f[g].count ? all++ : g;
    if (tn_error() != TN_OK) return -1;
    if (all > groups) {
        tn__group *group = tn_mem_get((size_t)all * sizeof *group);
        if (!group) return -1;
        memcpy(group, o->group, (size_t)groups * sizeof *group);
        tn_mem_put(o->group, (size_t)groups * sizeof *group);
        o->group = group, o->groups = all;
    }
    for (int g = 0; g < groups; g++) {
        if (!f[g].take) continue;
        double *option = o->group[f[g].now].option;
        if (f[g].now != g) memcpy(option, o->group[g].option, sizeof o->group[g].option);
        if (c->lr != -1) option[TN_OPT_LR] = option[TN_OPT_BASE_LR] = c->lr;
        if (c->weight_decay != -1) option[TN_OPT_WEIGHT_DECAY] = c->weight_decay;
    }
    for (int64_t i = 0; i < o->weights; i++) {
        if (!taken[i]) continue;
        o->weight[i].group = f[o->weight[i].group].now;
        if (first < 0) first = o->weight[i].group;
    }
    return first;
}

static int regroup(const tn_group_config *c)
{
    const size_t weights = (size_t)c->optimizer->weights * sizeof(bool),
                 changes = (size_t)c->optimizer->groups * sizeof(change);
    bool     *taken = tn_mem_get(weights);
    change   *f = taken ? tn_mem_get(changes) : NULL;
    const int first = f ? split(c, f, taken) : -1;
    tn_mem_put(f, changes);
    tn_mem_put(taken, weights);
    return first;
}

int tn_group_create(tn_group_config c)
{
    static const char who[] = "tn_group_new";
    if (tn__blocked() || !check(who, &c)) return -1;
    if (!c.module && !c.vectors && !c.match)
        return tn_raise(TN_EINVAL, "%s: set .module, .vectors or .match to select parameters", who), -1;
    const int first = regroup(&c);
    if (first < 0 && tn_error() == TN_OK) tn_raise(TN_EINVAL, "%s: no parameter of the optimizer matches", who);
    return first;
}

tn_status tn_no_decay(tn_optimizer *o)
{
    const tn_group_config c = {.optimizer = o, .vectors = true, .lr = -1, .weight_decay = 0};
    if (!tn__blocked() && check("tn_no_decay", &c)) regroup(&c);
    return tn_error();
}
