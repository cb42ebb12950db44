/* object.h — a reference count and a destructor. Through it a lower layer holds objects of a higher one without knowing
 * their type: the scope stack holds tensors, a tensor holds the tape's node, a thread its caches. */
#ifndef TENON_CORE_BASE_OBJECT_H
#define TENON_CORE_BASE_OBJECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tn__object {
    atomic_int refs;
    uint32_t   serial; /* of a tensor: distinguishes it from a later one at the same address; 0: freed */
    void (*end)(struct tn__object *);
} tn__object;

/* The count of a freed object while the thread's quarantine (memory.c) holds its memory: its use can be reported. */
enum { TN__FREED = -(1 << 30) };
void               tn__object_misused(const char *who, const char *what); /* raises an error for who */
static inline bool tn__object_freed(const tn__object *o)
{
    return __builtin_expect(atomic_load_explicit(&o->refs, memory_order_relaxed) < 0, 0);
}
static inline void tn__object_keep(tn__object *o)
{
    if (o) atomic_fetch_add_explicit(&o->refs, 1, memory_order_relaxed);
}
/* The owner of the only reference needs no atomic subtraction: no other thread can add one meanwhile. */
static inline void tn__object_drop(tn__object *o)
{
    int was = o ? atomic_load_explicit(&o->refs, memory_order_acquire) : 2;
    if (was == 1) atomic_store_explicit(&o->refs, 0, memory_order_relaxed); /* a later use is recognised as a mistake */
    else if (o) was = atomic_fetch_sub_explicit(&o->refs, 1, memory_order_acq_rel);
    if (__builtin_expect(was > 1, 1)) return;
    if (was == 1) o->end(o);
    else tn__object_misused("tn_drop", "this tensor");
}

#endif
