/* lexicon.c — words with counts and indices, with fast lookup: training looks up each word of a text in each epoch. A
 * slot stores 32 bits of the hash, so that a lookup nearly always compares the letters of one word only. */
#include "extras/vectors/vectors_private.h"
#include "core/base/toolbox.h"

static uint64_t load_some(const char *p, size_t n) /* n < 8 */
{
    uint64_t x = 0;
    memcpy(&x, p, n);
    return x;
}

static uint64_t fold(uint64_t a, uint64_t b)
{
    __extension__ const unsigned __int128 p = (unsigned __int128)a * b;
    return (uint64_t)p ^ (uint64_t)(p >> 64);
}

/* Hashes eight bytes at a time by a 128-bit product, folded; seeded, so that a text cannot be made to collide. */
static uint64_t hash_of(uint64_t seed, const char *p, size_t n)
{
    uint64_t h = seed ^ n * 0x9e3779b97f4a7c15u, word;
    for (; n >= 8; p += 8, n -= 8) {
        memcpy(&word, p, 8);
        h = fold(h ^ word, 0xa0761d6478bd642fu);
    }
    return fold(h ^ load_some(p, n), 0xe7037ed1a0b428dbu ^ seed);
}

static struct tn__lexicon_slot *probe(const tn__lexicon *x, uint64_t hash, const char *text, size_t bytes)
{
    const uint64_t mask = x->slots - 1;
    for (uint64_t at = hash & mask;; at = (at + 1) & mask) {
        struct tn__lexicon_slot *s = x->slot + at;
        if (!s->word || !x->words.start) return s;
        if (s->hash != (uint32_t)(hash >> 32)) continue;
        size_t      n;
        const char *word = tn__strings_text(&x->words, s->word - 1, &n);
        if (n == bytes && !memcmp(word, text, n)) return s;
    }
}

int64_t tn__lexicon_find(const tn__lexicon *x, const char *text, size_t bytes)
{
    return x->slots ? (int64_t)probe(x, hash_of(x->seed, text, bytes), text, bytes)->word - 1 : -1;
}

static bool rehash(tn__lexicon *x, uint64_t slots)
{
    struct tn__lexicon_slot *fresh = tn__mem_zeroed(slots * sizeof *fresh);
    if (!fresh) return false;
    tn__names names;
    if (!x->seed) tn__names_seed(&names), x->seed = names.seed[0] ^ tn__splitmix(names.seed[1]);
    tn__mem_put(x->slot, x->slots * sizeof *x->slot);
    x->slot = fresh, x->slots = slots;
    for (uint32_t i = 0; i < x->words.n; i++) {
        size_t         n;
        const char    *word = tn__strings_text(&x->words, i, &n);
        const uint64_t h = hash_of(x->seed, word, n);
        *probe(x, h, word, n) = (struct tn__lexicon_slot){(uint32_t)(h >> 32), i + 1};
    }
    return true;
}

/* Appends a string without using tn__strings' own hash table. */
static bool add_string(tn__strings *s, const char *text, size_t bytes)
{
    if (s->n >= UINT32_MAX / 8) return tn_raise_false(TN_ENOMEM, "more than %u different words", UINT32_MAX / 8);
    const int64_t need = s->bytes + (int64_t)bytes + 1;
    if (!tn__grown((void *)&s->text, &s->text_room, need, 1) ||
        !tn__grown((void *)&s->start, &s->start_room, (int64_t)s->n + 2, sizeof *s->start))
        return false;
    memcpy(s->text + s->bytes, text, bytes);
    s->text[need - 1] = 0;
    s->start[s->n++] = s->bytes;
    s->start[s->n] = s->bytes = need;
    return true;
}

bool tn__lexicon_count(tn__lexicon *x, const char *text, size_t bytes, int64_t times)
{
    if ((uint64_t)x->words.n * 2 >= x->slots && !rehash(x, x->slots ? x->slots * 2 : 1 << 12)) return false;
    const uint64_t           h = hash_of(x->seed, text, bytes);
    struct tn__lexicon_slot *s = probe(x, h, text, bytes);
    if (!s->word || !x->count) {
        if (!tn__grown((void *)&x->count, &x->count_room, (int64_t)x->words.n + 1, sizeof *x->count) ||
            !add_string(&x->words, text, bytes))
            return false;
        x->count[x->words.n - 1] = 0;
        *s = (struct tn__lexicon_slot){(uint32_t)(h >> 32), x->words.n};
    }
    x->count[s->word - 1] += times;
    x->total += times;
    return true;
}

