/* json.c — JSON that follows a schema: a token is allowed if the text with it is the start of a value (schema.c). */
#include "constrain.h"

#include <math.h>

tn_status json(const tn_next_token *next, void *user)
{
    const rules *r = user;
    tn_string    text = {0};
    bool         open = false, any = false;
    for (int64_t i = next->length - next->made; i < next->length; i++)
        tn_string_add(&text, (tn_text){r->text[next->tokens[i]].at, r->text[next->tokens[i]].bytes});
    const size_t n = text.bytes;
    const bool   complete = n && schema_value(text.at, r->schema, &open) && !open;
    for (int64_t w = 0; w < next->vocab && !tn_error(); w++) {
        const size_t bytes = w < r->known ? r->text[w].bytes : 0;
        const char  *end = NULL;
        text.bytes = n, open = false;
        if (bytes && !complete && tn_string_add(&text, (tn_text){r->text[w].at, bytes}) == TN_OK)
            end = schema_value(text.at, r->schema, &open);
        if (!end || end != text.at + text.bytes) next->scores[w] = -INFINITY;
        else any = true;
    }
    if (!any && !complete)
        tn_raise(TN_EINVAL, "schema: found '%.*s', and no token of the model continues it as the schema expects",
                 (int)n, n ? text.at : "");
    tn_string_free(&text);
    return tn_error();
}
