/* unigram_sample.c — other segmentations of a text than the best: the n-th best, and a random one, sampled as in
 * training with subword regularization (Kudo, 2018): with the probability of a segmentation to the power of .sample,
 * divided by the sum over all of them. Tokens are drawn from left to right: beta[i] is the logarithm of the sum over
 * all segmentations from i to the end,
 *     P(token i..k | at i) = exp(sample score + beta[k] - beta[i]) */
#include "data/tokenizer/encode/unigram.h"
#include "core/base/toolbox.h"

#include <float.h>

enum { NTH_MOST = 1000 };

typedef struct {
    size_t  at, end; /* offsets in the text: of the search, and the end of the token found */
    int32_t node, id;
    double  score;
    bool    single, over;
} search;

/* Finds the next token that starts at i; the last is an unknown character, if no token of one character was found. */
static bool next_piece(const tn_tokenizer *t, const char *text, size_t n, size_t i, search *x)
{
    const size_t step = tn__char_bytes(text + i, n - i);
    while (!x->over && t->trie.n && i + x->at < n &&
           (x->node = tn__trie_step(&t->trie, x->node, (unsigned char)text[i + x->at])) >= 0) {
        const size_t length = ++x->at;
        x->id = t->trie.node[x->node].value;
        if (x->id < 0) continue;
        x->end = i + length;
        x->score = tn__unigram_score(t, x->id, length);
        if (length == step) x->single = true;
        return true;
    }
    x->over = true;
    if (x->single) return false;
    x->single = true, x->id = -1, x->end = i + step, x->score = t->lowest_score - 10;
    return true;
}

static double random_uniform(tn__encoding *s) /* uniform from 0 to 1 */
{
    const uint64_t bits = tn__mix(tn__mix(s->seed) ^ ++s->drawn * 0x9e3779b97f4a7c15u);
    return (double)(bits >> 11) * 0x1p-53;
}

static double log_sum(double a, double b)
{
    const double high = a > b ? a : b, low = a > b ? b : a;
    return low < high - 50 ? high : high + tn__libm_log1p(tn__libm_exp(low - high));
}

bool tn__unigram_sample(const tn_tokenizer *t, tn__encoding *s, const tn__word *w)
{
    const size_t n = w->bytes;
    const char  *text = w->text;
    tn__path    *x = s->path; /* sum: beta */
    for (size_t i = 0; i <= n; i++) x[i] = (tn__path){-DBL_MAX, -1, 0};
    x[n].sum = 0;
    for (size_t i = n; i > 0;) {
        do i--;
        while (i > 0 && ((unsigned char)text[i] & 0xc0) == 0x80);
        for (search k = {0}; next_piece(t, text, n, i, &k);)
            x[i].sum = log_sum(x[i].sum, s->sample * k.score + x[k.end].sum);
    }
    for (size_t i = 0; i < n;) {
        double  left = random_uniform(s);
        size_t  end = i;
        int32_t id = -1;
        for (search k = {0}; left >= 0 && next_piece(t, text, n, i, &k);) {
            left -= tn__libm_exp(s->sample * k.score + x[k.end].sum - x[i].sum);
            end = k.end, id = k.id;
        }
        x[end].begin = (int32_t)i, x[end].id = id;
        i = end;
    }
    return true;
}

/* ---- n-th best segmentation -------------------------------------------------------------------------------------- */

typedef struct { /* one of the best segmentations up to an offset, the best first */
    double  sum;
    int32_t begin, id, rank; /* of its last token; rank: index of the segmentation up to begin */
} segment;

static void offer(segment *to, int most, segment x)
{
    int i = most;
    while (i > 0 && (to[i - 1].begin < 0 || x.sum > to[i - 1].sum)) i--;
    if (i == most) return;
    for (int k = most - 1; k > i; k--) to[k] = to[k - 1];
    to[i] = x;
}

bool tn__unigram_nth(const tn_tokenizer *t, tn__encoding *s, const tn__word *w)
{
    const size_t n = w->bytes;
    const int    most = s->nth + 1;
    int64_t      bytes;
    if (most > NTH_MOST || !tn__mul_i64((int64_t)(n + 1) * most, sizeof(segment), &bytes))
        return tn_raise_false(TN_EINVAL, "tn_tokenizer_encode: .nth is %d, expected 0 to %d", s->nth, NTH_MOST - 1);
    segment *x = tn__mem_get((size_t)bytes);
    if (!x) return false;
    for (size_t i = 0; i < (n + 1) * (size_t)most; i++) x[i] = (segment){0, -1, 0, 0};
    x[0].begin = 0;
    for (size_t i = 0; i < n; i += tn__char_bytes(w->text + i, n - i))
        for (search k = {0}; next_piece(t, w->text, n, i, &k);)
            for (int r = 0; r < most && x[i * (size_t)most + (size_t)r].begin >= 0; r++)
                offer(x + k.end * (size_t)most, most,
                      (segment){x[i * (size_t)most + (size_t)r].sum + k.score, (int32_t)i, k.id, r});
    int  rank = s->nth;
    bool ok = x[n * (size_t)most + (size_t)rank].begin >= 0;
    if (!ok) tn_raise(TN_EINDEX, "tn_tokenizer_encode: .nth is %d, but this text has fewer segmentations", s->nth);
    for (size_t at = n; ok && at > 0;) {
        const segment here = x[at * (size_t)most + (size_t)rank];
        s->path[at].begin = here.begin, s->path[at].id = here.id;
        at = (size_t)here.begin, rank = here.rank;
    }
    tn__mem_put(x, (size_t)bytes);
    return ok;
}
