/* names.c — names of a module's parts: formatting one, checking one. */
#include "nn/base/nn_private.h"

#include <stdarg.h>

enum { RING = 8 };
static _Thread_local struct {
    char     text[RING][TN_NAME_BYTES];
    unsigned next;
} names; /* documented at tn_name */

const char *tn_name(const char *fmt, ...)
{
    char   *to = names.text[names.next++ % RING];
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(to, TN_NAME_BYTES, fmt ? fmt : " ", ap);
    va_end(ap);
    if (n < 0 || n >= TN_NAME_BYTES)
        tn_raise(TN_EINVAL, "tn_name: '%.40s...' has %d bytes, a name has at most %d", to, n, TN_NAME_BYTES - 1);
    return to;
}

bool tn__name_fits(const char *who, const tn_module *m, const char *name)
{
    const size_t n = name ? strlen(name) : 0;
    if (!n || name[0] == '.' || name[n - 1] == '.' || strstr(name, ".."))
        return tn_raise_false(TN_EINVAL,
                              "%s: '%s' is not a valid name for a part of %s; valid are \"weight\" or \"layers.0\"",
                              who, name ? name : "", tn__kind_name(m));
    if (n >= TN_NAME_BYTES)
        return tn_raise_false(TN_EINVAL, "%s: the name '%.40s...' has %zu bytes, a name has at most %d", who, name, n,
                              TN_NAME_BYTES - 1);
    return true;
}
