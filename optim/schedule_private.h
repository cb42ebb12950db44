/* schedule_private.h — the struct of a schedule, for schedule.c, lr_functions.c, chained.c, plateau.c and checkpoints.
 * Private. */
#ifndef TENON_OPTIM_SCHEDULE_PRIVATE_H
#define TENON_OPTIM_SCHEDULE_PRIVATE_H

#include "optim/optim_private.h"

enum { TN__SCHEDULE_NUMBERS = TN_MILESTONES + 2, TN__DEPTH = 4 };

typedef struct {
    const char *name; /* "cosine": as in tn_cosine_lr_new */
    /* Names of the numbers, for messages and checkpoints; further numbers have the last name. */
    const char *number[9];
    /* Returns the learning rate at step t of a group with base rate `base`; may raise. */
    double (*lr)(const tn_schedule *s, double base, int64_t t, int group);
    bool (*momentum)(const tn_schedule *s, int64_t t, double *to); /* NULL, or returns false: momentum unchanged */
    bool by_values;                                 /* changes with values (tn_plateau_step), not with steps */
    bool (*ready)(const tn_schedule *s, int64_t t); /* false (raised): step t is not possible; NULL: always true */
} tn__schedule_kind;

struct tn_schedule {
    const tn__schedule_kind *kind;
    tn_optimizer            *owner;
    tn_schedule             *next;   /* next older schedule of the owner */
    tn_schedule             *parent; /* the schedule that this one is a part of, or NULL */
    int64_t                  t;
    double                   number[TN__SCHEDULE_NUMBERS]; /* the options of the config */
    int                      numbers;
    tn_schedule             *part[TN_PARTS];
    int                      parts, depth;
    tn_lr_factor             factor; /* of tn_lambda_lr_new */
    void                    *user;
    double                   best;                 /* plateau: best value; NaN before the first value */
    int64_t bad_values, cooldown_left, reductions; /* plateau: values without improvement; left to ignore; reductions */
    double *value;                                 /* [groups]: scratch memory for learning rates */
};

extern const tn__schedule_kind tn__plateau, tn__chained, tn__sequential;

/* Creates a schedule of the optimizer and sets it to step 0. NULL: raised, nothing has changed. */
tn_schedule *tn__schedule_make(const tn__schedule_kind *kind, tn_schedule like);
/* Sets the learning rate of step t. False: raised, nothing has changed. */
bool tn__schedule_set(tn_schedule *s, int64_t t);
bool tn__schedule_check_step(const tn_schedule *s, int64_t t); /* only the checks of tn__schedule_set */
/* Raises "tn_<name>_lr_new: .<what> is <v>, but must <must>" unless good; returns good. */
bool tn__schedule_check(const char *name, const char *what, bool good, double v, const char *must);

static inline bool tn__schedule_possible(const tn_schedule *s, int64_t t)
{
    return !s->kind->ready || s->kind->ready(s, t);
}

#endif
