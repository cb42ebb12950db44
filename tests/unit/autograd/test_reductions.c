/* test_reductions.c — reductions, softmax and cumulative sums beyond the registry's samples: long sums, infinities and
 * NaN, ties, zeros in products, integers, and the same bits for every layout and number of threads where a row is
 * longer than a segment. */
#include "autograd/autograd.h"
#include "tests/common/check_main.h"
#include "tests/common/values.h"

static const double nan_ = (double)NAN;

static bool bits(const tn_tensor *a, const tn_tensor *b)
{
    if (!a || !b || !tn_shape_equal(tn_shape_of(a), tn_shape_of(b)) || tn_dtype_of(a) != tn_dtype_of(b)) return false;
    for (int64_t i = 0, n = tn_numel(a); i < n; i++) {
        const double x = tn_get(a, i), y = tn_get(b, i);
        if (memcmp(&x, &y, sizeof x) != 0 && !(isnan(x) && isnan(y))) return false;
    }
    return true;
}

static void fails(const char *message)
{
    ck_assert_str_eq(tn_error_message(), message);
    tn_clear_error();
}

/* ---- sums ---- */

TEST(long_sums)
{
    const int64_t n = tn_test_slow() ? 1000000 : 10000000; /* and not 10⁸, to be quick */
    tn_tensor    *x = tn_full(TN_SHAPE(n), 0.1);
    const double  tenth = (double)0.1f;
    ck_assert_double_le(fabs(tn_item(tn_sum(x)) / (tenth * (double)n) - 1), 1e-7);
    ck_assert_double_eq(tn_item(tn_mean(x)), tenth);
    tn_tensor *y = tn_expand(tn_scalar_of(TN_F32, 0.1), TN_SHAPE(n));
    ck_assert(bits(tn_sum(x), tn_sum(y)));
    ck_assert_double_le(fabs(tn_get(tn_cumsum(x, 0), n - 1) / (tenth * (double)n) - 1), 1e-7);
    /* the 1 survives the cancellation: f32 would lose it next to 1e8, f64 does not */
    ck_assert_double_eq(tn_item(tn_sum(F32(1e8f, 1, -1e8f))), 1);
    ck_assert_double_eq(tn_item(tn_norm(F32(3e30f, 4e30f))), (double)5e30f);
    EXPECT(tn_mean(F32(3e38f, 3e38f, 3e38f)), 0, (double)3e38f);
}

TEST(of_nothing)
{
    tn_tensor *x = tn_zeros(TN_SHAPE(2, 0)), *none = tn_zeros(TN_SHAPE(0));
    EXPECT(tn_sum(none), 0, 0);
    EXPECT(tn_prod(none), 0, 1);
    EXPECT(tn_mean(none), 0, nan_);
    EXPECT(tn_var(none), 0, nan_);
    EXPECT(tn_norm(none), 0, 0);
    EXPECT(tn_logsumexp(x, .dims = TN_DIMS(1)), 0, -inf, -inf);
    EXPECT(tn_any(none), 0, 0);
    EXPECT(tn_all(none), 0, 1);
    ck_assert_int_eq(tn_numel(tn_amax(x, .dims = TN_DIMS(0))), 0);
    ck_assert_int_eq(tn_numel(tn_softmax(x, 1)), 0);
    ck_assert_ptr_null(tn_amax(none));
    fails("amax: dim 0 of [0] is empty: there is no element to choose");
    ck_assert_ptr_null(tn_max(x, -1, false).values);
    fails("max: dim 1 of [2, 0] is empty: there is no element to choose");
    ck_assert_ptr_null(tn_norm(none, .p = inf));
    fails("norm: dim 0 of [0] is empty: there is no element to choose");
}

