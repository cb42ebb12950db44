/* files.c — folders, file names, lines of standard input, and the time. */
#include "core/system/system.h"

#include "files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool make_folder(const char *path)
{
    char        s[1024];
    struct stat st;
    if (!*path) return tn_raise_false(TN_EINVAL, "the name of the folder is empty");
    if (snprintf(s, sizeof s, "%s", path) >= (int)sizeof s)
        return tn_raise_false(TN_EINVAL, "the name '%.40s...' is too long", path);
    for (char *at = s + 1;; at++) {
        if (*at && *at != '/') continue;
        const char was = *at;
        *at = 0;
        if (mkdir(s, 0777) && errno != EEXIST)
            return tn_raise_false(TN_EIO, "cannot create folder '%s': %s", s, strerror(errno));
        if (tn__sys_stat(s, &st) || !S_ISDIR(st.st_mode))
            return tn_raise_false(TN_EIO, "'%s' is a file, expected a folder", s);
        if (!was) return true;
        *at = was;
    }
}

const char *in_folder(const char *folder, const char *name, char path[1024])
{
    if (snprintf(path, 1024, "%s/%s", folder, name) >= 1024)
        tn_raise(TN_EINVAL, "the name '%.40s...' is too long", folder);
    return path;
}

bool file_exists(const char *path)
{
    struct stat st;
    return tn__sys_stat(path, &st) == 0;
}

/* Copies the folder part of a path ("." if it has none). Returns the file name, a part of path. */
static const char *folder_of(const char *path, char folder[1024])
{
    const char *name = tn__sys_last_slash(path);
    snprintf(folder, 1024, "%.*s", name ? (int)(name - path) + 1 : 1, name ? path : ".");
    return name ? name + 1 : path;
}

bool same_file(const char *a, const char *b)
{
    struct stat s, t;
    char        there[1024], here[1024];
    const bool  is_a = tn__sys_stat(a, &s) == 0, is_b = tn__sys_stat(b, &t) == 0;
    if (is_a != is_b) return false;
    if (!is_a &&
        (strcmp(folder_of(a, there), folder_of(b, here)) != 0 || tn__sys_stat(there, &s) || tn__sys_stat(here, &t)))
        return false;
    return s.st_dev == t.st_dev && s.st_ino == t.st_ino;
}

bool may_write(const char *path)
{
    char        folder[1024];
    struct stat st;
    if (!*path) return tn_raise_false(TN_EINVAL, "the name of the file is empty");
    if (strlen(path) >= sizeof folder) return tn_raise_false(TN_EINVAL, "the name '%.40s...' is too long", path);
    if (tn__sys_stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return tn_raise_false(TN_EINVAL, "'%s' is a folder, expected a file", path);
    folder_of(path, folder);
    if (tn__sys_stat(folder, &st) == 0 && S_ISDIR(st.st_mode)) return true;
    return tn_raise_false(TN_EIO, "cannot write '%s': the folder '%s' does not exist", path, folder);
}

bool next_line_of(FILE *from, char **line, size_t *room, size_t *bytes, size_t most)
{
    int c = 0;
    for (*bytes = 0;; (*line)[(*bytes)++] = (char)c) {
        if (*bytes + 1 >= *room) {
            const size_t more = *room ? 2 * *room : 4096;
            char        *at = realloc(*line, more);
            if (!at) return tn_raise_false(TN_ENOMEM, "no memory for a line of %zu bytes", more);
            *line = at, *room = more;
        }
        c = getc_unlocked(from);
        if (c == EOF || c == '\n') break;
        if (*bytes == most)
            return tn_raise_false(TN_EFORMAT, "a line of more than %zu bytes; expected a text with line ends", most);
    }
    (*line)[*bytes] = 0;
    if (c == EOF && ferror(from))
        return tn_raise_false(TN_EIO, "%s: %s", from == stdin ? "standard input" : "cannot read the file",
                              strerror(errno));
    return c != EOF || *bytes;
}

bool next_line(char **line, size_t *room, size_t *bytes, size_t most)
{
    return next_line_of(stdin, line, room, bytes, most);
}

double seconds_now(void)
{
    const int64_t now = tn__sys_nanoseconds();
    return (double)(now / 1000000000) + 1e-9 * (double)(now % 1000000000);
}

int64_t input_waits(void) { return tn__sys_input_waits(); }
