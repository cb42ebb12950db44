/* test_beams.c — beam searches of 60 random tables of logits, compared with Hugging Face's transformers
 * (tests/golden/beams.py), when a search ends, and GNMT's penalties, compared with their formula. */
#include "models/generate/lm_private.h"
#include "models/models.h"
#include "tests/common/check_main.h"

/* Logits: table[last token] + shift[tokens read - 1]; without shift, table[last token]. Token 0 ends a text. */
typedef struct {
    tn_decoding base;
    tn_tensor  *table, *shift;
    int64_t     read;
} model;
static tn_tensor *scores(tn_decoding *d, tn_tensor *tokens)
{
    model        *m = (model *)d;
    const int64_t rows = tn_size(tokens, 0), n = tn_size(tokens, 1);
    tn_tensor    *last = tn_reshape(tn_narrow(tokens, 1, n - 1, 1), TN_SHAPE(rows));
    m->read += n;
    tn_tensor *y = tn_index_select(m->table, 0, last);
    return m->shift ? tn_add(y, tn_select(m->shift, 0, m->read - 1)) : y;
}
static tn_status reorder(tn_decoding *d, tn_tensor *index)
{
    (void)d, (void)index;
    return TN_OK;
}
static const tn_decoding_kind kind = {sizeof(tn_decoding_kind), scores, reorder, NULL, NULL};

/* The token ids are equal; the scores are sums of up to 12 log-probabilities in f32. A missing text has score -inf. */
TEST(as_transformers)
{
    enum { BEAMS, BEST, MOST, LEAST, NO_REPEAT, LENGTH_PENALTY, REPETITION_PENALTY, EARLY_STOPPING, OPTIONS };
    tn_safetensors *f = tn_safetensors_open(tn_test_data("golden/beams.safetensors"));
    fine();
    int64_t texts = 0;
    for (int k = 0; k < 60; k++) {
        const tn_scope scope = tn_scope_begin();
        const char    *names[] = {"logits", "shift", "prompt", "options", "tokens", "scores"};
        tn_tensor     *t[6];
        for (int i = 0; i < 6; i++) {
            char name[32];
            snprintf(name, sizeof name, "%02d/%s", k, names[i]);
            t[i] = tn_safetensors_get(f, name);
        }
        fine();
        double o[OPTIONS];
        for (int i = 0; i < OPTIONS; i++) o[i] = tn_get(t[3], i);
        model        m = {{&kind, tn_size(t[2], 0) * (int64_t)o[BEAMS], 64}, t[0], t[1], 0};
        tn_generated g = tn_generate(
            &m.base, t[2], .end = 0, .beams = (int64_t)o[BEAMS], .best = (int64_t)o[BEST], .most = (int64_t)o[MOST],
            .least = (int64_t)o[LEAST], .no_repeat = (int64_t)o[NO_REPEAT], .length_penalty = o[LENGTH_PENALTY],
            .repetition_penalty = o[REPETITION_PENALTY], .early_stopping = o[EARLY_STOPPING] != 0);
        fine();
        ck_assert_msg(tn_shape_equal(tn_shape_of(g.tokens), tn_shape_of(t[4])), "case %d: lengths", k);
        for (int64_t i = 0; i < tn_numel(t[4]); i++)
            ck_assert_msg(tn_get_i64(g.tokens, i) == tn_get_i64(t[4], i), "case %d, element %d: token %d, expected %d",
                          k, (int)i, (int)tn_get_i64(g.tokens, i), (int)tn_get_i64(t[4], i));
        for (int64_t i = 0; i < tn_numel(t[5]); i++, texts++) {
            const double got = tn_get(g.scores, i), want = tn_get(t[5], i);
            ck_assert_msg(got == want || fabs(got - want) <= 2e-5 * (1 + fabs(want)),
                          "case %d, text %d: score %g, expected %g", k, (int)i, got, want);
        }
        tn_scope_end(scope);
    }
    ck_assert_int_gt(texts, 250);
    tn_safetensors_close(f);
}

/* After token 1: the empty text (0.014) ends in the first step, 2 (0.019) in the second, and 2 3 (0.91), the best, in
 * the third. Two beams have two texts before that; only .early_stopping makes them stop there. */
