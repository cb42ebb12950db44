/* call_inplace.c — in-place calls: result 0 is written over input 0, the target. The steps are those of call.c; in
 * addition, inputs that overlap the target are copied first, and the history of its memory is changed (history.c). */
#include "autograd/tape/call.h"
#include "autograd/tape/history.h"
#include "autograd/tape/replay.h"

#include <string.h>

/* The leaf whose memory x shows: x itself, or the leaf that x is a recorded view of; NULL: no leaf. */
static const tn_tensor *leaf_under(const tn_tensor *x)
{
    if (x->leaf) return x;
    for (const tn__node *n = tn__node_of(x); n && n->op->view && n->nin; n = n->edge[0].node)
        if (n->edge[0].leaf) return n->edge[0].leaf->storage == x->storage ? n->edge[0].leaf : NULL;
    return NULL;
}

/* Rejects a target that shows an element more than once (expanded dims), and a
 * leaf or a view of one: the leaf's gradient would no longer be that of its old value. */
tn_status tn__check_target(const tn_ctx *c)
{
    const tn_op     *op = c->op;
    const tn_tensor *x = c->in[0], *leaf = tn__self.mode.no_grad ? NULL : leaf_under(x);
    char             a[192], b[192];
    if (leaf)
        return tn_raise(TN_ESTATE,
                        "%s_: %s%s%s%s collects gradients and cannot be overwritten on the tape; change it between "
                        "tn_no_grad_begin() and tn_scope_end()",
                        op->name, leaf == x ? "" : "the target is a view, and ", leaf->name ? "'" : "",
                        leaf->name  ? leaf->name
                        : leaf == x ? "this tensor"
                                    : "its base",
                        leaf->name ? "'" : "");
    if (x->unrecorded && !tn__self.mode.no_grad)
        return tn_raise(
            TN_ESTATE,
            "%s_: the target is a view that was made after tn_no_grad_begin(), so the change would not be recorded "
            "for its base; make the view again while recording",
            op->name);
    if (!tn__layout_contiguous(&x->l) && tn__layout_repeats(&x->l))
        return tn_raise(
            TN_EINVAL,
            "%s_: several elements of the target share memory (it is expanded, or made of overlapping windows); "
            "tn_clone it first",
            op->name);
    if (c->result[0].dtype != x->dtype)
        return tn_raise(TN_EDTYPE, "%s_: the result is %s and cannot overwrite a tensor of %s", op->name,
                        tn_dtype_name(c->result[0].dtype), tn_dtype_name(x->dtype));
    if (!tn_shape_equal(c->result[0].shape, x->l.shape))
        return tn_raise(TN_ESHAPE, "%s_: the result has shape %s and cannot overwrite one of shape %s", op->name,
                        tn_shape_text(c->result[0].shape, a, sizeof a), tn_shape_text(x->l.shape, b, sizeof b));
    return TN_OK;
}

static bool same_place(const tn_tensor *a, const tn_tensor *b)
{
    if (a->dtype != b->dtype || a->l.offset != b->l.offset || !tn_shape_equal(a->l.shape, b->l.shape)) return false;
    return !memcmp(a->l.stride, b->l.stride, (size_t)a->l.shape.n * sizeof *a->l.stride);
}

static tn_tensor *copy_owned(const tn_tensor *x)
{
    tn_tensor *y = tn__new_owned(x->dtype, x->l.shape);
    if (y) tn__copy(y, x);
    return y;
}

/* The state of an in-place call, in addition to its target. */
typedef struct {
    tn_tensor *in[TN__FEW];    /* the inputs, for forward */
    tn_tensor *apart[TN__FEW]; /* copies of inputs that the result would overwrite before they are read */
    tn_tensor *original;       /* a copy of the target, if its backward reads it */
    tn_tensor *undo;           /* in anomaly mode: another copy, to restore the target if the result is rejected */
    tn__rebase rebase;         /* the change of the memory's history; */
    bool       rebased;        /* false: none yet */
} overwrite;

/* Copies inputs that overlap the target's memory at other places. */
static bool prepare(const tn_ctx *c, overwrite *w)
{
    c->out[0] = c->in[0];
    memcpy(w->in, c->in, (size_t)c->nin * sizeof *w->in);
    for (int i = 1; i < c->nin; i++) {
        const tn_tensor *x = c->in[i];
        if (!x || x->storage != c->in[0]->storage || same_place(x, c->in[0])) continue;
        if (!(w->in[i] = w->apart[i] = copy_owned(x))) return false;
    }
    return !tn__tape.anomaly || tn__tape.inside || (w->undo = copy_owned(c->in[0]));
}

/* Records the call: returns its node, to which the target is not linked yet; NULL: raised. */
static tn__node *record(const tn__call *o, overwrite *w)
{
    const tn_ctx *c = &o->c;
    const tn_op  *op = c->op;
    tn__node     *node = tn__record(op, c->nin, c->in, c->nout, o->need, c->args);
    if (!node) return NULL;
    const unsigned saves = op->saves_for ? op->saves_for(o->need) : op->saves;
    if (saves & TN_SAVE_IN(0) && !(w->original = copy_owned(c->in[0]))) return tn__node_drop(node), NULL;
    if (w->original && c->in[0]->node) { /* for gradients of gradients the copy has the node of input 0 */
        w->original->node = c->in[0]->node, w->original->output = c->in[0]->output;
        atomic_fetch_add_explicit(&w->original->node->refs, 1, memory_order_relaxed);
    }
    if (!tn__record_saved(node, c->in, w->original) || !tn__record_results(node, c->out) ||
        !(w->rebased = tn__rebase_begin(&w->rebase, c->in[0], node)))
        return tn__node_drop(node), NULL;
    return node;
}

static bool finite(const tn_ctx *c, const overwrite *w)
{
    if (!w->undo || tn__results_finite(c)) return true;
    tn__copy(c->in[0], w->undo);
    return false;
}

/* Raises the version of the target, links it to its node, and changes the history of its memory. */
static void link_target(const tn_ctx *c, overwrite *w, tn__node *node)
{
    tn_tensor *y = c->in[0];
    tn__written(y, c->op->name);
    if (!node) return;
    if (node->saved_out[0].t) node->saved_out[0].version = tn__version_of(y);
    if (tn__is_float(y->dtype)) tn__node_link(y, w->rebase.part ? &w->rebase.part->object : &node->object, 0);
    tn__rebase_commit(&w->rebase, y);
}

void tn__run_inplace(const tn__call *o)
{
    const tn_ctx  *c = &o->c;
    tn_ctx         f = o->c;
    tn__node      *node = NULL;
    const uint16_t replay = tn__self.mode.replay;
    overwrite      w;
    w.original = w.undo = NULL, w.rebased = false;
    memset(w.apart, 0, sizeof w.apart);
    f.in = w.in;
    tn__self.mode.replay = 0;
    if (prepare(c, &w) && (!o->record || (node = record(o, &w))) && tn__compute(f) == TN_OK && finite(c, &w)) {
        link_target(c, &w, node);
        if (replay) tn__replay_add(c, w.in, true);
    }
    tn__self.mode.replay = replay;
    if (w.rebased) tn__rebase_free(&w.rebase);
    tn__node_drop(node);
    tn_drop(w.original), tn_drop(w.undo);
    for (int i = 0; i < TN__FEW; i++) tn_drop(w.apart[i]);
}
