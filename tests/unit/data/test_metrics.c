/* test_metrics.c — the lines of BLEU, chrF and TER equal sacreBLEU's (golden/metrics.json); accuracy and perplexity. */
#include "tests/common/check_main.h"

#include "data/data.h"
#include "tests/common/faults.h"
#include <unistd.h>

/* ---- against sacreBLEU ------------------------------------------------------------------------------------------- */

enum { LINES = 12 }; /* lines per case: six of BLEU, four of chrF, two of TER */

typedef struct {
    tn_bleu bleu[6];
    tn_chrf chrf[4];
    tn_ter  ter[2];
} scores;

static scores scores_new(void)
{
    scores s = {0};
    for (int i = 0; i < 6; i++) s.bleu[i] = (tn_bleu){.tokenize = (tn_bleu_tokenizer)(i / 2), .lowercase = i % 2};
    for (int i = 0; i < 4; i++) s.chrf[i] = (tn_chrf){.word_order = i / 2 * 2, .lowercase = i % 2};
    for (int i = 0; i < 2; i++) s.ter[i].case_sensitive = i % 2;
    return s;
}

static void scores_add(scores *s, tn_text output, int n, const tn_text *references)
{
    for (int i = 0; i < 6; i++) tn_bleu_add(&s->bleu[i], output, n, references);
    for (int i = 0; i < 4; i++) tn_chrf_add(&s->chrf[i], output, n, references);
    for (int i = 0; i < 2; i++) tn_ter_add(&s->ter[i], output, n, references);
}

static const char *scores_line(const scores *s, int i, char to[TN_METRIC_TEXT])
{
    if (i < 6) return tn_bleu_text(&s->bleu[i], 4, to);
    return i < 10 ? tn_chrf_text(&s->chrf[i - 6], 4, to) : tn_ter_text(&s->ter[i - 10], 4, to);
}

static tn_text span_of(const tn_json *v) { return (tn_text){tn_json_string(v), (size_t)tn_json_string_bytes(v)}; }

TEST(as_sacrebleu_prints)
{
    tn_json *file = tn_json_load(tn_test_data("golden/metrics.json"));
    ck_assert_msg(file, "%s", tn_error_message());
    int cases = 0;
    for (const tn_json *c = tn_json_first(tn_json_get(file, "cases")); c; c = tn_json_next(c), cases++) {
        scores         s = scores_new();
        const tn_json *r = tn_json_first(tn_json_get(c, "references"));
        for (const tn_json *o = tn_json_first(tn_json_get(c, "outputs")); o; o = tn_json_next(o), r = tn_json_next(r)) {
            tn_text refs[3];
            int     n = 0;
            for (const tn_json *x = tn_json_first(r); x; x = tn_json_next(x)) refs[n++] = span_of(x);
            scores_add(&s, span_of(o), n, refs);
        }
        ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
        const tn_json *lines = tn_json_get(c, "lines");
        ck_assert_int_eq(tn_json_count(lines), LINES);
        for (int i = 0; i < LINES; i++) {
            char        text[TN_METRIC_TEXT];
            const char *expected = tn_json_string(tn_json_at(lines, i));
            ck_assert_msg(!strcmp(scores_line(&s, i, text), expected), "%s\n   %s\n   %s",
                          tn_json_string(tn_json_get(c, "name")), text, expected);
        }
    }
    ck_assert_int_ge(cases, 15);
    tn_json_free(file);
}

/* ---- the files of sacreBLEU's own tests, if present -------------------------------------------------------------- */

static void score_file(const char *table, const char *name, double expected, const tn_lines *refs)
{
    char path[200];
    snprintf(path, sizeof path, "../../shared/data/bleu-oracles/%s", name);
    tn_lines *out = tn_lines_load(tn_test_data(path));
    ck_assert_msg(out && tn_lines_count(out) == tn_lines_count(refs), "%s", tn_error_message());
    tn_bleu bleu = {.tokenize = strcmp(table, "MTEVAL14") ? TN_BLEU_13A : TN_BLEU_INTL};
    tn_chrf chrf = {.word_order = strcmp(table, "CHRFPP") ? 0 : 2};
    tn_ter  ter = {0};
    double  value;
    char    kind = table[0];
    for (int64_t i = 0; i < tn_lines_count(out); i++) {
        tn_text ref = tn_lines_at(refs, i);
        if (kind == 'M') tn_bleu_add(&bleu, tn_lines_at(out, i), 1, &ref);
        else if (kind == 'C') tn_chrf_add(&chrf, tn_lines_at(out, i), 1, &ref);
        else tn_ter_add(&ter, tn_lines_at(out, i), 1, &ref);
    }
    value = kind == 'M' ? tn_bleu_score(&bleu) : kind == 'C' ? tn_chrf_score(&chrf) : tn_ter_score(&ter);
    /* with the decimals of the file: two for BLEU, three for TER, four for chrF */
    double unit = kind == 'M' ? 0.01 : kind == 'C' ? 0.01 : 0.001;
    ck_assert_msg(fabs(value - expected) <= unit / 2 + 1e-9, "%s of %s: %.6f, not %.4f", table, name, value, expected);
    tn_lines_free(out);
}

