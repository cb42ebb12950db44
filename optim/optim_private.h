/* optim_private.h — private declarations shared by the files of optim/. */
#ifndef TENON_OPTIM_OPTIM_PRIVATE_H
#define TENON_OPTIM_OPTIM_PRIVATE_H

#include "autograd/tape/casts.h"
#include "optim/sweep.h"

/* The stored gradient of t: dense, or the rows of a row-sparse one; NULL: no gradient. */
static inline tn_tensor *tn__gradient(const tn_tensor *t)
{
    tn_tensor *rows = tn_grad_rows(t, NULL);
    return rows ? rows : tn_grad(t);
}

typedef struct tn__kind tn__kind;

typedef struct {
    char      *name;
    tn_tensor *t;                 /* the parameter, with a reference (tn_keep) */
    tn_tensor *dense;             /* contiguous copy to work on if t is not contiguous, else NULL */
    tn_tensor *state[TN__STATES]; /* owned; NULL until needed */
    unsigned   made;              /* bit k: state k was created by the running step */
    bool       cast;              /* the running step also writes autocast's copy */
    bool       claimed;           /* by the running step, with tn__leaf_claim */
    bool       table;             /* of an embedding (Muon) */
    tn_dtype   dtype;
    tn_shape   shape;
    int64_t    n, steps; /* number of elements; number of updates */
    int64_t    from, to; /* elements that are updated here and have state: 0 and n, or as set by tn_optimizer_shard */
    int        group;
} tn__weight;

typedef struct {
    double option[TN_OPTS];
} tn__group;

enum { TN__NESTEROV = 1, TN__MAXIMIZE = 2, TN__AMSGRAD = 4, TN__CENTERED = 8, TN__LAZY = 16, TN__DECOUPLED = 32 };
enum { TN__MATCH_RMS = 64, TN__BF16 = 128 };

struct tn_optimizer {
    const tn__kind *kind;
    unsigned        flags;
    tn_clip         clip;
    double          initial; /* initial value of new states */
    tn__weight     *weight;
    int64_t         weights;
    tn__group      *group;
    int             groups;
    int64_t         steps, accumulate, waiting; /* updates; tn_steps per update; tn_steps since the last update */
    double          norm;                       /* gradient norm of the last update */
    double          next_norm, scale;           /* of the step that has begun (tn__step_begin) */
    tn__sweep       sweep;
    tn_schedule    *schedules; /* list of all schedules, the newest first */
    tn_schedule    *follower;  /* schedule that each update steps (tn_schedule_follow), or NULL */
};

struct tn__kind {
    const char *name;        /* "AdamW" */
    const char *call;        /* "tn_adamw_new" */
    unsigned    options;     /* bit i: has option i of tn_opt */
    bool        squares;     /* the squares of gradients must be finite */
    bool        by_element;  /* updates elements independently; states have the weight's shape */
    bool        eps_of_type; /* TN_OPT_EPS may be below 0: the machine epsilon of the weight's dtype */
    struct {
        const char *name;
        /* Sets *s to the state's shape; returns true if this weight, with its options, needs the state. */
        bool (*shape)(const tn_optimizer *o, const tn__weight *w, tn_shape *s);
    } state[TN__STATES];
    /* True if it is enough to update the rows of a row-sparse gradient. NULL: never. */
    bool (*by_rows)(const tn_optimizer *o, const double *option);
    /* Sets the kernel's parameters for update number t of the weight, except scale and bound. */
    void (*numbers)(const tn_optimizer *o, const tn__weight *w, const double *option, double t, tn__numbers *to);
    bool (*prepare)(tn_optimizer *o, double scale); /* before the sweeps; may raise, changes no state. NULL: nothing */
    void (*undo)(tn_optimizer *o);                  /* frees what prepare made, if the step is cancelled; may be NULL */
    void (*run)(tn_optimizer *o);                   /* runs the sweeps; cannot fail */
};

extern const char *const tn__option_names[TN_OPTS];
static inline bool       tn__has(const tn_optimizer *o, tn_opt which) { return o->kind->options >> which & 1; }
/* False (raised) if v is not a valid value of the option. */
bool tn__option_check(const char *who, const tn__kind *kind, tn_opt which, double v);

/* Creates an optimizer of all parameters of the module, in one group with these options. NULL: raised. */
tn_optimizer *tn__optimizer_make(const tn__kind *kind, void *module, unsigned flags, const double option[TN_OPTS],
                                 const tn_clip *clip);
int64_t       tn__weight_find(const tn_optimizer *o, const tn_tensor *t);     /* index in o->weight; -1: not found */
bool tn__state_same(const tn_optimizer *o, const tn__weight *w, tn_shape *s); /* for .shape: the shape of the weight */
/* Creates a state of that shape or, if only some elements are updated here, of those. The caller owns it; may raise. */
tn_tensor *tn__state_make(const tn_optimizer *o, const tn__weight *w, tn_shape s);
void       tn__schedule_check_next(const tn_schedule *s); /* before an update: the checks of the schedule's next step */
void       tn__schedule_advance(tn_schedule *s);          /* after the update: the step that was checked */

#endif
