/* wrap.c — see wrap.h. A line that begins with a heading, a word and spaces up to column 9, continues below it. */
#include "wrap.h"

#include <string.h>

typedef struct {
    char  *to;
    size_t at, room;
} output;

static void put(output *o, const char *s, size_t n)
{
    if (n > o->room - o->at - 1) n = o->room - o->at - 1;
    memcpy(o->to + o->at, s, n);
    o->at += n, o->to[o->at] = 0;
}

static void put_spaces(output *o, int n)
{
    for (; n > 0; n--) put(o, " ", 1);
}

/* The characters of n bytes of UTF-8. */
static int characters(const char *s, size_t n)
{
    int wide = 0;
    for (size_t i = 0; i < n; i++) wide += ((unsigned char)s[i] & 0xc0) != 0x80;
    return wide;
}

/* The letters of a heading at s; 0: there is none. */
static size_t heading(const char *s)
{
    const size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz"), spaces = strspn(s + n, " ");
    return n && spaces > 1 && n + spaces == WRAP_HEADING ? n : 0;
}

/* Writes a word after its spaces, or in a new line where it does not fit. A unit stays with its number. */
static void put_word(wrap *w, const char *s, size_t n, int wide, output *o)
{
    const int  columns = characters(s, n);
    const bool unit = *s == '%' || !strncmp(s, "×", 2);
    if (w->spaces && !unit && w->at > w->indent && w->at + w->spaces + columns >= wide) {
        put(o, "\n", 1), put_spaces(o, w->indent);
        w->at = w->indent;
    } else {
        put_spaces(o, w->spaces);
        w->at += w->spaces;
    }
    put(o, s, n);
    w->at += columns, w->spaces = 0;
}

void wrap_text(wrap *w, const char *text, int wide, char *to, unsigned long room)
{
    output o = {.to = to, .room = room};
    *to = 0;
    while (*text) {
        const size_t head = w->at || w->spaces ? 0 : heading(text);
        if (head) {
            if (w->colors) put(&o, "\033[1m", 4);
            put(&o, text, head);
            if (w->colors) put(&o, "\033[0m", 4);
            put_spaces(&o, WRAP_HEADING - (int)head);
            w->at = w->indent = WRAP_HEADING, text += WRAP_HEADING;
        } else if (*text == '\n') {
            *w = (wrap){.colors = w->colors};
            put(&o, text++, 1);
        } else if (*text == ' ' && wide) {
            w->spaces++, text++;
        } else {
            size_t n = wide ? strcspn(text, " \n") : strcspn(text, "\n");
            put_word(w, text, n, wide ? wide : 1 << 30, &o);
            text += n;
        }
    }
}
