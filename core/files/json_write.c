/* json_write.c — writes JSON text, value by value, with commas, indents and escapes. */
#include "core/files/io.h"
#include "core/base/memory.h"
#include "core/base/thread.h"

#include <math.h>
#include <string.h>

struct tn_json_writer {
    char    *text;
    size_t   used, capacity;
    int      indent, depth;
    bool     begun; /* a value precedes the next one in its container */
    bool     done;  /* the outermost value is complete */
    bool     gap;   /* a call was skipped: no text is returned */
    uint64_t object[TN_JSON_MAX_DEPTH / 64];
};

tn_json_writer *tn_json_writer_new(int indent)
{
    if (tn__blocked()) return NULL;
    if (indent < 0 || indent > 16)
        return tn_raise_null(TN_EINVAL, "tn_json_writer_new: an indent of %d, expected 0 to 16", indent);
    tn_json_writer *w = tn__mem_zeroed(sizeof *w);
    if (w) w->indent = indent;
    return w;
}

void tn_json_writer_clear(tn_json_writer *w)
{
    if (!w) return;
    w->used = 0, w->depth = 0;
    w->begun = w->done = w->gap = false;
}

void tn_json_writer_free(tn_json_writer *w)
{
    if (!w) return;
    tn__mem_put(w->text, w->capacity);
    tn__mem_put(w, sizeof *w);
}

static bool reserve(tn_json_writer *w, size_t more)
{
    if (more < w->capacity - w->used) return true; /* and one for a NUL */
    size_t capacity = w->capacity ? w->capacity : 256;
    while (capacity - w->used <= more) capacity *= 2;
    void *p = w->text;
    if (!tn__mem_grow(&p, w->capacity, capacity)) return false;
    w->text = p, w->capacity = capacity;
    return true;
}

static void add(tn_json_writer *w, const char *p, size_t n) /* reserved */
{
    if (n) memcpy(w->text + w->used, p, n);
    w->used += n;
}

static void new_line(tn_json_writer *w) /* reserved */
{
    if (!w->indent) return;
    size_t n = (size_t)w->indent * (size_t)w->depth;
    w->text[w->used++] = '\n';
    memset(w->text + w->used, ' ', n);
    w->used += n;
}

/* The letter of a two-character escape, 'u' for longer ones, 0 if c needs no escape. */
static char escape_of(char c)
{
    switch (c) {
    case '"':
    case '\\': return c;
    case '\b': return 'b';
    case '\f': return 'f';
    case '\n': return 'n';
    case '\r': return 'r';
    case '\t': return 't';
    default: return (unsigned char)c < 0x20 ? 'u' : 0;
    }
}

static size_t quoted_size(const char *p, size_t n)
{
    size_t size = n + 2;
    for (size_t i = 0; i < n; i++) {
        char e = escape_of(p[i]);
        size += e == 'u' ? 5 : e ? 1 : 0;
    }
    return size;
}

static void add_quoted(tn_json_writer *w, const char *p, size_t n) /* reserved */
{
    char *to = w->text + w->used;
    *to++ = '"';
    for (size_t i = 0; i < n; i++) {
        char e = escape_of(p[i]);
        if (e) *to++ = '\\', *to++ = e;
        else *to++ = p[i];
        if (e == 'u') {
            memcpy(to, "00", 2);
            to[2] = "01"[p[i] >> 4 & 1], to[3] = "0123456789abcdef"[p[i] & 15];
            to += 4;
        }
    }
    *to++ = '"';
    w->used = (size_t)(to - w->text);
}

static bool in_object(const tn_json_writer *w)
{
    return w->depth && (w->object[(w->depth - 1) / 64] >> (w->depth - 1) % 64 & 1);
}

/* A call that fails changes nothing and can be repeated; one skipped because of an error leaves a gap. */
static bool usable(const tn_json_writer *w, const char *who)
{
    if (!w) return tn_raise_false(TN_EINVAL, "%s: the writer is NULL", who);
    if (!w->gap) return true;
    return tn_raise_false(
        TN_ESTATE,
        "%s: calls on this writer were skipped while an error was set, so its text has a gap; clear the "
        "writer and start again",
        who);
}

static bool ready(tn_json_writer *w, const char *who)
{
    if (!tn__blocked()) return usable(w, who);
    if (w) w->gap = true;
    return false;
}

static bool check_text(const char *who, const char *what, const char *p, size_t n)
{
    size_t good = tn_utf8_valid(p, n);
    if (good == n) return true;
    char shown[TN__QUOTED];
    return tn_raise_false(TN_EFORMAT, "%s: the %s %s is not valid UTF-8 at its byte %zu", who, what,
                          tn__quote(shown, p, n, 60), good);
}

