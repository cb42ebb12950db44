/* tensor.c — creating and freeing handles and storages. */
#include "core/base/checks.h"
#include "core/tensor/tensor.h"

/* Small data directly follows its storage struct, in one block; large data has a separate block, because the struct
 * would push a power of two into the next size class. */
enum { INLINE_MAX = 4096, HEADER = 64 };
_Static_assert(sizeof(tn__storage) <= HEADER, "data after the struct must stay aligned");

static size_t storage_block(size_t bytes) { return bytes <= INLINE_MAX ? HEADER + bytes : HEADER; }

static tn__storage *storage_new(size_t bytes)
{
    tn__storage *s = tn__mem_get(storage_block(bytes));
    if (!s) return NULL;
    void *data = (char *)s + HEADER;
    if (bytes > INLINE_MAX && !(data = tn__mem_get(bytes))) return tn__mem_put(s, HEADER), NULL;
    *s = (tn__storage){.refs = 1, .bytes = bytes, .data = data};
    return s;
}

/* ---- histories of storages --------------------------------------------------------------------------------------- */

static void history_end(tn__history *h)
{
    while (h) {
        tn__history *next = h->next;
        tn__object_drop(h->node);
        tn__mem_put(h, sizeof *h);
        h = next;
    }
}

tn__history *tn__history_of(const tn_tensor *t)
{
    tn__history *h = atomic_load_explicit(&t->storage->history, memory_order_acquire);
    while (h && h->family != t->family) h = h->next;
    return h;
}

tn__history *tn__newer(const tn_tensor *t)
{
    tn__history *h = tn__history_of(t);
    return h && h->version > t->version ? h : NULL;
}

static uint64_t place(bool guest) { return guest ? TN__GUEST + 1 : 1; }

void tn__make_guest(tn_tensor *t, bool guest)
{
    if (t->guest == guest) return;
    const uint64_t was = guest ? atomic_fetch_add_explicit(&t->storage->refs, TN__GUEST, memory_order_acq_rel)
                               : atomic_fetch_sub_explicit(&t->storage->refs, TN__GUEST, memory_order_acq_rel);
    t->guest = guest;
    if (guest && (uint32_t)was - (uint32_t)(was >> 32) == 1)
        history_end(atomic_exchange_explicit(&t->storage->history, NULL, memory_order_acq_rel));
}

/* ---- storages ---------------------------------------------------------------------------------------------------- */

static void storage_end(tn__storage *s)
{
    history_end(atomic_load_explicit(&s->history, memory_order_relaxed));
    tn__object_drop(s->owner);
    if (s->borrowed) {
        tn__mem_put(s, HEADER);
    } else {
        if (s->bytes > INLINE_MAX) tn__mem_put(s->data, s->bytes);
        tn__mem_put(s, storage_block(s->bytes));
    }
}

/* Removes t from its storage, which is freed with its last handle. */
static void storage_leave(tn_tensor *t)
{
    tn__storage *s = t->storage;
    if (__builtin_expect(atomic_load_explicit(&s->history, memory_order_relaxed) != NULL, 0)) tn__make_guest(t, true);
    if (atomic_load_explicit(&s->refs, memory_order_acquire) == place(t->guest) || /* as in tn__object_drop */
        (uint32_t)atomic_fetch_sub_explicit(&s->refs, place(t->guest), memory_order_acq_rel) == 1)
        storage_end(s);
}

void tn__move(tn_tensor *t, const tn_tensor *to)
{
    atomic_fetch_add_explicit(&to->storage->refs, place(t->leaf), memory_order_relaxed);
    storage_leave(t);
    tn_drop(t->narrow);
    t->storage = to->storage, t->guest = t->leaf, t->narrow = NULL;
}

/* ---- handles ----------------------------------------------------------------------------------------------------- */

/* A loop, not recursion, frees the gradient of a gradient of a … */
static void tensor_end(tn__object *o)
{
    while (o) {
        tn_tensor *t = (tn_tensor *)(void *)o, *grad = t->grad;
        tn__object_drop(t->node); /* does not recurse: the tape frees its nodes from a list */
        tn__object_drop(t->hooks);
        tn__strfree(t->name);
        tn_drop(t->rows), tn_drop(t->narrow); /* they have none themselves */
        storage_leave(t);
        tn__mem_retire(&t->object, sizeof *t);
        o = grad && atomic_fetch_sub_explicit(&grad->object.refs, 1, memory_order_acq_rel) == 1 ? &grad->object : NULL;
    }
}

