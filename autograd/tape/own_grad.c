/* own_grad.c — gradients that move from node to node: one that has no other owner is passed on and overwritten, without
 * a copy, new memory or atomic operations. */
#include "autograd/tape/engine.h"
#include "autograd/tape/op_api.h"

tn_tensor *tn__own_grad(tn__node *n, tn_tensor *const *gx, int i, tn_tensor *g, size_t mark)
{
    enum { FEW = 8 };          /* inputs: then the searches are short */
    bool again = n->nin > FEW; /* a later input has the same gradient */
    for (int k = i + 1; k < n->nin && !again; k++) again = gx[k] == gx[i];
    if (again) return tn_keep(g);
    if (g != n->grad[0] || n->watches) return tn__take_above(mark, g);
    n->grad[0] = NULL;
    return g;
}

tn_tensor *tn__grad_room(const tn_back *b)
{
    const tn__node *n = ((void **)b->engine)[1];
    return !n->watches && tn__exclusive(b->gy[0]) ? b->gy[0] : tn_empty_like(b->gy[0]);
}
