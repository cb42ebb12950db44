/* files.h — folders, file names, lines of standard input, and the time. */
#ifndef TENON_PROGRAMS_COMMON_FILES_H
#define TENON_PROGRAMS_COMMON_FILES_H

#include <stdio.h>
#include <tenon/extras.h>

bool        make_folder(const char *path); /* and its parents; existing ones are kept; false: an error is set */
const char *in_folder(const char *folder, const char *name, char path[1024]);
bool        file_exists(const char *path);
bool        same_file(const char *a, const char *b); /* do two paths name one file, which may not exist yet? */
bool        may_write(const char *path);             /* before long work: can a file be made here? False: raised */
int64_t     input_waits(void); /* bytes of standard input that can be read now, unless it is a terminal */
double      seconds_now(void); /* a monotonic clock */

/* Reads a line of at most `most` bytes from standard input, without its line end but with a NUL, into *line, which
 * grows and which the caller frees. False: end of input, or raised. */
bool next_line_of(FILE *from, char **line, size_t *room, size_t *bytes,
                  size_t most); /* of a file; errors name no file */
bool next_line(char **line, size_t *room, size_t *bytes, size_t most);

#endif
