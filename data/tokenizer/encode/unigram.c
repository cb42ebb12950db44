/* unigram.c — segments a word by the scores of tokens, which are logarithms of probabilities: the greatest sum, by the
 * Viterbi algorithm. A character without a token is unknown, with a score of 10 less than the lowest.
 *
 * Two segmentations may have sums that differ only by rounding. So each sum is computed as in its reference: f32 in
 * SentencePiece, f64 in Hugging Face; of equal sums the one whose last token starts first. */
#include "data/tokenizer/encode/unigram.h"
#include "core/base/toolbox.h"

typedef tn__path path;

static void offer(path *to, double sum, bool narrow, int32_t begin, int32_t id)
{
    if (narrow) sum = (double)(float)sum;
    if (to->begin < 0 || sum > to->sum) *to = (path){sum, begin, id};
}

static void search(const tn_tokenizer *t, path *best, const char *text, size_t n)
{
    const bool   narrow = t->score != NULL;
    const float  unknown_f = (float)t->lowest_score - 10.0f;
    const double unknown = narrow ? (double)unknown_f : t->lowest_score - 10.0;
    for (size_t i = 0; i <= n; i++) best[i] = (path){0, -1, 0};
    for (size_t i = 0, step; i < n; i += step) {
        const double sum = best[i].sum;
        step = tn__char_bytes(text + i, n - i);
        bool    single = false;
        int32_t at = 0;
        for (size_t k = i; t->trie.n && k < n && (at = tn__trie_step(&t->trie, at, (unsigned char)text[k])) >= 0; k++) {
            const int32_t id = t->trie.node[at].value;
            if (id < 0) continue;
            const size_t length = k + 1 - i;
            const double score = tn__unigram_score(t, id, length);
            offer(best + k + 1, sum + score, narrow, (int32_t)i, id);
            if (length == step) single = true;
        }
        if (single) continue;
        const double with = narrow ? (double)((float)sum + unknown_f) : sum + unknown;
        offer(best + i + step, with, narrow, (int32_t)i, -1);
    }
}

static bool add_piece(const tn_tokenizer *t, tn__encoding *s, const tn__word *w, size_t *i, int32_t id, size_t from,
                      size_t to)
{
    return tn__word_token_add(s, w, (*i)++, tn__listed_id(t, id, w->text + from, to - from), from, to);
}

static bool unknown_piece(const tn_tokenizer *t, tn__encoding *s, const tn__word *w, size_t *i, size_t from, size_t to)
{
    bool bytes = t->sentence.fallback;
    for (size_t k = from; k < to && bytes; k++) bytes = t->byte_token[(unsigned char)w->text[k]] >= 0;
    if (!bytes && t->unknown < 0) return true;
    if (!bytes) return add_piece(t, s, w, i, t->unknown, from, to);
    for (size_t k = from; k < to; k++)
        if (!add_piece(t, s, w, i, t->byte_token[(unsigned char)w->text[k]], k, k + 1)) return false;
    return true;
}

/* In Hugging Face, unk_id may be that of an ordinary token, which is then joined to unknown characters. */
static bool is_unknown(const tn_tokenizer *t, int32_t id) { return id < 0 || (!t->score && id == t->unknown); }

bool tn__encode_unigram(const tn_tokenizer *t, tn__encoding *s, const tn__word *w)
{
    if (!tn__grown((void *)&s->path, &s->path_room, (int64_t)w->bytes + 1, sizeof *s->path)) return false;
    path *best = s->path;
    if (s->sample > 0) tn__unigram_sample(t, s, w);
    else if (!s->nth) search(t, best, w->text, w->bytes);
    else if (!tn__unigram_nth(t, s, w)) return false;
    /* backwards along the best path: stores at the start of each token its end */
    for (int32_t at = (int32_t)w->bytes; at > 0;) {
        const path here = best[at];
        best[here.begin].sum = at; /* exact: at most 2^31 */
        at = here.begin;
    }
    size_t i = 0;
    for (size_t at = 0, end; at < w->bytes; at = end) {
        end = (size_t)best[at].sum;
        const int32_t id = best[end].id;
        const size_t  first = end;
        if (is_unknown(t, id)) /* adjacent unknown characters are one token */
            while (end < w->bytes && is_unknown(t, best[(size_t)best[end].sum].id)) end = (size_t)best[end].sum;
        if (id < 0 || end > first) {
            if (!unknown_piece(t, s, w, &i, at, end)) return false;
        } else if (!add_piece(t, s, w, &i, id, at, end)) {
            return false;
        }
    }
    return true;
}
