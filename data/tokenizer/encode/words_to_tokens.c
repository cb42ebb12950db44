/* words_to_tokens.c — encodes a word: WordPiece (the longest token that matches, repeatedly) and byte-pair encoding
 * (merges the pair of the lowest rank, the leftmost first, until no pair has a rank). Byte-pair encoding keeps its
 * pairs in a heap, so that a word of n characters takes O(n log n) steps. Frequent words are cached. */
#include "data/tokenizer/encode/encoding_private.h"
#include "core/base/toolbox.h"

#include <string.h>

/* ---- cache of words ---------------------------------------------------------------------------------------------- */

enum { BEFORE_CACHE = 512 }; /* words encoded before the cache is allocated */

static tn__cached_word *cache_slot(tn__encoding *s, const tn_tokenizer *t, const tn__word *w, uint64_t key[3])
{
    const bool cut = w->letters > t->longest_word; /* text holds only its first characters, which may be another word */
    if (cut || w->bytes > TN__CACHED_KEY || w->bytes == 0 || s->sample > 0 || s->nth) return NULL;
    if (!s->cache &&
        (++s->words_encoded < BEFORE_CACHE || !(s->cache = tn__mem_try(TN__CACHE_SLOTS * sizeof *s->cache))))
        return NULL;
    if (s->serial != t->serial) memset(s->cache, 0, TN__CACHE_SLOTS * sizeof *s->cache), s->serial = t->serial;
    key[0] = key[1] = key[2] = 0;
    memcpy(key, w->text, w->bytes);
    uint64_t hash = tn__mix(key[0] ^ (uint64_t)w->bytes << 56);
    if (w->bytes > 8) hash = tn__mix(hash ^ key[1]) ^ tn__mix(key[2] + 1);
    return s->cache + (hash & (TN__CACHE_SLOTS - 1));
}

bool tn__encode_word(const tn_tokenizer *t, tn__encoding *s, const tn__word *w)
{
    if (s->sink) return s->sink(s->user, w->text, w->bytes, s->line_end);
    uint64_t         key[3];
    tn__cached_word *c = cache_slot(s, t, w, key);
    if (c && c->used == w->bytes && !memcmp(c->key, key, sizeof key)) {
        size_t at = 0;
        for (int i = 0; i < c->n; at += c->bytes[i++])
            if (!tn__token_add(s, w, c->id[i], at, at + c->bytes[i])) return false;
        return true;
    }
    const size_t before = s->tokens;
    s->split = 0;
    if (!(t->kind == TN_WORDPIECE ? tn__encode_wordpiece(t, s, w)
          : t->kind == TN_UNIGRAM ? tn__encode_unigram(t, s, w)
                                  : tn__encode_bpe(t, s, w)))
        return false;
    const size_t n = s->tokens - before;
    if (!c || n > TN__CACHED_TOKENS || s->split != w->bytes) return true;
    memcpy(c->key, key, sizeof key);
    memcpy(c->bytes, s->bytes, sizeof c->bytes);
    for (size_t i = 0; i < n; i++) c->id[i] = s->token[before + i].id;
    c->n = (uint8_t)n, c->used = (uint8_t)w->bytes;
    return true;
}

/* ---- WordPiece --------------------------------------------------------------------------------------------------- */

static bool unknown_word(const tn_tokenizer *t, tn__encoding *s, const tn__word *w)
{
    s->split = 0;
    if (!tn__word_token_add(s, w, 0, t->unknown, 0, w->bytes)) return false;
    if (w->letters > t->longest_word) s->token[s->tokens - 1].end = w->end;
    return true;
}

