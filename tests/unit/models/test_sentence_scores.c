/* test_sentence_scores.c — tn_bert_scores and tn_lm_scores: the values of transformers
 * (tests/golden/sentence_scores.py), the same bits in any list of texts, and mistakes of the caller. */
#include "models/models.h"
#include "tests/common/check_main.h"

#include <math.h>

enum { TEXTS = 4 };
static const char *const texts[TEXTS] = {"w5", "w7 w8 w9 w10 w20 w21 w22", "w19 w18 w5 w11", "w18 w19 w5 w11"};

/* A tokenizer with the tokens [PAD] [UNK] [CLS] [SEP] [MASK] w5 … w22. */
static tn_tokenizer *words(void)
{
    char        text[400] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
    const char *path = tn_test_file("vocab.txt");
    for (int i = 5; i < 23; i++) snprintf(text + strlen(text), 8, "w%d\n", i);
    ck_assert_int_eq(tn_file_write(path, text, strlen(text)), TN_OK);
    tn_tokenizer *t = tn_tokenizer_load(path);
    fine();
    return t;
}

typedef tn_status (*scorer)(void *m, const tn_tokenizer *t, int64_t n, const char *const *texts, double *to);
static tn_status score_bert(void *m, const tn_tokenizer *t, int64_t n, const char *const *text, double *to)
{
    return tn_bert_scores(m, t, n, text, to);
}

/* The scores of all texts together are `want`, and each one alone has the same bits. The mode of m is unchanged. */
static void compare(void *m, scorer score, const double want[TEXTS])
{
    tn_tokenizer *t = words();
    double        all[TEXTS], one;
    tn_module_train(m, true);
    ck_assert_msg(score(m, t, TEXTS, texts, all) == TN_OK, "%s", tn_error_message());
    ck_assert(((tn_module *)m)->training);
    for (int i = 0; i < TEXTS; i++) {
        ck_assert_msg(fabs(all[i] - want[i]) < 2e-5 * fabs(want[i]), "text %d: %.6f, not %.6f", i, all[i], want[i]);
        ck_assert_int_eq(score(m, t, 1, &texts[i], &one), TN_OK);
        ck_assert_msg(one == all[i], "text %d alone: %.17g, in a list %.17g", i, one, all[i]);
    }
    const char *const empty = "";
    ck_assert_int_eq(score(m, t, 1, &empty, &one), TN_OK);
    ck_assert(one == 0);
    ck_assert_int_eq(score(m, t, 0, NULL, NULL), TN_OK);
    tn_tokenizer_free(t);
}

BARE_TEST(masked_models_as_transformers)
{
    static const struct {
        const char *dir;
        double      want[TEXTS];
    } rows[] = {{"golden/encoders/modernbert", {-4.685212, -29.947435, -17.453478, -16.287551}},
                {"golden/encoders/roberta", {-4.608675, -22.925992, -15.917557, -15.918558}}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tn_bert *m = tn_bert_load(tn_test_data(rows[i].dir));
        fine();
        compare(m, score_bert, rows[i].want);
        tn_free(m);
    }
}

BARE_TEST(causal_models_as_transformers)
{
    static const double want[TEXTS] = {-3.576255, -27.073935, -14.173357, -14.200805};
    tn_gpt             *m = tn_gpt_load(tn_test_data("golden/gpt/torch"));
    fine();
    compare(m, tn_lm_scores, want);
    tn_free(m);
}

BARE_TEST(mistakes)
{
    tn_bert      *bert = tn_bert_new(.vocab = 23, .dim = 8, .layers = 1, .heads = 2, .no_words = true);
    tn_bert      *small = tn_bert_new(.vocab = 20, .dim = 8, .layers = 1, .heads = 2, .positions = 4);
    tn_bert      *short_one = tn_bert_new(.vocab = 23, .dim = 8, .layers = 1, .heads = 2, .positions = 4);
    tn_tokenizer *t = words();
    double        to[TEXTS] = {0};
    fine();
    tn_bert_scores(bert, t, TEXTS, texts, to);
    for (int i = 0; i < TEXTS; i++) ck_assert(isnan(to[i])); /* results are set, also after an error */
    ck_error(TN_EUNSUPPORTED, "tn_bert_scores: this BERT has no head that predicts masked tokens");
    tn_bert_scores(small, t, TEXTS, texts, to);
    ck_error(TN_EINVAL, "tn_bert_scores: the tokenizer has 23 tokens, but the model only 20; use the model's own "
                        "tokenizer");
    to[0] = 0;
    tn_bert_scores(short_one, t, 2, texts, to);
    ck_assert(isnan(to[0]));
    ck_error_code(TN_ESHAPE);
    tn_bert_scores(short_one, t, 1, (const char *const[]){NULL}, to);
    ck_error(TN_EINVAL, "tn_bert_scores: text 0 is NULL");
    to[0] = 0;
    tn_lm_scores(short_one, t, 1, texts, to);
    ck_assert(isnan(to[0]));
    ck_error_code(TN_EINVAL);
    tn_tokenizer_free(t);
    tn_free(bert), tn_free(small), tn_free(short_one);
}
