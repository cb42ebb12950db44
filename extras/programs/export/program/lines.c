/* lines.c — part of an exported program: reads lines. */

#ifdef MODEL_MAIN
#include <stdio.h>

static char line[TEXT_MOST];

/* Reads a line of standard input without its end, \n or \r\n. Returns its bytes; -1: there is none; -2: with a message,
 * it is too long, or has a NUL byte although `nul` is 0. */
static int read_line(int nul)
{
    int c = getchar(), bytes = 0;
    if (c == EOF) return -1;
    for (; c != EOF && c != '\n'; c = getchar()) {
        if (bytes == TEXT_MOST) return fprintf(stderr, "a line has more than %d bytes\n", TEXT_MOST), -2;
        if (c == 0 && !nul) return fprintf(stderr, "a line has a NUL byte\n"), -2;
        line[bytes++] = (char)c;
    }
    return bytes > 0 && line[bytes - 1] == '\r' ? bytes - 1 : bytes;
}
#endif
