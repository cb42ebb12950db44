/* engine.h — the state of a backward pass, shared by engine.c (the walk) and the files that it calls. Private to
 * them. */
#ifndef TENON_AUTOGRAD_TAPE_ENGINE_H
#define TENON_AUTOGRAD_TAPE_ENGINE_H

#include "autograd/tape/tape.h"

typedef struct {
    tn_tensor *leaf;  /* owned */
    tn_tensor *grad;  /* owned; NULL: none yet */
    tn_tensor *rows;  /* indices of the rows that grad holds; NULL: all rows */
    tn_tensor *ready; /* the gradient that will be attached to the leaf */
    bool       whole; /* ready already includes the leaf's old gradient */
    /* Edges to the leaf that have not been passed yet; those of them that are not lookups. Counted only for ready(). */
    int64_t uses, products;
} tn__grad_slot;

typedef struct tn__engine_run {
    const tn__backward_pass *p;
    struct tn__engine_run   *outer;  /* the pass in which leaves collect; NULL: this one */
    struct tn__engine_run   *around; /* the pass that called this one, from a checkpoint or a hook */
    uint64_t                 id, thread, floor;
    tn__grad_slot           *slots; /* in the order of the leaves' first gradients */
    int64_t                  nslots, capacity;
    int64_t                 *table; /* open addressing: 1 + the slot's index, 0 empty */
    int64_t                  table_size;
    tn_tensor              **found; /* tn_grad_of's gradients, one for each target, owned; NULL: tn_backward */
    tn__node                *list;  /* largest number first */
    bool                     keeps; /* gradients are set aside for tn_retain_grad */
    tn_grad_ready            ready; /* p->ready, or NULL: complete gradients are not reported */
} tn__engine_run;

/* ---- accumulate.c, leaf_slots.c: where gradients are added
 * -------------------------------------------------------- */

/* The leaf's slot, created on first use. NULL: raised, out of memory. */
tn__grad_slot *tn__leaf_slot(tn__engine_run *r, tn_tensor *leaf);
/* The place of a leaf's gradient: a target of this pass or of an outer one, or the leaf's slot. NULL: the gradient is
 * not needed, or, with *bad, raised. */
tn_tensor **tn__leaf_target(tn__engine_run *r, tn_tensor *leaf, bool *bad);
/* The place of the gradient of input i of node n; NULL as for tn__leaf_target. */
tn_tensor **tn__target(tn__engine_run *r, const tn__node *n, int i, bool *bad);
/* True if that gradient is needed. */
bool tn__grad_needed(tn__engine_run *r, const tn__node *n, int i);
/* The pass in which leaf collects its gradient. NULL: none; then *target is the place of the gradient, or NULL. */
tn__engine_run *tn__collector(tn__engine_run *r, const tn_tensor *leaf, tn_tensor ***target);
/* Adds g to *to, which may be NULL; in place if no other handle shares its memory. False: raised. */
bool tn__add_to(tn__engine_run *r, tn_tensor **to, tn_tensor *g);
/* True if no other handle shares g's memory, so that adding in place is safe. */
bool tn__exclusive(const tn_tensor *g);
/* g, or a copy of it: dense, of dtype dt, and sharing memory with no other handle. The caller owns it. NULL: raised. */
tn_tensor *tn__unshared(tn_tensor *g, tn_dtype dt);

/* ---- parts of a pass --------------------------------------------------------------------------------------------- */

/* run_node.c: runs the backward of n and adds its results to the gradients of the nodes and leaves that its inputs came
 * from. */
tn_status tn__run_node(tn__engine_run *r, tn__node *n);
/* engine_check.c: raises if a root has no gradient or does not fit its seed, or a target is not on the tape. */
tn_status tn__check_pass(const tn__backward_pass *p);

/* hooks.c: calls the hooks of result `output`, or of a leaf, on its gradient *g, and replaces it by what they
 * return. */
tn_status tn__call_hooks(tn__watch *w, int output, tn_tensor **g, const char *caller);

/* engine_leaves.c. First everything that can fail: calls the leaves' hooks and computes the gradients to attach; then
 * attaches them. For tn_retain_grad: sets n's gradients aside, added to those retained before; at the end retains them,
 * or drops them after a failure. */
tn_status tn__prepare_leaves(tn__engine_run *r);
void      tn__attach_leaves(tn__engine_run *r);
tn_status tn__set_aside(tn__engine_run *r, tn__node *n);
void      tn__retain(const tn__engine_run *r, bool success);

/* engine_targets.c, for tn_grad_of: marks the nodes that lead to a target, the others are not computed; stores the
 * gradients of targets that are results of n, whose turn has come; calls the hooks of targets that are leaves; moves
 * the gradients to the caller's scope. */
void tn__mark_wanted(tn__engine_run *r);
void tn__take_targets(tn__engine_run *r, const tn__node *n);
void tn__target_hooks(tn__engine_run *r);
void tn__deliver_targets(tn__engine_run *r);

/* engine_ready.c, for tn_backward_telling: counts the uses of each leaf; after node n reports the leaves whose last use
 * it was, or whose other uses are all lookups. A checkpoint may use any leaf: then nothing is reported. */
tn_status tn__count_uses(tn__engine_run *r);
void      tn__report_ready(tn__engine_run *r, const tn__node *n);

/* sparse_grad.c: adds g's rows at index, except where the index is skip, to the rows in *grad, *rows (NULL: none yet).
 * False: raised. */
bool tn__rows_add(const tn_tensor *leaf, tn_tensor **grad, tn_tensor **rows, const tn_tensor *index, const tn_tensor *g,
                  int64_t skip);

#endif