TEST(integers)
{
    tn_tensor *u8 = tn_to(tn_full(TN_SHAPE(300), 200), TN_U8), *flags = tn_gt(tn_arange(5), tn_scalar_of(TN_I64, 1));
    ck_assert_int_eq(tn_dtype_of(tn_sum(u8)), TN_I64);
    EXPECT(tn_sum(u8), 0, 60000);
    EXPECT(tn_sum(flags), 0, 3);
    EXPECT(tn_prod(flags), 0, 0);
    EXPECT(tn_cumsum(flags, 0), 0, 0, 0, 1, 2, 3);
    ck_assert_int_eq(tn_dtype_of(tn_cumsum(flags, 0)), TN_I64);
    tn_tensor *large = tn_full_of(TN_I64, TN_SHAPE(2), 0x1p62);
    EXPECT(tn_sum(large), 0, -0x1p63); /* wraps */
    EXPECT(tn_prod(tn_from_data(TN_I32, TN_SHAPE(3), (int32_t[]){70000, -70000, 3})), 0, -14700000000.0);
    ck_assert_int_eq(tn_dtype_of(tn_amax(u8)), TN_U8);
    EXPECT(tn_amin(tn_from_data(TN_I32, TN_SHAPE(3), (int32_t[]){7, -9, 3})), 0, -9);
    const int64_t exact[2] = {INT64_MAX - 1, INT64_MAX};
    tn_tensor    *wide = tn_from_data(TN_I64, TN_SHAPE(2), exact);
    ck_assert(tn_get_i64(tn_amax(wide), 0) == INT64_MAX);
    ck_assert(tn_get_i64(tn_argmax(wide, 0, false), 0) == 1);
    ck_assert_ptr_null(tn_mean(wide));
    fails("mean: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)");
    EXPECT(tn_any(F32(0, 0, NAN)), 0, 1);
    EXPECT(tn_any(F32(0, -0.0f)), 0, 0);
    EXPECT(tn_all(F32(1, NAN, 1e-45f)), 0, 1);
    EXPECT(tn_all(F32(1, 0, 2)), 0, 0);
}

/* ---- softmax and related ops ---- */

TEST(softmax_of_extremes)
{
    for (int ops = 0; ops < 2; ops++) {
        EXPECT(tn_softmax(F32(1e4f, -1e4f, 0), 0), 0, 1, 0, 0);
        EXPECT(tn_softmax(F32(1e38f, 1e38f, 1e38f, 1e38f), 0), 0, .25, .25, .25, .25);
        EXPECT(tn_softmax(F32(3e38f, -3e38f), 0), 0, 1, 0);
        EXPECT(tn_softmax(F32(-INFINITY, -INFINITY), 0), 0, nan_, nan_);
        EXPECT(tn_softmax(F32(1, NAN), 0), 0, nan_, nan_);

        tn_tensor   *x = tn_requires_grad(F32(1, -INFINITY, 2)), *w = F32(1, 2, 4);
        tn_tensor   *y = tn_softmax(x, 0), *g = gradient(tn_sum(tn_mul(y, w)), x, ops);
        const double p = 1 / (1 + exp(1));
        EXPECT(y, 1e-6, p, 0, 1 - p);
        EXPECT(g, 1e-6, -3 * p * (1 - p), 0, 3 * p * (1 - p));

        EXPECT(tn_log_softmax(F32(1e4f, -1e4f, 0), 0), 0, 0, -2e4, -1e4);
        EXPECT(tn_log_softmax(F32(0, -20), 0), 1e-6, -log1p(exp(-20)), -20); /* its digits near 0 are kept */
        EXPECT(tn_log_softmax(F32(0, -INFINITY), 0), 0, 0, -inf);
        EXPECT(tn_log_softmax(F32(-INFINITY, -INFINITY), 0), 0, nan_, nan_);
    }
}

TEST(logsumexp_of_extremes)
{
    for (int ops = 0; ops < 2; ops++) {
        tn_tensor *x = tn_requires_grad(F32(-INFINITY, -INFINITY, -INFINITY)), *y = tn_logsumexp(x);
        EXPECT(y, 0, -inf);
        EXPECT(gradient(y, x, ops), 0, 0, 0, 0);
        x = tn_requires_grad(F32(1e4f, -INFINITY, 1e4f)), y = tn_logsumexp(x);
        EXPECT(y, 1e-7, 1e4 + log(2));
        EXPECT(gradient(y, x, ops), 1e-3, .5, 0, .5);
    }
    EXPECT(tn_logsumexp(F32(1, INFINITY, -INFINITY)), 0, inf);
    EXPECT(tn_logsumexp(F32(1, INFINITY, NAN)), 0, nan_);
    EXPECT(tn_logsumexp(F32(NAN, -INFINITY)), 0, nan_);
    EXPECT(tn_logsumexp(F32(-1e38f, -3e38f)), 0, (double)-1e38f);

    /* over several segments, with a peak in the third and only -inf in the first */
    const int64_t n = 3 * 16384 + 5;
    tn_tensor    *x = tn_uniform_of(TN_F64, TN_SHAPE(n), -2, 2);
    double        sum = 0;
    for (int64_t i = 0; i < 16384; i++) tn_set(x, i, -inf);
    tn_set(x, 40000, 30);
    for (int64_t i = 0; i < n; i++) sum += exp(tn_get(x, i));
    EXPECT(tn_logsumexp(x), 1e-14, log(sum));
    EXPECT(tn_logsumexp(tn_to(x, TN_F32)), 1e-6, log(sum));
    tn_set(x, 0, inf);
    EXPECT(tn_logsumexp(x), 0, inf);
    tn_set(x, n - 1, nan_);
    EXPECT(tn_logsumexp(x), 0, nan_);
}

