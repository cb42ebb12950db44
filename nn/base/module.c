/* module.c — creating a module, registering its parameters, buffers and children by name, and freeing it. */
#include "nn/base/hooks.h"

/* ---- a constructor that fails: free everything, restore the generator ------------------------------------------ */

void tn__restore_generator(const tn_generator *g, tn_generator began)
{
    tn_generator *now = tn_current_generator();
    if (now == g && now->seed == began.seed && now->position > began.position) *now = began;
}

void *tn__mark_broken(tn_module *m)
{
    if (m && m->base != &tn__freed_base && !m->base->built) {
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
    if (tn__blocked() || !tn__class_fits(kind)) return NULL;
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
        tn__mark_broken(m);
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
    tn__hooks_free(b->hooks);
    for (tn__array *a = b->arrays, *next; a; a = next) next = a->next, tn_mem_put(a, TN__HEADER_BYTES + a->bytes);
    const size_t bytes = b->bytes;
    m->base = (struct tn__base *)(uintptr_t)&tn__freed_base;
    if (tn__self.mode.module == m) tn__self.mode.module = NULL;
    tn__mem_put_later(b, bytes);
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
    for (int i = 0; name && i < m->base->slots; i++)
        if (!strcmp(m->base->slot[i].name, name)) return &m->base->slot[i];
    return NULL;
}

bool tn__may_register(const char *who, tn_module *m)
{
    if (tn__blocked()) return tn__mark_broken(m), false;
    if (m && tn__module_freed(who, m)) return false;
    if (!m)
        return tn_raise_false(
            TN_EINVAL, "%s: the module is NULL; a constructor starts with tn_module_new and `if (!m) return NULL;`",
            who);
    return true;
}

/* A file could not distinguish the parameter "a.weight" and the "weight" of the child "a". */
static void raise_taken(const char *who, const tn_module *m, const char *path)
{
    tn_raise(TN_EINVAL, "%s: %s already has a '%s', a part of a child; choose another name", who, tn__kind_name(m),
             path);
}

tn__slot *tn__new_slot(const char *who, tn_module *m, const char *name)
{
    struct tn__base *b = m->base;
    if (!tn__name_fits(who, m, name)) return tn__mark_broken(m);
    if (tn__slot_of(m, name))
        return tn_raise(TN_EINVAL, "%s: %s already has a '%s'; names must be unique", who, tn__kind_name(m), name),
               tn__mark_broken(m);
    tn_module *within;
    if (tn__slot_within(m, name, &within)) return raise_taken(who, m, name), tn__mark_broken(m);
    if (b->slots == b->room) {
        const int room = b->room ? 2 * b->room : 8;
        tn__slot *more = tn_mem_get((size_t)room * sizeof *more);
        if (!more) return tn__mark_broken(m);
        if (b->slots) memcpy(more, b->slot, (size_t)b->slots * sizeof *more);
        tn_mem_put(b->slot, (size_t)b->room * sizeof *b->slot);
        b->slot = more, b->room = room;
    }
    char *copy = tn__strdup(name);
    if (!copy) return tn__mark_broken(m);
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
    if (!tn__may_register("tn_param", m)) return NULL;
    if (!t) return NULL;
    const bool leaf = tn_needs_grad(t); /* then it may be a parameter of another module already */
    if (!tn_requires_grad(t) || !tn_set_name(t, last_part(name))) return tn__mark_broken(m);
    tn__slot *s = tn__new_slot("tn_param", m, name);
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
    if (!tn__may_register("tn_buffer", m)) return NULL;
    if (!t) return NULL;
    if (tn_needs_grad(t))
        return tn_raise(TN_EINVAL, "tn_buffer: '%s' requires grad; register it with tn_param, or tn_detach it",
                        name ? name : ""),
               tn__mark_broken(m);
    if (!tn_set_name(t, last_part(name))) return tn__mark_broken(m);
    tn__slot *s = tn__new_slot("tn_buffer", m, name);
    if (!s) return NULL;
    s->what = TN__BUFFER, s->saved = saved;
    return s->tensor = tn_take(t);
}

bool tn__register_child(const char *who, tn_module *m, const char *name, tn_module *c)
{
    if (!tn__child_fits(who, m, name, c)) return tn__mark_broken(m), false;
    const size_t n = strlen(name ? name : "");
    tn_module   *within;
    for (int i = 0; n && i < m->base->slots; i++) {
        const char *other = m->base->slot[i].name;
        if (!strncmp(other, name, n) && other[n] == '.' && tn__slot_within(c, other + n + 1, &within))
            return raise_taken(who, m, other), tn__mark_broken(m), false;
    }
    tn__slot *s = tn__new_slot(who, m, name);
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
    if (tn__may_register("tn_child", m)) {
        if (!c || tn__module_freed("tn_child", c)) return tn__mark_broken(c ? m : NULL);
        if (c->base->owner)
            return tn_raise(TN_EINVAL, "tn_child: '%s' is already '%s' of a %s; use tn_share for a second name",
                            name ? name : "", c->base->name, tn__kind_name(c->base->owner)),
                   tn__mark_broken(m);
        if (tn__register_child("tn_child", m, name, c)) return c;
    }
    if (c && c->base != &tn__freed_base && !c->base->owner && !tn__contains(c, m, &deepest)) discard(c);
    return NULL;
}
