/* messages.h — sentences for the user of a program: counted nouns agree, and errors name options, not C members. */
#ifndef TENON_PROGRAMS_COMMON_MESSAGES_H
#define TENON_PROGRAMS_COMMON_MESSAGES_H

#include "options.h"

/* fprintf to standard error, with the singular after 1: "1 documents are" becomes "1 document is"; on a terminal, lines
 * are broken between words and headings are bold. A line may be written in several calls. */
void tell(const char *fmt, ...) TN_PRINTF(1, 2);
/* "warning: " and the text as tell writes it; on the first rank only, and with --quiet, too: a result may be wrong. */
void warn(const char *fmt, ...) TN_PRINTF(1, 2);
/* Writes to standard error, or to a file, what tell writes of this text. */
void message_write(FILE *to, const char *text);
/* A line that the user may copy: "next     " and a command, which is not broken. */
void tell_command(const char *heading, const char *text);
/* Copies a text, cut to fit, that names programs as this source does: "use 'bert tag'". A package may install them with
 * a prefix: started as tenon-bert, the program writes "use 'tenon-bert tag'". Returns `to`. */
const char *message_name(const char *from, char *to, size_t room);
/* Writes the library's message for the user of a command: without names of functions ("tn_load: "), with ".vocab_size"
 * as "--vocab-size" if options (NULL: none) have it, with the singular after 1, the names of programs as message_name
 * writes them, and with advice. Cut to fit. */
void message_for_user(const char *from, const option *options, char *to, size_t room);

#endif
