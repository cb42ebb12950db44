/* engine_targets.c — tn_grad_of in a backward pass: only nodes that lead to a target are computed, and the targets'
 * gradients are stored in r->found until the pass has succeeded. */
#include "autograd/tape/engine_parts.h"
#include "autograd/tape/op_api.h"

bool tn__begin_targets(tn__engine_run *r)
{
    const tn__backward_pass *p = r->p;
    r->found = tn__mem_zeroed((size_t)p->count * sizeof *r->found);
    for (int k = 0; p->adds && k < p->count; k++) {
        if (r->found) r->found[k] = p->grad[k];
        else tn_drop(p->grad[k]);
        p->grad[k] = NULL;
    }
    return r->found != NULL;
}

/* Reverses the list while it works, so that inputs come first. */
void tn__mark_wanted(tn__engine_run *r)
{
    const tn__backward_pass *p = r->p;
    tn__node                *back = NULL, *n = r->list;
    while (n) {
        tn__node *next = n->next;
        n->next = back;
        back = n;
        n = next;
    }
    for (r->list = NULL; back;) {
        n = back;
        n->wanted =
            (n->op->saves & TN__RUNS_AGAIN) != 0; /* a checkpoint: its leaves are not known before it runs again */
        for (int i = 0; i < n->nin && !n->wanted; i++) {
            const tn__edge *e = &n->edge[i];
            n->wanted = (e->node && e->node->run == r->id && e->node->wanted) || (r->outer && e->leaf);
            for (int k = 0; k < p->count && !n->wanted; k++)
                n->wanted = e->leaf ? p->wrt[k] == e->leaf
                                    : e->node && p->wrt[k]->node == &e->node->object && p->wrt[k]->output == e->output;
        }
        back = n->next;
        n->next = r->list;
        r->list = n;
    }
}

void tn__take_targets(tn__engine_run *r, const tn__node *n)
{
    for (int k = 0; k < r->p->count; k++) {
        const tn_tensor *w = r->p->wrt[k];
        if (w->node == &n->object && n->grad[w->output] && !r->found[k]) r->found[k] = tn_keep(n->grad[w->output]);
    }
}

void tn__target_hooks(tn__engine_run *r)
{
    const tn__backward_pass *p = r->p;
    for (int k = 0; k < p->count; k++)
        if (p->wrt[k]->leaf && tn__call_hooks(tn__leaf_watches(p->wrt[k]), 0, &r->found[k], p->name) != TN_OK) return;
}

void tn__deliver_targets(tn__engine_run *r)
{
    const tn__backward_pass *p = r->p;
    for (int k = 0; k < p->count && r->found; k++) {
        for (int j = 0; j < k && !r->found[k] && !r->outer; j++) /* the same target twice */
            if (p->wrt[j] == p->wrt[k] && p->grad[j]) r->found[k] = tn_keep(p->grad[j]);
        if (tn__self.error != TN_OK) break;
        p->grad[k] = tn__scoped(r->found[k]); /* which drops it if it fails */
        r->found[k] = NULL;
    }
    if (tn__self.error != TN_OK)
        for (int k = 0; k < p->count; k++) p->grad[k] = NULL;
}
