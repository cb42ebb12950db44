/* engine.c — reading the tape from its end.
 *
 * Nodes are numbered as they are recorded, and an op's inputs have smaller numbers than the op; so taking the largest
 * number first visits every node after all that depend on it. The nodes waiting for their turn are in a pairing heap
 * that is linked through the nodes themselves: no memory, no recursion. What the heap gives is first put in a list, so
 * that everything can be checked, and what leads nowhere left out, before anything is computed.
 *
 * Gradients under way hang on the nodes; those for leaves and for tn_grad_of's targets are collected in slots and
 * handed over at the very end, when nothing can fail any more. */
#include "autograd/room.h"
#include "autograd/tape.h"

#include <string.h>

typedef struct {
    tn_tensor *leaf; /* kept */
    tn_tensor *grad; /* kept; NULL so far */
    tn_tensor *ready; /* what will be attached */
} slot;

typedef struct run {
    const tn_pass *p;
    struct run    *outer; /* leaves collect there */
    uint64_t       id, floor;
    slot          *slots; /* in the order in which the leaves were met */
    int64_t        nslots, capacity;
    int64_t       *table; /* open addressing: 1 + the slot's index, 0 empty */
    int64_t        table_size;
    tn_tensor    **found; /* tn_grad_of's gradients, one a target, kept */
    tn_node       *list;  /* largest number first */
} run;

/* ---- the pairing heap --------------------------------------------------------------------------------------------- */

static tn_node *meld(tn_node *a, tn_node *b)
{
    if (!a) return b;
    if (!b) return a;
    if (a->seq < b->seq) {
        tn_node *t = a;
        a = b, b = t;
    }
    b->sibling = a->child;
    a->child = b;
    return a;
}

static tn_node *pop(tn_node *top)
{
    tn_node *pairs = NULL, *rest = top->child, *heap = NULL;
    while (rest) { /* meld in pairs from the left, then all from the right */
        tn_node *a = rest, *b = a->sibling;
        rest = b ? b->sibling : NULL;
        a->sibling = NULL;
        if (b) b->sibling = NULL;
        a = meld(a, b);
        a->sibling = pairs;
        pairs = a;
    }
    while (pairs) {
        tn_node *next = pairs->sibling;
        pairs->sibling = NULL;
        heap = meld(heap, pairs);
        pairs = next;
    }
    top->child = NULL;
    return heap;
}

/* ---- slots for leaves ------------------------------------------------------------------------------------------------ */

static size_t hash(const void *p) { return (size_t)(((uintptr_t)p >> 6) * UINT64_C(0x9E3779B97F4A7C15) >> 20); }

static void enter(run *r, int64_t index)
{
    size_t mask = (size_t)r->table_size - 1, at = hash(r->slots[index].leaf) & mask;
    while (r->table[at]) at = (at + 1) & mask;
    r->table[at] = index + 1;
}

static slot *slot_of(run *r, tn_tensor *leaf)
{
    if (r->table_size) {
        size_t mask = (size_t)r->table_size - 1;
        for (size_t at = hash(leaf) & mask; r->table[at]; at = (at + 1) & mask)
            if (r->slots[r->table[at] - 1].leaf == leaf) return &r->slots[r->table[at] - 1];
    }
    if (r->nslots == r->capacity) {
        int64_t cap = r->capacity ? 2 * r->capacity : 16;
        void   *slots = r->slots;
        int64_t *table = tn__mem_zeroed((size_t)(2 * cap) * sizeof *table);
        if (!table) return NULL;
        if (!tn__mem_grow(&slots, (size_t)r->capacity * sizeof *r->slots, (size_t)cap * sizeof *r->slots))
            return tn__mem_put(table, (size_t)(2 * cap) * sizeof *table), NULL;
        tn__mem_put(r->table, (size_t)r->table_size * sizeof *r->table);
        r->slots = slots, r->capacity = cap, r->table = table, r->table_size = 2 * cap;
        for (int64_t i = 0; i < r->nslots; i++) enter(r, i);
    }
    r->slots[r->nslots] = (slot){.leaf = tn_keep(leaf)};
    enter(r, r->nslots);
    return &r->slots[r->nslots++];
}

