/* view.c — the geometry of views: from the layout of a tensor to the layout of its view. Pure functions that touch no
 * data; an invalid request is raised with the op's name.
 *
 * For empty views the offset is unchanged, so that no address outside the storage is ever formed. */
#include "core/base/checked.h"
#include "core/tensor/layout.h"

static bool no_dims(const char *op, const tn__layout *x)
{
    if (x->shape.n) return false;
    tn_raise(TN_ESHAPE, "%s: a 0-d tensor has no dim to slice; add one with tn_unsqueeze(x, 0)", op);
    return true;
}

static bool too_many(const char *op, int n)
{
    if (n <= TN_MAX_DIMS) return false;
    tn_raise(TN_ESHAPE, "%s: the result would have %d dims, more than %d", op, n, TN_MAX_DIMS);
    return true;
}

static void append_dim(tn__layout *l, int64_t size, int64_t stride)
{
    l->shape.d[l->shape.n] = size, l->stride[l->shape.n] = stride;
    l->shape.n++;
}

static void remove_dim(tn__layout *l, int dim)
{
    l->shape.n--;
    for (int i = dim; i < l->shape.n; i++) l->shape.d[i] = l->shape.d[i + 1], l->stride[i] = l->stride[i + 1];
}

/* Dim `dim` of x, from start, `count` elements `step` apart. */
static void cut(const tn__layout *x, int dim, int64_t start, int64_t count, int64_t step, tn__layout *y)
{
    *y = *x;
    y->shape.d[dim] = count;
    if (count > 1) y->stride[dim] *= step; /* with at most one element the step is arbitrary */
    if (tn_shape_numel(y->shape)) y->offset += start * x->stride[dim];
}

/* ---- the same elements under another shape --------------------------------------------------------------------- */

bool tn__view_shape(const char *op, tn_shape from, tn_shape *to)
{
    char    text_from[192], text_to[192];
    int     open = -1;
    int64_t known = 1;
    if (to->n < 0 || to->n > TN_MAX_DIMS)
        return tn_raise_false(TN_ESHAPE, "%s: a shape has 0 to %d dims, got %d", op, TN_MAX_DIMS, to->n);
    for (int i = 0; i < to->n; i++) {
        if (to->d[i] != -1) continue;
        if (open >= 0)
            return tn_raise_false(TN_ESHAPE, "%s: only one dim may be -1, but %s has several", op,
                                  tn_shape_text(*to, text_to, sizeof text_to));
        open = i;
    }
    tn_shape rest = *to;
    if (open >= 0) rest.d[open] = 1;
    if (!tn__shape_check(op, TN_U8, rest)) return false;
    known = tn_shape_numel(rest);
    const int64_t n = tn_shape_numel(from);
    if (open >= 0 && known == 0)
        return tn_raise_false(TN_ESHAPE, "%s: with a size of 0 the -1 in %s is ambiguous; write the size", op,
                              tn_shape_text(*to, text_to, sizeof text_to));
    if (open >= 0 ? n % known != 0 : n != known)
        return tn_raise_false(TN_ESHAPE, "%s: %s has %lld elements, which do not fill %s", op,
                              tn_shape_text(from, text_from, sizeof text_from), (long long)n,
                              tn_shape_text(*to, text_to, sizeof text_to));
    if (open >= 0) to->d[open] = n / known;
    return true;
}

bool tn__view_flatten(const char *op, tn_shape x, int first, int last, tn_shape *to)
{
    if (!tn__wrap_dim(op, &first, x.n) || !tn__wrap_dim(op, &last, x.n)) return false;
    if (first > last)
        return tn_raise_false(TN_EINVAL, "%s: the first dim, %d, comes after the last, %d", op, first, last);
    if (x.n == 0) return *to = (tn_shape){.n = 1, .d = {1}}, true;
    *to = (tn_shape){.n = 0, .d = {0}};
    for (int i = 0; i < x.n; i++) {
        if (i > first && i <= last) to->d[to->n - 1] *= x.d[i];
        else to->d[to->n++] = x.d[i];
    }
    return true;
}