/* ---- choosing ---- */

TEST(ties_and_nan)
{
    for (int ops = 0; ops < 2; ops++) {
        tn_tensor *x = tn_requires_grad(F32(1, 3, 3, 2));
        EXPECT(gradient(tn_amax(x), x, ops), 0, 0, .5, .5, 0);
        EXPECT(gradient(tn_amin(x), x, ops), 0, 1, 0, 0, 0);
        EXPECT(gradient(tn_max(x, 0, false).values, x, ops), 0, 0, 1, 0, 0);
        x = tn_requires_grad(F32(-2, 2, 1));
        EXPECT(gradient(tn_norm(x, .p = inf), x, ops), 0, -.5, .5, 0);
        x = tn_requires_grad(F32(1, NAN, 2));
        EXPECT(tn_amax(x), 0, nan_);
        EXPECT(tn_amin(x), 0, nan_);
        EXPECT(gradient(tn_amax(x), x, ops), 0, nan_, nan_, nan_);
    }
    tn_pair m = tn_max(F32(1, 3, 3, 2), 0, false);
    EXPECT(m.values, 0, 3);
    EXPECT(m.indices, 0, 1);
    EXPECT(tn_argmin(F32(2, 1, 1), 0, false), 0, 1);
    EXPECT(tn_argmax(F32(1, NAN, 7, NAN), 0, false), 0, 1);
    EXPECT(tn_argmin(F32(1, NAN, -7, NAN), 0, false), 0, 1);
    EXPECT(tn_argmax(F32(-INFINITY, -INFINITY), 0, false), 0, 0);
    EXPECT(tn_amax(F32(-INFINITY, -INFINITY)), 0, -inf);
    EXPECT(tn_min(F32(INFINITY, NAN), 0, true).values, 0, nan_);

    const int64_t n = 3 * 16384 + 100;
    tn_tensor    *x = tn_zeros(TN_SHAPE(2, n));
    tn_set(x, 20000, 5), tn_set(x, 40000, 5), tn_set(x, n + 30000, 1), tn_set(x, n + 45000, nan_),
        tn_set(x, n + 45001, nan_);
    EXPECT(tn_argmax(x, 1, false), 0, 20000, 45000);
    EXPECT(tn_argmax(x, TN_ALL, false), 0, (double)(n + 45000));
    EXPECT(tn_amax(x, .dims = TN_DIMS(1)), 0, 5, nan_);
    ck_assert_int_eq(tn_ndim(tn_argmax(x, TN_ALL, true)), 2);
}

/* ---- products, variances, norms ---- */

static tn_tensor *prod_of_all(tn_tensor *const *in, int n, void *user)
{
    (void)n, (void)user;
    return tn_prod(in[0], .dims = TN_DIMS(-1));
}

TEST(zeros_in_a_product)
{
    tn_tensor *x = tn_requires_grad(tn_from_data(
        TN_F64, TN_SHAPE(4, 3), (double[]){2, 5, 3, 2, 0, 3, 0, 5, 0, 0, 0, 0})); /* none, one, two and three */
    tn_tensor *y = tn_prod(x, .dims = TN_DIMS(1));
    EXPECT(y, 0, 30, 0, 0, 0);
    for (int ops = 0; ops < 2; ops++) {
        tn_tensor *g = gradient(tn_sum(y), x, ops);
        EXPECT(g, 1e-15, 15, 6, 10, 0, 6, 0, 0, 0, 0, 0, 0, 0);
        if (!ops) continue;
        /* the gradient of the sum of all first derivatives: for each element Σ over the others of the product without
         * both */
        EXPECT(gradient(tn_sum(g), x, false), 1e-15, 8, 5, 7, 3, 5, 2, 5, 0, 5, 0, 0, 0);
        EXPECT(gradient(tn_sum(gradient(tn_sum(g), x, true)), x, false), 1e-15, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2);
    }
    ck_assert_msg(tn_gradcheck(prod_of_all, .input = x, .second = true) == TN_OK, "%s", tn_error_message());
    /* f32 neither overflows nor underflows half-way */
    x = tn_requires_grad(F32(1e30f, 1e30f, 1e-30f, 1e-30f));
    y = tn_prod(x);
    EXPECT(y, 1e-6, 1);
    EXPECT(gradient(y, x, false), 1e-6, 1e-30, 1e-30, 1e30, 1e30);
    EXPECT(tn_prod(F32(INFINITY, 0)), 0, nan_);
    EXPECT(tn_prod(F32(NAN, 0)), 0, nan_);
}

