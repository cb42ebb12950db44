/* chained.c — schedules composed of other schedules: chained (all at once) or sequential (one after the other). */
#include "optim/schedule_private.h"

/* Sets the parts of s; false (raised) if a part is not allowed. */
static bool take_parts(tn_schedule *s, const tn__schedule_kind *kind, tn_schedule *const part[TN_PARTS])
{
    const char *name = kind->name;
    while (s->parts < TN_PARTS && part[s->parts]) s->parts++;
    for (int i = s->parts; i < TN_PARTS; i++)
        if (part[i]) return tn_raise_false(TN_EINVAL, "tn_%s_lr_new: part %d is NULL", name, s->parts);
    if (!s->parts)
        return tn_raise_false(TN_EINVAL, "tn_%s_lr_new: it has no parts, or the first is NULL: .parts = {a, b}", name);
    for (int i = 0; i < s->parts; i++) {
        tn_schedule *p = s->part[i] = part[i];
        const char  *wrong = p->owner != s->owner       ? "belongs to another optimizer"
                             : p->parent                ? "is already a part of another schedule"
                             : p->t                     ? "has already taken steps"
                             : p->depth + 1 > TN__DEPTH ? "is nested too deep: at most 4 levels of schedules are "
                                                          "supported"
                                                        : NULL;
        for (int k = 0; k < i && !wrong; k++)
            if (part[k] == p) wrong = "is listed twice";
        if (wrong) return tn_raise_false(TN_EINVAL, "tn_%s_lr_new: part %d (%s) %s", name, i, p->kind->name, wrong);
        if (p->depth >= s->depth) s->depth = p->depth + 1;
    }
    return true;
}

/* ---- chained ----------------------------------------------------------------------------------------------------- */

static double chained_lr(const tn_schedule *s, double base, int64_t t, int group)
{
    for (int i = 0; i < s->parts; i++) base = s->part[i]->kind->lr(s->part[i], base, t, group);
    return base;
}

static bool chained_momentum(const tn_schedule *s, int64_t t, double *to)
{
    bool any = false;
    for (int i = 0; i < s->parts; i++)
        if (s->part[i]->kind->momentum) any |= s->part[i]->kind->momentum(s->part[i], t, to);
    return any;
}

static bool chained_ready(const tn_schedule *s, int64_t t)
{
    for (int i = 0; i < s->parts; i++)
        if (!tn__schedule_possible(s->part[i], t)) return false;
    return true;
}

const tn__schedule_kind tn__chained = {
    .name = "chained", .lr = chained_lr, .momentum = chained_momentum, .ready = chained_ready};

tn_schedule *tn_chained_lr_create(tn_chained_lr_config c)
{
    tn_schedule s = {.owner = c.optimizer};
    if (tn__blocked() || !take_parts(&s, &tn__chained, c.parts)) return NULL;
    return tn__schedule_make(&tn__chained, s);
}

/* ---- sequential -------------------------------------------------------------------------------------------------- */

/* Returns the active part at step *t and sets *t to the step of that part. */
static const tn_schedule *turn(const tn_schedule *s, int64_t *t)
{
    int i = 0;
    while (i < s->numbers && (double)*t >= s->number[i]) i++;
    if (i) *t -= (int64_t)s->number[i - 1];
    return s->part[i];
}

static double sequential_lr(const tn_schedule *s, double base, int64_t t, int group)
{
    const tn_schedule *p = turn(s, &t);
    return p->kind->lr(p, base, t, group);
}

static bool sequential_momentum(const tn_schedule *s, int64_t t, double *to)
{
    const tn_schedule *p = turn(s, &t);
    return p->kind->momentum && p->kind->momentum(p, t, to);
}

static bool sequential_ready(const tn_schedule *s, int64_t t)
{
    const tn_schedule *p = turn(s, &t);
    return tn__schedule_possible(p, t);
}

const tn__schedule_kind tn__sequential = {.name = "sequential",
                                          .number = {"milestones"},
                                          .lr = sequential_lr,
                                          .momentum = sequential_momentum,
                                          .ready = sequential_ready};

tn_schedule *tn_sequential_lr_create(tn_sequential_lr_config c)
{
    static const char who[] = "tn_sequential_lr_new";
    tn_schedule       s = {.owner = c.optimizer};
    if (tn__blocked() || !take_parts(&s, &tn__sequential, c.parts)) return NULL;
    while (s.numbers < TN_PARTS && c.milestones[s.numbers]) {
        const int64_t m = c.milestones[s.numbers];
        if (m < 1 || (s.numbers && (double)m <= s.number[s.numbers - 1]))
            return tn_raise_null(TN_EINVAL, "%s: milestone %d is %lld, but milestones must be positive and increase",
                                 who, s.numbers, (long long)m);
        s.number[s.numbers++] = (double)m;
    }
    if (s.numbers != s.parts - 1)
        return tn_raise_null(TN_EINVAL, "%s: %d parts need %d milestones, got %d", who, s.parts, s.parts - 1,
                             s.numbers);
    return tn__schedule_make(&tn__sequential, s);
}
