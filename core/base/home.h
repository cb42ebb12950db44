/* home.h — memory whose numbers may be elsewhere until somebody needs them: a weight of which each rank keeps a part
 * (parallel/spread.c). Ops and readers of elements ask for them first. */
#ifndef TENON_CORE_BASE_HOME_H
#define TENON_CORE_BASE_HOME_H

#include "core/base/object.h"
#include "core/core.h"

typedef struct tn__home {
    tn__object object;
    bool       open; /* may be written over: by the optimizer's step */
    /* The numbers are here behind it, and stay for as long as that call lasts; call 0: until the library is told
     * otherwise. False: raised. */
    bool (*bring)(struct tn__home *h, uint64_t call);
} tn__home;

/* False, and raised, for a tensor whose other parts ranks have: who would change it, or make it another, asks first. */
bool tn__may_write(const char *who, const tn_tensor *t);

/* A tensor in the open scope, on memory whose owner the home is: it is ended with it. Raises. */
tn_tensor *tn__homed(tn_dtype dt, tn_shape s, void *data, tn__home *h);

#endif