_Static_assert(sizeof(tn_tensor) <= 1024, "tn__mem_retire needs a small struct");
static tn_tensor *handle(tn_dtype dt, tn__storage *s)
{
    tn_tensor *t = tn__mem_get(sizeof *t);
    if (!t) return NULL;
    atomic_init(&t->object.refs, 1);
    t->object.serial = ++tn__self.made ? tn__self.made : ++tn__self.made; /* never 0 */
    t->object.end = tensor_end;
    t->dtype = dt, t->leaf = t->guest = t->unrecorded = t->trained = t->waits = false, t->output = 0, t->version = 0,
    t->family = 0;
    atomic_init(&t->busy, false);
    t->narrow_version = 0, t->narrow = NULL;
    t->storage = s, t->node = NULL, t->grad = t->rows = NULL, t->hooks = NULL, t->name = NULL;
    tn__count_tensor();
    return t;
}

tn_tensor *tn__new_owned(tn_dtype dt, tn_shape s)
{
    if (tn__blocked()) return NULL;
    tn__storage *st = storage_new((size_t)tn__numel_of(&s) * tn__dtype_bytes(dt));
    if (!st) return NULL;
    tn_tensor *t = handle(dt, st);
    if (!t) return storage_end(st), NULL;
    tn__set_contiguous(&t->l, &s);
    return t;
}

static tn_tensor *alias(const tn_tensor *x, const tn__layout *l, bool guest)
{
    if (tn__blocked()) return NULL;
    tn_tensor *t = handle(x->dtype, x->storage);
    if (!t) return NULL;
    t->guest = guest, t->family = x->family, t->unrecorded = x->unrecorded;
    atomic_fetch_add_explicit(&t->storage->refs, place(guest), memory_order_relaxed);
    t->version = atomic_load_explicit(&t->storage->version, memory_order_relaxed);
    t->l = *l;
    return t;
}

tn_tensor *tn__alias_owned(const tn_tensor *x, const tn__layout *l) { return alias(x, l, false); }
tn_tensor *tn__alias_guest(const tn_tensor *x) { return alias(x, &x->l, true); }
tn_tensor *tn__new(tn_dtype dt, tn_shape s) { return tn__scoped(tn__new_owned(dt, s)); }
tn_tensor *tn__alias(const tn_tensor *t, const tn__layout *l) { return tn__scoped(tn__alias_owned(t, l)); }

/* The owner of borrowed memory. */
typedef struct {
    tn__object object;
    void (*release)(void *data, void *user);
    void *data, *user;
} lender;

static void lender_end(tn__object *o)
{
    lender *of = (lender *)(void *)o;
    if (of->release) of->release(of->data, of->user);
    tn__mem_put(of, sizeof *of);
}

tn_tensor *tn_borrow(tn_dtype dt, tn_shape s, void *data, void (*release)(void *data, void *user), void *user)
{
    if (tn__blocked() || !tn__shape_check("tn_borrow", dt, s)) return NULL;
    int64_t n = tn_shape_numel(s);
    if (!data && n)
        return tn_raise_null(TN_EINVAL, "tn_borrow: data is NULL, but the shape has %lld elements", (long long)n);
    if ((uintptr_t)data % tn__dtype_bytes(dt))
        return tn_raise_null(TN_EINVAL, "tn_borrow: data is not aligned for %s; copy it with tn_from_data",
                             tn_dtype_name(dt));
    tn__storage *st = tn__mem_get(HEADER);
    lender      *of = st ? tn__mem_zeroed(sizeof *of) : NULL;
    if (!of) return tn__mem_put(st, HEADER), NULL;
    of->object.end = lender_end, of->data = data, of->user = user;
    atomic_init(&of->object.refs, 1);
    /* until all has succeeded the caller owns the memory: release is not called on failure */
    *st = (tn__storage){
        .refs = 1, .bytes = (size_t)n * tn__dtype_bytes(dt), .data = data, .borrowed = true, .owner = &of->object};
    tn_tensor *t = handle(dt, st);
    if (!t) return storage_end(st), NULL;
    tn__set_contiguous(&t->l, &s);
    if (!tn__scoped(t)) return NULL;
    of->release = release;
    return t;
}

/* An outdated handle stays outdated: its history is updated when the tape uses it. */
void tn__written(tn_tensor *t, const char *who)
{
    const bool outdated = tn__outdated(t);
    tn__unreplayable(who);
    uint32_t v = atomic_fetch_add_explicit(&t->storage->version, 1, memory_order_relaxed) + 1;
    atomic_store_explicit(&t->storage->writer, who, memory_order_relaxed);
    if (!outdated) t->version = v;
}
