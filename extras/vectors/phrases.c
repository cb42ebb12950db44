/* phrases.c — joins words that occur together far more often than at random: "new york" to "new_york" (Mikolov et al.
 * 2013, word2phrase). A pair ab is a phrase if
 *
 *   (count(ab) - min_count) / (count(a) count(b)) · words > threshold
 *
 * and both words occur at least min_count times. Pairs are joined from left to right, and a pair joined in this run is
 * not joined to the next word. A pair does not cross the end of a line (word2phrase counts such pairs, but does not
 * join them).
 *
 * Memory is bounded and counts are exact. Words: more than MOST_WORDS different ones are an error. Pairs: at most
 * MOST_PAIRS pairs of frequent words at a time. When there are more, the range of counted hashes is halved and the
 * pairs beyond it are dropped and counted in another pass through the texts: there are as many passes as needed, and
 * the result does not depend on the pass in which a pair is counted. */
#include "extras/vectors/phrases.h"
#include "core/base/toolbox.h"
#include "extras/vectors/files.h"

#define WHO "tn_vectors_phrases"

enum { BLOCK = 1 << 20, MAX_WORDS = 21000000, MAX_PAIRS = 1 << 24 /* 1 GB while the table is rebuilt */ };

/* ---- texts, word by word ----------------------------------------------------------------------------------------- */

typedef struct {
    const tn_vectors_phrases_args *a;
    int                            files;
    const char *const             *path;
    const char                    *doing; /* stage, for progress */
    int64_t                        bytes; /* total size of the files, once known */
    int64_t                        done;
    int                            next; /* next file to open */
    bool                           open;
    bool                           line; /* words have been read since the last line end */
    char                           label[TN__LABEL];
    tn__source                     source;
    int64_t                        at, have, used; /* bytes read of the file; in the buffer; and used of those */
    char                          *buffer;
} reader;

typedef enum { NOTHING /* stopped or raised */, WORD, LINE, END } found;

static void reader_begin(reader *r, const char *doing)
{
    r->next = 0, r->line = false, r->doing = doing, r->done = r->at = r->have = r->used = 0;
}

static void reader_end(reader *r)
{
    if (r->open) tn__source_close(&r->source);
    r->open = false;
}

static bool open_next(reader *r)
{
    const char *path = r->path[r->next++];
    if (!tn__source_open(&r->source, tn__label(r->label, WHO, path), path)) return false;
    r->open = true, r->at = r->have = r->used = 0;
    return true;
}

static bool refill(reader *r)
{
    const int64_t left = r->have - r->used, n = tn__min_i64(BLOCK - left, r->source.size - r->at);
    if (r->a->stop && *r->a->stop) return false;
    if (!n)
        return tn_raise_false(TN_EFORMAT, "%s: from byte %lld on, no blank in %d bytes; expected text", r->label,
                              (long long)(r->at - left), BLOCK);
    memmove(r->buffer, r->buffer + r->used, (size_t)left);
    if (!tn__source_read(&r->source, r->buffer + left, r->at, (size_t)n)) return false;
    r->at += n, r->done += n, r->have = left + n, r->used = 0;
    if (r->a->progress)
        r->a->progress(r->doing, r->bytes > r->done ? (double)r->done / (double)r->bytes : 1, r->a->user);
    return true;
}

/* Reads the next word or line end; the end of a file is a line end if words precede it. */
static found next_of(reader *r, tn_text *word)
{
    for (;;) {
        while (r->used < r->have && tn__is_gap(r->buffer[r->used])) {
            const char c = r->buffer[r->used++];
            if (!c) {
                tn_raise(TN_EFORMAT, "%s: byte %lld is NUL; expected text in UTF-8", r->label,
                         (long long)(r->at - r->have + r->used - 1));
                return NOTHING;
            }
            if (c == '\n') return r->line = false, LINE;
        }
        int64_t end = r->used;
        while (end < r->have && !tn__is_gap(r->buffer[end])) end++;
        const bool all = !r->open || r->at == r->source.size;
        if (end > r->used && (end < r->have || all)) {
            *word = (tn_text){r->buffer + r->used, (size_t)(end - r->used)};
            return r->used = end, r->line = true, WORD;
        }
        if (all) {
            if (r->line) return r->line = false, LINE;
            reader_end(r);
            if (r->next == r->files) return END;
        }
        if (all ? !open_next(r) : !refill(r)) return NOTHING;
    }
}

