/* layout.c — shapes and strides as plain values: checks, broadcasting, reshaping. Touches no data. */
#include "core/tensor/tensor.h"

int64_t tn_shape_numel(tn_shape s)
{
    int64_t n = 1;
    bool    fits = true;
    for (int i = 0; i < s.n && i < TN_MAX_DIMS; i++) fits &= tn__mul_i64(n, s.d[i], &n);
    return fits ? n : -1;
}

bool tn_shape_equal(tn_shape a, tn_shape b)
{
    if (a.n != b.n) return false;
    for (int i = 0; i < a.n && i < TN_MAX_DIMS; i++)
        if (a.d[i] != b.d[i]) return false;
    return true;
}

const char *tn_shape_text(tn_shape s, char *buf, size_t size)
{
    if (!buf || !size) return buf;
    size_t at = (size_t)snprintf(buf, size, "[");
    for (int i = 0; i < s.n && i < TN_MAX_DIMS && at < size; i++)
        at += (size_t)snprintf(buf + at, size - at, "%s%lld", i ? ", " : "", (long long)s.d[i]);
    if (at < size) snprintf(buf + at, size - at, "]");
    return buf;
}

bool tn__shape_check(const char *op, tn_dtype dt, tn_shape s)
{
    if ((size_t)dt > TN_BOOL) return tn_raise_false(TN_EDTYPE, "%s: %d is not a dtype", op, (int)dt);
    if (s.n < 0 || s.n > TN_MAX_DIMS)
        return tn_raise_false(TN_ESHAPE, "%s: a shape has 0 to %d dims, got %d", op, TN_MAX_DIMS, s.n);
    char text[192];
    /* Zeros are skipped, so that the product of the other dims is also checked: [0, 2^62, 2^62] has no strides. */
    int64_t n = (int64_t)tn__dtype_bytes(dt);
    for (int i = 0; i < s.n; i++) {
        if (s.d[i] < 0)
            return tn_raise_false(TN_ESHAPE, "%s: %s has a negative size in dim %d", op,
                                  tn_shape_text(s, text, sizeof text), i);
        if (s.d[i] > 0 && !tn__mul_i64(n, s.d[i], &n))
            return tn_raise_false(TN_ESHAPE, "%s: %s is too large: its bytes do not fit in 63 bits", op,
                                  tn_shape_text(s, text, sizeof text));
    }
    return true;
}

void tn__set_contiguous(tn__layout *l, const tn_shape *s)
{
    int64_t step = 1;
    l->shape = *s, l->offset = 0;
    l->stride[0] = l->stride[1] = 0;
    for (int i = s->n - 1; i >= 0; i--) {
        l->stride[i] = step;
        step *= s->d[i] ? s->d[i] : 1;
    }
}

tn__layout tn__layout_of_shape(tn_shape s)
{
    tn__layout l;
    tn__set_contiguous(&l, &s);
    return l;
}

bool tn__layout_contiguous(const tn__layout *l)
{
    int64_t step = 1;
    for (int i = l->shape.n - 1; i >= 0; i--) {
        if (l->shape.d[i] == 0) return true;
        if (l->shape.d[i] == 1) continue;
        if (l->stride[i] != step) return false;
        step *= l->shape.d[i];
    }
    return true;
}

bool tn__wrap_dim(const char *op, int *dim, int ndim)
{
    int n = ndim ? ndim : 1; /* dim 0 and -1 of a 0-d tensor: the element itself, as in PyTorch */
    if (*dim < -n || *dim >= n)
        return tn_raise_false(TN_EINDEX, "%s: dim %d is out of range for a %d-d tensor", op, *dim, ndim);
    if (*dim < 0) *dim += n;
    return true;
}

bool tn__wrap_dims(const char *op, tn_dims *dims, int ndim)
{
    if (dims->n < 0 || dims->n > TN_MAX_DIMS)
        return tn_raise_false(TN_EINVAL, "%s: a list of dims has 0 to %d entries, got %d", op, TN_MAX_DIMS, dims->n);
    if (dims->n == 0) {
        dims->n = ndim;
        for (int i = 0; i < ndim; i++) dims->d[i] = i;
        return true;
    }
    bool used[TN_MAX_DIMS] = {false};
    for (int i = 0; i < dims->n; i++) {
        if (!tn__wrap_dim(op, &dims->d[i], ndim)) return false;
        if (used[dims->d[i]]) return tn_raise_false(TN_EINVAL, "%s: dim %d is listed twice", op, dims->d[i]);
        used[dims->d[i]] = true;
    }
    int n = 0;
    for (int i = 0; i < ndim; i++)
        if (used[i]) dims->d[n++] = i;
    dims->n = n; /* 0 for the only dim of a 0-d tensor */
    return true;
}

