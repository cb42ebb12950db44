/* safetensors_header.c — the header of a safetensors file: JSON of one exact form, read token by token. */
#include "core/safetensors.h"

#include <string.h>

bool tn__st_fail(const tn_safetensors *f, const char *name, size_t at, const char *what)
{
    char shown[TN__QUOTED];
    tn_raise(TN_EFORMAT, "%s: tensor %s (byte %lld): %s", f->label, tn__quote(shown, name, strlen(name), 100), 8 + (long long)at, what);
    return false;
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
    size_t n = strlen(text);
    char   buf[16];
    if (t->bytes != n) return false;
    tn__json_unescape(t, buf);
    return !memcmp(buf, text, n);
}

static bool parse_metadata(tn_safetensors *f, tn__json_scan *s)
{
    tn__json_token t, v;
    if (!tn__json_next(s, &t)) return false;
    if (t.kind != TN__JSON_OPEN_OBJECT) return tn__json_fail(s, t.at, "__metadata__ must be an object of strings"), false;
    for (;;) {
        if (!tn__json_next(s, &t)) return false;
        if (t.kind == TN__JSON_CLOSE_OBJECT) return true;
        if (!tn__json_next(s, &v)) return false;
        if (v.kind != TN__JSON_STRING) return tn__json_fail(s, v.at, "__metadata__ must be an object of strings"), false;
        if (v.has_nul) return tn__json_fail(s, v.at, "metadata with \\u0000 in it is not supported"), false;
        f->metadata_bytes += t.bytes + v.bytes;
        if (f->pair_count == TN__ST_PAIRS) return tn__json_fail(s, t.at, "more metadata than the limit of %d pairs", TN__ST_PAIRS), false;
        if (f->metadata_bytes > TN__ST_METADATA)
            return tn__json_fail(s, t.at, "more metadata than the limit of %d bytes", TN__ST_METADATA), false;
        tn__st_pair p = {.key_bytes = t.bytes, .at = t.at};
        p.key = keep_string(f, &t), p.value = keep_string(f, &v);
        if (f->filling) f->pairs[f->pair_count] = p;
        f->pair_count++;
    }
}

/* '[' and integers that are not negative and at most 2^48 - 1 (sizes) or 2^63 - 1 (offsets), ']'; at most `most`. */
static bool parse_integers(tn__json_scan *s, const char *what, int most, uint64_t largest, int64_t *to, int *n)
{
    tn__json_token t;
    if (!tn__json_next(s, &t)) return false;
    if (t.kind != TN__JSON_OPEN_ARRAY) return tn__json_fail(s, t.at, "%s must be an array of integers", what), false;
    size_t start = t.at;
    for (*n = 0;; ++*n) {
        if (!tn__json_next(s, &t)) return false;
        if (t.kind == TN__JSON_CLOSE_ARRAY) return true;
        if (t.kind == TN__JSON_REAL && t.raw_bytes && !memchr(t.raw, '.', t.raw_bytes) && !memchr(t.raw, 'e', t.raw_bytes) &&
            !memchr(t.raw, 'E', t.raw_bytes))
            return tn__json_fail(s, t.at, "%s has an integer that does not fit in 64 bits", what), false;
        if (t.kind != TN__JSON_INTEGER) return tn__json_fail(s, t.at, "%s must hold integers alone", what), false;
        if (t.negative) return tn__json_fail(s, t.at, "%s has a negative integer", what), false;
        if (t.magnitude > largest)
            return tn__json_fail(s, t.at, "%s has %llu, the limit is %llu", what, (unsigned long long)t.magnitude,
                                 (unsigned long long)largest), false;
        if (*n == most) {
            if (most == 2) tn__json_fail(s, start, "%s must hold two integers", what);
            else tn_raise(TN_EUNSUPPORTED, "%s: byte %lld: %s has more than %d dims, which is Tenon's limit", s->label,
                          (long long)s->base + (long long)start, what, most);
            return false;
        }
        to[*n] = (int64_t)t.magnitude;
    }
}

/* The bytes of an entry by its shape and type. The products are checked in order and with the zeros left out. */
static bool entry_bytes(const tn__st_entry *e, int64_t *bytes)
{
    int64_t n = 1, solid = 1, bits;
    for (int i = 0; i < e->shape.n; i++)
        if (!tn__mul_i64(n, e->shape.d[i], &n) || (e->shape.d[i] && !tn__mul_i64(solid, e->shape.d[i], &solid))) return false;
    if (!tn__mul_i64(solid, 64, &bits)) return false;
    bits = n * tn__elements[e->element].bits;
    *bytes = bits % 8 ? -1 : bits / 8;
    return true;
}

