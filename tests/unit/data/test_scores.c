/* test_scores.c — entities as counted by conlleval and seqeval, F1, Matthews, Pearson, Spearman: compared with a table
 * made by their rules, and with naive counts. */
#include "tests/common/check_main.h"

#include "data/data.h"
#include "tests/common/faults.h"

/* ---- entities ---------------------------------------------------------------------------------------------------- */

static void add(tn_entities *e, const char *gold, const char *predicted)
{
    ck_assert_int_eq(tn_entities_add(e, tn_text_of(gold), tn_text_of(predicted)), TN_OK);
}

/* Pairs of gold and predicted; "" ends a sentence. The table was made by a Perl program that follows the rules of
 * conlleval.pl. */
TEST(as_conlleval_prints)
{
    static const char *const pairs[][2] = {
        {"O", "O"},         {"B-PER", "B-PER"},
        {"I-PER", "I-PER"}, {"O", "I-LOC"},
        {"I-ORG", "I-ORG"}, {"I-PER", "I-ORG"},
        {"", ""},           {"I-PER", "I-PER"},
        {"", ""},           {"B-x-y", "B-x-y"},
        {"I-x-y", "B-x-y"}, {"", ""},
        {"B", "B"},         {"I", "I"},
        {"E-LOC", "I-LOC"}, {"I-LOC", "I-LOC"},
        {"[", "]"},         {"B-0", "B"},
        {".", "."},         {"S-a-very-long-type-name", "S-a-very-long-type-name"},
    };
    static const char expected[] = "processed 17 tokens with 10 phrases; found: 10 phrases; correct: 5.\n"
                                   "accuracy:  70.59%; precision:  50.00%; recall:  50.00%; FB1:  50.00\n"
                                   "                 : precision: 100.00%; recall: 100.00%; FB1: 100.00  2\n"
                                   "                 : precision: 100.00%; recall: 100.00%; FB1: 100.00  2\n"
                                   "              LOC: precision:   0.00%; recall:   0.00%; FB1:   0.00  2\n"
                                   "              ORG: precision:   0.00%; recall:   0.00%; FB1:   0.00  1\n"
                                   "              PER: precision: 100.00%; recall:  66.67%; FB1:  80.00  2\n"
                                   "a-very-long-type-name: precision: 100.00%; recall: 100.00%; FB1: 100.00  1\n"
                                   "              x-y: precision:   0.00%; recall:   0.00%; FB1:   0.00  2\n";
    tn_entities      *e = tn_entities_new(TN_ENTITIES_CONLL);
    tn_string         table = {0};
    ck_assert_int_eq(tn_entities_text(e, &table), TN_OK);
    ck_assert_str_eq(table.at, "processed 0 tokens with 0 phrases; found: 0 phrases; correct: 0.\n");
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (pairs[i][0][0]) add(e, pairs[i][0], pairs[i][1]);
        else tn_entities_end_sentence(e);
    ck_assert_int_eq(tn_entities_text(e, &table), TN_OK);
    ck_assert_str_eq(table.at, expected);
    const tn_entities_score per = tn_entities_of(e, "PER"), none = tn_entities_of(e, "none");
    ck_assert(per.gold == 3 && per.found == 2 && per.correct == 2 && per.precision == 1);
    ck_assert_double_eq_tol(per.f1, 0.8, 1e-15);
    ck_assert(none.gold == 0 && none.f1 == 0 && tn_entities_tokens(e).right == 12);
    ck_assert_str_eq(tn_entities_type(e, 0), "");
    ck_assert_str_eq(tn_entities_type(e, 1), "PER");
    ck_assert_ptr_null(tn_entities_type(e, -1));
    ck_assert_ptr_null(tn_entities_type(e, 1000));
    ck_assert_ptr_null(tn_entities_type(NULL, 0));
    tn_string_free(&table);
    tn_entities_free(e);
}

enum { TAGS = 5, LENGTH = 3, SEQUENCES = 125 };
static const char *const tag_names[TAGS] = {"O", "B-a", "I-a", "B-b", "I-b"};

typedef struct {
    int from, to, type;
} chunk;

/* The chunks of a sentence: from each token that starts one, the I of its type that follow. */
static int chunks_of(const int tag[LENGTH], bool strict, chunk to[LENGTH])
{
    int n = 0;
    for (int i = 0, end; i < LENGTH; i = end) {
        end = i + 1;
        const int  type = (tag[i] - 1) / 2;
        const bool begins = tag[i] % 2 == 1 || (tag[i] && !strict); /* the chunk before has already taken the I */
        if (!begins) continue;
        while (end < LENGTH && tag[end] == 2 * type + 2) end++;
        to[n++] = (chunk){i, end, type};
    }
    return n;
}

