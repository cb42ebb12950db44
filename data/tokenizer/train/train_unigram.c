/* train_unigram.c — learns Unigram's tokens and scores from counted words, as in Kudo, "Subword Regularization" (2018),
 * with the choices of SentencePiece's trainer: the seed is all substrings with different continuations, weighted by
 * their counts in the text; then, repeatedly, two rounds of expectation and maximization, after which a quarter of the
 * tokens is removed, those whose loss reduces the likelihood least, until the vocabulary size plus a tenth is left.
 *
 * The expectation of a token, with alpha and beta the logarithms of the total probability of all paths to and from an
 * offset:
 *     E(token) = sum over its occurrences i..k of count exp(alpha[i] + score + beta[k] - alpha[n])
 * The new score is digamma(E(token)) - digamma(sum of E), which for rare tokens is less than the logarithm of the
 * share: a sparse prior. It runs in one thread, in the byte order of the words: the same bits for any number of threads
 * that counted. */
#include "data/tokenizer/train/train_unigram.h"
#include "core/base/toolbox.h"

#include <float.h>
#include <string.h>

#define SHRINK 0.75
#define RARE 0.5

static size_t letter(const char *p)
{
    const unsigned char b = (unsigned char)*p;
    return b < 0x80 ? 1 : b < 0xe0 ? 2 : b < 0xf0 ? 3 : 4;
}

static double digamma(double x)
{
    double y = 0;
    while (x < 7) y -= 1 / x++;
    x -= 0.5;
    const double xx = 1 / x / x, xx2 = xx * xx;
    return y + tn__libm_log(x) + xx / 24 - 7 * xx2 / 960 + 31 * xx2 * xx / 8064 - 127 * xx2 * xx2 / 30720;
}

static double log_sum(double a, double b)
{
    if (a < b) {
        const double t = a;
        a = b, b = t;
    }
    return b < a - 50 ? a : a + tn__libm_log1p(tn__libm_exp(b - a));
}

/* ---- segmentations of a word ------------------------------------------------------------------------------------- */

typedef struct {
    size_t  end;
    int32_t id; /* -1: an unknown character */
    double  score;
} step;

typedef struct { /* the tokens that start at one offset */
    const tn__unigram *u;
    const char        *text;
    size_t             n, begin, at;
    int32_t            node;
    bool               single, over;
} steps;

static bool next_step(steps *x, step *s)
{
    const tn__unigram *u = x->u;
    while (!x->over && x->at < x->n &&
           (x->node = tn__trie_step(&u->trie, x->node, (unsigned char)x->text[x->at])) >= 0) {
        const int32_t id = u->trie.node[x->node].value;
        x->at++;
        if (id < 0 || !u->alive[id]) continue;
        *s = (step){x->at, id, u->score[id]};
        if (x->at - x->begin == letter(x->text + x->begin)) x->single = true;
        return true;
    }
    x->over = true;
    if (x->single) return false;
    x->single = true;
    *s = (step){x->begin + letter(x->text + x->begin), -1, u->lowest_score - 10};
    return true;
}

/* An unknown character counts as the first token, the space: SentencePiece's trainer does so, and without it the two
 * would keep different tokens. */
static int32_t counts_as(int32_t id) { return id < 0 ? 0 : id; }

static steps steps_at(const tn__unigram *u, const char *text, size_t n, size_t begin)
{
    return (steps){u, text, n, begin, begin, 0, false, false};
}

static bool room(tn__unigram *u, size_t n)
{
    return tn__grown((void *)&u->alpha, &u->alpha_room, (int64_t)n + 1, sizeof *u->alpha) &&
           tn__grown((void *)&u->beta, &u->beta_room, (int64_t)n + 1, sizeof *u->beta) &&
           tn__grown((void *)&u->from, &u->from_room, (int64_t)n + 1, sizeof *u->from) &&
           tn__grown((void *)&u->token_at, &u->token_room, (int64_t)n + 1, sizeof *u->token_at);
}

/* Finds the best segmentation of text; `without`: a token that must not be used. u->from, u->piece_at: start and id of
 * the token that ends at an offset. */
