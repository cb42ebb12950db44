/* json_read.c — queries of a JSON document: members, types, values; and their error messages. */
#include "core/files/json_tree.h"

#include <math.h>

/* ---- finding ----------------------------------------------------------------------------------------------------- */

static bool is_container(const tn_json *v) { return v && (v->type == TN_JSON_ARRAY || v->type == TN_JSON_OBJECT); }

tn_json_type tn_json_type_of(const tn_json *v) { return v ? (tn_json_type)v->type : TN_JSON_NONE; }
int64_t tn_json_count(const tn_json *v) { return is_container(v) ? tn__json_count(tn__json_document_of(v), v) : 0; }

const tn_json *tn_json_at(const tn_json *v, int64_t i)
{
    return i >= 0 && i < tn_json_count(v) ? tn__json_document_of(v)->value + v->child.first + i : NULL;
}
const tn_json *tn_json_first(const tn_json *v) { return tn_json_at(v, 0); }
const tn_json *tn_json_next(const tn_json *v) { return v && v->index && !(v->flags & TN__JSON_LAST) ? v + 1 : NULL; }

const char *tn_json_key(const tn_json *v)
{
    size_t bytes;
    return v && v->key != TN__JSON_NO_KEY ? tn__json_key_of(tn__json_document_of(v), v, &bytes) : "";
}

