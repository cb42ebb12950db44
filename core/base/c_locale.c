/* c_locale.c — sets the C locale temporarily. See c_locale.h. */
#include "core/system/system.h"

#include "core/base/c_locale.h"

tn__c_locale tn__c_locale_begin(void)
{
    const int    keep = errno;
    tn__c_locale was = {tn__sys_c_locale()};
    errno = keep;
    return was;
}

void tn__c_locale_end(tn__c_locale was) { tn__sys_locale(was.locale); }
