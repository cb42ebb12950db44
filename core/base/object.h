/* object.h — a count of references and a way to end. A lower layer holds what a higher one made through this, without
 * knowing what it is: the scope stack its tensors, a tensor the tape's node, a thread its caches. */
#ifndef TENON_CORE_OBJECT_H
#define TENON_CORE_OBJECT_H

#include <stdatomic.h>
#include <stddef.h>

typedef struct tn__object {
    atomic_int refs;
    void (*end)(struct tn__object *);
} tn__object;
static inline void tn__object_keep(tn__object *o)
{
    if (o) atomic_fetch_add_explicit(&o->refs, 1, memory_order_relaxed);
}
static inline void tn__object_drop(tn__object *o)
{
    if (o && atomic_fetch_sub_explicit(&o->refs, 1, memory_order_acq_rel) == 1) o->end(o);
}

#endif
