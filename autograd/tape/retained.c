/* retained.c — the gradients requested by tn_retain_grad, of tensors that are not leaves. A pass sets them aside and
 * retains them when it has succeeded. They move with the tensor's values when an in-place op gives it another node. */
#include "autograd/tape/engine_parts.h"

tn_status tn__set_aside(tn__engine_run *r, tn__node *n)
{
    for (tn__watch *w = n->watches; w; w = w->next) {
        tn_tensor *g = n->grad[w->output], *kept = n->kept[w->output];
        if (w->fn || !g || r->found) continue;
        if (!(w->grad = tn__unshared(g, g->dtype))) break;
        r->keeps = true;
        if (kept && !tn__add_to(r, &w->grad, kept)) break;
    }
    return tn__self.error;
}

void tn__retain(const tn__engine_run *r, bool success)
{
    for (tn__node *n = r->keeps ? r->list : NULL; n; n = n->next)
        for (tn__watch *w = n->watches; w; w = w->next) {
            if (!w->grad) continue;
            tn_tensor **kept = &n->kept[w->output], *drop = success ? *kept : w->grad;
            if (success) *kept = w->grad;
            w->grad = NULL;
            tn_drop(drop);
        }
}

void tn__move_retained(tn__node *n, int output, tn__node *to, int to_output)
{
    if (n == to) return;
    for (tn__watch **at = &n->watches, *w; (w = *at);) {
        if (w->fn || w->output != output || w->grad) { /* a hook stays on the values it was set for */
            at = &w->next;
            continue;
        }
        *at = w->next;
        w->output = to_output, w->next = to->watches;
        to->watches = w;
    }
    if (to->kept[to_output]) return;
    to->kept[to_output] = n->kept[output];
    n->kept[output] = NULL;
}
