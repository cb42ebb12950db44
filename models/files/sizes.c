/* sizes.c — finds a row in a table of model sizes. */
#include "core/base/toolbox.h"
#include "models/hf.h"

#include <stdio.h>
#include <string.h>

const tn_model_size *tn_model_size_find(const char *caller, const tn_model_size *rows, const char *name)
{
    char   names[256] = "";
    size_t used = 0;
    if (!tn__not_null("tn_model_size_find", "the caller's name", caller) || !tn__not_null(caller, "the table", rows))
        return NULL;
    for (const tn_model_size *r = rows; r->name; r++) {
        if (name && !strcmp(name, r->name)) return r;
        if (used >= sizeof names) continue;
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s",
                                 r == rows   ? ""
                                 : r[1].name ? ", "
                                             : " and ",
                                 r->name);
    }
    return tn_raise_null(TN_EINVAL, "%s: unknown size '%s'; the sizes are %s", caller, name ? name : "NULL", names);
}
