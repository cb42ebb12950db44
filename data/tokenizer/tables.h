/* tables.h — data structures of tokenizers: the table of merges, tries of tokens, compiled rules for characters.
 * Private. */
#ifndef TENON_DATA_TOKENIZER_TABLES_H
#define TENON_DATA_TOKENIZER_TABLES_H

#include "data/text/data_private.h"

/* ---- merges ------------------------------------------------------------------------------------------------------ */

enum { TN__VOCAB_MAX = 10000000 }; /* maximum number of tokens, of merges */

typedef struct {    /* maps pairs of tokens to ranks, and ranks to merged tokens */
    uint64_t *pair; /* (left << 32 | right) + 1; 0: a free slot */
    uint32_t *rank;
    uint32_t  mask, n;
    uint64_t  seed;
    int32_t  *becomes;
    int64_t   room;
    uint32_t *order; /* of SentencePiece: merges of equal score have one order, so that the leftmost is first; NULL:
                        the order is the rank */
    int64_t   order_room;
} tn__merges;
bool tn__merges_room(tn__merges *m, size_t n);                             /* n: in all */
bool tn__merges_put(tn__merges *m, int32_t a, int32_t b, int32_t becomes); /* false: the pair has a merge */
void tn__merges_free(tn__merges *m);

static inline uint64_t tn__mix(uint64_t x)
{
    x ^= x >> 32, x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32, x *= 0xd6e8feb86659fd93u;
    return x ^ x >> 32;
}

/* Returns the rank of a pair, or -1. */
static inline int64_t tn__merge_rank(const tn__merges *m, int32_t a, int32_t b)
{
    if (!m->n) return -1;
    const uint64_t key = ((uint64_t)(uint32_t)a << 32 | (uint32_t)b) + 1;
    for (uint32_t at = (uint32_t)tn__mix(key ^ m->seed) & m->mask;; at = (at + 1) & m->mask) {
        if (m->pair[at] == key) return m->rank[at];
        if (!m->pair[at]) return -1;
    }
}

/* ---- tries ------------------------------------------------------------------------------------------------------- */

/* Texts with ids, found as prefixes of another text. */
typedef struct {
    int32_t child; /* index of the first child; the children are adjacent, in the order of their bytes */
    int32_t value; /* -1: no text ends here */
    int16_t children;
    uint8_t byte;
} tn__trie_node;
typedef struct {
    tn__trie_node *node; /* 0: the root; NULL: empty */
    int64_t        room;
    int32_t        n;
} tn__trie;
/* Builds x of the tokens with these ids, none of which is empty. Reorders id. */
bool tn__trie_build(tn__trie *x, const tn__strings *tokens, uint32_t *id, size_t n);
void tn__trie_free(tn__trie *x);

/* Returns the child of a node by a byte, or -1. */
static inline int32_t tn__trie_step(const tn__trie *x, int32_t at, unsigned char byte)
{
    const tn__trie_node *node = x->node + at, *first = x->node + node->child;
    int32_t              low = 0, high = node->children;
    while (low < high) {
        const int32_t middle = (low + high) / 2;
        if (first[middle].byte < byte) low = middle + 1;
        else high = middle;
    }
    return low < node->children && first[low].byte == byte ? node->child + low : -1;
}
/* Returns the length of the longest text that is a prefix of the n bytes, and its id in *value; 0: none. */
size_t tn__trie_longest(const tn__trie *x, const char *text, size_t n, int32_t *value);

/* ---- rules for characters ---------------------------------------------------------------------------------------- */

typedef struct { /* compiled rules for characters: a double array as in Darts, and the texts of its values */
    uint32_t *unit;
    size_t    units;
    char     *text; /* ended by a NUL */
    size_t    bytes;
    bool      plain[128]; /* true: unchanged before another ASCII character */
} tn__charsmap;
bool tn__charsmap_read(tn__charsmap *m, const char *caller, const void *blob, size_t bytes);
bool tn__charsmap_blob(const tn__charsmap *m, tn_string *to); /* appends it as it was read; nothing if empty */
void tn__charsmap_free(tn__charsmap *m);
/* Returns the replacement of the longest (or else the shortest) rule that matches a prefix of the n bytes, and the
 * prefix's length in *length; NULL: none. */
const char *tn__charsmap_find(const tn__charsmap *m, const char *text, size_t n, bool longest, size_t *length);

#endif
