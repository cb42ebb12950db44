/* schedule_private.h — what a schedule is inside: for schedule.c, lr_functions.c, chained.c, plateau.c and checkpoints.
 * Private. */
#ifndef TENON_OPTIM_SCHEDULE_PRIVATE_H
#define TENON_OPTIM_SCHEDULE_PRIVATE_H

#include "optim/optim_private.h"

enum { TN__SCHEDULE_NUMBERS = TN_MILESTONES + 2, TN__DEPTH = 4 };

typedef struct {
    const char *name; /* "cosine": as in tn_cosine_lr_new */
    /* What the numbers are called, for messages and checkpoints; those beyond are more of the last. */
    const char *number[9];
    /* The learning rate at step t of a group whose own is `base`; may raise. */
    double (*lr)(const tn_schedule *s, double base, int64_t t, int group);
    bool (*momentum)(const tn_schedule *s, int64_t t, double *to); /* NULL, or false: it is left alone */
    bool by_values;                                 /* goes by what it is told, not by steps: a plateau */
    bool (*ready)(const tn_schedule *s, int64_t t); /* NULL: always; else raises why not */
} tn__course;

struct tn_schedule {
    const tn__course *course;
    tn_optimizer     *owner;
    tn_schedule      *next;  /* of the owner's, older */
    tn_schedule      *whole; /* what it is a part of, or NULL */
    int64_t           t;
    double            number[TN__SCHEDULE_NUMBERS]; /* as the config has them, defaults filled in */
    int               numbers;
    tn_schedule      *part[TN_PARTS];
    int               parts, depth;
    tn_lr_factor      factor; /* the user's */
    void             *user;
    double            best; /* of plateau: so far; NaN before the first value */
    int64_t           worse, rest, reductions;
    double           *value; /* room for a learning rate for each group */
};

extern const tn__course tn__plateau, tn__chained, tn__sequential;

/* A new schedule of the optimizer, at its step 0. Raises; then nothing has changed. */
tn_schedule *tn__schedule_make(const tn__course *course, tn_schedule like);
/* Sets its learning rate for step t; raises, and then leaves everything as it was. */
bool tn__schedule_go(tn_schedule *s, int64_t t);
bool tn__schedule_try(const tn_schedule *s, int64_t t); /* only raises what that would */
bool tn__schedule_check(const char *name, const char *what, bool good, double v, const char *must); /* raises */

static inline bool tn__course_ready(const tn_schedule *s, int64_t t)
{
    return !s->course->ready || s->course->ready(s, t);
}

#endif
