/* fields.c — the members of a request's JSON: their types, ranges, and the error for others. */
#include "serve.h"

#include <math.h>

static bool is_number(const tn_json *v)
{
    return tn_json_type_of(v) == TN_JSON_INTEGER || tn_json_type_of(v) == TN_JSON_REAL;
}

static const tn_json *find(const tn_json *o, const char *key)
{
    const tn_json *v = tn_json_get(o, key);
    return tn_json_type_of(v) == TN_JSON_NULL ? NULL : v;
}

double field_number(server *s, job *j, const tn_json *o, const char *key, double fallback, double least, double most)
{
    const tn_json *v = find(o, key);
    if (!v || j->done) return fallback;
    const bool   number = is_number(v);
    const double x = number ? tn_json_double(v) : NAN;
    if (tn_error() == TN_OK && x >= least && x <= most) return x;
    tn_clear_error();
    if (number) request_fail(s, j, 400, NULL, key, "%s is %g, expected %g to %g", key, x, least, most);
    else request_fail(s, j, 400, NULL, key, "%s must be a number from %g to %g", key, least, most);
    return fallback;
}

int64_t field_whole(server *s, job *j, const tn_json *o, const char *key, int64_t fallback, int64_t least, int64_t most)
{
    const double x = field_number(s, j, o, key, NAN, (double)least, (double)most);
    if (isnan(x)) return fallback;
    if (x == floor(x)) return (int64_t)x;
    request_fail(s, j, 400, NULL, key, "%s is %g, expected an integer", key, x);
    return fallback;
}

bool field_flag(server *s, job *j, const tn_json *o, const char *key)
{
    const tn_json *v = find(o, key);
    if (!v || j->done) return false;
    if (tn_json_type_of(v) == TN_JSON_BOOL) return tn_json_bool(v);
    return request_fail(s, j, 400, NULL, key, "%s must be true or false", key);
}

/* The text of a value; NULL, and j has failed: it is not a string, or contains a NUL. */
static const char *text_of(server *s, job *j, const tn_json *v, const char *key)
{
    const char *text = tn_json_type_of(v) == TN_JSON_STRING ? tn_json_string(v) : NULL;
    if (text && strlen(text) == (size_t)tn_json_string_bytes(v)) return text;
    request_fail(s, j, 400, NULL, key, text ? "%s contains a NUL character" : "%s must be text", key);
    return NULL;
}

const char *field_text(server *s, job *j, const tn_json *o, const char *key)
{
    const tn_json *v = find(o, key);
    return v && !j->done ? text_of(s, j, v, key) : NULL;
}

/* False, 0, "none", an empty array or object, or a format that is plain text. */
static bool asks_nothing(const tn_json *v)
{
    switch (tn_json_type_of(v)) {
    case TN_JSON_BOOL: return !tn_json_bool(v);
    case TN_JSON_INTEGER:
    case TN_JSON_REAL: return tn_json_double(v) == 0;
    case TN_JSON_STRING: return !strcmp(tn_json_string(v), "none") || !*tn_json_string(v);
    case TN_JSON_OBJECT:
        if (!tn_json_count(v)) return true;
        v = tn_json_get(v, "type");
        return tn_json_type_of(v) == TN_JSON_STRING && !strcmp(tn_json_string(v), "text");
    default: return tn_json_count(v) == 0;
    }
}

bool field_unsupported(server *s, job *j, const tn_json *o, const char *const *keys)
{
    for (; *keys && !j->done; keys++) {
        const tn_json *v = find(o, *keys);
        if (v && !asks_nothing(v))
            request_fail(s, j, 400, "unsupported_parameter", *keys, "%s is not supported by this server; omit it",
                         *keys);
    }
    return !j->done;
}

bool field_texts(server *s, job *j, const tn_json *o, const char *key, int64_t most,
                 bool (*each)(server *s, job *j, const char *text, size_t bytes))
{
    const tn_json *v = find(o, key), *first = v;
    const bool     several = tn_json_type_of(v) == TN_JSON_ARRAY;
    if (!v || j->done) return !j->done;
    if (several && tn_json_count(v) > most)
        return request_fail(s, j, 400, NULL, key, "%s has %lld texts, expected at most %lld", key,
                            (long long)tn_json_count(v), (long long)most);
    if (several) first = tn_json_first(v);
    for (const tn_json *x = first; x && !j->done; x = several ? tn_json_next(x) : NULL) {
        if (tn_json_type_of(x) != TN_JSON_STRING)
            return request_fail(s, j, 400, NULL, key,
                                "%s must be a text or an array of texts; token ids are not supported", key);
        const char *text = text_of(s, j, x, key);
        if (text && !each(s, j, text, (size_t)tn_json_string_bytes(x))) break;
    }
    return !j->done;
}

/* ---- conversations ----------------------------------------------------------------------------------------------- */

/* The content of a message: a text, null, or an array of parts whose type is "text", which are joined. */
static bool content_of(server *s, job *j, const tn_json *message, tn_string *kept)
{
    const tn_json *v = find(message, "content");
    if (!v) return true;
    if (tn_json_type_of(v) != TN_JSON_ARRAY) {
        const char *text = text_of(s, j, v, "messages");
        return text && tn_string_add(kept, tn_text_of(text)) == TN_OK;
    }
    for (const tn_json *x = tn_json_first(v); x && !j->done; x = tn_json_next(x)) {
        const tn_json *type = tn_json_get(x, "type");
        if (tn_json_type_of(type) != TN_JSON_STRING || strcmp(tn_json_string(type), "text") != 0)
            return request_fail(s, j, 400, NULL, "messages", "a part of a message must be an object of type text");
        const char *text = text_of(s, j, tn_json_get(x, "text"), "messages");
        if (text) tn_string_add(kept, tn_text_of(text));
    }
    return !j->done && tn_error() == TN_OK;
}

bool field_messages(server *s, job *j, const tn_json *o, tn_string *to)
{
    const tn_json *list = find(o, "messages");
    const int64_t  n = tn_json_type_of(list) == TN_JSON_ARRAY ? tn_json_count(list) : 0;
    if (j->done) return false;
    if (n < 1) return request_fail(s, j, 400, NULL, "messages", "messages must be an array with at least one message");
    const size_t bytes = (size_t)n * (sizeof(tn_message) + sizeof(tn_string));
    tn_message  *said = tn_mem_get(bytes);
    tn_string   *kept = said ? (tn_string *)(void *)(said + n) : NULL;
    int64_t      at = 0;
    for (const tn_json *x = kept ? tn_json_first(list) : NULL; x && !j->done; x = tn_json_next(x), at++) {
        const char *role = field_text(s, j, x, "role");
        if (!role || !content_of(s, j, x, &kept[at])) {
            if (tn_error() == TN_OK) request_fail(s, j, 400, NULL, "messages", "each message must have a role");
            break;
        }
        said[at] = (tn_message){strcmp(role, "developer") ? role : "system", kept[at].at ? kept[at].at : ""};
    }
    if (said && at == n && !j->done) model_chat(&s->lm, n, said, true, to);
    for (int64_t i = 0; kept && i < n; i++) tn_string_free(&kept[i]);
    if (said) tn_mem_put(said, bytes);
    if (tn_error() != TN_OK) request_raised(s, j);
    return !j->done;
}