bool tn__encode_wordpiece(const tn_tokenizer *t, tn__encoding *s, const tn__word *w)
{
    if (w->letters > t->longest_word) return unknown_word(t, s, w);
    const size_t before = s->tokens, prefix = t->prefix_bytes;
    if (!tn__grown((void *)&s->probe, &s->probe_room, (int64_t)(prefix + w->bytes), 1)) return false;
    memcpy(s->probe, t->prefix, prefix);
    for (size_t at = 0, i = 0, n; at < w->bytes; at += n, i++) {
        const char *text = w->text + at;
        size_t      front = 0;
        n = w->bytes - at;
        if (at) {
            const size_t fits = t->longest_token > prefix ? t->longest_token - prefix : 0;
            if (n > fits) n = fits;
            memcpy(s->probe + prefix, text, n);
            text = s->probe, front = prefix;
        } else if (n > t->longest_token) {
            n = t->longest_token;
        }
        int64_t id = -1;
        for (; n; n--) {
            const bool whole_token = at + n == w->bytes || ((unsigned char)w->text[at + n] & 0xc0) != 0x80;
            if (whole_token && (id = tn__model_find(t, text, front + n)) >= 0) break;
        }
        if (!n) return s->tokens = before, unknown_word(t, s, w);
        if (!tn__word_token_add(s, w, i, (int32_t)id, at, at + n)) return false;
    }
    return true;
}

/* ---- byte-pair encoding ------------------------------------------------------------------------------------------ */

static void heap_down(uint64_t *heap, size_t n, size_t at)
{
    const uint64_t v = heap[at];
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && heap[child + 1] < heap[child]) child++;
        if (v <= heap[child]) break;
        heap[at] = heap[child];
    }
    heap[at] = v;
}