/* ---- fewer words ------------------------------------------------------------------------------------------------- */

/* Keeps the words listed in `order`, in that order. */
static bool reorder(tn__lexicon *x, const uint32_t *order, uint32_t n)
{
    tn__lexicon y = {.seed = x->seed, .lines = x->lines, .sum = x->sum};
    bool        done = rehash(&y, 1 << 12);
    for (uint32_t i = 0; done && i < n; i++) {
        size_t      bytes;
        const char *word = tn__strings_text(&x->words, order[i], &bytes);
        done = tn__lexicon_count(&y, word, bytes, x->count[order[i]]);
    }
    tn__lexicon      *old = done ? x : &y;
    const tn__lexicon made = y;
    tn__lexicon_free(old);
    if (done) *x = made;
    return done;
}

static bool more_frequent(const void *owner, uint32_t a, uint32_t b)
{
    const tn__lexicon *x = owner;
    return x->count[a] != x->count[b] ? x->count[a] > x->count[b] : a < b;
}

static bool remove_rare(tn__lexicon *x, int64_t min_count, bool sorted)
{
    if (!x->words.start || !x->count) return true; /* no words */
    const size_t bytes = ((size_t)x->words.n + 1) * sizeof(uint32_t);
    uint32_t    *order = tn__mem_get(bytes), n = 0;
    if (!order) return false;
    for (uint32_t i = 0; i < x->words.n; i++)
        if (x->count[i] >= min_count) order[n++] = i;
    if (sorted) tn__sort(order, n, more_frequent, x);
    const bool done = reorder(x, order, n);
    tn__mem_put(order, bytes);
    return done;
}

bool tn__lexicon_trim(tn__lexicon *x, int64_t min_count) { return remove_rare(x, min_count, true); }

void tn__lexicon_free(tn__lexicon *x)
{
    tn__strings_free(&x->words);
    tn__mem_put(x->count, (size_t)x->count_room * sizeof *x->count);
    tn__mem_put(x->slot, x->slots * sizeof *x->slot);
    *x = (tn__lexicon){0};
}

/* ---- counting ---------------------------------------------------------------------------------------------------- */

enum { BLOCK = 1 << 20 };

/* Counts the complete words; returns the number of bytes of a last word that may continue. */
static int64_t count_block(tn__lexicon *x, const char *p, int64_t n, bool end)
{
    int64_t at = 0;
    while (at < n) {
        while (at < n && tn__is_gap(p[at])) x->lines += p[at++] == '\n';
        const int64_t from = at;
        while (at < n && !tn__is_gap(p[at])) at++;
        if (at == n && !end) return n - from;
        if (at > from && at - from <= TN__WORD_MAX && !tn__lexicon_count(x, p + from, (size_t)(at - from), 1)) break;
    }
    return 0;
}

bool tn__lexicon_read(tn__lexicon *x, const char *who, const char *path, int64_t most)
{
    char       label[TN__LABEL];
    tn__source s;
    if (!tn__source_open(&s, tn__label(label, who, path), path)) return false;
    char   *buffer = tn__mem_get(BLOCK);
    int64_t left = 0, least = 1;
    x->sum = tn__fnv1a_i64(x->sum, s.size);
    for (int64_t at = 0; buffer && at < s.size && tn__self.error == TN_OK;) {
        if (left > BLOCK / 2) left = TN__WORD_MAX + 1; /* already too long to be a word */
        const int64_t n = tn__min_i64(s.size - at, BLOCK - left);
        if (!tn__source_read(&s, buffer + left, at, (size_t)n)) break;
        at += n;
        x->sum = tn__fnv1a_words(x->sum, buffer + left, (size_t)n);
        const int64_t have = left + n;
        left = count_block(x, buffer, have, at == s.size);
        memmove(buffer, buffer + have - left, (size_t)left);
        while (tn__self.error == TN_OK && x->words.n > most && remove_rare(x, ++least, false)) continue;
    }
    tn__mem_put(buffer, BLOCK);
    tn__source_close(&s);
    return tn__self.error == TN_OK;
}