/* Writes everything that precedes a value, and reserves `more` bytes for it. */
static bool begin(tn_json_writer *w, const char *who, const char *key, size_t more)
{
    size_t key_bytes = key ? strlen(key) : 0;
    bool   object = in_object(w);
    if (w->done) return tn_raise_false(TN_ESTATE, "%s: the text is already complete", who);
    if (object && !key)
        return tn_raise_false(TN_EINVAL, "%s: a value in an object needs a key, but the key is NULL", who);
    if (!object && key) {
        char shown[TN__QUOTED];
        return tn_raise_false(TN_EINVAL, "%s: the key is %s, but only values in an object have keys; pass NULL", who,
                              tn__quote(shown, key, key_bytes, 60));
    }
    if (key && !check_text(who, "key", key, key_bytes)) return false;
    size_t before = 2 + (size_t)w->indent * (size_t)w->depth + (key ? quoted_size(key, key_bytes) + 2 : 0);
    if (!reserve(w, before + more)) return false;
    if (w->begun) add(w, ",", 1);
    if (w->depth) new_line(w);
    if (key) {
        add_quoted(w, key, key_bytes);
        add(w, ": ", w->indent ? 2 : 1);
    }
    w->begun = true;
    return true;
}

static tn_status put(tn_json_writer *w, const char *who, const char *key, const char *text, size_t bytes)
{
    if (!ready(w, who) || !begin(w, who, key, bytes)) return tn__self.error;
    add(w, text, bytes);
    w->done = !w->depth;
    return TN_OK;
}

static tn_status open_container(tn_json_writer *w, const char *who, const char *key, bool object)
{
    if (!ready(w, who)) return tn__self.error;
    if (w->depth == TN_JSON_MAX_DEPTH)
        return tn_raise(TN_EINVAL, "%s: nested deeper than the limit of %d", who, TN_JSON_MAX_DEPTH);
    if (!begin(w, who, key, 1)) return tn__self.error;
    uint64_t bit = (uint64_t)1 << w->depth % 64, *word = &w->object[w->depth / 64];
    *word = object ? *word | bit : *word & ~bit;
    add(w, object ? "{" : "[", 1);
    w->depth++;
    w->begun = false;
    return TN_OK;
}

tn_status tn_json_open_object(tn_json_writer *w, const char *key)
{
    return open_container(w, "tn_json_open_object", key, true);
}
tn_status tn_json_open_array(tn_json_writer *w, const char *key)
{
    return open_container(w, "tn_json_open_array", key, false);
}

tn_status tn_json_close(tn_json_writer *w)
{
    if (!ready(w, "tn_json_close")) return tn__self.error;
    if (!w->depth) return tn_raise(TN_ESTATE, "tn_json_close: no array or object is open");
    if (!reserve(w, 2 + (size_t)w->indent * (size_t)w->depth)) return tn__self.error;
    bool object = in_object(w);
    w->depth--;
    if (w->begun) new_line(w);
    add(w, object ? "}" : "]", 1);
    w->begun = true;
    w->done = !w->depth;
    return TN_OK;
}

tn_status tn_json_put_null(tn_json_writer *w, const char *key) { return put(w, "tn_json_put_null", key, "null", 4); }
tn_status tn_json_put_bool(tn_json_writer *w, const char *key, bool v)
{
    return put(w, "tn_json_put_bool", key, v ? "true" : "false", v ? 4 : 5);
}

