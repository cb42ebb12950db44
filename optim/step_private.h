/* step_private.h — the parts of a step that are in files of their own. Private. */
#ifndef TENON_OPTIM_STEP_PRIVATE_H
#define TENON_OPTIM_STEP_PRIVATE_H

#include "optim/optim_private.h"

/* True if the weight and its gradient g still have the dtype and shape of the optimizer's creation; else raises
 * (weight_check.c). */
bool tn__weight_unchanged(const tn_optimizer *o, const tn__weight *w, const tn_tensor *g);

/* The rows of the gradient if it is row-sparse and only these rows need an update; else NULL (sparse_step.c). */
const tn_tensor *tn__sparse_rows(const tn_optimizer *o, const tn__weight *w, tn_tensor **rows);
/* The number of rows from rows[at] on that are adjacent in the weight; 0 at the end (sparse_step.c). */
int64_t tn__adjacent_rows(const tn_tensor *rows, int64_t at);

#endif