/* ---- gradients -------------------------------------------------------------------------------------------------------- */

/* Nobody else sees g's memory, so it may be added to in place. */
static bool exclusive(const tn_tensor *g)
{
    return atomic_load_explicit(&g->refs, memory_order_relaxed) == 1 && !g->node && !g->leaf && !g->storage->borrowed &&
           atomic_load_explicit(&g->storage->refs, memory_order_relaxed) == 1 && tn__layout_contiguous(&g->l);
}

/* g summed over the dims that broadcasting added, so that it has shape s. */
static tn_tensor *sum_to(tn_tensor *g, tn_shape s)
{
    if (!g || tn_shape_equal(g->l.shape, s)) return g;
    tn_dims dims = {.n = 0};
    int     lead = g->l.shape.n - s.n;
    for (int i = 0; i < g->l.shape.n; i++)
        if (i < lead || (s.d[i - lead] == 1 && g->l.shape.d[i] != 1)) dims.d[dims.n++] = i;
    if (dims.n) g = tn_sum_run((tn_reduce_args){.x = g, .dims = dims, .keepdim = true});
    return tn_reshape(g, s);
}

/* Whether result `output` of n was asked for. */
static bool is_target(const run *r, const tn_node *n, int output)
{
    for (int k = 0; r->found && k < r->p->count; k++)
        if (r->p->wrt[k]->node == &n->object && r->p->wrt[k]->output == output) return true;
    return false;
}

/* Where a leaf's gradient goes: to a target of this pass or of one around it, or to the leaf's slot. NULL: nowhere. */
static tn_tensor **leaf_target(run *r, tn_tensor *leaf, bool *bad)
{
    for (;; r = r->outer) {
        for (int k = 0; r->found && k < r->p->count; k++)
            if (r->p->wrt[k] == leaf) return &r->found[k];
        if (!r->outer) break;
    }
    if (r->found) return NULL; /* tn_grad_of touches no leaf */
    slot *s = slot_of(r, leaf);
    *bad = !s;
    return s ? &s->grad : NULL;
}

/* Where the gradient of input i of node n goes; NULL: nowhere (bad: no memory for it). */
static tn_tensor **target(run *r, const tn_node *n, int i, bool *bad)
{
    const tn_edge *e = &n->edge[i];
    *bad = false;
    if (e->leaf) return leaf_target(r, e->leaf, bad);
    if (e->node->run == r->id) return r->found && !e->node->wanted && !is_target(r, e->node, e->output) ? NULL : &e->node->grad[e->output];
    for (int k = 0; r->found && k < r->p->count; k++) /* beyond the floor */
        if (r->p->wrt[k]->node == &e->node->object && r->p->wrt[k]->output == e->output) return &r->found[k];
    return NULL;
}

static bool add_to(run *r, tn_tensor **to, tn_tensor *g)
{
    if (!*to) {
        *to = tn_keep(g);
    } else if (!r->p->create_graph && exclusive(*to) && (*to)->dtype == g->dtype) {
        if (!tn_add_(*to, g)) return false;
    } else {
        tn_tensor *sum = tn_add(*to, g);
        if (!sum) return false;
        tn_drop(*to);
        *to = tn_keep(sum);
    }
    return true;
}

tn_tensor *tn__grad_buffer(tn_back *b, int i)
{
    void   **engine = b->engine;
    run     *r = engine[0];
    tn_node *n = engine[1];
    bool     bad;
    tn_tensor **to = target(r, n, i, &bad);
    if (bad) return NULL;
    if (!to) return tn_zeros_of(b->in_dtype[i], b->in_shape[i]); /* leads nowhere */
    if (*to && !(exclusive(*to) && (*to)->dtype == b->in_dtype[i])) {
        tn_tensor *copy = tn__new_owned(b->in_dtype[i], b->in_shape[i]);
        if (!copy) return NULL;
        tn__copy(copy, *to);
        tn_drop(*to);
        *to = copy;
    } else if (!*to) {
        if (!(*to = tn__new_owned(b->in_dtype[i], b->in_shape[i]))) return NULL;
        tn__fill(*to, 0);
    }
    return *to;
}

