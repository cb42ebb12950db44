/* copy.c — deep copies. The copied struct of a module still points to the old tensors, children and arrays. Therefore
 * each copied object is listed as a pair (old, new), and each pointer to an old object is replaced with a pointer to
 * the new one. This works for any module's struct without code from its author. */
#include "nn/base/hooks.h"

typedef struct {
    const void *old;
    void       *now;
} pair;

typedef struct {
    pair  *made;   /* in the order of creation: tensors, modules, arrays */
    pair  *sorted; /* the same pairs, sorted by old address */
    size_t tensors, modules, arrays, room;
} copy;

/* Heapsort by old address. */
static void sift(pair *p, size_t at, size_t n)
{
    const pair v = p[at];
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && (uintptr_t)p[child].old < (uintptr_t)p[child + 1].old) child++;
        if ((uintptr_t)v.old >= (uintptr_t)p[child].old) break;
        p[at] = p[child];
    }
    p[at] = v;
}

static void sort(pair *p, size_t n)
{
    for (size_t i = n / 2; i-- > 0;) sift(p, i, n);
    for (size_t end = n; end-- > 1;) {
        const pair largest = p[0];
        p[0] = p[end], p[end] = largest;
        sift(p, 0, end);
    }
}

static void *now_of(const copy *y, const void *old)
{
    size_t low = 0, high = y->tensors + y->modules + y->arrays;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (y->sorted[mid].old == old) return y->sorted[mid].now;
        if ((uintptr_t)y->sorted[mid].old < (uintptr_t)old) low = mid + 1;
        else high = mid;
    }
    return NULL;
}

static void redirect(const copy *y, char *p, size_t bytes)
{
    for (size_t at = 0; at + sizeof(void *) <= bytes; at += sizeof(void *)) {
        const void *here;
        memcpy(&here, p + at, sizeof here);
        void *now = here ? now_of(y, here) : NULL;
        if (now) memcpy(p + at, &now, sizeof now);
    }
}

/* ---- the copies: each function lists the pairs it created; false: raised --------------------------------------- */

enum { EVERY_TENSOR = TN_EACH_PARAMETER | TN_EACH_BUFFER };

static bool copy_tensor(copy *y, const tn_tensor *t)
{
    tn_tensor *now = tn_empty_of(tn_dtype_of(t), tn_shape_of(t));
    if (!now || tn_copy_from(now, t) != TN_OK) return false;
    if (*tn_name_of(t) && !tn_set_name(now, tn_name_of(t))) return false;
    if (tn_needs_grad(t)) tn_requires_grad(now);
    y->made[y->tensors++] = (pair){t, tn_take(now)};
    return true;
}

/* The class of an incomplete copy. Its pointers are still those of the original, so .freed must not be called for
 * it. */
static const tn_class unfinished = {.size = sizeof(tn_class), .name = "copy", .bytes = sizeof(tn_module)};

static bool copy_struct(copy *y, const tn_module *m)
{
    if (m->kind->freed && !m->kind->copied)
        return tn_raise_false(TN_EUNSUPPORTED,
                              "tn_copy: the class of %s has .freed but no .copied; set .copied to copy "
                              "the memory that .freed frees",
                              tn__kind_name(m));
    tn_module *c = tn_module_create(m->kind);
    if (!c) return false;
    memcpy((char *)c + sizeof *c, (const char *)m + sizeof *m, m->kind->bytes - sizeof *m);
    c->training = m->training, c->kind = &unfinished;
    c->base->refs = 0; /* each parent adds one */
    y->made[y->tensors + y->modules++] = (pair){m, c};
    return true;
}

static bool copy_arrays_and_hooks(copy *y, const tn_module *m, tn_module *c)
{
    tn__array **end = &c->base->arrays;
    for (const tn__array *a = m->base->arrays; a; a = a->next) {
        tn__array *b = tn_mem_get(TN__HEADER_BYTES + a->bytes);
        if (!b) return false;
        memcpy((char *)b + TN__HEADER_BYTES, (const char *)a + TN__HEADER_BYTES, a->bytes);
        b->bytes = a->bytes, *end = b, end = &b->next;
        y->made[y->tensors + y->modules + y->arrays++] =
            (pair){(const char *)a + TN__HEADER_BYTES, (char *)b + TN__HEADER_BYTES};
    }
    tn__hook **last = &c->base->hooks;
    for (const tn__hook *h = m->base->hooks; h; h = h->next) {
        tn__hook *k = tn_mem_get(sizeof *k);
        if (!k) return false;
        *k = (tn__hook){NULL, h->before, h->after, h->user};
        *last = k, last = &k->next;
    }
    return true;
}

