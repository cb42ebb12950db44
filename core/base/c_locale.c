/* c_locale.c — sets the C locale temporarily. See c_locale.h. */
#define _POSIX_C_SOURCE 200809L
#include "core/base/c_locale.h"

#include <errno.h>
#include <locale.h>

/* The C locale always exists: it takes no memory and is not freed. */
tn__c_locale tn__c_locale_begin(void)
{
    const int      keep = errno;
    const locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    const locale_t was = c ? uselocale(c) : (locale_t)0;
    errno = keep;
    return (tn__c_locale){(void *)was};
}

void tn__c_locale_end(tn__c_locale was)
{
    if (was.locale) uselocale((locale_t)was.locale);
}