static double viterbi(tn__unigram *u, const char *text, size_t n, int32_t without)
{
    for (size_t i = 0; i <= n; i++) u->alpha[i] = -DBL_MAX;
    u->alpha[0] = 0;
    for (size_t i = 0; i < n; i += letter(text + i)) {
        if (u->alpha[i] == -DBL_MAX) continue;
        steps x = steps_at(u, text, n, i);
        for (step s; next_step(&x, &s);) {
            if ((s.id >= 0 && s.id == without) || u->alpha[i] + s.score <= u->alpha[s.end]) continue;
            u->alpha[s.end] = u->alpha[i] + s.score, u->from[s.end] = i, u->token_at[s.end] = s.id;
        }
    }
    return u->alpha[n];
}

/* Adds count times the expectation of each token of a word. */
static void expect(tn__unigram *u, const char *text, size_t n, double count)
{
    double *alpha = u->alpha, *beta = u->beta;
    for (size_t i = 0; i <= n; i++) alpha[i] = beta[i] = -DBL_MAX;
    alpha[0] = beta[n] = 0;
    for (size_t i = 0; i < n; i += letter(text + i)) {
        steps x = steps_at(u, text, n, i);
        for (step s; next_step(&x, &s);) alpha[s.end] = log_sum(alpha[s.end], alpha[i] + s.score);
    }
    for (size_t i = n; i > 0;) {
        do i--;
        while (i > 0 && ((unsigned char)text[i] & 0xc0) == 0x80);
        steps x = steps_at(u, text, n, i);
        for (step s; next_step(&x, &s);) {
            beta[i] = log_sum(beta[i], s.score + beta[s.end]);
            u->expected[counts_as(s.id)] += count * tn__libm_exp(alpha[i] + s.score + beta[s.end] - alpha[n]);
        }
    }
}

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

static const char *word(const tn__unigram *u, uint32_t i, size_t *n) { return tn__strings_text(&u->words, i, n); }

static uint32_t count_alive(const tn__unigram *u)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < u->tokens.n; i++) n += u->alive[i];
    return n;
}

static void find_least(tn__unigram *u)
{
    u->lowest_score = DBL_MAX;
    for (uint32_t i = 0; i < u->tokens.n; i++)
        if (u->alive[i] && u->score[i] < u->lowest_score) u->lowest_score = u->score[i];
}

static bool build(tn__unigram *u)
{
    const size_t bytes = ((size_t)u->tokens.n + 1) * sizeof(uint32_t);
    uint32_t    *id = tn__mem_get(bytes);
    size_t       n = 0;
    for (uint32_t i = 0; id && i < u->tokens.n; i++)
        if (u->alive[i]) id[n++] = i;
    const bool ok = id && tn__trie_build(&u->trie, &u->tokens, id, n);
    tn__mem_put(id, bytes);
    find_least(u);
    return ok;
}

static bool one_round(tn__unigram *u)
{
    double sum = 0;
    size_t n;
    memset(u->expected, 0, u->tokens.n * sizeof *u->expected);
    for (uint32_t i = 0; i < u->words.n; i++) {
        const char *text = word(u, i, &n);
        if (!room(u, n)) return false;
        expect(u, text, n, (double)u->count[i]);
    }
    for (uint32_t i = 0; i < u->tokens.n; i++) {
        if (u->alive[i] && u->expected[i] < RARE) u->alive[i] = false;
        if (u->alive[i]) sum += u->expected[i];
    }
    const double whole = digamma(sum);
    for (uint32_t i = 0; i < u->tokens.n; i++)
        if (u->alive[i]) u->score[i] = digamma(u->expected[i]) - whole;
    find_least(u);
    return true;
}

/* Writes the number of uses of each token to u->expected, and the number of words to *words. */
static bool use(tn__unigram *u, double *words)
{
    size_t n;
    *words = 0;
    memset(u->expected, 0, u->tokens.n * sizeof *u->expected);
    for (uint32_t i = 0; i < u->words.n; i++) {
        const char *text = word(u, i, &n);
        if (!room(u, n)) return false;
        viterbi(u, text, n, -1);
        *words += (double)u->count[i];
        for (size_t at = n; at > 0; at = u->from[at]) u->expected[counts_as(u->token_at[at])] += (double)u->count[i];
    }
    return true;
}

