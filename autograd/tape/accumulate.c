/* accumulate.c — destinations of gradients while the tape is read: the node that computed an input, a leaf's slot, or a
 * target of tn_grad_of; and the sums of gradients there. */
#include "autograd/tape/engine.h"
#include "autograd/tape/op_api.h"

/* ---- slots for leaves -------------------------------------------------------------------------------------------- */

static size_t hash(const void *p) { return (size_t)(((uintptr_t)p >> 6) * UINT64_C(0x9E3779B97F4A7C15) >> 20); }

static void enter(tn__engine_run *r, int64_t index)
{
    size_t mask = (size_t)r->table_size - 1, at = hash(r->slots[index].leaf) & mask;
    while (r->table[at]) at = (at + 1) & mask;
    r->table[at] = index + 1;
}

tn__grad_slot *tn__leaf_slot(tn__engine_run *r, tn_tensor *leaf)
{
    if (r->table_size) {
        size_t mask = (size_t)r->table_size - 1;
        for (size_t at = hash(leaf) & mask; r->table[at]; at = (at + 1) & mask)
            if (r->slots[r->table[at] - 1].leaf == leaf) return &r->slots[r->table[at] - 1];
    }
    if (r->nslots == r->capacity) {
        int64_t  cap = r->capacity ? 2 * r->capacity : 16;
        void    *slots = r->slots;
        int64_t *table = tn__mem_zeroed((size_t)(2 * cap) * sizeof *table);
        if (!table) return NULL;
        if (!tn__mem_grow(&slots, (size_t)r->capacity * sizeof *r->slots, (size_t)cap * sizeof *r->slots))
            return tn__mem_put(table, (size_t)(2 * cap) * sizeof *table), NULL;
        tn__mem_put(r->table, (size_t)r->table_size * sizeof *r->table);
        r->slots = slots, r->capacity = cap, r->table = table, r->table_size = 2 * cap;
        for (int64_t i = 0; i < r->nslots; i++) enter(r, i);
    }
    r->slots[r->nslots] = (tn__grad_slot){.leaf = tn_keep(leaf)};
    enter(r, r->nslots);
    return &r->slots[r->nslots++];
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

/* True if no other handle shares g's memory, so that adding in place is safe. */
static bool exclusive(const tn_tensor *g)
{
    return atomic_load_explicit(&g->object.refs, memory_order_relaxed) == 1 && !g->node && !g->leaf &&
           !g->storage->borrowed && atomic_load_explicit(&g->storage->refs, memory_order_relaxed) == 1 &&
           tn__layout_contiguous(&g->l);
}

/* True if result `output` of n is a target of tn_grad_of. */
static bool is_target(const tn__engine_run *r, const tn__node *n, int output)
{
    for (int k = 0; r->found && k < r->p->count; k++)
        if (r->p->wrt[k]->node == &n->object && r->p->wrt[k]->output == output) return true;
    return false;
}

/* The pass in which leaf collects its gradient. NULL: none; then *target is the place of the gradient, or NULL. */
static tn__engine_run *collector(tn__engine_run *r, const tn_tensor *leaf, tn_tensor ***target)
{
    *target = NULL;
    for (;; r = r->outer) {
        for (int k = 0; r->found && k < r->p->count; k++)
            if (r->p->wrt[k] == leaf) return *target = &r->found[k], NULL;
        if (!r->outer) return r->found ? NULL : r; /* tn_grad_of touches no leaf */
    }
}

tn_tensor **tn__leaf_target(tn__engine_run *r, tn_tensor *leaf, bool *bad)
{
    tn_tensor **target;
    if (!(r = collector(r, leaf, &target))) return target;
    tn__grad_slot *s = tn__leaf_slot(r, leaf);
    *bad = !s || !tn__rows_spread(leaf, &s->grad, &s->rows);
    return *bad ? NULL : &s->grad;
}

bool tn__grad_rows(tn_back *b, int i, const tn_tensor *index, const tn_tensor *g, int64_t skip)
{
    void          **engine = b->engine;
    tn_tensor      *leaf = ((tn__node *)engine[1])->edge[i].leaf, **target;
    tn__engine_run *r = leaf ? collector(engine[0], leaf, &target) : NULL;
    tn__grad_slot  *s;
    if (!r || leaf->dtype != g->dtype || !tn_shape_equal(leaf->l.shape, b->in_shape[i])) return false;
    if (tn__tape.anomaly || tn__leaf_watches(leaf)) return false; /* hooks and anomaly mode need the dense gradient */
    if (!(s = tn__leaf_slot(r, leaf))) return true;               /* raised */
    if (s->grad && !s->rows) return false;
    tn__rows_add(leaf, &s->grad, &s->rows, index, g, skip);
    return true;
}

tn_tensor **tn__target(tn__engine_run *r, const tn__node *n, int i, bool *bad)
{
    const tn__edge *e = &n->edge[i];
    *bad = false;
    if (e->leaf) return tn__leaf_target(r, e->leaf, bad);
    if (e->node->run == r->id)
        return r->found && !e->node->wanted && !is_target(r, e->node, e->output) ? NULL : &e->node->grad[e->output];
    for (int k = 0; r->found && k < r->p->count; k++) /* recorded before the checkpoint's segment */
        if (r->p->wrt[k]->node == &e->node->object && r->p->wrt[k]->output == e->output) return &r->found[k];
    return NULL;
}

bool tn__grad_needed(tn__engine_run *r, const tn__node *n, int i)
{
    tn_tensor **target, *leaf = n->edge[i].leaf;
    bool        bad;
    return leaf ? collector(r, leaf, &target) || target : tn__target(r, n, i, &bad) != NULL;
}

bool tn__add_to(tn__engine_run *r, tn_tensor **to, tn_tensor *g)
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
    void          **engine = b->engine;
    tn__engine_run *r = engine[0];
    tn__node       *n = engine[1];
    bool            bad;
    tn_tensor     **to = tn__target(r, n, i, &bad);
    if (bad) return NULL;
    if (!to) return tn_zeros_of(b->in_dtype[i], b->in_shape[i]); /* this gradient is not needed */
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

bool tn__creates_graph(const tn_back *b) { return ((tn__engine_run *)((void **)b->engine)[0])->p->create_graph; }

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

tn_tensor *tn__unshared(tn_tensor *g, tn_dtype dt)
{
    if (exclusive(g) && g->dtype == dt) return tn_keep(g);
    tn_tensor *copy = tn__new_owned(dt, g->l.shape);
    if (copy) tn__copy(copy, g);
    return copy;
}
