/* tensor.c — the life of handles and storages. */
#include "core/products/packed.h"

#include <string.h>

/* Small data stands right behind its storage struct, in one block; large data has a block of its own, because a
 * struct in front would push a power of two into the next size class. */
enum { INLINE_MAX = 4096, HEADER = 64 };
_Static_assert(sizeof(tn__storage) <= HEADER, "data behind the struct must stay aligned");

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

static void storage_drop(tn__storage *s)
{
    if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1) return;
    if (s->borrowed) {
        if (s->release) s->release(s->data, s->user);
        tn__mem_put(s, HEADER);
    } else {
        tn__packed_forget(s);
        if (s->bytes > INLINE_MAX) tn__mem_put(s->data, s->bytes);
        tn__mem_put(s, storage_block(s->bytes));
    }
}

static tn_tensor *handle(tn_dtype dt, tn__storage *s)
{
    tn_tensor *t = tn__mem_get(sizeof *t);
    if (!t) return NULL;
    atomic_init(&t->refs, 1);
    t->dtype = dt, t->leaf = false, t->output = 0, t->seen = 0;
    t->storage = s, t->node = NULL, t->grad = t->rows = NULL, t->hooks = NULL, t->name = NULL;
    tn__count_tensor(1);
    return t;
}

tn_tensor *tn__new_owned(tn_dtype dt, tn_shape s)
{
    if (tn__blocked()) return NULL;
    int64_t      n = tn_shape_numel(s);
    tn__storage *st = storage_new((size_t)n * tn__dtype_bytes(dt));
    if (!st) return NULL;
    tn_tensor *t = handle(dt, st);
    if (!t) return storage_drop(st), NULL;
    t->l = tn__layout_of_shape(s);
    return t;
}

tn_tensor *tn__alias_owned(const tn_tensor *x, const tn__layout *l)
{
    if (tn__blocked()) return NULL;
    tn_tensor *t = handle(x->dtype, x->storage);
    if (!t) return NULL;
    atomic_fetch_add_explicit(&t->storage->refs, 1, memory_order_relaxed);
    t->seen = atomic_load_explicit(&t->storage->version, memory_order_relaxed);
    t->l = *l;
    return t;
}

tn_tensor *tn__new(tn_dtype dt, tn_shape s) { return tn__scoped(tn__new_owned(dt, s)); }
tn_tensor *tn__alias(const tn_tensor *t, const tn__layout *l) { return tn__scoped(tn__alias_owned(t, l)); }

tn_tensor *tn_borrow(tn_dtype dt, tn_shape s, void *data, void (*release)(void *data, void *user), void *user)
{
    if (tn__blocked() || !tn__shape_check("tn_borrow", dt, s)) return NULL;
    int64_t n = tn_shape_numel(s);
    if (!data && n)
        return tn_raise(TN_EINVAL, "tn_borrow: data is NULL, but the shape has %lld elements", (long long)n), NULL;
    if ((uintptr_t)data % tn__dtype_bytes(dt))
        return tn_raise(TN_EINVAL, "tn_borrow: data is not aligned for %s; copy it with tn_from_data",
                        tn_dtype_name(dt)),
               NULL;
    tn__storage *st = tn__mem_get(HEADER);
    if (!st) return NULL;
    /* until all has succeeded the memory stays the caller's: release is not called on failure */
    *st = (tn__storage){.refs = 1, .bytes = (size_t)n * tn__dtype_bytes(dt), .data = data, .borrowed = true};
    tn_tensor *t = handle(dt, st);
    if (!t) return storage_drop(st), NULL;
    t->l = tn__layout_of_shape(s);
    if (!tn__scoped(t)) return NULL;
    st->release = release, st->user = user;
    return t;
}

void tn_drop(tn_tensor *t)
{
    while (t && atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) == 1) {
        tn_tensor *grad = t->grad;
        tn__object_drop(t->node); /* does not recurse: the tape ends its nodes from a list */
        tn__object_drop(t->hooks);
        tn__strfree(t->name);
        tn_drop(t->rows); /* has none itself */
        storage_drop(t->storage);
        tn__mem_put(t, sizeof *t);
        tn__count_tensor(-1);
        t = grad;
    }
}

void tn__written(tn_tensor *t, const char *who)
{
    uint32_t v = atomic_fetch_add_explicit(&t->storage->version, 1, memory_order_relaxed) + 1;
    atomic_store_explicit(&t->storage->writer, who, memory_order_relaxed);
    t->seen = v;
}

bool tn__rows_fit(const tn_tensor *leaf, const tn_tensor *grad, const tn_tensor *rows)
{
    const int64_t   n = rows->l.shape.d[0];
    const tn_shape *s = &leaf->l.shape;
    if (leaf->dtype == grad->dtype && s->n == 2 && s->d[1] == grad->l.shape.d[1] &&
        (!n || ((const int64_t *)tn__ptr(rows))[n - 1] < s->d[0]))
        return true;
    tn_raise(TN_ESTATE, "backward: a table became another tensor while its gradient was collected; tn_adopt comes "
                        "before the forward pass or after the backward");
    return false;
}

bool tn__rows_spread(const tn_tensor *leaf, tn_tensor **grad, tn_tensor **rows)
{
    if (!*rows) return true;
    if (!tn__rows_fit(leaf, *grad, *rows)) return false;
    tn_tensor *all = tn__new_owned((*grad)->dtype, leaf->l.shape);
    if (!all) return false;
    tn__fill(all, 0);
    tn__add_rows(all, 0, *rows, *grad, -1);
    tn_drop(*grad), tn_drop(*rows);
    *grad = all, *rows = NULL;
    return true;
}

/* The tape keeps leaves as they are and remembers their storage's version: the new storage gets one that it has not
 * seen. */
tn_status tn_adopt(tn_tensor *t, const tn_tensor *src)
{
    if (tn__blocked()) return tn__self.error;
    if (!tn__given("tn_adopt", "t", t) || !tn__given("tn_adopt", "src", src)) return tn__self.error;
    if (t->node || src->node)
        return tn_raise(TN_ESTATE, "tn_adopt: %s is the result of a recorded op; tn_detach it first",
                        t->node ? "t" : "src");
    if (t->leaf && !tn__is_float(src->dtype))
        return tn_raise(TN_EDTYPE, "tn_adopt: t collects gradients and cannot become %s", tn_dtype_name(src->dtype));
    if (t->rows && (t->dtype != src->dtype || !tn_shape_equal(t->l.shape, src->l.shape)) &&
        !tn__rows_spread(t, &t->grad, &t->rows)) /* rows of what t is no more */
        return tn__self.error;
    tn__storage   *old = t->storage;
    const uint32_t was = atomic_load_explicit(&old->version, memory_order_relaxed);
    const uint32_t is = atomic_load_explicit(&src->storage->version, memory_order_relaxed);
    if (old != src->storage) {
        atomic_fetch_add_explicit(&src->storage->refs, 1, memory_order_relaxed);
        t->storage = src->storage;
        atomic_store_explicit(&t->storage->version, was > is ? was : is, memory_order_relaxed);
        storage_drop(old);
    }
    t->dtype = src->dtype, t->l = src->l;
    tn__written(t, "tn_adopt");
    return TN_OK;
}
