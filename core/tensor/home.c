/* home.c — fetches elements that may be on other ranks before they are read, and protects them from being written. */
#include "core/tensor/tensor.h"

static tn__home *home_of(const tn_tensor *t) { return (tn__home *)(void *)t->storage->owner; }

/* Calls are numbered, so that elements read by one of them stay until it ends. */
bool tn__bring(int n, tn_tensor *const *t)
{
    static _Thread_local uint64_t calls;
    calls++;
    for (int i = 0; i < n; i++)
        if (t[i] && t[i]->storage->homed && !home_of(t[i])->bring(home_of(t[i]), calls)) return false;
    return true;
}

bool tn__bring_to_stay(const tn_tensor *t) { return home_of(t)->bring(home_of(t), 0); }

bool tn__may_write(const char *who, const tn_tensor *t)
{
    if (!t || !t->storage->homed || home_of(t)->open) return true;
    const char *name = t->name ? t->name : "";
    tn_raise(TN_ESTATE,
             "%s: this tensor%s%s%s is a weight sharded over the ranks (.zero3); change it after "
             "tn_replica_whole, or let tn_replica_step do it",
             who, *name ? " (" : "", name, *name ? ")" : "");
    return false;
}
