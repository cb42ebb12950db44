/* json_read.c — a JSON text as a tree of values, and what can be asked of it.
 *
 * The text is scanned twice. The first pass checks it and counts; then one block of exactly the size needed is taken,
 * and the second pass fills it:
 *     header | the document's name | values | tables that find the keys of large objects | strings
 * The children of an array or object stand side by side, so that the i-th is found at once. For that the values of
 * what is still open are kept as a stack at the start of their array; when a container closes, its children move from
 * the stack's top to the array's end, which fills downwards. Both together never hold more than all values. */
#include "core/io.h"

#include <math.h>
#include <string.h>

struct tn_json { /* 24 bytes */
    uint8_t  type;
    uint8_t  flags;
    uint32_t index; /* in the document: leads back to the header */
    uint32_t at;    /* where it begins in the text, for messages */
    uint32_t key;   /* where its name is among the strings, NO_KEY: none */
    union {
        int64_t  i;
        uint64_t u;
        double   d;
        struct { uint32_t at, bytes; } string;
        struct { uint32_t first, count; } child; /* LARGE: the table's place; there stand count, mask and slots */
    };
};
enum { LAST = 1, LARGE = 2, NEGATIVE = 4 };
enum { SMALL = 8 }; /* so many members are searched one by one */
static const uint32_t NO_KEY = UINT32_MAX;

typedef struct {
    size_t   bytes; /* of the block */
    uint32_t values, string_at; /* of the strings, in the block */
    uint32_t table_at;
    uint64_t seed[2];
    char     name[TN__QUOTED]; /* the file's, for messages */
    tn_json  value[];
} document;

static const document *document_of(const tn_json *v)
{
    return (const document *)(const void *)((const char *)(v - v->index) - offsetof(document, value));
}
static const char *strings(const document *d) { return (const char *)d + d->string_at; }
static const uint32_t *table(const document *d, const tn_json *v)
{
    return (const uint32_t *)(const void *)((const char *)d + d->table_at) + v->child.count;
}
static uint32_t count_of(const document *d, const tn_json *v)
{
    return v->flags & LARGE ? table(d, v)[0] : v->child.count;
}
/* A string in the document: its length in four bytes, its bytes, a NUL. */
static const char *string_at(const document *d, uint32_t at, size_t *bytes)
{
    uint32_t n;
    memcpy(&n, strings(d) + at, sizeof n);
    *bytes = n;
    return strings(d) + at + sizeof n;
}
static const char *key_of(const document *d, const tn_json *v, size_t *bytes) { return string_at(d, v->key, bytes); }

/* ---- parsing --------------------------------------------------------------------------------------------------------- */

typedef struct {
    uint64_t values, strings, slots;
} counts;

static uint64_t slots_of(uint64_t members) { return members > SMALL ? 2 + (uint64_t)tn__names_slots((uint32_t)members) : 0; }

static bool first_pass(tn__json_scan *s, tn_json_limits l, counts *c)
{
    uint32_t       members[TN_JSON_MAX_DEPTH];
    tn__json_token t;
    bool           ok;
    *c = (counts){0};
    while ((ok = tn__json_next(s, &t)) && t.kind != TN__JSON_END) {
        switch (t.kind) {
        case TN__JSON_KEY:
            c->strings += t.bytes + 5;
            members[s->depth - 1]++;
            continue;
        case TN__JSON_CLOSE_OBJECT: c->slots += slots_of(members[s->depth]); continue;
        case TN__JSON_CLOSE_ARRAY: continue;
        case TN__JSON_STRING: c->strings += t.bytes + 5; break;
        case TN__JSON_OPEN_OBJECT: members[s->depth - 1] = 0; break;
        default: break;
        }
        if (++c->values > (uint64_t)l.values) {
            tn__json_fail(s, t.at, "more values than the limit of %lld", (long long)l.values);
            return false;
        }
    }
    return ok;
}

typedef struct {
    document *d;
    uint32_t  top;  /* the stack of values whose container is open: value[0 … top) */
    uint32_t  high; /* value[high …] are in their last place */
    uint32_t  strings, slots;
} builder;

