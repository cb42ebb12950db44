/* sampling.c — chooses the next token: the most likely ones, or sampling; repetition rules; the caller's changes. */
#include "core/base/toolbox.h"
#include "models/generate/sampling.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool tn__check_choice(const tn_generate_args *a)
{
    if (a->top_k < 0)
        return tn_raise_false(TN_EINVAL, "tn_generate: .top_k is %lld, but must be at least 0", (long long)a->top_k);
    if (!(a->top_p > 0 && a->top_p <= 1))
        return tn_raise_false(TN_EINVAL, "tn_generate: .top_p is %g, but must be above 0 and at most 1", a->top_p);
    if (!(a->min_p >= 0 && a->min_p <= 1))
        return tn_raise_false(TN_EINVAL, "tn_generate: .min_p is %g, but must be from 0 to 1", a->min_p);
    if (!(a->repetition_penalty > 0) || isinf(a->repetition_penalty))
        return tn_raise_false(TN_EINVAL,
                              "tn_generate: .repetition_penalty is %g, but must be greater than 0, and finite",
                              a->repetition_penalty);
    if (!(a->temperature > 0) || isinf(a->temperature))
        return tn_raise_false(TN_EINVAL, "tn_generate: .temperature is %g, but must be greater than 0, and finite",
                              a->temperature);
    if (a->unscored && (a->sample || a->beams > 1))
        return tn_raise_false(TN_EINVAL, "tn_generate: .unscored is only for greedy decoding; unset .unscored");
    if (!a->sample && (a->top_k || a->top_p < 1 || a->min_p > 0 || a->temperature != 1))
        return tn_raise_false(
            TN_EINVAL, "tn_generate: .temperature, .top_k, .top_p and .min_p have no effect without .sample; set "
                       ".sample = true");
    if (!isfinite(a->length_penalty))
        return tn_raise_false(TN_EINVAL, "tn_generate: .length_penalty is %g, but must be finite", a->length_penalty);
    if (!(a->coverage >= 0) || isinf(a->coverage))
        return tn_raise_false(TN_EINVAL, "tn_generate: .coverage is %g, but must be at least 0, and finite",
                              a->coverage);
    if (a->beams == 1 && (a->gnmt || a->coverage > 0))
        return tn_raise_false(TN_EINVAL, "tn_generate: .gnmt and .coverage have no effect with one beam; set .beams");
    return true;
}

bool tn__adjust(const tn_generate_args *a, const tn_next_token *next)
{
    const tn_status e = a->adjust(next, a->user);
    if (e != TN_OK && tn_error() == TN_OK)
        tn_raise(e, "tn_generate: .adjust returned %s for prompt %lld, after %lld new tokens", tn_status_name(e),
                 (long long)next->row, (long long)next->made);
    for (int64_t w = 0; w < next->vocab && tn_error() == TN_OK; w++)
        if (!(next->scores[w] < INFINITY))
            tn_raise(TN_ENUMERIC,
                     "tn_generate: .adjust set the score of token %lld of prompt %lld to %g, expected a number or "
                     "-INFINITY",
                     (long long)w, (long long)next->row, (double)next->scores[w]);
    return tn_error() == TN_OK;
}

/* A prompt may contain ids outside the vocabulary, which only the decoding interprets. */
static bool is_word(int64_t w, int64_t vocab) { return w >= 0 && w < vocab; }

void tn__forbid_repeats(float *p, int64_t vocab, const int64_t *words, int64_t length, int64_t n)
{
    if (n < 1 || length < n) return;
    const int64_t *last = words + length - (n - 1); /* the first n - 1 tokens of the next n-gram */
    for (int64_t i = 0; i + n <= length; i++)
        if (!memcmp(words + i, last, (size_t)(n - 1) * sizeof *words) && is_word(words[i + n - 1], vocab))
            p[words[i + n - 1]] = -INFINITY;
}

void tn__penalise(const float *from, float *to, int64_t vocab, const int64_t *words, int64_t length, double penalty)
{
    for (int64_t i = 0; i < length; i++) {
        const int64_t w = words[i];
        if (is_word(w, vocab))
            to[w] = (float)(from[w] > 0 ? from[w] / penalty
                                        : from[w] * penalty); /* once per token, from the original logit */
    }
}

/* Whether one of GROUP scores is above `least`: without branches, so that several are compared at once. */
enum { GROUP = 16 };
static bool any_above(const float *p, float least)
{
    int some = 0;
    for (int i = 0; i < GROUP; i++) some |= p[i] > least;
    return some;
}

int64_t tn__choose_best(const float *p, int64_t vocab, int64_t most, tn__choice *to)
{
    int64_t n = 0;
    float   least = -INFINITY; /* the smallest kept score, once `most` are kept */
    for (int64_t first = 0; first < vocab; first += GROUP) {
        const int64_t end = first + GROUP < vocab ? first + GROUP : vocab;
        if (end - first == GROUP && !any_above(p + first, least)) continue;
        for (int64_t w = first; w < end; w++) {
            if (!(p[w] > least)) continue;
            int64_t at = n < most ? n++ : n - 1;
            for (; at > 0 && to[at - 1].score < p[w]; at--) to[at] = to[at - 1];
            to[at] = (tn__choice){p[w], w};
            if (n == most) least = (float)to[n - 1].score;
        }
    }
    return n;
}

static int by_score(const void *a, const void *b)
{
    const tn__choice *x = a, *y = b;
    if (x->score != y->score) return x->score < y->score ? 1 : -1;
    return x->word < y->word ? -1 : x->word > y->word;
}

bool tn__sample_token(const float *p, int64_t vocab, const tn_generate_args *a, double u, tn__choice *room,
                      tn__choice *to)
{
    const double temperature = a->temperature;
    int64_t      n = 0;
    double       most = -INFINITY, sum = 0, at = 0;
    if (a->top_k > 0 && a->top_k < vocab) n = tn__choose_best(p, vocab, a->top_k, room);
    else
        for (int64_t w = 0; w < vocab; w++)
            if (p[w] > -INFINITY) room[n++] = (tn__choice){p[w], w};
    if (n == 0) return false;
    if (a->top_p < 1) qsort(room, (size_t)n, sizeof *room, by_score);
    for (int64_t i = 0; i < n; i++) most = fmax(most, room[i].score);
    for (int64_t i = 0; i < n; i++) sum += tn__libm_exp((room[i].score - most) / temperature);
    if (a->top_p < 1) { /* the fewest whose sum reaches top_p */
        double so_far = 0;
        for (int64_t i = 0; i < n; i++) {
            so_far += tn__libm_exp((room[i].score - most) / temperature);
            if (so_far >= a->top_p * sum) n = i + 1, sum = so_far;
        }
    }
    if (a->min_p > 0) { /* after top_p, which refers to all tokens */
        const int64_t all = n;
        n = 0, sum = 0;
        for (int64_t i = 0; i < all; i++) {
            const double v = tn__libm_exp((room[i].score - most) / temperature);
            if (v >= a->min_p) room[n++] = room[i], sum += v;
        }
    }
    for (int64_t i = 0; i < n; i++) {
        *to = room[i];
        at += tn__libm_exp((room[i].score - most) / temperature);
        if (at > u * sum) break;
    }
    return true;
}