/* All pairs of sentences of three tokens. */
TEST_EACH(as_sets_of_chunks, 2)
{
    const bool strict = _i;
    for (int g = 0; g < SEQUENCES; g++) {
        for (int p = 0; p < SEQUENCES; p++) {
            const int    gold[LENGTH] = {g % 5, g / 5 % 5, g / 25}, said[LENGTH] = {p % 5, p / 5 % 5, p / 25};
            chunk        a[LENGTH], b[LENGTH];
            const int    n = chunks_of(gold, strict, a), m = chunks_of(said, strict, b);
            int          correct = 0;
            tn_entities *e = tn_entities_new(strict ? TN_ENTITIES_STRICT : TN_ENTITIES_CONLL);
            for (int i = 0; i < n; i++)
                for (int j = 0; j < m; j++) correct += !memcmp(&a[i], &b[j], sizeof a[i]);
            for (int i = 0; i < LENGTH; i++) add(e, tag_names[gold[i]], tag_names[said[i]]);
            if (p % 2) tn_entities_end_sentence(e);
            const tn_entities_score s = tn_entities_of(e, NULL), sa = tn_entities_of(e, "a"),
                                    sb = tn_entities_of(e, "b");
            ck_assert_msg(s.gold == n && s.found == m && s.correct == correct, "%d %d: %d %d %d, not %d %d %d", g, p,
                          (int)s.gold, (int)s.found, (int)s.correct, n, m, correct);
            ck_assert(sa.gold + sb.gold == n && sa.found + sb.found == m && sa.correct + sb.correct == correct);
            tn_entities_free(e);
        }
    }
}

TEST(entities_misuse)
{
    tn_entities *e = tn_entities_new(TN_ENTITIES_STRICT);
    tn_text      t = tn_text_of("O");
    tn_entities_add(NULL, t, t);
    ck_error(TN_EINVAL, "tn_entities_add: e is NULL");
    tn_entities_add(e, t, (tn_text){NULL, 2});
    ck_error(TN_EINVAL, "tn_entities_add: predicted is NULL");
    tn_entities_add(e, tn_text_of("B-a"), tn_text_of("S-PER"));
    ck_error(TN_EFORMAT, "tn_entities_add: 'S-PER' is not a BIO tag; expected O, B-TYPE or I-TYPE");
    tn_entities_add(e, tn_text_of(""), t);
    ck_error(TN_EFORMAT, "tn_entities_add: '' is not a BIO tag; expected O, B-TYPE or I-TYPE");
    ck_assert_int_eq(tn_entities_tokens(e).counted, 0);
    ck_assert_int_eq(tn_entities_of(e, NULL).gold, 0);
    tn_entities_text(e, NULL);
    ck_error(TN_EINVAL, "tn_entities_text: to is NULL");
    ck_refused(tn_entities_new((tn_entities_rule)2), TN_EINVAL, "tn_entities_new: rule is not a tn_entities_rule");
    tn_entities_free(e);
    tn_entities_free(NULL);
    tn_entities_end_sentence(NULL);
    ck_assert_int_eq(tn_entities_of(NULL, NULL).gold, 0);
}

static bool whole_way(tn_string *table) /* many types, so that all arrays grow */
{
    tn_entities *e = tn_entities_new(TN_ENTITIES_CONLL);
    for (int i = 0; i < 40; i++) {
        char name[16];
        snprintf(name, sizeof name, "B-%d", i);
        tn_entities_add(e, tn_text_of(name), tn_text_of(i % 3 ? name : "O"));
    }
    tn_entities_text(e, table);
    tn_entities_free(e);
    tn_spearman(3, (double[]){1, 2, 3}, (double[]){1, 3, 2});
    tn_f1(TN_F1_MACRO, 2, (int64_t[]){1, 2}, (int64_t[]){1, 1});
    return tn_error() == TN_OK;
}

TEST(no_memory)
{
    tn_string table = {0};
    int       failures = 0;
    tn_trim();
    tn_faulty_memory_begin();
    for (int64_t at = 0;; at++, failures++) {
        tn_fail_memory(at, false);
        const bool done = whole_way(&table);
        tn_fail_memory(-1, false);
        tn_string_free(&table);
        if (done) break;
        ck_error_code(TN_ENOMEM);
        ck_assert_int_eq(tn_memory_blocks(), 0);
    }
    tn_faulty_memory_end();
    ck_assert_int_ge(failures, 10);
}