/* ---- pairs, by number -------------------------------------------------------------------------------------------- */

typedef struct {
    struct counted {
        uint64_t key; /* first << 32 | second, + 1; 0: free */
        int64_t  count;
    } * slot;
    int64_t slots, n;
} table;

static void table_free(table *t)
{
    tn__mem_put(t->slot, (size_t)t->slots * sizeof *t->slot);
    *t = (table){0};
}

static struct counted *slot_of(const table *t, uint64_t key)
{
    for (uint64_t at = tn__splitmix(key);; at++) {
        struct counted *s = t->slot + (at & (uint64_t)(t->slots - 1));
        if (!s->key || s->key == key) return s;
    }
}

/* Moves the pairs to a table of `slots` slots, without those whose hash is beyond `upto`. */
static bool resettle(table *t, int64_t slots, uint64_t upto)
{
    table to = {.slots = slots};
    if (!(to.slot = tn__mem_zeroed((size_t)slots * sizeof *to.slot))) return false;
    for (int64_t i = 0; i < t->slots; i++)
        if (t->slot[i].key && tn__splitmix(t->slot[i].key) <= upto) *slot_of(&to, t->slot[i].key) = t->slot[i], to.n++;
    table_free(t);
    *t = to;
    return true;
}

static bool add(table *t, uint64_t key, int64_t by)
{
    if (2 * t->n >= t->slots && !resettle(t, t->slots ? 2 * t->slots : 1 << 10, UINT64_MAX)) return false;
    struct counted *s = slot_of(t, key);
    if (!s->key) s->key = key, t->n++;
    s->count += by;
    return true;
}

static uint64_t key_of(int64_t a, int64_t b) { return ((uint64_t)a << 32 | (uint64_t)b) + 1; }

/* ---- phrases ----------------------------------------------------------------------------------------------------- */

typedef struct {
    const tn_vectors_phrases_args *a;
    const tn__phrases_limits      *limits;
    reader                         r;
    tn__lexicon                    words;
    int64_t                        all, size;  /* words of the texts; bytes of the output */
    uint64_t                       from, upto; /* range of hashes counted in this pass */
    table                          pairs, phrases;
    int64_t                        joined;
} phrases;

static bool count_words(phrases *p)
{
    tn_text w;
    bool    first = true; /* first word of its line */
    reader_begin(&p->r, "words");
    for (found f; (f = next_of(&p->r, &w)) != END;) {
        if (f == NOTHING) return false;
        p->size += f == LINE ? 1 : (int64_t)w.bytes + !first;
        first = f == LINE;
        p->all += f == WORD;
        if (f == LINE || w.bytes > TN__WORD_MAX) continue;
        if (!tn__lexicon_count(&p->words, w.at, w.bytes, 1)) return false;
        if (p->words.words.n > p->limits->words)
            return tn_raise_false(
                TN_EUNSUPPORTED,
                WHO ": more than %lld different words; pass part of the texts, or replace numbers and other rare "
                    "tokens by one word",
                (long long)p->limits->words);
    }
    if (!p->all) return tn_raise_false(TN_EFORMAT, "%s: no words found", p->r.label);
    p->r.bytes = p->r.done;
    return tn__lexicon_trim(&p->words, p->a->min_count);
}

/* The index of a word that may be in a phrase, or -1. */
static int64_t number_of(const phrases *p, tn_text w)
{
    return w.bytes > TN__WORD_MAX ? -1 : tn__lexicon_find(&p->words, w.at, w.bytes);
}

static bool count_pair(phrases *p, int64_t a, int64_t b)
{
    const uint64_t key = key_of(a, b), hash = tn__splitmix(key);
    while (p->pairs.n >= p->limits->pairs) {
        p->upto = p->from + (p->upto - p->from) / 2;
        if (!resettle(&p->pairs, p->pairs.slots, p->upto)) return false;
    }
    return hash < p->from || hash > p->upto || add(&p->pairs, key, 1);
}

