/* test_random.c — the distributions of the random tensors. */
#include "tests/common/check_main.h"

#include "core/core.h"
#include "core/tensor/random.h"
#include <float.h>

/* For loops: Check's own assertions each write to a pipe, whether they hold or not. */
#define EACH(holds) ((holds) ? (void)0 : ck_abort_msg("%s", #holds))

/* The tests of distributions use fixed seeds, so each always passes or always fails. The bounds are those of a test at
 * level 1e-6 or so: a correct generator passes with any seed, a wrong one is far off. */
enum { MANY = 200000 };

static int64_t many(void) { return tn_test_slow() ? MANY / 10 : MANY; }

/* ---- distributions -------------------------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double uniform_cdf(double x) { return x; }
static double normal_cdf(double x) { return 0.5 * erfc(-x / sqrt(2)); }

/* √n times the largest distance between the distribution of the elements and cdf: above 2.7 once in 10^6 draws. */
static double kolmogorov(const tn_tensor *t, double (*cdf)(double))
{
    const int64_t n = tn_numel(t);
    double       *v = malloc((size_t)n * sizeof *v), worst = 0;
    ck_assert_ptr_nonnull(v);
    ck_assert_int_eq(tn_copy_out(t, TN_F64, v, (size_t)n * sizeof *v), TN_OK);
    qsort(v, (size_t)n, sizeof *v, ascending);
    for (int64_t i = 0; i < n; i++) {
        const double f = cdf(v[i]);
        worst = fmax(worst, fmax(f - (double)i / (double)n, (double)(i + 1) / (double)n - f));
    }
    free(v);
    return worst * sqrt((double)n);
}

/* Mean of (x - about)^power. */
static double moment(const tn_tensor *t, double about, int power)
{
    double        sum = 0;
    const int64_t n = tn_numel(t);
    for (int64_t i = 0; i < n; i++) sum += pow(tn_get(t, i) - about, power);
    return sum / (double)n;
}

/* The correlation of neighbours `lag` apart, times √n: a standard normal number if they are independent. */
static double correlation(const tn_tensor *t, int64_t lag)
{
    const int64_t n = tn_numel(t) - lag;
    const double  mean = moment(t, 0, 1), var = moment(t, mean, 2);
    double        sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (tn_get(t, i) - mean) * (tn_get(t, i + lag) - mean);
    return sum / var / sqrt((double)n);
}

static const tn_dtype reals[] = {TN_F32, TN_F64};

TEST_EACH(uniform_is_uniform, 2)
{
    tn_seed(1000 + (uint64_t)_i);
    tn_tensor   *t = tn_uniform_of(reals[_i], TN_SHAPE(many()), 0, 1);
    const double n = sqrt((double)many());
    ck_assert_double_lt(kolmogorov(t, uniform_cdf), 2.7);
    ck_assert_double_lt(fabs(moment(t, 0, 1) - 0.5) * n / sqrt(1.0 / 12), 5);
    ck_assert_double_lt(fabs(moment(t, 0.5, 2) - 1.0 / 12) * n / sqrt(1.0 / 180), 5);
    for (int64_t lag = 1; lag <= 8; lag++) ck_assert_double_lt(fabs(correlation(t, lag)), 5);
}

TEST_EACH(normal_is_normal, 2)
{
    tn_seed(2000 + (uint64_t)_i);
    tn_tensor   *t = tn_normal_of(reals[_i], TN_SHAPE(many()), 0, 1);
    const double n = sqrt((double)many());
    ck_assert_double_lt(kolmogorov(t, normal_cdf), 2.7);
    ck_assert_double_lt(fabs(moment(t, 0, 1)) * n, 5);
    ck_assert_double_lt(fabs(moment(t, 0, 2) - 1) * n / sqrt(2), 5);
    ck_assert_double_lt(fabs(moment(t, 0, 3)) * n / sqrt(15), 5);
    ck_assert_double_lt(fabs(moment(t, 0, 4) - 3) * n / sqrt(96), 5);
    for (int64_t lag = 1; lag <= 8; lag++) ck_assert_double_lt(fabs(correlation(t, lag)), 5);
    /* tails: Φ(-3), Φ(-4) */
    int64_t three = 0, four = 0;
    for (int64_t i = 0; i < many(); i++) three += fabs(tn_get(t, i)) > 3, four += fabs(tn_get(t, i)) > 4;
    ck_assert_double_lt(fabs((double)three - 0.0026998 * (double)many()), 5 * sqrt(0.0027 * (double)many()));
    ck_assert_double_lt(fabs((double)four - 6.3342e-5 * (double)many()), 5 * sqrt(6.4e-5 * (double)many()) + 1);
}

