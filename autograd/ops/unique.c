/* unique — the different values of a tensor in ascending order, each element's index among them, and their numbers;
 * without gradient. Sorted, a value is new where it differs from the one before; a running count of the new values is
 * the rank of each element. NaN differs from NaN. */
#include "autograd/rooms/room.h"

tn_uniques tn_unique(tn_tensor *x)
{
    const tn_uniques none = {NULL, NULL, NULL};
    if (tn__blocked()) return none;
    if (!x) return tn_raise(TN_EINVAL, "unique: x is NULL"), none;
    const tn_scope s = tn_no_grad_begin();
    const int64_t  n = tn_numel(x), later = n ? n - 1 : 0;
    const tn_pair  sorted = tn_sort(tn_reshape(x, TN_SHAPE(n)), 0);
    tn_tensor     *v = sorted.values, *first = tn_ones_of(TN_BOOL, TN_SHAPE(n - later));
    first = tn_cat(0, first, tn_ne(tn_narrow(v, 0, n - later, later), tn_narrow(v, 0, 0, later)));
    tn_tensor *rank = tn_add_scalar(tn_cumsum(first, 0), -1);
    tn_tensor *inverse = tn_scatter(tn_zeros_of(TN_I64, TN_SHAPE(n)), 0, sorted.indices, rank);
    tn_uniques u = {tn_masked_select(v, first), tn_reshape(inverse, tn_shape_of(x)), tn_bincount(rank, NULL, 0)};
    tn_scope_return_list(s, 3, (tn_tensor *[]){u.values, u.inverse, u.counts});
    return tn_error() == TN_OK ? u : none;
}
