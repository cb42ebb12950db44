/* engine_leaves.c — the end of a backward pass: attaches the gradients of leaves, all or none. */
#include "autograd/tape/casts.h"
#include "autograd/tape/engine_parts.h"

/* Raises: a gradient does not have its leaf's shape, because tn_adopt has replaced the leaf's tensor meanwhile. */
static tn_status wrong_shape(const tn_tensor *leaf, const tn_tensor *grad, const char *grad_name, const char *advice)
{
    char a[192], b[192];
    return tn_raise(TN_ESTATE, "backward: %s is %s now, and %s is %s: tn_adopt replaced its tensor; %s",
                    leaf->name ? leaf->name : "a leaf", tn_shape_text(leaf->l.shape, a, sizeof a), grad_name,
                    tn_shape_text(grad->l.shape, b, sizeof b), advice);
}

/* Handles a leaf that tn_adopt changed after its old gradient was made: another shape is an error; for another dtype
 * the sum with the old gradient is computed here, in the leaf's dtype. */
static tn_status add_old_grad(tn__grad_slot *s)
{
    tn_tensor *leaf = s->leaf, *sum;
    if (!tn_shape_equal(leaf->grad->l.shape, leaf->l.shape))
        return wrong_shape(leaf, leaf->grad, "its old gradient", "tn_zero_grad it first");
    if (leaf->grad->dtype == leaf->dtype) return TN_OK;
    if (!(sum = tn__new_owned(leaf->dtype, leaf->l.shape))) return tn__self.error;
    tn__copy(sum, leaf->grad);
    tn__tape.inside++;
    tn_add_(sum, s->ready);
    tn__tape.inside--;
    tn_drop(s->ready);
    s->ready = sum, s->whole = true;
    return tn__self.error;
}

static tn_status prepare(tn__grad_slot *s)
{
    if (!s->grad) return TN_OK;
    tn_tensor *leaf = s->leaf;
    if (s->rows && !tn__rows_fit(leaf, s->grad, s->rows)) return tn__self.error;
    if (s->rows && leaf->rows) { /* both are stored as few rows: so is the sum, and leaf->grad is not changed yet */
        s->whole = tn__rows_add(leaf, &s->grad, &s->rows, leaf->rows, leaf->grad, -1);
        s->ready = s->whole ? tn_keep(s->grad) : NULL;
        return tn__self.error;
    }
    if (leaf->grad &&
        (!tn__rows_to_dense(leaf, &leaf->grad, &leaf->rows) || !tn__rows_to_dense(leaf, &s->grad, &s->rows)))
        return tn__self.error;
    if (tn__call_hooks(tn__leaf_watches(leaf), 0, &s->grad, "backward") != TN_OK) return tn__self.error;
    if (!s->rows && !tn_shape_equal(leaf->l.shape, s->grad->l.shape))
        return wrong_shape(leaf, s->grad, "its gradient", "adopt before the forward pass or after the backward");
    if (!(s->ready = tn__unshared(s->grad, leaf->dtype)) || !leaf->grad) return tn__self.error;
    if (add_old_grad(s) != TN_OK || !tn__tape.anomaly) return tn__self.error;
    tn__tape.inside++;
    /* anomaly mode checks the sum before any gradient is attached */
    tn_tensor *sum = s->whole ? s->ready : tn_add(leaf->grad, s->ready);
    tn__tape.inside--;
    tn__check_finite(sum, "backward", "the sum of a leaf's gradients");
    return tn__self.error;
}

static void attach(tn__grad_slot *s)
{
    if (!s->ready) return;
    if (s->leaf->grad && !s->whole && tn_add_(s->leaf->grad, s->ready)) return; /* in place: takes no memory */
    tn_drop(s->leaf->grad), tn_drop(s->leaf->rows);
    s->leaf->grad = s->ready, s->leaf->rows = s->rows;
    s->ready = s->rows = NULL;
}

tn_status tn__prepare_leaves(tn__engine_run *r)
{
    for (int64_t i = 0; i < r->nslots && tn__self.error == TN_OK; i++) prepare(&r->slots[i]);
    return tn__self.error;
}

void tn__attach_leaves(tn__engine_run *r)
{
    int64_t n = 0;
    while (n < r->nslots && (!r->slots[n].ready || tn__leaf_claim(r->slots[n].leaf))) n++;
    if (n < r->nslots)
        tn_raise(TN_ESTATE,
                 "backward: another thread is in tn_step or tn_backward of '%s'; a model is trained by one thread at a "
                 "time",
                 r->slots[n].leaf->name ? r->slots[n].leaf->name : "a leaf");
    tn__tape.inside++;
    for (int64_t i = 0; i < n; i++) {
        tn_tensor *leaf = r->slots[i].ready ? r->slots[i].leaf : NULL;
        if (tn__self.error == TN_OK) attach(&r->slots[i]);
        if (leaf) tn__leaf_release(leaf);
    }
    tn__tape.inside--;
}
