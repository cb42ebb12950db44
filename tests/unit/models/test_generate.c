/* test_generate.c — generation with a model of known logits: a table indexed by the last token. */
#include "models/models.h"
#include "tests/common/check_main.h"
#include "tests/common/faults.h"

/* Token 0 ends a text. After 1 comes 2 (0.5) or 3 (0.4); the most likely continuation of 2 has 0.4, of 3 0.9: so the
 * best text does not start with the best first token. */
enum { WORDS = 6 };
static const double table[WORDS][WORDS] = {
    {1, 0, 0, 0, 0, 0},
    {0.02, 0.02, 0.5, 0.4, 0.03, 0.03},
    {0.05, 0.1, 0.1, 0.05, 0.4, 0.3},
    {0.04, 0.01, 0.01, 0.02, 0.02, 0.9},
    {0.6, 0.1, 0.1, 0.1, 0.05, 0.05},
    {0.5, 0.3, 0.05, 0.05, 0.05, 0.05},
};
static int64_t    last[4096], kept; /* the last token of each row */
static tn_tensor *scores(tn_decoding *d, tn_tensor *tokens)
{
    (void)d;
    const int64_t rows = tn_size(tokens, 0), n = tn_size(tokens, 1);
    tn_tensor    *y = tn_empty(TN_SHAPE(rows, WORDS));
    float        *p = y ? tn_data_mut(y) : NULL;
    for (int64_t i = 0; p && i < rows; i++) {
        last[i] = tn_get_i64(tokens, i * n + n - 1);
        for (int w = 0; w < WORDS; w++) p[i * WORDS + w] = (float)log(table[last[i]][w]) + 3;
    }
    return y;
}
static tn_status reorder(tn_decoding *d, tn_tensor *index)
{
    kept = tn_numel(index);
    for (int64_t i = 0; i < kept; i++) ck_assert_int_lt(tn_get_i64(index, i), d->rows);
    return TN_OK;
}
static const tn_decoding_kind kind = {sizeof(tn_decoding_kind), scores, reorder, NULL, NULL};
static tn_decoding            model = {&kind, 4096, 16};

static tn_tensor *ones(int64_t rows) { return tn_full_of(TN_I64, TN_SHAPE(rows, 1), 1); }

static void ck_words(tn_generated g, int64_t i, int64_t n, const int64_t *words)
{
    fine();
    ck_assert_int_eq(tn_get_i64(g.lengths, i), n);
    for (int64_t k = 0; k < tn_size(g.tokens, 2); k++)
        ck_assert_int_eq(tn_get_i64(g.tokens, i * tn_size(g.tokens, 2) + k), k < n ? words[k] : -1);
}
#define WORDS_OF(...) \
    (int64_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) { __VA_ARGS__ }

TEST(greedy_and_beams)
{
    tn_generated g = tn_generate(&model, ones(1), .end = 0, .most = 8);
    ck_words(g, 0, WORDS_OF(2, 4));
    ck_assert_double_eq_tol(tn_get(g.scores, 0), log(0.5 * 0.4 * 0.6), 1e-5);
    g = tn_generate(&model, ones(2), .end = 0, .most = 8, .beams = 2, .best = 2, .length_penalty = 0);
    for (int64_t b = 0; b < 2; b++) {
        ck_words(g, 2 * b, WORDS_OF(3, 5));
        ck_words(g, 2 * b + 1, WORDS_OF(2, 4));
        ck_assert_double_eq_tol(tn_get(g.scores, 2 * b), log(0.4 * 0.9 * 0.5), 1e-5);
        ck_assert_double_eq_tol(tn_get(g.scores, 2 * b + 1), log(0.5 * 0.4 * 0.6), 1e-5);
    }
    g = tn_generate(&model, ones(1), .end = 0, .most = 8, .beams = 2); /* length normalised, including the end */
    ck_assert_double_eq_tol(tn_get(g.scores, 0), log(0.4 * 0.9 * 0.5) / 3, 1e-5);
    g = tn_generate(&model, ones(1), .end = 0, .most = 2); /* truncated before its end */
    ck_words(g, 0, WORDS_OF(2, 4));
    ck_assert_double_eq_tol(tn_get(g.scores, 0), log(0.5 * 0.4), 1e-5);
    g = tn_generate(&model, ones(1), .end = 0, .most = 5, .least = 4); /* the end is forbidden for 4 tokens */
    ck_words(g, 0, WORDS_OF(2, 4, 1, 2, 4));
    g = tn_generate(&model, ones(1), .most = 3); /* no token ends a text */
    ck_words(g, 0, WORDS_OF(2, 4, 0));
    g = tn_generate(&model, ones(1), .most = 6, .least = 5, .end = 0, .no_repeat = 1); /* the prompt counts */
    ck_words(g, 0, WORDS_OF(2, 4, 3, 5));
    const int64_t limit[] = {1, 3, 2}; /* each prompt's own limit */
    for (int beams = 1; beams <= 2; beams++) {
        g = tn_generate(&model, ones(3), .most = 3, .beams = beams, .best = 1,
                        .most_each = tn_from_data(TN_I64, TN_SHAPE(3), limit));
        for (int64_t b = 0; b < 3; b++) ck_assert_int_eq(tn_get_i64(g.lengths, b), limit[b]);
    }
    tn_tensor *i32 = tn_to(ones(1), TN_I32);
    ck_words(tn_generate(&model, i32, .end = 0, .most = 8), 0, WORDS_OF(2, 4));
    ck_assert_int_eq(tn_dtype_of(i32), TN_I32);
    ck_assert_int_eq(tn_get_i64(i32, 0), 1);
}

