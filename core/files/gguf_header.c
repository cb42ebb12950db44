/* gguf_header.c — checks the header of a GGUF file and converts it to tables.
 *
 *     "GGUF" | u32 version | u64 tensors | u64 pairs | each pair: string key, u32 type, value
 *     each tensor: string name, u32 dims, u64 dim …, the innermost first, u32 type, u64 offset | padding | the tensors
 *
 * The file does not contain the header's length: a part of the file is parsed, and a larger part if it ends too early.
 * Then it is parsed twice: once to check and count, once to fill tables of the required size. */
#include "core/files/gguf_private.h"
#include "core/base/checked.h"
#include "core/base/memory.h"
#include "core/base/thread.h"

#include <string.h>

const uint8_t tn__gguf_bytes[TN_GGUF_NONE] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

typedef enum { GOOD = 0, SHORT, BAD } state;
typedef struct {
    const unsigned char *p;
    size_t               n, at;
    int64_t              size; /* of the whole file */
    const char          *label;
    state                is;
} cursor;

/* True if `bytes` more bytes exist. If they exist only in the file, not in the part read, the state is SHORT. */
static bool have(cursor *c, uint64_t bytes)
{
    if (c->is != GOOD) return false;
    if (bytes <= c->n - c->at) return true;
    c->is = bytes > (uint64_t)c->size - c->at ? BAD : SHORT;
    if (c->is == BAD)
        tn_raise(TN_EFORMAT, "%s: byte %zu: %llu bytes are needed here, but the file ends earlier", c->label, c->at,
                 (unsigned long long)bytes);
    return false;
}

static bool wrong(cursor *c, size_t at, const char *what, uint64_t is)
{
    if (c->is == GOOD) {
        c->is = BAD;
        tn_raise(TN_EFORMAT, "%s: byte %zu: %s, got %llu", c->label, at, what, (unsigned long long)is);
    }
    return false;
}

static uint64_t number(cursor *c, int bytes)
{
    if (!have(c, (uint64_t)bytes)) return 0;
    c->at += (size_t)bytes;
    return tn__little(c->p + c->at - bytes, bytes);
}

