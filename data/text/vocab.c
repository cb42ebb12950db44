/* vocab.c — word ids, and sequences padded to one length. */
#include "data/vocab.h"
#include "core/base/toolbox.h"

#include "data/text/data_private.h"
#include "data/text.h"
#include "data/text/unicode.h"

#include <string.h>

struct tn_vocab {
    tn__strings words; /* the index is the id */
    int64_t    *count;
    int64_t     room;
};

tn_vocab *tn_vocab_new(void)
{
    if (tn__blocked()) return NULL;
    tn_vocab *v = tn__mem_zeroed(sizeof *v);
    if (!v) return NULL;
    if (tn_vocab_add(v, "<pad>", 5) == TN_VOCAB_PADDING && tn_vocab_add(v, "<unk>", 5) == TN_VOCAB_UNKNOWN) return v;
    return tn_vocab_free(v), NULL;
}

void tn_vocab_free(tn_vocab *v)
{
    if (!v) return;
    tn__strings_free(&v->words);
    tn__mem_put(v->count, (size_t)v->room * sizeof *v->count);
    tn__mem_put(v, sizeof *v);
}

int64_t tn_vocab_add(tn_vocab *v, const char *word, size_t bytes)
{
    if (tn__blocked() || !v) return -1;
    if (!word || !bytes) return tn_raise(TN_EINVAL, "tn_vocab_add: the word is %s", word ? "empty" : "NULL"), -1;
    if (!tn__grown((void *)&v->count, &v->room, (int64_t)v->words.n + 1, sizeof *v->count)) return -1;
    const uint32_t before = v->words.n;
    const int64_t  id = tn__strings_add(&v->words, word, bytes);
    if (id == before) v->count[id] = 0;
    return id;
}

/* Finds the next word of text from *at; false: no more words. */
static bool next_word(const char *text, size_t bytes, size_t *at, size_t *from, size_t *n)
{
    size_t end = *at;
    *from = *at;
    while (*at < bytes) {
        const bool space = tn__is_space(tn_utf8_next(text, bytes, at, NULL));
        if (space && end > *from) break;
        if (space) *from = *at;
        end = *at;
    }
    *n = end - *from;
    return *n > 0;
}

static bool args_valid(const char *caller, const tn_vocab *v, const char *text, size_t bytes)
{
    if (tn__blocked()) return false;
    if (v && (text || !bytes)) return true;
    return tn_raise_false(TN_EINVAL, "%s: %s is NULL", caller, v ? "text" : "v");
}

tn_status tn_vocab_read(tn_vocab *v, const char *text, size_t bytes)
{
    if (!args_valid("tn_vocab_read", v, text, bytes)) return tn__self.error;
    for (size_t at = 0, from, n; next_word(text, bytes, &at, &from, &n);) {
        const int64_t id = tn_vocab_add(v, text + from, n);
        if (id < 0) return tn__self.error;
        v->count[id]++;
    }
    return TN_OK;
}

static bool rarer(const void *owner, uint32_t a, uint32_t b) /* ties in byte order */
{
    const tn_vocab *v = owner;
    if (v->count[a] != v->count[b]) return v->count[a] > v->count[b];
    size_t      na, nb;
    const char *x = tn__strings_text(&v->words, a, &na), *y = tn__strings_text(&v->words, b, &nb);
    const int   order = memcmp(x, y, na < nb ? na : nb);
    return order ? order < 0 : na < nb;
}

tn_status tn_vocab_trim(tn_vocab *v, int64_t min_count, int64_t most)
{
    if (tn__blocked() || !v) return tn__self.error;
    if (most < 0) return tn_raise(TN_EINVAL, "tn_vocab_trim: most is %lld, expected 0 (all) or more", (long long)most);
    const size_t n = v->words.n - TN_VOCAB_FIRST;
    uint32_t    *order = tn__mem_get((n + 1) * sizeof *order);
    tn_vocab    *less = order ? tn_vocab_new() : NULL;
    for (size_t i = 0; less && i < n; i++) order[i] = (uint32_t)i + TN_VOCAB_FIRST;
    if (less) tn__sort(order, n, rarer, v);
    bool done = less != NULL;
    for (size_t i = 0; done && i < n && v->count[order[i]] >= min_count && (!most || i < (size_t)most); i++) {
        size_t      bytes;
        const char *word = tn__strings_text(&v->words, order[i], &bytes);
        done = tn_vocab_add(less, word, bytes) >= 0;
        if (done) less->count[less->words.n - 1] = v->count[order[i]];
    }
    tn__mem_put(order, (n + 1) * sizeof *order);
    if (done) {
        less->count[TN_VOCAB_UNKNOWN] = v->count[TN_VOCAB_UNKNOWN];
        const tn_vocab old = *v;
        *v = *less, *less = old;
    }
    tn_vocab_free(less);
    return tn__self.error;
}

