/* checks.c — see checks.h. */
#include "nn/attention/checks.h"

#include <stdarg.h>
#include <stdio.h>

bool tn__no_mistake(const char *who, int n, const tn__mistake *list)
{
    char text[400];
    for (int i = 0; i < n; i++) {
        if (!list[i].wrong) continue;
        const int64_t *v = list[i].number;
        snprintf(text, sizeof text, list[i].says, (long long)v[0], (long long)v[1], (long long)v[2], (long long)v[3],
                 (long long)v[4]);
        return tn_raise_false(list[i].code, "%s: %s", who, text);
    }
    return true;
}

bool tn__wrong_shape(const char *who, const char *what, const tn_tensor *t, const char *format, ...)
{
    char    text[192], expected[256];
    va_list list;
    va_start(list, format);
    vsnprintf(expected, sizeof expected, format, list);
    va_end(list);
    return tn_raise_false(TN_ESHAPE, "%s: %s %s must be %s", who, what,
                          t ? tn_shape_text(tn_shape_of(t), text, sizeof text) : "NULL", expected);
}

bool tn__unexpected(const char *who, const tn_tensor *t, bool dtype, const char *format, ...)
{
    char    text[192], expected[256];
    va_list list;
    va_start(list, format);
    vsnprintf(expected, sizeof expected, format, list);
    va_end(list);
    return tn_raise_false(TN_ESHAPE, "%s: %s, got %s%s%s", who, expected,
                          dtype && t ? tn_dtype_name(tn_dtype_of(t)) : "", dtype && t ? " " : "",
                          t ? tn_shape_text(tn_shape_of(t), text, sizeof text) : "NULL");
}
