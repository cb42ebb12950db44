/* test_beams.c — beam searches of 60 random tables of logits, compared with Hugging Face's transformers
 * (tests/golden/beams.py), and when a search ends. */
#include "models/models.h"
#include "tests/common/check_main.h"

#include <math.h>
#include <stdio.h>

static void fine(void) { ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message()); }

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
static const tn_decoding_kind kind = {sizeof(tn_decoding_kind), scores, reorder, NULL};

/* The token ids are equal; the scores are sums of up to 12 log-probabilities in f32. A missing text has score -inf. */
START_TEST(as_transformers)
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
END_TEST

/* After token 1: the empty text (0.014) ends in the first step, 2 (0.019) in the second, and 2 3 (0.91), the best, in
 * the third. Two beams have two texts before that; only .early_stopping makes them stop there. */
START_TEST(a_search_ends_when_no_text_can_win)
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
END_TEST

int main(void)
{
    Suite *s = suite_create("beams");
    TCase *c = tn_tcase(s, "beams");
    tcase_add_test(c, as_transformers);
    tcase_add_test(c, a_search_ends_when_no_text_can_win);
    return tn_check_main(s);
}
