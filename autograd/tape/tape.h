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

/* The leaves used by a function that will run again (unchanged.c). With nested lists, a use is added to all of them. */
typedef struct tn__used {
    struct tn__used *outer;
    tn__saved       *list; /* owns its tensors */
    size_t           count, room;
} tn__used;

typedef struct tn__watch { /* a hook on a result; fn NULL: retain its gradient (tn_retain_grad) */
    struct tn__watch *next;
    int               output;
    tn_grad_hook      fn;
    void             *user;
    tn_tensor        *grad; /* the gradient to retain if the current pass succeeds */
} tn__watch;

struct tn__node {
    tn__object    object; /* first member: the reference count */
    uint64_t      seq;    /* position in the order of recording: larger than those of the nodes it depends on */
    uint64_t      thread;
    const tn_op  *op;
    int           nin, nout, args_at;
    bool          spent;     /* its saved tensors have been released */
    bool          copied;    /* a view op that had to copy: its result does not share the input's memory */
    tn_generator *generator; /* the current one when the op ran, and its state then */
    tn_generator  before;
    tn__watch    *watches;
    char         *path; /* the module path, in anomaly mode or while profiling; else NULL */
    size_t        bytes;

    /* for engine.c: the number of its last pass; links of the pairing heap, then of the list; leads to a target */
    uint64_t  run;
    tn__node *child, *sibling, *next;
    bool      wanted;

    /* arrays after the struct, in this order */
    tn__edge   *edge;     /* [nin] */
    tn__saved  *saved_in; /* [nin], t NULL where not saved */
    tn__saved  *saved_out;
    tn_tensor **grad;  /* [nout]: incomplete during a pass */
    tn_tensor **kept;  /* [nout]: for tn_retain_grad */
    tn_shape   *shape; /* [nin] */
    tn_dtype   *dtype;
    bool       *need;
    void       *args;
};

/* The thread's tape. */
typedef struct {
    struct tn__engine_run *running; /* the engine's running passes, innermost first */
    uint64_t               seq, runs, families;
    bool                   anomaly;
    tn__used              *used;    /* ops add the leaves that they use; may be NULL */
    struct tn_profile     *profile; /* the open profile, which times ops (profile.h); may be NULL */
    /* above 0 while the library calls ops in a backward: anomaly mode then reports the backward, not these ops */
    int       inside;
    uint64_t  steps; /* backwards since anomaly mode was switched on */
    tn__node *dead;  /* nodes waiting to be freed: a list instead of recursion */
    bool      ending;
} tn__tape_state;
extern _Thread_local tn__tape_state tn__tape;

/* autocast.c: converts the inputs as the op's .autocast states; the conversions are recorded. */
void tn__autocast(const tn_op *op, int n, tn_tensor **in);

/* ---- parameters of functions that run again in the backward (unchanged.c) ---------------------------------------- */

void tn__used_begin(tn__used *u); /* u: zeroed, or from an earlier begin */
void tn__used_end(const tn__used *u);
bool tn__used_add(int n, tn_tensor *const *in); /* adds the leaves in an op's inputs to tn__tape.used; false: raised */
/* True if no leaf has changed since it was used; false: raised. caller: the tn_ function that ran the caller's
 * function. */
bool tn__used_unchanged(const tn__used *u, const char *caller);
void tn__used_free(tn__used *u);

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

/* ---- memory changed in place (history.c) ------------------------------------------------------------------------- */

/* A change of the storage's history by an in-place op on x: _begin does everything that can fail, before the op runs;
 * _commit is called after it, _free frees the nodes of _begin. */
typedef struct {
    tn__node    *node; /* the history's next node, owned; NULL: no history is needed */
    tn__node    *part; /* the target's next node, a view of that history, owned; NULL: the op's node */
    tn__node    *base; /* the history's node until now, owned; NULL: none, or the target is the whole memory */
    int          base_output;
    tn__history *history; /* the history to change; may be new */
    tn_shape     shape;
    bool         fresh; /* history is not in the storage's list yet */
} tn__rebase;
bool tn__rebase_begin(tn__rebase *r, tn_tensor *x, tn__node *node);
void tn__rebase_commit(tn__rebase *r, tn_tensor *x);
void tn__rebase_free(tn__rebase *r);

/* Called before t becomes a leaf: if other handles share its memory, starts a history, so that changes recorded through
 * them are noticed. False: raised. */
bool tn__start_history(tn_tensor *t);

/* The node of t's current values, which may be newer than t->node. NULL: t has none. */
tn__node *tn__current_node(const tn_tensor *t, int *output);

/* Gives x the node that follows from its memory's history. False: raised, and x is unchanged; the message calls x
 * role, with the number i unless it is -1. */
bool               tn__update_node(tn_tensor *x, const char *caller, const char *role, int i);
static inline bool tn__up_to_date(tn_tensor *x, const char *caller, const char *role, int i)
{
    return !tn__outdated(x) || tn__update_node(x, caller, role, i);
}

/* Writes the current module path, "encoder.layers.3". */
void tn__path_text(char *to, size_t size);

/* Raises if t holds a NaN or Inf: "caller: <role> has a NaN at [1, 2] (step 3)". */
bool tn__check_finite(const tn_tensor *t, const char *caller, const char *role);

/* ---- one pass of the engine -------------------------------------------------------------------------------------- */
typedef struct {
    int               roots;
    tn_tensor *const *root, *const *seed;
    int               count; /* number of tn_grad_of's targets, in wrt[] */
    tn_tensor *const *wrt;
    tn_tensor       **grad;
    bool              retain, create_graph;
    const char       *name;   /* for messages */
    int               inputs; /* a checkpoint's inputs, at which its tape ends */
    tn_tensor *const *input;
} tn__backward_pass;
tn_status tn__backward(const tn__backward_pass *p);
/* The pass inside a checkpoint's backward: leaves collect in the outer pass, and nodes recorded before `floor` are not
 * visited. grad[i] belongs to the caller's scope; of equal targets only one gets the gradient. */
tn_status tn__backward_inside(const tn__backward_pass *p, void *engine, uint64_t floor);
bool      tn__creates_graph(const tn_back *b);

#endif
