/* plateau.c — reduces the learning rate when a value stops improving, as in ReduceLROnPlateau. The rate is computed
 * from the number of reductions, so a plateau may also be a part of other schedules. */
#include "optim/schedule_private.h"

enum { FACTOR, PATIENCE, THRESHOLD, ABSOLUTE, RISING, COOLDOWN, MIN_LR, EPS };

static double plateau_lr(const tn_schedule *s, double base, int64_t t, int group)
{
    (void)t, (void)group;
    for (int64_t i = 0; i < s->reductions; i++) {
        const double down = base * s->number[FACTOR], lr = down > s->number[MIN_LR] ? down : s->number[MIN_LR];
        if (!(base - lr > s->number[EPS])) break;
        base = lr;
    }
    return base;
}

const tn__schedule_kind tn__plateau = {
    .name = "plateau",
    .number = {"factor", "patience", "threshold", "absolute", "rising", "cooldown", "min_lr", "eps"},
    .lr = plateau_lr,
    .by_values = true,
};

tn_schedule *tn_plateau_lr_create(tn_plateau_lr_config c)
{
    static const char name[] = "plateau", not_negative[] = "not be negative, nor infinite";
    const double      number[] = {
             [FACTOR] = c.factor, [PATIENCE] = (double)c.patience, [THRESHOLD] = c.threshold, [ABSOLUTE] = c.absolute,
             [RISING] = c.rising, [COOLDOWN] = (double)c.cooldown, [MIN_LR] = c.min_lr,       [EPS] = c.eps};
    tn_schedule s = {.owner = c.optimizer, .numbers = sizeof number / sizeof *number, .best = NAN};
    memcpy(s.number, number, sizeof number);
    if (tn__blocked() || !tn__schedule_check(name, "factor", number[FACTOR] >= 0 && number[FACTOR] < 1, number[FACTOR],
                                             "be at least 0 and less than 1"))
        return NULL;
    for (int i = PATIENCE; i < s.numbers; i++)
        if (!tn__schedule_check(name, tn__plateau.number[i], number[i] >= 0 && number[i] < INFINITY, number[i],
                                not_negative))
            return NULL;
    return tn__schedule_make(&tn__plateau, s);
}

static bool better(const tn_schedule *s, double v)
{
    const double threshold = s->number[THRESHOLD];
    const bool   rising = s->number[RISING] != 0;
    if (s->best != s->best) return rising ? v > -INFINITY : v < INFINITY;
    if (s->number[ABSOLUTE] != 0) return rising ? v > s->best + threshold : v < s->best - threshold;
    return rising ? v > s->best * (1 + threshold) : v < s->best * (1 - threshold);
}

tn_status tn_plateau_step(tn_schedule *s, double value)
{
    static const char who[] = "tn_plateau_step";
    if (tn__blocked()) return tn_error();
    if (!s) return tn_raise(TN_EINVAL, "%s: the schedule is NULL", who);
    if (s->kind != &tn__plateau)
        return tn_raise(TN_EINVAL, "%s: this is a %s schedule; call tn_schedule_step", who, s->kind->name);
    const tn_schedule before = *s;
    if (better(s, value)) s->best = value, s->bad_values = 0;
    else s->bad_values++;
    if (s->cooldown_left > 0) s->cooldown_left--, s->bad_values = 0;
    if ((double)s->bad_values > s->number[PATIENCE]) {
        s->reductions++, s->bad_values = 0, s->cooldown_left = (int64_t)s->number[COOLDOWN];
        tn_schedule *whole = s;
        while (whole->parent) whole = whole->parent;
        if (!tn__schedule_set(whole, whole->t)) *s = before;
    }
    return tn_error();
}
