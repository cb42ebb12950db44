/* files.h — folders, names in them, and the time. */
#ifndef TENON_EXAMPLES_COMMON_FILES_H
#define TENON_EXAMPLES_COMMON_FILES_H

#include <tenon/tenon.h>

bool        make_folder(const char *path); /* with those above it; false: an error stands */
const char *in_folder(const char *folder, const char *name, char path[1024]);
bool        is_there(const char *path);
bool        same_file(const char *a, const char *b); /* by two names, also where one is still to be written */
bool        may_write(const char *path); /* asked before long work: can a file be made there? False: an error stands */
double      seconds_now(void);           /* of a clock that is never set */

/* A line of standard input, of at most `most` bytes: without its end, but with a NUL behind it, in memory that grows
 * and is the caller's to free. False: no more, or raised. */
bool next_line(char **line, size_t *room, size_t *bytes, size_t most);

#endif
