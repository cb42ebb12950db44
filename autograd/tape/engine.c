/* engine.c — the backward pass: reads the tape from its end.
 *
 * Nodes are numbered as they are recorded, so an op has a larger number than the ops that computed its inputs. Taking
 * the largest number first visits each node after all nodes that depend on it. Nodes waiting for their turn are in a
 * pairing heap that is linked through the nodes themselves: no memory, no recursion. Nodes taken from the heap first go
 * into a list, so that all are checked, and those that lead to no target excluded, before anything is computed.
 *
 * Incomplete gradients are stored in the nodes. Gradients of leaves and of tn_grad_of's targets are collected in slots
 * and delivered at the very end, when nothing can fail any more. */
#include "autograd/tape/engine.h"
#include "autograd/tape/op_api.h"
#include "autograd/tape/profile.h"

/* ---- the pairing heap -------------------------------------------------------------------------------------------- */

static tn__node *meld(tn__node *a, tn__node *b)
{
    if (!a) return b;
    if (!b) return a;
    if (a->seq < b->seq) {
        tn__node *t = a;
        a = b, b = t;
    }
    b->sibling = a->child;
    a->child = b;
    return a;
}

static tn__node *pop(tn__node *top)
{
    tn__node *pairs = NULL, *rest = top->child, *heap = NULL;
    while (rest) { /* meld in pairs from the left, then all from the right */
        tn__node *a = rest, *b = a->sibling;
        rest = b ? b->sibling : NULL;
        a->sibling = NULL;
        if (b) b->sibling = NULL;
        a = meld(a, b);
        a->sibling = pairs;
        pairs = a;
    }
    while (pairs) {
        tn__node *next = pairs->sibling;
        pairs->sibling = NULL;
        heap = meld(heap, pairs);
        pairs = next;
    }
    top->child = NULL;
    return heap;
}

/* ---- one pass ---------------------------------------------------------------------------------------------------- */

static tn_status visit(tn__engine_run *r, tn__node **heap, tn__node *n)
{
    /* checked first: passes are numbered per thread, so n->run of another thread's node means nothing here */
    if (n->thread != r->thread)
        return tn_raise(TN_ESTATE,
                        "%s: %s was recorded by another thread; a tape belongs to the thread that recorded it",
                        r->p->name, n->op->name);
    if (n->run == r->id) return TN_OK;
    for (const tn__engine_run *a = r->around; a; a = a->around)
        if (n->run == a->id)
            return tn_raise(TN_ESTATE,
                            "%s: %s is on a tape that is being read; inside a backward only other tapes can be read",
                            r->p->name, n->op->name);
    if (n->spent)
        return tn_raise(TN_ESTATE,
                        "%s: the tape of %s was already read and freed; set .retain = true, or run the forward again",
                        r->p->name, n->op->name);
    n->run = r->id;
    n->child = n->sibling = n->next = NULL;
    n->wanted = !r->found;
    *heap = meld(*heap, n);
    return TN_OK;
}

/* Puts all nodes that the roots depend on into r->list, largest number first. */
static tn_status collect(tn__engine_run *r)
{
    const tn__backward_pass *p = r->p;
    tn__node                *heap = NULL, **tail = &r->list;
    for (int i = 0; i < p->roots; i++)
        if (p->root[i]->node && visit(r, &heap, tn__node_of(p->root[i])) != TN_OK) break;
    while (heap && tn__self.error == TN_OK) {
        tn__node *n = heap;
        heap = pop(heap);
        *tail = n;
        tail = &n->next;
        for (int i = 0; i < n->nin; i++) {
            tn__node *up = n->edge[i].node;
            if (!up) continue;
            if (up->seq > r->floor) {
                if (visit(r, &heap, up) != TN_OK) break;
                continue;
            }
            bool known = false;
            for (int k = 0; k < p->inputs; k++)
                known = known || (p->input[k]->node == &up->object && p->input[k]->output == n->edge[i].output);
            if (!known) {
                tn_raise(
                    TN_ESTATE,
                    "tn_checkpoint: the segment uses a result of %s that was recorded outside and is not among its "
                    "inputs; pass it as an input",
                    up->op->name);
                break;
            }
        }
    }
    *tail = NULL;
    return tn__self.error;
}

