/* sparse_grad.c — the gradient of a table in which few rows were looked up, stored as those rows only.
 *
 * Stored are the ascending indices of the rows, [m], and the rows, [m, width]. New rows are added to the old ones in
 * the order of their indices, so that the bits are those of a dense gradient. If a dense gradient is needed (tn_grad, a
 * hook, another op on the same leaf), it is converted and stays dense. */
#include "autograd/tape/engine_parts.h"

#include <string.h>

/* The position of row in the ascending list. */
static int64_t place(const int64_t *list, int64_t n, int64_t row)
{
    int64_t low = 0;
    while (n > 1) {
        const int64_t half = n / 2;
        if (list[low + half] <= row) low += half;
        n -= half;
    }
    return low;
}

/* The indices of all rows, old and new, ascending, each once; owned by the caller. NULL: raised. */
static tn_tensor *numbers(const tn_tensor *old, const int64_t *index, int64_t n, int64_t skip)
{
    const int64_t before = old ? old->l.shape.d[0] : 0;
    tn_tensor    *both = tn__new(TN_I64, TN_SHAPE(before + n)), *list = NULL;
    int64_t       count = before, m = 0;
    if (!both) return NULL;
    int64_t *to = tn__ptr(both);
    if (before) memcpy(to, tn__ptr(old), (size_t)before * sizeof *to);
    for (int64_t i = 0; i < n; i++)
        if (index[i] != skip) to[count++] = index[i];
    const tn_tensor *sorted = tn_sort(tn_narrow(both, 0, 0, count), 0).values;
    if (!sorted) return NULL;
    const int64_t *from = tn__ptr(sorted);
    for (int64_t i = 0; i < count; i++)
        if (i == 0 || from[i] != from[i - 1]) to[m++] = from[i];
    if ((list = tn__new_owned(TN_I64, TN_SHAPE(m))) && m) memcpy(tn__ptr(list), to, (size_t)m * sizeof *to);
    return list;
}

bool tn__rows_add(const tn_tensor *leaf, tn_tensor **grad, tn_tensor **rows, const tn_tensor *index, const tn_tensor *g,
                  int64_t skip)
{
    if (*rows && !tn__rows_fit(leaf, *grad, *rows)) return false;
    const int64_t  n = tn_shape_numel(index->l.shape), width = leaf->l.shape.d[1];
    const size_t   row = (size_t)width * tn__dtype_bytes(leaf->dtype);
    const tn_scope s = tn_scope_begin();
    tn_tensor     *at = tn__new(TN_I64, index->l.shape), *list = NULL, *sum = NULL;
    bool           ok = false;
    if (!at) goto done;
    tn__copy(at, index);
    if (!(list = numbers(*rows, tn__ptr(at), n, skip))) goto done;
    const int64_t m = list->l.shape.d[0], *names = tn__ptr(list);
    if (!(sum = tn__new_owned(leaf->dtype, TN_SHAPE(m, width)))) goto done;
    tn__fill(sum, 0);
    for (int64_t i = 0; *rows && i < (*rows)->l.shape.d[0]; i++)
        memcpy((char *)tn__ptr(sum) + (size_t)place(names, m, ((const int64_t *)tn__ptr(*rows))[i]) * row,
               (const char *)tn__ptr(*grad) + (size_t)i * row, row);
    for (int64_t i = 0, *p = tn__ptr(at); i < n; i++) p[i] = p[i] == skip ? -1 : place(names, m, p[i]);
    tn__add_rows(sum, 0, at, g, -1);
    tn_drop(*grad), tn_drop(*rows);
    *grad = sum, *rows = list;
    ok = true;
done:
    tn_scope_end(s);
    if (!ok) tn_drop(list), tn_drop(sum);
    return ok;
}
