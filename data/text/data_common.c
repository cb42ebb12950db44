/* data_common.c — growing arrays, code points, indexed strings and indexed sequences. See data_private.h. */
#include "data/text/data_private.h"
#include "core/base/toolbox.h"
#include "data/text/unicode.h"

/* ---- growing arrays ---------------------------------------------------------------------------------------------- */

bool tn__grown(void *p, int64_t *room, int64_t need, size_t size)
{
    if (need <= *room) return true;
    int64_t more = tn__max_i64(need, *room < INT64_MAX / 2 ? 2 * *room : need), bytes;
    more = tn__max_i64(more, 16);
    if (!tn__mul_i64(more, (int64_t)size, &bytes)) bytes = INT64_MAX; /* the allocator rejects it and raises an error */
    void *old = *(void **)p, *q = tn__mem_get((size_t)bytes);
    if (!q) return false;
    if (old) memcpy(q, old, (size_t)*room * size);
    tn__mem_put(old, (size_t)*room * size);
    *(void **)p = q;
    *room = more;
    return true;
}

bool tn__string_room(tn_string *s, size_t more)
{
    int64_t room = (int64_t)s->room, need;
    if (!tn__add_i64((int64_t)s->bytes, more < INT64_MAX ? (int64_t)more + 1 : INT64_MAX, &need)) need = INT64_MAX;
    if (!tn__grown((void *)&s->at, &room, need, 1)) return false;
    s->room = (size_t)room;
    return true;
}

tn_status tn_string_add(tn_string *s, tn_text more)
{
    if (tn__blocked()) return tn__self.error;
    if (!s || (more.bytes && !more.at)) return tn_raise(TN_EINVAL, "tn_string_add: %s is NULL", s ? "the text" : "s");
    if (!tn__string_room(s, more.bytes)) return tn__self.error;
    if (more.bytes) memcpy(s->at + s->bytes, more.at, more.bytes);
    s->bytes += more.bytes;
    s->at[s->bytes] = 0;
    return TN_OK;
}

void tn_string_free(tn_string *s)
{
    if (!s) return;
    tn__mem_put(s->at, s->room);
    *s = (tn_string){0};
}

bool tn__ids_room(tn_ids *s, int64_t more)
{
    int64_t need;
    if (!tn__add_i64(s->n, more, &need)) need = INT64_MAX;
    return tn__grown((void *)&s->at, &s->room, need, sizeof *s->at);
}

tn_status tn_ids_add(tn_ids *s, int32_t id)
{
    if (tn__blocked()) return tn__self.error;
    if (!s) return tn_raise(TN_EINVAL, "tn_ids_add: s is NULL");
    if (!tn__ids_room(s, 1)) return tn__self.error;
    s->at[s->n++] = id;
    return TN_OK;
}

void tn_ids_free(tn_ids *s)
{
    if (!s) return;
    tn__mem_put(s->at, (size_t)s->room * sizeof *s->at);
    *s = (tn_ids){0};
}

/* ---- code points ------------------------------------------------------------------------------------------------- */

uint32_t tn__point(const char *text, size_t n, size_t *bytes)
{
    const unsigned char *p = (const unsigned char *)text;
    *bytes = 1;
    if (p[0] < 0x80) return p[0];
    size_t   len = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    uint32_t c = p[0] & (0xffu >> (len + 1));
    if (p[0] < 0xc2 || p[0] > 0xf4 || n < len) return 0x110000u + p[0];
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80) return 0x110000u + p[0];
        c = c << 6 | (p[i] & 0x3fu);
    }
    if ((len == 3 && (c < 0x800 || (c >= 0xd800 && c < 0xe000))) || (len == 4 && (c < 0x10000 || c > 0x10ffff)))
        return 0x110000u + p[0];
    *bytes = len;
    return c;
}

bool tn__points_add(tn__points *to, uint32_t c)
{
    if (!tn__grown((void *)&to->at, &to->room, to->n + 1, sizeof *to->at)) return false;
    to->at[to->n++] = c;
    return true;
}

bool tn__points_decode(tn__points *to, tn_text text)
{
    to->n = 0;
    if (!tn__grown((void *)&to->at, &to->room, (int64_t)text.bytes, sizeof *to->at)) return false;
    for (size_t at = 0, len; at < text.bytes; at += len)
        to->at[to->n++] = tn__point(text.at + at, text.bytes - at, &len);
    return true;
}

void tn__points_free(tn__points *p)
{
    tn__mem_put(p->at, (size_t)p->room * sizeof *p->at);
    *p = (tn__points){0};
}

bool tn__is_blank(uint32_t c) { return tn__is_space(c) || (c >= 0x1c && c <= 0x1f); }

/* ---- strings by index -------------------------------------------------------------------------------------------- */

static const char *string_name(const void *owner, uint32_t i, size_t *bytes)
{
    const tn__strings *s = owner;
    *bytes = (size_t)(s->start[i + 1] - s->start[i]) - 1;
    return s->text + s->start[i];
}

