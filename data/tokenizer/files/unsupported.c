/* unsupported.c — how the readers of files reject a rule that Tenon does not support. */
#include "data/tokenizer/files/tokenizer_files.h"
#include "core/base/toolbox.h"

#include <string.h>

bool tn__unsupported(const char *caller, const char *where, const char *what)
{
    char q[TN__QUOTED];
    return tn_raise(TN_EUNSUPPORTED, "%s: %s is %s, which Tenon does not support", caller, where,
                    tn__quote(q, what, strlen(what), 60)),
           false;
}
