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
    int64_t    uses;  /* edges to the leaf that have not been passed yet; counted only for ready() */
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
    bool                     open;  /* not ended yet: an exception of a hook leaves it so */
} tn__engine_run;

/* ---- accumulate.c: where gradients are added --------------------------------------------------------------------- */

/* The leaf's slot, created on first use. NULL: raised, out of memory. */
tn__grad_slot *tn__leaf_slot(tn__engine_run *r, tn_tensor *leaf);
/* The place of a leaf's gradient: a target of this pass or of an outer one, or the leaf's slot. NULL: the gradient is
 * not needed, or, with *bad, raised. */
tn_tensor **tn__leaf_target(tn__engine_run *r, tn_tensor *leaf, bool *bad);
/* The place of the gradient of input i of node n; NULL as for tn__leaf_target. */
tn_tensor **tn__target(tn__engine_run *r, const tn__node *n, int i, bool *bad);
/* True if result `output` of n is a target of tn_grad_of. */
bool tn__is_target(const tn__engine_run *r, const tn__node *n, int output);
/* True if that gradient is needed. */
bool tn__grad_needed(tn__engine_run *r, const tn__node *n, int i);
/* The pass in which leaf collects its gradient. NULL: none; then *target is the place of the gradient, or NULL. */
tn__engine_run *tn__collector(tn__engine_run *r, const tn_tensor *leaf, tn_tensor ***target);
/* Adds g to *to, which may be NULL; in place if no other handle shares its memory. False: raised. */
bool tn__add_to(tn__engine_run *r, tn_tensor **to, tn_tensor *g);
/* g, the gradient from gx[i], as an owned reference: that on the scope stack from mark up, or n's, or a new one. */
tn_tensor *tn__own_grad(tn__node *n, tn_tensor *const *gx, int i, tn_tensor *g, size_t mark);
/* True if no other handle shares g's memory, so that adding in place is safe. */
bool tn__exclusive(const tn_tensor *g);
/* g, or a copy of it: dense, of dtype dt, and sharing memory with no other handle. The caller owns it. NULL: raised. */
tn_tensor *tn__unshared(tn_tensor *g, tn_dtype dt);

/* ---- parts of a pass --------------------------------------------------------------------------------------------- */

/* run_node.c: runs the backward of n and adds its results to the gradients of the nodes and leaves that its inputs came
 * from. */
tn_status tn__run_node(tn__engine_run *r, tn__node *n);

#endif
