/* plain.c — sets the C locale temporarily. See plain.h. */
#define _POSIX_C_SOURCE 200809L
#include "core/base/plain.h"

#include <errno.h>
#include <locale.h>

/* The C locale always exists: it takes no memory and is not freed. */
tn__plain tn__plain_begin(void)
{
    const int      keep = errno;
    const locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    const locale_t was = c ? uselocale(c) : (locale_t)0;
    errno = keep;
    return (tn__plain){(void *)was};
}

void tn__plain_end(tn__plain was)
{
    if (was.locale) uselocale((locale_t)was.locale);
}