TEST(a_search_ends_when_no_text_can_win)
{
    static const float p[] = {1,     1,      1,      1,     0.014F, 0.008F, 0.97F, 0.008F,
                              0.02F, 0.005F, 0.005F, 0.97F, 0.97F,  0.01F,  0.01F, 0.01F};
    tn_tensor *table = tn_log(tn_from_data(TN_F32, TN_SHAPE(4, 4), p)), *prompt = tn_ones_of(TN_I64, TN_SHAPE(1, 1));
    for (int64_t beams = 1; beams <= 8; beams++) {
        model        m = {{&kind, beams, 16}, table, NULL, 0};
        tn_generated g = tn_generate(&m.base, prompt, .end = 0, .beams = beams);
        fine();
        ck_assert_int_eq(tn_get_i64(g.lengths, 0), 2);
        ck_assert_double_eq_tol(tn_get(g.scores, 0), log(0.97) * (beams > 1 ? 1 : 3), 1e-6);
    }
    model        m = {{&kind, 2, 16}, table, NULL, 0};
    tn_generated g = tn_generate(&m.base, prompt, .end = 0, .beams = 2, .early_stopping = true);
    fine();
    ck_assert_int_eq(tn_get_i64(g.lengths, 0), 1);
    ck_assert_double_eq_tol(tn_get(g.scores, 0), log(0.97 * 0.02) / 2, 1e-6);
}

/* ---- GNMT's penalties -------------------------------------------------------------------------------------------- */

/* As the table above, with attention to a source of SOURCE tokens, the last of which is padding for the second prompt:
 * that of the last token. */
enum { VOCAB = 4, SOURCE = 5, MOST = 3, TEXTS = 1 + 3 + 9 + 27 };
typedef struct {
    tn_decoding base;
    tn_tensor  *table, *attention; /* [VOCAB, VOCAB], [VOCAB, SOURCE] */
    int64_t     of[256];           /* the prompt of each row */
} attending;
static double attention_to(const attending *m, int64_t prompt, int64_t last, int64_t i)
{
    return prompt && i == SOURCE - 1 ? 1 : tn_get(m->attention, last * SOURCE + i);
}
static tn_tensor *attended(tn_decoding *d, tn_tensor *tokens, tn_tensor **attention)
{
    attending    *m = (attending *)d;
    const int64_t rows = tn_size(tokens, 0), n = tn_size(tokens, 1);
    tn_tensor    *y = tn_empty(TN_SHAPE(rows, VOCAB));
    *attention = tn_empty(TN_SHAPE(rows, SOURCE));
    for (int64_t r = 0; tn_error() == TN_OK && r < rows; r++) {
        const int64_t last = tn_get_i64(tokens, r * n + n - 1);
        if (n > 1) m->of[r] = r; /* the prompts */
        for (int64_t w = 0; w < VOCAB; w++) tn_set(y, r * VOCAB + w, tn_get(m->table, last * VOCAB + w));
        for (int64_t i = 0; i < SOURCE; i++) tn_set(*attention, r * SOURCE + i, attention_to(m, m->of[r], last, i));
    }
    return y;
}
static tn_tensor *attended_scores(tn_decoding *d, tn_tensor *tokens)
{
    tn_tensor *attention;
    return attended(d, tokens, &attention);
}
static tn_status attending_reorder(tn_decoding *d, tn_tensor *index)
{
    attending *m = (attending *)d;
    int64_t    of[256];
    for (int64_t i = 0; i < tn_numel(index); i++) of[i] = m->of[tn_get_i64(index, i)];
    memcpy(m->of, of, sizeof of);
    return TN_OK;
}
static int64_t                  nothing_read(const tn_decoding *d) { return (void)d, 0; }
static const tn__attending_kind attending_kind = {
    {sizeof(tn__attending_kind), attended_scores, attending_reorder, NULL, nothing_read}, attended};

/* log P / ((5 + |Y|) / 6)^alpha + beta Σ log(min(Σ attention, 1)) of the n tokens, which .end or the limit ended. */
static double by_formula(const attending *m, int64_t prompt, const int64_t *words, int64_t n, double alpha, double beta)
{
    double        p = 0, covered[SOURCE] = {0}, c = 0;
    const int64_t steps = n + (n < MOST);
    for (int64_t t = 0, last = 1; t < steps; t++) {
        double        sum = 0;
        const int64_t word = t < n ? words[t] : 0;
        for (int64_t w = 0; w < VOCAB; w++) sum += exp(tn_get(m->table, last * VOCAB + w));
        p += tn_get(m->table, last * VOCAB + word) - log(sum);
        for (int64_t i = 0; i < SOURCE; i++) covered[i] += attention_to(m, prompt, last, i);
        last = word;
    }
    for (int64_t i = 0; i < SOURCE; i++) c += log(fmin(covered[i], 1));
    return p / pow((5 + (double)steps) / 6, alpha) + beta * c;
}

