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
    bool       whole; /* ready is already the sum with the leaf's old gradient */
    /* Edges that lead to it and have not been passed yet, and those of them that are no lookups: counted where somebody
     * is told. */
    int64_t uses, products;
} tn__grad_slot;

typedef struct tn__engine_run {
    const tn__backward_pass *p;
    struct tn__engine_run   *outer;  /* leaves collect there */
    struct tn__engine_run   *around; /* the pass during which this one was called, by a checkpoint or a hook */
    uint64_t                 id, thread, floor;
    tn__grad_slot           *slots; /* in the order in which the leaves were met */
    int64_t                  nslots, capacity;
    int64_t                 *table; /* open addressing: 1 + the slot's index, 0 empty */
    int64_t                  table_size;
    tn_tensor              **found; /* tn_grad_of's gradients, one a target, kept */
    tn__node                *list;  /* largest number first */
    bool                     keeps; /* gradients wait for tn_retain_grad */
    tn_grad_ready            ready; /* is told of complete gradients; or NULL */
    void                    *ready_user;
} tn__engine_run;

/* The leaf's slot, made if need be. NULL: no memory. */
tn__grad_slot *tn__leaf_slot(tn__engine_run *r, tn_tensor *leaf);
/* Where a leaf's gradient goes: to a target of this pass or of one around it, or to the leaf's slot. NULL: nowhere
 * (bad: no memory for it). */
tn_tensor **tn__leaf_target(tn__engine_run *r, tn_tensor *leaf, bool *bad);
/* The same for input i of node n. */
tn_tensor **tn__target(tn__engine_run *r, const tn__node *n, int i, bool *bad);
/* Is that gradient wanted? */
bool tn__leads_on(tn__engine_run *r, const tn__node *n, int i);
/* Adds g to what is there; in place where no other handle shares the memory. */
bool tn__add_to(tn__engine_run *r, tn_tensor **to, tn_tensor *g);
/* g, or a copy of it: dense, of number type dt, and sharing memory with no other handle. The caller owns it.
 * */
tn_tensor *tn__own(tn_tensor *g, tn_dtype dt);
/* Calls the hooks of a result or leaf on its gradient. */
tn_status tn__hooked(tn__watch *w, int output, tn_tensor **g, const char *who);
/* Adds g's rows at index, except where the index is skip, to the rows that are there (NULL: none yet). */
bool tn__rows_add(const tn_tensor *leaf, tn_tensor **grad, tn_tensor **rows, const tn_tensor *index, const tn_tensor *g,
                  int64_t skip);
/* Runs the backward of n and passes its gradients on to where its inputs came from. */
tn_status tn__run_node(tn__engine_run *r, tn__node *n);

#endif