TEST(as_the_oracles_say)
{
    const char *path = tn_test_data("../../shared/data/bleu-oracles/expected.json");
    if (access(path, R_OK)) {
        printf("SKIPPED: as_the_oracles_say: no shared/data/bleu-oracles beside the project\n");
        return;
    }
    tn_json  *file = tn_json_load(path);
    tn_lines *refs = tn_lines_load(tn_test_data("../../shared/data/bleu-oracles/ref0.de"));
    ck_assert_msg(file && refs, "%s", tn_error_message());
    int done = 0;
    for (const tn_json *t = tn_json_first(tn_json_get(file, "tables")); t; t = tn_json_next(t))
        for (const tn_json *x = tn_json_first(t); x; x = tn_json_next(x), done++)
            if (!tn_test_slow() || done % 4 == 0) score_file(tn_json_key(t), tn_json_key(x), tn_json_double(x), refs);
    ck_assert_int_eq(done, 13);
    tn_lines_free(refs);
    tn_json_free(file);
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

TEST(words_of_bleu)
{
    static const struct {
        tn_bleu_tokenizer how;
        const char       *line, *words;
    } cases[] = {{TN_BLEU_13A, "The U.S. paid $1,000.50 (in 2019-20), he said.",
                  "The U . S . paid $ 1,000.50 ( in 2019 - 20 ) , he said ."},
                 {TN_BLEU_13A, " &quot;don't&quot;  a-b ", "\" don't \" a-b"},
                 {TN_BLEU_INTL, "«Äpfel», 1.000,5 €… 5.", "« Äpfel » , 1.000,5 € … 5."},
                 {TN_BLEU_NONE, "a  b.c\td", "a b.c d"},
                 {TN_BLEU_13A, "", ""}};
    tn_string words = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_int_eq(tn_bleu_words(cases[i].how, tn_text_of(cases[i].line), &words), TN_OK);
        ck_assert_str_eq(words.at, cases[i].words);
    }
    ck_assert_int_eq(tn_bleu_words(TN_BLEU_13A, (tn_text){"a\xff\xc3 b\0c", 7}, &words), TN_OK);
    ck_assert(words.bytes == 7 && !memcmp(words.at, "a\xff\xc3 b\0c", 7)); /* all bytes are kept */
    tn_string_free(&words);
}

/* ---- hostile lines, and failing memory --------------------------------------------------------------------------- */

TEST(any_bytes)
{
    char    bytes[256];
    scores  s = scores_new();
    tn_text all = {bytes, sizeof bytes}, empty = {NULL, 0};
    for (int i = 0; i < 256; i++) bytes[i] = (char)(i * 7);
    scores_add(&s, all, 1, &all);
    for (int i = 0; i < 6; i++) ck_assert_double_eq_tol(tn_bleu_score(&s.bleu[i]), 100, 1e-9);
    for (int i = 0; i < 4; i++) ck_assert_double_eq(tn_chrf_score(&s.chrf[i]), 100);
    for (int i = 0; i < 2; i++) ck_assert_double_eq(tn_ter_score(&s.ter[i]), 0);
    scores_add(&s, empty, 1, &all);
    scores_add(&s, all, 1, &empty);
    ck_assert_int_eq(tn_error(), TN_OK);
    char text[TN_METRIC_TEXT];
    ck_assert_str_eq(tn_bleu_text(NULL, 1, text),
                     "BLEU|nrefs:0|case:mixed|eff:no|tok:13a|smooth:exp|version:2.5.1 = 0.0 "
                     "0.0/0.0/0.0/0.0 (BP = 1.000 ratio = 0.000 hyp_len = 0 ref_len = 0)");
    scores_add(&s, all, 2, (tn_text[]){all, all});
    ck_assert_ptr_nonnull(strstr(tn_chrf_text(&s.chrf[0], 2, text), "nrefs:var"));
}

TEST(huge_lines)
{
    size_t n = tn_test_slow() ? 20000 : 1000000;
    char  *text = malloc(n);
    ck_assert_ptr_nonnull(text);
    for (size_t i = 0; i < n; i++) text[i] = "ab, c."[i % 6 ^ (i / 1000) % 2];
    scores  s = scores_new();
    tn_text line = {text, n};
    ck_assert_int_eq(tn_bleu_add(&s.bleu[0], line, 1, &line), TN_OK);
    ck_assert_int_eq(tn_chrf_add(&s.chrf[2], line, 1, &line), TN_OK);
    ck_assert_double_eq_tol(tn_bleu_score(&s.bleu[0]), 100, 1e-9);
    ck_assert_double_eq(tn_chrf_score(&s.chrf[2]), 100);
    free(text);
}

