/* sparse_step.c — a step that updates only the rows of a row-sparse gradient. */
#include "optim/step_private.h"

const tn_tensor *tn__sparse_rows(const tn_optimizer *o, const tn__weight *w, tn_tensor **rows)
{
    const tn_tensor *g = tn_grad_rows(w->t, rows);
    return g && w->n && w->to - w->from == w->n && tn_is_contiguous(w->t) && tn_dtype_of(w->t) == w->dtype &&
                   tn_dtype_of(g) == w->dtype && tn_shape_equal(tn_shape_of(w->t), w->shape) && o->kind->by_rows &&
                   o->kind->by_rows(o, o->group[w->group].option)
               ? g
               : NULL;
}

int64_t tn__adjacent_rows(const tn_tensor *rows, int64_t at)
{
    const int64_t *row = tn_data(rows), n = tn_numel(rows);
    int64_t        end = at;
    while (end < n && row[end] - row[at] == end - at) end++;
    return end - at;
}