static const char *name_of_child(const void *owner, uint32_t i, size_t *bytes)
{
    const tn_json *first = owner;
    return key_of(document_of(first), first + i, bytes);
}

static uint32_t put_string(builder *b, const tn__json_token *t)
{
    uint32_t at = b->strings, n = (uint32_t)t->bytes;
    char    *to = (char *)b->d + b->d->string_at + at;
    memcpy(to, &n, sizeof n);
    tn__json_unescape(t, to + sizeof n);
    to[sizeof n + n] = 0;
    b->strings += n + 5;
    return at;
}

/* The children of v: value[first … first + n), their keys among them. Raises if two are the same. */
static bool index_keys(const tn__json_scan *s, builder *b, tn_json *v, uint32_t n)
{
    document *d = b->d;
    tn_json  *child = d->value + v->child.first;
    int64_t   twin = -1;
    uint32_t  i = 0;
    if (n <= SMALL) {
        for (; i < n && twin < 0; i++) {
            size_t      bytes, other;
            const char *key = key_of(d, child + i, &bytes);
            for (uint32_t j = 0; j < i; j++) {
                const char *earlier = key_of(d, child + j, &other);
                if (other == bytes && !memcmp(earlier, key, bytes)) twin = j;
            }
        }
    } else {
        uint32_t *t = (uint32_t *)(void *)((char *)d + d->table_at) + b->slots, slots = tn__names_slots(n);
        t[0] = n, t[1] = slots - 1;
        memset(t + 2, 0, slots * sizeof *t);
        v->child.count = b->slots;
        v->flags |= LARGE;
        b->slots += 2 + slots;
        tn__names x = {.slot = t + 2, .mask = t[1], .seed = {d->seed[0], d->seed[1]}, .name = name_of_child, .owner = child};
        for (; i < n && twin < 0; i++) twin = tn__names_add(&x, i);
    }
    if (twin < 0) return true;
    size_t      bytes;
    char        shown[TN__QUOTED];
    const char *key = key_of(d, child + i - 1, &bytes);
    tn__json_fail(s, child[i - 1].at, "the key %s is in this object twice; its first value is at byte %lld",
                  tn__quote(shown, key, bytes, 80), (long long)s->base + child[twin].at);
    return false;
}

/* The container at value[at], an element of the stack, closes: what stands above it are its children. */
static bool close_container(const tn__json_scan *s, builder *b, uint32_t at)
{
    tn_json *value = b->d->value, *v = value + at;
    uint32_t n = b->top - (at + 1);
    b->high -= n;
    memmove(value + b->high, value + at + 1, n * sizeof *value);
    for (uint32_t i = 0; i < n; i++) value[b->high + i].index = b->high + i;
    if (n) value[b->high + n - 1].flags |= LAST;
    b->top = at + 1;
    v->child.first = b->high, v->child.count = n;
    return v->type != TN_JSON_OBJECT || index_keys(s, b, v, n);
}