/* All share one struct of options: an op rejects the options it does not have. */
TEST(options_of_others)
{
    tn_tensor *x = tn_ones(TN_SHAPE(2, 3)), *image = tn_ones(TN_SHAPE(1, 1, 4, 4)), *line = tn_ones(TN_SHAPE(1, 1, 4));
    tn_tensor *with_p[] = {NULL, NULL, NULL};
    const char *const biased[] = {"sum", "mean", "prod", "amax", "amin", "logsumexp", "any", "all", "norm"};
    for (int i = 0; i < 9; i++) {
        char       text[80];
        tn_tensor *y = i == 0   ? tn_sum(x, .biased = true)
                       : i == 1 ? tn_mean(x, .biased = true)
                       : i == 2 ? tn_prod(x, .biased = true)
                       : i == 3 ? tn_amax(x, .biased = true)
                       : i == 4 ? tn_amin(x, .biased = true)
                       : i == 5 ? tn_logsumexp(x, .biased = true)
                       : i == 6 ? tn_any(x, .biased = true)
                       : i == 7 ? tn_all(x, .biased = true)
                                : tn_norm(x, .biased = true);
        ck_assert_ptr_null(y);
        snprintf(text, sizeof text, "tn_%s: .biased is only for tn_var and tn_std", biased[i]);
        ck_error(TN_EINVAL, text);
    }
    with_p[0] = tn_sum(x, .p = 1);
    ck_error(TN_EINVAL, "tn_sum: .p is only for tn_norm");
    with_p[1] = tn_std(x, .p = 1);
    ck_error(TN_EINVAL, "tn_std: .p is only for tn_norm");
    with_p[2] = tn_var(x, .p = INFINITY);
    ck_error(TN_EINVAL, "tn_var: .p is only for tn_norm");
    for (int i = 0; i < 3; i++) ck_assert_ptr_null(with_p[i]);
    ck_refused(tn_max_pool2d(image, .size = 2, .ignore_padding = true), TN_EINVAL,
               "tn_max_pool2d: .ignore_padding is only for average pooling");
    ck_refused(tn_max_pool1d(line, .size = 2, .ignore_padding = true), TN_EINVAL,
               "tn_max_pool1d: .ignore_padding is only for average pooling");
}

TEST(variance)
{
    EXPECT(tn_var(F64(1, 2, 3, 4)), 1e-15, 5.0 / 3);
    EXPECT(tn_var(F64(1, 2, 3, 4), .biased = true), 1e-15, 1.25);
    EXPECT(tn_std(F64(1, 2, 3, 4)), 1e-15, sqrt(5.0 / 3));
    EXPECT(tn_var(F64(7)), 0, nan_);
    EXPECT(tn_var(F64(7), .biased = true), 0, 0);

    /* a mean of 1e4 and a spread of 1e-2, over three segments: as accurate as f32 allows */
    const int64_t n = 2 * 16384 + 77;
    tn_tensor    *x = tn_normal(TN_SHAPE(n), 1e4, 1e-2), *wide = tn_to(x, TN_F64);
    double        mean = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) mean += (tn_get(x, i) - 1e4) / (double)n;
    for (int64_t i = 0; i < n; i++) squares += (tn_get(x, i) - 1e4 - mean) * (tn_get(x, i) - 1e4 - mean);
    EXPECT(tn_var(x), 1e-6, squares / (double)(n - 1));
    EXPECT(tn_var(wide), 1e-12, squares / (double)(n - 1));
    tn_requires_grad(x), tn_requires_grad(wide);
    tn_tensor *g = gradient(tn_var(x), x, false), *exact = gradient(tn_var(wide), wide, false);
    for (int64_t i = 0; i < n; i += 97)
        ck_assert_double_le(fabs(tn_get(g, i) - tn_get(exact, i)),
                            1e-6 * 2 * 0.04 / (double)n + 1e-5 * fabs(tn_get(exact, i)));

    for (int ops = 0; ops < 2; ops++) { /* constant: the slope of the root is set to 0 */
        x = tn_requires_grad(F32(3, 3, 3));
        EXPECT(tn_std(x), 0, 0);
        EXPECT(gradient(tn_std(x), x, ops), 0, 0, 0, 0);
    }
}