/* For tn_grad_of: marks the nodes that lead to a target; the others are not computed. Reverses the list while it works,
 * so that inputs come first. */
static void mark_wanted(tn__engine_run *r)
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
            (n->op->saves & TN__SAVE_ALL_IN) != 0; /* a checkpoint: its leaves are not known before it runs again */
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

static tn_status check_seed(const tn__backward_pass *p, int i)
{
    const tn_tensor *root = p->root[i], *seed = p->seed ? p->seed[i] : NULL;
    char             a[192], b[192];
    if (!seed && tn_shape_numel(root->l.shape) == 1) return TN_OK;
    if (!seed)
        return tn_raise(
            TN_ESHAPE,
            "%s: the root has shape %s, so it needs a seed of that shape; or reduce it first with tn_sum or tn_mean",
            p->name, tn_shape_text(root->l.shape, a, sizeof a));
    if (!tn_shape_equal(seed->l.shape, root->l.shape) || seed->dtype != root->dtype)
        return tn_raise(TN_ESHAPE, "%s: the seed is %s %s, the root %s %s; they must agree", p->name,
                        tn_dtype_name(seed->dtype), tn_shape_text(seed->l.shape, a, sizeof a),
                        tn_dtype_name(root->dtype), tn_shape_text(root->l.shape, b, sizeof b));
    return TN_OK;
}

static tn_status plant_seeds(tn__engine_run *r)
{
    const tn__backward_pass *p = r->p;
    for (int i = 0; i < p->roots; i++) {
        tn_tensor  *root = p->root[i], *seed = p->seed && p->seed[i] ? p->seed[i] : tn_ones_like(root);
        bool        bad = !seed;
        tn_tensor **to = root->node ? &tn__node_of(root)->grad[root->output] : tn__leaf_target(r, root, &bad);
        if (bad || (to && !tn__add_to(r, to, seed))) return tn__self.error;
    }
    return TN_OK;
}

/* Stores the gradients of tn_grad_of's targets that are results of n: they are complete when n's turn comes. */
static void catch_targets(tn__engine_run *r, const tn__node *n)
{
    for (int k = 0; r->found && k < r->p->count; k++) {
        const tn_tensor *w = r->p->wrt[k];
        if (w->node == &n->object && n->grad[w->output] && !r->found[k]) r->found[k] = tn_keep(n->grad[w->output]);
    }
}

/* For tn_retain_grad: sets n's gradients aside, added to those retained before, until nothing can fail any more. */
static tn_status keep_grads(tn__engine_run *r, tn__node *n)
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

/* Ends keep_grads: makes the gradients set aside the retained ones; after a failure drops them. */
static void settle_kept(const tn__engine_run *r, bool well)
{
    for (tn__node *n = r->keeps ? r->list : NULL; n; n = n->next)
        for (tn__watch *w = n->watches; w; w = w->next) {
            if (!w->grad) continue;
            tn_tensor **kept = &n->kept[w->output], *gone = well ? *kept : w->grad;
            if (well) *kept = w->grad;
            w->grad = NULL;
            tn_drop(gone);
        }
}

/* Raises: a gradient does not have its leaf's shape, because tn_adopt has replaced the leaf's tensor meanwhile. */
static tn_status not_of_its_shape(const tn_tensor *leaf, const tn_tensor *grad, const char *grad_name,
                                  const char *advice)
{
    char a[192], b[192];
    return tn_raise(TN_ESTATE, "backward: %s is %s now, and %s is %s: tn_adopt replaced its tensor; %s",
                    leaf->name ? leaf->name : "a leaf", tn_shape_text(leaf->l.shape, a, sizeof a), grad_name,
                    tn_shape_text(grad->l.shape, b, sizeof b), advice);
}

