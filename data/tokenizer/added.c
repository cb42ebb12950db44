/* added.c — the table of added tokens: special ones, and others that are matched in the text before the model's. */
#include "data/tokenizer/tokenizer_private.h"
#include "core/base/toolbox.h"

#include <string.h>

tn__added *tn__added_as(const tn_tokenizer *t, int32_t id)
{
    for (uint32_t i = 0; i < t->added.n; i++)
        if (t->added.token[i].id == id) return t->added.token + i;
    return NULL;
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
    t->added.token[t->added.n++] = a;
    if (a.outside && a.id < t->added.outside) t->added.outside = a.id;
    return true;
}

bool tn__is_outside(const tn_tokenizer *t, int64_t id)
{
    const tn__added *a = id >= t->added.outside ? tn__added_as(t, (int32_t)id) : NULL;
    return a && a->outside;
}

void tn__added_index(tn_tokenizer *t)
{
    t->added.any_normalized = false;
    memset(t->added.first, 0, sizeof t->added.first);
    for (uint32_t i = 0; i < t->added.n; i++) {
        size_t      n;
        const char *text = tn__strings_text(&t->vocab, (uint32_t)t->added.token[i].id, &n);
        t->added.first[t->added.token[i].normalized][(unsigned char)*text] = true;
        t->added.any_normalized |= t->added.token[i].normalized;
    }
}
