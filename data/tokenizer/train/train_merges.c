/* train_merges.c — learns tokens from counted words: merges the most frequent pair of neighbours into one token,
 * repeatedly.
 *
 * Each pair stores its count and the list of words that contain it. A merge changes only these words and the counts of
 * the pairs around it. The pairs wait in a heap by their counts at the time of insertion; a count that has fallen since
 * is corrected when its pair reaches the top. Ties: the pair of lower ids, or the first in byte order; so the result
 * depends neither on the order of the words nor on the number of threads that counted them. */
#include "data/tokenizer/train/tokenizer_train.h"
#include "core/base/toolbox.h"

#include <string.h>

typedef struct {
    uint64_t key;           /* left << 32 | right */
    int64_t  count, queued; /* queued: the count of its entry in the heap; 0: no entry */
    uint32_t where;         /* the first place of its list; 0: none */
} pair;

typedef struct {
    uint32_t word, next;
} place;

typedef struct {
    int64_t  count;
    uint32_t pair;
} entry;

typedef struct {
    tn_tokenizer *t;
    bool          by_spelling; /* ties: in byte order, else by id */

    int32_t *symbol; /* of all words */
    size_t  *begin;  /* offset of each word's symbols */
    int32_t *length;
    int64_t *count;
    size_t   words, symbols;

    pair     *pairs;
    uint32_t *slot; /* index in pairs + 1 */
    size_t    n_pairs, slots;
    int64_t   pair_room;

    place   *places; /* index 0 is not used */
    size_t   n_places;
    int64_t  place_room;
    uint32_t unused; /* a list of freed places */

    entry  *heap;
    size_t  heaped;
    int64_t heap_room;

    uint32_t *touched; /* pairs that this merge made more frequent */
    size_t    n_touched;
    int64_t   touched_room;

    uint64_t *merged; /* the merged pairs, in order */
    size_t    n_merged;
    int64_t   merged_room;
} work;

/* ---- pairs ------------------------------------------------------------------------------------------------------- */

static bool more_slots(work *w)
{
    const size_t slots = w->slots ? 2 * w->slots : 1 << 16;
    uint32_t    *slot = tn__mem_zeroed(slots * sizeof *slot);
    if (!slot) return false;
    for (size_t i = 0; i < w->n_pairs; i++) {
        size_t at = tn__mix(w->pairs[i].key) & (slots - 1);
        while (slot[at]) at = (at + 1) & (slots - 1);
        slot[at] = (uint32_t)i + 1;
    }
    tn__mem_put(w->slot, w->slots * sizeof *slot);
    w->slot = slot, w->slots = slots;
    return true;
}

/* Returns the index of the pair; -1: raised. */
static int64_t pair_of(work *w, int32_t a, int32_t b)
{
    if (2 * w->n_pairs >= w->slots && !more_slots(w)) return -1;
    const uint64_t key = (uint64_t)(uint32_t)a << 32 | (uint32_t)b;
    size_t         at = tn__mix(key) & (w->slots - 1);
    for (; w->slot[at]; at = (at + 1) & (w->slots - 1))
        if (w->pairs[w->slot[at] - 1].key == key) return w->slot[at] - 1;
    if (w->n_pairs >= UINT32_MAX / 2) return tn_raise(TN_EUNSUPPORTED, "more than 2^31 pairs of tokens"), -1;
    if (!tn__grown((void *)&w->pairs, &w->pair_room, (int64_t)w->n_pairs + 1, sizeof *w->pairs)) return -1;
    w->pairs[w->n_pairs] = (pair){.key = key};
    w->slot[at] = (uint32_t)++w->n_pairs;
    return (int64_t)w->n_pairs - 1;
}

static bool add_place(work *w, pair *p, uint32_t word)
{
    if (p->where && w->places[p->where].word == word) return true;
    uint32_t at = w->unused;
    if (at) {
        w->unused = w->places[at].next;
    } else {
        if (w->n_places >= UINT32_MAX - 1) return tn_raise_false(TN_EUNSUPPORTED, "too many distinct words");
        if (!tn__grown((void *)&w->places, &w->place_room, (int64_t)w->n_places + 2, sizeof *w->places)) return false;
        at = (uint32_t)++w->n_places;
    }
    w->places[at] = (place){word, p->where};
    p->where = at;
    return true;
}

