/* accumulate.c — gradient accumulation: an update after several tn_steps. */
#include "optim/optim_private.h"

tn_status tn_accumulate(tn_optimizer *o, int64_t n)
{
    if (tn__blocked()) return tn_error();
    if (!o) return tn_raise(TN_EINVAL, "tn_accumulate: the optimizer is NULL");
    if (n < 1) return tn_raise(TN_EINVAL, "tn_accumulate: n is %lld, but must be at least 1", (long long)n);
    if (o->waiting)
        return tn_raise(TN_ESTATE, "tn_accumulate: %lld of %lld parts wait for the update; change n after it",
                        (long long)o->waiting, (long long)o->accumulate);
    o->accumulate = n;
    return TN_OK;
}

int64_t tn_optimizer_parts(const tn_optimizer *o) { return o ? o->accumulate : 1; }
