/* c_locale.h — formats text in the C locale, so that 1.5 is printed as 1.5. Part of toolbox.h. */
#ifndef TENON_CORE_BASE_C_LOCALE_H
#define TENON_CORE_BASE_C_LOCALE_H

/* Between begin and end, this thread formats in the C locale. Other threads, and the process, are unaffected. */
typedef struct {
    void *locale; /* the thread's previous locale */
} tn__c_locale;
tn__c_locale tn__c_locale_begin(void);
void         tn__c_locale_end(tn__c_locale was);

#endif
