/* caches.c — see caches.h. */
#include "core/system/system.h"

#include "core/base/caches.h"

#include <stdatomic.h>
#include <stdlib.h>

static bool size_of(const char **s, int64_t *bytes)
{
    const int64_t most = (int64_t)1 << 40;
    int64_t       v = 0;
    if (**s < '0' || **s > '9') return false;
    for (; **s >= '0' && **s <= '9'; ++*s)
        if (v <= most) v = 10 * v + (**s - '0');
    const int shift = **s == 'K' || **s == 'k' ? 10 : **s == 'M' || **s == 'm' ? 20 : 0;
    *s += shift != 0;
    *bytes = v > most >> shift ? 0 : v << shift;
    return *bytes > 0;
}

bool tn__caches_parse(const char *text, tn__cache_sizes *c)
{
    int64_t     size[3];
    const char *s = text;
    for (int i = 0; s && i < 3; i++) {
        if (!size_of(&s, &size[i])) return false;
        if (i < 2 && *s++ != ',') return false;
    }
    if (!s || *s) return false;
    *c = (tn__cache_sizes){size[0], size[1], size[2]};
    return true;
}

/* A size as the system says it, if it is plausible. */
static int64_t ask(int level, int64_t least, int64_t most, int64_t usual)
{
    const int64_t v = tn__sys_cache(level);
    return v >= least && v <= most ? v : usual;
}

/* The process's sizes, found at the first call. Threads that are first at the same time find the same ones. */
static _Atomic int64_t sizes[3];
static atomic_int      found; /* 0: not yet; FROM_SYSTEM or FROM_USER */
enum { FROM_SYSTEM = 1, FROM_USER };

static int find(void)
{
    int how = atomic_load_explicit(&found, memory_order_acquire);
    if (how) return how;
    tn__cache_sizes c;
    how = FROM_USER;
    if (!tn__caches_parse(getenv("TENON_CACHES"), &c)) {
        c.l1 = ask(1, 8 << 10, 1 << 20, 32 << 10), c.l2 = ask(2, 128 << 10, 64 << 20, 1 << 20);
        c.l3 = ask(3, 1 << 20, 1 << 30, 16 << 20);
        how = FROM_SYSTEM;
    }
    atomic_store_explicit(&sizes[0], c.l1, memory_order_relaxed);
    atomic_store_explicit(&sizes[1], c.l2, memory_order_relaxed);
    atomic_store_explicit(&sizes[2], c.l3, memory_order_relaxed);
    atomic_store_explicit(&found, how, memory_order_release);
    return how;
}

bool            tn__caches_set(void) { return find() == FROM_USER; }
tn__cache_sizes tn__caches(void)
{
    find();
    return (tn__cache_sizes){atomic_load_explicit(&sizes[0], memory_order_relaxed),
                             atomic_load_explicit(&sizes[1], memory_order_relaxed),
                             atomic_load_explicit(&sizes[2], memory_order_relaxed)};
}
