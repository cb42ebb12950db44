/* history.c — updates the nodes of all views of a memory after an in-place op has written to it.
 *
 * Handles that are views of each other share one memory. When a recorded op has written to it through one of them, the
 * others show new values, while their nodes still describe how the old values were computed. So the storage keeps a
 * history: the node whose result all of its elements, in order, are now. After an op that overwrote all elements, this
 * is the op's own node. After one that wrote through a view of a part, it is an `overwrite`: the old elements, with the
 * op's result at the view's place. A handle that is outdated when it is next used on the tape gets a new node, a
 * `strided` view of that history; so the gradients are correct for z[:, 1:3] *= y and for z afterwards. The view that
 * was written through gets such a node at once, because its gradient is a part of the gradient of the whole memory.
 *
 * The base of the history is found from the target's node back through its views, to the tensor that was viewed. */
#include "autograd/tape/op_api.h"
#include "autograd/tape/history.h"

static int64_t elements(const tn_tensor *x) { return (int64_t)(x->storage->bytes / tn__dtype_bytes(x->dtype)); }
static bool    shows_all(const tn_tensor *x)
{
    return tn_shape_numel(x->l.shape) == elements(x) && tn__layout_contiguous(&x->l);
}
static int members(const tn_tensor *x)
{
    const uint64_t refs = atomic_load_explicit(&x->storage->refs, memory_order_acquire);
    return (int)((uint32_t)refs - (uint32_t)(refs >> 32));
}

/* A tensor that shows all of x's memory and has the given node; only for tn__record. */
static tn_tensor all_of(const tn_tensor *x, tn__object *node, uint8_t output, tn_shape shape)
{
    tn_tensor all = {.dtype = x->dtype, .storage = x->storage, .node = node, .output = output};
    all.l = tn__layout_of_shape(shape);
    return all;
}

static bool is_view(const tn__node *n) { return n && n->op->view && !n->copied; }

/* Sets *base to the tensor of the whole memory, before this write, that x is a view of, directly or through other
 * views. False: it cannot be determined. */
static bool base_of(const tn_tensor *x, const tn__history *h, tn_tensor *base)
{
    const int64_t n = elements(x);
    tn__edge      at = {.node = tn__node_of(x), .output = x->output};
    tn_shape      shape = x->node ? x->l.shape : (tn_shape){.n = 1, .d = {n}};
    if (h && h->node) return *base = all_of(x, h->node, h->output, h->shape), true;
    while (is_view(at.node)) {
        shape = at.node->shape[0];
        at = at.node->edge[0];
    }
    if (at.leaf || tn_shape_numel(shape) != n) return false;
    *base = all_of(x, at.node ? &at.node->object : NULL, at.output, shape);
    return true;
}

/* True if x is the tensor of the whole memory and not a view of it. A constant with the same layout counts as it. */
static bool is_all_of(const tn_tensor *x, const tn__history *h)
{
    return shows_all(x) && tn_shape_equal(x->l.shape, h->shape) && !is_view(tn__node_of(x));
}

/* A node for x: a view of the whole memory, which is result `output` of `node`. */
static tn__node *view_of(const tn_tensor *x, tn__object *node, uint8_t output, tn_shape shape)
{
    tn_tensor all = all_of(x, node, output, shape);
    return tn__record(&tn__op_strided, 1, (tn_tensor *[]){&all}, 1, (bool[]){true}, &(tn__strided_args){.at = x->l});
}

static tn__history *new_history(const tn_tensor *x)
{
    tn__history *h = tn__mem_get(sizeof *h);
    if (h) *h = (tn__history){.family = x->family};
    return h;
}

static void add_history(tn__storage *s, tn__history *h)
{
    h->next = atomic_load_explicit(&s->history, memory_order_relaxed);
    atomic_store_explicit(&s->history, h, memory_order_release);
}

bool tn__start_history(tn_tensor *t)
{
    if (members(t) == 1 || tn__history_of(t)) return true;
    tn__history *h = new_history(t); /* empty: nothing was overwritten yet */
    if (h) add_history(t->storage, h);
    return h != NULL;
}

