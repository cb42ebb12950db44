/* wrap.h — lines of information on a terminal: broken between words at its width, their headings bold. */
#ifndef TENON_PROGRAMS_COMMON_WRAP_H
#define TENON_PROGRAMS_COMMON_WRAP_H

#include <stdbool.h>

/* The position in a line, which may be written in several parts. */
typedef struct {
    int  at, indent, spaces; /* columns written; those of a line that continues; spaces before the next word */
    bool colors;
} wrap;
enum { WRAP_HEADING = 9 /* columns of "model    " */ };

/* Appends a part to `to`, of `room` bytes, cut to fit. wide: the terminal's columns; 0: no terminal, the text as it
 * is. */
void wrap_text(wrap *w, const char *text, int wide, char *to, unsigned long room);

#endif
