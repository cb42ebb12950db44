/* leave_list.c — tn_leave for several results. */
#include "nn/base/look_private.h"
#include "nn/base/nn_private.h"

void tn_leave_list(tn_frame f, int n, tn_tensor **const *y)
{
    enum { FEW = 16 };
    tn_tensor   *few[FEW], **t = few;
    const size_t bytes = n > FEW ? (size_t)n * sizeof *t : 0;
    if (n > 0 && !tn__not_null("tn_leave_list", "the list of results", y)) n = 0;
    if (bytes && tn_error() == TN_OK) t = tn_mem_get(bytes); /* NULL: raised */
    if (tn__look_active() && n > 0 && tn_error() == TN_OK) *y[0] = tn__look_result(&f, *y[0]);
    const bool ok = tn_error() == TN_OK;
    if (!ok) tn__restore_generator(f.generator, f.began);
    for (int i = 0; i < n; i++) {
        if (!ok) *y[i] = NULL;
        else t[i] = *y[i];
    }
    if (ok) tn_scope_return_list(f.scope, n, t);
    else tn_scope_end(f.scope);
    if (t && t != few) tn_mem_put(t, bytes);
}