bool tn__creates_graph(const tn_back *b) { return ((run *)((void **)b->engine)[0])->p->create_graph; }

/* Calls the hooks of a result or leaf on its gradient. */
static tn_status hooked(tn_watch *w, int output, tn_tensor **g, const char *who)
{
    for (; w && tn__self.error == TN_OK; w = w->next) {
        if (w->output != output || !w->fn || !*g) continue;
        tn_tensor *to = w->fn(*g, w->user);
        if (!to || to == *g) continue;
        char a[192], b[192];
        if (!tn_shape_equal(to->l.shape, (*g)->l.shape) || to->dtype != (*g)->dtype)
            return tn_raise(TN_ESHAPE, "%s: a hook returned %s %s for a gradient that is %s %s", who, tn_dtype_name(to->dtype),
                            tn_shape_text(to->l.shape, a, sizeof a), tn_dtype_name((*g)->dtype), tn_shape_text((*g)->l.shape, b, sizeof b));
        tn_keep(to);
        tn_drop(*g);
        *g = to;
    }
    return tn__self.error;
}

/* ---- one node ----------------------------------------------------------------------------------------------------------- */

static tn_status check_version(const tn_node *n, const tn_saved *s, const char *what, int i)
{
    if (!s->t || atomic_load(&s->t->storage->version) == s->version) return TN_OK;
    const char *who = atomic_load(&s->t->storage->writer);
    if (!strncmp(who, "tn_", 3))
        return tn_raise(TN_ESTATE, "backward: %s changed in place what %s saved (%s %d); change it before the %s, or after the backward", who,
                        n->op->name, what, i, n->op->name);
    return tn_raise(TN_ESTATE, "backward: %s_ changed in place what %s saved (%s %d); use %s, or move it before the %s", who, n->op->name,
                    what, i, who, n->op->name);
}

/* The gradient as input i of n has it: its shape and its number type. */
static tn_tensor *fitted(const tn_node *n, int i, tn_tensor *g)
{
    char a[192], b[192];
    if (!tn__broadcastable(n->shape[i], g->l.shape) || !tn__is_float(g->dtype)) {
        tn_raise(TN_ESHAPE, "backward of %s: the gradient of input %d is %s %s, but the input is %s", n->op->name, i, tn_dtype_name(g->dtype),
                 tn_shape_text(g->l.shape, a, sizeof a), tn_shape_text(n->shape[i], b, sizeof b));
        return NULL;
    }
    g = sum_to(g, n->shape[i]);
    return g && g->dtype != n->dtype[i] ? tn_to(g, n->dtype[i]) : g;
}

enum { FEW = 8 };