/* ---- the heap ---------------------------------------------------------------------------------------------------- */

static int compare_text(const tn_tokenizer *t, uint64_t a, uint64_t b)
{
    for (int shift = 32; shift >= 0; shift -= 32) {
        size_t      na, nb;
        const char *x = tn__strings_text(&t->vocab, (uint32_t)(a >> shift), &na);
        const char *y = tn__strings_text(&t->vocab, (uint32_t)(b >> shift), &nb);
        const int   order = memcmp(x, y, na < nb ? na : nb);
        if (order) return order;
        if (na != nb) return na < nb ? -1 : 1;
    }
    return 0;
}

static bool before(const work *w, entry a, entry b)
{
    if (a.count != b.count) return a.count > b.count;
    const uint64_t x = w->pairs[a.pair].key, y = w->pairs[b.pair].key;
    if (w->t->kind == TN_SUBWORD) return compare_text(w->t, x, y) > 0; /* the last in byte order, as in subword-nmt */
    return w->by_spelling ? compare_text(w->t, x, y) < 0 : x < y;
}

static bool push(work *w, uint32_t which)
{
    pair *p = w->pairs + which;
    if (p->count <= p->queued) return true; /* it has an entry, which will be corrected */
    if (!tn__grown((void *)&w->heap, &w->heap_room, (int64_t)w->heaped + 1, sizeof *w->heap)) return false;
    p->queued = p->count;
    const entry e = {p->count, which};
    size_t      at = w->heaped++;
    for (; at && before(w, e, w->heap[(at - 1) / 2]); at = (at - 1) / 2) w->heap[at] = w->heap[(at - 1) / 2];
    w->heap[at] = e;
    return true;
}

static entry pop(work *w)
{
    const entry top = w->heap[0], e = w->heap[--w->heaped];
    size_t      at = 0;
    for (size_t child; (child = 2 * at + 1) < w->heaped; at = child) {
        if (child + 1 < w->heaped && before(w, w->heap[child + 1], w->heap[child])) child++;
        if (!before(w, w->heap[child], e)) break;
        w->heap[at] = w->heap[child];
    }
    w->heap[at] = e;
    return top;
}

/* ---- characters -------------------------------------------------------------------------------------------------- */

enum { INNER = 1, LAST = 2 }; /* INNER: not at the start of a word; LAST: at its end */

typedef struct {
    int64_t  *count; /* by code point */
    int32_t  *id[4]; /* [form]: its token id + 1; 0: none */
    uint32_t *order;
    uint32_t  n, codes; /* codes: the largest code point + 1; most alphabets end long before Unicode does */
} letters;

static bool more_frequent(const void *owner, uint32_t a, uint32_t b)
{
    const int64_t *count = owner;
    return count[a] != count[b] ? count[a] > count[b] : a < b;
}

/* Returns how a character is spelled at its position: with the prefix inside a word, with the suffix at its end. */
static int form_of(const tn_tokenizer *t, bool first, bool last)
{
    return (!first && t->prefix_bytes ? INNER : 0) | (last && t->suffix_bytes ? LAST : 0);
}

static uint32_t next_letter(const tn_tokenizer *t, const char *word, size_t n, size_t *at)
{
    return t->split == TN__SPLIT_BYTES ? tn__byte_to_char((unsigned char)word[(*at)++])
                                       : tn_utf8_next(word, n, at, NULL);
}

static uint32_t codes_of(const work *w, const tn__counted *words)
{
    uint32_t codes = w->t->split == TN__SPLIT_BYTES ? 0x200 : 1; /* GPT-2's characters of all bytes are below this */
    for (uint32_t i = 0; i < words->word.n; i++) {
        size_t      n;
        const char *word = tn__strings_text(&words->word, i, &n);
        for (size_t at = 0; at < n;) {
            const uint32_t c = next_letter(w->t, word, n, &at);
            if (c >= codes) codes = c + 1;
        }
    }
    return codes;
}

