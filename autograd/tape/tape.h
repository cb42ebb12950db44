/* tape.h — the tape as call.c writes it and engine.c reads it. Private to autograd/. */
#ifndef TENON_AUTOGRAD_TAPE_TAPE_H
#define TENON_AUTOGRAD_TAPE_TAPE_H

#include "autograd/autograd.h"
#include "core/skeletons/skeletons.h"

typedef struct tn__node tn__node;

/* Where an input came from, and so where its gradient goes: another node's result, or a leaf. */
typedef struct {
    tn__node  *node;
    tn_tensor *leaf;
    uint8_t    output;
} tn__edge;

/* A tensor as it was when the op ran. */
typedef struct {
    tn_tensor *t;
    uint32_t   version;
} tn__saved;

/* The leaves that a function has used which will run again (twice.c); a list in a list notes for both. */
typedef struct tn__used {
    struct tn__used *outer;
    tn__saved       *list; /* kept */
    size_t           count, room;
} tn__used;

typedef struct tn__watch { /* a hook on a result; fn NULL: its gradient is to be kept (tn_retain_grad) */
    struct tn__watch *next;
    int               output;
    tn_grad_hook      fn;
    void             *user;
    tn_tensor        *grad; /* the gradient to be kept, if the pass under way succeeds */
} tn__watch;

struct tn__node {
    tn__object    object; /* first: core counts it */
    uint64_t      seq;    /* order of recording: an op's inputs have smaller numbers */
    uint64_t      thread;
    const tn_op  *op;
    int           nin, nout, args_at;
    bool          spent;     /* what it saved has been released */
    bool          copied;    /* a view op that had to copy: its result has memory of its own */
    tn_generator *generator; /* in use when the op ran, and where it stood */
    tn_generator  before;
    tn__watch    *watches;
    char         *path; /* in anomaly mode or under a profile: the module path */
    size_t        bytes;

    /* the engine's: a pairing heap, then a list; and the gradients under way */
    uint64_t  run;
    tn__node *child, *sibling, *next;
    bool      wanted;

    /* behind the struct, in this order */
    tn__edge   *edge;     /* [nin] */
    tn__saved  *saved_in; /* [nin], t NULL where not saved */
    tn__saved  *saved_out;
    tn_tensor **grad;  /* [nout] */
    tn_tensor **kept;  /* [nout], for tn_retain_grad */
    tn_shape   *shape; /* [nin] */
    tn_dtype   *dtype;
    bool       *need;
    void       *args;
};

/* The thread's tape. */
typedef struct {
    struct tn__engine_run *under_way; /* the passes of the engine that run now, innermost first */
    uint64_t               seq, runs, families;
    bool                   anomaly;
    tn__used              *used;    /* ops note here the leaves that they take */
    struct tn_profile     *profile; /* open: ops are timed (profile.h) */
    /* more than 0 while the library itself calls ops, in a backward: their errors are reported as the backward's */
    int       inside;
    uint64_t  steps;
    tn__node *dead; /* nodes waiting for their end: a list, not a recursion */
    bool      ending;
} tn__tape_state;
extern _Thread_local tn__tape_state tn__tape;

/* Under autocast (autocast.c): the inputs as this op takes them, with recorded conversions. */
void tn__autocast(const tn_op *op, int n, tn_tensor **in);

/* ---- what runs without a tape and again in the backward (twice.c) ------------------------------------------------ */

void tn__used_begin(tn__used *u); /* u: zeroed, or begun before */
void tn__used_end(const tn__used *u);
bool tn__use(int n, tn_tensor *const *in); /* an op takes these, while tn__tape.used; false: raised */
/* Has every leaf the numbers that it had? False: raised; `who` is the call whose function it was. */
bool tn__used_unchanged(const tn__used *u, const char *who);
void tn__used_free(tn__used *u);

#define TN__SAVE_ALL_IN (1u << 15) /* in tn_op.saves: every input, however many */

