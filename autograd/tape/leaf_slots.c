/* leaf_slots.c — a backward pass's table of leaves: a hash table from a leaf to the slot of its gradient. */
#include "autograd/tape/engine.h"

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