static const char *string(cursor *c, uint64_t *bytes)
{
    *bytes = number(c, 8);
    if (!have(c, *bytes)) return *bytes = 0, "";
    c->at += (size_t)*bytes;
    return (const char *)c->p + c->at - *bytes;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static uint8_t type(cursor *c)
{
    const uint64_t t = number(c, 4);
    if (t >= TN_GGUF_NONE) wrong(c, c->at - 4, "the type of a value must be from 0 to 12", t);
    return (uint8_t)(t % TN_GGUF_NONE);
}

static void skip_items(cursor *c, uint8_t item, uint64_t count)
{
    const uint64_t least = tn__gguf_bytes[item] ? tn__gguf_bytes[item] : 8;
    uint64_t       bytes;
    if (c->is == GOOD && count > (uint64_t)c->size / least)
        wrong(c, c->at - 8, "an array has more items than the file has bytes", count);
    if (tn__gguf_bytes[item]) {
        if (have(c, count * least)) c->at += (size_t)(count * least);
    } else
        for (; count && c->is == GOOD; count--) string(c, &bytes);
}

/* Skips the items of an array, which may be arrays. */
static void skip_array(cursor *c, uint8_t item, uint64_t count)
{
    uint64_t left[TN__GGUF_DEPTH] = {0};
    int      depth = 0;
    if (item != TN_GGUF_ARRAY) skip_items(c, item, count);
    else left[depth++] = count;
    while (depth && c->is == GOOD) {
        if (!left[depth - 1]) {
            depth--;
            continue;
        }
        left[depth - 1]--;
        const uint8_t  inner = type(c);
        const uint64_t n = number(c, 8);
        if (inner != TN_GGUF_ARRAY) skip_items(c, inner, n);
        else if (depth == TN__GGUF_DEPTH) wrong(c, c->at - 8, "arrays may be nested 8 deep", 9);
        else left[depth++] = n;
    }
}

/* Copies a text of the header and appends a NUL. */
static const char *kept(tn_gguf *g, const char *text, uint64_t bytes)
{
    if (!g->filling) return g->strings_room += (size_t)bytes + 1, NULL;
    char *to = g->strings + g->strings_used;
    memcpy(to, text, (size_t)bytes), to[bytes] = 0;
    g->strings_used += (size_t)bytes + 1;
    return to;
}

static void put_pair(tn_gguf *g, cursor *c)
{
    tn__gguf_pair p = {.count = 1};
    uint64_t      bytes;
    const size_t  start = c->at;
    const char   *key = string(c, &bytes);
    if (c->is != GOOD) return;
    if (bytes < 1 || bytes > TN__GGUF_KEY) wrong(c, start, "a key must have 1 to 65535 bytes", bytes);
    else if (tn_utf8_valid(key, (size_t)bytes) < bytes || memchr(key, 0, (size_t)bytes))
        wrong(c, start + 8 + tn_utf8_valid(key, (size_t)bytes), "a key must be UTF-8 without a NUL", 0);
    if (c->is != GOOD) return;
    p.key = kept(g, key, bytes), p.key_bytes = (uint32_t)bytes;
    p.type = p.item = type(c), p.at = c->at;
    if (p.type == TN_GGUF_STRING) {
        const char *text = string(c, &bytes);
        if (c->is == GOOD && !memchr(text, 0, (size_t)bytes) && tn_utf8_valid(text, (size_t)bytes) == bytes)
            p.text = kept(g, text, bytes);
    } else if (p.type == TN_GGUF_ARRAY) {
        p.item = type(c);
        const uint64_t n = number(c, 8);
        p.count = (int64_t)n, p.at = c->at;
        skip_array(c, p.item, n);
    } else if (have(c, tn__gguf_bytes[p.type])) {
        c->at += tn__gguf_bytes[p.type];
        if (p.type == TN_GGUF_BOOL && c->p[p.at] > 1) wrong(c, p.at, "a bool must be 0 or 1", c->p[p.at]);
    }
    if (!g->filling || c->is != GOOD) return;
    g->pairs[g->named] = p;
    if (tn__names_add(&g->keys, (uint32_t)g->named++) < 0) return;
    char shown[TN__QUOTED];
    c->is = BAD;
    tn_raise(TN_EFORMAT, "%s: byte %zu: duplicate key %s", c->label, start, tn__quote(shown, p.key, p.key_bytes, 100));
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

static bool shape(cursor *c, tn_shape *s)
{
    const uint64_t n = number(c, 4);
    if (n > 4) return wrong(c, c->at - 4, "a tensor may have at most 4 dims", n);
    *s = (tn_shape){.n = (int)n};
    for (int d = (int)n - 1; d >= 0; d--) {
        const uint64_t size = number(c, 8);
        if (size > INT64_MAX / 2) return wrong(c, c->at - 8, "a dim must be less than 2^62", size);
        s->d[d] = (int64_t)size;
    }
    return c->is == GOOD;
}

/* The bytes of a tensor; -1: raised. */
static int64_t packed_bytes(cursor *c, const tn_shape *s, uint64_t kind, size_t at)
{
    if (kind >= TN__QUANT_BLOCKS || !tn__quant_blocks[kind].name) return wrong(c, at, "unknown tensor type", kind), -1;
    const tn__quant_block *b = &tn__quant_blocks[kind];
    int64_t                n = 1;
    bool                   fits = true;
    for (int d = 0; d < s->n; d++) fits = fits && tn__mul_i64(n, s->d[d], &n);
    if (!fits || n > INT64_MAX / 512) return wrong(c, at, "a tensor has more than 2^54 elements", kind), -1;
    if (b->values > 1 && (!s->n || s->d[s->n - 1] % b->values)) {
        c->is = BAD;
        tn_raise(TN_EFORMAT, "%s: byte %zu: rows of %s consist of blocks of %d elements, but a row has %lld", c->label,
                 at, b->name, b->values, s->n ? (long long)s->d[s->n - 1] : 1LL);
        return -1;
    }
    return n / b->values * b->bytes;
}

static void put_tensor(tn_gguf *g, cursor *c, int64_t *end)
{
    uint64_t     bytes;
    tn_shape     s;
    const size_t start = c->at;
    const char  *name = string(c, &bytes);
    if (c->is == GOOD && bytes > TN__ST_NAME) wrong(c, start, "a tensor's name must have 1 to 1024 bytes", bytes);
    if (!shape(c, &s)) return;
    const uint64_t kind = number(c, 4), offset = number(c, 8);
    if (c->is != GOOD) return;
    const int64_t size = packed_bytes(c, &s, kind, c->at - 12);
    if (size < 0) return;
    if (offset != (uint64_t)*end) {
        wrong(c, c->at - 8, "a tensor must start at the end of the previous one, rounded up to general.alignment",
              offset);
        return;
    }
    tn__st_entry *e = tn__st_add(g->tensors, name, (size_t)bytes);
    if (!e) {
        c->is = BAD;
        return;
    }
    e->shape = s, e->begin = *end, e->end = *end + size;
    e->element = tn__quant_blocks[kind].element >= 0 ? tn__quant_blocks[kind].element : TN__ELEMENTS + (int)kind;
    if (!tn__add_i64(*end, size + g->align - 1, end)) wrong(c, c->at, "the tensors have more than 2^63 bytes", 0);
    else if (*end > c->size + g->align)
        wrong(c, c->at - 8, "a tensor must not end beyond the end of the file; its offset", offset);
    *end -= *end % g->align;
}

/* ---- the whole header -------------------------------------------------------------------------------------------- */

static void counts(tn_gguf *g, cursor *c)
{
    if (!have(c, 4)) return;
    if (memcmp(c->p, "GGUF", 4) != 0) {
        c->is = BAD;
        tn_raise(TN_EFORMAT, "%s: not a GGUF file: it does not start with 'GGUF'", c->label);
        return;
    }
    c->at = 4;
    const uint64_t version = number(c, 4);
    if (c->is == GOOD && version != 2 && version != 3) {
        c->is = BAD;
        tn_raise(TN_EUNSUPPORTED, "%s: GGUF %s, only little-endian files of versions 2 and 3 are supported", c->label,
                 version == 1       ? "of version 1"
                 : version & 0xffff ? "of an unknown version"
                                    : "in big-endian order");
        return;
    }
    const uint64_t tensors = number(c, 8), pairs = number(c, 8);
    if (tensors > TN__GGUF_TENSORS) wrong(c, 8, "at most 100000 tensors are supported", tensors);
    if (pairs > TN__GGUF_KEYS) wrong(c, 16, "at most 100000 keys are supported", pairs);
    if (c->is == GOOD) have(c, tensors * 24 + pairs * 13); /* each has at least that many bytes */
    g->tensor_count = (int64_t)tensors, g->pair_count = (int64_t)pairs;
}

static void alignment(tn_gguf *g, cursor *c)
{
    static const char key[] = "general.alignment";
    const int64_t     i = g->filling ? tn__names_find(&g->keys, key, sizeof key - 1) : -1;
    g->align = TN__GGUF_ALIGN;
    if (i < 0) return;
    const tn__gguf_pair *p = &g->pairs[i];
    const uint64_t       n = p->type == TN_GGUF_U32 ? tn__little(c->p + p->at, 4) : 0;
    if (!n || n > TN__GGUF_MOST_ALIGN || (n & (n - 1)))
        wrong(c, p->at, "general.alignment must be a u32, a power of 2 and at most 2^20", n);
    else g->align = (int64_t)n;
}

/* Tensor offsets are checked when the alignment is known, after the pairs have been filled in. */
static state parse(tn_gguf *g, cursor *c)
{
    int64_t end = 0;
    g->named = 0;
    counts(g, c);
    for (int64_t i = 0; i < g->pair_count && c->is == GOOD; i++) put_pair(g, c);
    if (c->is == GOOD) alignment(g, c);
    if (!g->filling) return c->is;
    for (int64_t i = 0; i < g->tensor_count && c->is == GOOD; i++) put_tensor(g, c, &end);
    if (c->is != GOOD) return c->is;
    int64_t last = 0;
    if (g->tensors->count) last = g->tensors->entries[g->tensors->count - 1].end;
    g->tensors->base = ((int64_t)c->at + g->align - 1) / g->align * g->align;
    if (g->tensors->count && g->tensors->base + last > c->size) {
        tn_raise(TN_EFORMAT, "%s: its tensors end at byte %lld, but the file has %lld: it is truncated", c->label,
                 (long long)(g->tensors->base + last), (long long)c->size);
        return BAD;
    }
    if (c->size > g->tensors->base + end) {
        tn_raise(TN_EFORMAT, "%s: %lld unexpected bytes after the tensors", c->label,
                 (long long)(c->size - g->tensors->base - end));
        return BAD;
    }
    return GOOD;
}

static const char *name_of_pair(const void *owner, uint32_t i, size_t *bytes)
{
    const tn__gguf_pair *p = ((const tn_gguf *)owner)->pairs + i;
    *bytes = p->key_bytes;
    return p->key;
}

static bool tables(tn_gguf *g)
{
    const uint32_t slots = tn__names_slots((uint32_t)g->pair_count);
    g->keys = (tn__names){.mask = slots - 1, .name = name_of_pair, .owner = g};
    tn__names_seed(&g->keys);
    return (g->keys.slot = tn__mem_zeroed(slots * sizeof *g->keys.slot)) &&
           (g->pairs = tn__mem_get((size_t)g->pair_count * sizeof *g->pairs)) &&
           (g->strings = tn__mem_get(g->strings_room));
}

/* Skips the tensors, and counts the bytes of their names. */
static state walk(const tn_gguf *g, cursor c, size_t *names)
{
    uint64_t bytes;
    tn_shape s;
    *names = 0;
    for (int64_t i = 0; i < g->tensor_count && c.is == GOOD; i++) {
        string(&c, &bytes);
        *names += (size_t)bytes;
        if (shape(&c, &s)) number(&c, 4), number(&c, 8);
    }
    return c.is;
}

bool tn__gguf_header(tn_gguf *g)
{
    const tn__source *s = &g->tensors->source;
    cursor            c = {.size = s->size, .label = g->tensors->label};
    size_t            names = 0, room = s->memory ? (size_t)s->size : 1 << 20;
    for (state is = SHORT; is != GOOD;) { /* until the whole header has been read */
        const size_t n = (int64_t)room < s->size ? room : (size_t)s->size;
        if (room > TN__GGUF_HEADER && !s->memory)
            return tn_raise_false(TN_EUNSUPPORTED, "%s: a header of more than %d bytes", c.label, TN__GGUF_HEADER);
        if (g->owned) tn__mem_put(g->header, g->header_bytes);
        g->header = NULL, g->owned = !s->memory, g->header_bytes = n, g->strings_room = 1;
        if (!(g->header = s->memory ? (unsigned char *)(uintptr_t)s->memory : tn__mem_get(n)) ||
            (g->owned && !tn__source_read(s, g->header, 0, n)))
            return false;
        c.p = g->header, c.n = n, c.at = 0, c.is = GOOD;
        is = parse(g, &c);
        if (is == GOOD) is = walk(g, c, &names);
        if (is == BAD) return false;
        room *= 2;
    }
    if (!tn__st_reserve(g->tensors, (uint32_t)g->tensor_count, names) || !tables(g)) return false;
    g->filling = true;
    c.at = 0;
    return parse(g, &c) == GOOD && tn__st_index_names(g->tensors);
}
