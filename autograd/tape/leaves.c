/* leaves.c — leaves and their gradients: tn_requires_grad, tn_grad, tn_set_grad, tn_zero_grad, tn_detach. */
#include "autograd/tape/casts.h"
#include "autograd/tape/history.h"

tn_tensor *tn_requires_grad(tn_tensor *t)
{
    if (tn__blocked()) return NULL;
    if (!t) return tn_raise_null(TN_EINVAL, "tn_requires_grad: the tensor is NULL");
    if (!tn__alive("tn_requires_grad", t)) return NULL;
    if (!tn__is_float(t->dtype))
        return tn_raise_null(TN_EDTYPE, "tn_requires_grad: only floating tensors have gradients, this one is %s",
                             tn_dtype_name(t->dtype));
    if (!tn__up_to_date(t, "tn_requires_grad", "the tensor", -1)) return NULL;
    if (t->node)
        return tn_raise_null(TN_ESTATE,
                             "tn_requires_grad: this tensor is the result of a recorded %s and already has a gradient; "
                             "tn_retain_grad keeps it, tn_detach returns a tensor that can be a leaf",
                             tn__node_of(t)->op->name);
    if (!t->leaf && !tn__start_history(t)) return NULL;
    t->leaf = true;
    tn__make_guest(t, true);
    return t;
}

tn_tensor *tn_freeze_tensor(tn_tensor *t)
{
    if (tn__blocked()) return NULL;
    if (!t) return tn_raise_null(TN_EINVAL, "tn_freeze_tensor: the tensor is NULL");
    if (!tn__alive("tn_freeze_tensor", t)) return NULL;
    if (t->node || tn__newer(t))
        return tn_raise_null(
            TN_ESTATE,
            "tn_freeze_tensor: this tensor is the result of a recorded %s, not a leaf; tn_detach returns "
            "one without a gradient",
            t->node ? tn__node_of(t)->op->name : atomic_load(&t->storage->writer));
    t->leaf = false;
    tn__make_guest(t, false);
    tn_zero_grad(t);
    return t;
}

bool tn_needs_grad(const tn_tensor *t) { return tn__alive("tn_needs_grad", t) && (tn__needs_grad(t) || tn__newer(t)); }

tn_tensor *tn_grad(const tn_tensor *t)
{
    if (!tn__alive("tn_grad", t)) return NULL;
    int             output;
    const tn__node *n = tn__current_node(t, &output);
    if (n) return n->kept[output];
    if (t->rows) { /* t is const to the caller: a dense gradient has the same values */
        tn_tensor *leaf = (tn_tensor *)(uintptr_t)t;
        if (!tn__rows_to_dense(leaf, &leaf->grad, &leaf->rows)) return NULL;
    }
    return t->grad;
}

tn_tensor *tn_grad_rows(const tn_tensor *t, tn_tensor **rows)
{
    const bool some = tn__alive("tn_grad_rows", t) && !t->node && t->rows;
    if (rows) *rows = some ? t->rows : NULL;
    return some ? t->grad : NULL;
}

tn_status tn_set_grad(tn_tensor *leaf, tn_tensor *grad)
{
    static const char who[] = "tn_set_grad";
    char              a[192], b[192];
    if (tn__blocked()) return tn__self.error;
    if (!leaf || !grad) return tn_raise(TN_EINVAL, "%s: the %s is NULL", who, leaf ? "gradient" : "leaf");
    if (!tn__alive(who, leaf) || !tn__alive(who, grad) || !tn__up_to_date(grad, who, "the gradient", -1))
        return tn__self.error;
    if (!leaf->leaf) return tn_raise(TN_ESTATE, "%s: this tensor is not a leaf (tn_requires_grad)", who);
    if (!tn_shape_equal(leaf->l.shape, grad->l.shape))
        return tn_raise(TN_ESHAPE, "%s: the gradient is %s, but must be %s, like the leaf", who,
                        tn_shape_text(grad->l.shape, a, sizeof a), tn_shape_text(leaf->l.shape, b, sizeof b));
    tn_tensor *own = tn__new_owned(leaf->dtype, leaf->l.shape);
    if (!own) return tn__self.error;
    tn__copy(own, grad);
    tn_zero_grad(leaf);
    leaf->grad = own;
    return tn__self.error;
}

void tn__grad_wait(const tn_tensor *leaf)
{
    if (leaf->grad) leaf->grad->waits = true;
}

bool tn__leaf_claim(tn_tensor *leaf) { return !atomic_exchange(&leaf->busy, true); }
void tn__leaf_release(tn_tensor *leaf) { atomic_store(&leaf->busy, false); }

void tn_mark_trained(tn_tensor *leaf)
{
    if (leaf) leaf->trained = true;
}

bool tn__leaf_trained(const tn_tensor *leaf) { return leaf->trained; }

bool tn__grad_waits(const tn_tensor *leaf) { return leaf->grad && leaf->grad->waits; }

void tn_zero_grad(tn_tensor *t)
{
    if (tn__blocked() || !tn__alive("tn_zero_grad", t)) return;
    int         output;
    tn__node   *n = tn__current_node(t, &output);
    tn_tensor **slot = n ? &n->kept[output] : &t->grad;
    tn_drop(*slot);
    *slot = NULL;
    if (n) return;
    tn_drop(t->rows);
    t->rows = NULL;
}

tn_tensor *tn_detach(tn_tensor *t)
{
    if (tn__blocked()) return NULL;
    if (!t) return tn_raise_null(TN_EINVAL, "tn_detach: the tensor is NULL");
    if (!tn__alive("tn_detach", t)) return NULL;
    tn_tensor *d = tn__alias(t, &t->l);
    if (d) d->family = tn__thread_id() << 40 | ++tn__tape.families, d->unrecorded = false;
    return d;
}
