/* test_answers.c — scores of answers by SQuAD's rules, compared with a thousand results of tests/golden/answers.py. */
#include "tests/common/check_main.h"

#include "data/data.h"

static tn_json *golden;
static void     open_golden(void) { golden = tn_json_load(tn_test_data("golden/answers.json")); }
static void     close_golden(void) { tn_json_free(golden); }
AROUND_TESTS(open_golden, close_golden);

static tn_text text(const tn_json *v) { return (tn_text){tn_json_string(v), (size_t)tn_json_string_bytes(v)}; }

static void judged(const tn_json *row, const char *version, tn_squad *s)
{
    const tn_json *right = tn_json_get(row, "right"), *want = tn_json_get(row, version);
    tn_text        all[4];
    int            n = 0;
    for (const tn_json *r = tn_json_first(right); r; r = tn_json_next(r)) all[n++] = text(r);
    ck_assert_int_eq(tn_squad_add(s, text(tn_json_get(row, "said")), n, all), TN_OK);
    ck_assert_msg(s->last_exact == (tn_json_i64(tn_json_at(want, 0)) == 1), "'%s' %s",
                  tn_json_string(tn_json_get(row, "said")), version);
    ck_assert_double_eq_tol(s->last, tn_json_double(tn_json_at(want, 1)), 1e-12);
}

TEST(a_thousand_answers_as_the_scripts_judge_them)
{
    tn_squad  one = {.v2 = false}, two = {.v2 = true};
    tn_string words = {0};
    double    f1 = 0;
    int64_t   n = 0;
    for (const tn_json *r = tn_json_first(tn_json_get(golden, "rows")); r; r = tn_json_next(r), n++) {
        judged(r, "v1", &one), judged(r, "v2", &two);
        ck_assert_int_eq(tn_squad_words(text(tn_json_get(r, "said")), &words), TN_OK);
        ck_assert_str_eq(words.at, tn_json_string(tn_json_get(r, "words")));
        f1 += tn_json_double(tn_json_at(tn_json_get(r, "v1"), 1));
    }
    ck_assert_int_eq(n, 1000);
    ck_assert_int_eq(one.n, 1000);
    ck_assert_double_eq_tol(tn_squad_f1(&one), 100 * f1 / 1000, 1e-9);
    ck_assert_double_gt(tn_squad_exact(&one), 5);
    tn_string_free(&words);
}

TEST(thresholds_as_the_script_finds_them)
{
    for (const tn_json *r = tn_json_first(tn_json_get(golden, "thresholds")); r; r = tn_json_next(r)) {
        const tn_json *none = tn_json_get(r, "none"), *value = tn_json_get(r, "value");
        double         x[200], y[200], at = -1;
        bool           empty[200], answerable[200];
        const int64_t  n = tn_json_count(none);
        for (int64_t i = 0; i < n; i++) {
            x[i] = tn_json_double(tn_json_at(none, i)), y[i] = tn_json_double(tn_json_at(value, i));
            empty[i] = tn_json_bool(tn_json_at(tn_json_get(r, "empty"), i));
            answerable[i] = tn_json_bool(tn_json_at(tn_json_get(r, "answerable"), i));
        }
        const double best = tn_squad_threshold(n, x, y, empty, answerable, &at);
        ck_assert_double_eq_tol(best, tn_json_double(tn_json_get(r, "best")), 1e-9);
        ck_assert_double_eq(at, tn_json_double(tn_json_get(r, "at")));
    }
}

/* The returned mean is the one the threshold achieves, also for scores that are differences and for negative ones. */
TEST(thresholds_keep_their_word)
{
    enum { N = 6 };
    tn_generator g = {3, 0};
    for (int round = 0; round < 2000; round++) {
        double none[N], value[N], at = NAN, largest = 0;
        bool   empty[N], answerable[N];
        for (int i = 0; i < N; i++) {
            none[i] = 5 * tn_random_double(&g) - (double)(round % 6);
            answerable[i] = tn_random_double(&g) < 0.5, empty[i] = tn_random_double(&g) < 0.2;
            value[i] = answerable[i] && !empty[i] ? floor(3 * tn_random_double(&g)) / 2 : 0;
        }
        const double best = tn_squad_threshold(N, none, value, empty, answerable, &at);
        for (int k = -1; k <= N; k++) { /* with the threshold found, and with each that separates the scores */
            const double level = k < 0 ? at : k < N ? none[k] : -100;
            double       sum = 0;
            for (int i = 0; i < N; i++)
                sum += none[i] > level || empty[i] ? !answerable[i] : answerable[i] ? value[i] : 0;
            if (k < 0) ck_assert_double_eq_tol(best, 100 * sum / N, 1e-9);
            largest = fmax(largest, 100 * sum / N);
        }
        ck_assert_double_eq_tol(best, largest, 1e-9);
    }
}

TEST(what_is_no_answer)
{
    tn_squad      s = {.v2 = true}, one = {.v2 = false};
    const tn_text right = tn_text_of("a"); /* an article alone is empty: no answer */
    ck_assert_int_eq(tn_squad_add(&s, tn_text_of(""), 0, NULL), TN_OK);
    ck_assert(s.last_exact && s.last == 1);
    ck_assert_int_eq(tn_squad_add(&s, tn_text_of("the"), 1, &right), TN_OK);
    ck_assert(s.last_exact && s.last == 1);
    ck_assert_int_eq(tn_squad_add(&s, tn_text_of("word"), 0, NULL), TN_OK);
    ck_assert(!s.last_exact && s.last == 0 && s.n == 3);
    ck_fails(tn_squad_add(&one, tn_text_of("word"), 0, NULL), TN_EINVAL,
             "tn_squad_add: no right answer; set .v2 to allow this");
    tn_squad_add(NULL, tn_text_of("word"), 0, NULL);
    ck_error(TN_EINVAL, "tn_squad_add: s is NULL");
    double at = 0;
    ck_assert(isnan(tn_squad_threshold(0, NULL, NULL, NULL, NULL, &at)) && isnan(at));
    ck_error(TN_EINVAL, "tn_squad_threshold: n is 0; expected at least 1 question");
    tn_string words = {0};
    ck_assert_int_eq(tn_squad_words(tn_text_of("\u039f\u03a3 \u039f\u03a3\u00aa \u2167\u03a3"), &words), TN_OK);
    ck_assert_str_eq(words.at, "\u03bf\u03c2 \u03bf\u03c3\u00aa \u2177\u03c2"); /* as Python: a final sigma or not */
    tn_string_free(&words);
    tn_squad_words(tn_text_of("x"), NULL);
    ck_error(TN_EINVAL, "tn_squad_words: an argument is NULL");
    ck_assert(one.n == 0 && tn_squad_f1(&one) == 0 && tn_squad_exact(NULL) == 0);
}
