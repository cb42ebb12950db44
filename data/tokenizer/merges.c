/* merges.c — the table of merges: pairs of tokens, the token that each pair becomes, and their order. */
#include "data/tokenizer/tokenizer_private.h"
#include "core/base/toolbox.h"

#include <string.h>

bool tn__merges_room(tn__merges *m, size_t n)
{
    if (n > TN__VOCAB_MAX) return tn_raise_false(TN_EUNSUPPORTED, "more than %d merges", TN__VOCAB_MAX);
    const size_t slots = tn__names_slots((uint32_t)n);
    m->pair = tn__mem_zeroed(slots * sizeof *m->pair);
    m->rank = m->pair ? tn__mem_get(slots * sizeof *m->rank) : NULL;
    if (!m->rank) {
        tn__mem_put(m->pair, slots * sizeof *m->pair);
        return m->pair = NULL, false;
    }
    m->mask = (uint32_t)slots - 1;
    tn__names seed;
    tn__names_seed(&seed);
    m->seed = seed.seed[0] ^ seed.seed[1];
    return tn__grown((void *)&m->becomes, &m->room, (int64_t)n, sizeof *m->becomes);
}

bool tn__merges_put(tn__merges *m, int32_t a, int32_t b, int32_t becomes)
{
    const uint64_t key = ((uint64_t)(uint32_t)a << 32 | (uint32_t)b) + 1;
    uint32_t       at = (uint32_t)tn__mix(key ^ m->seed) & m->mask;
    for (; m->pair[at]; at = (at + 1) & m->mask)
        if (m->pair[at] == key) return false;
    m->pair[at] = key, m->rank[at] = m->n;
    m->becomes[m->n++] = becomes;
    return true;
}

bool tn__merge_texts(tn_tokenizer *t, const char *caller, const char *a, size_t na, const char *b, size_t nb)
{
    char          qa[TN__QUOTED], qb[TN__QUOTED];
    const int64_t left = tn__model_find(t, a, na), right = tn__model_find(t, b, nb);
    const size_t  skip = t->prefix_bytes;
    tn_string     both = {0};
    if (skip > nb || memcmp(b, t->prefix, skip) != 0)
        return tn_raise_false(TN_EUNSUPPORTED,
                              "%s: merge %u of %s and %s: the second starts without the prefix "
                              "(continuing_subword_prefix) of a token inside a word",
                              caller, t->merges.n + 1, tn__quote(qa, a, na, 40), tn__quote(qb, b, nb, 40));
    if (tn_string_add(&both, (tn_text){a, na}) != TN_OK ||
        tn_string_add(&both, (tn_text){b + skip, nb - skip}) != TN_OK)
        return tn_string_free(&both), false;
    const int64_t becomes = tn__model_find(t, both.at, both.bytes);
    tn_string_free(&both);
    if (left < 0 || right < 0 || becomes < 0)
        return tn_raise_false(TN_EFORMAT, "%s: merge %u of %s and %s: %s is not in the vocabulary", caller,
                              t->merges.n + 1, tn__quote(qa, a, na, 40), tn__quote(qb, b, nb, 40),
                              left < 0    ? "the first"
                              : right < 0 ? "the second"
                                          : "the two together");
    if (tn__merges_put(&t->merges, (int32_t)left, (int32_t)right, (int32_t)becomes)) return true;
    return tn_raise_false(TN_EFORMAT, "%s: duplicate merge of %s and %s", caller, tn__quote(qa, a, na, 40),
                          tn__quote(qb, b, nb, 40));
}

void tn__merges_free(tn__merges *m)
{
    if (m->pair) {
        tn__mem_put(m->pair, ((size_t)m->mask + 1) * sizeof *m->pair);
        tn__mem_put(m->rank, ((size_t)m->mask + 1) * sizeof *m->rank);
    }
    tn__mem_put(m->becomes, (size_t)m->room * sizeof *m->becomes);
    tn__mem_put(m->order, (size_t)m->order_room * sizeof *m->order);
}