/* Box and Muller again, with the C library: ours, from + - · / and sqrt, differs by a few last bits at most. */
TEST(normal_is_box_and_muller)
{
    const double turn = 8 * atan(1);
    tn_seed(77);
    tn_tensor *t = tn_normal_of(TN_F64, TN_SHAPE(20000), 0, 1);
    for (int64_t i = 0; i < 20000; i += 2) {
        uint32_t w[4];
        tn__philox(77, (uint64_t)i / 2, w);
        const double u = ((double)(tn__word64(w) >> 11) + 1) / 9007199254740992.0;
        const double a = (double)(tn__word64(w + 2) >> 11) / 9007199254740992.0, r = sqrt(-2 * log(u));
        EACH(fabs(tn_get(t, i) - r * cos(turn * a)) <= 8e-16 * (1 + r));
        EACH(fabs(tn_get(t, i + 1) - r * sin(turn * a)) <= 8e-16 * (1 + r));
    }
}

TEST(mean_and_std)
{
    tn_seed(4);
    tn_tensor *z = tn_normal_of(TN_F64, TN_SHAPE(1001), 0, 1);
    tn_seed(4);
    tn_tensor *y = tn_normal_of(TN_F64, TN_SHAPE(1001), -3, 0.25);
    tn_seed(4);
    tn_tensor *same = tn_normal(TN_SHAPE(9), 1.5, 0);
    for (int64_t i = 0; i < 1001; i++) EACH(tn_get(y, i) == -3 + 0.25 * tn_get(z, i));
    for (int64_t i = 0; i < 9; i++) ck_assert_double_eq(tn_get(same, i), 1.5);
}

TEST(uniform_keeps_its_bounds)
{
    static const struct {
        tn_dtype dt;
        double   low, high;
    } rows[] = {{TN_F32, 0, 1},
                {TN_F64, 0, 1},
                {TN_BF16, 0, 1},
                {TN_F32, 0.7, 0.7000003},
                {TN_F32, 1, 1 + 3 * (double)FLT_EPSILON},
                {TN_F32, 16777216, 16777222},
                {TN_F32, -1, 0},
                {TN_F32, -3e-45, 3e-45},
                {TN_F32, -3e38, 3e38},
                {TN_BF16, 0.7, 0.73},
                {TN_BF16, -0.5, 0.1},
                {TN_BF16, -1, 0},
                {TN_F64, 1, 1 + 3 * DBL_EPSILON},
                {TN_F64, -8e307, 8e307},
                {TN_F64, -1, -0.9999999999}};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        tn_seed(r);
        tn_tensor *t = tn_uniform_of(rows[r].dt, TN_SHAPE(20000), rows[r].low, rows[r].high);
        ck_assert_ptr_nonnull(t);
        double least = INFINITY, most = -INFINITY;
        for (int64_t i = 0; i < 20000; i++) least = fmin(least, tn_get(t, i)), most = fmax(most, tn_get(t, i));
        ck_assert_msg(least >= rows[r].low && most < rows[r].high, "row %d: [%a, %a]", (int)r, least, most);
        ck_assert_msg(least < most, "row %d: all are %a", (int)r, least);
    }
    /* where the dtype has no value between the bounds, and where no number exists */
    tn_tensor *t = tn_uniform(TN_SHAPE(100), 0.1, 0.1 + 1e-12);
    for (int64_t i = 0; i < 100; i++) EACH(tn_get(t, i) == (double)0.1f);
    t = tn_uniform(TN_SHAPE(100), 2.5, 2.5);
    for (int64_t i = 0; i < 100; i++) EACH(tn_get(t, i) == 2.5);
}

/* The sum of (found - expected)²/expected over equally likely cells has mean cells - 1 and variance 2 (cells - 1). */
static double chi_square(const int64_t *found, int cells, int64_t n)
{
    const double expected = (double)n / cells;
    double       sum = 0;
    for (int i = 0; i < cells; i++) sum += pow((double)found[i] - expected, 2) / expected;
    return (sum - (cells - 1)) / sqrt(2.0 * (cells - 1));
}

TEST(randint_is_fair)
{
    static const struct {
        int64_t low;
        int     range;
    } rows[] = {{0, 2}, {0, 6}, {-3, 7}, {5, 100}, {INT64_MIN, 13}, {INT64_MAX - 10, 10}};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        int64_t found[100] = {0};
        tn_seed(r);
        tn_tensor *t = tn_randint(TN_SHAPE(many()), rows[r].low, rows[r].low + rows[r].range);
        for (int64_t i = 0; i < many(); i++) {
            const int64_t v = tn_get_i64(t, i);
            EACH(v >= rows[r].low && v < rows[r].low + rows[r].range);
            found[v - rows[r].low]++;
        }
        ck_assert_double_lt(fabs(chi_square(found, rows[r].range, many())), 6);
    }
}