static bool second_pass(tn__json_scan *s, builder *b)
{
    uint32_t       open[TN_JSON_MAX_DEPTH], key = NO_KEY;
    tn__json_token t;
    bool           ok;
    while ((ok = tn__json_next(s, &t)) && t.kind != TN__JSON_END) {
        if (t.kind == TN__JSON_KEY) {
            key = put_string(b, &t);
            continue;
        }
        if (t.kind == TN__JSON_CLOSE_ARRAY || t.kind == TN__JSON_CLOSE_OBJECT) {
            if (!close_container(s, b, open[s->depth])) return false;
            continue;
        }
        tn_json *v = b->d->value + b->top;
        *v = (tn_json){.index = b->top, .at = (uint32_t)t.at, .key = key};
        key = NO_KEY;
        switch (t.kind) {
        case TN__JSON_OPEN_ARRAY:
        case TN__JSON_OPEN_OBJECT:
            v->type = t.kind == TN__JSON_OPEN_ARRAY ? TN_JSON_ARRAY : TN_JSON_OBJECT;
            open[s->depth - 1] = b->top;
            break;
        case TN__JSON_STRING:
            v->type = TN_JSON_STRING;
            v->string.at = put_string(b, &t), v->string.bytes = (uint32_t)t.bytes;
            break;
        case TN__JSON_INTEGER: /* negative: at most 2^63, which has this complement */
            v->type = TN_JSON_INTEGER;
            v->u = t.negative ? 0 - t.magnitude : t.magnitude;
            v->flags = t.negative && t.magnitude ? NEGATIVE : 0;
            break;
        case TN__JSON_REAL: v->type = TN_JSON_REAL, v->d = t.real; break;
        case TN__JSON_TRUE:
        case TN__JSON_FALSE: v->type = TN_JSON_BOOL, v->i = t.kind == TN__JSON_TRUE; break;
        default: v->type = TN_JSON_NULL; break;
        }
        b->top++;
    }
    return ok;
}

static tn_json *parse(const char *label, const char *path, const char *text, size_t bytes, tn_json_limits l)
{
    tn__json_scan s;
    counts        c;
    if (!tn__json_begin(&s, label, text, bytes, 0, l.depth) || !first_pass(&s, l, &c)) return NULL;
    size_t table_at = sizeof(document) + (size_t)c.values * sizeof(tn_json), string_at = table_at + (size_t)c.slots * 4;
    size_t all = string_at + (size_t)c.strings;
    if (string_at > UINT32_MAX || c.strings > UINT32_MAX)
        return tn_raise(TN_EUNSUPPORTED, "%s: the %llu values of this document need more than 4 GiB", label,
                        (unsigned long long)c.values), NULL;
    document *d = tn__mem_get(all);
    if (!d) return NULL;
    d->bytes = all, d->values = (uint32_t)c.values;
    d->table_at = (uint32_t)table_at, d->string_at = (uint32_t)string_at;
    tn__quote(d->name, path ? path : "json", path ? strlen(path) : 4, 120);
    tn__names seed;
    tn__names_seed(&seed);
    memcpy(d->seed, seed.seed, sizeof d->seed);
    builder b = {.d = d, .high = d->values};
    tn__json_begin(&s, label, text, bytes, 0, l.depth);
    if (second_pass(&s, &b)) return d->value;
    tn__mem_put(d, all);
    return NULL;
}

static bool check_limits(const char *label, tn_json_limits *l)
{
    if (!l->depth) l->depth = 64;
    if (!l->bytes) l->bytes = (int64_t)256 << 20;
    if (!l->values) l->values = UINT32_MAX;
    if (l->depth >= 1 && l->depth <= TN_JSON_MAX_DEPTH && l->bytes >= 1 && l->bytes <= UINT32_MAX && l->values >= 1)
        return true;
    tn_raise(TN_EINVAL, "%s: limits out of range: depth %d (1 to %d), bytes %lld (1 to 2^32 - 1), values %lld (1 or more)",
             label, l->depth, TN_JSON_MAX_DEPTH, (long long)l->bytes, (long long)l->values);
    return false;
}

static bool check_size(const char *label, uint64_t bytes, const tn_json_limits *l)
{
    if (bytes <= (uint64_t)l->bytes) return true;
    tn_raise(TN_EFORMAT, "%s: the text has %llu bytes, the limit is %lld", label, (unsigned long long)bytes,
             (long long)l->bytes);
    return false;
}

tn_json *tn_json_parse_within(const char *text, size_t bytes, tn_json_limits limits)
{
    static const char label[] = "tn_json_parse";
    if (tn__blocked()) return NULL;
    if (!text) return tn_raise(TN_EINVAL, "%s: text is NULL", label), NULL;
    if (!check_limits(label, &limits) || !check_size(label, bytes, &limits)) return NULL;
    return parse(label, NULL, text, bytes, limits);
}