static tn_status run_node(run *r, tn_node *n)
{
    const bool    graph = r->p->create_graph;
    tn_tensor    *few[3 * FEW], **in = few;
    bool          need_few[3 * FEW];
    const int     total = 2 * n->nin + n->nout;
    void (*fn)(tn_back *) = graph ? n->op->backward_ops : n->op->backward ? n->op->backward : n->op->backward_ops;
    if (!fn)
        return tn_raise(TN_EUNSUPPORTED, "%s: has no backward made of ops, so its gradient cannot be differentiated; give the op a .backward_ops",
                        n->op->name);
    if (total > 3 * FEW && !(in = tn__mem_get((size_t)total * (sizeof *in + 1)))) return tn__self.error;
    tn_tensor **gx = in + n->nin, **out = gx + n->nin;
    bool       *need = in == few ? need_few : (bool *)(in + total), bad;
    for (int i = 0; i < n->nin; i++) {
        need[i] = n->need[i] && target(r, n, i, &bad);
        if (n->need[i] && bad) goto done;
        if (check_version(n, &n->saved_in[i], "input", i) != TN_OK) goto done;
        in[i] = n->saved_in[i].t, gx[i] = NULL;
    }
    for (int i = 0; i < n->nout; i++) {
        if (check_version(n, &n->saved_out[i], "result", i) != TN_OK) goto done;
        out[i] = n->saved_out[i].t;
        if (!graph || !out[i]) continue;
        if (!(out[i] = tn__alias(out[i], &out[i]->l))) goto done; /* the result itself, on the tape where it was */
        out[i]->node = &n->object, out[i]->output = (uint8_t)i;
        atomic_fetch_add_explicit(&n->object.refs, 1, memory_order_relaxed);
    }
    void   *engine[2] = {r, n};
    tn_back b = {.op = n->op, .args = n->args, .nin = n->nin, .nout = n->nout, .in = in, .out = out, .gy = n->grad,
                 .in_shape = n->shape, .in_dtype = n->dtype, .need = need, .gx = gx, .engine = engine};
    tn__tape.inside++;
    fn(&b);
    tn__tape.inside--;
    for (int i = 0; i < n->nin && tn__self.error == TN_OK; i++) {
        if (!need[i] || !gx[i]) continue;
        tn_tensor *g = fitted(n, i, gx[i]);
        if (!g) break;
        if (tn__tape.anomaly) {
            char what[64];
            snprintf(what, sizeof what, "the gradient of input %d", i);
            char who[600];
            snprintf(who, sizeof who, "%s%sbackward of %s", n->path && *n->path ? n->path : "", n->path && *n->path ? ": " : "", n->op->name);
            if (!tn__check_finite(g, who, what)) break;
        }
        tn_tensor **to = target(r, n, i, &bad);
        if (to && !add_to(r, to, g)) break;
    }
done:
    if (in != few) tn__mem_put(in, (size_t)total * (sizeof *in + 1));
    return tn__self.error;
}

/* ---- one pass -------------------------------------------------------------------------------------------------------------- */

static tn_status visit(run *r, tn_node **heap, tn_node *n)
{
    if (n->run == r->id) return TN_OK;
    if (n->thread != tn__thread_id())
        return tn_raise(TN_ESTATE, "%s: %s was recorded by another thread; a tape belongs to the thread that recorded it", r->p->name, n->op->name);
    if (n->spent)
        return tn_raise(TN_ESTATE, "%s: the tape of %s was read already and is spent; ask for .retain = true the first time, or run the forward again",
                        r->p->name, n->op->name);
    n->run = r->id;
    n->child = n->sibling = n->next = NULL;
    n->wanted = !r->found;
    *heap = meld(*heap, n);
    return TN_OK;
}

/* The list of all nodes below the roots; and the gradients of the roots themselves. */
static tn_status collect(run *r)
{
    const tn_pass *p = r->p;
    tn_node       *heap = NULL, **tail = &r->list;
    for (int i = 0; i < p->roots; i++)
        if (p->root[i]->node && visit(r, &heap, tn__node_of(p->root[i])) != TN_OK) break;
    while (heap && tn__self.error == TN_OK) {
        tn_node *n = heap;
        heap = pop(heap);
        *tail = n;
        tail = &n->next;
        for (int i = 0; i < n->nin; i++) {
            tn_node *up = n->edge[i].node;
            if (!up) continue;
            if (up->seq > r->floor) {
                if (visit(r, &heap, up) != TN_OK) break;
                continue;
            }
            bool known = false; /* inside a checkpoint: the outer tape begins at its inputs */
            for (int k = 0; k < p->count; k++) known = known || (p->wrt[k]->node == &up->object && p->wrt[k]->output == n->edge[i].output);
            if (!known) {
                tn_raise(TN_ESTATE, "tn_checkpoint: the segment uses a result of %s that was recorded outside and is not among its inputs; pass it in", up->op->name);
                break;
            }
        }
    }
    *tail = NULL;
    return tn__self.error;
}

