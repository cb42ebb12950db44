/* packed.c — see packed.h. The list belongs to the storage; one lock for all storages is held while it is searched
 * (nanoseconds, against the microseconds of a product), never while anything is packed or computed. Writing to a
 * storage while another thread multiplies with it is an error with or without this. */
#include "core/products/packed.h"

enum {
    MOST = 4, /* packed forms of a storage: views of a matrix count as separate matrices */
    HEADER = 128
};
_Static_assert(sizeof(tn__packed) <= HEADER, "data after the header must stay aligned");

static atomic_flag lock = ATOMIC_FLAG_INIT;

static void enter(void)
{
    while (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire)) continue;
}
static void leave(void) { atomic_flag_clear_explicit(&lock, memory_order_release); }

static bool same(const tn__packed_key *a, const tn__packed_key *b)
{
    return a->b == b->b && a->n == b->n && a->k == b->k && a->b_row == b->b_row && a->b_col == b->b_col &&
           a->kernels == b->kernels && a->row == b->row;
}

/* A hash of a matrix and its version, to recognise it. */
static uint32_t mark(const tn__packed_key *k, uint32_t version)
{
    uint64_t       h = version;
    const uint64_t part[] = {(uint64_t)(uintptr_t)k->b, (uint64_t)k->n,     (uint64_t)k->k,
                             (uint64_t)k->b_row,        (uint64_t)k->b_col, (uint64_t)(uintptr_t)k->kernels,
                             (uint64_t)k->row};
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        h = (h ^ part[i]) * UINT64_C(0x9E3779B97F4A7C15), h ^= h >> 29;
    return (uint32_t)h | 1; /* never 0, which means: none yet */
}

void tn__packed_drop(tn__packed *p)
{
    if (p && atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) == 1) tn__mem_put(p, HEADER + p->bytes);
}

/* The list of a storage, freed with it. */
typedef struct {
    tn__object  object;
    tn__packed *first;
} list;

static void list_end(tn__object *o)
{
    list *l = (list *)(void *)o;
    for (tn__packed *p = l->first, *next; p; p = next) {
        next = p->next;
        tn__packed_drop(p);
    }
    tn__mem_put(l, sizeof *l);
}

static bool begin_list(tn__storage *s)
{
    list *l = tn__mem_get(sizeof *l);
    if (!l) return false;
    *l = (list){.object.end = list_end};
    atomic_init(&l->object.refs, 1);
    enter();
    const bool first = !s->owner;
    if (first) s->owner = &l->object;
    leave();
    if (!first) tn__mem_put(l, sizeof *l);
    return true;
}

tn__packed *tn__packed_find(tn__storage *s, const tn__packed_key *key, size_t bytes, bool *fresh)
{
    const uint32_t version = atomic_load_explicit(&s->version, memory_order_acquire), now = mark(key, version);
    *fresh = false;
    enter();
    tn__packed *p = s->borrowed || !s->owner ? NULL : ((list *)(void *)s->owner)->first;
    while (p && !(p->version == version && same(&p->key, key))) p = p->next;
    if (p) atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
    leave();
    if (p || atomic_exchange_explicit(&s->last_product, now, memory_order_relaxed) != now) return p;
    if (!begin_list(s) || !(p = tn__mem_get(HEADER + bytes))) return NULL;
    *p = (tn__packed){.version = version, .key = *key, .bytes = bytes, .data = (char *)p + HEADER};
    atomic_init(&p->refs, 1);
    *fresh = true;
    return p;
}

/* Removes outdated forms, and the oldest if there are too many. */
void tn__packed_publish(tn__storage *s, tn__packed *p)
{
    tn__packed *gone = NULL;
    list       *l = (list *)(void *)s->owner;
    int         kept = 1;
    atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
    enter();
    p->next = l->first;
    l->first = p;
    for (tn__packed **at = &p->next; *at;) {
        tn__packed *old = *at;
        if (old->version == p->version && !same(&old->key, &p->key) && kept < MOST) {
            at = &old->next, kept++;
            continue;
        }
        *at = old->next;
        old->next = gone;
        gone = old;
    }
    leave();
    while (gone) {
        tn__packed *next = gone->next;
        tn__packed_drop(gone);
        gone = next;
    }
}
