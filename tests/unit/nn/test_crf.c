/* test_crf.c — the conditional random field compared with an enumeration of all paths: the partition function, the best
 * path, and the gradients, which are differences of probabilities. */
#include "nn/crf.h"
#include "nn/nn.h"
#include "tests/common/check_main.h"
#include "tests/common/golden_case.h"

enum { MOST = 8 };

static tn_crf *filled(int64_t labels)
{
    tn_crf *m = tn_crf_new(.labels = labels, .dtype = TN_F64);
    for (tn_each p = tn_parameters(m); tn_next(&p);) {
        const tn_scope s = tn_no_grad_begin();
        tn_copy_(p.tensor, tn_mul_scalar(tn_golden_values(p.name, TN_F64, tn_shape_of(p.tensor)), 3));
        tn_scope_end(s);
    }
    return m;
}

static double path_of(const tn_crf *m, const double *e, int64_t t, const int64_t *y)
{
    double s = tn_get(m->start, y[0]) + tn_get(m->end, y[t - 1]);
    for (int64_t k = 0; k < t; k++) s += e[k * m->labels + y[k]];
    for (int64_t k = 1; k < t; k++) s += tn_get(m->transitions, y[k - 1] * m->labels + y[k]);
    return s;
}

/* Advances to the next path; false: that was the last one. */
static bool next(int64_t *y, int64_t t, int64_t n)
{
    for (int64_t k = 0; k < t; k++) {
        if (++y[k] < n) return true;
        y[k] = 0;
    }
    return false;
}

/* For one sentence: log Z, the best path, the expected number of each tag at each step, and of each pair. */
typedef struct {
    double  log_z, best, tag[MOST * MOST], pair[MOST * MOST];
    int64_t path[MOST];
} all_paths;
static void look_at_all(const tn_crf *m, const double *e, int64_t t, all_paths *a)
{
    const int64_t n = m->labels;
    int64_t       y[MOST] = {0};
    long double   z = 0;
    *a = (all_paths){.best = -INFINITY};
    do {
        const double s = path_of(m, e, t, y);
        z += expl((long double)s);
        if (s > a->best) a->best = s, memcpy(a->path, y, sizeof y);
    } while (next(y, t, n));
    a->log_z = (double)logl(z);
    memset(y, 0, sizeof y);
    do {
        const double p = exp(path_of(m, e, t, y) - a->log_z);
        for (int64_t k = 0; k < t; k++) a->tag[k * n + y[k]] += p;
        for (int64_t k = 1; k < t; k++) a->pair[y[k - 1] * n + y[k]] += p;
    } while (next(y, t, n));
}

static void near(double got, double want) { ck_assert_double_le(fabs(got - want), 1e-10 * fmax(fabs(want), 1)); }

/* Rows of a batch with gaps and different ends, one of them without any tag. */
TEST(as_all_paths_say)
{
    static const int64_t tags[] = {1,         0,    2,    2,    1,    0,    /**/ -100, 2,    -100, -100, 1,    -1,
                                   /**/ -100, -100, -100, -100, -100, -100, /**/ 0,    -100, -100, -100, -100, -100};
    enum { B = 4, T = 6, N = 3 };
    tn_crf    *m = filled(N);
    tn_tensor *e = tn_requires_grad(tn_mul_scalar(tn_golden_values("scores", TN_F64, TN_SHAPE(B, T, N)), 4));
    tn_tensor *y = tn_from_data(TN_I64, TN_SHAPE(B, T), tags), *loss = tn_crf_loss(m, e, y);
    double     want = 0, grad[B * T * N] = {0}, pair[N * N] = {0};
    int64_t    steps = 0;
    for (int64_t b = 0; b < B; b++) {
        double    x[T * N];
        int64_t   at[T], gold[T], t = 0;
        all_paths a;
        for (int64_t k = 0; k < T; k++) {
            if (tags[b * T + k] < 0) continue;
            for (int64_t j = 0; j < N; j++) x[t * N + j] = tn_get(e, (b * T + k) * N + j);
            at[t] = b * T + k, gold[t++] = tags[b * T + k];
        }
        if (!t) continue;
        look_at_all(m, x, t, &a);
        want += a.log_z - path_of(m, x, t, gold), steps += t;
        for (int64_t k = 0; k < t; k++)
            for (int64_t j = 0; j < N; j++) grad[at[k] * N + j] = a.tag[k * N + j] - (gold[k] == j);
        for (int64_t k = 0; k < N * N; k++) pair[k] += a.pair[k];
        for (int64_t k = 1; k < t; k++) pair[gold[k - 1] * N + gold[k]]--;
        int64_t    best[T];
        tn_tensor *sentence = tn_from_data(TN_F64, TN_SHAPE(t, N), x);
        near(tn_crf_best(m, sentence, best), a.best);
        for (int64_t k = 0; k < t; k++) ck_assert_int_eq(best[k], a.path[k]);
    }
    near(tn_item(loss), want / (double)steps);
    tn_backward(loss);
    for (int64_t i = 0; i < B * T * N; i++) near(tn_get(tn_grad(e), i), grad[i] / (double)steps);
    for (int64_t i = 0; i < N * N; i++) near(tn_get(tn_grad(m->transitions), i), pair[i] / (double)steps);
    ck_assert(tn_error() == TN_OK);
    tn_free(m);
}

