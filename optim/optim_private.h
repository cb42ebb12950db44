/* optim_private.h — private declarations shared by the files of optim/. */
#ifndef TENON_OPTIM_OPTIM_PRIVATE_H
#define TENON_OPTIM_OPTIM_PRIVATE_H

#include "core/base/toolbox.h"
#include "optim/optim.h"

#include <math.h>
#include <string.h>

/* The stored gradient of t: dense, or the rows of a row-sparse one; NULL: no gradient. */
static inline tn_tensor *tn__gradient(const tn_tensor *t)
{
    tn_tensor *rows = tn_grad_rows(t, NULL);
    return rows ? rows : tn_grad(t);
}

/* ---- a sweep over many tensors at once (sweep.c) ------------------------------------------------------------------ *
 *
 * All tensors form one list of elements, which is cut into chunks of a fixed size. A thread works on one chunk at a
 * time, which may contain several tensors. Each piece (the part of one tensor in one chunk) has its own sums, which are
 * added in the order of the list; so the results do not depend on the number of threads. */

enum { TN__STATES = 3, TN__SUMS = 2 };

/* The parameters of a kernel for one tensor. rest1 = 1 - beta1, rest2 = 1 - beta2. */
typedef struct {
    double  beta2, rest2;         /* decay of the second moments */
    double  min_size, max_change; /* eps2, the minimum of RMS(p); d, the maximum of RMS(u) */
    double  over_mean;            /* 1 / max(mean of the rows' means, eps1), if the tensor is one matrix */
    int64_t rows, cols;           /* of a matrix; cols 0: a vector */
} tn__adafactor_numbers;
typedef struct {
    double beta1, rest1, beta2, rest2; /* decay of the first and second moments */
    double first, root; /* bias corrections: factor of the first moment (LAMB; for Adam it is part of lr) and of the
                           square root of the second */
} tn__adam_numbers;
typedef struct {
    double momentum, fresh; /* factor of the buffer; factor of the gradient, 1 - dampening */
    bool   nesterov;
} tn__sgd_numbers;
typedef struct {
    double alpha, rest, momentum;
} tn__rmsprop_numbers;
typedef struct {
    double scale, bound; /* the gradient is multiplied by scale, then clipped to [-bound, bound] */
    double add_weight;   /* add_weight · weight is added to the gradient */
    double keep;         /* the weight is multiplied by keep before the step */
    double lr, eps;
    union {
        tn__adafactor_numbers adafactor;
        tn__adam_numbers      adam; /* also for LAMB */
        tn__sgd_numbers       sgd;
        tn__rmsprop_numbers   rmsprop;
        double                ema_rest; /* 1 - decay */
    };
} tn__numbers;

typedef struct {
    int64_t     n;
    tn_dtype    dtype; /* of p and g: f32, f64 or bf16; state is f64 for f64, else f32 */
    void       *p;     /* weights, contiguous */
    void       *g;     /* gradient, contiguous; may be NULL */
    void       *state[TN__STATES];
    tn__numbers number;
    int64_t     index; /* index of the tensor in the owner's list */
    int64_t     first; /* index of the first element in that tensor */
    double      sum[TN__SUMS];
} tn__segment;

/* Processes n elements of s from element `at`. p and g point to these elements, as float for f32 and bf16, as double
 * for f64. Adds to sum, the sums of this piece, initially 0. */
typedef void (*tn__sweep_kernel)(const tn__segment *s, int64_t at, int64_t n, void *p, void *g, double sum[TN__SUMS]);
enum { TN__READS = 0, TN__WRITES_P = 1, TN__WRITES_G = 2, TN__LARGEST = 4 /* combine sums with the maximum */ };
typedef struct {
    tn__sweep_kernel f32, f64;
    unsigned         flags;
} tn__sweep_pass;
#define TN__PASS(k, flags) ((tn__sweep_pass){k##_f32, k##_f64, flags})

typedef struct {
    int64_t      most, room;   /* capacity: number of segments and of pieces */
    int64_t      count, total; /* number of segments and of their elements */
    tn__segment *segment;
    int64_t     *from;  /* index in the list of each segment's first element */
    double      *piece; /* the sums of each piece */
} tn__sweep;
bool         tn__sweep_init(tn__sweep *w, int64_t segments, int64_t elements);    /* allocates; false: raised */
bool         tn__sweep_reserve(tn__sweep *w, int64_t segments, int64_t elements); /* grows if needed; false: raised */
void         tn__sweep_free(tn__sweep *w);
void         tn__sweep_clear(tn__sweep *w);
tn__segment *tn__sweep_add(tn__sweep *w, tn_dtype dt, int64_t n, void *p, void *g); /* within the capacity */
void         tn__sweep_run(tn__sweep *w, tn__sweep_pass k); /* sets segment[i].sum; cannot fail */

/* Returns the norm of all g times scale. If bad is not NULL, sets *bad to the first segment with a NaN or an Inf or, if
 * `squared`, with a norm whose square overflows its state's dtype, f32 or f64; -1: none. */
double      tn__sweep_norm(tn__sweep *w, double scale, bool largest, bool squared, int64_t *bad);
const char *tn__sweep_problem(const tn__segment *bad);         /* "has a NaN or Inf" */
bool        tn__clip_check(const char *who, const tn_clip *c); /* false: raised */

/* The sum of a piece's lanes, from the first to the last. This order determines the bits of resumed runs
 * (core/kernels/sum_lanes.h uses a different one). */
enum { TN__SUM_LANES = 16 };
static inline double tn__lanes_in_order(const double lane[TN__SUM_LANES])
{
    double total = 0;
    for (int k = 0; k < TN__SUM_LANES; k++) total += lane[k];
    return total;
}

/* For kernels: clips x to [-bound, bound]; NaN stays NaN. */
#define TN__CUT(x, bound) ((x) < -(bound) ? -(bound) : (x) > (bound) ? (bound) : (x))

/* ---- optimizers -------------------------------------------------------------------------------------------------- */

typedef struct tn__kind tn__kind;

typedef struct {
    char      *name;
    tn_tensor *t;                 /* the parameter, with a reference (tn_keep) */
    tn_tensor *dense;             /* contiguous copy to work on if t is not contiguous, else NULL */
    tn_tensor *state[TN__STATES]; /* owned; NULL until needed */
    unsigned   made;              /* bit k: state k was created by the running step */
    tn_dtype   dtype;
    tn_shape   shape;
    int64_t    n, steps; /* number of elements; number of updates */
    int64_t    from, to; /* elements that are updated here and have state: 0 and n, or as set by tn_optimizer_share */
    int        group;
} tn__weight;

typedef struct {
    double option[TN_OPTS];
} tn__group;

enum { TN__NESTEROV = 1, TN__MAXIMIZE = 2, TN__AMSGRAD = 4, TN__CENTERED = 8, TN__LAZY = 16 };

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
    void (*run)(tn_optimizer *o); /* runs the sweeps; cannot fail */
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
/* Creates a state of that shape or, if only some elements are updated here, of those. Owned by the caller. NULL:
 * raised. */
tn_tensor *tn__state_make(const tn_optimizer *o, const tn__weight *w, tn_shape s);
tn_status  tn__schedule_advance(tn_schedule *s);          /* the schedule's step after an update of its optimizer */
void       tn__schedule_check_next(const tn_schedule *s); /* raises the foreseeable errors of tn__schedule_advance */

#endif