int64_t tn__strings_find(const tn__strings *s, const char *text, size_t bytes)
{
    tn__names names = s->names; /* s may have moved in memory */
    names.owner = s;
    return tn__names_find(&names, text, bytes);
}

static bool more_slots(tn__strings *s)
{
    uint32_t slots = tn__names_slots(s->n < 32 ? 64 : s->n * 2);
    if (s->n >= UINT32_MAX / 8) return tn_raise_false(TN_ENOMEM, "more than %u strings", UINT32_MAX / 8);
    uint32_t *slot = tn__mem_zeroed(slots * sizeof *slot);
    if (!slot) return false;
    if (s->names.slot) tn__mem_put(s->names.slot, ((size_t)s->names.mask + 1) * sizeof *slot);
    else tn__names_seed(&s->names);
    s->names.slot = slot, s->names.mask = slots - 1, s->names.name = string_name, s->names.owner = s;
    for (uint32_t i = 0; i < s->n; i++) tn__names_add(&s->names, i);
    return true;
}

int64_t tn__strings_add(tn__strings *s, const char *text, size_t bytes)
{
    int64_t found = tn__strings_find(s, text, bytes), need;
    if (found >= 0) return found;
    if ((!s->names.slot || tn__names_slots(s->n + 1) > s->names.mask + 1) && !more_slots(s)) return -1;
    if (!tn__add_i64(s->bytes, (int64_t)bytes + 1, &need)) need = INT64_MAX;
    if (!tn__grown((void *)&s->text, &s->text_room, need, 1) ||
        !tn__grown((void *)&s->start, &s->start_room, (int64_t)s->n + 2, sizeof *s->start))
        return -1;
    if (bytes) memcpy(s->text + s->bytes, text, bytes);
    s->text[need - 1] = 0;
    s->start[s->n] = s->bytes;
    s->start[s->n + 1] = s->bytes = need;
    s->names.owner = s;
    tn__names_add(&s->names, s->n);
    return s->n++;
}

tn_text tn__strings_at(const tn__strings *s, int64_t i)
{
    return (tn_text){s->text + s->start[i], (size_t)(s->start[i + 1] - s->start[i]) - 1};
}

void tn__strings_free(tn__strings *s)
{
    tn__mem_put(s->text, (size_t)s->text_room);
    tn__mem_put(s->start, (size_t)s->start_room * sizeof *s->start);
    if (s->names.slot) tn__mem_put(s->names.slot, ((size_t)s->names.mask + 1) * sizeof *s->names.slot);
    *s = (tn__strings){0};
}

/* ---- sequences by index ------------------------------------------------------------------------------------------ */

static uint32_t hashed(uint64_t key, uint64_t seed)
{
    key = (key ^ seed) * 0x9e3779b97f4a7c15u;
    key = (key ^ key >> 29) * 0xbf58476d1ce4e5b9u;
    return (uint32_t)(key >> 32);
}

static bool grams_grow(tn__grams *g)
{
    uint32_t slots = g->slots ? g->slots * 2 : 256;
    if (g->n >= UINT32_MAX / 4) return tn_raise_false(TN_ENOMEM, "a text with more than %u n-grams", UINT32_MAX / 4);
    uint32_t *slot = tn__mem_zeroed(slots * sizeof *slot);
    if (!slot) return false;
    if (!g->seed) {
        tn__names names;
        tn__names_seed(&names);
        g->seed = names.seed[0] | 1;
    }
    for (uint32_t i = 1; i <= g->n; i++) {
        uint32_t at = hashed(g->gram[i].key, g->seed) & (slots - 1);
        while (slot[at]) at = (at + 1) & (slots - 1);
        slot[at] = i;
    }
    tn__mem_put(g->slot, g->slots * sizeof *slot);
    g->slot = slot, g->slots = slots;
    return true;
}

uint32_t tn__grams_add(tn__grams *g, uint32_t parent, uint32_t symbol)
{
    if ((!g->slots || g->n >= g->slots / 2) && !grams_grow(g)) return 0;
    uint64_t key = (uint64_t)parent << 32 | symbol;
    uint32_t at = hashed(key, g->seed) & (g->slots - 1);
    for (; g->slot[at]; at = (at + 1) & (g->slots - 1))
        if (g->gram[g->slot[at]].key == key) return g->slot[at];
    if (!tn__grown((void *)&g->gram, &g->gram_room, (int64_t)g->n + 2, sizeof *g->gram)) return 0;
    g->gram[++g->n] = (tn__gram){.key = key};
    return g->slot[at] = g->n;
}

void tn__grams_free(tn__grams *g)
{
    tn__mem_put(g->gram, (size_t)g->gram_room * sizeof *g->gram);
    tn__mem_put(g->slot, g->slots * sizeof *g->slot);
    *g = (tn__grams){0};
}