/* All texts of at most 3 tokens, by hand: enough beams find the best. */
TEST(many_beams_find_the_best)
{
    double best = -INFINITY;
    for (int a = 1; a < WORDS; a++)
        for (int b = 0; b < WORDS; b++) {
            const double p = log(table[1][a]) + (b ? log(table[a][b]) + log(table[b][0]) : log(table[a][0]));
            best = fmax(best, p);
        }
    tn_generated g = tn_generate(&model, ones(1), .end = 0, .most = 3, .beams = 64, .length_penalty = 0);
    fine();
    ck_assert_double_eq_tol(tn_get(g.scores, 0), best, 1e-5);
}

/* The empty text, finished first, is worse than five of the texts that end at the limit. */
TEST(the_limit_ends_what_is_better)
{
    static const int64_t should[5][2] = {{3, 5}, {2, 4}, {2, 5}, {2, 1}, {2, 2}};
    static const double  p[5] = {0.4 * 0.9, 0.5 * 0.4, 0.5 * 0.3, 0.5 * 0.1, 0.5 * 0.1};
    tn_generated         g = tn_generate(&model, ones(1), .end = 0, .most = 2, .beams = 5, .best = 5);
    for (int64_t i = 0; i < 5; i++) {
        ck_words(g, i, 2, should[i]);
        ck_assert_double_eq_tol(tn_get(g.scores, i), log(p[i]) / 2, 1e-5);
    }
}

/* .before makes already read tokens count. */
TEST(what_was_before_is_not_repeated)
{
    static const int64_t words[] = {2, 4, 1};
    tn_tensor           *all = tn_from_data(TN_I64, TN_SHAPE(1, 3), words), *before = tn_narrow(all, 1, 0, 2);
    tn_tensor           *last_one = tn_narrow(all, 1, 2, 1);
    for (int k = 0; k < 3; k++) {
        const int64_t no_repeat = k == 0;
        const double  penalty = k == 0 ? 1 : 3;
        const int64_t beams = k == 2 ? 3 : 1;
        tn_generated  a =
            tn_generate(&model, all, .most = 2, .no_repeat = no_repeat, .repetition_penalty = penalty, .beams = beams);
        tn_generated b = tn_generate(&model, last_one, .read = 2, .before = before, .most = 2, .beams = beams,
                                     .no_repeat = no_repeat, .repetition_penalty = penalty);
        ck_words(a, 0, WORDS_OF(3, 5));
        ck_words(b, 0, WORDS_OF(3, 5));
        ck_assert_double_eq(tn_get(a.scores, 0), tn_get(b.scores, 0));
    }
    ck_words(tn_generate(&model, last_one, .read = 2, .most = 2, .no_repeat = 1), 0, WORDS_OF(2, 4));
}

/* ---- sampling ---------------------------------------------------------------------------------------------------- */