bool tn__rebase_begin(tn__rebase *r, tn_tensor *x, tn__node *node)
{
    tn_tensor  base;
    const bool all = shows_all(x);
    *r = (tn__rebase){.history = tn__history_of(x)};
    /* no other handle shows this memory: x's node suffices */
    if (all && members(x) == 1 && !r->history) return true;
    const bool known = base_of(x, r->history, &base);
    if (!all && !known)
        return tn_raise_false(
            TN_ESTATE,
            "%s_: the target is a part of memory whose other elements have an unknown history (a result of "
            "tn_checkpoint, or of a tensor that tn_adopt changed); tn_clone it first",
            node->op->name);
    if (!r->history) {
        if (!(r->history = new_history(x))) return false;
        r->fresh = true;
    }
    if (all && (!known || (base.node == x->node && base.output == x->output))) {
        r->node = node, r->shape = x->l.shape;
        atomic_fetch_add_explicit(&node->object.refs, 1, memory_order_relaxed);
        return true;
    }
    tn_tensor part = tn__stack_view(x, &x->l);
    part.node = &node->object;
    r->shape = base.l.shape;
    r->node = tn__record(&tn__op_overwrite, 2, (tn_tensor *[]){&base, &part}, 1, (bool[]){base.node && !all, true},
                         &(tn__strided_args){.at = x->l});
    if (r->node) r->part = view_of(x, &r->node->object, 0, r->shape);
    if (!r->part) return tn__rebase_free(r), false;
    if (!base.node) return true;
    r->base = (tn__node *)base.node, r->base_output = base.output;
    atomic_fetch_add_explicit(&base.node->refs, 1, memory_order_relaxed);
    return true;
}

void tn__rebase_free(tn__rebase *r)
{
    if (r->fresh) tn__mem_put(r->history, sizeof *r->history);
    tn__node_drop(r->node), tn__node_drop(r->part), tn__node_drop(r->base);
    *r = (tn__rebase){.node = NULL};
}

void tn__rebase_commit(tn__rebase *r, tn_tensor *x)
{
    tn__storage *s = x->storage;
    x->version = atomic_load_explicit(&s->version, memory_order_relaxed);
    atomic_store_explicit(&s->taped, x->version, memory_order_relaxed);
    if (!r->node) return;
    if (r->base) tn__move_retained(r->base, r->base_output, r->node, 0);
    tn__node_drop(r->part), tn__node_drop(r->base);
    tn__object *old = r->history->node;
    r->history->node = &r->node->object, r->history->output = 0;
    r->history->shape = r->shape, r->history->version = x->version;
    if (r->fresh) add_history(s, r->history);
    *r = (tn__rebase){.node = NULL};
    tn__object_drop(old);
}

bool tn__update_node(tn_tensor *x, const char *caller, const char *role, int i)
{
    const tn__history *h = tn__newer(x);
    if (!h) { /* the storage's histories belong to other families */
        x->version = atomic_load_explicit(&x->storage->taped, memory_order_relaxed);
        return true;
    }
    if (x->leaf || x->unrecorded) {
        char number[16];
        snprintf(number, sizeof number, " %d", i);
        return tn_raise_false(
            TN_ESTATE,
            "%s: %s%s shows memory that %s_ has since changed on the tape through another tensor, and is %s; make "
            "this view again after the change",
            caller, role, i < 0 ? "" : number, atomic_load(&x->storage->writer),
            x->leaf ? "a leaf" : "a view that was made after tn_no_grad_begin()");
    }
    if (is_all_of(x, h)) {
        tn__node_link(x, h->node, h->output);
    } else {
        tn__node *view = view_of(x, h->node, h->output, h->shape);
        if (!view) return false;
        tn__node_link(x, &view->object, 0);
        tn__node_drop(view);
    }
    x->version = h->version;
    return true;
}

tn__node *tn__current_node(const tn_tensor *t, int *output)
{
    const tn__history *h = tn__outdated(t) ? tn__newer(t) : NULL;
    const bool         newer = h && h->node && t->node && is_all_of(t, h);
    *output = newer ? h->output : t->output;
    return newer ? (tn__node *)h->node : tn__node_of(t);
}
