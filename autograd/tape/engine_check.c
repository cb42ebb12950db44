/* engine_check.c — checks of the arguments of a backward pass. */
#include "autograd/tape/engine_parts.h"
#include "autograd/tape/history.h"

static tn_status check_seed(const tn__backward_pass *p, int i)
{
    const tn_tensor *root = p->root[i], *seed = p->seed ? p->seed[i] : NULL;
    char             a[192], b[192];
    if (!seed && tn_shape_numel(root->l.shape) == 1) return TN_OK;
    if (!seed)
        return tn_raise(
            TN_ESHAPE,
            "%s: the root has shape %s, so it needs a seed of that shape; or reduce it first with tn_sum or tn_mean",
            p->name, tn_shape_text(root->l.shape, a, sizeof a));
    if (!tn_shape_equal(seed->l.shape, root->l.shape) || seed->dtype != root->dtype)
        return tn_raise(TN_ESHAPE, "%s: the seed is %s %s, the root %s %s; they must agree", p->name,
                        tn_dtype_name(seed->dtype), tn_shape_text(seed->l.shape, a, sizeof a),
                        tn_dtype_name(root->dtype), tn_shape_text(root->l.shape, b, sizeof b));
    return TN_OK;
}

tn_status tn__check_pass(const tn__backward_pass *p)
{
    for (int i = 0; i < p->roots; i++) {
        tn_tensor *root = p->root[i];
        if (!root) return tn_raise(TN_EINVAL, "%s: the root is NULL", p->name);
        if (!tn__given(p->name, "the root", root) || !tn__up_to_date(root, p->name, "the root", -1))
            return tn__self.error;
        if (!tn__needs_grad(root))
            return tn_raise(
                TN_ESTATE,
                "%s: the root depends on no tensor that requires grad; mark one with tn_requires_grad, and compute "
                "the root outside tn_no_grad_begin()",
                p->name);
        if (check_seed(p, i) != TN_OK) return tn__self.error;
    }
    for (int k = 0; k < p->count; k++) {
        if (p->wrt[k] && (!tn__alive(p->name, p->wrt[k]) || !tn__up_to_date(p->wrt[k], p->name, "tensor", k)))
            return tn__self.error;
        if (!p->wrt[k] || !tn__needs_grad(p->wrt[k]))
            return tn_raise(p->wrt[k] ? TN_ESTATE : TN_EINVAL, "%s: target %d %s", p->name, k,
                            p->wrt[k] ? "is neither a leaf nor on the tape" : "is NULL");
    }
    return TN_OK;
}