static attending an_attending(void)
{
    tn_seed(12);
    return (attending){.base = {&attending_kind.base, 256, 16},
                       .table = tn_normal(TN_SHAPE(VOCAB, VOCAB), 0, 1),
                       .attention = tn_softmax(tn_normal(TN_SHAPE(VOCAB, SOURCE), 0, 2), -1)};
}

/* Enough beams for all texts: each has the formula's rank, and they are in its order. Fewer beams: the same ranks. */
TEST(gnmt_as_the_formula)
{
    static const double  options[][2] = {{0, 0}, {1, 0}, {0.6, 0.2}, {0, 1}, {2, 0.5}, {-1, 0.1}};
    static const int64_t prompt[] = {2, 1, 3, 1};
    for (int k = 0; k < 6; k++)
        for (int64_t beams = 2; beams <= 64; beams += 31) {
            attending     m = an_attending();
            const int64_t best = beams < TEXTS ? beams : TEXTS;
            tn_generated  g = tn_generate(&m.base, tn_from_data(TN_I64, TN_SHAPE(2, 2), prompt), .most = MOST, .end = 0,
                                          .beams = beams, .best = best, .gnmt = true, .length_penalty = options[k][0],
                                          .coverage = options[k][1]);
            fine();
            for (int64_t i = 0; i < 2 * best; i++) {
                int64_t       words[MOST] = {0};
                const int64_t n = tn_get_i64(g.lengths, i), of = i / best;
                for (int64_t t = 0; t < n; t++) words[t] = tn_get_i64(g.tokens, i * tn_size(g.tokens, 2) + t);
                const double score = tn_get(g.scores, i);
                ck_assert_double_eq_tol(score, by_formula(&m, of, words, n, options[k][0], options[k][1]), 1e-5);
                if (i % best) ck_assert(tn_get(g.scores, i - 1) >= score);
                for (int64_t j = of * best; best == TEXTS && j < i; j++) { /* 40 different texts: all that exist */
                    bool same = tn_get_i64(g.lengths, j) == n;
                    for (int64_t t = 0; same && t < n; t++)
                        same = tn_get_i64(g.tokens, j * tn_size(g.tokens, 2) + t) == words[t];
                    ck_assert(!same);
                }
            }
        }
}

/* A text that skips a part of the source would win without the penalty. */
TEST(coverage_changes_the_best)
{
    attending    m = an_attending();
    tn_tensor   *prompt = tn_full_of(TN_I64, TN_SHAPE(1, 2), 1);
    tn_generated plain = tn_generate(&m.base, prompt, .most = MOST, .end = 0, .beams = 64, .gnmt = true),
                 all = tn_generate(&m.base, prompt, .most = MOST, .end = 0, .beams = 64, .gnmt = true, .coverage = 10);
    fine();
    ck_assert_int_lt(tn_get_i64(plain.lengths, 0), tn_get_i64(all.lengths, 0));
}

TEST(wrong_penalties)
{
    attending  m = an_attending();
    model      other = {{&kind, 64, 16}, m.table, NULL, 0};
    tn_tensor *prompt = tn_full_of(TN_I64, TN_SHAPE(1, 2), 1);
    ck_assert(!tn_generate(&m.base, prompt, .beams = 2, .coverage = -1).tokens);
    ck_error(TN_EINVAL, "tn_generate: .coverage is -1, but must be at least 0, and finite");
    ck_assert(!tn_generate(&m.base, prompt, .beams = 2, .coverage = (double)NAN).tokens);
    ck_error(TN_EINVAL, "tn_generate: .coverage is nan, but must be at least 0, and finite");
    ck_assert(!tn_generate(&m.base, prompt, .coverage = 0.2).tokens);
    ck_error(TN_EINVAL, "tn_generate: .gnmt and .coverage have no effect with one beam; set .beams");
    ck_assert(!tn_generate(&m.base, prompt, .gnmt = true).tokens);
    ck_error(TN_EINVAL, "tn_generate: .gnmt and .coverage have no effect with one beam; set .beams");
    ck_assert(!tn_generate(&other.base, prompt, .beams = 2, .coverage = 0.2).tokens);
    ck_error(TN_EUNSUPPORTED,
             "tn_generate: .coverage is 0.2, but this decoding has no attention to a source; only that "
             "of tn_seq2seq_decoding has");
}
