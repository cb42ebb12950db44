/* parts.c — modules that attention and blocks take as parts. One module may be a part of many; the first of them that
 * may own it does, and the others refer to it. */
#include "nn/attention/block.h"
#include "nn/base/nn_private.h"

bool tn__part_fits(const char *who, const void *positions)
{
    const tn_module *m = positions;
    if (!m || m->kind->positions) return true;
    return tn_raise_false(TN_EINVAL, "%s: .positions is a %s, but must be a module whose class has .positions", who,
                          tn__kind_name(m));
}

void tn__part_take(tn_module *m, void *part)
{
    tn_module  *p = part;
    const char *name = p && p->kind->positions ? p->kind->positions->name : NULL;
    if (p && !p->base->owner) tn_module_child(m, name ? name : "positions", p);
}

void tn__part_drop(void *part)
{
    tn_module *p = part;
    if (p && !p->base->owner) tn_module_free(p);
}