static void count_letters(const work *w, const tn__counted *words, letters *x)
{
    for (uint32_t i = 0; i < words->word.n; i++) {
        size_t      n;
        const char *word = tn__strings_text(&words->word, i, &n);
        for (size_t at = 0; at < n;) {
            const bool     first = at == 0;
            const uint32_t c = next_letter(w->t, word, n, &at);
            x->count[c] += words->count[i];
            x->id[form_of(w->t, first, at == n)][c] = 1;
        }
    }
    for (int b = 0; b < 256 && w->t->split == TN__SPLIT_BYTES; b++) x->count[tn__byte_to_char(b)] = INT64_MAX;
}

static bool add_letter(work *w, letters *x, uint32_t c, int form_bits)
{
    char   text[2 * TN__AFFIX + 4];
    size_t n = form_bits & INNER ? w->t->prefix_bytes : 0;
    memcpy(text, w->t->prefix, n);
    n += (size_t)tn_utf8_put(c, text + n);
    if (form_bits & LAST) memcpy(text + n, w->t->suffix, w->t->suffix_bytes), n += w->t->suffix_bytes;
    const int64_t id = tn__strings_add(&w->t->vocab, text, n);
    x->id[form_bits][c] = (int32_t)id + 1;
    return id >= 0;
}

/* Adds the characters that are kept as tokens in the order of their code points, then their forms inside and at the end
 * of a word. */
static bool add_letters(work *w, const tn__counted *words, letters *x, const tn_tokenizer_train_args *args)
{
    count_letters(w, words, x);
    for (uint32_t c = 0; c < x->codes; c++)
        if (x->count[c]) x->order[x->n++] = c;
    const int64_t most = w->t->split == TN__SPLIT_BYTES ? 256 : args->alphabet;
    tn__sort(x->order, x->n, more_frequent, x->count);
    for (uint32_t i = 0; i < x->n; i++)
        if (i >= most) x->count[x->order[i]] = 0;
    const uint32_t before_letters = w->t->vocab.n;
    for (uint32_t c = 0; c < x->codes; c++)
        if (x->count[c] && !add_letter(w, x, c, 0)) return false;
    for (int k = 1; k < 4; k++)
        for (uint32_t c = 0; c < x->codes; c++)
            if (x->id[k][c] && !(x->count[c] ? add_letter(w, x, c, k) : (x->id[k][c] = 0, true))) return false;
    if (w->t->kind != TN_SUBWORD && w->t->vocab.n > args->vocab_size)
        return tn_raise_false(TN_EINVAL,
                              "tn_tokenizer_train: .vocab_size is %lld, but the special tokens (%u) and the characters "
                              "(%u) alone are more; raise it, or lower .alphabet",
                              (long long)args->vocab_size, before_letters, w->t->vocab.n - before_letters);
    return true;
}

static bool spell_words(work *w, const tn__counted *words, const letters *x)
{
    const uint32_t n_words = words->word.n;
    w->words = n_words, w->symbols = (size_t)words->word.bytes + 1; /* no word has more characters than bytes */
    w->symbol = tn__mem_get(w->symbols * sizeof *w->symbol);
    w->begin = w->symbol ? tn__mem_get((n_words + 1) * sizeof *w->begin) : NULL;
    w->length = w->begin ? tn__mem_get((n_words + 1) * sizeof *w->length) : NULL;
    w->count = words->count;
    if (!w->length) return false;
    size_t to = 0;
    for (uint32_t i = 0; i < n_words; i++) {
        size_t      n;
        const char *word = tn__strings_text(&words->word, i, &n);
        w->begin[i] = to;
        for (size_t at = 0; at < n;) {
            const bool     first = at == 0;
            const uint32_t c = next_letter(w->t, word, n, &at);
            const int32_t  id = x->count[c] ? x->id[form_of(w->t, first, at == n)][c] : 0;
            if (id) w->symbol[to++] = id - 1; /* a character that is not kept is skipped */
        }
        w->length[i] = (int32_t)(to - w->begin[i]);
    }
    return true;
}

