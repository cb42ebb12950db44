/* messages.h — sentences for the user of a program: counted nouns agree, and errors name options, not C members. */
#ifndef TENON_PROGRAMS_COMMON_MESSAGES_H
#define TENON_PROGRAMS_COMMON_MESSAGES_H

#include "options.h"

/* fprintf to standard error, with the singular after 1: "1 documents are" becomes "1 document is". */
void tell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Writes the library's message for the user of a command: without names of functions ("tn_load: "), with ".vocab_size"
 * as "--vocab-size" if options (NULL: none) have it, with the singular after 1, and with advice. Cut to fit. */
void message_for_user(const char *from, const option *options, char *to, size_t room);

#endif
