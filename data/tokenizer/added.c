/* added.c — the table of added tokens: special ones, and others that are matched in the text before the model's. */
#include "data/tokenizer/tokenizer_private.h"
#include "core/base/toolbox.h"

#include <string.h>

/* The index of the first token whose id is not below; they are in the order of their ids. */
static uint32_t place_of(const tn_tokenizer *t, int32_t id)
{
    uint32_t from = 0, to = t->added.n;
    while (from < to) {
        const uint32_t middle = from + (to - from) / 2;
        if (t->added.token[middle].id < id) from = middle + 1;
        else to = middle;
    }
    return from;
}

tn__added *tn__added_as(const tn_tokenizer *t, int32_t id)
{
    const uint32_t i = place_of(t, id);
    return i < t->added.n && t->added.token[i].id == id ? t->added.token + i : NULL;
}

bool tn__tokenizer_add(tn_tokenizer *t, tn__added a)
{
    tn__added *known = tn__added_as(t, a.id);
    if (known) {
        a.outside |= known->outside;
        return *known = a, true;
    }
    if (t->added.n >= TN__ADDED_MAX) return tn_raise_false(TN_EUNSUPPORTED, "more than %d added tokens", TN__ADDED_MAX);
    if (!tn__grown((void *)&t->added.token, &t->added.room, (int64_t)t->added.n + 1, sizeof *t->added.token))
        return false;
    tn__added *at = t->added.token + place_of(t, a.id);
    memmove(at + 1, at, (size_t)(t->added.token + t->added.n++ - at) * sizeof *at);
    *at = a;
    if (a.outside && a.id < t->added.outside) t->added.outside = a.id;
    return true;
}

bool tn__is_outside(const tn_tokenizer *t, int64_t id)
{
    const tn__added *a = id >= t->added.outside ? tn__added_as(t, (int32_t)id) : NULL;
    return a && a->outside;
}

bool tn__added_index(tn_tokenizer *t)
{
    const size_t bytes = ((size_t)t->added.n + 1) * sizeof(uint32_t);
    uint32_t    *id = tn__mem_get(bytes);
    bool         ok = id;
    memset(t->added.first, 0, sizeof t->added.first);
    for (int normalized = 0; ok && normalized < 2; normalized++) {
        size_t n = 0, length;
        for (uint32_t i = 0; i < t->added.n; i++) {
            const tn__added *a = t->added.token + i;
            const char      *text = tn__strings_text(&t->vocab, (uint32_t)a->id, &length);
            if (a->hidden || a->normalized != normalized || !length) continue;
            id[n++] = (uint32_t)a->id;
            t->added.first[normalized][(unsigned char)*text] = true;
        }
        t->added.any_normalized = n > 0;
        ok = tn__trie_build(&t->added.text[normalized], &t->vocab, id, n);
    }
    tn__mem_put(id, bytes);
    return ok;
}
