/* functional.c — a module called with other tensors in place of its parameters. */
#include "nn/base/nn_private.h"

tn_tensor *tn_module_functional_call(void *m, tn_tensor *x, int n, tn_tensor *const *of, tn_tensor *const *by)
{
    if (!tn_module_ready("tn_functional_call", m)) return NULL;
    const tn_scope s = tn_functional_begin(n, of, by);
    return tn_scope_return(s, tn_module_call(m, x));
}
