/* packed.h — a matrix that is repeatedly multiplied by a few rows (the weights of a model that answers one request, or
 * generates token by token) is kept in the form that the kernels read fastest, until its version changes. */
#ifndef TENON_CORE_PRODUCTS_PACKED_H
#define TENON_CORE_PRODUCTS_PACKED_H

#include "core/tensor/tensor.h"
#include "core/kernels/kernels.h"

/* A matrix b [k, n] in its storage, for these kernels. */
typedef struct {
    const void             *b;
    int64_t                 n, k, b_row, b_col;
    const tn__gemm_kernels *kernels;
} tn__packed_key;

/* The forms that a product can read: for the kernel of one row; that or for tiles; for tiles. A few rows read tiles
 * up to a fifth faster, but a program that multiplies one row and a few in turn need not keep both forms. */
typedef enum { TN__PACKED_ONE, TN__PACKED_FEW, TN__PACKED_MANY } tn__packed_use;

typedef struct tn__packed {
    struct tn__packed *next;
    atomic_int         refs; /* one of the storage, and one of each product that reads it now */
    uint32_t           version;
    tn__packed_key     key;
    bool               one_row; /* the form for the kernel of one row */
    size_t             bytes;
    char              *data;
} tn__packed;

/* The packed form of the matrix; the caller releases it with tn__packed_drop. NULL: not worthwhile, because this is one
 * of the first uses of this version; or there is no memory for it, which raises nothing. *fresh: data is still empty;
 * the caller fills it and calls tn__packed_publish. bytes: of the form for tiles, and of that for one row. */
tn__packed *tn__packed_find(tn__storage *s, const tn__packed_key *key, tn__packed_use use, const size_t bytes[2],
                            bool *fresh);
void        tn__packed_publish(tn__storage *s, tn__packed *p);
void        tn__packed_drop(tn__packed *p);

#endif
