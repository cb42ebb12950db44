/* optim_private.h — what the files of optim/ share and users do not see. Stands on the public headers below. */
#ifndef TENON_OPTIM_OPTIM_PRIVATE_H
#define TENON_OPTIM_OPTIM_PRIVATE_H

#include "core/base/toolbox.h"
#include "optim/optim.h"

#include <math.h>
#include <string.h>

/* What is kept of t's gradient: all, or the rows that are not zero. NULL: there is none. */
static inline tn_tensor *tn__gradient(const tn_tensor *t)
{
    tn_tensor *rows = tn_grad_rows(t, NULL);
    return rows ? rows : tn_grad(t);
}

/* ---- a sweep over many tensors at once (sweep.c) ------------------------------------------------------------------ *
 *
 * The tensors are laid end to end in one list, which is cut into chunks of a fixed size: a chunk is what one thread
 * does at a time, whatever tensors it meets. Sums are kept for each piece, the part of one tensor in one chunk, and
 * added in the order of the list: so nothing depends on the number of threads. */

enum { TN__STATES = 3, TN__SUMS = 2 };

/* What a kernel is told about its tensor. rest1 = 1 - beta1: the share of what is new. */
typedef struct {
    double  beta2, rest2;         /* of the second moments */
    double  min_size, max_change; /* eps2 and d: of RMS(p), RMS(u) */
    double  over_mean;            /* 1 / max(mean of the rows' means, eps1), if there is one matrix */
    int64_t rows, cols;           /* of a matrix; cols 0: it is none */
} tn__adafactor_numbers;
typedef struct {
    double beta1, rest1, beta2, rest2; /* of the first and second moments */
    double first, root; /* corrections for their start at 0: times the first, times the root of the second (LAMB; Adam
                           has the first in lr) */
} tn__adam_numbers;
typedef struct {
    double momentum, fresh; /* of the buffer; of the gradient, 1 - dampening */
    bool   nesterov;
} tn__sgd_numbers;
typedef struct {
    double alpha, rest, momentum;
} tn__rmsprop_numbers;
typedef struct {
    double scale, bound; /* of the gradient: first times scale, then cut to [-bound, bound] */
    double add_weight;   /* times the weight, added to the gradient                         */
    double keep;         /* times the weight, before the step                               */
    double lr, eps;
    union {
        tn__adafactor_numbers adafactor;
        tn__adam_numbers      adam; /* LAMB's, too */
        tn__sgd_numbers       sgd;
        tn__rmsprop_numbers   rmsprop;
        double                ema_rest; /* 1 - decay */
    };
} tn__numbers;

typedef struct {
    int64_t     n;
    tn_dtype    dtype; /* f32, f64 or bf16, of p and g; state is f64 for f64, else f32 */
    void       *p;     /* dense */
    void       *g;     /* dense, or NULL */
    void       *state[TN__STATES];
    tn__numbers number;
    int64_t     index; /* which of the owner's tensors this is */
    int64_t     first; /* where in that tensor it begins */
    double      sum[TN__SUMS];
} tn__segment;

/* n elements from element `at` of s; p and g are those elements, as float for f32 and bf16, else as double. sum begins
 * with zeros: the sums of this piece. */
typedef void (*tn__sweep_kernel)(const tn__segment *s, int64_t at, int64_t n, void *p, void *g, double sum[TN__SUMS]);
enum { TN__READS = 0, TN__WRITES_P = 1, TN__WRITES_G = 2, TN__LARGEST = 4 /* the sums are maxima */ };
typedef struct {
    tn__sweep_kernel f32, f64;
    unsigned         flags;
} tn__sweep_pass;
#define TN__PASS(k, flags) ((tn__sweep_pass){k##_f32, k##_f64, flags})

typedef struct {
    int64_t      most, room;   /* segments and pieces that there is room for */
    int64_t      count, total; /* segments, and their elements */
    tn__segment *segment;
    int64_t     *from; /* of each segment, in the list */
    double      *piece;
} tn__sweep;
bool         tn__sweep_init(tn__sweep *w, int64_t segments, int64_t elements); /* raises */
bool         tn__sweep_room(tn__sweep *w, int64_t segments, int64_t elements); /* at least for so many; raises */
void         tn__sweep_free(tn__sweep *w);
void         tn__sweep_clear(tn__sweep *w);
tn__segment *tn__sweep_add(tn__sweep *w, tn_dtype dt, int64_t n, void *p, void *g); /* within the room of init */
void         tn__sweep_run(tn__sweep *w, tn__sweep_pass k); /* with sums in segment[i].sum; cannot fail */