/* ---- labels and numbers ------------------------------------------------------------------------------------------ */

TEST(labels)
{
    for (int round = 0; round < 200; round++) {
        enum { N = 23, KINDS = 4 };
        int64_t gold[N], said[N];
        double  macro = 0, binary = 0;
        int     right = 0, kinds = 0, cell[2][2] = {{0}};
        srand((unsigned)round);
        for (int i = 0; i < N; i++) {
            gold[i] = rand() % (1 + round % KINDS), said[i] = rand() % 3 ? gold[i] : rand() % (1 + round % KINDS);
            right += gold[i] == said[i], cell[gold[i] == 1][said[i] == 1]++;
        }
        for (int k = 0; k < KINDS; k++) {
            int both = 0, either = 0;
            for (int i = 0; i < N; i++) both += gold[i] == k && said[i] == k, either += (gold[i] == k) + (said[i] == k);
            const double f1 = either ? 2.0 * both / either : 0;
            macro += f1, kinds += either > 0;
            if (k == 1) binary = f1;
        }
        ck_assert_double_eq_tol(tn_f1(TN_F1_MACRO, N, gold, said), macro / kinds, 1e-14);
        ck_assert_double_eq_tol(tn_f1(TN_F1_BINARY, N, gold, said), binary, 1e-14);
        ck_assert_double_eq_tol(tn_f1(TN_F1_MICRO, N, gold, said), (double)right / N, 1e-14);
        if (round % KINDS > 1) continue;
        const double tp = cell[1][1], tn = cell[0][0], fp = cell[0][1], fn = cell[1][0];
        const double root = sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn));
        ck_assert_double_eq_tol(tn_matthews(N, gold, said), root > 0 ? (tp * tn - fp * fn) / root : 0, 1e-14);
    }
    ck_assert_double_eq(tn_f1(TN_F1_MACRO, 0, NULL, NULL) + tn_matthews(0, NULL, NULL), 0);
    ck_assert_double_eq_tol(tn_matthews(6, (int64_t[]){0, 1, 2, 0, 1, 2}, (int64_t[]){0, 2, 2, 0, 0, 1}),
                            0.26111648393354675, 1e-15); /* scikit-learn */
    ck_assert(isnan(tn_f1(TN_F1_MICRO, 2, NULL, NULL)));
    ck_error(TN_EINVAL, "tn_f1: one of the arrays is NULL, and n is 2");
    ck_assert(isnan(tn_matthews(-1, NULL, NULL)));
    ck_error(TN_EINVAL, "tn_matthews: n is -1");
    ck_assert(isnan(tn_f1((tn_f1_mean)3, 0, NULL, NULL)));
    ck_error(TN_EINVAL, "tn_f1: how is not a tn_f1_mean");
}

TEST(numbers)
{
    enum { N = 5 };
    const double x[N] = {1, 2, 2, 4, 5}, y[N] = {2, 1, 1, 3, 9};
    double       big[N], small[N], rx[N], ry[N];
    /* the sums of the centred squares: 10.8 and 44.8; of the products: 18.2 */
    const double r = 18.2 / sqrt(10.8 * 44.8);
    ck_assert_double_eq_tol(tn_pearson(N, x, y), r, 1e-14);
    for (int i = 0; i < N; i++) {
        rx[i] = ry[i] = 0.5;
        for (int k = 0; k < N; k++)
            rx[i] += (x[k] < x[i]) + 0.5 * (x[k] == x[i]), ry[i] += (y[k] < y[i]) + 0.5 * (y[k] == y[i]);
        big[i] = x[i] * 1e300, small[i] = -y[i] * 1e-300;
    }
    ck_assert_double_eq_tol(tn_spearman(N, x, y), tn_pearson(N, rx, ry), 1e-15);
    ck_assert_double_eq_tol(tn_pearson(N, big, small), -r, 1e-14);
    ck_assert_double_eq(tn_spearman(N, big, x), 1);
    ck_assert(isnan(tn_pearson(1, x, y)) && isnan(tn_pearson(3, (double[]){.1, .1, .1}, y)));
    ck_assert(isnan(tn_spearman(2, (double[]){NAN, 1}, y)) && isnan(tn_pearson(2, (double[]){INFINITY, 1}, y)));
    ck_assert(isnan(tn_spearman(N, x, NULL)));
    ck_error(TN_EINVAL, "tn_spearman: one of the arrays is NULL, and n is 5");
}
