/* schema.c — the start of a JSON text against a schema: "type" object (all properties, in order), string ("maxLength"
 * bytes, without escapes) or integer, or an "enum" of strings; no blanks. Each function reads from `at`. It returns
 * where its part ends; NULL if the text does not fit; or, with *open, the end of a text that is not complete. */
#include "constrain.h"

#include <string.h>

static const char *literal(const char *at, const char *word, bool *open)
{
    for (; at && *word && !*open; word++)
        if (!*at) *open = true;
        else at = *at == *word ? at + 1 : NULL;
    return at;
}

static const char *quoted(const char *at, const char *text, bool *open)
{
    return literal(literal(literal(at, "\"", open), text, open), "\"", open);
}

static const char *one_of(const char *at, const tn_json *list, bool *open)
{
    const char *end = NULL;
    if (!tn_json_count(list)) tn_raise(TN_EINVAL, "schema: an enum has no values, expected at least one");
    for (const tn_json *x = tn_json_first(list); x && (!end || *open); x = tn_json_next(x)) {
        bool        cut = false;
        const char *fits = quoted(at, tn_json_string(x), &cut);
        if (fits) end = fits, *open = cut;
    }
    return end;
}

static const char *name_of(const tn_json *schema) { return *tn_json_key(schema) ? tn_json_key(schema) : "all of it"; }

/* Other members would be ignored: the text could break their rules. All properties are written, required or not. */
static void check_members(const tn_json *schema)
{
    static const char known[] = " type properties required additionalProperties maxLength enum title description ";
    for (const tn_json *x = tn_json_first(schema); x; x = tn_json_next(x))
        if (!strstr(known, tn_json_key(x)))
            tn_raise(TN_EINVAL, "schema: '%s' has the member '%s', expected one of%s", name_of(schema), tn_json_key(x),
                     known);
}

const char *schema_value(const char *at, const tn_json *schema, bool *open)
{
    const char *type = tn_json_string_or(tn_json_get(schema, "type"), "");
    int64_t     left = tn_json_i64_or(tn_json_get(schema, "maxLength"), 20);
    if (!at || *open) return at;
    check_members(schema);
    if (tn_json_get(schema, "enum")) return one_of(at, tn_json_get(schema, "enum"), open);
    if (!strcmp(type, "object")) {
        const tn_json *all = tn_json_get(schema, "properties");
        at = literal(at, "{", open);
        for (const tn_json *p = tn_json_first(all); p; p = tn_json_next(p)) {
            if (p != tn_json_first(all)) at = literal(at, ",", open);
            at = literal(quoted(at, tn_json_key(p), open), ":", open);
            at = schema_value(at, p, open);
        }
        return literal(at, "}", open);
    }
    if (!strcmp(type, "string")) {
        for (at = literal(at, "\"", open); at && *at && !strchr("\"\\", *at) && left > 0; at++, left--)
            if ((unsigned char)*at < ' ') return NULL;
        return literal(at, "\"", open);
    }
    if (strcmp(type, "integer") != 0)
        tn_raise(TN_EINVAL, "schema: '%s' has the type '%s', expected object, string, integer or an enum",
                 name_of(schema), type);
    const char *digits = at + (*at == '-');
    for (at = digits; *at >= '0' && *at <= '9' && at < digits + 9 && (at == digits || *digits != '0');) at++;
    if (at == digits) *open = !*at;
    return at > digits || *open ? at : NULL;
}
