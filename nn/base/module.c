/* module.c — creating a module, registering its parameters, buffers and children by name, and freeing it. */
#include "nn/base/nn_private.h"

#include <stdarg.h>

/* ---- text ------------------------------------------------------------------------------------------------------ */

enum { RING = 8 };
static _Thread_local struct {
    char     text[RING][TN_NAME_BYTES];
    unsigned next;
} names; /* documented at tn_name */

const char *tn_name(const char *fmt, ...)
{
    char   *to = names.text[names.next++ % RING];
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(to, TN_NAME_BYTES, fmt ? fmt : " ", ap);
    va_end(ap);
    if (n < 0 || n >= TN_NAME_BYTES)
        tn_raise(TN_EINVAL, "tn_name: '%.40s...' has %d bytes, a name has at most %d", to, n, TN_NAME_BYTES - 1);
    return to;
}

/* ---- a constructor that fails: free everything, restore the generator ------------------------------------------ */

void tn__restore_generator(const tn_generator *g, tn_generator began)
{
    tn_generator *now = tn_current_generator();
    if (now == g && now->seed == began.seed && now->position > began.position) *now = began;
}

/* The base of a freed module points here, so that a use after free is recognised until the cache reuses the block. */
static const struct tn__base freed_base;

bool tn__module_freed(const char *who, const tn_module *m)
{
    if (m->base != &freed_base) return false;
    tn_raise(TN_ESTATE, "%s: this module was already freed", who);
    return true;
}

/* After an error: marks a module under construction as broken; a finished module stays unchanged. Returns NULL. */
static void *mark_broken(tn_module *m)
{
    if (m && m->base != &freed_base && !m->base->built) {
        m->base->broken = true;
        tn__restore_generator(m->base->generator, m->base->began);
    }
    return NULL;
}

/* Frees a child that tn_child could not register, and undoes its random draws if they were the last ones. */
static void discard(tn_module *m)
{
    const tn_generator *g = tn_current_generator(), *end = &m->base->ended;
    if (m->base->built && g->seed == end->seed && g->position == end->position)
        tn__restore_generator(m->base->generator, m->base->began);
    tn_module_free(m);
}

/* ---- creating and freeing -------------------------------------------------------------------------------------- */

static size_t base_bytes(void)
{
    return (sizeof(struct tn__base) + TN__HEADER_BYTES - 1) / TN__HEADER_BYTES * TN__HEADER_BYTES;
}

void *tn_module_create(const tn_class *kind)
{
    if (tn__blocked()) return NULL;
    if (!kind || !kind->size)
        return tn_raise(TN_EINVAL,
                        "tn_module_create: the class is NULL, or its .size is 0; set .size = sizeof(tn_class)"),
               NULL;
    if (kind->size != sizeof(tn_class))
        return tn_raise(TN_EUNSUPPORTED,
                        "%s: its tn_class has %zu bytes, this library's has %zu: it was compiled for another version",
                        kind->name ? kind->name : "module", kind->size, sizeof(tn_class)),
               NULL;
    if (!kind->name || kind->bytes < sizeof(tn_module))
        return tn_raise(TN_EINVAL,
                        "tn_module_create: a class needs .name, and .bytes = the size of a struct whose first member "
                        "is a tn_module"),
               NULL;
    const size_t     bytes = base_bytes() + kind->bytes;
    struct tn__base *b = tn_mem_get(bytes);
    if (!b) return NULL;
    tn_module *m = (tn_module *)(void *)((char *)b + base_bytes());
    b->bytes = bytes, b->refs = 1;
    b->generator = tn_current_generator(), b->began = *b->generator;
    m->base = b, m->kind = kind, m->training = true;
    return m;
}

void *tn_module_built(void *module)
{
    tn_module *m = module;
    if (!m || tn__module_freed("tn_built", m)) return NULL;
    if (tn_error() != TN_OK || m->base->broken) {
        if (tn_error() == TN_OK) tn_raise(TN_ESTATE, "%s: a step of its constructor failed", tn__kind_name(m));
        mark_broken(m);
        tn_module_free(m);
        return NULL;
    }
    m->base->built = true, m->base->ended = *tn_current_generator();
    return m;
}

