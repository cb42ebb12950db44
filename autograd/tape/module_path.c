/* module_path.c — the path of the module that is running, for profiles and for errors of anomaly mode. */
#include "autograd/tape/tape.h"

#include <string.h>

void tn__path_text(char *to, size_t size)
{
    to[0] = 0;
    size_t at = 0;
    int    depth = tn__self.path_depth < TN__PATH_MAX ? tn__self.path_depth : TN__PATH_MAX;
    for (int i = 0; i < depth && at + 1 < size; i++)
        if (tn__self.path[i]) at += (size_t)snprintf(to + at, size - at, "%s%s", at ? "." : "", tn__self.path[i]);
}

char *tn__path_copy(bool required)
{
    char buf[512], *p;
    tn__path_text(buf, sizeof buf);
    if (required) return tn__strdup(buf);
    if ((p = tn__mem_try(strlen(buf) + 1))) memcpy(p, buf, strlen(buf) + 1);
    return p;
}
