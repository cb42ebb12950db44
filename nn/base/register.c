/* register.c — further registrations: a second name for a module or a tensor, arrays, buffers with a row per row of the
 * batch. */
#include "nn/base/nn_private.h"

tn_tensor *tn_module_buffer_rows(void *module, const char *name, tn_tensor *t)
{
    tn_tensor *b = tn_module_buffer(module, name, t, true);
    if (b) tn__slot_of(module, name)->rows = true;
    return b;
}

void *tn_module_share(void *module, const char *name, void *other)
{
    tn_module *m = module, *c = other;
    if (!tn__may_register("tn_share", m)) return NULL;
    if (!c) return tn_raise(TN_EINVAL, "tn_share: '%s' is NULL", name ? name : ""), tn__mark_broken(m);
    if (tn__module_freed("tn_share", c)) return tn__mark_broken(m);
    const bool owned = c->base->owner != NULL;
    if (!tn__register_child("tn_share", m, name, c)) return NULL;
    if (!owned) c->base->owner = NULL, c->base->name = NULL; /* a root is still owned by the program */
    c->base->refs++;
    return c;
}

void tn__remove_child(tn_module *m, const char *name)
{
    tn__slot *s = tn__slot_of(m, name), *end = m->base->slot + m->base->slots;
    if (!s || !s->child) return;
    tn_module *child = s->child;
    char      *own = s->name;
    if (child->base->owner == m) child->base->owner = NULL, child->base->name = NULL;
    memmove(s, s + 1, (size_t)(end - s - 1) * sizeof *s);
    m->base->slots--;
    tn__strfree(own);
    tn_module_free(child);
}

/* The number of pointers to `old` in m's struct and arrays; to: replaces them with *to. */
static int pointers(const tn_module *m, const void *old, void *const *to)
{
    const tn__array *a = m->base->arrays;
    char            *p = (char *)(uintptr_t)m + sizeof *m;
    int              found = 0;
    for (size_t n = m->kind->bytes - sizeof *m;;) {
        for (size_t at = 0; at + sizeof(void *) <= n; at += sizeof(void *)) {
            const void *here;
            memcpy(&here, p + at, sizeof here);
            if (here != old) continue;
            found++;
            if (to) memcpy(p + at, to, sizeof *to);
        }
        if (!a) return found;
        p = (char *)(uintptr_t)a + TN__HEADER_BYTES, n = a->bytes, a = a->next;
    }
}

void tn__rebind(tn_module *m, const void *old, void *now) { pointers(m, old, &now); }
bool tn__points_to(const tn_module *m, const void *p) { return pointers(m, p, NULL) > 0; }

tn_tensor *tn_module_tie(void *module, const char *name, tn_tensor *t)
{
    tn_module *m = module, *within, *root;
    char       a[192], b[192];
    if (!tn__may_register("tn_tie", m)) return NULL;
    if (!t) return tn_raise(TN_EINVAL, "tn_tie: '%s': the tensor is NULL", name ? name : ""), tn__mark_broken(m);
    tn__slot *s = name ? tn__slot_within(m, name, &within) : NULL;
    if (s && !s->tensor) return tn_raise(TN_EINVAL, "tn_tie: '%s' is a module; use tn_share", name), tn__mark_broken(m);
    if (!s) {
        if (!(s = tn__new_slot("tn_tie", m, name))) return NULL;
        s->what = TN__PARAMETER, s->saved = true, s->tied = true;
        return s->tensor = tn_keep(t);
    }
    if (s->tensor == t) return t;
    if (!tn_shape_equal(tn_shape_of(s->tensor), tn_shape_of(t)))
        return tn_raise(TN_ESHAPE, "tn_tie: '%s' is %s, the tensor is %s; tied tensors must have the same shape", name,
                        tn_shape_text(tn_shape_of(s->tensor), a, sizeof a), tn_shape_text(tn_shape_of(t), b, sizeof b)),
               tn__mark_broken(m);
    for (root = m; root->base->owner;) root = root->base->owner;
    for (tn_each e = tn_module_each(root, TN_EACH_MODULE); tn_next(&e);) tn__rebind(e.module, s->tensor, t);
    tn_drop(s->tensor);
    s->tied = true;
    return s->tensor = tn_keep(t);
}

tn_tensor *tn_module_tie_to(void *module, const char *name, const char *path)
{
    tn_module *m = module;
    if (!tn__may_register("tn_tie_to", m)) return NULL;
    tn_tensor *t = tn_module_find_tensor(m, path);
    return t ? tn_module_tie(m, name, t) : tn__mark_broken(m);
}

void *tn_module_array(void *module, int64_t n, size_t size)
{
    tn_module *m = module;
    size_t     bytes;
    if (!tn__may_register("tn_array", m)) return NULL;
    if (n < 0 || __builtin_mul_overflow((uint64_t)n, size, &bytes) || bytes > SIZE_MAX / 2)
        return tn_raise(TN_EINVAL, "tn_array: %lld elements of %zu bytes are not possible", (long long)n, size),
               tn__mark_broken(m);
    tn__array *a = tn_mem_get(TN__HEADER_BYTES + bytes);
    if (!a) return tn__mark_broken(m);
    *a = (tn__array){m->base->arrays, bytes};
    m->base->arrays = a;
    return (char *)a + TN__HEADER_BYTES;
}
