/* subword_learn.c — learns a byte-pair encoding: merges the most frequent pair of neighbours into one symbol,
 * repeatedly. Pairs are counted once; a merge changes the counts around its occurrences, which a list of words for each
 * pair finds. A heap finds the most frequent pair; its entries may be too high, never too low.
 *
 * To learn the same merges as subword-nmt, two of its habits are kept that differ from exact counting if two merges
 * make the same symbol (ab+c, a+bc): after a merge every neighbour of the new symbol in a changed word is counted
 * again; and pairs below a threshold are set aside, and a later addition to one of them replaces its count. */
#include "data/subword/subword_private.h"
#include "core/base/toolbox.h"

typedef struct {
    int64_t  count, aside; /* current; at the time it was set aside */
    int64_t  queued;       /* its highest count in the heap */
    uint32_t words;        /* the first place of its list; 0 ends it */
    bool     active;       /* not set aside */
} pair;

typedef struct {
    uint32_t word, next;
} place;

typedef struct {
    int64_t  count;
    uint32_t pair;
} entry;

typedef struct {
    int64_t start, length, times; /* of its symbols */
} word;

typedef struct {
    tn__strings symbols;
    uint32_t   *symbol; /* of all words */
    word       *words;
    int64_t     n, symbol_n, symbol_room;
    tn__grams   pairs; /* (left, right): index from 1 */
    pair       *pair;
    int64_t     pair_room;
    place      *place;
    int64_t     places, place_room;
    entry      *heap;
    int64_t     heap_n, heap_room;
    uint32_t   *old; /* a word before the merge */
    int64_t     old_room;
} learner;

/* ---- the heap ---------------------------------------------------------------------------------------------------- */

static int compare(tn_text a, tn_text b)
{
    int c = memcmp(a.at, b.at, a.bytes < b.bytes ? a.bytes : b.bytes);
    return c ? c : (a.bytes > b.bytes) - (a.bytes < b.bytes);
}

static bool above(const learner *l, entry a, entry b) /* more frequent, or as frequent and later in the alphabet */
{
    if (a.count != b.count) return a.count > b.count;
    uint64_t p = l->pairs.gram[a.pair].key, q = l->pairs.gram[b.pair].key;
    if (p >> 32 != q >> 32)
        return compare(tn__strings_at(&l->symbols, (int64_t)(p >> 32)),
                       tn__strings_at(&l->symbols, (int64_t)(q >> 32))) > 0;
    return compare(tn__strings_at(&l->symbols, (int64_t)(p & UINT32_MAX)),
                   tn__strings_at(&l->symbols, (int64_t)(q & UINT32_MAX))) > 0;
}

static bool push(learner *l, uint32_t p)
{
    entry   e = {l->pair[p].count, p};
    int64_t at = l->heap_n;
    if (e.count <= 0 || e.count <= l->pair[p].queued) return true;
    if (!tn__grown((void *)&l->heap, &l->heap_room, at + 1, sizeof *l->heap)) return false;
    l->heap_n++;
    l->pair[p].queued = e.count;
    for (; at > 0 && above(l, e, l->heap[(at - 1) / 2]); at = (at - 1) / 2) l->heap[at] = l->heap[(at - 1) / 2];
    l->heap[at] = e;
    return true;
}

static void pop(learner *l)
{
    entry   e = l->heap[--l->heap_n];
    int64_t at = 0;
    for (int64_t child; (child = 2 * at + 1) < l->heap_n; at = child) {
        if (child + 1 < l->heap_n && above(l, l->heap[child + 1], l->heap[child])) child++;
        if (!above(l, l->heap[child], e)) break;
        l->heap[at] = l->heap[child];
    }
    l->heap[at] = e;
}

/* Returns the best active pair; 0 if no pair occurs, or *failed and an error is raised. */
static uint32_t best(learner *l, bool *failed)
{
    while (l->heap_n) {
        entry top = l->heap[0];
        pair *p = &l->pair[top.pair];
        if (p->active && p->count == top.count) return top.pair;
        pop(l);
        if (p->queued == top.count) p->queued = 0;
        if (p->active && !push(l, top.pair)) return *failed = true, 0;
    }
    return 0;
}

/* ---- counting ---------------------------------------------------------------------------------------------------- */

static uint32_t pair_of(learner *l, uint32_t left, uint32_t right)
{
    uint32_t before = l->pairs.n, p = tn__grams_add(&l->pairs, left, right);
    if (!p || !tn__grown((void *)&l->pair, &l->pair_room, (int64_t)p + 1, sizeof *l->pair)) return 0;
    if (l->pairs.n > before) l->pair[p] = (pair){.active = true};
    if (!l->pair[p].active) l->pair[p].active = true, l->pair[p].count = 0;
    return p;
}

