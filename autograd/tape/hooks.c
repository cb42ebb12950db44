/* hooks.c — hooks on gradients: tn_on_grad and tn_retain_grad register them, the engine calls them. */
#include "autograd/tape/engine_parts.h"
#include "autograd/tape/history.h"

/* The hooks of a leaf; the leaf owns them. */
typedef struct {
    tn__object object;
    tn__watch *list;
} leaf_hooks;

static void leaf_hooks_end(tn__object *o)
{
    leaf_hooks *h = (leaf_hooks *)(void *)o;
    while (h->list) {
        tn__watch *w = h->list;
        h->list = w->next;
        tn__mem_put(w, sizeof *w);
    }
    tn__mem_put(h, sizeof *h);
}

tn__watch *tn__leaf_watches(const tn_tensor *t) { return t->hooks ? ((leaf_hooks *)(void *)t->hooks)->list : NULL; }

static tn_status watch(const char *name, tn_tensor *t, tn_grad_hook fn, void *user)
{
    if (!t) return tn_raise(TN_EINVAL, "%s: the tensor is NULL", name);
    if (!tn__alive(name, t)) return tn__self.error;
    if (!tn__up_to_date(t, name, "the tensor", -1)) return tn__self.error;
    if (!tn__needs_grad(t))
        return tn_raise(TN_ESTATE, "%s: no gradient will reach this tensor: it is neither a leaf nor on the tape",
                        name);
    if (t->node && tn__node_of(t)->thread != tn__thread_id())
        return tn_raise(TN_ESTATE,
                        "%s: %s was recorded by another thread; a tape belongs to the thread that recorded it", name,
                        tn__node_of(t)->op->name);
    tn__watch **list;
    if (t->node) {
        list = &tn__node_of(t)->watches;
    } else {
        if (!t->hooks) {
            leaf_hooks *h = tn__mem_zeroed(sizeof *h);
            if (!h) return tn__self.error;
            atomic_init(&h->object.refs, 1);
            h->object.end = leaf_hooks_end;
            t->hooks = &h->object;
        }
        list = &((leaf_hooks *)(void *)t->hooks)->list;
    }
    tn__watch *w = tn__mem_get(sizeof *w);
    if (!w) return tn__self.error;
    *w = (tn__watch){.output = t->output, .fn = fn, .user = user};
    while (*list) list = &(*list)->next; /* hooks run in the order in which they were added */
    *list = w;
    return TN_OK;
}

tn_status tn_on_grad(tn_tensor *t, tn_grad_hook hook, void *user)
{
    if (tn__blocked()) return tn__self.error;
    if (!hook) return tn_raise(TN_EINVAL, "tn_on_grad: the hook is NULL");
    return watch("tn_on_grad", t, hook, user);
}

tn_status tn_retain_grad(tn_tensor *t)
{
    if (tn__blocked()) return tn__self.error;
    if (t && t->leaf) return TN_OK; /* a leaf keeps its gradient anyway */
    return watch("tn_retain_grad", t, NULL, NULL);
}

tn_status tn__call_hooks(tn__watch *w, int output, tn_tensor **g, const char *caller)
{
    for (; w && tn__self.error == TN_OK; w = w->next) {
        if (w->output != output || !w->fn || !*g) continue;
        tn_tensor *to = w->fn(*g, w->user);
        if (!to || to == *g) continue;
        char a[192], b[192];
        if (!tn_shape_equal(to->l.shape, (*g)->l.shape) || to->dtype != (*g)->dtype)
            return tn_raise(TN_ESHAPE, "%s: a hook returned %s %s for a gradient that is %s %s", caller,
                            tn_dtype_name(to->dtype), tn_shape_text(to->l.shape, a, sizeof a),
                            tn_dtype_name((*g)->dtype), tn_shape_text((*g)->l.shape, b, sizeof b));
        tn_keep(to);
        tn_drop(*g);
        *g = to;
    }
    return tn__self.error;
}
