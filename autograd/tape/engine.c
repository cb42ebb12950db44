/* engine.c — the backward pass: reads the tape from its end. The idea, in 12 lines:
 *
 *   backward(root):
 *       root.node.grad = seed
 *       heap = {root.node}
 *       while heap is not empty:
 *           n = heap.remove(the node with the largest number)
 *           gx = n.op.backward(n.saved, n.grad)                the chain rule
 *           for each input i of n:
 *               if input i is a leaf:  leaf.grad += gx[i]
 *               else:                  m = the node that computed input i
 *                                      m.grad += gx[i],  heap.add(m)
 *           drop n.saved and n.grad
 *
 * Nodes are numbered as they are recorded, so an op has a larger number than the ops that computed its inputs. Taking
 * the largest number first visits each node after all nodes that depend on it: by then its gradient is complete.
 *
 * The code does this in two steps: `collect` puts the nodes in a list and checks them, then `pass` computes. Gradients
 * of leaves are collected in slots and attached at the very end, when nothing can fail any more: a failed backward
 * changes no leaf. The heap is linked through the nodes: no memory, no recursion.
 *
 * In other files: run_node.c runs the backward of a node; accumulate.c adds gradients; engine_leaves.c attaches those
 * of leaves; engine_targets.c is tn_grad_of; engine_ready.c reports complete gradients; engine_check.c checks roots. */
#include "autograd/tape/engine_parts.h"
#include "autograd/tape/profile.h"
#include "autograd/tape/unwind.h"

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

static tn_status seed_roots(tn__engine_run *r)
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

/* Processes a node whose gradients are complete: calls its hooks, and runs the op's backward, which computes the
 * gradients of its inputs. */
static tn_status pass_node(tn__engine_run *r, tn__node *n)
{
    bool any = false;
    for (int i = 0; i < n->nout; i++) {
        any = any || n->grad[i];
        if (n->watches && tn__call_hooks(n->watches, i, &n->grad[i], n->op->name) != TN_OK) return tn__self.error;
    }
    if (r->found) tn__take_targets(r, n);
    if (any && n->wanted) {
        tn_scope s = tn_scope_begin();
        if (tn__tape.profile) tn__timed_begin(n->path ? n->path : "", n->op->name, TN__TIMED_OP, true);
        tn__run_node(r, n);
        if (tn__tape.profile) tn__timed_end();
        tn_scope_end(s);
        if (tn__self.error != TN_OK || (n->watches && tn__set_aside(r, n) != TN_OK)) return tn__self.error;
    }
    for (int i = 0; i < n->nout; i++) tn_drop(n->grad[i]), n->grad[i] = NULL;
    return TN_OK;
}

static tn_status pass(tn__engine_run *r)
{
    const tn__backward_pass *p = r->p;
    tn_scope                 outer = tn_scope_begin();
    r->id = ++tn__tape.runs, r->thread = tn__thread_id();
    tn__self.mode = (tn_mode){.no_grad = !p->create_graph, .trains = true}; /* no autocast: it is on the tape */
    if (p->count && !tn__begin_targets(r)) goto done;
    if (collect(r) != TN_OK) goto done;
    if (r->found) tn__mark_wanted(r);
    if (seed_roots(r) != TN_OK || (r->ready && tn__count_uses(r) != TN_OK)) goto done;
    for (tn__node *n = r->list, *next; n; n = next) {
        next = n->next;
        if (pass_node(r, n) != TN_OK) goto done;
        if (r->ready) tn__report_ready(r, n);
        if (!p->retain && !p->create_graph && !p->count) tn__node_release(n);
        if (tn__self.error != TN_OK) goto done;
    }
    if (r->found && !r->outer) tn__target_hooks(r);
done:
    if (tn__self.error != TN_OK) undo(r);
    tn_scope_end(outer);
    return tn__self.error;
}

/* Frees what the pass holds; after an exception also the rest of its tape, as after an error. */
static void end_run(tn__engine_run *r)
{
    if (!r->open) return;
    r->open = false;
    if (tn__tape.running == r) /* an exception left it so */
        undo(r), tn__retain(r, false), tn_span_end();
    for (int64_t i = 0; i < r->nslots; i++)
        tn_drop(r->slots[i].leaf), tn_drop(r->slots[i].grad), tn_drop(r->slots[i].rows), tn_drop(r->slots[i].ready);
    tn__mem_put(r->slots, (size_t)r->capacity * sizeof *r->slots);
    tn__mem_put(r->table, (size_t)r->table_size * sizeof *r->table);
    for (int k = 0; r->found && k < r->p->count; k++) tn_drop(r->found[k]);
    tn__mem_put(r->found, (size_t)r->p->count * sizeof *r->found);
    for (int i = 0; !r->outer && i < r->p->roots; i++) tn_drop(r->p->root[i]);
}

tn_status tn__backward(const tn__backward_pass *p)
{
    TN__UNWINDS                                      u = tn__unwind_begin();
    __attribute__((cleanup(end_run))) tn__engine_run r = {.p = p, .around = tn__tape.running, .ready = p->ready};
    for (int k = 0; k < p->count; k++) p->grad[k] = NULL;
    if (tn__check_pass(p) != TN_OK) return tn__self.error;
    tn_span_begin(p->name);
    tn__tape.running = &r, r.open = true;
    for (int i = 0; i < p->roots; i++) tn_keep(p->root[i]); /* a hook may drop them */
    if (pass(&r) == TN_OK && p->count == 0) {
        tn_scope s = tn_no_grad_begin();
        if (tn__prepare_leaves(&r) == TN_OK) tn__attach_leaves(&r);
        else undo(&r);
        tn_scope_end(s);
    }
    tn__retain(&r, tn__self.error == TN_OK);
    tn__deliver_targets(&r);
    const bool consumes = tn__self.error == TN_OK && p->count && !p->retain && !p->create_graph;
    for (tn__node *n = consumes ? r.list : NULL; n; n = n->next)
        if (n->wanted) tn__node_release(n);
    tn__tape.running = r.around;
    end_run(&r);
    tn_span_end();
    if (tn__tape.anomaly && p->count == 0) tn__tape.steps++;
    return tn__self.error;
}

tn_status tn__backward_inside(const tn__backward_pass *p, void *engine, uint64_t floor)
{
    __attribute__((cleanup(end_run))) tn__engine_run r = {
        .p = p, .outer = ((void **)engine)[0], .around = tn__tape.running, .floor = floor, .open = true};
    for (int k = 0; k < p->count && !p->adds; k++) p->grad[k] = NULL;
    tn__tape.running = &r;
    pass(&r);
    tn__deliver_targets(&r);
    tn__tape.running = r.around;
    end_run(&r);
    return tn__self.error;
}

bool tn__creates_graph(const tn_back *b) { return ((tn__engine_run *)((void **)b->engine)[0])->p->create_graph; }

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

tn_status tn_backward_notify(tn_tensor *root, tn_tensor *seed, tn_grad_ready ready, void *user)
{
    if (tn__blocked()) return tn__self.error;
    return tn__backward(&(tn__backward_pass){
        .roots = 1, .root = &root, .seed = &seed, .ready = ready, .ready_user = user, .name = "tn_backward"});
}
