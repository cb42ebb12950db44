/* files.c — folders, names in them, and the time. */
#define _POSIX_C_SOURCE 200809L
#include "files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

bool make_folder(const char *path)
{
    char s[1024];
    if (!*path) return tn_raise(TN_EINVAL, "a folder needs a name"), false;
    if (snprintf(s, sizeof s, "%s", path) >= (int)sizeof s)
        return tn_raise(TN_EINVAL, "the name '%.40s...' is too long", path), false;
    for (char *at = s + 1;; at++) {
        if (*at && *at != '/') continue;
        const char was = *at;
        *at = 0;
        if (mkdir(s, 0777) && errno != EEXIST)
            return tn_raise(TN_EIO, "'%s' cannot be made: %s", s, strerror(errno)), false;
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

bool is_there(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
