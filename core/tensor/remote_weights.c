/* remote_weights.c — fetches elements from other ranks before they are read, and protects them from being written. */
#include "core/tensor/tensor.h"

static tn__remote_weight *remote_of(const tn_tensor *t) { return (tn__remote_weight *)(void *)t->storage->owner; }

/* Calls are numbered, so that elements read by one of them stay until it ends. */
bool tn__fetch(int n, tn_tensor *const *t)
{
    static _Thread_local uint64_t calls;
    calls++;
    for (int i = 0; i < n; i++)
        if (t[i] && t[i]->storage->remote && !remote_of(t[i])->fetch(remote_of(t[i]), calls)) return false;
    return true;
}

bool tn__fetch_to_stay(const tn_tensor *t) { return remote_of(t)->fetch(remote_of(t), 0); }

bool tn__may_write(const char *who, const tn_tensor *t)
{
    if (!t || !t->storage->remote || remote_of(t)->writable) return true;
    const char *name = t->name ? t->name : "";
    return tn_raise_false(TN_ESTATE,
                          "%s: this tensor%s%s%s is a weight sharded over the ranks (.zero3); change it after "
                          "tn_replica_whole, or let tn_replica_step do it",
                          who, *name ? " (" : "", name, *name ? ")" : "");
}