bool tn__view_squeeze(const char *op, tn_shape x, int dim, tn_shape *to)
{
    const bool all = dim == TN__ALL_DIMS;
    if (!all && !tn__wrap_dim(op, &dim, x.n)) return false;
    *to = (tn_shape){.n = 0, .d = {0}};
    for (int i = 0; i < x.n; i++)
        if (x.d[i] != 1 || (!all && i != dim)) to->d[to->n++] = x.d[i];
    return true;
}

bool tn__view_unsqueeze(const char *op, tn_shape x, int dim, tn_shape *to)
{
    const int n = x.n + 1;
    if (too_many(op, n)) return false;
    if (dim < -n || dim >= n)
        return tn_raise_false(TN_EINDEX, "%s: dim %d is out of range: a new dim of a %d-d tensor must be from %d to %d",
                              op, dim, x.n, -n, n - 1);
    if (dim < 0) dim += n;
    *to = (tn_shape){.n = n};
    for (int i = 0; i < n; i++) to->d[i] = i == dim ? 1 : x.d[i - (i > dim)];
    return true;
}

/* ---- permuted dims ----------------------------------------------------------------------------------------------- */

bool tn__view_permute(const char *op, const tn__layout *x, tn_dims order, tn__layout *y)
{
    bool used[TN_MAX_DIMS] = {false};
    if (order.n != x->shape.n)
        return tn_raise_false(TN_EINVAL, "%s: the order lists %d dims, the tensor has %d", op, order.n, x->shape.n);
    *y = *x;
    for (int i = 0; i < order.n; i++) {
        int from = order.d[i];
        if (!tn__wrap_dim(op, &from, x->shape.n)) return false;
        if (used[from]) return tn_raise_false(TN_EINVAL, "%s: dim %d is listed twice", op, from);
        used[from] = true;
        y->shape.d[i] = x->shape.d[from], y->stride[i] = x->stride[from];
    }
    return true;
}

bool tn__view_transpose(const char *op, const tn__layout *x, int dim0, int dim1, tn__layout *y)
{
    if (!tn__wrap_dim(op, &dim0, x->shape.n) || !tn__wrap_dim(op, &dim1, x->shape.n)) return false;
    *y = *x;
    if (x->shape.n == 0) return true;
    y->shape.d[dim0] = x->shape.d[dim1], y->stride[dim0] = x->stride[dim1];
    y->shape.d[dim1] = x->shape.d[dim0], y->stride[dim1] = x->stride[dim0];
    return true;
}

/* ---- repetition without copies --------------------------------------------------------------------------------- */

bool tn__view_expand(const char *op, const tn__layout *x, tn_shape to, tn__layout *y)
{
    char      text_from[192], text_to[192];
    const int lead = to.n - x->shape.n;
    if (to.n > TN_MAX_DIMS || lead < 0)
        return tn_raise_false(TN_ESHAPE, "%s: %s has %d dims and expands to at least that many, at most %d, not to %d",
                              op, tn_shape_text(x->shape, text_from, sizeof text_from), x->shape.n, TN_MAX_DIMS, to.n);
    tn_shape asked = to;
    for (int i = 0; i < to.n; i++) {
        const int64_t size = i < lead ? 1 : x->shape.d[i - lead];
        if (to.d[i] == -1 && i >= lead) to.d[i] = size;
        if (to.d[i] == size || (size == 1 && to.d[i] >= 0)) continue;
        return tn_raise_false(TN_ESHAPE, "%s: %s does not expand to %s: dim %d would go from %lld to %lld", op,
                              tn_shape_text(x->shape, text_from, sizeof text_from),
                              tn_shape_text(asked, text_to, sizeof text_to), i, (long long)size, (long long)to.d[i]);
    }
    if (!tn__shape_check(op, TN_F64, to)) return false;
    *y = tn__layout_expand(x, to);
    return true;
}

/* ---- parts ----------------------------------------------------------------------------------------------------- */