/* Copies the slots, after all objects they refer to have been copied. */
static bool copy_slots(const copy *y, const tn_module *m, tn_module *c)
{
    const struct tn__base *from = m->base;
    struct tn__base       *to = c->base;
    if (!from->slots) return true;
    if (!(to->slot = tn_mem_get((size_t)from->slots * sizeof *to->slot))) return false;
    to->room = from->slots;
    for (int i = 0; i < from->slots; i++) {
        tn__slot                     s = from->slot[i];
        const struct tn__base *const child = s.child ? s.child->base : NULL;
        if (!(s.name = tn__strdup(s.name))) return false;
        if (s.tensor) s.tensor = tn_keep(now_of(y, s.tensor));
        if (s.child) {
            s.child = now_of(y, s.child);
            s.child->base->refs++;
            if (child->owner == m && child->name == from->slot[i].name)
                s.child->base->owner = c, s.child->base->name = s.name;
        }
        to->slot[to->slots++] = s;
    }
    return true;
}

static bool copy_all(copy *y, tn_module *m)
{
    const tn_scope s = tn_no_grad_begin();
    bool           ok = true;
    for (tn_each e = tn_module_each(m, EVERY_TENSOR); ok && tn_next(&e);) ok = copy_tensor(y, e.tensor);
    tn_scope_end(s);
    for (tn_each e = tn_module_each(m, TN_EACH_MODULE); ok && tn_next(&e);) ok = copy_struct(y, e.module);
    const pair *modules = y->made + y->tensors;
    for (size_t i = 0; ok && i < y->modules; i++) ok = copy_arrays_and_hooks(y, modules[i].old, modules[i].now);
    if (!ok) return false;
    const size_t n = y->tensors + y->modules + y->arrays;
    memcpy(y->sorted, y->made, n * sizeof *y->made);
    sort(y->sorted, n);
    for (size_t i = 0; ok && i < y->modules; i++) ok = copy_slots(y, modules[i].old, modules[i].now);
    if (!ok) return false;
    for (size_t i = 0; i < y->modules; i++) {
        const tn_module *old = modules[i].old;
        tn_module       *c = modules[i].now;
        redirect(y, (char *)c + sizeof *c, old->kind->bytes - sizeof *c);
        for (tn__array *a = c->base->arrays; a; a = a->next) redirect(y, (char *)a + TN__HEADER_BYTES, a->bytes);
        c->base->built = true, c->base->ended = *tn_current_generator();
    }
    for (size_t i = 0; tn_error() == TN_OK && i < y->modules; i++) {
        const tn_module *old = modules[i].old;
        tn_module       *c = modules[i].now;
        c->kind = old->kind;
        if (c->kind->copied) c->kind->copied(c, old);
    }
    return tn_error() == TN_OK;
}

/* After a failure: frees each module separately, since they may not own each other yet. */
static void free_copies(copy *y)
{
    for (size_t i = 0; i < y->modules; i++) {
        tn_module *c = y->made[y->tensors + i].now;
        for (int k = 0; k < c->base->slots; k++) c->base->slot[k].child = NULL;
        c->base->owner = NULL, c->base->refs = 1;
        tn_module_free(c);
    }
}

void *tn_module_copy(void *module)
{
    tn_module *m = module, *root = NULL;
    copy       y = {.room = 0};
    if (!tn_module_ready("tn_copy", m)) return NULL;
    for (tn_each e = tn_module_each(m, EVERY_TENSOR); tn_next(&e);) y.room++;
    for (tn_each e = tn_module_each(m, TN_EACH_MODULE); tn_next(&e);) {
        y.room++;
        for (const tn__array *a = e.module->base->arrays; a; a = a->next) y.room++;
    }
    if (!(y.made = tn_mem_get(2 * y.room * sizeof *y.made))) return NULL;
    y.sorted = y.made + y.room;
    if (copy_all(&y, m)) root = y.made[y.tensors].now, root->base->refs = 1;
    else free_copies(&y);
    for (size_t i = 0; i < y.tensors; i++) tn_drop(y.made[i].now); /* the slots have references of their own */
    tn_mem_put(y.made, 2 * y.room * sizeof *y.made);
    return root;
}