/* Frees m and the memory it owns. Prepends children without another owner to the list; returns the list. */
static tn_module *free_one(tn_module *m, tn_module *list)
{
    struct tn__base *b = m->base;
    if (m->kind->freed) m->kind->freed(m);
    for (int i = 0; i < b->slots; i++) {
        tn_module *child = b->slot[i].child;
        tn_drop(b->slot[i].tensor);
        if (child && child->base->owner == m && child->base->name == b->slot[i].name)
            child->base->owner = NULL, child->base->name = NULL;
        if (child && --child->base->refs == 0) child->base->next = list, list = child;
        tn__strfree(b->slot[i].name);
    }
    tn_mem_put(b->slot, (size_t)b->room * sizeof *b->slot);
    for (tn__hook *h = b->hooks, *next; h; h = next) next = h->next, tn_mem_put(h, sizeof *h);
    for (tn__array *a = b->arrays, *next; a; a = next) next = a->next, tn_mem_put(a, TN__HEADER_BYTES + a->bytes);
    const size_t bytes = b->bytes;
    m->base = (struct tn__base *)(uintptr_t)&freed_base;
    tn_mem_put(b, bytes);
    return list;
}

void tn_module_free(void *module)
{
    tn_module *m = module;
    if (!m || tn__module_freed("tn_free", m)) return;
    if (m->base->owner) {
        tn_raise(TN_ESTATE, "tn_free: this %s is '%s' of a %s, which frees it; free only the root", tn__kind_name(m),
                 m->base->name, tn__kind_name(m->base->owner));
        return;
    }
    if (--m->base->refs > 0) return;
    for (m->base->next = NULL; m;) {
        tn_module *rest = m->base->next;
        m = free_one(m, rest);
    }
}

/* ---- registering ----------------------------------------------------------------------------------------------- */

tn__slot *tn__slot_of(const tn_module *m, const char *name)
{
    for (int i = 0; i < m->base->slots; i++)
        if (!strcmp(m->base->slot[i].name, name)) return &m->base->slot[i];
    return NULL;
}

/* True if something may be registered in m. If not, marks m as broken if it is under construction. */
static bool may_register(const char *who, tn_module *m)
{
    if (tn__blocked()) return mark_broken(m), false;
    if (m && tn__module_freed(who, m)) return false;
    if (!m)
        return tn_raise(TN_EINVAL,
                        "%s: the module is NULL; a constructor starts with tn_module_new and `if (!m) return NULL;`",
                        who),
               false;
    return true;
}

/* Adds an empty slot of that name, which the caller fills at once. On failure returns NULL (raised) and breaks m. */
static tn__slot *new_slot(const char *who, tn_module *m, const char *name)
{
    struct tn__base *b = m->base;
    const size_t     n = name ? strlen(name) : 0;
    if (!n || name[0] == '.' || name[n - 1] == '.' || strstr(name, ".."))
        return tn_raise(TN_EINVAL,
                        "%s: '%s' is not a valid name for a part of %s; valid are \"weight\" or "
                        "\"layers.0\"",
                        who, name ? name : "", tn__kind_name(m)),
               mark_broken(m);
    if (n >= TN_NAME_BYTES)
        return tn_raise(TN_EINVAL, "%s: the name '%.40s...' has %zu bytes, a name has at most %d", who, name, n,
                        TN_NAME_BYTES - 1),
               mark_broken(m);
    if (tn__slot_of(m, name))
        return tn_raise(TN_EINVAL, "%s: %s already has a '%s'; names must be unique", who, tn__kind_name(m), name),
               mark_broken(m);
    if (b->slots == b->room) {
        const int room = b->room ? 2 * b->room : 8;
        tn__slot *more = tn_mem_get((size_t)room * sizeof *more);
        if (!more) return mark_broken(m);
        if (b->slots) memcpy(more, b->slot, (size_t)b->slots * sizeof *more);
        tn_mem_put(b->slot, (size_t)b->room * sizeof *b->slot);
        b->slot = more, b->room = room;
    }
    char *copy = tn__strdup(name);
    if (!copy) return mark_broken(m);
    tn__slot *s = &b->slot[b->slots++];
    *s = (tn__slot){.name = copy};
    return s;
}

