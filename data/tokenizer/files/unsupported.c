/* unsupported.c — how the readers of files reject a rule that Tenon does not support. */
#include "data/tokenizer/files/tokenizer_files.h"
#include "core/base/toolbox.h"

#include <string.h>

bool tn__unsupported(const char *caller, const char *rule, const char *value)
{
    char q[TN__QUOTED];
    return tn_raise_false(TN_EUNSUPPORTED, "%s: %s is %s, which Tenon does not support", caller, rule,
                          tn__quote(q, value, strlen(value), 60));
}
