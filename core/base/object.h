/* object.h — a count of references and a way to end. A lower layer holds what a higher one made through this, without
 * knowing what it is: the scope stack its tensors, a tensor the tape's node, a thread its caches. */
#ifndef TENON_CORE_BASE_OBJECT_H
#define TENON_CORE_BASE_OBJECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tn__object {
    atomic_int refs;
    uint32_t   serial; /* of a tensor: tells it from another that lies in the same place later; 0: gone */
    void (*end)(struct tn__object *);
} tn__object;

/* The count of one that has ended, for as long as its memory lies in the thread's quarantine (memory.c): what happens
 * to it then is a mistake that can be told. */
enum { TN__GONE = -(1 << 30) };
void tn__object_misused(const char *who, const char *what); /* raises: "who: what was dropped before ..." */
static inline bool tn__object_gone(const tn__object *o)
{
    return __builtin_expect(atomic_load_explicit(&o->refs, memory_order_relaxed) < 0, 0);
}
static inline void tn__object_keep(tn__object *o)
{
    if (o) atomic_fetch_add_explicit(&o->refs, 1, memory_order_relaxed);
}
static inline void tn__object_drop(tn__object *o)
{
    const int was = o ? atomic_fetch_sub_explicit(&o->refs, 1, memory_order_acq_rel) : 2;
    if (__builtin_expect(was > 1, 1)) return;
    if (was == 1) o->end(o);
    else tn__object_misused("tn_drop", "this tensor");
}

#endif