/* For tn_grad_of: only what leads to a target is worth computing. The list is turned round, so that inputs come first. */
static void mark_wanted(run *r)
{
    const tn_pass *p = r->p;
    tn_node       *back = NULL, *n = r->list;
    while (n) {
        tn_node *next = n->next;
        n->next = back;
        back = n;
        n = next;
    }
    for (r->list = NULL; back;) {
        n = back;
        n->wanted = (n->op->saves & TN_SAVE_ALL_IN) != 0; /* a checkpoint: what it leads to is not known before it runs */
        for (int i = 0; i < n->nin && !n->wanted; i++) {
            const tn_edge *e = &n->edge[i];
            n->wanted = (e->node && e->node->run == r->id && e->node->wanted) || (r->outer && e->leaf);
            for (int k = 0; k < p->count && !n->wanted; k++)
                n->wanted = e->leaf ? p->wrt[k] == e->leaf : e->node && p->wrt[k]->node == &e->node->object && p->wrt[k]->output == e->output;
        }
        back = n->next;
        n->next = r->list;
        r->list = n;
    }
}

static tn_status check_seed(const tn_pass *p, int i)
{
    const tn_tensor *root = p->root[i], *seed = p->seed ? p->seed[i] : NULL;
    char             a[192], b[192];
    if (!seed && tn_shape_numel(root->l.shape) == 1) return TN_OK;
    if (!seed)
        return tn_raise(TN_ESHAPE, "%s: the root has shape %s, so it needs a seed of that shape; or reduce it first with tn_sum or tn_mean",
                        p->name, tn_shape_text(root->l.shape, a, sizeof a));
    if (!tn_shape_equal(seed->l.shape, root->l.shape) || seed->dtype != root->dtype)
        return tn_raise(TN_ESHAPE, "%s: the seed is %s %s, the root %s %s; they must agree", p->name, tn_dtype_name(seed->dtype),
                        tn_shape_text(seed->l.shape, a, sizeof a), tn_dtype_name(root->dtype), tn_shape_text(root->l.shape, b, sizeof b));
    return TN_OK;
}

static tn_status plant_seeds(run *r)
{
    const tn_pass *p = r->p;
    for (int i = 0; i < p->roots; i++) {
        tn_tensor *root = p->root[i], *seed = p->seed && p->seed[i] ? p->seed[i] : tn_ones_like(root);
        bool       bad = !seed;
        tn_tensor **to = root->node ? &tn__node_of(root)->grad[root->output] : leaf_target(r, root, &bad);
        if (bad || (to && !add_to(r, to, seed))) return tn__self.error;
    }
    return TN_OK;
}

/* Targets of tn_grad_of that are not leaves: their gradient is complete when their node's turn comes. */
static void catch_targets(run *r, const tn_node *n)
{
    for (int k = 0; r->found && k < r->p->count; k++) {
        const tn_tensor *w = r->p->wrt[k];
        if (w->node == &n->object && n->grad[w->output] && !r->found[k]) r->found[k] = tn_keep(n->grad[w->output]);
    }
}

static void keep_grads(const run *r, tn_node *n)
{
    for (tn_watch *w = n->watches; w; w = w->next) {
        if (w->fn || !n->grad[w->output] || r->found) continue;
        tn_drop(n->kept[w->output]);
        n->kept[w->output] = tn_keep(n->grad[w->output]);
    }
}

/* A gradient that the leaf may own: dense, of its type and shape, and shared with nobody. */
static tn_status ready_slot(slot *s)
{
    if (!s->grad) return TN_OK;
    if (hooked(tn__leaf_watches(s->leaf), 0, &s->grad, "backward") != TN_OK) return tn__self.error;
    if (exclusive(s->grad) && s->grad->dtype == s->leaf->dtype) {
        s->ready = tn_keep(s->grad);
        return TN_OK;
    }
    if (!(s->ready = tn__new_owned(s->leaf->dtype, s->leaf->l.shape))) return tn__self.error;
    tn__copy(s->ready, s->grad);
    return TN_OK;
}

