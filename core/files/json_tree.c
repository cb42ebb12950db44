/* json_tree.c — builds a tree of values from a JSON text.
 *
 * The text is scanned twice. The first pass checks and counts; then one block of exactly the required size is
 * allocated, and the second pass fills it. The values of open containers form a stack at the start of the array of
 * values; when a container closes, its children move from the stack's top to the array's end, which fills downwards.
 * Both together never hold more than all values. */
#include "core/files/json_tree.h"
#include "core/base/memory.h"
#include "core/base/thread.h"

typedef struct {
    uint64_t values, strings, slots;
} counts;

static uint64_t slots_of(uint64_t members)
{
    return members > TN__JSON_SMALL ? 2 + (uint64_t)tn__names_slots((uint32_t)members) : 0;
}

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
        if (++c->values > (uint64_t)l.values)
            return tn__json_fail(s, t.at, "more values than the limit of %lld", (long long)l.values);
    }
    return ok;
}

typedef struct {
    tn__json_document *d;
    uint32_t           top;  /* the stack of values whose container is open: value[0 … top) */
    uint32_t           high; /* value[high …] are in their final place */
    uint32_t           strings, slots;
} builder;

const char *tn__json_child_name(const void *owner, uint32_t i, size_t *bytes)
{
    const tn_json *first = owner;
    return tn__json_key_of(tn__json_document_of(first), first + i, bytes);
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

/* Makes a table of the children of v, value[first … first + n), for their keys. Raises if two are equal. */
static bool index_keys(const tn__json_scan *s, builder *b, tn_json *v, uint32_t n)
{
    tn__json_document *d = b->d;
    tn_json           *child = d->value + v->child.first;
    int64_t            twin = -1;
    uint32_t           i = 0;
    if (n <= TN__JSON_SMALL) {
        for (; i < n && twin < 0; i++) {
            size_t      bytes, other;
            const char *key = tn__json_key_of(d, child + i, &bytes);
            for (uint32_t j = 0; j < i; j++) {
                const char *earlier = tn__json_key_of(d, child + j, &other);
                if (other == bytes && !memcmp(earlier, key, bytes)) twin = j;
            }
        }
    } else {
        uint32_t *t = (uint32_t *)(void *)((char *)d + d->table_at) + b->slots, slots = tn__names_slots(n);
        t[0] = n, t[1] = slots - 1;
        memset(t + 2, 0, slots * sizeof *t);
        v->child.count = b->slots;
        v->flags |= TN__JSON_LARGE;
        b->slots += 2 + slots;
        tn__names x = {
            .slot = t + 2, .mask = t[1], .seed = {d->seed[0], d->seed[1]}, .name = tn__json_child_name, .owner = child};
        for (; i < n && twin < 0; i++) twin = tn__names_add(&x, i);
    }
    if (twin < 0) return true;
    size_t      bytes;
    char        shown[TN__QUOTED];
    const char *key = tn__json_key_of(d, child + i - 1, &bytes);
    return tn__json_fail(s, child[i - 1].at, "duplicate key %s in this object; its first value is at byte %lld",
                         tn__quote(shown, key, bytes, 80), (long long)s->base + child[twin].at);
}

/* Closes the container at value[at], an entry of the stack: its children are the entries above it. */
static bool close_container(const tn__json_scan *s, builder *b, uint32_t at)
{
    tn_json *value = b->d->value, *v = value + at;
    uint32_t n = b->top - (at + 1);
    b->high -= n;
    memmove(value + b->high, value + at + 1, n * sizeof *value);
    for (uint32_t i = 0; i < n; i++) value[b->high + i].index = b->high + i;
    if (n) value[b->high + n - 1].flags |= TN__JSON_LAST;
    b->top = at + 1;
    v->child.first = b->high, v->child.count = n;
    return v->type != TN_JSON_OBJECT || index_keys(s, b, v, n);
}

static bool second_pass(tn__json_scan *s, builder *b)
{
    uint32_t       open[TN_JSON_MAX_DEPTH], key = TN__JSON_NO_KEY;
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
        key = TN__JSON_NO_KEY;
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
        case TN__JSON_INTEGER: /* negative: at most 2^63, whose complement this is */
            v->type = TN_JSON_INTEGER;
            v->u = t.negative ? 0 - t.magnitude : t.magnitude;
            v->flags = t.negative && t.magnitude ? TN__JSON_NEGATIVE : 0;
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
    size_t table_at = sizeof(tn__json_document) + (size_t)c.values * sizeof(tn_json),
           string_at = table_at + (size_t)c.slots * 4;
    size_t all = string_at + (size_t)c.strings;
    if (string_at > UINT32_MAX || c.strings > UINT32_MAX)
        return tn_raise_null(TN_EUNSUPPORTED, "%s: the %llu values of this document need more than 4 GiB", label,
                             (unsigned long long)c.values);
    tn__json_document *d = tn__mem_get(all);
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
    return tn_raise_false(
        TN_EINVAL, "%s: limits out of range: depth %d (1 to %d), bytes %lld (1 to 2^32 - 1), values %lld (1 or more)",
        label, l->depth, TN_JSON_MAX_DEPTH, (long long)l->bytes, (long long)l->values);
}

static bool check_size(const char *label, uint64_t bytes, const tn_json_limits *l)
{
    if (bytes <= (uint64_t)l->bytes) return true;
    return tn_raise_false(TN_EFORMAT, "%s: the text has %llu bytes, the limit is %lld", label,
                          (unsigned long long)bytes, (long long)l->bytes);
}

tn_json *tn_json_parse_within(const char *text, size_t bytes, tn_json_limits limits)
{
    static const char label[] = "tn_json_parse";
    if (tn__blocked()) return NULL;
    if (!text) return tn_raise_null(TN_EINVAL, "%s: text is NULL", label);
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
    if (text && tn__source_read(&s, text, 0, (size_t)s.size) && tn__sha256sums_check(path, text, (size_t)s.size))
        v = parse(label, path, text, (size_t)s.size, limits);
    tn__mem_put(text, (size_t)s.size);
    tn__source_close(&s);
    return v;
}

tn_json *tn_json_parse(const char *text, size_t bytes)
{
    return tn_json_parse_within(text, bytes, (tn_json_limits){0});
}
tn_json *tn_json_load(const char *path) { return tn_json_load_within(path, (tn_json_limits){0}); }

void tn_json_free(tn_json *v)
{
    if (!v) return;
    if (v->index) {
        tn_raise(TN_EINVAL, "tn_json_free: this is a value inside a document; free the document");
        return;
    }
    tn__json_document *d = (tn__json_document *)(void *)((char *)v - offsetof(tn__json_document, value));
    tn__mem_put(d, d->bytes);
}