int64_t tn_vocab_size(const tn_vocab *v) { return v ? v->words.n : 0; }

int64_t tn_vocab_id(const tn_vocab *v, const char *word, size_t bytes)
{
    const int64_t id = v && word ? tn__strings_find(&v->words, word, bytes) : -1;
    return id < 0 ? TN_VOCAB_UNKNOWN : id;
}

static bool id_in_range(const char *caller, const tn_vocab *v, int64_t id)
{
    if (v && id >= 0 && id < v->words.n) return true;
    if (v) tn_raise(TN_EINDEX, "%s: the word id is %lld, expected 0 to %u", caller, (long long)id, v->words.n - 1);
    return false;
}

const char *tn_vocab_word(const tn_vocab *v, int64_t id)
{
    size_t n;
    return id_in_range("tn_vocab_word", v, id) ? tn__strings_text(&v->words, (uint32_t)id, &n) : "";
}

int64_t tn_vocab_count(const tn_vocab *v, int64_t id)
{
    return id_in_range("tn_vocab_count", v, id) ? v->count[id] : 0;
}

tn_tensor *tn_vocab_encode(const tn_vocab *v, const char *text, size_t bytes)
{
    if (!args_valid("tn_vocab_encode", v, text, bytes)) return NULL;
    int64_t words = 0;
    for (size_t at = 0, from, n; next_word(text, bytes, &at, &from, &n);) words++;
    tn_tensor *y = tn_empty_of(TN_I64, (tn_shape){.n = 1, .d = {words}});
    int64_t   *id = y ? tn_data_mut(y) : NULL;
    for (size_t at = 0, from, n; id && next_word(text, bytes, &at, &from, &n);) *id++ = tn_vocab_id(v, text + from, n);
    return y;
}

/* ---- padding ----------------------------------------------------------------------------------------------------- */

/* Returns the length of the padded sequences: as requested, or the greatest; -1: an invalid argument, raised. */
static int64_t padded_length(int64_t n, const int64_t *const *rows, const tn_pad_args *args)
{
    const char *caller = "tn_pad_sequences";
    if (n < 0 || args->length < 0)
        return tn_raise(TN_EINVAL, "%s: %s is %lld, expected 0 or more", caller, n < 0 ? "n" : "length",
                        (long long)(n < 0 ? n : args->length)),
               -1;
    if (n && (!rows || !args->lengths))
        return tn_raise(TN_EINVAL, "%s: %s is NULL", caller, rows ? "lengths" : "rows"), -1;
    int64_t most = args->length;
    for (int64_t i = 0; i < n; i++) {
        if (args->lengths[i] < 0 || (args->lengths[i] && !rows[i]))
            return tn_raise(TN_EINVAL, "%s: sequence %lld %s", caller, (long long)i,
                            rows[i] ? "has a negative length" : "is NULL, but has a length"),
                   -1;
        if (!args->length && args->lengths[i] > most) most = args->lengths[i];
    }
    return most;
}

tn_tensor *tn_pad_sequences_run(int64_t n, const int64_t *const *rows, tn_pad_args args)
{
    if (tn__blocked()) return NULL;
    const int64_t most = padded_length(n, rows, &args);
    if (most < 0) return NULL;
    tn_tensor *y =
        tn_empty_of(TN_I64, args.time_first ? (tn_shape){.n = 2, .d = {most, n}} : (tn_shape){.n = 2, .d = {n, most}});
    int64_t *to = y ? tn_data_mut(y) : NULL;
    if (!to) return NULL;
    const int64_t row = args.time_first ? 1 : most, step = args.time_first ? n : 1;
    for (int64_t i = 0; i < n; i++) {
        const int64_t has = args.lengths[i], kept = has < most ? has : most;
        const int64_t skip = args.left ? has - kept : 0, first = args.left ? most - kept : 0;
        for (int64_t t = 0; t < most; t++) {
            const bool inside = t >= first && t < first + kept;
            to[i * row + t * step] = inside ? rows[i][skip + t - first] : args.padding;
        }
    }
    return y;
}
