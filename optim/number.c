/* number.c — a number as messages show it. */
#include "optim/optim_private.h"

const char *tn__number(double v)
{
    static _Thread_local char     ring[4][32];
    static _Thread_local unsigned next;
    char                         *to = ring[next++ % 4];
    tn_format_double(v, to);
    const size_t n = strlen(to);
    if (n > 2 && !strcmp(to + n - 2, ".0")) to[n - 2] = 0; /* 3, not 3.0 */
    return to;
}
