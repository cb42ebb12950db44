/* average.c — the mean of several state dicts. Sums are computed in f64, so that the mean of equal values is exact. */
#include "nn/base/nn_private.h"

/* Adds the saved tensors of m to the sums, one per tensor; NULL is a sum without terms. */
static bool add(tn_module *m, tn_tensor **sum)
{
    for (tn_each t = tn_module_each(m, TN_EACH_SAVED); tn_error() == TN_OK && tn_next(&t); sum++) {
        if (tn_is_packed(t.tensor))
            return tn_raise_false(
                TN_EUNSUPPORTED,
                "tn_load_mean: '%s' is packed (tn_quantize, tn_halve), and packed weights have no mean; "
                "average before packing",
                t.name);
        if (!tn_dtype_is_float(tn_dtype_of(t.tensor))) continue;
        if (!*sum) *sum = tn_zeros_of(TN_F64, tn_shape_of(t.tensor));
        const tn_scope s = tn_scope_begin();
        tn_add_(*sum, tn_to(t.tensor, TN_F64));
        tn_scope_end(s);
    }
    return tn_error() == TN_OK;
}

tn_status tn_load_mean(void *m, int n, const tn_load_args *from)
{
    size_t count = 0, i = 0;
    if (!tn_module_ready("tn_load_mean", m)) return tn_error();
    if (n < 1 || !from) return tn_raise(TN_EINVAL, "tn_load_mean: a mean needs at least 1 file, got %d", from ? n : 0);
    for (int k = 0; k < n; k++)
        if (from[k].allow_missing || from[k].allow_unexpected || from[k].allow_shape_mismatch)
            return tn_raise(TN_EINVAL, "tn_load_mean: .allow_... is set, but each file must fit completely; remove it");
    for (tn_each t = tn_module_each(m, TN_EACH_SAVED); tn_next(&t);) count++;
    tn_tensor    **sum = tn_mem_get((count + 1) * sizeof *sum);
    tn_module     *mean = sum ? tn_module_copy(m) : NULL; /* m does not change before all files have been read */
    const tn_scope s = tn_no_grad_begin();
    bool           ok = mean != NULL;
    for (int k = 0; ok && k < n; k++) ok = tn_load_run(mean, from[k]) == TN_OK && add(mean, sum);
    if (ok)
        for (tn_each t = tn_module_each(mean, TN_EACH_SAVED); tn_next(&t); i++)
            if (sum[i]) tn_copy_from(t.tensor, tn_div_scalar_(sum[i], n));
    if (ok && tn_error() == TN_OK) tn_module_assign(m, mean);
    tn_scope_end(s);
    tn_module_free(mean);
    tn_mem_put(sum, (count + 1) * sizeof *sum);
    return tn_error();
}
