/* help.h — writes the text of --help, 80 columns wide. */
#ifndef TENON_PROGRAMS_COMMON_HELP_H
#define TENON_PROGRAMS_COMMON_HELP_H

#include "options.h"

void help_program(const program *p, FILE *to);
void help_command(const program *p, const command *c, const option *common, FILE *to);
void help_short(const program *p, const command *c, FILE *to); /* -h: usage, five options, one example */

#endif