/* Handles a leaf that tn_adopt changed after its old gradient was made: another shape is an error; for another dtype
 * the sum with the old gradient is computed here, in the leaf's dtype. */
static tn_status meet_old_grad(tn__grad_slot *s)
{
    tn_tensor *leaf = s->leaf, *sum;
    if (!tn_shape_equal(leaf->grad->l.shape, leaf->l.shape))
        return not_of_its_shape(leaf, leaf->grad, "its old gradient", "tn_zero_grad it first");
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

static tn_status ready_slot(tn__grad_slot *s)
{
    if (!s->grad) return TN_OK;
    tn_tensor *leaf = s->leaf;
    if (s->rows && !tn__rows_fit(leaf, s->grad, s->rows)) return tn__self.error;
    if (s->rows && leaf->rows) { /* both are stored as few rows: so is the sum, and leaf->grad is not changed yet */
        s->whole = tn__rows_add(leaf, &s->grad, &s->rows, leaf->rows, leaf->grad, -1);
        s->ready = s->whole ? tn_keep(s->grad) : NULL;
        return tn__self.error;
    }
    if (leaf->grad && (!tn__rows_spread(leaf, &leaf->grad, &leaf->rows) || !tn__rows_spread(leaf, &s->grad, &s->rows)))
        return tn__self.error;
    if (tn__call_hooks(tn__leaf_watches(leaf), 0, &s->grad, "backward") != TN_OK) return tn__self.error;
    if (!s->rows && !tn_shape_equal(leaf->l.shape, s->grad->l.shape))
        return not_of_its_shape(leaf, s->grad, "its gradient", "adopt before the forward pass or after the backward");
    if (!(s->ready = tn__unshared(s->grad, leaf->dtype)) || !leaf->grad) return tn__self.error;
    if (meet_old_grad(s) != TN_OK || !tn__tape.anomaly) return tn__self.error;
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

/* After a failure: consumes the tape and restores the generators' states from its start (a second forward pass draws
 * the same), unless they were seeded since. Only those known to be alive: the thread's own and the current one. */
static void undo(tn__engine_run *r)
{
    for (tn__node *n = r->list; n; n = n->next) { /* the oldest node comes last, so its state is the final one */
        tn_generator *g = n->generator;
        if (g != &tn__self.own && g != tn_current_generator()) g = NULL;
        if (g && g->seed == n->before.seed && g->position > n->before.position) *g = n->before;
        for (int i = 0; i < n->nout; i++) tn_drop(n->grad[i]), n->grad[i] = NULL;
    }
    for (tn__node *n = r->list, *next; n; n = next) {
        next = n->next;
        tn__node_release(n);
    }
}

static tn_status check_pass(const tn__backward_pass *p)
{
    for (int i = 0; i < p->roots; i++) {
        tn_tensor *root = p->root[i];
        if (!root) return tn_raise(TN_EINVAL, "%s: the root is NULL", p->name);
        if (!tn__given(p->name, "the root", root) || !tn__up_to_date(root, p->name, "the root", -1))
            return tn__self.error;
        if (!tn__needs_grad(root))
            return tn_raise(
                TN_ESTATE,
                "%s: the root depends on no tensor that requires grad; mark one with tn_requires_grad, and compute "
                "the root outside tn_no_grad_begin()",
                p->name);
        if (check_seed(p, i) != TN_OK) return tn__self.error;
    }
    for (int k = 0; k < p->count; k++) {
        if (p->wrt[k] && (!tn__alive(p->name, p->wrt[k]) || !tn__up_to_date(p->wrt[k], p->name, "tensor", k)))
            return tn__self.error;
        if (!p->wrt[k] || !tn__needs_grad(p->wrt[k]))
            return tn_raise(p->wrt[k] ? TN_ESTATE : TN_EINVAL, "%s: target %d %s", p->name, k,
                            p->wrt[k] ? "is neither a leaf nor on the tape" : "is NULL");
    }
    return TN_OK;
}

/* Processes a node whose gradients are complete: calls its hooks, stores those of targets, and runs the op's backward,
 * which computes the gradients of its inputs. */
static tn_status pass_node(tn__engine_run *r, tn__node *n)
{
    bool any = false;
    for (int i = 0; i < n->nout; i++) {
        any = any || n->grad[i];
        if (tn__call_hooks(n->watches, i, &n->grad[i], n->op->name) != TN_OK) return tn__self.error;
    }
    catch_targets(r, n);
    if (any && n->wanted) {
        tn_scope s = tn_scope_begin();
        if (tn__tape.profile) tn__timed_begin(n->path ? n->path : "", n->op->name, TN__TIMED_OP, true);
        tn__run_node(r, n);
        if (tn__tape.profile) tn__timed_end();
        tn_scope_end(s);
        if (tn__self.error != TN_OK || keep_grads(r, n) != TN_OK) return tn__self.error;
    }
    for (int i = 0; i < n->nout; i++) tn_drop(n->grad[i]), n->grad[i] = NULL;
    return TN_OK;
}

/* Counts the uses of each leaf in the list. A checkpoint may use any leaf: then r->ready is not called at all. */
static tn_status count_uses(tn__engine_run *r)
{
    for (const tn__node *n = r->list; n && r->ready; n = n->next) {
        if (n->op->saves & TN__SAVE_ALL_IN) r->ready = NULL;
        for (int i = 0; i < n->nin && r->ready; i++) {
            tn__grad_slot *s = n->edge[i].leaf ? tn__leaf_slot(r, n->edge[i].leaf) : NULL;
            if (s) s->uses++, s->products += !(n->op->saves & TN__FEW_ROWS);
            if (tn__self.error != TN_OK) return tn__self.error;
        }
    }
    return TN_OK;
}

/* Called after node n: reports the leaves whose last use it was, or whose other uses are all lookups. */
static void tell_ready(tn__engine_run *r, const tn__node *n)
{
    for (int i = 0; i < n->nin && tn__self.error == TN_OK; i++) {
        tn_tensor     *leaf = n->edge[i].leaf;
        tn__grad_slot *s = leaf ? tn__leaf_slot(r, leaf) : NULL;
        const bool     product = !(n->op->saves & TN__FEW_ROWS);
        if (!s) continue;
        s->uses--, s->products -= product;
        if ((s->uses && s->products) || !s->grad || s->rows || s->grad->dtype != leaf->dtype ||
            tn__leaf_watches(leaf) || !tn_shape_equal(s->grad->l.shape, leaf->l.shape))
            continue;
        r->ready(leaf, s->grad, product ? NULL : n->saved_in[1].t, !s->uses, r->ready_user);
    }
}

static tn_status pass(tn__engine_run *r)
{
    const tn__backward_pass *p = r->p;
    tn_scope                 outer = tn_scope_begin();
    r->id = ++tn__tape.runs, r->thread = tn__thread_id();
    tn__self.mode = (tn_mode){.no_grad = !p->create_graph}; /* autocast off: the tape holds the conversions */
    if (p->count && !(r->found = tn__mem_zeroed((size_t)p->count * sizeof *r->found))) goto done;
    if (collect(r) != TN_OK) goto done;
    if (r->found) mark_wanted(r);
    if (plant_seeds(r) != TN_OK || count_uses(r) != TN_OK) goto done;
    for (tn__node *n = r->list, *next; n && tn__self.error == TN_OK; n = next) {
        next = n->next;
        if (pass_node(r, n) != TN_OK) break;
        if (r->ready) tell_ready(r, n);
        if (!p->retain && !p->create_graph && !p->count) tn__node_release(n);
    }
    for (int k = 0; r->found && !r->outer && k < p->count; k++)
        if (p->wrt[k]->leaf && tn__call_hooks(tn__leaf_watches(p->wrt[k]), 0, &r->found[k], p->name) != TN_OK) break;
done:
    if (tn__self.error != TN_OK) undo(r);
    tn_scope_end(outer);
    return tn__self.error;
}

static void end_run(tn__engine_run *r)
{
    for (int64_t i = 0; i < r->nslots; i++)
        tn_drop(r->slots[i].leaf), tn_drop(r->slots[i].grad), tn_drop(r->slots[i].rows), tn_drop(r->slots[i].ready);
    tn__mem_put(r->slots, (size_t)r->capacity * sizeof *r->slots);
    tn__mem_put(r->table, (size_t)r->table_size * sizeof *r->table);
    for (int k = 0; r->found && k < r->p->count; k++) tn_drop(r->found[k]);
    tn__mem_put(r->found, (size_t)r->p->count * sizeof *r->found);
}

/* Moves tn_grad_of's gradients to the caller's scope. */
static void hand_over(tn__engine_run *r)
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

static tn_status run_telling(const tn__backward_pass *p, tn_grad_ready ready, void *user)
{
    tn__engine_run r = {.p = p, .around = tn__tape.running, .ready = ready, .ready_user = user};
    for (int k = 0; k < p->count; k++) p->grad[k] = NULL;
    if (check_pass(p) != TN_OK) return tn__self.error;
    tn_span_begin(p->name);
    tn__tape.running = &r;
    for (int i = 0; i < p->roots; i++) tn_keep(p->root[i]); /* a hook may drop them */
    if (pass(&r) == TN_OK && p->count == 0) {
        tn_scope s = tn_no_grad_begin();
        for (int64_t i = 0; i < r.nslots && tn__self.error == TN_OK; i++) ready_slot(&r.slots[i]);
        if (tn__self.error != TN_OK) undo(&r);
        tn__tape.inside++;
        for (int64_t i = 0; i < r.nslots && tn__self.error == TN_OK; i++) attach(&r.slots[i]);
        tn__tape.inside--;
        tn_scope_end(s);
    }
    settle_kept(&r, tn__self.error == TN_OK);
    hand_over(&r);
    if (tn__self.error == TN_OK && p->count && !p->retain && !p->create_graph)
        for (tn__node *n = r.list; n; n = n->next) tn__node_release(n);
    tn__tape.running = r.around;
    for (int i = 0; i < p->roots; i++) tn_drop(p->root[i]);
    end_run(&r);
    tn_span_end();
    if (tn__tape.anomaly && p->count == 0) tn__tape.steps++;
    return tn__self.error;
}

tn_status tn__backward(const tn__backward_pass *p) { return run_telling(p, NULL, NULL); }

tn_status tn_backward_telling(tn_tensor *root, tn_tensor *seed, tn_grad_ready ready, void *user)
{
    if (tn__blocked()) return tn__self.error;
    return run_telling(&(tn__backward_pass){.roots = 1, .root = &root, .seed = &seed, .name = "tn_backward"}, ready,
                       user);
}

tn_status tn__backward_inside(const tn__backward_pass *p, void *engine, uint64_t floor)
{
    tn__engine_run r = {.p = p, .outer = ((void **)engine)[0], .around = tn__tape.running, .floor = floor};
    for (int k = 0; k < p->count; k++) p->grad[k] = NULL;
    tn__tape.running = &r;
    pass(&r);
    hand_over(&r);
    tn__tape.running = r.around;
    end_run(&r);
    return tn__self.error;
}

/* ---- the public calls -------------------------------------------------------------------------------------------- */

tn_status tn_backward_run(tn_backward_args c)
{
    if (tn__blocked()) return tn__self.error;
    if (c.count < 0 || (c.count ? c.root || c.seed || !c.roots : c.roots || c.seeds))
        return tn_raise(TN_EINVAL, "tn_backward: give either one root (and .seed), or .count and .roots (and .seeds)");
    tn__backward_pass p = {.roots = c.count ? c.count : 1,
                           .root = c.count ? c.roots : &c.root,
                           .seed = c.count ? c.seeds : &c.seed,
                           .retain = c.retain,
                           .name = "tn_backward"};
    return tn__backward(&p);
}

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