TEST(norms)
{
    tn_tensor *x = F64(3, -4, 0);
    EXPECT(tn_norm(x), 0, 5);
    EXPECT(tn_norm(x, .p = 1), 0, 7);
    EXPECT(tn_norm(x, .p = 3), 1e-15, cbrt(91));
    EXPECT(tn_norm(x, .p = inf), 0, 4);
    EXPECT(tn_norm(x, .p = -inf), 0, 0);
    EXPECT(tn_norm(x, .p = 0), 0, 2);
    EXPECT(tn_norm(F64(1, nan_)), 0, nan_);
    for (int ops = 0; ops < 2; ops++) {
        const double p[] = {0, 1, 1.5, 3, inf, 0};
        for (int i = 0; i < 6; i++) {
            tn_tensor *z = tn_requires_grad(F64(0, 0)), *g = gradient(tn_norm(z, .p = p[i]), z, ops);
            if (g) EXPECT(g, 0, 0, 0);
        }
        tn_requires_grad(x);
        EXPECT(gradient(tn_norm(x), x, ops), 1e-15, .6, -.8, 0);
        EXPECT(gradient(tn_norm(x, .p = 1), x, ops), 0, 1, -1, 0);
        EXPECT(gradient(tn_norm(x, .p = 0.5), x, ops), 1e-14, 1 + sqrt(4.0 / 3), -1 - sqrt(3.0 / 4), 0);
    }
}

/* ---- the same bits ---- */

static tn_tensor *f_sum(tn_tensor *x) { return tn_sum(x, .dims = TN_DIMS(0)); }
static tn_tensor *f_sum_all(tn_tensor *x) { return tn_sum(x); }
static tn_tensor *f_sum_ends(tn_tensor *x) { return tn_sum(x, .dims = TN_DIMS(0, 2)); }
static tn_tensor *f_mean(tn_tensor *x) { return tn_mean(x, .dims = TN_DIMS(1)); }
static tn_tensor *f_prod(tn_tensor *x) { return tn_prod(tn_exp(tn_mul_scalar(x, 1e-2)), .dims = TN_DIMS(1)); }
static tn_tensor *f_var(tn_tensor *x) { return tn_var(x, .dims = TN_DIMS(1, 2)); }
static tn_tensor *f_std(tn_tensor *x) { return tn_std(x, .dims = TN_DIMS(0)); }
static tn_tensor *f_amax(tn_tensor *x) { return tn_amax(x, .dims = TN_DIMS(1)); }
static tn_tensor *f_norm(tn_tensor *x) { return tn_norm(x); }
static tn_tensor *f_lse(tn_tensor *x) { return tn_logsumexp(x, .dims = TN_DIMS(1)); }
static tn_tensor *f_argmax(tn_tensor *x) { return tn_argmax(x, TN_ALL, false); }
static tn_tensor *f_max(tn_tensor *x) { return tn_max(x, 1, false).values; }
static tn_tensor *f_cumsum(tn_tensor *x) { return tn_cumsum(x, 1); }
static tn_tensor *f_softmax(tn_tensor *x) { return tn_softmax(x, 1); }
static tn_tensor *f_log_softmax(tn_tensor *x) { return tn_log_softmax(x, -1); }
static tn_tensor *f_layer_norm(tn_tensor *x) { return tn_layer_norm(x, NULL, NULL, 1e-5); }
static tn_tensor *f_dropout(tn_tensor *x) { return tn_dropout(x, 0.3); }
static tn_tensor *(*const ops[])(tn_tensor *) = {f_sum,    f_sum_all, f_sum_ends,    f_mean,       f_prod,   f_var,
                                                 f_std,    f_amax,    f_norm,        f_lse,        f_argmax, f_max,
                                                 f_cumsum, f_softmax, f_log_softmax, f_layer_norm, f_dropout};
enum { OPS = sizeof ops / sizeof *ops };

typedef struct {
    tn_tensor *y, *g;
} outcome;