bool tn__view_slice(const char *op, const tn__layout *x, int dim, int64_t start, int64_t end, int64_t step,
                    tn__layout *y)
{
    if (no_dims(op, x) || !tn__wrap_dim(op, &dim, x->shape.n)) return false;
    if (step < 1)
        return tn_raise_false(TN_EINVAL, "%s: the step must be at least 1, got %lld; tn_flip reverses a dim", op,
                              (long long)step);
    const int64_t n = x->shape.d[dim];
    if (start < 0) start = tn__max_i64(start + n, 0);
    if (end < 0) end = tn__max_i64(end + n, 0);
    start = tn__min_i64(start, n), end = tn__min_i64(end, n);
    cut(x, dim, start, end > start ? (end - start - 1) / step + 1 : 0, step, y);
    return true;
}

bool tn__view_narrow(const char *op, const tn__layout *x, int dim, int64_t start, int64_t length, tn__layout *y)
{
    if (no_dims(op, x) || !tn__wrap_dim(op, &dim, x->shape.n)) return false;
    const int64_t n = x->shape.d[dim];
    if (start < -n || start > n)
        return tn_raise_false(TN_EINDEX, "%s: start %lld is out of range for dim %d of size %lld", op, (long long)start,
                              dim, (long long)n);
    if (start < 0) start += n;
    if (length < 0 || length > n - start)
        return tn_raise_false(TN_EINDEX, "%s: %lld elements from %lld on do not fit into dim %d of size %lld", op,
                              (long long)length, (long long)start, dim, (long long)n);
    cut(x, dim, start, length, 1, y);
    return true;
}

bool tn__view_select(const char *op, const tn__layout *x, int dim, int64_t index, tn__layout *y)
{
    if (no_dims(op, x) || !tn__wrap_dim(op, &dim, x->shape.n)) return false;
    const int64_t n = x->shape.d[dim];
    if (index < -n || index >= n)
        return tn_raise_false(TN_EINDEX, "%s: index %lld is out of range for dim %d of size %lld", op, (long long)index,
                              dim, (long long)n);
    cut(x, dim, index < 0 ? index + n : index, 1, 1, y);
    remove_dim(y, dim);
    return true;
}

bool tn__view_diagonal(const char *op, const tn__layout *x, int64_t offset, int dim0, int dim1, tn__layout *y)
{
    if (x->shape.n < 2)
        return tn_raise_false(TN_ESHAPE, "%s: needs at least 2 dims, the tensor has %d", op, x->shape.n);
    if (!tn__wrap_dim(op, &dim0, x->shape.n) || !tn__wrap_dim(op, &dim1, x->shape.n)) return false;
    if (dim0 == dim1) return tn_raise_false(TN_EINVAL, "%s: both dims are %d", op, dim0);
    const int64_t rows = x->shape.d[dim0], cols = x->shape.d[dim1];
    int64_t       n = 0;
    if (offset >= 0 && offset < cols) n = tn__min_i64(rows, cols - offset);
    if (offset < 0 && offset > -rows) n = tn__min_i64(rows + offset, cols);
    *y = *x;
    if (n && tn_shape_numel(x->shape)) y->offset += offset >= 0 ? offset * x->stride[dim1] : -offset * x->stride[dim0];
    remove_dim(y, dim0 > dim1 ? dim0 : dim1);
    remove_dim(y, dim0 > dim1 ? dim1 : dim0);
    append_dim(y, n, n > 1 ? x->stride[dim0] + x->stride[dim1] : 1);
    return true;
}

bool tn__view_unfold(const char *op, const tn__layout *x, int dim, int64_t size, int64_t step, tn__layout *y)
{
    if (!tn__wrap_dim(op, &dim, x->shape.n) || too_many(op, x->shape.n + 1)) return false;
    const int64_t n = x->shape.n ? x->shape.d[dim] : 1, stride = x->shape.n ? x->stride[dim] : 1;
    if (step < 1) return tn_raise_false(TN_EINVAL, "%s: the step must be at least 1, got %lld", op, (long long)step);
    if (size < 0 || size > n)
        return tn_raise_false(TN_EINVAL, "%s: a window of %lld does not fit into dim %d of size %lld", op,
                              (long long)size, dim, (long long)n);
    tn__layout l = *x;
    if (x->shape.n) cut(x, dim, 0, (n - size) / step + 1, step, &l);
    append_dim(&l, size, size > 1 ? stride : 1);
    if (!tn__shape_check(op, TN_F64, l.shape)) return false;
    *y = l;
    return true;
}
