/* tensor.h — what a tensor is: a storage, which holds the numbers, and handles on it, each with a layout of its own
 * (tensor.c). */
#ifndef TENON_CORE_TENSOR_TENSOR_H
#define TENON_CORE_TENSOR_TENSOR_H

#include "core/base/checked.h"
#include "core/base/dtype.h"
#include "core/base/home.h"
#include "core/base/memory.h"
#include "core/base/thread.h"
#include "core/tensor/layout.h"

/* What recorded in-place ops made of a storage (autograd/tape/history.c): seen under `shape`, all of its elements in
 * order are result `output` of `node`. One for each family of handles: those that are views of each other. tn_detach
 * begins a new family. */
typedef struct tn__history {
    struct tn__history *next;
    tn__object         *node; /* NULL: nothing was written over yet */
    uint64_t            family;
    tn_shape            shape;
    uint32_t            version; /* of the storage, after the last of these ops */
    uint8_t             output;
} tn__history;

/* Handles on a storage are counted twice: all of them in the low half of refs, guests in the high half as well. Guests
 * are leaves and what the tape saved: they never need the history, which ends with the last handle that is none. (The
 * history holds nodes, and nodes hold guests: a history that lived as long as they do would never end.) */
#define TN__GUEST ((uint64_t)1 << 32)

typedef struct {
    _Atomic(uint64_t) refs;
    _Atomic(uint32_t) version; /* bumped by every write after creation */
    _Atomic(uint32_t) taped;   /* the version after the last write that the tape recorded */
    /* hash of (matrix, version) of the last few-row product; 0: none (packed.c) */
    _Atomic(uint32_t)      last_product;
    bool                   borrowed; /* the memory is not the library's */
    bool                   homed;    /* and its numbers may be elsewhere: the owner is a tn__home */
    _Atomic(const char *)  writer;   /* who wrote last, for messages */
    size_t                 bytes;
    void                  *data;
    tn__object            *owner; /* ends with it: whom tn_borrow had the memory from, or packed.c's matrices */
    _Atomic(tn__history *) history;
} tn__storage;

struct tn_tensor {
    tn__object   object; /* first, as scopes know no more of it */
    tn_dtype     dtype;
    bool         leaf;       /* gradients are wanted: collected in grad */
    uint8_t      output;     /* which of its node's results it is */
    bool         guest;      /* of its storage */
    bool         unrecorded; /* a view of something on the tape, made while nothing was recorded */
    uint32_t     version;    /* the storage's version when made, or last changed through this handle */
    uint64_t     family;
    tn__storage *storage;
    tn__object  *node; /* the tape's record of the op that made it, NULL for leaves and constants */
    tn_tensor   *grad;
    tn_tensor   *rows; /* which rows grad has, i64 and rising, the others being zero; NULL: all */
    tn__object  *hooks;
    char        *name;
    tn__layout   l;
};

/* A new tensor in the open scope: contiguous, contents undefined. Raises. NULL while an error stands. */
tn_tensor *tn__new(tn_dtype dt, tn_shape s);
/* A new handle on t's storage under layout l; no node, not a leaf. */
tn_tensor *tn__alias(const tn_tensor *t, const tn__layout *l);
/* The same two, but owned by the caller (drop them with tn_drop), in no scope. */
tn_tensor *tn__new_owned(tn_dtype dt, tn_shape s);
tn_tensor *tn__alias_owned(const tn_tensor *t, const tn__layout *l);
tn_tensor *tn__alias_guest(const tn_tensor *t);        /* t again, owned, as a guest of its storage */
void       tn__written(tn_tensor *t, const char *who); /* bumps the version */
void       tn__make_guest(tn_tensor *t, bool guest);
void       tn__move(tn_tensor *t, const tn_tensor *to); /* t becomes a handle on the other's storage */

/* Has the tape recorded a change of t's memory that t's own history knows nothing of? If it may have, tn__newer says
 * what the memory's history is now; NULL: none that concerns t. */
static inline bool tn__outdated(const tn_tensor *t)
{
    return __builtin_expect(t->version < atomic_load_explicit(&t->storage->taped, memory_order_relaxed), 0);
}
tn__history *tn__newer(const tn_tensor *t);
tn__history *tn__history_of(const tn_tensor *t); /* of t's family, newer than t or not; NULL: none */

/* False for NULL, and for a tensor that is no more, which is raised. */
static inline bool tn__alive(const char *who, const tn_tensor *t)
{
    if (t && !tn__object_gone(&t->object)) return true;
    if (t) tn__object_misused(who, "the tensor");
    return false;
}

/* The numbers of t are here; else they come, or it is raised. tn__bring: those of all inputs of a call (home.c). */
bool               tn__bring(int n, tn_tensor *const *t);
bool               tn__bring_to_stay(const tn_tensor *t);
static inline bool tn__here(const tn_tensor *t)
{
    return __builtin_expect(!t->storage->homed, 1) || tn__bring_to_stay(t);
}

/* tn__new for a dtype and a shape from outside, which are checked; who is named in the message. */
tn_tensor *tn__make(const char *who, tn_dtype dt, tn_shape s);
bool       tn__given(const char *who, const char *what, const tn_tensor *t); /* false and raised: "who: what is NULL" */
/* Can dt hold v (cut towards zero for an integer type)? If not, raises with what v is called: "value", "low". */
bool tn__fits(const char *who, const char *what, tn_dtype dt, double v);
/* May the elements be written in place? Not if t is NULL, or shows an element twice; or, outside no-grad, if it is a
 * leaf or on the tape. Raises. */
bool tn__writable(const char *who, const tn_tensor *t);

static inline void *tn__ptr(const tn_tensor *t) /* the first element */
{
    return (char *)t->storage->data + t->l.offset * (int64_t)tn__dtype_bytes(t->dtype);
}
/* A view that lives on the caller's stack and owns nothing: for the skeletons alone, never for an op or a scope. */
static inline tn_tensor tn__glance(const tn_tensor *t, const tn__layout *l)
{
    return (tn_tensor){.dtype = t->dtype, .storage = t->storage, .l = *l};
}

/* y = x with conversion; x broadcasts to y. */
void tn__copy(tn_tensor *y, const tn_tensor *x);
void tn__fill(tn_tensor *y, double value);

#endif