static const char *last_part(const char *name)
{
    const char *dot = name ? strrchr(name, '.') : NULL;
    return dot ? dot + 1 : name ? name : "";
}

tn_tensor *tn_module_param(void *module, const char *name, tn_tensor *t)
{
    tn_module *m = module;
    if (!may_register("tn_param", m)) return NULL;
    if (!t) return NULL;
    const bool leaf = tn_needs_grad(t); /* then it may be a parameter of another module already */
    if (!tn_requires_grad(t) || !tn_set_name(t, last_part(name))) return mark_broken(m);
    tn__slot *s = new_slot("tn_param", m, name);
    if (!s) return NULL;
    s->what = TN__PARAMETER, s->saved = true, s->tied = leaf;
    return s->tensor = tn_take(t);
}

tn_tensor *tn_module_weight(void *module, const char *name, tn_tensor *t)
{
    tn_tensor *w = tn_module_param(module, name, t);
    if (w) tn__slot_of(module, name)->weight = true;
    return w;
}

tn_tensor *tn_module_buffer(void *module, const char *name, tn_tensor *t, bool saved)
{
    tn_module *m = module;
    if (!may_register("tn_buffer", m)) return NULL;
    if (!t) return NULL;
    if (tn_needs_grad(t))
        return tn_raise(TN_EINVAL, "tn_buffer: '%s' requires grad; register it with tn_param, or tn_detach it",
                        name ? name : ""),
               mark_broken(m);
    if (!tn_set_name(t, last_part(name))) return mark_broken(m);
    tn__slot *s = new_slot("tn_buffer", m, name);
    if (!s) return NULL;
    s->what = TN__BUFFER, s->saved = saved;
    return s->tensor = tn_take(t);
}

tn_tensor *tn_module_buffer_rows(void *module, const char *name, tn_tensor *t)
{
    tn_tensor *b = tn_module_buffer(module, name, t, true);
    if (b) tn__slot_of(module, name)->rows = true;
    return b;
}

/* True if m is c or inside c. Sets *deepest to the number of levels of c's tree. */
static bool contains(tn_module *c, const tn_module *m, int *deepest)
{
    tn_each e = tn_module_each(c, TN_EACH_MODULE | TN_EACH_NAME);
    bool    found = false;
    *deepest = 0;
    while (tn_next(&e)) {
        if (e.depth_ + 1 > *deepest) *deepest = e.depth_ + 1;
        found = found || e.module == m;
    }
    return found;
}

static int depth(const tn_module *m)
{
    int n = 0;
    for (; m; m = m->base->owner) n++;
    return n;
}

/* Registers c as a child of m; does not change c's reference count. `who` names the public function in messages. */
static bool register_child(const char *who, tn_module *m, const char *name, tn_module *c)
{
    int deepest;
    if (c->base->broken)
        return tn_raise(TN_ESTATE, "%s: '%s', a %s, is incomplete because its constructor failed", who,
                        name ? name : "", tn__kind_name(c)),
               mark_broken(m), false;
    if (contains(c, m, &deepest))
        return tn_raise(TN_EINVAL, "%s: '%s' would make this %s a part of itself", who, name ? name : "",
                        tn__kind_name(m)),
               mark_broken(m), false;
    if (depth(m) + deepest > TN_MAX_DEPTH)
        return tn_raise(TN_EINVAL, "%s: '%s' would nest modules more than %d deep", who, name ? name : "",
                        TN_MAX_DEPTH),
               mark_broken(m), false;
    tn__slot *s = new_slot(who, m, name);
    if (!s) return false;
    s->what = TN__CHILD, s->child = c;
    if (!c->base->owner) c->base->owner = m, c->base->name = s->name;
    c->base->built = true;
    return true;
}

void *tn_module_child(void *module, const char *name, void *child)
{
    tn_module *m = module, *c = child;
    int        deepest;
    if (may_register("tn_child", m)) {
        if (!c || tn__module_freed("tn_child", c)) return mark_broken(c ? m : NULL);
        if (c->base->owner)
            return tn_raise(TN_EINVAL, "tn_child: '%s' is already '%s' of a %s; use tn_share for a second name",
                            name ? name : "", c->base->name, tn__kind_name(c->base->owner)),
                   mark_broken(m);
        if (register_child("tn_child", m, name, c)) return c;
    }
    if (c && c->base != &freed_base && !c->base->owner && !contains(c, m, &deepest)) discard(c);
    return NULL;
}