static void attach(slot *s)
{
    if (!s->ready) return;
    if (s->leaf->grad && tn_add_(s->leaf->grad, s->ready)) return; /* in place: takes no memory */
    tn_drop(s->leaf->grad);
    s->leaf->grad = s->ready;
    s->ready = NULL;
}

/* After a failure: the tape is consumed, and the generators stand where it began, so that a retry of the forward pass
 * draws the same numbers. Only generators known to be alive are set: the thread's own and the one in use. */
static void undo(run *r)
{
    for (tn_node *n = r->list; n; n = n->next) { /* the oldest node comes last and has the last word */
        if (n->generator && (n->generator == &tn__self.own || n->generator == tn_current_generator())) *n->generator = n->before;
        for (int i = 0; i < n->nout; i++) tn_drop(n->grad[i]), n->grad[i] = NULL;
    }
    for (tn_node *n = r->list; n;) {
        tn_node *next = n->next;
        tn__node_release(n);
        n = next;
    }
}

static tn_status check_pass(const tn_pass *p)
{
    for (int i = 0; i < p->roots; i++) {
        const tn_tensor *root = p->root[i];
        if (!root) return tn_raise(TN_EINVAL, "%s: the root is NULL", p->name);
        if (!tn__wants_grad(root))
            return tn_raise(TN_ESTATE, "%s: the root depends on no tensor that wants a gradient; mark one with tn_requires_grad, and compute the root outside tn_no_grad_begin()",
                            p->name);
        if (check_seed(p, i) != TN_OK) return tn__self.error;
    }
    for (int k = 0; k < p->count; k++)
        if (!p->wrt[k] || !tn__wants_grad(p->wrt[k]))
            return tn_raise(TN_ESTATE, "%s: tensor %d of those asked for %s", p->name, k, p->wrt[k] ? "is neither a leaf nor on the tape" : "is NULL");
    return TN_OK;
}

static tn_status pass(run *r)
{
    const tn_pass *p = r->p;
    tn_scope       outer = tn_scope_begin();
    r->id = ++tn__tape.runs;
    tn__self.no_grad = !p->create_graph;
    if (p->count && !(r->found = tn__mem_zeroed((size_t)p->count * sizeof *r->found))) goto done;
    if (collect(r) != TN_OK) goto done;
    if (r->found) mark_wanted(r);
    if (plant_seeds(r) != TN_OK) goto done;
    for (tn_node *n = r->list, *next; n && tn__self.error == TN_OK; n = next) {
        next = n->next;
        bool any = false;
        for (int i = 0; i < n->nout; i++) {
            any = any || n->grad[i];
            if (hooked(n->watches, i, &n->grad[i], n->op->name) != TN_OK) break;
        }
        if (tn__self.error != TN_OK) break;
        catch_targets(r, n);
        if (any && n->wanted) {
            tn_scope s = tn_scope_begin();
            run_node(r, n);
            tn_scope_end(s);
            if (tn__self.error != TN_OK) break;
            keep_grads(r, n);
        }
        for (int i = 0; i < n->nout; i++) tn_drop(n->grad[i]), n->grad[i] = NULL;
        if (!p->retain && !p->create_graph && !p->count) tn__node_release(n);
    }
done:
    if (tn__self.error != TN_OK) undo(r);
    tn_scope_end(outer);
    return tn__self.error;
}

static void end_run(run *r)
{
    for (int64_t i = 0; i < r->nslots; i++) tn_drop(r->slots[i].leaf), tn_drop(r->slots[i].grad), tn_drop(r->slots[i].ready);
    tn__mem_put(r->slots, (size_t)r->capacity * sizeof *r->slots);
    tn__mem_put(r->table, (size_t)r->table_size * sizeof *r->table);
    for (int k = 0; r->found && k < r->p->count; k++) tn_drop(r->found[k]);
    tn__mem_put(r->found, (size_t)r->p->count * sizeof *r->found);
}

