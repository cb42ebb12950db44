/* history.h — the nodes of tensors whose memory an in-place op has changed. Private to autograd/. */
#ifndef TENON_AUTOGRAD_TAPE_HISTORY_H
#define TENON_AUTOGRAD_TAPE_HISTORY_H

#include "autograd/tape/tape.h"

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

#endif