/* The norm of all g times scale; and, if asked for, whether all is well: no NaN, no Inf, and (squared) none whose
 * square is beyond its state's type, f32 or f64. If not, *bad is the first segment that is not. */
double      tn__sweep_norm(tn__sweep *w, double scale, bool largest, bool squared, int64_t *bad);
const char *tn__sweep_why(const tn__segment *bad);             /* "has a NaN or Inf in it" */
bool        tn__clip_check(const char *who, const tn_clip *c); /* raises */

/* The sum of a piece's lanes, from the first to the last: training that goes on from a checkpoint depends on this order
 * (that of core/kernels/sum_lanes.h is another). */
enum { TN__SUM_LANES = 16 };
static inline double tn__lanes_in_order(const double lane[TN__SUM_LANES])
{
    double total = 0;
    for (int k = 0; k < TN__SUM_LANES; k++) total += lane[k];
    return total;
}

/* For kernels: x cut to [-bound, bound]; a NaN stays one. */
#define TN__CUT(x, bound) ((x) < -(bound) ? -(bound) : (x) > (bound) ? (bound) : (x))

/* ---- optimizers -------------------------------------------------------------------------------------------------- */

typedef struct tn__kind tn__kind;

typedef struct {
    char      *name;
    tn_tensor *t;                 /* kept */
    tn_tensor *dense;             /* a copy to work on if t is not contiguous, else NULL */
    tn_tensor *state[TN__STATES]; /* owned, NULL until they are needed */
    unsigned   made;              /* which of them the step under way has made, as bits */
    tn_dtype   dtype;
    tn_shape   shape;
    int64_t    n, steps;
    int64_t    from, to; /* which elements are stepped here, and have states: 0 and n, but for tn_optimizer_share */
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
    double          initial; /* where new states begin */
    tn__weight     *weight;
    int64_t         weights;
    tn__group      *group;
    int             groups;
    int64_t         steps, accumulate, waiting;
    double          norm;
    tn__sweep       sweep;
    tn_schedule    *schedules; /* all, the newest first */
    tn_schedule    *follower;
};

struct tn__kind {
    const char *name;           /* "AdamW" */
    const char *call;           /* "tn_adamw_new" */
    unsigned    options;        /* which of tn_opt, as bits */
    bool        squares;        /* the squares of gradients must be finite */
    bool        by_element;     /* an element's step depends on no other's: states are of the weight's shape */
    bool        eps_of_type;    /* TN_OPT_EPS may be below 0: the epsilon of the weight's number type */
    bool        moves_momentum; /* OneCycleLR may set TN_OPT_MOMENTUM, or TN_OPT_BETA1 if there is one */
    struct {
        const char *name;
        /* Is this state wanted for this weight, with its options? Its shape, wanted or not. */
        bool (*shape)(const tn_optimizer *o, const tn__weight *w, tn_shape *s);
    } state[TN__STATES];
    /* Where the gradient is a few rows: is it enough to step these? NULL: never. */
    bool (*by_rows)(const tn_optimizer *o, const double *option);
    /* What the kernel needs for the weight's t-th step, beyond scale and bound. */
    void (*numbers)(const tn_optimizer *o, const tn__weight *w, const double *option, double t, tn__numbers *to);
    void (*run)(tn_optimizer *o); /* the sweeps; cannot fail */
};

extern const char *const tn__option_names[TN_OPTS];
static inline bool       tn__has(const tn_optimizer *o, tn_opt which) { return o->kind->options >> which & 1; }
bool                     tn__option_check(const char *who, const tn__kind *kind, tn_opt which, double v); /* raises */

/* Makes an optimizer of all the module's parameters, in one group with these options. Raises. */
tn_optimizer *tn__optimizer_make(const tn__kind *kind, void *module, unsigned flags, const double option[TN_OPTS],
                                 const tn_clip *clip);
int64_t       tn__weight_find(const tn_optimizer *o, const tn_tensor *t);     /* -1: none */
bool tn__state_same(const tn_optimizer *o, const tn__weight *w, tn_shape *s); /* the weight's own shape: for .shape */
/* Of that shape, or of the elements that are stepped here. Owned; raises. */
tn_tensor *tn__state_make(const tn_optimizer *o, const tn__weight *w, tn_shape s);
tn_status  tn__schedule_next(tn_schedule *s);        /* tn_schedule_step, of the optimizer that s follows */
void       tn__schedule_ready(const tn_schedule *s); /* raises what tn_schedule_step would, as far as that is known */

#endif