static bool letters_to_symbols(work *w, const tn__counted *words, const tn_tokenizer_train_args *args)
{
    letters      x = {.codes = codes_of(w, words)};
    const size_t counts = x.codes * sizeof *x.count, ids = x.codes * sizeof *x.id[0];
    x.count = tn__mem_zeroed(counts);
    x.order = x.count ? tn__mem_get(ids) : NULL;
    bool ok = x.order != NULL;
    for (int k = 0; k < 4 && ok; k++) ok = (x.id[k] = tn__mem_zeroed(ids)) != NULL;
    ok = ok && add_letters(w, words, &x, args) && spell_words(w, words, &x);
    for (int k = 0; k < 4; k++) tn__mem_put(x.id[k], ids);
    tn__mem_put(x.order, ids);
    tn__mem_put(x.count, counts);
    return ok;
}

/* ---- merges ------------------------------------------------------------------------------------------------------ */

static bool count_pairs(work *w)
{
    for (size_t i = 0; i < w->words; i++) {
        const int32_t *s = w->symbol + w->begin[i];
        for (int32_t k = 0; k + 1 < w->length[i]; k++) {
            const int64_t p = pair_of(w, s[k], s[k + 1]);
            if (p < 0 || !add_place(w, w->pairs + p, (uint32_t)i)) return false;
            w->pairs[p].count += w->count[i];
        }
    }
    for (size_t p = 0; p < w->n_pairs; p++)
        if (!push(w, (uint32_t)p)) return false;
    return true;
}

static bool change(work *w, int32_t a, int32_t b, int64_t by, uint32_t word)
{
    const int64_t p = pair_of(w, a, b);
    if (p < 0) return false;
    w->pairs[p].count += by;
    if (by < 0) return true;
    if (!tn__grown((void *)&w->touched, &w->touched_room, (int64_t)w->n_touched + 1, sizeof *w->touched)) return false;
    if (!w->n_touched || w->touched[w->n_touched - 1] != p) w->touched[w->n_touched++] = (uint32_t)p;
    return add_place(w, w->pairs + p, word);
}

/* Replaces each a b in the word by c. */
static bool merge_in_word(work *w, uint32_t word, int32_t a, int32_t b, int32_t c)
{
    int32_t      *s = w->symbol + w->begin[word];
    const int64_t count = w->count[word];
    int32_t       n = w->length[word], to = 0;
    for (int32_t i = 0; i < n; to++) {
        if (s[i] != a || i + 1 >= n || s[i + 1] != b) {
            s[to] = s[i++];
            continue;
        }
        if (to && (!change(w, s[to - 1], a, -count, word) || !change(w, s[to - 1], c, count, word))) return false;
        s[to] = c, i += 2;
        if (i < n && (!change(w, b, s[i], -count, word) || !change(w, c, s[i], count, word))) return false;
    }
    w->length[word] = to;
    return true;
}

static bool merge(work *w, uint32_t which)
{
    const uint64_t key = w->pairs[which].key;
    const int32_t  a = (int32_t)(key >> 32), b = (int32_t)(key & UINT32_MAX);
    const size_t   prefix = w->t->prefix_bytes;
    size_t         na, nb;
    const char    *left = tn__strings_text(&w->t->vocab, (uint32_t)a, &na);
    const char    *right = tn__strings_text(&w->t->vocab, (uint32_t)b, &nb);
    if (prefix && nb >= prefix && !memcmp(right, w->t->prefix, prefix)) right += prefix, nb -= prefix;
    tn_string both = {0};
    bool ok = tn_string_add(&both, (tn_text){left, na}) == TN_OK && tn_string_add(&both, (tn_text){right, nb}) == TN_OK;
    ok = ok && tn__grown((void *)&w->merged, &w->merged_room, (int64_t)w->n_merged + 1, sizeof *w->merged);
    const int64_t c = ok ? tn__strings_add(&w->t->vocab, both.at, both.bytes) : -1;
    tn_string_free(&both);
    if (c < 0) return false;
    w->merged[w->n_merged++] = key;
    uint32_t at = w->pairs[which].where;
    w->pairs[which].where = 0, w->n_touched = 0;
    while (at) {
        const place here = w->places[at];
        w->places[at].next = w->unused, w->unused = at;
        if (!merge_in_word(w, here.word, a, b, (int32_t)c)) return false;
        at = here.next;
    }
    for (size_t i = 0; i < w->n_touched; i++)
        if (!push(w, w->touched[i])) return false;
    return true;
}

