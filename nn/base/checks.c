/* checks.c — what constructors ask of their configs. */
#include "nn/base/nn_private.h"

bool tn__at_least(const char *who, const char *what, int64_t v, int64_t least)
{
    if (v >= least) return true;
    tn_raise(TN_EINVAL, "%s: .%s is %lld, but must be at least %lld", who, what, (long long)v, (long long)least);
    return false;
}

bool tn__probability(const char *who, const char *what, double p)
{
    if (p >= 0 && p <= 1) return true;
    tn_raise(TN_EINVAL, "%s: .%s is %s, but a probability is from 0 to 1", who, what, tn__python(p));
    return false;
}

bool tn__floating(const char *who, tn_dtype dt)
{
    if (tn_dtype_is_float(dt)) return true;
    tn_raise(TN_EDTYPE, "%s: .dtype is %s, but parameters are f32, f64 or bf16", who, tn_dtype_name(dt));
    return false;
}

bool tn__last_dims(const char *who, int64_t dim, tn_shape shape, tn_shape *to)
{
    if (dim && shape.n)
        return tn_raise(TN_EINVAL,
                        "%s: .dim and .shape are both set; .dim is for the last dim alone, .shape for several", who),
               false;
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