static bool add(learner *l, uint32_t left, uint32_t right, uint32_t w)
{
    uint32_t p = pair_of(l, left, right);
    if (!p) return false;
    l->pair[p].count += l->words[w].times;
    if (!l->pair[p].words || l->place[l->pair[p].words].word != w) {
        if (l->places >= UINT32_MAX - 1) return tn_raise(TN_ENOMEM, "tn_subword_learn: too many words"), false;
        if (!tn__grown((void *)&l->place, &l->place_room, l->places + 2, sizeof *l->place)) return false;
        l->place[++l->places] = (place){w, l->pair[p].words};
        l->pair[p].words = (uint32_t)l->places;
    }
    return push(l, p);
}

static bool subtract(learner *l, uint32_t left, uint32_t right, uint32_t w)
{
    uint32_t p = pair_of(l, left, right);
    if (p) l->pair[p].count -= l->words[w].times;
    return p;
}

/* Sets aside the pairs that occur less often than threshold, until no others are left. */
static void put_aside(learner *l, double threshold)
{
    for (uint32_t p = 1; p <= l->pairs.n; p++) {
        pair *x = &l->pair[p];
        if (!x->active || (double)x->count >= threshold) continue;
        x->active = false;
        x->aside = x->count < 0 ? x->aside + x->count : x->count;
    }
}

static bool take_back(learner *l)
{
    l->heap_n = 0;
    for (uint32_t p = 1; p <= l->pairs.n; p++) {
        l->pair[p].active = true, l->pair[p].count = l->pair[p].aside, l->pair[p].queued = 0;
        if (!push(l, p)) return false;
    }
    return true;
}

/* ---- merging ----------------------------------------------------------------------------------------------------- */

static bool merge_word(learner *l, uint32_t w, uint32_t a, uint32_t b, uint32_t c)
{
    word     *x = &l->words[w];
    uint32_t *s = l->symbol + x->start, *old = l->old;
    int64_t   n = x->length, m = 0, found = 0;
    for (int64_t i = 0; i + 1 < n && !found; i++) found = s[i] == a && s[i + 1] == b;
    if (!found) return true; /* another merge has taken its pair */
    memcpy(old, s, (size_t)n * sizeof *s);
    for (int64_t i = 0; i < n;) {
        if (old[i] != a || i + 1 == n || old[i + 1] != b) {
            s[m++] = old[i++];
            continue;
        }
        if (i && !subtract(l, old[i - 1], a, w)) return false;
        bool next_too = i + 3 < n && old[i + 2] == a && old[i + 3] == b; /* which then updates the pair between them */
        if (i + 2 < n && !next_too && !subtract(l, b, old[i + 2], w)) return false;
        s[m++] = c;
        i += 2;
    }
    x->length = m;
    for (int64_t i = 0; i < m; i++) {
        if (s[i] != c) continue;
        if (i && !add(l, s[i - 1], c, w)) return false;
        if (i + 1 < m && s[i + 1] != c && !add(l, c, s[i + 1], w)) return false;
    }
    return true;
}

static bool merge(learner *l, uint32_t p, tn_subword *to)
{
    uint32_t  a = (uint32_t)(l->pairs.gram[p].key >> 32), b = (uint32_t)l->pairs.gram[p].key;
    tn_text   left = tn__strings_at(&l->symbols, a), right = tn__strings_at(&l->symbols, b);
    tn_string text = {0};
    bool      done = tn__subword_add(to, left, right);
    if (done) tn_string_add(&text, left), tn_string_add(&text, right);
    int64_t c = done && tn__self.error == TN_OK ? tn__strings_add(&l->symbols, text.at, text.bytes) : -1;
    tn_string_free(&text);
    if (c < 0) return false;
    uint32_t at = l->pair[p].words;
    l->pair[p].words = 0;
    for (; at; at = l->place[at].next)
        if (!merge_word(l, l->place[at].word, a, b, (uint32_t)c)) return false;
    l->pair[p].count = 0;
    return true;
}

/* Returns the pair, of those as frequent as p, that occurs first in the words. */
static uint32_t first_seen(learner *l, uint32_t p)
{
    int64_t most = l->pair[p].count;
    for (int64_t w = 0; w < l->n; w++)
        for (int64_t i = 0; i + 1 < l->words[w].length; i++) {
            const uint32_t *s = l->symbol + l->words[w].start + i;
            uint32_t        q = pair_of(l, s[0], s[1]);
            if (!q || l->pair[q].count == most) return q;
        }
    return p;
}