const tn_json *tn_json_get(const tn_json *v, const char *key)
{
    if (!v || v->type != TN_JSON_OBJECT || !key) return NULL;
    const tn__json_document *d = tn__json_document_of(v);
    const tn_json           *child = d->value + v->child.first;
    size_t                   n = strlen(key), bytes;
    if (v->flags & TN__JSON_LARGE) {
        const uint32_t *t = tn__json_table(d, v);
        tn__names       x = {.slot = (uint32_t *)(uintptr_t)(t + 2),
                             .mask = t[1],
                             .seed = {d->seed[0], d->seed[1]},
                             .name = tn__json_child_name,
                             .owner = child};
        int64_t         i = tn__names_find(&x, key, n);
        return i < 0 ? NULL : child + i;
    }
    for (uint32_t i = 0; i < v->child.count; i++) {
        const char *name = tn__json_key_of(d, child + i, &bytes);
        if (bytes == n && !memcmp(name, key, n)) return child + i;
    }
    return NULL;
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

/* "'config.json': layers[2].size (byte 45)": values start in the text in the order of the tree, so the way down to v is
 * always the last child that does not start later. */
enum { PLACE = 600 };
static const char *place(char to[PLACE], const tn_json *v)
{
    const tn__json_document *d = tn__json_document_of(v);
    const tn_json           *x = d->value;
    size_t                   at = (size_t)snprintf(to, PLACE, "%s: ", d->name), start = at;
    while (x != v && at + 120 < PLACE) {
        const tn_json *child = d->value + x->child.first;
        uint32_t       low = 0, high = tn__json_count(d, x);
        while (high - low > 1) {
            uint32_t middle = low + (high - low) / 2;
            if (child[middle].at <= v->at) low = middle;
            else high = middle;
        }
        if (x->type == TN_JSON_ARRAY) {
            at += (size_t)snprintf(to + at, PLACE - at, "[%u]", low);
        } else {
            size_t      bytes;
            char        shown[TN__QUOTED];
            const char *key = tn__json_key_of(d, child + low, &bytes);
            tn__quote(shown, key, bytes, 60);
            shown[strlen(shown) - 1] = 0; /* without its quotes */
            at += (size_t)snprintf(to + at, PLACE - at, "%s%.100s", at > start ? "." : "", shown + 1);
        }
        x = child + low;
    }
    snprintf(to + at, PLACE - at, "%s (byte %u)", x != v ? "..." : at > start ? "" : "the document", v->at);
    return to;
}

static const char *describe(char to[TN__QUOTED], const tn_json *v)
{
    size_t bytes;
    switch (v->type) {
    case TN_JSON_NULL: return "null";
    case TN_JSON_BOOL: return v->i ? "true" : "false";
    case TN_JSON_INTEGER:
        if (v->flags & TN__JSON_NEGATIVE) snprintf(to, TN__QUOTED, "the integer %lld", (long long)v->i);
        else snprintf(to, TN__QUOTED, "the integer %llu", (unsigned long long)v->u);
        return to;
    case TN_JSON_REAL: memcpy(to, "the number ", 11), tn_format_double(v->d, to + 11); return to;
    case TN_JSON_STRING: {
        char        shown[TN__QUOTED];
        const char *s = tn__json_string_at(tn__json_document_of(v), v->string.at, &bytes);
        snprintf(to, TN__QUOTED, "the string %.180s", tn__quote(shown, s, bytes, 40));
        return to;
    }
    default: return v->type == TN_JSON_ARRAY ? "an array" : "an object";
    }
}

static void wrong(const tn_json *v, const char *expected)
{
    char where[PLACE], what[TN__QUOTED];
    tn_raise(TN_EFORMAT, "%s is %s, expected %s", place(where, v), describe(what, v), expected);
}

const tn_json *tn_json_need(const tn_json *v, const char *key)
{
    const tn_json *found = tn_json_get(v, key);
    if (found) return found;
    if (!key) return tn_raise_null(TN_EINVAL, "tn_json_need: the key is NULL");
    char where[PLACE], asked[TN__QUOTED], near[TN__QUOTED] = "";
    tn__quote(asked, key, strlen(key), 80);
    if (!v) return tn_raise_null(TN_EINDEX, "tn_json_need: the object to search for %s is NULL", asked);
    if (v->type != TN_JSON_OBJECT) return wrong(v, "an object"), NULL;
    tn__names x = {.name = tn__json_child_name, .owner = tn_json_first(v)};
    int64_t   i = tn__names_nearest(&x, (uint32_t)tn_json_count(v), key);
    if (i >= 0) {
        size_t      bytes;
        const char *name = tn__json_child_name(x.owner, (uint32_t)i, &bytes);
        tn__quote(near, name, bytes, 80);
    }
    return tn_raise_null(TN_EINDEX, "%s has no %s%s%s%s", place(where, v), asked, i >= 0 ? "; did you mean " : "", near,
                         i >= 0 ? "?" : "");
}

/* ---- reading values ---------------------------------------------------------------------------------------------- */

static bool absent(const tn_json *v) { return !v || v->type == TN_JSON_NULL; }

int64_t tn_json_i64_or(const tn_json *v, int64_t fallback)
{
    if (absent(v)) return fallback;
    if (v->type == TN_JSON_INTEGER && (v->i >= 0 || v->flags & TN__JSON_NEGATIVE)) return v->i;
    return wrong(v, "an integer from -2^63 to 2^63 - 1"), fallback;
}
double tn_json_double_or(const tn_json *v, double fallback)
{
    if (absent(v)) return fallback;
    if (v->type == TN_JSON_REAL) return v->d;
    if (v->type == TN_JSON_INTEGER) return v->flags & TN__JSON_NEGATIVE ? (double)v->i : (double)v->u;
    return wrong(v, "a number"), fallback;
}
double tn__json_number(const tn_json *o, const char *key)
{
    const tn_json *v = tn_json_get(o, key);
    if (tn_json_type_of(v) != TN_JSON_STRING) return tn_json_double_or(v, NAN);
    const char *text = tn_json_string(v);
    if (!strcmp(text, "inf")) return INFINITY;
    if (!strcmp(text, "-inf")) return -INFINITY;
    return wrong(v, "a number, \"inf\" or \"-inf\""), NAN;
}
bool tn_json_bool_or(const tn_json *v, bool fallback)
{
    if (absent(v)) return fallback;
    if (v->type == TN_JSON_BOOL) return v->i != 0;
    return wrong(v, "true or false"), fallback;
}
const char *tn_json_string_or(const tn_json *v, const char *fallback)
{
    size_t bytes;
    if (absent(v)) return fallback;
    if (v->type == TN_JSON_STRING) return tn__json_string_at(tn__json_document_of(v), v->string.at, &bytes);
    return wrong(v, "a string"), fallback;
}

/* Without a fallback, null is as wrong as any other type. */
static bool null_instead_of(const tn_json *v, const char *expected)
{
    if (!v || v->type != TN_JSON_NULL) return false;
    wrong(v, expected);
    return true;
}
int64_t tn_json_i64(const tn_json *v) { return null_instead_of(v, "an integer") ? 0 : tn_json_i64_or(v, 0); }
double  tn_json_double(const tn_json *v) { return null_instead_of(v, "a number") ? 0 : tn_json_double_or(v, 0); }
bool tn_json_bool(const tn_json *v) { return null_instead_of(v, "true or false") ? false : tn_json_bool_or(v, false); }
const char *tn_json_string(const tn_json *v) { return null_instead_of(v, "a string") ? "" : tn_json_string_or(v, ""); }

uint64_t tn_json_u64(const tn_json *v)
{
    if (!v) return 0;
    if (v->type == TN_JSON_INTEGER && !(v->flags & TN__JSON_NEGATIVE)) return v->u;
    return wrong(v, "an integer from 0 to 2^64 - 1"), 0;
}

int64_t tn_json_string_bytes(const tn_json *v)
{
    if (!v) return 0;
    if (v->type == TN_JSON_STRING) return v->string.bytes;
    return wrong(v, "a string"), 0;
}
