/* remote_weights.h — weights whose elements may be on other ranks until they are needed: each rank keeps a part
 * (parallel/zero3.c). Ops and readers of elements fetch them first. */
#ifndef TENON_CORE_BASE_REMOTE_WEIGHTS_H
#define TENON_CORE_BASE_REMOTE_WEIGHTS_H

#include "core/base/object.h"
#include "core/core.h"

typedef struct tn__remote_weight {
    tn__object object;
    bool       writable; /* during the optimizer's step */
    /* Fetches the elements until the end of that call; call 0: until the library releases them. False: raised. */
    bool (*fetch)(struct tn__remote_weight *h, uint64_t call);
} tn__remote_weight;

/* False, and raised, for a tensor sharded over ranks. Call before modifying or replacing it. */
bool tn__may_write(const char *who, const tn_tensor *t);

/* A tensor in the open scope on memory that h owns: h is freed with the tensor. Raises. */
tn_tensor *tn__remote_tensor(tn_dtype dt, tn_shape s, void *data, tn__remote_weight *h);

#endif
