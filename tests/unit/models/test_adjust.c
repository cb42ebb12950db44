/* test_adjust.c — .adjust of tn_generate: what the callback sees and changes, for greedy decoding, sampling and beams,
 * with and without a cache; its errors; and speculation without a draft, for texts that a callback dictates. */
#include "extras.h"
#include "tests/common/check_main.h"
#include "models/generate/lm_private.h"

enum { WORDS = 37, LENGTH = 64 };

static tn_llama *a_llama(int64_t window)
{
    tn_seed(6);
    tn_llama *m = tn_llama_new(.vocab = WORDS, .dim = 32, .layers = 2, .heads = 4, .kv_heads = 2, .init = 0.3,
                               .positions = 512, .scores.window = window);
    tn_eval(m);
    fine();
    return m;
}

static tn_tensor *prompts(int64_t rows)
{
    tn_seed(8);
    return tn_randint(TN_SHAPE(rows, 5), 0, WORDS);
}

/* ---- callbacks --------------------------------------------------------------------------------------------------- */

typedef struct {
    int64_t  calls, period; /* period 0: none */
    uint64_t seed;
    double   value;
} context;

static tn_status watch(const tn_next_token *n, void *user)
{
    context *c = user;
    c->calls++;
    ck_assert_int_eq(n->vocab, WORDS);
    ck_assert_int_eq(n->length, 5 + n->made);
    for (int64_t i = 0; i < n->length; i++) ck_assert(n->tokens[i] >= 0 && n->tokens[i] < WORDS);
    tn_tensor *p = prompts(n->row + 1); /* draws the same first rows */
    for (int64_t i = 0; i < 5; i++) ck_assert_int_eq(n->tokens[i], tn_get_i64(p, n->row * 5 + i));
    return TN_OK;
}

static tn_status ban(const tn_next_token *n, void *user)
{
    (void)user;
    for (int64_t w = 0; w < n->vocab; w += 2) n->scores[w] = -INFINITY;
    return TN_OK;
}

