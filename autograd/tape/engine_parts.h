/* engine_parts.h — the features of a backward pass, which engine.c calls. Private to autograd/tape/. */
#ifndef TENON_AUTOGRAD_TAPE_ENGINE_PARTS_H
#define TENON_AUTOGRAD_TAPE_ENGINE_PARTS_H

#include "autograd/tape/engine.h"

/* engine_check.c: raises if a root has no gradient or does not fit its seed, or a target is not on the tape. */
tn_status tn__check_pass(const tn__backward_pass *p);

/* hooks.c: calls the hooks of result `output`, or of a leaf, on its gradient *g, and replaces it by what they
 * return. */
tn_status tn__call_hooks(tn__watch *w, int output, tn_tensor **g, const char *caller);

/* engine_leaves.c. First everything that can fail: calls the leaves' hooks and computes the gradients to attach; then
 * attaches them. */
tn_status tn__prepare_leaves(tn__engine_run *r);
void      tn__attach_leaves(tn__engine_run *r);
/* retained.c: sets n's gradients aside, added to those retained before; at the end retains them, or drops them after a
 * failure. */
tn_status tn__set_aside(tn__engine_run *r, tn__node *n);
void      tn__retain(const tn__engine_run *r, bool success);

/* engine_targets.c, for tn_grad_of: allocates r->found, with the gradients to add to (false: raised); marks the nodes
 * that lead to a target, the others are not computed; stores the gradients of targets that are results of n, whose turn
 * has come; calls the hooks of targets that are leaves; moves the gradients to the caller's scope. */
bool tn__begin_targets(tn__engine_run *r);
void tn__mark_wanted(tn__engine_run *r);
void tn__take_targets(tn__engine_run *r, const tn__node *n);
void tn__target_hooks(tn__engine_run *r);
void tn__deliver_targets(tn__engine_run *r);

/* engine_ready.c, for tn_backward_notify: counts the uses of each leaf; after node n reports the leaves whose last use
 * it was. A checkpoint may use any leaf: then nothing is reported. */
tn_status tn__count_uses(tn__engine_run *r);
void      tn__report_ready(tn__engine_run *r, const tn__node *n);

/* sparse_grad.c: adds g's rows at index, except where the index is skip, to the rows in *grad, *rows (NULL: none yet).
 * False: raised. */
bool tn__rows_add(const tn_tensor *leaf, tn_tensor **grad, tn_tensor **rows, const tn_tensor *index, const tn_tensor *g,
                  int64_t skip);

#endif
