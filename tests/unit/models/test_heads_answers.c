/* test_heads_answers.c — the logits of each feature, the tags of its words, and the best answers, compared with an
 * exhaustive search. */
#include "models/models.h"
#include "tests/common/check_main.h"

static const char    book[] = "the old man and the sea\nthe old man sat in the boat\nthe sea and the boat\n"
                              "a man in the sea and an old boat\nthe boat sat in the old sea\n";
static tn_tokenizer *pieces(void)
{
    return tn_tokenizer_train_text(book, sizeof book - 1, .kind = TN_WORDPIECE, .vocab_size = 60);
}

static tn_bert *encoder(void)
{
    return tn_bert_new(.vocab = 60, .dim = 8, .layers = 1, .heads = 2, .ff = 16, .positions = 32);
}

/* ---- each feature ------------------------------------------------------------------------------------------------ */

enum { MOST = 32 };
typedef struct {
    int64_t told[MOST], pieces[MOST], n, rows; /* calls, tokens per feature; labels; calls in all */
    float   scores[MOST][32 * 8];
} heard;
static void hear(void *user, int64_t feature, int64_t pieces_, int64_t n, const float *scores)
{
    heard *h = user;
    ck_assert(feature >= 0 && feature < MOST && pieces_ * n <= 32 * 8);
    h->told[feature]++, h->pieces[feature] = pieces_, h->n = n, h->rows++;
    memcpy(h->scores[feature], scores, (size_t)(pieces_ * n) * sizeof *scores);
}

static void hear_and_raise(void *user, int64_t feature, int64_t pieces_, int64_t n, const float *scores)
{
    (void)user, (void)feature, (void)pieces_, (void)n, (void)scores;
    tn_raise(TN_EINVAL, "heard enough");
}

static const char tagged[] = "the D\nold J\nman N\n\nthe D\nsea N\nand O\nthe D\nboat N\nsat V\n\nboat N\n\n"
                             "a D\nman N\nin O\nthe D\nold J\nold J\nold J\nsea N\nsat V\nin O\na D\nboat N\n";

typedef struct {
    tn_tokenizer *t;
    tn_labelled  *l;
    tn_labels    *names;
    tn_features  *f;
    tn_tuned     *m;
} tags_of;
static tags_of tags_begin(bool crf)
{
    tags_of w = {.t = pieces()};
    w.l = tn_labelled_parse(tagged, sizeof tagged - 1, .kind = TN_LABELLED_WORDS, .form = "conll");
    w.names = tn_labels_of(w.l);
    w.f = tn_features_new(w.l, w.t, w.names, .batch = 2, .length = 10, .fixed = true); /* the last sentence has two */
    w.m = tn_tuned_new(encoder(), .task = TN_TASK_TOKEN_CLASSIFICATION, .n = tn_labels_count(w.names), .crf = crf);
    fine();
    return w;
}
static void tags_end(tags_of *w)
{
    tn_free(w->m), tn_features_free(w->f), tn_labels_free(w->names), tn_labelled_free(w->l), tn_tokenizer_free(w->t);
}

/* Reports each feature once, with the model's logits of a batch of it; training mode is restored. */
TEST(each_feature_is_told_of_once)
{
    static heard h;
    tags_of      w = tags_begin(false);
    memset(&h, 0, sizeof h);
    const int64_t n = tn_features_count(w.f);
    ck_assert_int_gt(n, tn_labelled_count(w.l));
    ck_assert_int_eq(tn_tuned_each(w.m, w.f, hear, &h), TN_OK);
    ck_assert(w.m->base.training && h.rows == n && h.n == 5);
    tn_eval(w.m->encoder); /* frozen: each module keeps its mode, also after an error */
    ck_assert_int_eq(tn_tuned_each(w.m, w.f, hear, &h), TN_OK);
    ck_assert(w.m->base.training && !w.m->encoder->base.training);
    ck_fails_has(tn_tuned_each(w.m, w.f, hear_and_raise, &h), TN_EINVAL, "heard enough");
    ck_assert(w.m->base.training && !w.m->encoder->base.training);
    memset(&h, 0, sizeof h);
    ck_assert_int_eq(tn_tuned_each(w.m, w.f, hear, &h), TN_OK);
    tn_eval(w.m);
    for (int64_t i = 0; i < n; i++) {
        const tn_feature x = tn_features_at(w.f, i);
        ck_assert(h.told[i] == 1 && h.pieces[i] >= x.pieces);
        tn_tensor *ids = tn_empty_of(TN_I64, TN_SHAPE(1, x.pieces));
        for (int64_t k = 0; k < x.pieces; k++) ((int64_t *)tn_data_mut(ids))[k] = x.id[k];
        const float *want = tn_data(tn_contiguous(tn_tuned_forward(w.m, ids)));
        fine();
        for (int64_t k = 0; k < x.pieces * 5; k++)
            ck_assert_double_eq_tol((double)h.scores[i][k], (double)want[k], 1e-5);
    }
    tags_end(&w);
}