/* Allows one token: those of a period, or, without one, pseudo-random ones. */
static tn_status dictate(const tn_next_token *n, void *user)
{
    context      *c = user;
    const int64_t i = c->period ? n->made % c->period : n->made;
    uint64_t      x = (c->seed + (uint64_t)i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    const int64_t word = (int64_t)((x ^ x >> 29) * UINT64_C(0xbf58476d1ce4e5b9) >> 33) % WORDS;
    for (int64_t w = 0; w < n->vocab; w++) n->scores[w] = w == word ? 0 : -INFINITY;
    return TN_OK;
}

/* The texts 7 8 9 and 7 10; then none. */
static tn_status answers(const tn_next_token *n, void *user)
{
    static const int64_t list[2][4] = {{7, 8, 9, -1}, {7, 10, -1, -1}};
    bool                 ok[WORDS] = {false};
    (void)user;
    for (int i = 0; i < 2; i++) {
        bool same = true;
        for (int64_t k = 0; k < n->made; k++) same = same && k < 3 && list[i][k] == n->tokens[n->length - n->made + k];
        if (same && list[i][n->made] >= 0) ok[list[i][n->made]] = true;
    }
    for (int64_t w = 0; w < n->vocab; w++)
        if (!ok[w]) n->scores[w] = -INFINITY;
    return TN_OK;
}

static tn_status spoil(const tn_next_token *n, void *user)
{
    if (n->made == 3) n->scores[11] = (float)((context *)user)->value;
    return TN_OK;
}
static tn_status fails(const tn_next_token *n, void *user)
{
    (void)user;
    return n->made == 2 ? TN_EFORMAT : TN_OK;
}
static tn_status raises(const tn_next_token *n, void *user)
{
    (void)user;
    if (n->made == 2) tn_raise(TN_EINVAL, "the answer '%s' is too long", "xyz");
    return TN_OK;
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

/* The same decoding of each kind: greedy, sampled, beams. */
static tn_generated generate(tn_decoding *d, int how, tn_status (*adjust)(const tn_next_token *, void *), void *user)
{
    tn_generate_args a = {TN_GENERATE_ARGS_DEFAULTS, .from = d, .prompt = prompts(2), .most = 12};
    tn_seed(4);
    a.end = 0, a.sample = how == 1, a.beams = how == 2 ? 3 : 1, a.best = a.beams, a.adjust = adjust, a.user = user;
    tn_generated g = tn_generate_run(a);
    tn_decoding_free(d);
    return g;
}
static tn_decoding *decoding(tn_llama *m, bool cached)
{
    return cached ? tn_llama_decoding(m, 6, LENGTH) : tn__uncached_decoding(m, tn__lm_step, 6, LENGTH);
}

TEST_EACH(nothing_changed_is_the_same_text, 3)
{
    tn_llama    *m = a_llama(0);
    context      c = {0};
    tn_generated with = generate(decoding(m, true), _i, watch, &c),
                 without = generate(decoding(m, true), _i, NULL, NULL);
    fine();
    ck_assert(tn_same_bits(with.tokens, without.tokens) && tn_same_bits(with.scores, without.scores));
    ck_assert_int_ge(c.calls, 12);
    tn_free(m);
}

TEST_EACH(banned_tokens, 3)
{
    tn_llama    *m = a_llama(0);
    tn_generated cached = generate(decoding(m, true), _i, ban, NULL), not = generate(decoding(m, false), _i, ban, NULL);
    fine();
    ck_assert(tn_same_bits(cached.tokens, not .tokens) && tn_same_bits(cached.scores, not .scores));
    ck_assert_int_eq(tn_size(cached.tokens, 2), 12); /* the end, 0, is banned, too */
    for (int64_t i = 0; i < tn_numel(cached.tokens); i++) ck_assert_int_eq(tn_get_i64(cached.tokens, i) % 2, 1);
    tn_free(m);
}

/* Texts that may not continue end, also one of several beams. */
TEST_EACH(allowed_answers, 6)
{
    tn_llama    *m = a_llama(0);
    tn_generated g = generate(decoding(m, _i > 2), _i % 3, answers, NULL);
    fine();
    const int64_t best = tn_size(g.tokens, 1), n = tn_size(g.tokens, 2);
    for (int64_t i = 0; i < 2 * best; i++) {
        const int64_t length = tn_get_i64(g.lengths, i);
        if (i % best == 2) { /* there are two texts for three beams */
            ck_assert(length == 0 && isinf(tn_get(g.scores, i)));
            continue;
        }
        ck_assert(length == 2 || length == 3);
        ck_assert_int_eq(tn_get_i64(g.tokens, i * n), 7);
        ck_assert_int_eq(tn_get_i64(g.tokens, i * n + 1), length == 3 ? 8 : 10);
    }
    if (best == 3) ck_assert_int_eq(tn_get_i64(g.lengths, 0) + tn_get_i64(g.lengths, 1), 5);
    tn_free(m);
}

TEST_EACH(errors_end_the_generation, 3)
{
    tn_llama          *m = a_llama(0);
    const tn_generator before = (tn_seed(4), *tn_current_generator());
    tn_generated       g = generate(decoding(m, true), _i, fails, NULL);
    ck_assert(!g.tokens && !g.lengths && !g.scores);
    ck_error(TN_EFORMAT, "tn_generate: .adjust returned TN_EFORMAT for prompt 0, after 2 new tokens");
    ck_assert(tn_current_generator()->position == before.position);
    ck_assert(!generate(decoding(m, true), _i, raises, NULL).tokens);
    ck_error(TN_EINVAL, "the answer 'xyz' is too long");
    const double values[] = {(double)NAN, (double)INFINITY};
    for (int i = 0; i < 2; i++) {
        ck_assert(!generate(decoding(m, true), _i, spoil, &(context){.value = values[i]}).tokens);
        ck_error(TN_ENUMERIC,
                 i ? "tn_generate: .adjust set the score of token 11 of prompt 0 to inf, expected a number "
                     "or -INFINITY"
                   : "tn_generate: .adjust set the score of token 11 of prompt 0 to nan, expected a number "
                     "or -INFINITY");
    }
    tn_free(m);
}

/* ---- speculation without a draft --------------------------------------------------------------------------------- */

static tn_tensor *written(tn_decoding *d, context *c, bool sample)
{
    enum { MOST = 300 };
    tn_generate_args a = {TN_GENERATE_ARGS_DEFAULTS, .from = d, .prompt = prompts(1), .most = MOST, .sample = sample};
    tn_seed(4);
    if (c) a.adjust = dictate, a.user = c;
    a.repetition_penalty = c ? 1 : 1.1, a.temperature = sample ? 0.3 : 1;
    tn_generated g = tn_generate_run(a);
    fine();
    tn_decoding_free(d);
    return g.tokens;
}

/* The model's own texts, and dictated ones with a period and without: the same bits as without speculation. Few passes
 * for a text that repeats itself, and almost no proposals for one that does not. */
TEST_EACH(earlier_text_changes_no_bit, 2)
{
    tn_llama *m = a_llama(_i ? 50 : 0); /* a window drops positions of the cache */
    for (int k = 0; k < 8; k++)
        for (int64_t ahead = 1; ahead < 40; ahead *= 6) {
            context        c = {.period = k & 2 ? 7 : 0, .seed = 3};
            tn_speculation n;
            const bool     own = k & 4, sample = k & 1;
            if (own && k & 2) continue;
            tn_tensor   *plain = written(tn_llama_decoding(m, 1, 400), own ? NULL : &c, sample);
            tn_decoding *d = tn_speculative_decoding(m, NULL, 400, ahead, &n);
            ck_assert(tn_same_bits(plain, written(d, own ? NULL : &c, sample)));
            ck_assert_int_eq(n.accepted + n.readings, 299); /* the prompt's pass gives the first */
            ck_assert(n.proposed >= n.accepted && n.plain > 0);
            if (!own && c.period && ahead == 36) ck_assert_int_le(n.readings, 299 / (ahead + 1) + 60);
            if (!own && !c.period) ck_assert_int_le(n.proposed, 30);
        }
    tn_free(m);
}

TEST(speculation_needs_a_cache)
{
    tn_speculation n;
    tn_rnn_lm     *m = tn_rnn_lm_new(.vocab = 8, .dim = 4, .hidden = 4, .layers = 1);
    ck_refused_has(tn_speculative_decoding(m, NULL, 64, 4, &n), TN_EUNSUPPORTED,
                   "has no tn_blocks and no key/value cache");
    tn_llama *l = a_llama(0);
    ck_refused_has(tn_speculative_decoding(l, NULL, 64, 65, &n), TN_EINVAL,
                   "tn_speculative_decoding: length is 64 and ahead 65");
    ck_refused_has(tn_speculative_decoding(l, NULL, 64, 4, NULL), TN_EINVAL, "count not NULL");
    tn_free(m), tn_free(l);
}