static inline uint32_t tn__version_of(const tn_tensor *t)
{
    return atomic_load_explicit(&t->storage->version, memory_order_relaxed);
}
static inline tn__node *tn__node_of(const tn_tensor *t) { return (tn__node *)t->node; }
static inline bool      tn__wants_grad(const tn_tensor *t) { return t->leaf || t->node; }

/* Writes an op down: links its results to a new node. need[i]: input i wants a gradient. On failure raises and leaves
 * the results alone. original: what input 0 was before an in-place op wrote over it (owned by the caller), or NULL. */
tn__node  *tn__record(const tn_op *op, int nin, tn_tensor *const *in, int nout, const bool *need, const void *args);
bool       tn__record_saved(tn__node *n, tn_tensor *const *in, tn_tensor *original);
bool       tn__record_results(tn__node *n, tn_tensor *const *out);
tn__watch *tn__leaf_watches(const tn_tensor *t);
void       tn__node_drop(tn__node *n);
/* x's node from now on, in place of what it had: what tn_retain_grad asked for and has goes with it. */
void tn__node_link(tn_tensor *x, tn__object *node, uint8_t output);
void tn__retained_moves(tn__node *n, int output, tn__node *to, int to_output);
void tn__node_release(tn__node *n); /* what it saved */

/* ---- what was written over (history.c) --------------------------------------------------------------------------- */

/* The storage's history, for an in-place op on x: _begin does all that can fail, before the op runs; _commit is called
 * after it. */
typedef struct {
    tn__node    *node; /* the node that the history will have, owned; NULL: the history ends */
    tn__node    *part; /* the target's own from then on, a view of that history, owned; NULL: the op's */
    tn__node    *base; /* the whole memory's until then, owned; NULL: none, or the target is the whole */
    int          base_output;
    tn__history *history; /* which is changed; may be new */
    tn_shape     shape;
    bool         fresh; /* not in the storage's list yet */
} tn__rebase;
bool tn__rebase_begin(tn__rebase *r, tn_tensor *x, tn__node *node);
void tn__rebase_commit(tn__rebase *r, tn_tensor *x);
void tn__rebase_forget(tn__rebase *r);

/* t is about to become a leaf: if its memory has other handles, begins a history, so that t sees what is recorded on
 * them. */
bool tn__watch_memory(tn_tensor *t);

/* The node of t's numbers as they are, which may be newer than t's own: NULL: t has none. */
tn__node *tn__node_now(const tn_tensor *t, int *output);

/* x gets a new node according to its memory's history. False: raised (the message calls x `what` and, unless it is -1,
 * i), and x stays as it was. */
bool               tn__renew(tn_tensor *x, const char *who, const char *what, int i);
static inline bool tn__up_to_date(tn_tensor *x, const char *who, const char *what, int i)
{
    return !tn__outdated(x) || tn__renew(x, who, what, i);
}

/* The module path that is open: "encoder.layers.3". */
void tn__path_text(char *to, size_t size);

/* Raises if t holds a NaN or Inf: "who: <what> has a NaN at [1, 2] (step 3)". */
bool tn__check_finite(const tn_tensor *t, const char *who, const char *what);

/* ---- one pass of the engine -------------------------------------------------------------------------------------- */
typedef struct {
    int               roots;
    tn_tensor *const *root, *const *seed;
    int               count; /* targets of tn_grad_of */
    tn_tensor *const *wrt;
    tn_tensor       **grad;
    bool              retain, create_graph;
    const char       *name;   /* for messages */
    int               inputs; /* of a checkpoint: where the tape around it ends */
    tn_tensor *const *input;
} tn__backward_pass;
tn_status tn__backward(const tn__backward_pass *p);
/* The pass inside a checkpoint's backward: leaves collect in the pass around it, nothing recorded before `floor` is
 * entered. grad[i] is owned by the caller's scope; a tensor that is asked for twice gets its gradient once. */
tn_status tn__backward_inside(const tn__backward_pass *p, void *engine, uint64_t floor);
bool      tn__creates_graph(const tn_back *b);

#endif
