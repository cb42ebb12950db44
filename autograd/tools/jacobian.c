/* jacobian.c — the Jacobian of a function, and the product of its Hessian with a vector. */
#include "autograd/autograd.h"
#include "core/base/toolbox.h"

/* fn at a leaf with x's values; NULL: raised. */
static tn_tensor *at_leaf(const char *who, tn_check_fn fn, tn_tensor *x, void *user, tn_tensor **leaf)
{
    if (!fn || !x) return tn_raise_null(TN_EINVAL, "%s: %s is NULL", who, fn ? "x" : "fn");
    if (!tn_grad_enabled()) return tn_raise_null(TN_ESTATE, "%s: gradients are off, by tn_no_grad_begin()", who);
    *leaf = tn_requires_grad(tn_detach(x));
    tn_tensor *y = *leaf ? fn(leaf, 1, user) : NULL;
    if (!y && tn_error() == TN_OK) tn_raise(TN_EINVAL, "%s: fn returned NULL", who);
    return y;
}

tn_tensor *tn_jacobian(tn_check_fn fn, tn_tensor *x, void *user)
{
    if (tn__blocked()) return NULL;
    const tn_scope s = tn_scope_begin();
    tn_tensor     *leaf, *y = at_leaf("tn_jacobian", fn, x, user, &leaf);
    if (!y) return tn_scope_return(s, NULL);
    const int64_t  rows = tn_numel(y), columns = tn_numel(leaf);
    const tn_shape in = tn_shape_of(leaf);
    tn_shape       shape = tn_shape_of(y);
    if (shape.n + in.n > TN_MAX_DIMS)
        return tn_raise(TN_ESHAPE, "tn_jacobian: the result would have %d dims, more than %d", shape.n + in.n,
                        TN_MAX_DIMS),
               tn_scope_return(s, NULL);
    for (int i = 0; i < in.n; i++) shape.d[shape.n++] = in.d[i];
    tn_tensor *j = tn_zeros_of(tn_dtype_of(leaf), TN_SHAPE(rows, columns));
    for (int64_t i = 0; i < rows && tn_needs_grad(y) && tn_error() == TN_OK; i++) {
        const tn_scope row = tn_scope_begin();
        tn_tensor     *seed = tn_zeros_like(y), *g = NULL;
        tn_set(seed, i, 1);
        tn_grad_of(y, 1, &leaf, &g, .seed = seed, .retain = i + 1 < rows);
        if (g) tn_copy_from(tn_select(j, 0, i), tn_reshape(g, TN_SHAPE(columns)));
        tn_scope_end(row);
    }
    return tn_scope_return(s, tn_error() == TN_OK ? tn_reshape(j, shape) : NULL);
}

tn_tensor *tn_hvp(tn_check_fn fn, tn_tensor *x, tn_tensor *v, void *user)
{
    char a[192], b[192];
    if (tn__blocked()) return NULL;
    if (x && (!v || !tn_shape_equal(tn_shape_of(x), tn_shape_of(v))))
        return tn_raise_null(TN_ESHAPE, "tn_hvp: v is %s, but must have the shape of x, %s",
                             v ? tn_shape_text(tn_shape_of(v), a, sizeof a) : "NULL",
                             tn_shape_text(tn_shape_of(x), b, sizeof b));
    const tn_scope s = tn_scope_begin();
    tn_tensor     *leaf = NULL, *y = at_leaf("tn_hvp", fn, x, user, &leaf), *h = NULL;
    if (y && tn_numel(y) != 1)
        tn_raise(TN_ESHAPE, "tn_hvp: fn returned %s, but must return one element",
                 tn_shape_text(tn_shape_of(y), a, sizeof a));
    tn_tensor *g = y && tn_needs_grad(y) ? tn_grad_wrt(y, leaf, true) : NULL;
    if (g && tn_needs_grad(g)) h = tn_grad_wrt(tn_sum(tn_mul(g, tn_detach(v))), leaf, false);
    if (!h) h = tn_zeros_like(leaf); /* the gradient is constant */
    return tn_scope_return(s, tn_error() == TN_OK ? h : NULL);
}
