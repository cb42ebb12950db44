/* safetensors_header.c — parses the header of a safetensors file: JSON of one exact form, token by token. */
#include "core/files/safetensors.h"
#include "core/base/checked.h"

#include <stdarg.h>
#include <string.h>

bool tn__st_fail(const tn_safetensors *f, const char *name, size_t at, const char *fmt, ...)
{
    char    what[500], shown[TN__QUOTED];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    return tn_raise_false(TN_EFORMAT, "%s: tensor %s (byte %lld): %s", f->label,
                          tn__quote(shown, name, strlen(name), 100), 8 + (long long)at, what);
}

static const char *keep_string(tn_safetensors *f, const tn__json_token *t)
{
    if (!f->filling) {
        f->string_room += t->bytes + 1;
        return "";
    }
    char *to = f->strings + f->strings_used;
    tn__json_unescape(t, to);
    to[t->bytes] = 0;
    f->strings_used += t->bytes + 1;
    return to;
}

static bool token_is(const tn__json_token *t, const char *text)
{
    char   plain[16];
    size_t n = strlen(text);
    if (t->bytes != n) return false;
    tn__json_unescape(t, plain);
    return !memcmp(plain, text, n);
}

/* ---- metadata ---------------------------------------------------------------------------------------------------- */

static bool parse_metadata(tn_safetensors *f, tn__json_scan *s)
{
    static const char form[] = "__metadata__ must be an object of strings";
    tn__json_token    key, value;
    if (!tn__json_next(s, &key)) return false;
    if (key.kind != TN__JSON_OPEN_OBJECT) return tn__json_fail(s, key.at, form);
    for (;;) {
        if (!tn__json_next(s, &key)) return false;
        if (key.kind == TN__JSON_CLOSE_OBJECT) return true;
        if (!tn__json_next(s, &value)) return false;
        if (value.kind != TN__JSON_STRING) return tn__json_fail(s, value.at, form);
        if (value.has_nul) return tn__json_fail(s, value.at, "metadata with \\u0000 in it is not supported");
        f->metadata_bytes += key.bytes + value.bytes;
        if (f->pair_count == TN__ST_PAIRS)
            return tn__json_fail(s, key.at, "more metadata than the limit of %d pairs", TN__ST_PAIRS);
        if (f->metadata_bytes > TN__ST_METADATA)
            return tn__json_fail(s, key.at, "more metadata than the limit of %d bytes", TN__ST_METADATA);
        tn__st_pair p = {.key_bytes = key.bytes, .at = key.at};
        p.key = keep_string(f, &key), p.value = keep_string(f, &value);
        if (f->filling) f->pairs[f->pair_count] = p;
        f->pair_count++;
    }
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

static bool is_long_integer(const tn__json_token *t) /* a long integer is scanned as a real */
{
    return t->kind == TN__JSON_REAL && !memchr(t->raw, '.', t->raw_bytes) && !memchr(t->raw, 'e', t->raw_bytes) &&
           !memchr(t->raw, 'E', t->raw_bytes);
}

/* An array of at most `most` integers from 0 to largest. */
static bool parse_integers(tn__json_scan *s, const char *what, int most, int64_t largest, int64_t *to, int *n)
{
    tn__json_token t;
    if (!tn__json_next(s, &t)) return false;
    if (t.kind != TN__JSON_OPEN_ARRAY) return tn__json_fail(s, t.at, "%s must be an array of integers", what);
    size_t start = t.at;
    for (*n = 0;; ++*n) {
        if (!tn__json_next(s, &t)) return false;
        if (t.kind == TN__JSON_CLOSE_ARRAY) return true;
        if (is_long_integer(&t)) return tn__json_fail(s, t.at, "%s has an integer that does not fit in 64 bits", what);
        if (t.kind != TN__JSON_INTEGER) return tn__json_fail(s, t.at, "%s must contain only integers", what);
        if (t.negative) return tn__json_fail(s, t.at, "%s has a negative integer", what);
        if (t.magnitude > (uint64_t)largest)
            return tn__json_fail(s, t.at, "%s has %llu, the limit is %lld", what, (unsigned long long)t.magnitude,
                                 (long long)largest);
        if (*n == most && most == 2) return tn__json_fail(s, start, "%s must contain two integers", what);
        if (*n == most)
            return tn_raise_false(TN_EUNSUPPORTED, "%s: byte %lld: %s has more than %d dims, which is Tenon's limit",
                                  s->label, (long long)s->base + (long long)start, what, most);
        to[*n] = (int64_t)t.magnitude;
    }
}

static bool parse_dtype(tn__json_scan *s, int32_t *element)
{
    tn__json_token t;
    char           name[16], shown[TN__QUOTED];
    if (!tn__json_next(s, &t)) return false;
    if (t.kind != TN__JSON_STRING) return tn__json_fail(s, t.at, "dtype must be a string such as \"F32\"");
    *element = -1;
    if (t.bytes < sizeof name) {
        tn__json_unescape(&t, name);
        *element = tn__element_of_name(name, t.bytes);
    }
    return *element >= 0 || tn__json_fail(s, t.at, "the dtype %s is unknown", tn__json_shown(shown, &t));
}

/* The bytes that an entry needs by its shape and type, -1 if not a whole number; false if the product overflows, in the
 * order of the sizes or without the zeros. */
static bool needed_bytes(const tn__st_entry *e, int64_t *bytes)
{
    int64_t n = 1, solid = 64; /* no element has more bits */
    for (int i = 0; i < e->shape.n; i++) {
        int64_t d = e->shape.d[i];
        if (!tn__mul_i64(n, d, &n) || (d && !tn__mul_i64(solid, d, &solid))) return false;
    }
    int64_t bits = n * tn__elements[e->element].bits;
    *bytes = bits % 8 ? -1 : bits / 8;
    return true;
}

static bool check_entry(const tn_safetensors *f, const tn__st_entry *e, const char *name)
{
    char        text[192];
    int64_t     bytes;
    long long   begin = e->begin, end = e->end;
    const char *type = tn__elements[e->element].safetensors;
    tn_shape_text(e->shape, text, sizeof text);
    if (!needed_bytes(e, &bytes))
        return tn__st_fail(f, name, e->at, "shape %s of %s is too large: its bits do not fit in 63 bits", text, type);
    if (bytes < 0) return tn__st_fail(f, name, e->at, "shape %s of %s does not fill whole bytes", text, type);
    if (begin > end) return tn__st_fail(f, name, e->at, "data_offsets [%lld, %lld] end before they start", begin, end);
    if (end - begin != bytes)
        return tn__st_fail(f, name, e->at, "data_offsets [%lld, %lld] hold %lld bytes, %s %s needs %lld", begin, end,
                           end - begin, type, text, (long long)bytes);
    return true;
}

/* The fields of an entry, from '{' to '}'. */
static bool parse_fields(const tn_safetensors *f, tn__json_scan *s, const char *name, tn__st_entry *e)
{
    static const char *const fields[] = {"dtype", "shape", "data_offsets"};
    int64_t                  offsets[2];
    int                      n;
    unsigned                 seen = 0;
    tn__json_token           t;
    if (!tn__json_next(s, &t)) return false;
    if (t.kind != TN__JSON_OPEN_OBJECT) return tn__st_fail(f, name, t.at, "its entry must be an object");
    for (;;) {
        if (!tn__json_next(s, &t)) return false;
        if (t.kind == TN__JSON_CLOSE_OBJECT) break;
        int k = 0;
        while (k < 3 && !token_is(&t, fields[k])) k++;
        if (k == 3) {
            char quoted[TN__QUOTED], shown[TN__QUOTED];
            return tn__json_fail(s, t.at, "tensor %s has the unknown field %s, expected dtype, shape and data_offsets",
                                 tn__quote(quoted, name, strlen(name), 60), tn__json_shown(shown, &t));
        }
        if (seen >> k & 1) return tn__json_fail(s, t.at, "duplicate field '%s'", fields[k]);
        seen |= 1u << k;
        if (k == 0 && !parse_dtype(s, &e->element)) return false;
        if (k == 1 && !parse_integers(s, fields[k], TN_MAX_DIMS, ((int64_t)1 << 48) - 1, e->shape.d, &e->shape.n))
            return false;
        if (k == 2) {
            if (!parse_integers(s, fields[k], 2, INT64_MAX, offsets, &n)) return false;
            if (n < 2) return tn__json_fail(s, t.at, "data_offsets must contain two integers");
            e->begin = offsets[0], e->end = offsets[1];
        }
    }
    for (int k = 0; k < 3; k++)
        if (!(seen >> k & 1)) return tn__st_fail(f, name, e->at, "its field '%s' is missing", fields[k]);
    return true;
}

static bool parse_entry(tn_safetensors *f, tn__json_scan *s, const tn__json_token *key)
{
    char name[TN__ST_NAME + 1], shown[TN__QUOTED];
    if (key->bytes < 1 || key->bytes > TN__ST_NAME)
        return tn__json_fail(s, key->at, "a tensor's name of %zu bytes, expected 1 to %d", key->bytes, TN__ST_NAME);
    tn__json_unescape(key, name);
    name[key->bytes] = 0;
    for (size_t i = 0; i < key->bytes; i++)
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f)
            return tn__json_fail(s, key->at, "the tensor's name %s has a control character",
                                 tn__json_shown(shown, key));
    if (f->count == TN__ST_TENSORS)
        return tn__json_fail(s, key->at, "more tensors than the limit of %d", TN__ST_TENSORS);
    tn__st_entry e = {.name_bytes = (uint32_t)key->bytes, .at = key->at};
    if (!parse_fields(f, s, name, &e) || !check_entry(f, &e, name)) return false;
    e.name = keep_string(f, key);
    if (f->filling) f->entries[f->count] = e;
    f->count++;
    return true;
}

bool tn__st_parse(tn_safetensors *f)
{
    tn__json_scan  s;
    tn__json_token t;
    char           label[TN__LABEL + 16];
    bool           metadata = false;
    snprintf(label, sizeof label, "%s: header", f->label);
    f->count = f->pair_count = 0, f->metadata_bytes = 0;
    if (!tn__json_begin(&s, label, f->header, (size_t)f->header_bytes, 8, 3) || !tn__json_next(&s, &t)) return false;
    if (t.kind != TN__JSON_OPEN_OBJECT) return tn__json_fail(&s, t.at, "the header must be an object, '{'");
    for (;;) {
        if (!tn__json_next(&s, &t)) return false;
        if (t.kind == TN__JSON_CLOSE_OBJECT) break;
        if (!token_is(&t, "__metadata__")) {
            if (!parse_entry(f, &s, &t)) return false;
            continue;
        }
        if (metadata) return tn__json_fail(&s, t.at, "duplicate key '__metadata__'");
        metadata = true;
        if (!parse_metadata(f, &s)) return false;
    }
    return tn__json_next(&s, &t); /* only spaces may follow */
}