/* A word's tag is that of its first token: the largest logit, or the CRF's best sequence. */
TEST_EACH(tags_are_those_of_first_pieces, 2)
{
    const bool crf = _i == 1;
    tags_of    w = tags_begin(crf);
    int64_t    words_in_all = 0;
    for (int64_t i = 0; i < tn_features_count(w.f); i++) {
        const tn_feature x = tn_features_at(w.f, i);
        tn_tensor       *scores = tn_normal(TN_SHAPE(x.pieces, 5), 0, 3), *first = tn_empty(TN_SHAPE(x.pieces, 5));
        const float     *s = tn_data(scores);
        float           *row = tn_data_mut(first);
        int64_t          to[16], want[16], chosen[32], words = 0;
        for (int k = 0; k < 16; k++) to[k] = want[k] = -7;
        for (int64_t k = 0; k < x.pieces; k++)
            if (x.word[k] >= 0) memcpy(row + 5 * words++, s + 5 * k, 5 * sizeof *row);
        if (crf) tn_crf_best(w.m->crf, tn_narrow(first, 0, 0, words), chosen);
        for (int64_t k = 0; k < words && !crf; k++) {
            chosen[k] = 4;
            for (int64_t l = 3; l >= 0; l--)
                if (row[5 * k + l] >= row[5 * k + chosen[k]]) chosen[k] = l;
        }
        for (int64_t k = 0, at = 0; k < x.pieces; k++)
            if (x.word[k] >= 0) want[x.word[k]] = chosen[at++];
        ck_assert_int_eq(tn_tuned_tags(w.m, w.f, i, s, to), TN_OK);
        for (int k = 0; k < 16; k++) ck_assert_int_eq(to[k], want[k]);
        words_in_all += words;
    }
    ck_assert_int_eq(words_in_all, 22);
    tags_end(&w);
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

static const char asked[] =
    "{\"data\": [{\"paragraphs\": [{\"context\": \"the old man sat in the boat and the sea sat in the old man and a "
    "boat in the sea\", \"qas\": [{\"id\": \"q\", \"question\": \"the sea\", \"answers\": [{\"text\": \"the "
    "boat\", \"answer_start\": 19}]}]}]}]}";

/* All pairs of first and last token in all windows; the best of equal byte ranges; sorted by their sums. */
static int64_t try_all(tn_features *f, int64_t n, const float *const *scores, int64_t longest, tn_answer *to)
{
    int64_t found = 0;
    for (int64_t i = 0; i < n; i++) {
        const tn_feature x = tn_features_at(f, i);
        for (int64_t s = 0; s < x.pieces; s++)
            for (int64_t e = s; e < x.pieces && e < s + longest; e++) {
                bool within = true;
                for (int64_t k = s; k <= e; k++) within = within && x.end[k];
                if (!within) continue;
                const double sum = (double)scores[i][2 * s] + (double)scores[i][2 * e + 1];
                int64_t      at = 0;
                while (at < found && (to[at].start != x.start[s] || to[at].end != x.end[e])) at++;
                if (at == found) to[found++] = (tn_answer){.start = x.start[s], .end = x.end[e], .score = sum};
                else to[at].score = fmax(to[at].score, sum);
            }
    }
    for (int64_t i = 0; i < found; i++)
        for (int64_t k = i + 1; k < found; k++)
            if (to[k].score > to[i].score) {
                const tn_answer t = to[i];
                to[i] = to[k], to[k] = t;
            }
    return found;
}

enum { WINDOWS = 16, SPANS = 1024 };

TEST(the_best_answers_are_those_of_a_search_through_all)
{
    static tn_answer all[SPANS], got[SPANS];
    const float     *scores[WINDOWS];
    tn_tokenizer    *t = pieces();
    tn_labelled     *l = tn_labelled_parse(asked, sizeof asked - 1, .kind = TN_LABELLED_ANSWERS, .form = "squad");
    tn_features     *f = tn_features_new(l, t, NULL, .batch = 4, .length = 16, .stride = 6, .fixed = true);
    fine();
    const int64_t n = tn_features_count(f);
    ck_assert(n >= 3 && n <= WINDOWS); /* overlapping windows */
    for (int turn = 0; turn < 20; turn++) {
        double none = INFINITY;
        for (int64_t i = 0; i < n; i++) {
            scores[i] = tn_data(tn_normal(TN_SHAPE(16, 2), 0, 2));
            none = fmin(none, (double)scores[i][0] + (double)scores[i][1]);
        }
        const int64_t longest = 1 + turn % 7, spans = try_all(f, n, scores, longest, all);
        for (int64_t most = 1; most <= SPANS; most *= 4) {
            const int64_t found = tn_answers_best(f, 0, n, scores, longest, most, got);
            ck_assert_int_eq(found, most < spans ? most : spans);
            double in_all = exp(none), sum = 0;
            for (int64_t i = 0; i < found; i++) in_all += exp(all[i].score);
            for (int64_t i = 0; i < found; i++) {
                ck_assert_double_eq(got[i].score, all[i].score);
                ck_assert(got[i].start == all[i].start && got[i].end == all[i].end && got[i].none == none);
                ck_assert_double_eq_tol(got[i].probability, exp(all[i].score) / in_all, 1e-12);
                sum += got[i].probability;
            }
            ck_assert_double_eq_tol(sum, 1 - exp(none) / in_all, 1e-12);
        }
    }
    tn_features_free(f), tn_labelled_free(l), tn_tokenizer_free(t);
}

TEST(answers_that_are_refused)
{
    tn_answer     one;
    const float   row[32] = {0}, *scores[1] = {row};
    tn_tokenizer *t = pieces();
    tn_labelled  *l = tn_labelled_parse(asked, sizeof asked - 1, .kind = TN_LABELLED_ANSWERS, .form = "squad");
    tn_features  *f = tn_features_new(l, t, NULL, .length = 16, .stride = 6);
    fine();
    const int64_t n = tn_features_count(f);
    const struct {
        int64_t     first, n, longest, most;
        const char *says;
    } bad[] = {{0, 1, 0, 1, "tn_answers_best: .longest is 0, but must be from 1 to 1048576"},
               {0, 1, 1, 0, "tn_answers_best: .most is 0, but must be from 1 to 1048576"},
               {-1, 1, 1, 1, "tn_answers_best: the features from -1 do not exist, or an argument is NULL"},
               {n, 1, 1, 1, NULL},
               {0, 0, 1, 1, "tn_answers_best: the features from 0 do not exist, or an argument is NULL"},
               {0, n + 1, 1, 1, "tn_answers_best: the features from 0 do not exist, or an argument is NULL"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_int_eq(tn_answers_best(f, bad[i].first, bad[i].n, scores, bad[i].longest, bad[i].most, &one), -1);
        if (bad[i].says) ck_error(TN_EINVAL, bad[i].says);
        tn_clear_error();
    }
    ck_assert_int_eq(tn_answers_best(f, 0, 1, NULL, 1, 1, &one), -1);
    ck_error(TN_EINVAL, "tn_answers_best: the features from 0 do not exist, or an argument is NULL");
    tn_features_free(f), tn_labelled_free(l), tn_tokenizer_free(t);
}