static outcome run(int op, tn_tensor *x)
{
    tn_seed(5);
    outcome o = {ops[op](x), NULL};
    ck_assert_msg(o.y != NULL, "%s", tn_error_message());
    if (!tn_needs_grad(o.y)) return o;
    tn_tensor *seed = tn_uniform_of(tn_dtype_of(o.y), tn_shape_of(o.y), -1, 1);
    tn_grad_of_run((tn_grad_of_args){.root = o.y, .seed = seed, .count = 1, .wrt = &x, .grad = &o.g});
    ck_assert_msg(o.g != NULL, "%s", tn_error_message());
    return o;
}

/* [3, 2 · 16384 + 19, 2]: rows are longer than a segment along dim 1, and over all dims. In f64, whose sums would
 * reveal another order, and in f32. */
TEST_EACH(same_bits, 2 * OPS)
{
    const int64_t rows = tn_test_slow() ? 16384 + 19 : 2 * 16384 + 19;
    tn_tensor    *x = tn_normal_of(_i % 2 ? TN_F32 : TN_F64, TN_SHAPE(3, rows, 2), 0.1, 1);
    tn_tensor    *turned = tn_permute(tn_clone(tn_permute(x, TN_DIMS(2, 0, 1))), TN_DIMS(1, 2, 0));
    tn_tensor    *wider =
        tn_zeros_of(tn_dtype_of(x), TN_SHAPE(4, 2 * rows, 5)); /* a part of a larger tensor, with steps and an offset */
    tn_tensor *part = tn_slice(tn_slice(tn_narrow(wider, 0, 1, 3), 1, 1, 2 * rows, 2), 2, 1, 5, 2);
    ck_assert(!tn_is_contiguous(turned) && !tn_is_contiguous(part));
    tn_copy_from(part, x);
    const int op = _i / 2;
    tn_requires_grad(x);
    tn_tensor *seen[] = {x, tn_requires_grad(tn_detach(turned)), tn_requires_grad(tn_detach(part))};

    tn_set_threads(1);
    const outcome first = run(op, x);
    for (int layout = 0; layout < 3; layout++)
        for (int threads = 1; threads <= (tn_test_slow() ? 2 : 7); threads += threads < 3 ? 1 : 4) {
            tn_set_threads(threads);
            const outcome o = run(op, seen[layout]);
            ck_assert_msg(bits(o.y, first.y), "op %d: the result, layout %d, %d threads", op, layout, threads);
            ck_assert_msg(!o.g == !first.g && (!o.g || bits(o.g, first.g)),
                          "op %d: the gradient, layout %d, %d threads", op, layout, threads);
        }
    /* a row's bits do not depend on its neighbours */
    if (ops[op] == f_mean || ops[op] == f_lse || ops[op] == f_amax || ops[op] == f_softmax || ops[op] == f_var) {
        tn_tensor *one = tn_narrow(x, 0, 2, 1);
        ck_assert(bits(ops[op](one), tn_narrow(first.y, 0, 2, 1)));
    }
}

/* Sums of columns are added line by line, many side by side: the bits of a column are those of the same numbers in a
 * row, for any number of columns. */
TEST_EACH(columns_are_rows, 3)
{
    static const tn_dtype types[] = {TN_F32, TN_F64, TN_BF16};
    static const int64_t  widths[] = {2, 63, 64, 150};
    const tn_dtype        dt = types[_i];
    const int64_t         rows = 16384 + 77;
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
        const tn_scope s = tn_scope_begin();
        tn_tensor     *wide = tn_normal_of(dt, TN_SHAPE(rows, widths[w] + 3), 0.1, 1);
        tn_tensor     *x = tn_narrow(wide, 1, 2, widths[w]), *y = tn_clone(tn_transpose(x, 0, 1));
        tn_tensor     *sum = tn_sum(y, .dims = TN_DIMS(1)), *mean = tn_mean(y, .dims = TN_DIMS(1));
        for (int threads = 1; threads <= 3; threads += 2) {
            tn_set_threads(threads);
            ck_assert_msg(bits(tn_sum(x, .dims = TN_DIMS(0)), sum), "%s, %lld", tn_dtype_name(dt),
                          (long long)widths[w]);
            ck_assert_msg(bits(tn_mean(x, .dims = TN_DIMS(0)), mean), "%s, %lld", tn_dtype_name(dt),
                          (long long)widths[w]);
        }
        tn_scope_end(s);
    }
}
