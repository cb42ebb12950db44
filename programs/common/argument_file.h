/* argument_file.h — @FILE on a command line: a file of further words. */
#ifndef TENON_PROGRAMS_COMMON_ARGUMENT_FILE_H
#define TENON_PROGRAMS_COMMON_ARGUMENT_FILE_H

#include "command_line.h"

enum { ARGUMENT_FILE_BYTES = 1 << 20, ARGUMENT_FILE_WORDS = 100000 };

/* Replaces now.argv[i], "@FILE", by the words of the file, as a shell would split them: separated by white space, with
 * '...', "..." and \, and with comments after #; a line end is white space. Other expansions of a shell do not take
 * place. Returns 0, or an exit code after a message that names the line. */
int argument_file_insert(int i);

#endif
