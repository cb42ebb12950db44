/* find.c — finds a part of a module by its path. */
#include "nn/base/nn_private.h"

/* The slot at a path; NULL: none. within: the deepest module on the path; *rest: the part of the path after it. */
static tn__slot *walk(tn_module *m, const char *path, tn_module **within, const char **rest)
{
    for (;;) {
        tn__slot *next = NULL;
        *within = m, *rest = path;
        for (int i = 0; i < m->base->slots; i++) {
            tn__slot    *s = &m->base->slot[i];
            const size_t n = strlen(s->name);
            if (strncmp(s->name, path, n) != 0) continue;
            if (!path[n]) return s;
            if (path[n] == '.' && s->child) next = s;
        }
        if (!next) return NULL;
        path += strlen(next->name) + 1, m = next->child;
    }
}

tn__slot *tn__slot_within(tn_module *m, const char *path, tn_module **within)
{
    const char *rest;
    return walk(m, path, within, &rest);
}

/* Raises "there is no 'encoder.layers.7.weight' in BERT: 'encoder.layers' has 0, 1, 2". found: the part of path after
 * the path of `within`. */
static void raise_not_found(const char *who, const tn_module *m, const char *path, const tn_module *within,
                            const char *found)
{
    char   text[400];
    size_t at = 0;
    text[0] = 0;
    for (int i = 0; i < within->base->slots && at < sizeof text - 1; i++) {
        const char *name = within->base->slot[i].name;
        if (at + strlen(name) + 8 > sizeof text) {
            memcpy(text + at, ", …", sizeof ", …");
            break;
        }
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", at ? ", " : "", name);
    }
    const int n = (int)(found - path);
    tn_raise(TN_EINDEX, "%s: there is no '%s' in %s: %s%.*s%s has %s", who, path, tn__kind_name(m), n ? "'" : "",
             n ? n - 1 : 2, n ? path : "it", n ? "'" : "", *text ? text : "no parts");
}

static tn__slot *find(const char *who, tn_module *m, const char *path, tn_module **within)
{
    if (tn__blocked()) return NULL;
    if (!m || !path) return tn_raise_null(TN_EINVAL, "%s: the %s is NULL", who, m ? "path" : "module");
    if (tn__module_freed(who, m)) return NULL;
    const char *rest;
    tn__slot   *s = walk(m, path, within, &rest);
    if (!s) raise_not_found(who, m, path, *within, rest);
    return s;
}

tn_module *tn_module_find(void *m, const char *path)
{
    tn_module *within;
    if (m && path && !*path) return m;
    const tn__slot *s = find("tn_find", m, path, &within);
    if (s && !s->child) return tn_raise_null(TN_EINDEX, "tn_find: '%s' is a tensor; use tn_find_tensor", path);
    return s ? s->child : NULL;
}

tn_tensor *tn_module_find_tensor(void *m, const char *path)
{
    tn_module      *within;
    const tn__slot *s = find("tn_find_tensor", m, path, &within);
    if (s && !s->tensor) return tn_raise_null(TN_EINDEX, "tn_find_tensor: '%s' is a module; use tn_find", path);
    return s ? s->tensor : NULL;
}