enum { DRAWS = 4000 };
static void ck_frequencies(tn_generated g, const double *want)
{
    fine();
    double n[WORDS] = {0};
    for (int64_t i = 0; i < DRAWS; i++) n[tn_get_i64(g.tokens, i)] += 1.0 / DRAWS;
    for (int w = 0; w < WORDS; w++) /* five standard deviations */
        ck_assert_msg(fabs(n[w] - want[w]) <= 5 * sqrt(want[w] * (1 - want[w]) / DRAWS) + 1e-9,
                      "word %d: %g, expected %g", w, n[w], want[w]);
}

TEST(sampling)
{
    double cold[WORDS], sum = 0;
    for (int w = 0; w < WORDS; w++) sum += cold[w] = table[1][w] * table[1][w];
    for (int w = 0; w < WORDS; w++) cold[w] /= sum;
    tn_seed(11);
    const uint64_t at = tn_current_generator()->position;
    tn_generated   g = tn_generate(&model, ones(DRAWS), .most = 1, .sample = true);
    ck_frequencies(g, table[1]);
    ck_assert(tn_current_generator()->position == at + DRAWS);
    tn_generated h = tn_generate(&model, ones(DRAWS), .most = 1, .sample = true);
    ck_assert(!tn_same_bits(g.tokens, h.tokens));
    tn_seed(11);
    h = tn_generate(&model, ones(DRAWS), .most = 1, .sample = true);
    ck_assert(tn_same_bits(g.tokens, h.tokens) && tn_same_bits(g.scores, h.scores));
    ck_frequencies(tn_generate(&model, ones(DRAWS), .most = 1, .sample = true, .temperature = 0.5), cold);
    ck_frequencies(tn_generate(&model, ones(DRAWS), .most = 1, .sample = true, .top_k = 2),
                   (const double[WORDS]){0, 0, 5.0 / 9, 4.0 / 9, 0, 0});
    ck_frequencies(tn_generate(&model, ones(DRAWS), .most = 1, .sample = true, .top_p = 0.85),
                   (const double[WORDS]){0, 0, 5.0 / 9, 4.0 / 9, 0, 0});
    ck_frequencies(tn_generate(&model, ones(DRAWS), .most = 1, .sample = true, .top_p = 0.3),
                   (const double[WORDS]){0, 0, 1, 0, 0, 0});
    /* 0.4 is 0.8 times the maximum; with half the temperature 0.64 */
    ck_frequencies(tn_generate(&model, ones(DRAWS), .most = 1, .sample = true, .min_p = 0.79),
                   (const double[WORDS]){0, 0, 5.0 / 9, 4.0 / 9, 0, 0});
    ck_frequencies(tn_generate(&model, ones(DRAWS), .most = 1, .sample = true, .min_p = 0.7, .temperature = 0.5),
                   (const double[WORDS]){0, 0, 1, 0, 0, 0});
    ck_frequencies(tn_generate(&model, ones(DRAWS), .most = 1, .sample = true, .min_p = 0.05, .top_p = 0.85),
                   (const double[WORDS]){0, 0, 5.0 / 9, 4.0 / 9, 0, 0});
    g = tn_generate(&model, ones(1), .most = 1, .sample = true, .top_k = 1);
    ck_assert_double_eq_tol(tn_get(g.scores, 0), log(0.5), 1e-5); /* the model's own log-probability */
}

/* Same order as Hugging Face: .temperature, then .top_k, .top_p, .min_p. After token 5, tokens 0 and 1 have
 * probabilities 0.5 and 0.3, the four others 0.05. */
TEST(sampling_in_order)
{
    static const struct {
        int64_t k;
        double  heat, p, least, want[WORDS];
    } at[] = {
        {0, 1, 0.6, 0.5, {0.625, 0.375}},                /* 0.3 is within the first 0.6, and more than half of 0.5 */
        {0, 1, 0.6, 0.7, {1}},                           /* but less than 0.7 of it */
        {0, 1, 0.45, 0.5, {1}},                          /* 0.5 is enough */
        {0, 1, 0.82, 0.5, {0.625, 0.375}},               /* and 0.05 is too little */
        {3, 1, 0.6, 0.5, {0.625, 0.375}},                /* 0.6 of 0.85 */
        {3, 1, 0.58, 0.5, {1}},                          /* 0.493 */
        {2, 1, 0.62, 0.01, {1}},                         /* 0.62 of 0.8 */
        {3, 1, 1, 0.5, {0.625, 0.375}},                  /* without one of them */
        {0, 0.5, 0.75, 0.3, {0.25 / 0.34, 0.09 / 0.34}}, /* squares: 0.25, 0.09 and 0.0025, of 0.35 */
        {0, 0.5, 0.75, 0.4, {1}},                        /* 0.36 of the maximum */
        {0, 0.5, 0.7, 0.3, {1}},
    };
    tn_seed(12);
    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        ck_frequencies(tn_generate(&model, tn_full_of(TN_I64, TN_SHAPE(DRAWS, 1), 5), .most = 1, .sample = true,
                                   .top_k = at[i].k, .temperature = at[i].heat, .top_p = at[i].p, .min_p = at[i].least),
                       at[i].want);
}