tn_json *tn_json_load_within(const char *path, tn_json_limits limits)
{
    if (tn__blocked()) return NULL;
    char       label[TN__LABEL];
    tn__source s;
    if (!check_limits(tn__label(label, "tn_json_load", path), &limits)) return NULL;
    if (!tn__source_open(&s, label, path)) return NULL;
    tn_json *v = NULL;
    char    *text = check_size(label, (uint64_t)s.size, &limits) ? tn__mem_get((size_t)s.size) : NULL;
    if (text && tn__source_read(&s, text, 0, (size_t)s.size)) v = parse(label, path, text, (size_t)s.size, limits);
    tn__mem_put(text, (size_t)s.size);
    tn__source_close(&s);
    return v;
}

tn_json *tn_json_parse(const char *text, size_t bytes) { return tn_json_parse_within(text, bytes, (tn_json_limits){0}); }
tn_json *tn_json_load(const char *path) { return tn_json_load_within(path, (tn_json_limits){0}); }

void tn_json_free(tn_json *v)
{
    if (!v) return;
    if (v->index) {
        tn_raise(TN_EINVAL, "tn_json_free: this is a value inside a document; free the document");
        return;
    }
    document *d = (document *)(void *)((char *)v - offsetof(document, value));
    tn__mem_put(d, d->bytes);
}

/* ---- finding --------------------------------------------------------------------------------------------------------- */

static bool is_container(const tn_json *v) { return v && (v->type == TN_JSON_ARRAY || v->type == TN_JSON_OBJECT); }

tn_json_type tn_json_type_of(const tn_json *v) { return v ? (tn_json_type)v->type : TN_JSON_NONE; }
int64_t      tn_json_count(const tn_json *v) { return is_container(v) ? count_of(document_of(v), v) : 0; }

const tn_json *tn_json_at(const tn_json *v, int64_t i)
{
    return i >= 0 && i < tn_json_count(v) ? document_of(v)->value + v->child.first + i : NULL;
}
const tn_json *tn_json_first(const tn_json *v) { return tn_json_at(v, 0); }
const tn_json *tn_json_next(const tn_json *v) { return v && v->index && !(v->flags & LAST) ? v + 1 : NULL; }

const char *tn_json_key(const tn_json *v)
{
    size_t bytes;
    return v && v->key != NO_KEY ? key_of(document_of(v), v, &bytes) : "";
}

const tn_json *tn_json_get(const tn_json *v, const char *key)
{
    if (!v || v->type != TN_JSON_OBJECT || !key) return NULL;
    const document *d = document_of(v);
    const tn_json  *child = d->value + v->child.first;
    size_t          n = strlen(key), bytes;
    if (v->flags & LARGE) {
        const uint32_t *t = table(d, v);
        tn__names       x = {.slot = (uint32_t *)(uintptr_t)(t + 2), .mask = t[1], .seed = {d->seed[0], d->seed[1]},
                             .name = name_of_child, .owner = child};
        int64_t         i = tn__names_find(&x, key, n);
        return i < 0 ? NULL : child + i;
    }
    for (uint32_t i = 0; i < v->child.count; i++) {
        const char *name = key_of(d, child + i, &bytes);
        if (bytes == n && !memcmp(name, key, n)) return child + i;
    }
    return NULL;
}

/* ---- messages -------------------------------------------------------------------------------------------------------- */

/* "'config.json': layers[2].size (byte 45)": values begin in the text in the order of the tree, so the way down to v is
 * always the last child that begins no later. */
