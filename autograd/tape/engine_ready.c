/* engine_ready.c — the callback for complete gradients in a backward pass (tn_backward_notify), by which gradients are
 * sent to other ranks while the rest is computed. */
#include "autograd/tape/engine_parts.h"
#include "autograd/tape/op_api.h"

tn_status tn__count_uses(tn__engine_run *r)
{
    for (const tn__node *n = r->list; n && r->ready; n = n->next) {
        if (n->op->saves & TN__RUNS_AGAIN) r->ready = NULL;
        for (int i = 0; i < n->nin && r->ready; i++) {
            tn__grad_slot *s = n->edge[i].leaf ? tn__leaf_slot(r, n->edge[i].leaf) : NULL;
            if (s) s->uses++;
            if (tn__self.error != TN_OK) return tn__self.error;
        }
    }
    return TN_OK;
}

void tn__report_ready(tn__engine_run *r, const tn__node *n)
{
    for (int i = 0; i < n->nin && tn__self.error == TN_OK; i++) {
        tn_tensor     *leaf = n->edge[i].leaf;
        tn__grad_slot *s = leaf ? tn__leaf_slot(r, leaf) : NULL;
        if (!s || --s->uses || !s->grad || s->rows || s->grad->dtype != leaf->dtype || tn__leaf_watches(leaf) ||
            !tn_shape_equal(s->grad->l.shape, leaf->l.shape))
            continue;
        r->ready(leaf, s->grad, r->p->ready_user);
    }
}
