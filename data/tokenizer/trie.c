/* trie.c — finds texts that are prefixes of another text: the tree of their bytes, level by level. A node's children
 * are adjacent, so that a step is a binary search over few bytes. */
#include "data/tokenizer/tokenizer_private.h"
#include "core/base/toolbox.h"

#include <string.h>

static bool before(const void *owner, uint32_t a, uint32_t b)
{
    size_t      na, nb;
    const char *x = tn__strings_text(owner, a, &na), *y = tn__strings_text(owner, b, &nb);
    const int   order = memcmp(x, y, na < nb ? na : nb);
    return order ? order < 0 : na < nb;
}

typedef struct { /* the sorted texts from low to high share the node's first `depth` bytes */
    uint32_t low, high;
} range;

static bool grow(tn__trie *x, range **ranges, int64_t *room, int32_t n)
{
    return tn__grown((void *)&x->node, &x->room, n, sizeof *x->node) &&
           tn__grown((void *)ranges, room, n, sizeof **ranges);
}

/* Adds the children of the node `at`, whose texts share their first `depth` bytes. */
static bool spread(tn__trie *x, range **ranges, int64_t *room, const tn__strings *pieces, const uint32_t *id,
                   int32_t at, size_t depth)
{
    uint32_t       low = (*ranges)[at].low;
    const uint32_t high = (*ranges)[at].high;
    size_t         n;
    tn__strings_text(pieces, id[low], &n);
    if (n == depth) x->node[at].value = (int32_t)id[low++];
    x->node[at].child = x->n;
    while (low < high) {
        const unsigned char byte = (unsigned char)tn__strings_text(pieces, id[low], &n)[depth];
        uint32_t            end = low + 1;
        while (end < high && (unsigned char)tn__strings_text(pieces, id[end], &n)[depth] == byte) end++;
        if (x->n == INT32_MAX) return tn_raise_false(TN_EUNSUPPORTED, "the tokens have too many bytes");
        if (!grow(x, ranges, room, x->n + 1)) return false;
        x->node[x->n] = (tn__trie_node){.value = -1, .byte = byte};
        (*ranges)[x->n++] = (range){low, end};
        x->node[at].children++;
        low = end;
    }
    return true;
}

bool tn__trie_build(tn__trie *x, const tn__strings *pieces, uint32_t *id, size_t n)
{
    range  *ranges = NULL;
    int64_t room = 0;
    x->n = 0;
    if (!n) return true;
    tn__sort(id, n, before, pieces);
    bool ok = grow(x, &ranges, &room, 1);
    if (ok) x->node[0] = (tn__trie_node){.value = -1}, ranges[0] = (range){0, (uint32_t)n}, x->n = 1;
    for (int32_t at = 0, end = 1, depth = 0; ok && at < x->n; at++) {
        if (at == end) end = x->n, depth++;
        ok = spread(x, &ranges, &room, pieces, id, at, (size_t)depth);
    }
    tn__mem_put(ranges, (size_t)room * sizeof *ranges);
    return ok;
}

void tn__trie_free(tn__trie *x)
{
    tn__mem_put(x->node, (size_t)x->room * sizeof *x->node);
    *x = (tn__trie){0};
}

size_t tn__trie_longest(const tn__trie *x, const char *text, size_t n, int32_t *value)
{
    size_t  best = 0;
    int32_t at = 0;
    for (size_t i = 0; x->n && i < n && (at = tn__trie_step(x, at, (unsigned char)text[i])) >= 0; i++)
        if (x->node[at].value >= 0) best = i + 1, *value = x->node[at].value;
    return best;
}
