/* tensor.h — the tensor: a storage, which holds the elements, and handles on it, each with its own layout
 * (tensor.c). */
#ifndef TENON_CORE_TENSOR_TENSOR_H
#define TENON_CORE_TENSOR_TENSOR_H

#include "core/base/checked.h"
#include "core/base/dtype.h"
#include "core/base/memory.h"
#include "core/base/thread.h"
#include "core/tensor/layout.h"

/* The effect of recorded in-place ops on a storage (autograd/tape/history.c): viewed under `shape`, all of its elements
 * in order are result `output` of `node`. One for each family of handles, which are views of each other. tn_detach
 * starts a new family. */
typedef struct tn__history {
    struct tn__history *next;
    tn__object         *node; /* NULL: not overwritten yet */
    uint64_t            family;
    tn_shape            shape;
    uint32_t            version; /* of the storage, after the last of these ops */
    uint8_t             output;
} tn__history;

/* Handles on a storage are counted twice: all of them in the low half of refs, guests in the high half as well. Guests
 * are leaves and tensors saved by the tape: they never need the history, which is freed with the last other handle.
 * (The history holds nodes, and nodes hold guests: a history that lived as long as guests would never be freed.) */
#define TN__GUEST ((uint64_t)1 << 32)

typedef struct {
    _Atomic(uint64_t) refs;
    _Atomic(uint32_t) version; /* incremented by every write after creation */
    _Atomic(uint32_t) taped;   /* the version after the last write that the tape recorded */
    /* hash of (matrix, version) of the last few-row products, and their number; 0: none (packed.c) */
    _Atomic(uint32_t)      last_product;
    bool                   borrowed; /* not the library's memory */
    _Atomic(const char *)  writer;   /* the last writer, for messages */
    size_t                 bytes;
    void                  *data;
    tn__object            *owner; /* freed with it: the lender of tn_borrow's memory, or packed.c's matrices */
    _Atomic(tn__history *) history;
} tn__storage;

struct tn_tensor {
    tn__object   object; /* first: scopes use only this member */
    tn_dtype     dtype;
    bool         leaf;           /* requires grad: collected in grad */
    uint8_t      output;         /* index among its node's results */
    bool         guest;          /* is a guest of its storage */
    bool         unrecorded;     /* a view of a tensor on the tape, made while nothing was recorded */
    bool         trained;        /* a leaf that an optimizer has or had */
    atomic_bool  busy;           /* a leaf that the end of a backward pass, or a step, is changing */
    bool         waits;          /* a gradient to which later passes add before an update (tn_accumulate) */
    uint32_t     version;        /* the storage's version when made, or last changed through this handle */
    uint32_t     narrow_version; /* of the storage, when narrow was its copy */
    uint64_t     family;
    tn__storage *storage;
    tn__object  *node; /* the tape's record of the op that made it, NULL for leaves and constants */
    tn_tensor   *grad;
    tn_tensor   *rows;   /* the rows in grad, i64 and ascending, if the others are zero; NULL: all */
    tn_tensor   *narrow; /* a leaf's copy in bf16, or NULL (autograd/tape/casts.h) */
    tn__object  *hooks;
    char        *name;
    tn__layout   l;
};

/* A new tensor in the open scope: contiguous, contents undefined. Raises. NULL while an error is set. */
tn_tensor *tn__new(tn_dtype dt, tn_shape s);
/* A new handle on t's storage under layout l; no node, not a leaf. */
tn_tensor *tn__alias(const tn_tensor *t, const tn__layout *l);
/* Like tn__new and tn__alias, but owned by the caller (freed with tn_drop), in no scope. */
tn_tensor *tn__new_owned(tn_dtype dt, tn_shape s);
tn_tensor *tn__alias_owned(const tn_tensor *t, const tn__layout *l);
tn_tensor *tn__alias_guest(const tn_tensor *t);        /* another handle, owned, as a guest of its storage */
void       tn__written(tn_tensor *t, const char *who); /* increments the version */
void       tn__make_guest(tn_tensor *t, bool guest);
void       tn__move(tn_tensor *t, const tn_tensor *to); /* t becomes a handle on the other's storage */

/* True if the tape may have recorded a change of t's memory that is not in t's own history. Then tn__newer returns the
 * current history of the memory; NULL: no change concerns t. */
static inline bool tn__outdated(const tn_tensor *t)
{
    return __builtin_expect(t->version < atomic_load_explicit(&t->storage->taped, memory_order_relaxed), 0);
}
tn__history *tn__newer(const tn_tensor *t);
tn__history *tn__history_of(const tn_tensor *t); /* of t's family, newer than t or not; may be NULL */

/* False for NULL, and for a freed tensor, which is raised. */
static inline bool tn__alive(const char *who, const tn_tensor *t)
{
    if (t && !tn__object_freed(&t->object)) return true;
    if (t) tn__object_misused(who, "the tensor");
    return false;
}

/* tn__new for a dtype and a shape from the caller, which it checks; the error names who. */
tn_tensor *tn__make(const char *who, tn_dtype dt, tn_shape s);
bool       tn__given(const char *who, const char *what, const tn_tensor *t); /* false and raised: "who: what is NULL" */
/* True if dt can represent v (truncated towards zero for an integer dtype). Otherwise raises, naming v as `what`. */
bool tn__fits(const char *who, const char *what, tn_dtype dt, double v);
/* True if the elements may be written in place: not if t is NULL or has an element at two indices; or, outside no-grad,
 * if it is a leaf or on the tape. Raises. */
bool tn__writable(const char *who, const tn_tensor *t);

static inline void *tn__ptr(const tn_tensor *t) /* the first element */
{
    return (char *)t->storage->data + t->l.offset * (int64_t)tn__dtype_bytes(t->dtype);
}
/* A view on the caller's stack that owns nothing: only for the skeletons, never for an op or a scope. */
static inline tn_tensor tn__stack_view(const tn_tensor *t, const tn__layout *l)
{
    return (tn_tensor){.dtype = t->dtype, .storage = t->storage, .l = *l};
}

/* y = x with conversion; x broadcasts to y. */
void tn__copy(tn_tensor *y, const tn_tensor *x);
void tn__fill(tn_tensor *y, double value);

#endif
