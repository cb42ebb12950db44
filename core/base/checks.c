/* checks.c — see checks.h. */
#include "core/base/checks.h"
#include "core/base/thread.h"

#include <string.h>

const char *tn__format_python(double v)
{
    static _Thread_local char     ring[8][32];
    static _Thread_local unsigned next;
    char                         *to = ring[next++ % 8];
    tn_format_double(v, to);
    return to;
}

const char *tn__format_number(double v)
{
    const char  *text = tn__format_python(v);
    const size_t n = strlen(text);
    if (n > 2 && !strcmp(text + n - 2, ".0")) ((char *)text)[n - 2] = 0; /* 3, not 3.0 */
    return text;
}

bool tn__not_null(const char *who, const char *what, const void *p)
{
    if (!p) tn_raise(TN_EINVAL, "%s: %s is NULL", who, what);
    return p;
}

bool tn__at_least(const char *who, const char *what, int64_t v, int64_t least)
{
    if (v >= least) return true;
    return tn_raise_false(TN_EINVAL, "%s: .%s is %lld, but must be at least %lld", who, what, (long long)v,
                          (long long)least);
}

bool tn__within(const char *who, const char *what, int64_t v, int64_t low, int64_t high)
{
    if (v >= low && v <= high) return true;
    return tn_raise_false(TN_EINVAL, "%s: .%s is %lld, but must be from %lld to %lld", who, what, (long long)v,
                          (long long)low, (long long)high);
}

bool tn__probability(const char *who, const char *what, double p)
{
    if (p >= 0 && p <= 1) return true;
    return tn_raise_false(TN_EINVAL, "%s: .%s is %s, but a probability is from 0 to 1", who, what,
                          tn__format_python(p));
}

bool tn__probability_below_1(const char *who, const char *what, double p)
{
    if (p >= 0 && p < 1) return true;
    return tn_raise_false(TN_EINVAL, "%s: .%s is %s, but must be from 0 to less than 1", who, what,
                          tn__format_number(p));
}

bool tn__epsilon(const char *who, double eps)
{
    if (eps >= 0 && eps - eps == 0) return true;
    return tn_raise_false(TN_EINVAL, "%s: .eps is %s, but must not be negative, nor infinite", who,
                          tn__format_number(eps));
}

bool tn__floating(const char *who, tn_dtype dt)
{
    if (tn_dtype_is_float(dt)) return true;
    return tn_raise_false(TN_EDTYPE, "%s: .dtype is %s, but parameters are f32, f64 or bf16", who, tn_dtype_name(dt));
}

bool tn__unreplayable(const char *who)
{
    if (!tn__self.mode.replay) return false;
    if (tn__self.mode.replay == 2) return tn__self.value_read = true, false; /* a replay will infer again */
    tn_raise(TN_EUNSUPPORTED,
             "%s: not while tn_replay_record records a step: a replay repeats ops only, and would not repeat this",
             who);
    return true;
}
