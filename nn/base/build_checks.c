/* build_checks.c — checks of building a module: its class, and the tree that a new child would make. */
#include "nn/base/nn_private.h"

bool tn__class_fits(const tn_class *kind)
{
    if (!kind || !kind->size)
        return tn_raise_false(TN_EINVAL,
                              "tn_module_create: the class is NULL, or its .size is 0; set .size = sizeof(tn_class)");
    if (kind->size != sizeof(tn_class))
        return tn_raise_false(
            TN_EUNSUPPORTED,
            "%s: its tn_class has %zu bytes, this library's has %zu: it was compiled for another version",
            kind->name ? kind->name : "module", kind->size, sizeof(tn_class));
    if (!kind->name || kind->bytes < sizeof(tn_module))
        return tn_raise_false(
            TN_EINVAL, "tn_module_create: a class needs .name, and .bytes = the size of a struct whose first member "
                       "is a tn_module");
    return true;
}

bool tn__contains(tn_module *c, const tn_module *m, int *deepest)
{
    tn_each e = tn_module_each(c, TN_EACH_MODULE | TN_EACH_NAME);
    bool    found = false;
    *deepest = 0;
    while (tn_next(&e)) {
        if (e.depth_ + 1 > *deepest) *deepest = e.depth_ + 1;
        found = found || e.module == m;
    }
    return found;
}

static int depth(const tn_module *m)
{
    int n = 0;
    for (; m; m = m->base->owner) n++;
    return n;
}

bool tn__child_fits(const char *who, const tn_module *m, const char *name, tn_module *c)
{
    int deepest;
    if (c->base->broken)
        return tn_raise_false(TN_ESTATE, "%s: '%s', a %s, is incomplete because its constructor failed", who,
                              name ? name : "", tn__kind_name(c));
    if (tn__contains(c, m, &deepest))
        return tn_raise_false(TN_EINVAL, "%s: '%s' would make this %s a part of itself", who, name ? name : "",
                              tn__kind_name(m));
    if (depth(m) + deepest > TN_MAX_DEPTH)
        return tn_raise_false(TN_EINVAL, "%s: '%s' would nest modules more than %d deep", who, name ? name : "",
                              TN_MAX_DEPTH);
    return true;
}