void *tn_module_share(void *module, const char *name, void *other)
{
    tn_module *m = module, *c = other;
    if (!may_register("tn_share", m)) return NULL;
    if (!c) return tn_raise(TN_EINVAL, "tn_share: '%s' is NULL", name ? name : ""), mark_broken(m);
    if (tn__module_freed("tn_share", c)) return mark_broken(m);
    const bool owned = c->base->owner != NULL;
    if (!register_child("tn_share", m, name, c)) return NULL;
    if (!owned) c->base->owner = NULL, c->base->name = NULL; /* a root is still owned by the program */
    c->base->refs++;
    return c;
}

tn_tensor *tn_module_tie(void *module, const char *name, tn_tensor *t)
{
    tn_module *m = module, *within, *root;
    char       a[192], b[192];
    if (!may_register("tn_tie", m)) return NULL;
    if (!t) return tn_raise(TN_EINVAL, "tn_tie: '%s': the tensor is NULL", name ? name : ""), mark_broken(m);
    tn__slot *s = name ? tn__slot_within(m, name, &within) : NULL;
    if (s && !s->tensor) return tn_raise(TN_EINVAL, "tn_tie: '%s' is a module; use tn_share", name), mark_broken(m);
    if (!s) {
        if (!(s = new_slot("tn_tie", m, name))) return NULL;
        s->what = TN__PARAMETER, s->saved = true, s->tied = true;
        return s->tensor = tn_keep(t);
    }
    if (s->tensor == t) return t;
    if (!tn_shape_equal(tn_shape_of(s->tensor), tn_shape_of(t)))
        return tn_raise(TN_ESHAPE, "tn_tie: '%s' is %s, the tensor is %s; tied tensors must have the same shape", name,
                        tn_shape_text(tn_shape_of(s->tensor), a, sizeof a), tn_shape_text(tn_shape_of(t), b, sizeof b)),
               mark_broken(m);
    for (root = m; root->base->owner;) root = root->base->owner;
    for (tn_each e = tn_module_each(root, TN_EACH_MODULE); tn_next(&e);) tn__rebind(e.module, s->tensor, t);
    tn_drop(s->tensor);
    s->tied = true;
    return s->tensor = tn_keep(t);
}

tn_tensor *tn_module_tie_to(void *module, const char *name, const char *path)
{
    tn_module *m = module;
    if (!may_register("tn_tie_to", m)) return NULL;
    tn_tensor *t = tn_module_find_tensor(m, path);
    return t ? tn_module_tie(m, name, t) : mark_broken(m);
}

void *tn_module_array(void *module, int64_t n, size_t size)
{
    tn_module *m = module;
    size_t     bytes;
    if (!may_register("tn_array", m)) return NULL;
    if (n < 0 || __builtin_mul_overflow((uint64_t)n, size, &bytes) || bytes > SIZE_MAX / 2)
        return tn_raise(TN_EINVAL, "tn_array: %lld elements of %zu bytes are not possible", (long long)n, size),
               mark_broken(m);
    tn__array *a = tn_mem_get(TN__HEADER_BYTES + bytes);
    if (!a) return mark_broken(m);
    *a = (tn__array){m->base->arrays, bytes};
    m->base->arrays = a;
    return (char *)a + TN__HEADER_BYTES;
}

void tn__rebind(tn_module *m, const void *old, void *now)
{
    const tn__array *a = m->base->arrays;
    char            *p = (char *)m + sizeof *m;
    for (size_t n = m->kind->bytes - sizeof *m;;) {
        for (size_t at = 0; at + sizeof(void *) <= n; at += sizeof(void *)) {
            const void *here;
            memcpy(&here, p + at, sizeof here);
            if (here == old) memcpy(p + at, &now, sizeof now);
        }
        if (!a) return;
        p = (char *)a + TN__HEADER_BYTES, n = a->bytes, a = a->next;
    }
}