static bool merges(work *w, const tn_tokenizer_train_args *args)
{
    const int64_t  least = tn__max_i64(args->min_count, 1);
    const bool     subword = w->t->kind == TN_SUBWORD; /* the size is a number of merges */
    const uint32_t from = w->t->vocab.n;
    const int64_t  total = args->vocab_size - (subword ? 0 : (int64_t)from);
    for (int64_t done = 0; done < total && w->heaped; done = subword ? (int64_t)w->n_merged : w->t->vocab.n - from) {
        const entry top = pop(w);
        pair       *p = w->pairs + top.pair;
        if (top.count != p->queued) continue; /* a later entry of this pair has replaced it */
        p->queued = 0;
        if (!p->where || p->count < 1) continue;
        if (p->count != top.count) {
            if (!push(w, top.pair)) return false;
            continue;
        }
        if (p->count < least) break;
        if (args->merged)
            args->merged(tn_tokenizer_token(w->t, (int64_t)(p->key >> 32)), tn_tokenizer_token(w->t, (uint32_t)p->key),
                         p->count, args->user);
        if (!merge(w, top.pair)) return false;
        if (args->progress && w->n_merged % 512 == 0)
            args->progress("merging", (double)done / (double)total, args->user);
    }
    if (args->progress) args->progress("merging", 1, args->user);
    return true;
}

/* Stores the merges in the tokenizer. */
static bool store_merges(work *w)
{
    tn__merges *m = &w->t->merges;
    if (w->t->kind == TN_WORDPIECE) return true;
    if (!tn__merges_room(m, w->n_merged)) return false;
    for (size_t i = 0; i < w->n_merged; i++) {
        size_t      na, nb;
        const char *a = tn__strings_text(&w->t->vocab, (uint32_t)(w->merged[i] >> 32), &na);
        const char *b = tn__strings_text(&w->t->vocab, (uint32_t)w->merged[i], &nb);
        if (tn__merge_rank(m, (int32_t)(w->merged[i] >> 32), (int32_t)(uint32_t)w->merged[i]) < 0 &&
            !tn__merge_texts(w->t, "tn_tokenizer_train", a, na, b, nb))
            return false;
    }
    return true;
}

bool tn__train_merges(tn_tokenizer *t, const tn__counted *words, const tn_tokenizer_train_args *args)
{
    work       w = {.t = t, .by_spelling = t->kind == TN_WORDPIECE};
    const bool ok = letters_to_symbols(&w, words, args) && count_pairs(&w) && merges(&w, args) && store_merges(&w);
    tn__mem_put(w.symbol, w.symbols * sizeof *w.symbol);
    tn__mem_put(w.begin, (w.words + 1) * sizeof *w.begin);
    tn__mem_put(w.length, (w.words + 1) * sizeof *w.length);
    tn__mem_put(w.pairs, (size_t)w.pair_room * sizeof *w.pairs);
    tn__mem_put(w.slot, w.slots * sizeof *w.slot);
    tn__mem_put(w.places, (size_t)w.place_room * sizeof *w.places);
    tn__mem_put(w.heap, (size_t)w.heap_room * sizeof *w.heap);
    tn__mem_put(w.touched, (size_t)w.touched_room * sizeof *w.touched);
    tn__mem_put(w.merged, (size_t)w.merged_room * sizeof *w.merged);
    return ok;
}