static bool check_entry(const tn_safetensors *f, const tn__st_entry *e, const char *name)
{
    char    text[192], what[400];
    int64_t bytes;
    tn_shape_text(e->shape, text, sizeof text);
    const char *type = tn__elements[e->element].safetensors;
    if (!entry_bytes(e, &bytes)) {
        snprintf(what, sizeof what, "shape %s of %s is too large: its bits do not fit in 63 bits", text, type);
        return tn__st_fail(f, name, e->at, what);
    }
    if (bytes < 0) {
        snprintf(what, sizeof what, "shape %s of %s does not fill whole bytes", text, type);
        return tn__st_fail(f, name, e->at, what);
    }
    if (e->begin > e->end) {
        snprintf(what, sizeof what, "data_offsets [%lld, %lld] end before they begin", (long long)e->begin, (long long)e->end);
        return tn__st_fail(f, name, e->at, what);
    }
    if (e->end - e->begin != bytes) {
        snprintf(what, sizeof what, "data_offsets [%lld, %lld] hold %lld bytes, %s %s needs %lld", (long long)e->begin,
                 (long long)e->end, (long long)(e->end - e->begin), type, text, (long long)bytes);
        return tn__st_fail(f, name, e->at, what);
    }
    return true;
}

static bool parse_entry(tn_safetensors *f, tn__json_scan *s, const tn__json_token *key)
{
    static const char *const fields[] = {"dtype", "shape", "data_offsets"};
    char                     name[TN__ST_NAME + 1], shown[TN__QUOTED];
    if (key->bytes == 0 || key->bytes > TN__ST_NAME)
        return tn__json_fail(s, key->at, "a tensor's name of %zu bytes, expected 1 to %d", key->bytes, TN__ST_NAME), false;
    tn__json_unescape(key, name);
    name[key->bytes] = 0;
    for (size_t i = 0; i < key->bytes; i++)
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f)
            return tn__json_fail(s, key->at, "the tensor's name %s has a control character", tn__json_shown(shown, key)), false;
    if (f->count == TN__ST_TENSORS) return tn__json_fail(s, key->at, "more tensors than the limit of %d", TN__ST_TENSORS), false;

    tn__st_entry   e = {.name_bytes = (uint32_t)key->bytes, .at = key->at};
    int64_t        offsets[2];
    int            n = 0;
    unsigned       seen = 0;
    tn__json_token t;
    if (!tn__json_next(s, &t)) return false;
    if (t.kind != TN__JSON_OPEN_OBJECT) return tn__st_fail(f, name, t.at, "its entry must be an object"), false;
    for (;;) {
        if (!tn__json_next(s, &t)) return false;
        if (t.kind == TN__JSON_CLOSE_OBJECT) break;
        int k = 0;
        while (k < 3 && !token_is(&t, fields[k])) k++;
        if (k == 3)
            return tn__json_fail(s, t.at, "tensor %s has the unknown field %s, expected dtype, shape and data_offsets",
                                 tn__quote(shown, name, key->bytes, 60), tn__json_shown((char[TN__QUOTED]){0}, &t)), false;
        if (seen >> k & 1) return tn__json_fail(s, t.at, "the field '%s' is there twice", fields[k]), false;
        seen |= 1u << k;
        if (k == 0) {
            if (!tn__json_next(s, &t)) return false;
            if (t.kind != TN__JSON_STRING) return tn__json_fail(s, t.at, "dtype must be a string such as \"F32\""), false;
            char type[16] = "";
            if (t.bytes < sizeof type) tn__json_unescape(&t, type);
            e.element = t.bytes < sizeof type ? tn__element_of_name(type, t.bytes) : -1;
            if (e.element < 0) return tn__json_fail(s, t.at, "the dtype %s is unknown", tn__json_shown(shown, &t)), false;
        } else if (k == 1) {
            if (!parse_integers(s, "shape", TN_MAX_DIMS, ((uint64_t)1 << 48) - 1, e.shape.d, &e.shape.n)) return false;
        } else {
            if (!parse_integers(s, "data_offsets", 2, INT64_MAX, offsets, &n)) return false;
            if (n != 2) return tn__json_fail(s, t.at, "data_offsets must hold two integers"), false;
            e.begin = offsets[0], e.end = offsets[1];
        }
    }
    for (int k = 0; k < 3; k++)
        if (!(seen >> k & 1)) {
            char what[60];
            snprintf(what, sizeof what, "its field '%s' is missing", fields[k]);
            return tn__st_fail(f, name, e.at, what);
        }
    if (!check_entry(f, &e, name)) return false;
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
    if (t.kind != TN__JSON_OPEN_OBJECT) return tn__json_fail(&s, t.at, "the header must be an object, '{'"), false;
    for (;;) {
        if (!tn__json_next(&s, &t)) return false;
        if (t.kind == TN__JSON_CLOSE_OBJECT) break;
        if (!token_is(&t, "__metadata__")) {
            if (!parse_entry(f, &s, &t)) return false;
            continue;
        }
        if (metadata) return tn__json_fail(&s, t.at, "the key '__metadata__' is there twice"), false;
        metadata = true;
        if (!parse_metadata(f, &s)) return false;
    }
    return tn__json_next(&s, &t); /* nothing but spaces may follow */
}