/* Of 3·2^62 numbers, x mod n without rejection would return the first third twice as often as the others. */
TEST(no_bias_for_huge_ranges)
{
    int64_t found[3] = {0};
    tn_seed(8);
    const int64_t low = INT64_MIN, third = (int64_t)1 << 62;
    tn_tensor    *t = tn_randint(TN_SHAPE(many()), low, low + third + third + third); /* because 3·2^62 is too large */
    for (int64_t i = 0; i < many(); i++) {
        const uint64_t v = (uint64_t)tn_get_i64(t, i) - (uint64_t)low;
        EACH(v >> 62 < 3);
        found[v >> 62]++;
    }
    ck_assert_double_lt(fabs(chi_square(found, 3, many())), 6);

    int64_t      below[3] = {0};
    tn_generator g = {.seed = 8};
    for (int64_t i = 0; i < many(); i++) {
        const int64_t v = tn_random_below(&g, 3 * ((int64_t)1 << 61));
        EACH(v >= 0 && v < 3 * ((int64_t)1 << 61));
        below[v >> 61]++;
    }
    ck_assert_double_lt(fabs(chi_square(below, 3, many())), 6);

    t = tn_randint(TN_SHAPE(1000), INT64_MIN, INT64_MAX); /* the widest range */
    int64_t negative = 0;
    for (int64_t i = 0; i < 1000; i++) negative += tn_get_i64(t, i) < 0;
    ck_assert(negative > 400 && negative < 600);
}

TEST(bernoulli_is_fair)
{
    static const double   p[] = {0, 1e-3, 0.25, 0.5, 0.9, 1};
    static const tn_dtype types[] = {TN_F32, TN_F64, TN_BF16, TN_I64, TN_I32, TN_U8, TN_BOOL};
    for (int i = 0; i < 6; i++) {
        tn_seed(100 + (uint64_t)i);
        tn_tensor *t = tn_bernoulli(TN_SHAPE(many()), p[i]);
        double     ones = 0;
        for (int64_t k = 0; k < many(); k++) {
            EACH(tn_get(t, k) == 0 || tn_get(t, k) == 1);
            ones += tn_get(t, k);
        }
        ck_assert_double_le(fabs(ones - p[i] * (double)many()), 5 * sqrt(p[i] * (1 - p[i]) * (double)many()));
        for (int d = 0; d < 7; d++) { /* every dtype gets the same */
            tn_seed(100 + (uint64_t)i);
            tn_tensor *u = tn_bernoulli_of(types[d], TN_SHAPE(1000), p[i]);
            ck_assert_int_eq(tn_dtype_of(u), types[d]);
            for (int64_t k = 0; k < 1000; k++) EACH(tn_get(u, k) == tn_get(t, k));
        }
    }
}

TEST(permutations_are_permutations)
{
    static const int64_t sizes[] = {0, 1, 2, 5, 512, 513, 20000};
    for (int s = 0; s < 7; s++) {
        const int64_t n = sizes[s];
        tn_tensor    *t = tn_permutation(n);
        char         *seen = calloc((size_t)n + 1, 1);
        ck_assert_ptr_nonnull(seen);
        ck_assert_int_eq(tn_dtype_of(t), TN_I64);
        ck_assert_int_eq(tn_numel(t), n);
        for (int64_t i = 0; i < n; i++) {
            const int64_t v = tn_get_i64(t, i);
            EACH(v >= 0 && v < n && !seen[v]);
            seen[v] = 1;
        }
        free(seen);
    }
}

TEST(permutations_are_fair) /* each of the 24 of 4, and each position of 513 for the first element */
{
    int64_t found[24] = {0};
    tn_seed(3);
    for (int k = 0; k < 24000; k++) {
        const tn_scope s = tn_scope_begin();
        const int64_t *v = tn_data(tn_permutation(4));
        int            rank = 0;
        for (int i = 0; i < 4; i++) {
            int smaller = 0;
            for (int j = i + 1; j < 4; j++) smaller += v[j] < v[i];
            rank = rank * (4 - i) + smaller;
        }
        found[rank]++;
        tn_scope_end(s);
    }
    ck_assert_double_lt(fabs(chi_square(found, 24, 24000)), 6);

    int64_t place[9] = {0};
    for (int k = 0; k < 9000; k++) {
        const tn_scope s = tn_scope_begin();
        const int64_t *v = tn_data(tn_permutation(513));
        for (int i = 0; i < 513; i++)
            if (v[i] == 0) place[i / 57]++;
        tn_scope_end(s);
    }
    ck_assert_double_lt(fabs(chi_square(place, 9, 9000)), 6);
}
