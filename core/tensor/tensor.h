/* tensor.h — what a tensor is: a storage, which holds the numbers, and handles on it, each with a layout of its own
 * (tensor.c). */
#ifndef TENON_CORE_TENSOR_H
#define TENON_CORE_TENSOR_H

#include "core/base/checked.h"
#include "core/base/memory.h"
#include "core/base/thread.h"
#include "core/tensor/layout.h"

typedef struct {
    atomic_int            refs;
    _Atomic(uint32_t)     version; /* bumped by every write after creation */
    _Atomic(uint32_t)     taped;   /* the version after the last write that the tape recorded */
    _Atomic(uint32_t)     seen;    /* the matrix in it that was last multiplied by few rows (packed.c) */
    _Atomic(const char *) writer;  /* who wrote last, for messages */
    size_t                bytes;
    void                 *data;
    void (*release)(void *data, void *user); /* called when it ends, if set: by tn_borrow, or by packed.c, ... */
    void *user;                              /* ... whose list of packed matrices this is then */
    bool  borrowed;                          /* the memory is not the library's */
} tn__storage;

void tn__storage_drop(tn__storage *s); /* gives back one reference */

struct tn_tensor {
    tn__object   object; /* first, as scopes know no more of it */
    tn_dtype     dtype;
    bool         leaf;   /* gradients are wanted: collected in grad */
    uint8_t      output; /* which of its node's results it is */
    uint32_t     seen;   /* the storage's version when made, or last changed through this handle */
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
void       tn__written(tn_tensor *t, const char *who); /* bumps the version */

/* tn__new for a dtype and a shape from outside, which are checked; who is named in the message. */
tn_tensor *tn__make(const char *who, tn_dtype dt, tn_shape s);
bool       tn__given(const char *who, const char *what, const tn_tensor *t); /* false and raised: "who: what is NULL" */
/* Can dt hold v (cut towards zero for an integer type)? If not, raises with what v is called: "value", "low". */
bool tn__fits(const char *who, const char *what, tn_dtype dt, double v);
/* May the elements be written in place? Not if t is NULL, or shows an element twice; or, outside no-grad, if it is a
 * leaf or on the tape. Raises. */
bool tn__writable(const char *who, const tn_tensor *t);

static inline size_t tn__dtype_bytes(tn_dtype dt)
{
    static const uint8_t size[] = {
        [TN_F32] = 4, [TN_F64] = 8, [TN_BF16] = 2, [TN_I64] = 8, [TN_I32] = 4, [TN_U8] = 1, [TN_BOOL] = 1};
    return size[dt];
}
static inline void *tn__ptr(const tn_tensor *t) /* the first element */
{
    return (char *)t->storage->data + t->l.offset * (int64_t)tn__dtype_bytes(t->dtype);
}
static inline bool tn__is_float(tn_dtype dt) { return dt <= TN_BF16; }
/* A view that lives on the caller's stack and owns nothing: for the skeletons alone, never for an op or a scope. */
static inline tn_tensor tn__glance(const tn_tensor *t, const tn__layout *l)
{
    return (tn_tensor){.dtype = t->dtype, .storage = t->storage, .l = *l};
}

/* y = x with conversion; x broadcasts to y. */
void tn__copy(tn_tensor *y, const tn_tensor *x);
void tn__fill(tn_tensor *y, double value);

#endif