/* Selects the phrases among the counted pairs. */
static bool choose(phrases *p)
{
    for (int64_t i = 0; i < p->pairs.slots; i++) {
        const struct counted *s = p->pairs.slot + i;
        if (!s->key) continue;
        const uint32_t a = (uint32_t)((s->key - 1) >> 32), b = (uint32_t)(s->key - 1);
        const double   score = (double)(s->count - p->a->min_count) / (double)p->words.count[a] /
                             (double)p->words.count[b] * (double)p->all;
        const size_t bytes = tn__strings_at(&p->words.words, a).bytes + 1 + tn__strings_at(&p->words.words, b).bytes;
        if (score <= p->a->threshold || bytes > TN__WORD_MAX) continue;
        if (p->phrases.n >= p->limits->phrases)
            return tn_raise_false(TN_EUNSUPPORTED, WHO ": more than %lld phrases; raise .threshold or .min_count",
                                  (long long)p->limits->phrases);
        if (!add(&p->phrases, s->key, s->count)) return false;
    }
    table_free(&p->pairs);
    return true;
}

static bool find_phrases(phrases *p)
{
    for (p->from = 0;; p->from = p->upto + 1) {
        tn_text w;
        int64_t before = -1;
        p->upto = UINT64_MAX;
        reader_begin(&p->r, "pairs");
        for (found f; (f = next_of(&p->r, &w)) != END;) {
            const int64_t id = f == WORD ? number_of(p, w) : -1;
            if (f == NOTHING || (before >= 0 && id >= 0 && !count_pair(p, before, id))) return false;
            before = id;
        }
        if (!choose(p)) return false;
        if (p->upto == UINT64_MAX) return true;
    }
}

static bool write_texts(phrases *p, tn__vectors_out *o)
{
    tn_text w;
    int64_t before = -1;
    bool    first = true;
    reader_begin(&p->r, "writing");
    for (found f; (f = next_of(&p->r, &w)) != END;) {
        if (f == NOTHING) return false;
        int64_t    id = f == WORD ? number_of(p, w) : -1;
        const bool join = before >= 0 && id >= 0 && p->phrases.slots && slot_of(&p->phrases, key_of(before, id))->key;
        if (f == WORD && !first && !tn__out_put(o, join ? "_" : " ", 1)) return false;
        if (!tn__out_put(o, f == WORD ? w.at : "\n", f == WORD ? w.bytes : 1)) return false;
        p->joined += join, first = f == LINE, before = join ? -1 : id;
    }
    return tn__out_flush(o);
}

static bool write_out(phrases *p, const char *to)
{
    char            label[TN__LABEL];
    tn__vectors_out o = {.writing = true};
    if (!tn__sink_open(&o.sink, tn__label(label, WHO, to), to, p->size)) return false;
    const bool done = write_texts(p, &o);
    return tn__sink_end(&o.sink, done) == TN_OK && done;
}

static bool check(int n, const char *const *paths, const tn_vectors_phrases_args *a)
{
    if (n < 1 || !paths) tn_raise(TN_EINVAL, WHO ": no texts given");
    else if (a->min_count < 1 || a->min_count > (int64_t)1e15)
        tn_raise(TN_EINVAL, WHO ": .min_count is %lld, expected 1 to 1e15", (long long)a->min_count);
    else if (!(a->threshold >= 0 && a->threshold <= 1e15))
        tn_raise(TN_EINVAL, WHO ": .threshold is %g, expected 0 to 1e15", a->threshold);
    return tn__self.error == TN_OK;
}

tn_vectors_phrased tn__phrases_write(int n, const char *const *paths, const char *to, const tn_vectors_phrases_args *a,
                                     const tn__phrases_limits *limits)
{
    tn_vectors_phrased result = {0};
    if (tn__blocked() || !check(n, paths, a) || !paths) return result;
    phrases p = {.a = a, .limits = limits, .r = {.a = a, .files = n, .path = paths, .buffer = tn__mem_get(BLOCK)}};
    if (p.r.buffer && count_words(&p) && find_phrases(&p) && write_out(&p, to))
        result = (tn_vectors_phrased){p.all, p.phrases.n, p.joined};
    reader_end(&p.r);
    table_free(&p.pairs), table_free(&p.phrases);
    tn__lexicon_free(&p.words);
    tn__mem_put(p.r.buffer, BLOCK);
    return result;
}

tn_vectors_phrased tn_vectors_phrases_run(int n, const char *const *paths, const char *to, tn_vectors_phrases_args args)
{
    const tn__phrases_limits limits = {MAX_WORDS, MAX_PAIRS, MAX_PAIRS};
    return tn__phrases_write(n, paths, to, &args, &limits);
}
