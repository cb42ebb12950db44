/* engine.h — one pass over the tape, as engine.c (the walk), run_node.c (one node) and accumulate.c (where gradients
 * go) share it. Private to them. */
#ifndef TENON_AUTOGRAD_TAPE_ENGINE_H
#define TENON_AUTOGRAD_TAPE_ENGINE_H

#include "autograd/tape/tape.h"

typedef struct {
    tn_tensor *leaf;  /* kept */
    tn_tensor *grad;  /* kept; NULL so far */
    tn_tensor *rows;  /* which rows grad has; NULL: all */
    tn_tensor *ready; /* what will be attached */
    bool       whole; /* ready is the sum with what hangs there already */
} tn__grad_slot;

typedef struct tn__engine_run {
    const tn__backward_pass *p;
    struct tn__engine_run   *outer;  /* leaves collect there */
    struct tn__engine_run   *around; /* what runs now and called this one, from a checkpoint or a hook */
    uint64_t                 id, thread, floor;
    tn__grad_slot           *slots; /* in the order in which the leaves were met */
    int64_t                  nslots, capacity;
    int64_t                 *table; /* open addressing: 1 + the slot's index, 0 empty */
    int64_t                  table_size;
    tn_tensor              **found; /* tn_grad_of's gradients, one a target, kept */
    tn__node                *list;  /* largest number first */
    bool                     keeps; /* gradients wait for tn_retain_grad */
} tn__engine_run;

/* Where a leaf's gradient goes: to a target of this pass or of one around it, or to the leaf's slot. NULL: nowhere
 * (bad: no memory for it). */
tn_tensor **tn__leaf_target(tn__engine_run *r, tn_tensor *leaf, bool *bad);
/* The same for input i of node n. */
tn_tensor **tn__target(tn__engine_run *r, const tn__node *n, int i, bool *bad);
/* Is that gradient wanted? */
bool tn__leads_on(tn__engine_run *r, const tn__node *n, int i);
/* Adds g to what is there; in place where nobody else sees it. */
bool tn__add_to(tn__engine_run *r, tn_tensor **to, tn_tensor *g);
/* g as somebody may own it: dense, of number type dt, and shared with nobody. The caller owns the result. */
tn_tensor *tn__own(tn_tensor *g, tn_dtype dt);
/* Calls the hooks of a result or leaf on its gradient. */
tn_status tn__hooked(tn__watch *w, int output, tn_tensor **g, const char *who);
/* Adds g's rows at index, but for the index skip, to the rows that are there (NULL: none yet). */
bool tn__rows_add(const tn_tensor *leaf, tn_tensor **grad, tn_tensor **rows, const tn_tensor *index, const tn_tensor *g,
                  int64_t skip);
/* Runs the backward of n and hands its gradients on. */
tn_status tn__run_node(tn__engine_run *r, tn__node *n);

#endif