static tn_status put_integer(tn_json_writer *w, const char *who, const char *key, bool negative, uint64_t magnitude)
{
    char buf[24], *p = buf + sizeof buf;
    do *--p = (char)('0' + magnitude % 10);
    while (magnitude /= 10);
    if (negative) *--p = '-';
    return put(w, who, key, p, (size_t)(buf + sizeof buf - p));
}
tn_status tn_json_put_i64(tn_json_writer *w, const char *key, int64_t v)
{
    return put_integer(w, "tn_json_put_i64", key, v < 0, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}
tn_status tn_json_put_u64(tn_json_writer *w, const char *key, uint64_t v)
{
    return put_integer(w, "tn_json_put_u64", key, false, v);
}

static tn_status put_real(tn_json_writer *w, const char *who, const char *key, bool finite, const char *text, int bytes)
{
    if (finite) return put(w, who, key, text, (size_t)bytes);
    if (!ready(w, who)) return tn__self.error;
    return tn_raise(TN_EINVAL, "%s: %s%s%s is %s, which JSON cannot represent; omit it or write null", who,
                    key ? "'" : "the value", key ? key : "", key ? "'" : "", text);
}
tn_status tn_json_put_double(tn_json_writer *w, const char *key, double v)
{
    char text[32];
    int  n = tn_format_double(v, text);
    return put_real(w, "tn_json_put_double", key, isfinite(v), text, n);
}
void tn__json_put_number(tn_json_writer *w, const char *key, double v)
{
    if (isfinite(v)) tn_json_put_double(w, key, v);
    else if (!isnan(v)) tn_json_put_string(w, key, v > 0 ? "inf" : "-inf");
}
tn_status tn_json_put_float(tn_json_writer *w, const char *key, float v)
{
    char text[32];
    int  n = tn_format_float(v, text);
    return put_real(w, "tn_json_put_float", key, isfinite(v), text, n);
}

static tn_status put_text(tn_json_writer *w, const char *who, const char *key, const char *v, size_t bytes)
{
    if (!ready(w, who)) return tn__self.error;
    if (!v) return tn_raise(TN_EINVAL, "%s: the string is NULL; tn_json_put_null writes null", who);
    if (!check_text(who, "string", v, bytes) || !begin(w, who, key, quoted_size(v, bytes))) return tn__self.error;
    add_quoted(w, v, bytes);
    w->done = !w->depth;
    return TN_OK;
}
tn_status tn_json_put_string(tn_json_writer *w, const char *key, const char *v)
{
    return put_text(w, "tn_json_put_string", key, v, v ? strlen(v) : 0);
}
tn_status tn_json_put_bytes(tn_json_writer *w, const char *key, const char *v, size_t bytes)
{
    return put_text(w, "tn_json_put_bytes", key, v, bytes);
}

/* Writes one value without its children. True: it is an array or object, now open. */
static bool put_shallow(tn_json_writer *w, const char *key, const tn_json *v)
{
    switch (tn_json_type_of(v)) {
    case TN_JSON_NULL: return tn_json_put_null(w, key), false;
    case TN_JSON_BOOL: return tn_json_put_bool(w, key, tn_json_bool(v)), false;
    case TN_JSON_REAL: return tn_json_put_double(w, key, tn_json_double(v)), false;
    case TN_JSON_STRING: return tn_json_put_bytes(w, key, tn_json_string(v), (size_t)tn_json_string_bytes(v)), false;
    case TN_JSON_ARRAY: return tn_json_open_array(w, key), true;
    case TN_JSON_OBJECT: return tn_json_open_object(w, key), true;
    default: break; /* integers: u64 has a larger maximum, i64 a lower minimum */
    }
    if (tn_json_double(v) < 0) tn_json_put_i64(w, key, tn_json_i64(v));
    else tn_json_put_u64(w, key, tn_json_u64(v));
    return false;
}

tn_status tn_json_put(tn_json_writer *w, const char *key, const tn_json *v)
{
    if (!ready(w, "tn_json_put")) return tn__self.error;
    if (!v) return tn_raise(TN_EINVAL, "tn_json_put: the value is NULL; tn_json_put_null writes null");
    const tn_json *open[TN_JSON_MAX_DEPTH + 1];
    size_t         used = w->used;
    int            outside = w->depth, depth = 0;
    bool           begun = w->begun, done = w->done;
    for (const tn_json *x = v;;) {
        bool member = depth && tn_json_type_of(open[depth - 1]) == TN_JSON_OBJECT;
        bool container = put_shallow(w, !depth ? key : member ? tn_json_key(x) : NULL, x);
        if (tn__self.error != TN_OK) break;
        if (container && tn_json_count(x)) {
            open[depth++] = x;
            x = tn_json_first(x);
            continue;
        }
        if (container) tn_json_close(w);
        for (; tn__self.error == TN_OK && depth && !tn_json_next(x); x = open[--depth]) tn_json_close(w);
        if (tn__self.error != TN_OK) break;
        if (!depth) return TN_OK;
        x = tn_json_next(x);
    }
    w->used = used, w->depth = outside, w->begun = begun, w->done = done; /* all or nothing */
    return tn__self.error;
}

const char *tn_json_text(tn_json_writer *w, size_t *bytes)
{
    if (bytes) *bytes = 0;
    if (tn__blocked() || !usable(w, "tn_json_text")) return NULL;
    if (w->depth) return tn_raise_null(TN_ESTATE, "tn_json_text: %d arrays or objects are still open", w->depth);
    if (!w->done) return tn_raise_null(TN_ESTATE, "tn_json_text: no value was written");
    w->text[w->used] = 0;
    if (bytes) *bytes = w->used;
    return w->text;
}

static tn_status save(tn_json_writer *w, const char *path, bool begin)
{
    size_t      n;
    char        label[TN__LABEL];
    const char *text = tn_json_text(w, &n);
    return text ? tn__sha256sums_write(tn__label(label, "tn_json_save", path), path, text, n, "\n", begin)
                : tn__self.error;
}

tn_status tn_json_save(tn_json_writer *w, const char *path) { return save(w, path, false); }
tn_status tn_json_save_with_sha256(tn_json_writer *w, const char *path) { return save(w, path, true); }