/* Gives tn_grad_of's gradients to the caller's scope. */
static void hand_over(run *r)
{
    const tn_pass *p = r->p;
    for (int k = 0; k < p->count && r->found; k++) {
        for (int j = 0; j < k && !r->found[k]; j++) /* asked for twice */
            if (p->wrt[j] == p->wrt[k] && p->grad[j]) r->found[k] = tn_keep(p->grad[j]);
        if (tn__self.error == TN_OK) p->grad[k] = tn__scoped(r->found[k]);
        if (p->grad[k]) r->found[k] = NULL;
    }
    if (tn__self.error != TN_OK)
        for (int k = 0; k < p->count; k++) p->grad[k] = NULL;
}

tn_status tn__backward(const tn_pass *p)
{
    run r = {.p = p};
    for (int k = 0; k < p->count; k++) p->grad[k] = NULL;
    if (check_pass(p) != TN_OK) return tn__self.error;
    if (pass(&r) == TN_OK && p->count == 0) {
        tn_scope s = tn_no_grad_begin();
        for (int64_t i = 0; i < r.nslots && tn__self.error == TN_OK; i++) ready_slot(&r.slots[i]);
        if (tn__self.error != TN_OK) undo(&r);
        for (int64_t i = 0; i < r.nslots && tn__self.error == TN_OK; i++) attach(&r.slots[i]);
        tn_scope_end(s);
    }
    hand_over(&r);
    if (tn__self.error == TN_OK && p->count && !p->retain && !p->create_graph)
        for (tn_node *n = r.list; n; n = n->next) tn__node_release(n);
    end_run(&r);
    if (tn__tape.anomaly && p->count == 0) tn__tape.steps++;
    return tn__self.error;
}

tn_status tn__backward_inside(const tn_pass *p, void *engine, uint64_t floor)
{
    run r = {.p = p, .outer = ((void **)engine)[0], .floor = floor};
    for (int k = 0; k < p->count; k++) p->grad[k] = NULL;
    pass(&r);
    hand_over(&r);
    end_run(&r);
    return tn__self.error;
}

/* ---- the public calls --------------------------------------------------------------------------------------------------------- */

tn_status tn_backward_run(tn_backward_config c)
{
    if (tn__blocked()) return tn__self.error;
    if (c.count && (c.root || !c.roots)) return tn_raise(TN_EINVAL, "tn_backward: give either one root, or .count and .roots");
    tn_pass p = {.roots = c.count ? c.count : 1, .root = c.count ? c.roots : &c.root, .seed = c.count ? c.seeds : &c.seed,
                 .retain = c.retain, .name = "tn_backward"};
    return tn__backward(&p);
}

tn_status tn_grad_of_run(tn_grad_of_config c)
{
    for (int k = 0; k < c.count && c.grad; k++) c.grad[k] = NULL;
    if (tn__blocked()) return tn__self.error;
    if (c.count < 1 || !c.wrt || !c.grad) return tn_raise(TN_EINVAL, "tn_grad_of: say what for: a count, the tensors, and where their gradients go");
    tn_pass p = {.roots = 1, .root = &c.root, .seed = &c.seed, .count = c.count, .wrt = c.wrt, .grad = c.grad,
                 .retain = c.retain || c.create_graph, .create_graph = c.create_graph, .name = "tn_grad_of"};
    return tn__backward(&p);
}

tn_tensor *tn_grad_wrt(tn_tensor *root, tn_tensor *wrt, bool create_graph)
{
    tn_tensor *g;
    tn_grad_of_run((tn_grad_of_config){.root = root, .count = 1, .wrt = &wrt, .grad = &g, .create_graph = create_graph});
    return g;
}
