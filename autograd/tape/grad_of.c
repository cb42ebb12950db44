/* grad_of.c — tn_grad_of, tn_grad_wrt and tn_backward_notify: other calls of the backward pass in engine.c. */
#include "autograd/tape/tape.h"

tn_status tn_grad_of_run(tn_grad_of_args c)
{
    for (int k = 0; k < c.count && c.grad; k++) c.grad[k] = NULL;
    if (tn__blocked()) return tn__self.error;
    if (c.count < 1 || !c.wrt || !c.grad)
        return tn_raise(TN_EINVAL,
                        "tn_grad_of: needs count, wrt and grad: a number, the tensors, an array for their gradients");
    tn__backward_pass p = {.roots = 1,
                           .root = &c.root,
                           .seed = &c.seed,
                           .count = c.count,
                           .wrt = c.wrt,
                           .grad = c.grad,
                           .retain = c.retain || c.create_graph,
                           .create_graph = c.create_graph,
                           .name = "tn_grad_of"};
    return tn__backward(&p);
}

tn_tensor *tn_grad_wrt(tn_tensor *root, tn_tensor *wrt, bool create_graph)
{
    tn_tensor *g;
    tn_grad_of_run((tn_grad_of_args){.root = root, .count = 1, .wrt = &wrt, .grad = &g, .create_graph = create_graph});
    return g;
}

tn_status tn_backward_notify(tn_tensor *root, tn_tensor *seed, tn_grad_ready ready, void *user)
{
    if (tn__blocked()) return tn__self.error;
    return tn__backward(&(tn__backward_pass){
        .roots = 1, .root = &root, .seed = &seed, .ready = ready, .ready_user = user, .name = "tn_backward"});
}