TEST(no_memory)
{
    tn_text out = tn_text_of("the cat sat on it, the big red mat"), refs[2];
    refs[0] = tn_text_of("on the big red mat sat İt, the cat");
    refs[1] = tn_text_of("sat");
    scores expected = scores_new();
    scores_add(&expected, out, 2, refs);
    tn_trim();
    tn_faulty_memory_begin();
    int failures = 0;
    for (int64_t at = 0;; at++) {
        scores s = scores_new(), before = s;
        tn_fail_memory(at, false);
        scores_add(&s, out, 2, refs);
        bool failed = tn_error() != TN_OK;
        tn_fail_memory(-1, false);
        if (!failed) {
            ck_assert(!memcmp(&s, &expected, sizeof s));
            break;
        }
        ck_error_code(TN_ENOMEM);
        ck_assert_int_eq(tn_memory_blocks(), 0);
        /* calls after the failure are skipped; the failed one changes nothing */
        for (int i = 0; i < 6; i++)
            ck_assert(!memcmp(&s.bleu[i], &before.bleu[i], sizeof s.bleu[i]) ||
                      !memcmp(&s.bleu[i], &expected.bleu[i], sizeof s.bleu[i]));
        for (int i = 0; i < 4; i++)
            ck_assert(!memcmp(&s.chrf[i], &before.chrf[i], sizeof s.chrf[i]) ||
                      !memcmp(&s.chrf[i], &expected.chrf[i], sizeof s.chrf[i]));
        failures++;
    }
    tn_faulty_memory_end();
    ck_assert_int_ge(failures, 40);
}

TEST(misuse)
{
    tn_bleu b = {0};
    tn_chrf c = {.word_order = 3};
    tn_text t = tn_text_of("a"), no = {NULL, 3};
    ck_fails(tn_bleu_add(NULL, t, 1, &t), TN_EINVAL, "tn_bleu_add: the metric is NULL");
    tn_bleu_add(&b, t, 0, &t);
    ck_error(TN_EINVAL, "tn_bleu_add: a line needs at least one reference");
    tn_ter_add(&(tn_ter){0}, t, 1, &no);
    ck_error(TN_EINVAL, "tn_ter_add: a reference is NULL");
    tn_chrf_add(&c, t, 1, &t);
    ck_error(TN_EINVAL, "tn_chrf_add: .word_order is 3; expected 0 (chrF), 1 or 2 (chrF++)");
    ck_assert_double_eq(tn_bleu_score(NULL) + tn_chrf_score(NULL) + tn_ter_score(NULL), 0);
}

/* ---- accuracy and perplexity ------------------------------------------------------------------------------------- */

TEST(accuracy)
{
    tn_accuracy a = {0};
    tn_tensor  *labels = tn_from_data(TN_I64, TN_SHAPE(2, 2), (int64_t[]){0, 2, -100, 1});
    tn_tensor  *scores3 = tn_from_data(TN_F32, TN_SHAPE(2, 2, 3), (float[]){3, 1, 2, 0, 5, 4, 9, 9, 9, 1, 1, 0});
    ck_assert_int_eq(tn_accuracy_add(&a, scores3, labels, -100), TN_OK);
    ck_assert(a.counted == 3 && a.right == 1); /* 0 is right, 1 is not 2, the first of equals is 0 and not 1 */
    tn_tensor *guess = tn_from_data(TN_I32, TN_SHAPE(2, 2), (int32_t[]){0, 2, 7, 1});
    ck_assert_int_eq(tn_accuracy_add(&a, guess, labels, -100), TN_OK);
    ck_assert(a.counted == 6 && a.right == 4);
    ck_assert_double_eq_tol(tn_accuracy_value(&a), 4 / 6.0, 1e-15);
    tn_tensor *nan = tn_from_data(TN_F32, TN_SHAPE(1, 3), (float[]){9, NAN, 10});
    ck_assert_int_eq(tn_accuracy_add(&a, nan, tn_from_data(TN_I64, TN_SHAPE(1), (int64_t[]){1}), -1), TN_OK);
    ck_assert(a.counted == 7 && a.right == 5);
    tn_accuracy_add(&a, scores3, guess, 0);
    tn_accuracy_add(&a, labels, tn_arange(3), 0);
    ck_error(TN_ESHAPE, "tn_accuracy_add: predicted is [2, 2], labels [3]; expected the same shape for labels, or one "
                        "more, last dim for scores");
    tn_accuracy_add(&a, scores3, scores3, 0);
    ck_error(TN_EDTYPE, "tn_accuracy_add: labels must be integers, not f32");
    ck_assert_double_eq(tn_accuracy_value(NULL), 0);
}

TEST(perplexity)
{
    tn_perplexity p = {0};
    ck_assert(isnan(tn_perplexity_value(&p)));
    tn_perplexity_add(&p, log(2), 30);
    tn_perplexity_add(&p, log(8), 10);
    ck_assert_double_eq_tol(tn_perplexity_value(&p), pow(2, 1.5), 1e-12);
}