bool tn__broadcast(const char *op, tn_shape a, tn_shape b, tn_shape *to)
{
    tn_shape r = {.n = a.n > b.n ? a.n : b.n};
    for (int i = 1; i <= r.n; i++) {
        int64_t x = i <= a.n ? a.d[a.n - i] : 1, y = i <= b.n ? b.d[b.n - i] : 1;
        if (x != y && x != 1 && y != 1) {
            char ta[192], tb[192];
            return tn_raise_false(
                TN_ESHAPE, "%s: shapes %s and %s do not broadcast: dim -%d is %lld in one and %lld in the other", op,
                tn_shape_text(a, ta, sizeof ta), tn_shape_text(b, tb, sizeof tb), i, (long long)x, (long long)y);
        }
        r.d[r.n - i] = x == 1 ? y : x;
    }
    *to = r;
    return true;
}

bool tn__broadcastable(tn_shape from, tn_shape to)
{
    if (from.n > to.n) return false;
    for (int i = 1; i <= from.n; i++)
        if (from.d[from.n - i] != 1 && from.d[from.n - i] != to.d[to.n - i]) return false;
    return true;
}

tn__layout tn__layout_expand(const tn__layout *l, tn_shape to)
{
    tn__layout r = {.shape = to, .offset = l->offset};
    int        lead = to.n - l->shape.n;
    for (int i = 0; i < to.n; i++) r.stride[i] = i < lead || l->shape.d[i - lead] != to.d[i] ? 0 : l->stride[i - lead];
    return r;
}

tn__layout tn__layout_insert(tn__layout l, int at)
{
    for (int i = l.shape.n++; i > at; i--) l.shape.d[i] = l.shape.d[i - 1], l.stride[i] = l.stride[i - 1];
    l.shape.d[at] = 1, l.stride[at] = 0;
    return l;
}

/* Splits the old dims into groups that are contiguous; each group must hold a whole number of new dims. */
bool tn__layout_reshape(const tn__layout *l, tn_shape to, tn__layout *r)
{
    *r = (tn__layout){.shape = to, .offset = l->offset};
    if (tn_shape_numel(to) == 0) {
        *r = tn__layout_of_shape(to);
        r->offset = l->offset;
        return true;
    }
    int i = l->shape.n - 1, j = to.n - 1;
    while (i >= 0 || j >= 0) {
        while (i >= 0 && l->shape.d[i] == 1) i--;
        if (i < 0) {
            for (; j >= 0; j--) r->stride[j] = 1; /* only dims of size 1 are left */
            break;
        }
        int64_t have = l->shape.d[i], step = l->stride[i], want = 1;
        while (i > 0 && (l->shape.d[i - 1] == 1 || l->stride[i - 1] == step * have)) {
            i--;
            if (l->shape.d[i] != 1) have *= l->shape.d[i];
        }
        i--;
        while (j >= 0 && want < have) {
            r->stride[j] = step * want;
            want *= to.d[j--];
        }
        if (want != have) return false;
    }
    return true;
}

/* True if an element is reachable by two indices. Ordered by stride, each dim must step over all elements that the dims
 * before it reach. Every view of a contiguous tensor does, except expanded dims and overlapping windows. */
bool tn__layout_repeats(const tn__layout *l)
{
    int     order[TN_MAX_DIMS], n = 0;
    int64_t reach = 0;
    if (tn_shape_numel(l->shape) == 0) return false;
    for (int i = 0; i < l->shape.n; i++) {
        if (l->shape.d[i] == 1) continue;
        int k = n++;
        for (; k > 0 && l->stride[order[k - 1]] > l->stride[i]; k--) order[k] = order[k - 1];
        order[k] = i;
    }
    for (int k = 0; k < n; k++) {
        if (l->stride[order[k]] <= reach) return true;
        reach += (l->shape.d[order[k]] - 1) * l->stride[order[k]];
    }
    return false;
}

bool tn__layout_inside(const tn__layout *l, int64_t n)
{
    int64_t low = l->offset, high = l->offset, far;
    for (int i = 0; i < l->shape.n; i++)
        if (l->shape.d[i] < 1) return true; /* t has no elements */
    for (int i = 0; i < l->shape.n; i++) {
        if (!tn__mul_i64(l->shape.d[i] - 1, l->stride[i], &far)) return false;
        if (!tn__add_i64(far < 0 ? low : high, far, far < 0 ? &low : &high)) return false;
    }
    return low >= 0 && high < n;
}
