/* unchanged.c — checks that parameters do not change between a checkpointed function's two runs, the first without a
 * tape, the second in the backward: with other values the second run would give the gradient of a result never
 * computed. */
#include "autograd/tape/unchanged.h"

#include <string.h>

void tn__used_begin(tn__used *u)
{
    u->outer = tn__tape.used;
    tn__tape.used = u;
}
void tn__used_end(const tn__used *u) { tn__tape.used = u->outer; }

static bool note(tn__used *u, tn_tensor *leaf)
{
    for (size_t i = u->count; i-- > 0;)
        if (u->list[i].t == leaf) return true;
    if (u->count == u->room) {
        const size_t room = u->room ? 2 * u->room : 8;
        void        *list = u->list;
        if (!tn__mem_grow(&list, u->room * sizeof *u->list, room * sizeof *u->list)) return false;
        u->list = list, u->room = room;
    }
    u->list[u->count++] = (tn__saved){tn_keep(leaf), tn__version_of(leaf)};
    return true;
}

bool tn__used_add(int n, tn_tensor *const *in)
{
    for (int i = 0; i < n; i++) {
        if (!in[i] || tn__object_freed(&in[i]->object) || !in[i]->leaf) continue;
        for (tn__used *u = tn__tape.used; u; u = u->outer)
            if (!note(u, in[i])) return false;
    }
    return true;
}

bool tn__used_unchanged(const tn__used *u, const char *caller)
{
    for (size_t i = 0; i < u->count; i++) {
        const tn_tensor *t = u->list[i].t;
        const char      *writer = atomic_load(&t->storage->writer);
        if (tn__version_of(t) == u->list[i].version) continue;
        return tn_raise_false(
            TN_ESTATE,
            "backward: %s%s changed %s%s%s, which the function of %s used and will use again; change it before the "
            "%s, or after the backward",
            writer, strncmp(writer, "tn_", 3) ? "_" : "", t->name ? "'" : "", t->name ? t->name : "a leaf",
            t->name ? "'" : "", caller, caller);
    }
    return true;
}

void tn__used_free(tn__used *u)
{
    for (size_t i = 0; i < u->count; i++) tn_drop(u->list[i].t);
    tn__mem_put(u->list, u->room * sizeof *u->list);
}