TEST(one_label_and_no_tags)
{
    static const int64_t none[] = {-100, -100};
    tn_crf              *m = filled(1);
    tn_tensor           *e = tn_ones_of(TN_F64, TN_SHAPE(1, 2, 1));
    near(tn_item(tn_crf_loss(m, e, tn_zeros_of(TN_I64, TN_SHAPE(1, 2)))), 0);
    near(tn_item(tn_crf_loss(m, e, tn_from_data(TN_I64, TN_SHAPE(1, 2), none))), 0);
    int64_t best[2] = {7, 7};
    near(tn_crf_best(m, tn_zeros_of(TN_F64, TN_SHAPE(0, 1)), best), 0);
    ck_assert(best[0] == 7 && tn_error() == TN_OK);
    tn_free(m);
}

/* Scores of skipped steps may have any value, and get a gradient of 0. */
TEST(passed_over)
{
    static const double ill[] = {-INFINITY, INFINITY, NAN};
    tn_crf             *m = filled(3);
    for (int i = 0; i < 6; i++) {
        tn_tensor *e = tn_full_of(TN_F64, TN_SHAPE(2, 3, 3), ill[i / 2]);
        tn_tensor *tags = tn_full_of(i % 2 ? TN_I32 : TN_I64, TN_SHAPE(2, 3), -1);
        if (i % 2) tn_set_at(tags, TN_SHAPE(1, 0), 2), tn_set_at(tags, TN_SHAPE(1, 2), 1);
        for (int64_t k = 0; i % 2 && k < 3; k++) tn_set_at(e, TN_SHAPE(1, 0, k), 1), tn_set_at(e, TN_SHAPE(1, 2, k), 1);
        tn_tensor *y = tn_crf_loss(m, tn_requires_grad(e), tags);
        ck_assert(i % 2 ? isfinite(tn_item(y)) : tn_item(y) == 0);
        tn_backward(y);
        tn_tensor *g = tn_grad(e);
        ck_assert(g && tn_error() == TN_OK);
        for (int64_t k = 0; k < 18; k++)
            if (i % 2 && (k / 3 == 3 || k / 3 == 5)) ck_assert(isfinite(tn_get(g, k)) && tn_get(g, k) != 0);
            else ck_assert(tn_get(g, k) == 0);
    }
    tn_free(m);
}

TEST(refused)
{
    tn_crf    *m = filled(3);
    tn_tensor *tags = tn_full_of(TN_I64, TN_SHAPE(2, 4), 3);
    ck_refused(tn_crf_loss(m, tn_zeros(TN_SHAPE(2, 4, 2)), tags), TN_ESHAPE,
               "crf: scores must be [batch, length, 3] and tags [batch, length], got [2, 4, 2] and [2, 4]");
    ck_refused(tn_crf_loss(m, tn_zeros(TN_SHAPE(2, 4, 3)), tags), TN_EINDEX,
               "crf: tag 3 at [0], but there are 3 labels");
    static const tn_dtype no_tags[] = {TN_F32, TN_U8, TN_BOOL};
    for (int i = 0; i < 3; i++) {
        ck_refused(tn_crf_loss(m, tn_zeros(TN_SHAPE(2, 4, 3)), tn_ones_of(no_tags[i], TN_SHAPE(2, 4))), TN_EDTYPE,
                   tn_name("crf: the tags must be i64 or i32, not %s", tn_dtype_name(no_tags[i])));
    }
    ck_assert(isnan(tn_crf_best(m, tn_zeros(TN_SHAPE(2, 3)), NULL)));
    ck_error(TN_EINVAL, "crf: to is NULL; it must have room for one tag per step of the scores");
    int64_t best[2];
    ck_assert(isnan(tn_crf_best(m, tn_full(TN_SHAPE(2, 3), NAN), best)));
    ck_error(TN_ENUMERIC, "crf: the best path has the score NaN; check the scores for NaN and Inf");
    ck_refused(tn_crf_new(.labels = 0), TN_EINVAL, "tn_crf_new: .labels is 0, but must be from 1 to 32768");
    tn_free(m);
}