static void heap_push(uint64_t *heap, size_t *n, uint64_t v)
{
    size_t at = (*n)++;
    for (; at && heap[(at - 1) / 2] > v; at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
    heap[at] = v;
}

/* Returns the token of one character of a word, or -1. */
static int64_t letter_piece(const tn_tokenizer *t, tn__encoding *s, const tn__word *w, size_t from, size_t to)
{
    const bool byte = t->split == TN__SPLIT_BYTES;
    if (byte && !t->prefix_bytes && !t->suffix_bytes) return t->byte_token[(unsigned char)w->text[from]];
    char  *p = s->probe;
    size_t n = 0;
    if (from) memcpy(p, t->prefix, n = t->prefix_bytes);
    if (byte) n += (size_t)tn_utf8_put(tn__byte_to_char((unsigned char)w->text[from]), p + n);
    else memcpy(p + n, w->text + from, to - from), n += to - from;
    if (to == w->bytes) memcpy(p + n, t->suffix, t->suffix_bytes), n += t->suffix_bytes;
    return tn__model_find(t, p, n);
}

static void symbol(tn__encoding *s, int32_t *n, int64_t id, size_t from, size_t to)
{
    s->symbol[*n] = (tn__symbol){(int32_t)id, (int32_t)from, (int32_t)to, *n - 1, *n + 1};
    ++*n;
}

/* Spells a character without a token by byte tokens; false: some are missing. */
static bool spell_bytes(const tn_tokenizer *t, tn__encoding *s, const tn__word *w, size_t from, size_t to, int32_t *n)
{
    if (!t->sentence.fallback) return false;
    for (size_t i = from; i < to; i++)
        if (t->byte_token[(unsigned char)w->text[i]] < 0) return false;
    for (size_t i = from; i < to; i++) symbol(s, n, t->byte_token[(unsigned char)w->text[i]], i, i + 1);
    return true;
}

/* Converts the word's characters to a list of symbols; returns their number, -1: raised. */
static int32_t spell(const tn_tokenizer *t, tn__encoding *s, const tn__word *w)
{
    const int64_t most = (int64_t)w->bytes;
    if (!tn__grown((void *)&s->symbol, &s->symbol_room, most, sizeof *s->symbol) ||
        !tn__grown((void *)&s->heap, &s->heap_room, 3 * most, sizeof *s->heap) ||
        !tn__grown((void *)&s->probe, &s->probe_room, 2 * TN__AFFIX + 4, 1))
        return -1;
    int32_t n = 0;
    bool    unknown = false; /* the last symbol is unknown text; unk_token may be a token of known text, too */
    for (size_t at = 0, next; at < w->bytes; at = next) {
        int32_t      user = -1;
        const size_t found = t->user.n ? tn__trie_longest(&t->user, w->text + at, w->bytes - at, &user) : 0;
        next = at + found;
        if (t->split == TN__SPLIT_BYTES) next++;
        else if (!found) tn_utf8_next(w->text, w->bytes, &next, NULL);
        int64_t    id = found ? user : letter_piece(t, s, w, at, next);
        const bool known = id >= 0, joins = unknown && !known && t->fuse_unknown;
        unknown = unknown && !known;
        if (!known && spell_bytes(t, s, w, at, next, &n)) continue;
        if (!known && t->unknown < 0) continue; /* no token for it */
        unknown = !known;
        if (joins) s->symbol[n - 1].to = (int32_t)next;
        else symbol(s, &n, known ? id : t->unknown, at, next);
    }
    if (n) s->symbol[n - 1].next = -1;
    return n;
}

/* Returns the order of a merge. */
static uint32_t place(const tn__merges *m, int64_t rank) { return m->order ? m->order[rank] : (uint32_t)rank; }

static void offer(const tn_tokenizer *t, tn__encoding *s, size_t *heaped, int32_t left)
{
    if (left < 0 || s->symbol[left].next < 0) return;
    const int64_t rank = tn__merge_rank(&t->merges, s->symbol[left].c, s->symbol[s->symbol[left].next].c);
    if (rank >= 0) heap_push(s->heap, heaped, (uint64_t)place(&t->merges, rank) << 32 | (uint32_t)left);
}

/* True if the pair of this rank is still the one that was queued with this order. */
static bool is_current(const tn__merges *m, int64_t rank, uint32_t at)
{
    return m->order ? m->order[rank] == at : m->becomes[rank] == m->becomes[at];
}

/* Returns the id of the token that equals the word, or -1. */
static int64_t whole_token(const tn_tokenizer *t, tn__encoding *s, const tn__word *w)
{
    if (w->bytes > t->longest_token || !tn__grown((void *)&s->probe, &s->probe_room, 2 * (int64_t)w->bytes, 1))
        return -1;
    size_t n = 0;
    for (size_t i = 0; i < w->bytes; i++)
        n += (size_t)tn_utf8_put(tn__byte_to_char((unsigned char)w->text[i]), s->probe + n);
    return t->split == TN__SPLIT_BYTES ? tn__model_find(t, s->probe, n) : tn__model_find(t, w->text, w->bytes);
}

bool tn__encode_bpe(const tn_tokenizer *t, tn__encoding *s, const tn__word *w)
{
    const int64_t whole = t->whole_words ? whole_token(t, s, w) : -1;
    if (whole >= 0) return tn__word_token_add(s, w, 0, (int32_t)whole, 0, w->bytes);
    const int32_t n = spell(t, s, w);
    size_t        heaped = 0;
    tn__symbol   *x = s->symbol;
    for (int32_t i = 0; i < n; i++) offer(t, s, &heaped, i);
    while (heaped) {
        const uint64_t top = s->heap[0];
        s->heap[0] = s->heap[--heaped];
        if (heaped) heap_down(s->heap, heaped, 0);
        const int32_t left = (int32_t)(uint32_t)top, right = x[left].next;
        if (x[left].from == x[left].to || right < 0) continue;
        const int64_t rank = tn__merge_rank(&t->merges, x[left].c, x[right].c);
        if (rank < 0 || !is_current(&t->merges, rank, (uint32_t)(top >> 32))) continue; /* one of the two has changed */
        x[left].c = t->merges.becomes[rank], x[left].to = x[right].to, x[left].next = x[right].next;
        x[right].from = x[right].to;
        if (x[left].next >= 0) x[x[left].next].prev = left;
        offer(t, s, &heaped, x[left].prev);
        offer(t, s, &heaped, left);
    }
    size_t i = 0;
    for (int32_t at = n > 0 ? 0 : -1; at >= 0; at = x[at].next, i++) {
        const size_t from = (size_t)x[at].from, to = (size_t)x[at].to;
        if (!tn__word_token_add(s, w, i, tn__listed_id(t, x[at].c, w->text + from, to - from), from, to)) return false;
    }
    return n >= 0;
}
