/* packed.c — see packed.h. The list belongs to the storage; one lock for all storages is held while it is searched
 * (nanoseconds, against the microseconds of a product), never while anything is packed or computed. Writing to a
 * storage while another thread multiplies with it is an error with or without this. */
#include "core/products/packed.h"

enum {
    MOST = 4,  /* packed forms of a storage: views of a matrix count as separate matrices */
    USES = 6,  /* the product that keeps b: new memory costs about four times as much as packing for one product */
    COUNT = 7, /* the bits of last_product that count products, */
    ONE = 8,   /* and the bit that says that one of them had one row */
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
           a->kernels == b->kernels;
}

/* True if p is a form of the matrix that the product can read. */
static bool serves(const tn__packed *p, uint32_t version, const tn__packed_key *key, tn__packed_use use)
{
    return p->version == version && same(&p->key, key) && (p->one_row ? use != TN__PACKED_MANY : use != TN__PACKED_ONE);
}

/* A hash of a matrix, its version and kind of use, to recognise them, without the low bits. */
static uint32_t mark(const tn__packed_key *k, uint32_t version, bool many)
{
    uint64_t       h = version;
    const uint64_t part[] = {
        (uint64_t)(uintptr_t)k->b,       (uint64_t)k->n, (uint64_t)k->k, (uint64_t)k->b_row, (uint64_t)k->b_col,
        (uint64_t)(uintptr_t)k->kernels, (uint64_t)many};
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        h = (h ^ part[i]) * UINT64_C(0x9E3779B97F4A7C15), h ^= h >> 29;
    return (uint32_t)h & ~(uint32_t)(COUNT | ONE);
}

/* Counts a product; true: keep b. *one: set if one of those counted had one row. Threads that meet may count once: b is
 * kept a product later. */
static bool used_often(tn__storage *s, uint32_t now, bool *one)
{
    const uint32_t last = atomic_load_explicit(&s->last_product, memory_order_relaxed);
    const bool     again = (last & ~(uint32_t)(COUNT | ONE)) == now;
    const uint32_t uses = again ? (last & COUNT) + 1 : 1;
    if (again && last & ONE) *one = true;
    if (uses < USES) atomic_store_explicit(&s->last_product, now | uses | (*one ? ONE : 0), memory_order_relaxed);
    return uses >= USES;
}

void tn__packed_drop(tn__packed *p)
{
    if (p && atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) == 1) tn__mem_copy_put(p, HEADER + p->bytes);
}

static void drop_chain(tn__packed *p)
{
    for (tn__packed *next; p; p = next) {
        next = p->next;
        tn__packed_drop(p);
    }
}

/* The list of a storage, freed with it. All lists are linked, under the lock. */
typedef struct list {
    tn__object   object;
    tn__packed  *first;
    struct list *next, **at; /* *at is this list */
} list;
static list *lists;

static void list_end(tn__object *o)
{
    list *l = (list *)(void *)o;
    enter();
    *l->at = l->next;
    if (l->next) l->next->at = l->at;
    leave();
    drop_chain(l->first);
    tn__mem_put(l, sizeof *l);
}

static bool begin_list(tn__storage *s)
{
    list *l = tn__mem_try(sizeof *l);
    if (!l) return false;
    *l = (list){.object.end = list_end};
    atomic_init(&l->object.refs, 1);
    enter();
    const bool first = !s->owner;
    if (first) {
        s->owner = &l->object;
        l->next = lists, l->at = &lists;
        if (lists) lists->at = &l->next;
        lists = l;
    }
    leave();
    if (!first) tn__mem_put(l, sizeof *l);
    return true;
}

/* Frees the forms of all storages; those that a product reads now, at its end. */
static void drop_all(void)
{
    tn__packed *gone = NULL;
    enter();
    for (list *l = lists; l; l = l->next)
        for (tn__packed *p; (p = l->first); gone = p) l->first = p->next, p->next = gone;
    leave();
    drop_chain(gone);
}

tn__packed *tn__packed_find(tn__storage *s, const tn__packed_key *key, tn__packed_use use, const size_t bytes[2],
                            bool *fresh)
{
    const uint32_t version = atomic_load_explicit(&s->version, memory_order_acquire),
                   now = mark(key, version, use == TN__PACKED_MANY);
    bool one = use == TN__PACKED_ONE;
    *fresh = false;
    enter();
    tn__packed *p = s->borrowed || !s->owner ? NULL : ((list *)(void *)s->owner)->first;
    while (p && !serves(p, version, key, use)) p = p->next;
    if (p) atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
    leave();
    if (p || !used_often(s, now, &one)) return p;
    if (!begin_list(s) || !(p = tn__mem_copy(HEADER + bytes[one], drop_all))) return NULL;
    *p = (tn__packed){.version = version, .key = *key, .one_row = one, .bytes = bytes[one]};
    p->data = (char *)p + HEADER;
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
        if (old->version == p->version && !(same(&old->key, &p->key) && old->one_row == p->one_row) && kept < MOST) {
            at = &old->next, kept++;
            continue;
        }
        *at = old->next;
        old->next = gone;
        gone = old;
    }
    leave();
    drop_chain(gone);
}