enum { PLACE = 600 };
static const char *place(char to[PLACE], const tn_json *v)
{
    const document *d = document_of(v);
    const tn_json  *x = d->value;
    size_t          at = (size_t)snprintf(to, PLACE, "%s: ", d->name), start = at;
    while (x != v && at + 120 < PLACE) {
        const tn_json *child = d->value + x->child.first;
        uint32_t       low = 0, high = count_of(d, x);
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
            const char *key = key_of(d, child + low, &bytes);
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
        if (v->flags & NEGATIVE) snprintf(to, TN__QUOTED, "the integer %lld", (long long)v->i);
        else snprintf(to, TN__QUOTED, "the integer %llu", (unsigned long long)v->u);
        return to;
    case TN_JSON_REAL: memcpy(to, "the number ", 11), tn_format_double(v->d, to + 11); return to;
    case TN_JSON_STRING: {
        char        shown[TN__QUOTED];
        const char *s = string_at(document_of(v), v->string.at, &bytes);
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

static const char *name_of_member(const void *owner, uint32_t i, size_t *bytes)
{
    const tn_json *child = tn_json_at(owner, i);
    return key_of(document_of(child), child, bytes);
}

const tn_json *tn_json_need(const tn_json *v, const char *key)
{
    const tn_json *found = tn_json_get(v, key);
    if (found) return found;
    if (!key) return tn_raise(TN_EINVAL, "tn_json_need: the key is NULL"), NULL;
    char where[PLACE], asked[TN__QUOTED], near[TN__QUOTED] = "";
    tn__quote(asked, key, strlen(key), 80);
    if (!v) return tn_raise(TN_EINDEX, "tn_json_need: there is no object to look for %s in", asked), NULL;
    if (v->type != TN_JSON_OBJECT) return wrong(v, "an object"), NULL;
    tn__names x = {.name = name_of_member, .owner = v};
    int64_t   i = tn__names_nearest(&x, (uint32_t)tn_json_count(v), key);
    if (i >= 0) {
        size_t      bytes;
        const char *name = name_of_member(v, (uint32_t)i, &bytes);
        tn__quote(near, name, bytes, 80);
    }
    tn_raise(TN_EINDEX, "%s has no %s%s%s%s", place(where, v), asked, i >= 0 ? "; did you mean " : "", near, i >= 0 ? "?" : "");
    return NULL;
}

/* ---- reading values -------------------------------------------------------------------------------------------------- */

static bool absent(const tn_json *v) { return !v || v->type == TN_JSON_NULL; }

int64_t tn_json_i64_or(const tn_json *v, int64_t fallback)
{
    if (absent(v)) return fallback;
    if (v->type == TN_JSON_INTEGER && (v->i >= 0 || v->flags & NEGATIVE)) return v->i;
    return wrong(v, "an integer from -2^63 to 2^63 - 1"), fallback;
}
double tn_json_double_or(const tn_json *v, double fallback)
{
    if (absent(v)) return fallback;
    if (v->type == TN_JSON_REAL) return v->d;
    if (v->type == TN_JSON_INTEGER) return v->flags & NEGATIVE ? (double)v->i : (double)v->u;
    return wrong(v, "a number"), fallback;
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
    if (v->type == TN_JSON_STRING) return string_at(document_of(v), v->string.at, &bytes);
    return wrong(v, "a string"), fallback;
}

/* Without a fallback null is as wrong as any other type. */
static bool null_instead_of(const tn_json *v, const char *expected)
{
    if (!v || v->type != TN_JSON_NULL) return false;
    wrong(v, expected);
    return true;
}
int64_t tn_json_i64(const tn_json *v) { return null_instead_of(v, "an integer") ? 0 : tn_json_i64_or(v, 0); }
double  tn_json_double(const tn_json *v) { return null_instead_of(v, "a number") ? 0 : tn_json_double_or(v, 0); }
bool    tn_json_bool(const tn_json *v) { return null_instead_of(v, "true or false") ? false : tn_json_bool_or(v, false); }
const char *tn_json_string(const tn_json *v) { return null_instead_of(v, "a string") ? "" : tn_json_string_or(v, ""); }

uint64_t tn_json_u64(const tn_json *v)
{
    if (!v) return 0;
    if (v->type == TN_JSON_INTEGER && !(v->flags & NEGATIVE)) return v->u;
    return wrong(v, "an integer from 0 to 2^64 - 1"), 0;
}

int64_t tn_json_string_bytes(const tn_json *v)
{
    if (!v) return 0;
    if (v->type == TN_JSON_STRING) return v->string.bytes;
    return wrong(v, "a string"), 0;
}
