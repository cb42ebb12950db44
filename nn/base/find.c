/* find.c — finds a part of a module by its path. */
#include "nn/base/nn_private.h"

tn__slot *tn__slot_within(tn_module *m, const char *path, tn_module **within)
{
    for (;;) {
        tn__slot *next = NULL;
        *within = m;
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

/* Raises "there is no 'encodr.weight' in BERT: it has embeddings, encoder, cls". */
static void raise_not_found(const char *who, const tn_module *m, const char *path, const tn_module *within)
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
    const char *whose = within == m ? "it" : within->base->name ? within->base->name : tn__kind_name(within);
    tn_raise(TN_EINDEX, "%s: there is no '%s' in %s: %s%s%s has %s", who, path, tn__kind_name(m),
             within == m ? "" : "'", whose, within == m ? "" : "'", *text ? text : "no parts");
}

static tn__slot *find(const char *who, tn_module *m, const char *path, tn_module **within)
{
    if (tn__blocked()) return NULL;
    if (!m || !path) return tn_raise(TN_EINVAL, "%s: the %s is NULL", who, m ? "path" : "module"), NULL;
    tn__slot *s = tn__slot_within(m, path, within);
    if (!s) raise_not_found(who, m, path, *within);
    return s;
}

tn_module *tn_module_find(void *m, const char *path)
{
    tn_module *within;
    if (m && path && !*path) return m;
    const tn__slot *s = find("tn_find", m, path, &within);
    if (s && !s->child) return tn_raise(TN_EINDEX, "tn_find: '%s' is a tensor; use tn_find_tensor", path), NULL;
    return s ? s->child : NULL;
}

tn_tensor *tn_module_find_tensor(void *m, const char *path)
{
    tn_module      *within;
    const tn__slot *s = find("tn_find_tensor", m, path, &within);
    if (s && !s->tensor) return tn_raise(TN_EINDEX, "tn_find_tensor: '%s' is a module; use tn_find", path), NULL;
    return s ? s->tensor : NULL;
}