/* Returns the loss of likelihood without a token; DBL_MAX: it has no other segmentation; -DBL_MAX: it is not used. */
static double loss_of(tn__unigram *u, uint32_t id, double sum, double words)
{
    size_t       n;
    const char  *text = tn__strings_text(&u->tokens, id, &n);
    const double used = u->expected[id];
    if (n == letter(text)) return used > 0 ? DBL_MAX : -DBL_MAX;
    if (!room(u, n)) return 0;
    const double other = viterbi(u, text, n, (int32_t)id);
    if (used == 0 || other >= u->score[id]) return -DBL_MAX;
    double pieces = 0, alternative = 0;
    for (size_t at = n; at > 0; at = u->from[at]) pieces++;
    const double all = tn__libm_log(sum + used * (pieces - 1));
    for (size_t at = n; at > 0; at = u->from[at])
        alternative += tn__libm_log(u->expected[counts_as(u->token_at[at])] + used) - all;
    return used / words * (tn__libm_log(used) - tn__libm_log(sum) - alternative);
}

static bool by_loss(const void *owner, uint32_t a, uint32_t b)
{
    const tn__unigram *u = owner;
    return u->loss[a] != u->loss[b] ? u->loss[a] > u->loss[b] : a < b;
}

static bool by_score(const void *owner, uint32_t a, uint32_t b)
{
    const tn__unigram *u = owner;
    return u->score[a] != u->score[b] ? u->score[a] > u->score[b] : a < b;
}

static bool prune(tn__unigram *u, uint32_t most)
{
    double   words, sum = 0;
    uint32_t n = 0;
    if (!use(u, &words)) return false;
    for (uint32_t i = 0; i < u->tokens.n; i++) sum += u->expected[i];
    for (uint32_t i = 0; i < u->tokens.n; i++) {
        if (!u->alive[i]) continue;
        u->loss[i] = loss_of(u, i, sum, words);
        u->order[n++] = i;
    }
    if (tn_error() != TN_OK) return false;
    tn__sort(u->order, n, by_loss, u);
    for (uint32_t i = 0; i < n; i++) u->alive[u->order[i]] = i < most && u->loss[u->order[i]] > -DBL_MAX;
    return true;
}

bool tn__unigram_rounds(tn__unigram *u, uint32_t wanted, const tn_tokenizer_train_args *args)
{
    const uint32_t enough = (uint32_t)(1.1 * (double)wanted), seeds = count_alive(u);
    uint32_t       n;
    do {
        if (!build(u) || !one_round(u) || !one_round(u)) return false;
        const uint32_t fewer = (uint32_t)(SHRINK * (double)count_alive(u));
        if (!prune(u, fewer > enough ? fewer : enough)) return false;
        n = count_alive(u);
        if (args->progress) /* in equal steps from the seed to the wanted size */
            args->progress("pruning",
                           n > enough ? tn__libm_log((double)seeds / n) / tn__libm_log((double)seeds / enough) : 1,
                           args->user);
    } while (n > enough);
    return true;
}

/* ---- the result -------------------------------------------------------------------------------------------------- */

static bool put(tn_tokenizer *t, const tn__unigram *u, uint32_t id)
{
    size_t         n;
    const char    *text = tn__strings_text(&u->tokens, id, &n);
    const uint32_t i = t->vocab.n;
    if (tn__strings_find(&t->vocab, text, n) >= 0) return true; /* it has the text of a special token */
    if (!tn__grown((void *)&t->type, &t->type_room, (int64_t)i + 1, 1) ||
        !tn__grown((void *)&t->score, &t->score_room, (int64_t)i + 1, sizeof *t->score))
        return false;
    t->type[i] = TN_TYPE_NORMAL, t->score[i] = (float)u->score[id];
    return tn__strings_add(&t->vocab, text, n) == i;
}

/* Adds the characters and the other tokens of the highest scores to t, `wanted` in all, in the order of their
 * scores. */
bool tn__unigram_finish(tn_tokenizer *t, tn__unigram *u, uint32_t wanted)
{
    uint32_t n = 0, kept = 0;
    double   above = 0;
    find_least(u);
    for (uint32_t i = 0; i < u->letters; i++) { /* the most frequent first */
        if (!u->alive[i]) u->score[i] = u->lowest_score + above, above += 0.0001;
        u->order[n++] = i;
    }
    for (uint32_t i = u->letters; i < u->tokens.n; i++)
        if (u->alive[i]) u->order[n++] = i;
    tn__sort(u->order, n, by_score, u);
    uint32_t others = wanted > u->letters ? wanted - u->letters : 0;
    for (uint32_t i = 0; i < n; i++) {
        const bool letter_here = u->order[i] < u->letters;
        if (!letter_here && !others) continue;
        if (!letter_here) others--;
        u->order[kept++] = u->order[i];
    }
    for (uint32_t i = 0; i < kept; i++)
        if (!put(t, u, u->order[i])) return false;
    return true;
}
