/* accumulate.c — destinations of gradients while the tape is read: the node that computed an input, a leaf's slot, or a
 * target of tn_grad_of; and the sums of gradients there. A gradient with no other owner is passed on from node to node
 * and overwritten, without a copy, new memory or atomic operations. */
#include "autograd/tape/engine.h"
#include "autograd/tape/op_api.h"

/* ---- a pass's table of leaves: a hash table from a leaf to the slot of its gradient ------------------------------ */

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

/* ---- destinations ------------------------------------------------------------------------------------------------ */

bool tn__exclusive(const tn_tensor *g)
{
    return atomic_load_explicit(&g->object.refs, memory_order_relaxed) == 1 && !g->node && !g->leaf &&
           !g->storage->borrowed && (uint32_t)atomic_load_explicit(&g->storage->refs, memory_order_relaxed) == 1 &&
           tn__layout_contiguous(&g->l);
}

bool tn__is_target(const tn__engine_run *r, const tn__node *n, int output)
{
    for (int k = 0; r->found && k < r->p->count; k++)
        if (r->p->wrt[k]->node == &n->object && r->p->wrt[k]->output == output) return true;
    return false;
}

tn__engine_run *tn__collector(tn__engine_run *r, const tn_tensor *leaf, tn_tensor ***target)
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
    if (!(r = tn__collector(r, leaf, &target))) return target;
    tn__grad_slot *s = tn__leaf_slot(r, leaf);
    *bad = !s || !tn__rows_to_dense(leaf, &s->grad, &s->rows);
    return *bad ? NULL : &s->grad;
}

tn_tensor **tn__target(tn__engine_run *r, const tn__node *n, int i, bool *bad)
{
    const tn__edge *e = &n->edge[i];
    *bad = false;
    if (e->leaf) return tn__leaf_target(r, e->leaf, bad);
    if (e->node->run == r->id)
        return r->found && !e->node->wanted && !tn__is_target(r, e->node, e->output) ? NULL : &e->node->grad[e->output];
    for (int k = 0; r->found && k < r->p->count; k++) /* recorded before the checkpoint's segment */
        if (r->p->wrt[k]->node == &e->node->object && r->p->wrt[k]->output == e->output) return &r->found[k];
    return NULL;
}

bool tn__grad_needed(tn__engine_run *r, const tn__node *n, int i)
{
    tn_tensor **target, *leaf = n->edge[i].leaf;
    bool        bad;
    return leaf ? tn__collector(r, leaf, &target) || target : tn__target(r, n, i, &bad) != NULL;
}

bool tn__add_to(tn__engine_run *r, tn_tensor **to, tn_tensor *g)
{
    if (!*to) {
        *to = tn_keep(g);
    } else if (!r->p->create_graph && tn__exclusive(*to) && (*to)->dtype == g->dtype) {
        if (!tn_add_(*to, g)) return false;
    } else {
        tn_tensor *sum = tn_add(*to, g);
        if (!sum) return false;
        tn_drop(*to);
        *to = tn_keep(sum);
    }
    return true;
}

tn_tensor *tn__unshared(tn_tensor *g, tn_dtype dt)
{
    if (tn__exclusive(g) && g->dtype == dt) {
        tn__make_guest(g, false); /* the tape that saved it has been freed */
        return tn_keep(g);
    }
    tn_tensor *copy = tn__new_owned(dt, g->l.shape);
    if (copy) tn__copy(copy, g);
    return copy;
}

/* ---- gradients without another owner ----------------------------------------------------------------------------- */

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
