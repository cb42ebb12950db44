/* argument_file.c — see argument_file.h. */
#include "core/system/system.h"

#include "argument_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *path;
    const char *at, *end;
    int         line;
    char       *to;   /* the words, each with its NUL */
    char      **word; /* growing list of words in `to` */
    int         count;
} splitting;

static int bad_line(const splitting *s, int line, const char *what)
{
    return program_usage("'%s', line %d: %s", s->path, line, what);
}

/* Copies the quoted characters after an opening quote, up to and including the closing one. */
static int copy_quoted(splitting *s, char quote)
{
    const int first = s->line;
    for (; s->at < s->end && *s->at != quote; s->at++) {
        if (quote == '"' && *s->at == '\\' && s->at + 1 < s->end && strchr("\"\\$`", s->at[1])) s->at++;
        s->line += *s->at == '\n';
        *s->to++ = *s->at;
    }
    if (s->at++ < s->end) return 0;
    return bad_line(s, first, quote == '"' ? "a \" without its closing \"" : "a ' without its closing '");
}

static bool is_blank(char c) { return c && strchr(" \t\r\n\v\f", c); }

/* Copies the next word, which starts at s->at. */
static int copy_word(splitting *s)
{
    char *const first = s->to;
    int         code = 0;
    while (!code && s->at < s->end && !is_blank(*s->at)) {
        const char c = *s->at++;
        if (!c) return bad_line(s, s->line, "a NUL byte; expected a text file");
        if (c == '\'' || c == '"') code = copy_quoted(s, c);
        else if (c != '\\') *s->to++ = c;
        else if (s->at == s->end) code = bad_line(s, s->line, "a \\ at the end of the file");
        else if (*s->at == '\n') s->line++, s->at++; /* a continued line */
        else *s->to++ = *s->at++;
    }
    if (code) return code;
    if (s->to == first && s->at[-1] == '\n') return 0; /* only a continuation */
    *s->to++ = 0;
    if (*first == '@' && first[1]) return bad_line(s, s->line, "@FILE inside a file; write its words here instead");
    if (s->count == ARGUMENT_FILE_WORDS) return bad_line(s, s->line, "more than 100000 words");
    s->word[s->count++] = first;
    return 0;
}

static int split(splitting *s)
{
    int code = 0;
    while (!code && s->at < s->end) {
        if (is_blank(*s->at)) s->line += *s->at++ == '\n';
        else if (*s->at == '#')
            while (s->at < s->end && *s->at != '\n') s->at++;
        else code = copy_word(s);
    }
    return code;
}

/* Reads a file of at most ARGUMENT_FILE_BYTES bytes. Returns their number; -1: after a message. */
static long read_all(const char *path, char *to)
{
    FILE *f = fopen(path, "rb");
    errno = f ? 0 : errno;
    const size_t n = f ? fread(to, 1, ARGUMENT_FILE_BYTES + 1, f) : 0;
    const bool   failed = !f || ferror(f);
    if (failed) program_usage("cannot read the options file '%s': %s", path, strerror(errno));
    else if (n > ARGUMENT_FILE_BYTES) program_usage("'%s' has more than 1 MiB, too large for a file of options", path);
    if (f) fclose(f);
    return failed || n > ARGUMENT_FILE_BYTES ? -1 : (long)n;
}

int argument_file_insert(int i)
{
    char *text = keep_string(malloc(ARGUMENT_FILE_BYTES + 2)), *words = keep_string(malloc(ARGUMENT_FILE_BYTES + 2));
    const long n = text && words ? read_all(now.argv[i] + 1, text) : -1;
    if (!text || !words) return EXIT_MEMORY;
    if (n < 0) return EXIT_USAGE;
    splitting s = {now.argv[i] + 1, text, text + n, 1, words, malloc(ARGUMENT_FILE_WORDS * sizeof *s.word), 0};
    int       code = s.word ? split(&s) : EXIT_MEMORY;
    char    **more = code ? NULL : malloc((size_t)(now.argc + s.count + 1) * sizeof *more);
    if (more) {
        memcpy(more, now.argv, (size_t)i * sizeof *more);
        memcpy(more + i, s.word, (size_t)s.count * sizeof *more);
        memcpy(more + i + s.count, now.argv + i + 1, (size_t)(now.argc - i - 1) * sizeof *more);
        now.argc += s.count - 1;
        more[now.argc] = NULL;
        free(now.argv), now.argv = more;
    } else if (!code) code = EXIT_MEMORY;
    free(s.word);
    return code;
}
