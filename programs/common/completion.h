/* completion.h — PROGRAM completion SHELL: a script for the completion of commands, options and their values. */
#ifndef TENON_PROGRAMS_COMMON_COMPLETION_H
#define TENON_PROGRAMS_COMMON_COMPLETION_H

#include "options.h"

int completion_print(const program *p, const char *shell); /* to standard output; returns an exit code */

#endif
