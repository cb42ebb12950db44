/* layout.h — a shape, strides and an offset, without data (layout.c); and the layouts of views (view.c). */
#ifndef TENON_CORE_TENSOR_LAYOUT_H
#define TENON_CORE_TENSOR_LAYOUT_H

#include "core/core.h"

typedef struct {
    int64_t  offset;
    tn_shape shape;
    int64_t  stride[TN_MAX_DIMS]; /* in elements; 0 repeats; undefined beyond the shape's dims, to touch less memory */
} tn__layout;

/* tn_shape_numel of a shape that has been checked, and tn_shape_equal: without copies of shapes. */
static inline int64_t tn__numel_of(const tn_shape *s)
{
    int64_t n = 1;
    for (int i = 0; i < s->n; i++) n *= s->d[i];
    return n;
}
static inline bool tn__same_shape(const tn_shape *a, const tn_shape *b)
{
    if (a->n != b->n) return false;
    for (int i = 0; i < a->n; i++)
        if (a->d[i] != b->d[i]) return false;
    return true;
}

/* Checks a shape from the caller: dims not negative, at most 8, bytes within int64. Raises with op's name. */
bool       tn__shape_check(const char *op, tn_dtype dt, tn_shape s);
tn__layout tn__layout_of_shape(tn_shape s); /* contiguous, offset 0 */
void       tn__set_contiguous(tn__layout *l, const tn_shape *s);
bool       tn__layout_contiguous(const tn__layout *l);
/* Makes a dim from the caller non-negative; raises "op: dim 2 is out of range for a 2-d tensor". */
bool tn__wrap_dim(const char *op, int *dim, int ndim);
/* Wraps each dim and sorts them; a duplicate is an error. n = 0 becomes all dims. */
bool tn__wrap_dims(const char *op, tn_dims *dims, int ndim);
/* The shape that a and b broadcast to; raises "op: [2, 3] and [4] do not broadcast: dim ...". */
bool tn__broadcast(const char *op, tn_shape a, tn_shape b, tn_shape *to);
bool tn__broadcastable(tn_shape from, tn_shape to); /* from expands to to; raises nothing */
/* Views l as a tensor of shape to: new and size-1 dims get stride 0. The caller has checked the shapes. */
tn__layout tn__layout_expand(const tn__layout *l, tn_shape to);
tn__layout tn__layout_insert(tn__layout l, int at); /* inserts a dim of size 1 before dim `at` (0 … n) */
/* True if several elements share one address (an expanded dim, overlapping windows). Exact for all views. */
bool tn__layout_repeats(const tn__layout *l);
/* True if all elements are among the first n of the storage. */
bool tn__layout_inside(const tn__layout *l, int64_t n);
/* Computes strides that view l's elements in order under a shape with as many elements; false if none exist. */
bool tn__layout_reshape(const tn__layout *l, tn_shape to, tn__layout *r);

/* ---- views (core/tensor/view.c): the layout of each view of x; raise with op's name; y is not x ------------------ */

enum { TN__ALL_DIMS = 2147483647 }; /* TN_ALL of ops.h */
/* Replaces a -1 in *to by the size it means, and checks that both shapes have the same number of elements. */
bool tn__view_shape(const char *op, tn_shape from, tn_shape *to);
bool tn__view_flatten(const char *op, tn_shape x, int first, int last, tn_shape *to);
bool tn__view_squeeze(const char *op, tn_shape x, int dim, tn_shape *to);
bool tn__view_unsqueeze(const char *op, tn_shape x, int dim, tn_shape *to);
bool tn__view_permute(const char *op, const tn__layout *x, tn_dims order, tn__layout *y);
bool tn__view_transpose(const char *op, const tn__layout *x, int dim0, int dim1, tn__layout *y);
bool tn__view_expand(const char *op, const tn__layout *x, tn_shape to, tn__layout *y);
bool tn__view_slice(const char *op, const tn__layout *x, int dim, int64_t start, int64_t end, int64_t step,
                    tn__layout *y);
bool tn__view_narrow(const char *op, const tn__layout *x, int dim, int64_t start, int64_t length, tn__layout *y);
bool tn__view_select(const char *op, const tn__layout *x, int dim, int64_t index, tn__layout *y);
bool tn__view_diagonal(const char *op, const tn__layout *x, int64_t offset, int dim0, int dim1, tn__layout *y);
bool tn__view_unfold(const char *op, const tn__layout *x, int dim, int64_t size, int64_t step, tn__layout *y);

#endif