static bool learn(learner *l, tn_subword *to, const tn_subword_learn_args *c)
{
    bool     failed = false;
    uint32_t p = best(l, &failed);
    double   threshold = p ? (double)l->pair[p].count / 10 : 0;
    for (int64_t i = 0; i < c->merges && !failed; i++) {
        p = best(l, &failed);
        if (!c->as_printed && (!p || (i && (double)l->pair[p].count < threshold)) && !failed) {
            put_aside(l, threshold);
            if (!take_back(l)) return false;
            p = best(l, &failed);
            threshold = p ? (double)l->pair[p].count * (double)i / ((double)i + 10000) : 0;
            put_aside(l, threshold);
        }
        if (failed || !p || l->pair[p].count < c->min_frequency) break;
        if (c->as_printed) p = first_seen(l, p);
        if (!p || !merge(l, p, to)) return false;
        if (i % 100 == 0 && !c->as_printed) put_aside(l, threshold);
    }
    return !failed;
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

static bool add_symbol(learner *l, const char *text, size_t bytes, bool end)
{
    char    with_end[4 + TN__WORD_END_BYTES];
    int64_t id;
    if (end && bytes <= 4) {
        memcpy(with_end, text, bytes);
        memcpy(with_end + bytes, TN__WORD_END, TN__WORD_END_BYTES);
        id = tn__strings_add(&l->symbols, with_end, bytes + TN__WORD_END_BYTES);
    } else {
        id = tn__strings_add(&l->symbols, text, bytes);
    }
    if (id < 0 || !tn__grown((void *)&l->symbol, &l->symbol_room, l->symbol_n + 1, sizeof *l->symbol)) return false;
    l->symbol[l->symbol_n++] = (uint32_t)id;
    return true;
}

static bool add_words(learner *l, const tn_word_counts *w, bool end_apart)
{
    int64_t longest = 0;
    if (!(l->words = tn__mem_get((w->words.n + 1) * sizeof *l->words))) return false;
    for (l->n = 0; l->n < (int64_t)w->words.n; l->n++) {
        int64_t times, start = l->symbol_n;
        tn_text text = tn_word_counts_at(w, l->n, &times);
        for (size_t at = 0, bytes; at < text.bytes; at += bytes) {
            tn__point(text.at + at, text.bytes - at, &bytes);
            if (!add_symbol(l, text.at + at, bytes, !end_apart && at + bytes == text.bytes)) return false;
        }
        if (end_apart && !add_symbol(l, "", 0, true)) return false;
        l->words[l->n] = (word){start, l->symbol_n - start, times};
        longest = tn__max_i64(longest, l->symbol_n - start);
    }
    l->old_room = longest;
    return (l->old = tn__mem_get((size_t)longest * sizeof *l->old + 1));
}

static bool count_pairs(learner *l)
{
    for (int64_t w = 0; w < l->n; w++)
        for (int64_t i = 0; i + 1 < l->words[w].length; i++) {
            const uint32_t *s = l->symbol + l->words[w].start + i;
            if (!add(l, s[0], s[1], (uint32_t)w)) return false;
        }
    for (uint32_t p = 1; p <= l->pairs.n; p++) l->pair[p].aside = l->pair[p].count;
    return true;
}

static void learner_free(learner *l, const tn_word_counts *w)
{
    tn__strings_free(&l->symbols);
    tn__mem_put(l->symbol, (size_t)l->symbol_room * sizeof *l->symbol);
    tn__mem_put(l->words, l->words ? (w->words.n + 1) * sizeof *l->words : 0);
    tn__grams_free(&l->pairs);
    tn__mem_put(l->pair, (size_t)l->pair_room * sizeof *l->pair);
    tn__mem_put(l->place, (size_t)l->place_room * sizeof *l->place);
    tn__mem_put(l->heap, (size_t)l->heap_room * sizeof *l->heap);
    tn__mem_put(l->old, l->old ? (size_t)l->old_room * sizeof *l->old + 1 : 0);
}

tn_subword *tn_subword_learn_run(const tn_word_counts *w, tn_subword_learn_args c)
{
    if (tn__blocked()) return NULL;
    if (!w || c.merges < 0 || c.min_frequency < 0 || c.merges > INT32_MAX) {
        tn_raise(TN_EINVAL, "tn_subword_learn: %s", !w ? "w is NULL" : "merges and min_frequency cannot be negative");
        return NULL;
    }
    c.min_frequency = tn__max_i64(c.min_frequency, 1);
    learner     l = {0};
    tn_subword *s = tn__subword_new(c.as_printed ? 1 : 2);
    bool        done = s && add_words(&l, w, c.as_printed);
    if (c.total_symbols) c.merges = tn__max_i64(0, c.merges - (int64_t)l.symbols.n);
    done = done && count_pairs(&l) && learn(&l, s, &c) && tn__subword_finish(s);
    learner_free(&l, w);
    if (!done) tn_subword_free(s), s = NULL;
    return s;
}
