/* leave_list.c — tn_leave for several results. */
#include "nn/base/look_private.h"
#include "nn/base/nn_private.h"

void tn_leave_list(tn_frame f, int n, tn_tensor **const *y)
{
    enum { MOST = 16 };
    tn_tensor *t[MOST];
    if (n > 0 && !tn__not_null("tn_leave_list", "the list of results", y)) n = 0;
    if (n > MOST) tn_raise(TN_EINVAL, "tn_leave_n: %d results, at most %d are supported", n, MOST);
    if (tn__look_active() && n > 0 && tn_error() == TN_OK) *y[0] = tn__look_result(&f, *y[0]);
    const bool ok = tn_error() == TN_OK;
    if (!ok) tn__restore_generator(f.generator, f.began);
    for (int i = 0; i < n; i++) {
        if (!ok) *y[i] = NULL;
        else t[i] = *y[i];
    }
    if (ok) tn_scope_return_list(f.scope, n, t);
    else tn_scope_end(f.scope);
}