/* Like Hugging Face's RepetitionPenaltyLogitsProcessor: applied to logits, not probabilities, and once per token. */
TEST(repetition)
{
    tn_generated g = tn_generate(&model, ones(1), .most = 3, .repetition_penalty = 1e6);
    ck_words(g, 0, WORDS_OF(2, 4, 0)); /* not 1 again */
    double want[WORDS], sum = 0;
    for (int w = 0; w < WORDS; w++) {
        const double score = log(table[1][w]) + 3;
        sum += want[w] = exp(w == 1 ? (score > 0 ? score / 1.5 : score * 1.5) : score);
    }
    for (int w = 0; w < WORDS; w++) want[w] /= sum;
    tn_seed(12);
    ck_frequencies(tn_generate(&model, tn_full_of(TN_I64, TN_SHAPE(DRAWS, 3), 1), .most = 1, .sample = true,
                               .repetition_penalty = 1.5),
                   want);
}

static int64_t heard[8], nheard;
static bool    hear(int64_t row, int64_t word, void *user)
{
    ck_assert(row == 0 && user == &model);
    heard[nheard++] = word;
    return nheard < 3;
}

TEST(each_word_is_told)
{
    nheard = 0;
    tn_generated g = tn_generate(&model, ones(1), .most = 8, .end = 5, .least = 8, .each = hear, .user = &model);
    ck_words(g, 0, WORDS_OF(2, 4, 0));
    ck_assert(nheard == 3 && heard[0] == 2 && heard[1] == 4 && heard[2] == 0);
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

BARE_TEST_EACH(memory, 2)
{
    tn_seed(5);
    tn_set_threads(1);
    tn_faulty_memory_begin();
    tn_generator      *gen = tn_current_generator();
    const tn_generator start = *gen;
    for (int64_t at = -2, calls = 1; at < calls; at++) { /* twice without a failure: the second time with warm caches */
        const tn_scope s = tn_scope_begin();
        *gen = start;
        tn_fail_memory(at < 0 ? -1 : at, true);
        tn_tensor   *p = ones(3);
        tn_generated g = {0};
        if (_i) g = tn_generate(&model, p, .most = 4, .sample = true, .end = 0);
        else g = tn_generate(&model, p, .most = 4, .beams = 3, .best = 2, .end = 0);
        if (at < 0) calls = tn_memory_calls();
        ck_assert_msg(at < 0 ? tn_error() == TN_OK : tn_error() == TN_ENOMEM, "%d: %s", (int)at, tn_error_message());
        ck_assert((g.tokens != NULL) == (at < 0) && (g.scores != NULL) == (at < 0));
        if (at >= 0) ck_assert(!memcmp(gen, &start, sizeof start));
        tn_clear_error();
        tn_fail_memory(-1, false);
        tn_scope_end(s);
    }
    tn_faulty_memory_end();
    tn_set_threads(0);
}

#define REFUSED(code, text, ...)                            \
    do {                                                    \
        tn_generated g_ = tn_generate(__VA_ARGS__);         \
        ck_assert(!g_.tokens && !g_.lengths && !g_.scores); \
        ck_error(code, "tn_generate: " text);               \
    } while (0)

/* Values of a custom decoding: token ids outside the vocabulary, logits that are NaN or infinite. */
static double     strange;
static tn_tensor *likely(tn_decoding *d, tn_tensor *tokens)
{
    (void)d;
    tn_tensor *y = tn_zeros(TN_SHAPE(tn_size(tokens, 0), WORDS));
    tn_set(y, 3, 2), tn_set(y, 4, 1.5), tn_set(y, 2, strange);
    return y;
}
static const tn_decoding_kind likely_kind = {sizeof(tn_decoding_kind), likely, reorder, NULL, NULL};

TEST(numbers_that_are_no_words)
{
    tn_decoding d = {&likely_kind, 4, 16};
    strange = 0;
    const int64_t plain = tn_get_i64(tn_generate(&d, ones(2), .most = 2, .repetition_penalty = 2).tokens, 0);
    for (int64_t word = -1; word >= -1000000000; word *= 1000)
        for (int k = 0; k < 2; k++) {
            tn_tensor *prompt = tn_full_of(TN_I64, TN_SHAPE(2, 2), 1);
            tn_set(prompt, 2, (double)word);
            tn_generated g = tn_generate(&d, prompt, .most = 2, .no_repeat = k, .repetition_penalty = k ? 1 : 2);
            fine();
            ck_assert_int_eq(tn_get_i64(g.tokens, 0), plain);
        }
}

static tn_tensor *nothing(tn_decoding *d, tn_tensor *tokens)
{
    (void)d;
    return tn_full(TN_SHAPE(tn_size(tokens, 0), WORDS), -INFINITY);
}
static tn_status unchanged(const tn_next_token *t, void *user) { return (void)t, (void)user, TN_OK; }

/* A decoding that forbids all tokens ends the text, also if .adjust does nothing. */
TEST(no_token_is_allowed)
{
    static const tn_decoding_kind nothing_kind = {sizeof(tn_decoding_kind), nothing, reorder, NULL, NULL};
    for (int k = 0; k < 6; k++) {
        tn_decoding  d = {&nothing_kind, 4, 16};
        tn_generated g = tn_generate(&d, ones(1), .most = 3, .sample = k / 2 == 1, .beams = k / 2 == 2 ? 2 : 1,
                                     .adjust = k % 2 ? unchanged : NULL);
        fine();
        ck_assert_int_eq(tn_get_i64(g.lengths, 0), 0);
    }
}

TEST(scores_that_are_no_numbers)
{
    for (int k = 0; k < 8; k++) {
        tn_decoding d = {&likely_kind, 4, 16};
        strange = k % 2 ? (double)INFINITY : (double)NAN;
        tn_generated g = tn_generate(&d, ones(1), .most = 2, .sample = k / 2 == 1, .beams = k / 2 == 2 ? 2 : 1,
                                     .unscored = k / 2 == 3);
        ck_refused(g.tokens, TN_ENUMERIC,
                   k % 2 ? "tn_generate: the logit of token 2, after 1 tokens of prompt 0, is inf; check "
                           "the model's weights for NaN and Inf"
                         : "tn_generate: the logit of token 2, after 1 tokens of prompt 0, is nan; check "
                           "the model's weights for NaN and Inf");
    }
}

/* Greedy decoding without the softmax: the same tokens, also where some are forbidden; the scores are sums of logits,
 * here 3 more than the log-probability of each token. */
TEST(unscored)
{
    for (int k = 0; k < 8; k++) {
        tn_generate_args a = {TN_GENERATE_ARGS_DEFAULTS, .from = &model, .prompt = ones(3), .most = 8};
        a.end = 0, a.least = k & 1 ? 6 : 0, a.no_repeat = k & 2 ? 2 : 0, a.repetition_penalty = k & 4 ? 1.5 : 1;
        const tn_generated scored = tn_generate_run(a);
        a.unscored = true;
        const tn_generated g = tn_generate_run(a);
        fine();
        ck_assert(tn_same_bits(g.tokens, scored.tokens) && tn_same_bits(g.lengths, scored.lengths));
        for (int64_t b = 0; k == 0 && b < 3; b++) /* 2, 4 and the end */
            ck_assert_double_eq_tol(tn_get(g.scores, b), tn_get(scored.scores, b) + 9, 1e-5);
    }
    REFUSED(TN_EINVAL, ".unscored is only for greedy decoding; unset .unscored", &model, ones(1), .beams = 2,
            .unscored = true);
    REFUSED(TN_EINVAL, ".unscored is only for greedy decoding; unset .unscored", &model, ones(1), .sample = true,
            .unscored = true);
}

TEST(wrong_use)
{
    REFUSED(TN_EINVAL, ".most is -1, but must be at least 0", &model, ones(1), .most = -1);
    REFUSED(TN_EINVAL, ".temperature is inf, but must be greater than 0, and finite", &model, ones(1),
            .temperature = (double)INFINITY);
    REFUSED(TN_EINVAL, ".repetition_penalty is inf, but must be greater than 0, and finite", &model, ones(1),
            .repetition_penalty = (double)INFINITY);
    REFUSED(TN_EINVAL, ".length_penalty is nan, but must be finite", &model, ones(1), .beams = 2,
            .length_penalty = (double)NAN);
    REFUSED(TN_EINVAL, "the decoding is NULL", NULL, ones(1));
    REFUSED(TN_ESHAPE, "the prompt must be [batch, length], both at least 1, got NULL", &model, NULL);
    REFUSED(TN_ESHAPE, "the prompt must be [batch, length], both at least 1, got [1, 0]", &model,
            tn_zeros_of(TN_I64, TN_SHAPE(1, 0)));
    REFUSED(TN_EDTYPE, "the prompt must hold integers, i64 or i32", &model, tn_zeros(TN_SHAPE(1, 1)));
    REFUSED(TN_EINVAL, ".beams is 65, but must be from 1 to 64", &model, ones(1), .beams = 65);
    REFUSED(TN_EINVAL, ".best is 3, but must be from 1 to .beams", &model, ones(1), .beams = 2, .best = 3);
    REFUSED(TN_EINVAL, ".beams is 2, but must be 1 for sampling", &model, ones(1), .beams = 2, .sample = true);
    REFUSED(TN_EINVAL, ".beams is 2, but must be 1 with .each", &model, ones(1), .beams = 2, .each = hear);
    REFUSED(TN_EINVAL, ".least is 5, but must be from 0 to .most", &model, ones(1), .most = 4, .least = 5);
    REFUSED(TN_ESHAPE, ".most_each must be i64 [1], one number per prompt, got i64 [2]", &model, ones(1), .most = 4,
            .most_each = tn_ones_of(TN_I64, TN_SHAPE(2)));
    REFUSED(TN_EINVAL, ".most_each is 5 for prompt 0, but must be from 1 to 4", &model, ones(1), .most = 4,
            .most_each = tn_full_of(TN_I64, TN_SHAPE(1), 5));
    REFUSED(TN_EINVAL, ".top_p is 1.5, but must be above 0 and at most 1", &model, ones(1), .top_p = 1.5);
#define UNDRAWN ".temperature, .top_k, .top_p and .min_p have no effect without .sample; set .sample = true"
    REFUSED(TN_EINVAL, UNDRAWN, &model, ones(1), .temperature = 0.5);
    REFUSED(TN_EINVAL, UNDRAWN, &model, ones(1), .top_k = 3);
    REFUSED(TN_EINVAL, UNDRAWN, &model, ones(1), .top_p = 0.5);
    REFUSED(TN_EINVAL, UNDRAWN, &model, ones(1), .min_p = 0.5);
    REFUSED(TN_EINVAL, ".min_p is -1, but must be from 0 to 1", &model, ones(1), .min_p = -1);
    REFUSED(TN_EINVAL, ".repetition_penalty is 0, but must be greater than 0, and finite", &model, ones(1),
            .repetition_penalty = 0);
    REFUSED(TN_ESHAPE,
            ".before must be [1, 2], the .read tokens of each prompt, got [1, "
            "1]",
            &model, ones(1), .read = 2, .before = ones(1));
    REFUSED(TN_EDTYPE, ".before must hold integers, i64 or i32", &model, ones(1), .read = 1,
            .before = tn_zeros(TN_SHAPE(1, 1)));
    REFUSED(TN_EINVAL, ".read is -1, but must be at least 0", &model, ones(1), .read = -1);
    REFUSED(TN_EINVAL,
            "a prompt of 1 tokens and 9 new ones do not fit the decoding's length of 16, part of which has been read",
            &model, ones(1), .most = 9, .read = 7);
    REFUSED(TN_EINVAL, ".temperature is -1, but must be greater than 0, and finite", &model, ones(1),
            .temperature = -1);
    REFUSED(TN_EINVAL, "3000 prompts with 2 beams each need 6000 rows; the decoding has 4096", &model, ones(3000),
            .beams = 2);
    REFUSED(TN_EINVAL, "a prompt of 1 tokens and 16 new ones do not fit the decoding's length of 16", &model, ones(1),
            .most = 16);
}
