/* checks.c — the check for a freed module; for constructors, that of .dim and .shape, and a shape as text. */
#include "nn/base/nn_private.h"

const struct tn__base tn__freed_base;

bool tn__module_freed(const char *who, const tn_module *m)
{
    if (m->base != &tn__freed_base) return false;
    tn_raise(TN_ESTATE, "%s: this module was already freed", who);
    return true;
}

bool tn__last_dims(const char *who, int64_t dim, tn_shape shape, tn_shape *to)
{
    if (dim && shape.n)
        return tn_raise_false(TN_EINVAL,
                              "%s: .dim and .shape are both set; use .dim for the last dim or .shape for several", who);
    *to = shape;
    if (!shape.n) to->n = 1, to->d[0] = dim;
    for (int i = 0; i < to->n; i++)
        if (!tn__at_least(who, shape.n ? "shape" : "dim", to->d[i], 1)) return false;
    return true;
}

const char *tn__tuple(tn_shape s, char *to, size_t size)
{
    size_t at = (size_t)snprintf(to, size, "(");
    for (int i = 0; i < s.n && at < size; i++)
        at += (size_t)snprintf(to + at, size - at, "%s%lld", i ? ", " : "", (long long)s.d[i]);
    if (at < size) snprintf(to + at, size - at, "%s", s.n == 1 ? ",)" : ")");
    return to;
}
