/* schedule.c — creating, freeing and running schedules. Their formulas are in lr_functions.c, chained.c and plateau.c.
 */
#include "optim/schedule_private.h"

/* ---- creating and freeing ---------------------------------------------------------------------------------------- */

bool tn__schedule_check(const char *name, const char *what, bool good, double v, const char *must)
{
    if (good) return true;
    return tn_raise_false(TN_EINVAL, "tn_%s_lr_new: .%s is %s, but must %s", name, what, tn__format_number(v), must);
}

static size_t value_bytes(const tn_schedule *s) { return (size_t)s->owner->groups * sizeof *s->value; }

static void unlink_and_free(tn_schedule *s)
{
    tn_schedule **at = &s->owner->schedules;
    while (*at && *at != s) at = &(*at)->next;
    if (*at) *at = s->next;
    if (s->owner->follower == s) s->owner->follower = NULL;
    tn_mem_put(s->value, value_bytes(s));
    tn_mem_put(s, sizeof *s);
}

tn_schedule *tn__schedule_make(const tn__schedule_kind *kind, tn_schedule like)
{
    if (tn__blocked()) return NULL;
    if (!like.owner) return tn_raise_null(TN_EINVAL, "tn_%s_lr_new: the optimizer is NULL", kind->name);
    tn_schedule *s = tn_mem_get(sizeof *s);
    if (!s) return NULL;
    *s = like;
    s->kind = kind, s->t = 0, s->next = s->parent = NULL;
    if ((s->value = tn_mem_get(value_bytes(s))) && tn__schedule_set(s, 0)) {
        for (int i = 0; i < s->parts; i++) s->part[i]->parent = s;
        s->next = s->owner->schedules;
        s->owner->schedules = s;
        return s;
    }
    unlink_and_free(s);
    return NULL;
}

/* Frees s and its parts. The recursion is at most TN__DEPTH deep. */
static void free_tree(tn_schedule *s)
{
    for (int i = 0; i < s->parts; i++) free_tree(s->part[i]);
    unlink_and_free(s);
}

void tn_schedule_free(tn_schedule *s)
{
    if (s && s->parent)
        tn_raise(TN_ESTATE, "tn_schedule_free: this %s schedule is a part of a %s one, which frees it", s->kind->name,
                 s->parent->kind->name);
    else if (s) free_tree(s);
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static void set_momentum(tn_optimizer *o, double v)
{
    const tn_opt which = tn__has(o, TN_OPT_BETA1) ? TN_OPT_BETA1 : TN_OPT_MOMENTUM;
    for (int g = 0; g < o->groups && tn__has(o, which); g++) o->group[g].option[which] = v;
}

bool tn__schedule_check_step(const tn_schedule *s, int64_t t)
{
    if (!tn__schedule_possible(s, t)) return false;
    for (int g = 0; g < s->owner->groups; g++) {
        const double lr = s->value[g] = s->kind->lr(s, s->owner->group[g].option[TN_OPT_BASE_LR], t, g);
        if (tn_error() != TN_OK) return false;
        if (lr >= 0 && lr < INFINITY) continue;
        return tn_raise_false(TN_EINVAL, "tn_%s_lr_new: at step %lld the learning rate of group %d would be %s",
                              s->kind->name, (long long)t, g, tn__format_number(lr));
    }
    return true;
}

/* Sets what tn__schedule_check_step has computed for step t. */
static void set(tn_schedule *s, int64_t t)
{
    tn_optimizer *o = s->owner;
    double        momentum;
    for (int g = 0; g < o->groups; g++) o->group[g].option[TN_OPT_LR] = s->value[g];
    if (s->kind->momentum && s->kind->momentum(s, t, &momentum)) set_momentum(o, momentum);
    s->t = t;
}

bool tn__schedule_set(tn_schedule *s, int64_t t)
{
    if (!tn__schedule_check_step(s, t)) return false;
    set(s, t);
    return true;
}

/* True if s may be stepped by itself; else raises an error. */
static bool may_step(const char *who, const tn_schedule *s)
{
    if (!s) return tn_raise_false(TN_EINVAL, "%s: the schedule is NULL", who);
    if (s->parent)
        return tn_raise_false(TN_ESTATE, "%s: this %s schedule is a part of a %s one; step that one", who,
                              s->kind->name, s->parent->kind->name);
    if (s->kind->by_values)
        return tn_raise_false(TN_ESTATE, "%s: a plateau schedule depends on values, not on steps; call tn_plateau_step",
                              who);
    for (const tn_schedule *other = s->owner->schedules; other; other = other->next) {
        if (other == s || other->parent) continue;
        return tn_raise_false(
            TN_ESTATE,
            "%s: the optimizer has a %s and a %s schedule, which would overwrite each other; join them with "
            "tn_chained_lr_new or tn_sequential_lr_new",
            who, s->kind->name, other->kind->name);
    }
    return true;
}

static tn_status move(const char *who, tn_schedule *s, int64_t t)
{
    if (may_step(who, s)) tn__schedule_set(s, t);
    return tn_error();
}

static int64_t next_step(const tn_schedule *s) { return s && s->t < INT64_MAX ? s->t + 1 : INT64_MAX; }

tn_status tn_schedule_step(tn_schedule *s)
{
    if (tn__blocked()) return tn_error();
    if (s && s->owner && s->owner->follower == s)
        return tn_raise(TN_ESTATE,
                        "tn_schedule_step: this schedule follows its optimizer (tn_schedule_follow, or tn_fit), "
                        "whose tn_step already steps it; remove this call");
    return move("tn_schedule_step", s, next_step(s));
}

tn_status tn_schedule_goto(tn_schedule *s, int64_t t)
{
    if (tn__blocked()) return tn_error();
    if (t < 0) return tn_raise(TN_EINVAL, "tn_schedule_goto: t is %lld, but must not be negative", (long long)t);
    return move("tn_schedule_goto", s, t);
}

tn_status tn_schedule_follow(tn_schedule *s)
{
    if (tn__blocked()) return tn_error();
    if (may_step("tn_schedule_follow", s)) s->owner->follower = s;
    return tn_error();
}

void tn__schedule_check_next(const tn_schedule *s)
{
    if (may_step("tn_step", s)) tn__schedule_check_step(s, next_step(s));
}

void tn__schedule_advance(tn_schedule *s) { set(s, next_step(s)); }

int64_t       tn_schedule_now(const tn_schedule *s) { return s ? s->t : 0; }
tn_optimizer *tn_schedule_optimizer(const tn_schedule *s) { return s ? s->owner : NULL; }
bool          tn_schedule_by_values(const tn_schedule *s) { return s && s->kind->by_values; }

double tn_schedule_lr(const tn_schedule *s, int64_t t, int group)
{
    static const char who[] = "tn_schedule_lr";
    if (tn__blocked()) return NAN;
    if (!s) return tn_raise(TN_EINVAL, "%s: the schedule is NULL", who), NAN;
    if (t < 0) return tn_raise(TN_EINVAL, "%s: t is %lld, but must not be negative", who, (long long)t), NAN;
    if (group < 0 || group >= s->owner->groups)
        return tn_raise(TN_EINDEX, "%s: group %d does not exist; the optimizer has %d", who, group, s->owner->groups),
               NAN;
    return tn__schedule_possible(s, t) ? s->kind->lr(s, s->owner->group[group].option[TN_OPT_BASE_LR], t, group) : NAN;
}
