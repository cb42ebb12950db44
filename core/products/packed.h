/* packed.h — a matrix that is repeatedly multiplied by a few rows (the weights of a model that answers one request, or
 * generates token by token) is kept in the form that the kernels read fastest, until its version changes. */
#ifndef TENON_CORE_PRODUCTS_PACKED_H
#define TENON_CORE_PRODUCTS_PACKED_H

#include "core/tensor/tensor.h"
#include "core/kernels/kernels.h"

/* The key: a matrix b [k, n] in its storage, for these kernels; for one row at a time, or for tiles. */
typedef struct {
    const void             *b;
    int64_t                 n, k, b_row, b_col;
    const tn__gemm_kernels *kernels;
    bool                    row;
} tn__packed_key;

typedef struct tn__packed {
    struct tn__packed *next;
    atomic_int         refs; /* one of the storage, and one of each product that reads it now */
    uint32_t           version;
    tn__packed_key     key;
    size_t             bytes;
    char              *data;
} tn__packed;

/* The packed form of the matrix; the caller releases it with tn__packed_drop. NULL: not worthwhile, because this is the
 * first use of this version; or, raised, out of memory. *fresh: data is still empty; the caller fills it and calls
 * tn__packed_publish. */
tn__packed *tn__packed_find(tn__storage *s, const tn__packed_key *key, size_t bytes, bool *fresh);
void        tn__packed_publish(tn__storage *s, tn__packed *p);
void        tn__packed_drop(tn__packed *p);

#endif
