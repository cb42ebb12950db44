/* tape.h — the tape, written by call.c and read by engine.c. Private to autograd/. */
#ifndef TENON_AUTOGRAD_TAPE_TAPE_H
#define TENON_AUTOGRAD_TAPE_TAPE_H

#include "autograd/autograd.h"
#include "core/skeletons/skeletons.h"

typedef struct tn__node tn__node;

/* The origin of an input, which receives its gradient: another node's result, or a leaf. */
typedef struct {
    tn__node  *node;
    tn_tensor *leaf;
    uint8_t    output;
} tn__edge;

/* A tensor and its version when the op ran. */
typedef struct {
    tn_tensor *t;
    uint32_t   version;
} tn__saved;

/* A hook on a result or leaf; fn NULL: retain the gradient (tn_retain_grad). */
typedef struct tn__watch {
    struct tn__watch *next;
    int               output;
    tn_grad_hook      fn;
    void             *user;
    tn_tensor        *grad; /* the gradient to retain if the current pass succeeds */
} tn__watch;

/* A tape of small ops exceeds the caches: the walk's members come first, shapes, of which only used dims are written,
 * last. `run` to `wanted` are engine.c's: its last pass; links of the heap, then of the list; leads to a target. */
struct tn__node {
    tn__object    object; /* first member: the reference count */
    uint64_t      seq;    /* position in the order of recording: larger than those of the nodes it depends on */
    uint64_t      run;
    tn__node     *child, *sibling, *next;
    int           nin;
    uint8_t       nout;
    bool          wanted;
    bool          spent;  /* its saved tensors have been released */
    bool          copied; /* a view op that had to copy: its result does not share the input's memory */
    uint64_t      thread;
    const tn_op  *op;
    tn_generator *generator; /* the current one when the op ran, and its state then */
    tn_generator  before;
    tn__watch    *watches;
    char         *path; /* the module path, in anomaly mode or while profiling; else NULL */
    size_t        bytes;

    /* arrays after the struct: saved_out, grad, kept, need, args, dtype and shape follow the edges and saved_in */
    tn__saved  *saved_in; /* [nin], t NULL where not saved */
    tn__saved  *saved_out;
    tn_tensor **grad;  /* [nout]: incomplete during a pass */
    tn_tensor **kept;  /* [nout]: for tn_retain_grad */
    tn_shape   *shape; /* [nin] */
    tn_dtype   *dtype;
    bool       *need;
    void       *args;
    tn__edge    edge[]; /* [nin] */
};

/* The thread's tape. */
typedef struct {
    struct tn__engine_run *running; /* the engine's running passes, innermost first */
    uint64_t               seq, runs, families;
    bool                   anomaly;
    struct tn__used       *used;    /* ops add the leaves that they use (unchanged.h); may be NULL */
    struct tn_replay      *replay;  /* the replay that is being recorded (replay.h); may be NULL */
    struct tn_profile     *profile; /* the open profile, which times ops (profile.h); may be NULL */
    struct tn_budget      *budget;  /* the open memory budget (budget.c); NULL also inside a segment */
    /* above 0 while the library calls ops in a backward: anomaly mode then reports the backward, not these ops */
    int       inside;
    uint64_t  steps; /* backwards since anomaly mode was switched on */
    tn__node *dead;  /* nodes waiting to be freed: a list instead of recursion */
    bool      ending;
} tn__tape_state;
extern _Thread_local tn__tape_state tn__tape;

#define TN__SAVE_ALL_IN (1u << 15) /* in tn_op.saves: all inputs */

static inline uint32_t tn__version_of(const tn_tensor *t)
{
    return atomic_load_explicit(&t->storage->version, memory_order_relaxed);
}
static inline tn__node *tn__node_of(const tn_tensor *t) { return (tn__node *)t->node; }
static inline bool      tn__needs_grad(const tn_tensor *t) { return t->leaf || t->node; }

/* tn__record returns a new node for an op; need[i]: input i requires grad. tn__record_saved stores the inputs that the
 * backward reads; original, borrowed, is a copy of input 0 from before an in-place op overwrote it, or NULL.
 * tn__record_results stores the results that the backward reads. NULL or false: raised. */
tn__node  *tn__record(const tn_op *op, int nin, tn_tensor *const *in, int nout, const bool *need, const void *args);
bool       tn__record_saved(tn__node *n, tn_tensor *const *in, tn_tensor *original);
bool       tn__record_results(tn__node *n, tn_tensor *const *out);
tn__watch *tn__leaf_watches(const tn_tensor *t);
void       tn__node_drop(tn__node *n);
/* Gives x a new node in place of its old one. What tn_retain_grad requested and stored moves to the new node. */
void tn__node_link(tn_tensor *x, tn__object *node, uint8_t output);
void tn__move_retained(tn__node *n, int output, tn__node *to, int to_output);
void tn__node_release(tn__node *n); /* drops the saved tensors */

/* The current module path, "encoder.layers.3". The copy is NULL if out of memory, with an error if it
 * is required. */
void  tn__path_text(char *to, size_t size);
char *tn__path_copy(bool required);

/* anomaly.c: raises if t, or the gradient g of input i of n, holds a NaN or Inf: "caller: <role> has the first NaN, at
 * [1, 2] (step 3)". */
bool tn__check_finite(const tn_tensor *t, const char *caller, const char *role);
bool tn__finite_gradient(const tn__node *n, int i, const tn_tensor *g);
bool tn__results_finite(const tn_ctx *c); /* the results of a call */

/* ---- the backward pass (engine.c) -------------------------------------------------------------------------------- */

typedef struct {
    int               roots;
    tn_tensor *const *root, *const *seed; /* [roots]; seed, or an entry of it, may be NULL: ones */
    const char       *name;               /* for messages */
    bool              retain, create_graph;
    int               count;  /* number of tn_grad_of's targets; 0: leaves collect */
    tn_tensor *const *wrt;    /* [count]: the targets */
    tn_tensor       **grad;   /* [count]: out */
    bool              adds;   /* grad[] are also in, owned and moved: gradients to add to; NULL entries: none */
    int               inputs; /* number of a checkpoint's inputs, at which its tape ends */
    tn_tensor *const *input;
    tn_grad_ready     ready; /* called for complete gradients; may be NULL */
    void             *ready_user;
} tn__backward_pass;
tn_status tn__backward(const tn__backward_pass *p);
/* The pass inside a checkpoint's backward: leaves collect in the outer pass, and nodes recorded before `floor` are not
 * visited. grad[i] belongs to the caller's scope; of equal targets only one gets the gradient. */
tn_status tn__backward_inside(const tn__backward_pass *p, void *engine, uint64_t floor);
bool      tn__creates_graph(const tn_back *b);

#endif
