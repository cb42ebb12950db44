/* test_more_ops.c — ops of more_ops.h beyond the registry's samples and PyTorch's values: several elements for one
 * place, NaN, all dtypes, empty tensors, sampling, errors, and sizes at which the work is divided among threads. */
#include "autograd/autograd.h"
#include "tests/common/check_main.h"

#include <errno.h>

static tn_tensor *ints(int n, const int64_t *v) { return tn_from_data(TN_I64, TN_SHAPE(n), v); }
static tn_tensor *reals(int n, const double *v) { return tn_from_data(TN_F64, TN_SHAPE(n), v); }
static void       are(const tn_tensor *t, int n, const double *want)
{
    ck_assert_msg(t && tn_numel(t) == n, "%s", tn_error_message());
    for (int i = 0; i < n; i++) {
        const double got = tn_get(t, i);
        ck_assert_msg(got == want[i] || (isnan(got) && isnan(want[i])), "[%d] is %g, not %g", i, got, want[i]);
    }
}

/* ---- several elements for one place ------------------------------------------------------------------------------ */

TEST(the_last_one_stays)
{
    tn_tensor *x = tn_requires_grad(reals(3, (double[]){7, 8, 9}));
    tn_tensor *src = tn_requires_grad(reals(4, (double[]){1, 2, 3, 4}));
    tn_tensor *y = tn_scatter(x, 0, ints(4, (int64_t[]){2, 0, 2, 2}), src);
    are(y, 3, (double[]){2, 8, 4});
    tn_backward(y, .seed = reals(3, (double[]){10, 20, 30}));
    are(tn_grad(x), 3, (double[]){0, 20, 0});
    are(tn_grad(src), 4, (double[]){0, 10, 0, 30});
}

TEST(products_with_zeros)
{
    tn_tensor *x = tn_requires_grad(reals(3, (double[]){2, 0, 0}));
    tn_tensor *src = tn_requires_grad(reals(4, (double[]){3, 5, 0, 4})), *grad;
    tn_tensor *y = tn_scatter_reduce(x, 0, ints(4, (int64_t[]){0, 1, 2, 0}), src, TN_SCATTER_PROD);
    are(y, 3, (double[]){24, 0, 0});
    grad = tn_grad_wrt(tn_sum(y), x, false);
    are(grad, 3, (double[]){12, 5, 0}); /* two factors of the last one are 0 */
    y = tn_scatter_reduce(x, 0, ints(4, (int64_t[]){0, 1, 2, 0}), src, TN_SCATTER_PROD);
    are(tn_grad_wrt(tn_sum(y), src, false), 4, (double[]){8, 0, 0, 6});
    y = tn_scatter_reduce(x, 0, ints(4, (int64_t[]){0, 1, 2, 0}), src, TN_SCATTER_PROD);
    ck_refused(tn_grad_wrt(tn_sum(y), x, true), TN_EUNSUPPORTED,
               "scatter: a product with a factor 0 has no second derivatives here");
}

TEST(equal_extremes_share)
{
    tn_tensor *x = tn_requires_grad(reals(2, (double[]){3, 1}));
    tn_tensor *src = tn_requires_grad(reals(4, (double[]){3, 3, 2, NAN})), *index = ints(4, (int64_t[]){0, 0, 0, 1});
    tn_tensor *y = tn_scatter_reduce(x, 0, index, src, TN_SCATTER_AMAX);
    are(y, 2, (double[]){3, NAN});
    tn_backward(tn_select(y, 0, 0), .seed = tn_scalar(6));
    are(tn_narrow(tn_grad(x), 0, 0, 1), 1, (double[]){2});
    are(tn_narrow(tn_grad(src), 0, 0, 3), 3, (double[]){2, 2, 0});
}

TEST(every_dtype)
{
    static const tn_dtype        all[] = {TN_F32, TN_F64, TN_BF16, TN_I64, TN_I32, TN_U8, TN_BOOL};
    static const tn_scatter_mode how[] = {TN_SCATTER_SET, TN_SCATTER_SUM, TN_SCATTER_PROD, TN_SCATTER_AMIN,
                                          TN_SCATTER_AMAX};
    static const double          want[5][2] = {{3, 5}, {9, 6}, {24, 5}, {2, 1}, {4, 5}};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        for (int h = 0; h < 5; h++) {
            tn_tensor *x = tn_to(reals(2, (double[]){2, 1}), all[k]),
                      *src = tn_to(reals(3, (double[]){4, 5, 3}), all[k]);
            tn_tensor *y = tn_scatter_reduce(x, 0, tn_to(ints(3, (int64_t[]){0, 1, 0}), TN_I32), src, how[h]);
            ck_assert_msg(y && tn_dtype_of(y) == all[k], "%s", tn_error_message());
            for (int i = 0; i < 2; i++) ck_assert_double_eq(tn_get(y, i), all[k] == TN_BOOL ? 1 : want[h][i]);
        }
    const int64_t large = INT64_C(3037000500) * 3;
    tn_tensor    *y = tn_scatter_reduce(ints(1, &large), 0, ints(1, (int64_t[]){0}), ints(1, &large), TN_SCATTER_PROD);
    ck_assert_int_eq(tn_get_i64(y, 0), (int64_t)((uint64_t)large * (uint64_t)large));
}

/* The order of the elements is that of the index, for any number of threads. */
TEST(threads)
{
    static const tn_scatter_mode how[] = {TN_SCATTER_SET, TN_SCATTER_SUM, TN_SCATTER_PROD, TN_SCATTER_AMAX};
    tn_seed(5);
    tn_tensor *x = tn_uniform(TN_SHAPE(40, 300), 0.9, 1.1), *src = tn_uniform(TN_SHAPE(900, 300), 0.9, 1.1);
    tn_tensor *index = tn_randint(TN_SHAPE(900, 300), 0, 40), *p = tn_uniform(TN_SHAPE(50, 1000), 0, 1);
    for (int h = 0; h < 4; h++) {
        tn_set_threads(1);
        tn_tensor *one = tn_scatter_reduce(x, 0, index, src, how[h]);
        for (int n = 2; n <= 7; n += 5) {
            tn_set_threads(n);
            ck_assert(tn_same_bits(one, tn_scatter_reduce(x, 0, index, src, how[h])));
        }
    }
    for (int replacement = 0; replacement < 2; replacement++) {
        tn_set_threads(1), tn_seed(9);
        tn_tensor *one = tn_multinomial(p, 20, replacement);
        tn_set_threads(7), tn_seed(9);
        ck_assert(tn_same_bits(one, tn_multinomial(p, 20, replacement)));
    }
}

TEST(index_put_orders)
{
    tn_tensor *x = tn_zeros(TN_SHAPE(3, 4)), *rows = ints(3, (int64_t[]){1, 1, 2}), *cols = ints(1, (int64_t[]){3});
    tn_tensor *y =
        tn_index_put(x, 2, (tn_tensor *[]){rows, cols}, tn_to(reals(3, (double[]){5, 6, 7}), TN_F32), TN_SCATTER_SET);
    ck_assert_double_eq(tn_get_at(y, TN_SHAPE(1, 3)), 6);
    ck_assert_double_eq(tn_get_at(y, TN_SHAPE(2, 3)), 7);
    y = tn_index_put(x, 1, &rows, tn_scalar_of(TN_F32, 2), TN_SCATTER_SUM);
    for (int i = 0; i < 12; i++) ck_assert_double_eq(tn_get(y, i), i < 4 ? 0 : i < 8 ? 4 : 2);
    ck_refused(tn_index_put(x, 0, &rows, x, TN_SCATTER_SET), TN_EINVAL, "index_put: needs 1 to 8 indices, got 0");
    ck_refused(tn_index_put(x, 1, NULL, x, TN_SCATTER_SET), TN_EINVAL, "index_put: needs 1 to 8 indices, got 0");
    ck_refused(tn_index_put(x, 1, &rows, x, (tn_scatter_mode)9), TN_EINVAL, "index_put: 9 is not a tn_scatter_mode");
    ck_refused(tn_scatter_reduce(x, 0, rows, x, (tn_scatter_mode)-1), TN_EINVAL,
               "scatter_reduce: -1 is not a tn_scatter_mode");
}

/* ---- counting and sampling --------------------------------------------------------------------------------------- */

TEST(unique_values)
{
    tn_uniques u = tn_unique(tn_reshape(reals(6, (double[]){3, NAN, 1, 3, -INFINITY, NAN}), TN_SHAPE(2, 3)));
    are(u.values, 5, (double[]){-INFINITY, 1, 3, NAN, NAN});
    are(u.inverse, 6, (double[]){2, 3, 1, 2, 0, 4});
    are(u.counts, 5, (double[]){1, 1, 2, 1, 1});
    ck_assert(tn_shape_equal(tn_shape_of(u.inverse), TN_SHAPE(2, 3)));
    u = tn_unique(tn_zeros(TN_SHAPE(0, 3)));
    ck_assert(tn_numel(u.values) == 0 && tn_numel(u.counts) == 0 &&
              tn_shape_equal(tn_shape_of(u.inverse), TN_SHAPE(0, 3)));
    u = tn_unique(tn_requires_grad(tn_ones(TN_SHAPE(4)))); /* without gradient */
    ck_assert(!tn_needs_grad(u.values) && tn_numel(u.values) == 1 && tn_get(u.counts, 0) == 4);
    u = tn_unique(NULL);
    ck_refused(u.values, TN_EINVAL, "unique: x is NULL");
}

TEST(sampling)
{
    enum { N = 20000 };
    const double p[] = {0, 1, 0, 5, 2, 0};
    tn_seed(3);
    tn_tensor *y = tn_multinomial(reals(6, p), N, true), *count = tn_bincount(y, NULL, 6);
    for (int i = 0; i < 6; i++) { /* five standard deviations */
        const double share = p[i] / 8, sd = sqrt(share * (1 - share) / N);
        ck_assert_msg(fabs(tn_get(count, i) / N - share) <= 5 * sd, "%d: %g", i, tn_get(count, i) / N);
    }
    /* Without replacement: none twice, none of weight 0; the first is distributed as with replacement. */
    tn_tensor *rows = tn_expand(reals(6, p), TN_SHAPE(N, 6));
    y = tn_multinomial(rows, 3, false);
    ck_assert(tn_shape_equal(tn_shape_of(y), TN_SHAPE(N, 3)));
    count = tn_bincount(tn_reshape(y, TN_SHAPE(3 * N)), NULL, 6);
    are(count, 6, (double[]){0, N, 0, N, N, 0});
    count = tn_bincount(tn_select(y, 1, 0), NULL, 6);
    for (int i = 0; i < 6; i++) {
        const double share = p[i] / 8, sd = sqrt(share * (1 - share) / N);
        ck_assert_msg(fabs(tn_get(count, i) / N - share) <= 5 * sd, "%d: %g", i, tn_get(count, i) / N);
    }
    ck_assert_int_eq(tn_numel(tn_multinomial(tn_zeros(TN_SHAPE(0, 4)), 2, true)), 0);
    ck_assert_int_eq(tn_numel(tn_multinomial(tn_zeros(TN_SHAPE(3)), 0, true)), 0);
}

TEST(sampling_fails)
{
    const tn_generator before = *tn_current_generator();
    tn_tensor         *p = tn_ones(TN_SHAPE(2, 3));
    ck_refused(tn_multinomial(NULL, 1, true), TN_EINVAL, "multinomial: p is NULL");
    ck_refused(tn_multinomial(tn_scalar(1), 1, true), TN_ESHAPE,
               "multinomial: p must be floating, [C] or [N, C] with C at least 1, got f64 []");
    ck_refused(tn_multinomial(tn_arange(3), 1, true), TN_ESHAPE,
               "multinomial: p must be floating, [C] or [N, C] with C at least 1, got i64 [3]");
    ck_refused(tn_multinomial(p, -1, true), TN_EINVAL, "multinomial: n is -1, but must not be negative");
    ck_refused(tn_multinomial(p, 4, false), TN_EINVAL,
               "multinomial: row 0 has 3 weights above 0, too few for 4 samples without replacement");
    ck_refused(tn_multinomial(tn_zeros(TN_SHAPE(2)), 1, true), TN_EINVAL,
               "multinomial: row 0 has 0 weights above 0, too few for 1 samples");
    tn_set_at(p, TN_SHAPE(1, 2), -1);
    ck_refused(tn_multinomial(p, 1, true), TN_EINVAL,
               "multinomial: -1 at [1, 2]; a weight must be finite and not negative");
    ck_assert(!memcmp(&before, tn_current_generator(), sizeof before));
}

/* ---- functions of one and two elements --------------------------------------------------------------------------- */

TEST(values_at_the_ends)
{
    are(tn_isinf(reals(4, (double[]){INFINITY, -INFINITY, NAN, 1e308})), 4, (double[]){1, 1, 0, 0});
    are(tn_logaddexp(reals(5, (double[]){INFINITY, -INFINITY, INFINITY, NAN, 1e4}),
                     reals(5, (double[]){INFINITY, -INFINITY, -INFINITY, 0, -1e4})),
        5, (double[]){INFINITY, -INFINITY, INFINITY, NAN, 1e4});
    are(tn_floor_divide(ints(4, (int64_t[]){INT64_MIN, -7, 7, -8}), ints(4, (int64_t[]){-1, 2, -2, -3})), 4,
        (double[]){(double)INT64_MIN, -4, -4, 2});
    are(tn_floor_divide(reals(5, (double[]){-7, 1, -1, 0, 3}), reals(5, (double[]){2, 0, 0, 0, INFINITY})), 5,
        (double[]){-4, INFINITY, -INFINITY, NAN, 0});
    ck_assert_int_eq(tn_dtype_of(tn_floor_divide(tn_arange(3), tn_scalar_of(TN_I32, 2))), TN_I64);
    are(tn_cumprod(ints(4, (int64_t[]){2, -3, 0, 5}), 0), 4, (double[]){2, -6, 0, 0});
    errno = 7;
    tn_asin(reals(1, (double[]){2})), tn_log2(reals(1, (double[]){0})), tn_cosh(reals(1, (double[]){1e4}));
    tn_atan2(reals(1, (double[]){1e-300}), reals(1, (double[]){1e300}));
    ck_assert_int_eq(errno, 7);
}

TEST(losses_that_fail)
{
    tn_tensor *x = tn_ones(TN_SHAPE(2, 3));
    ck_refused(tn_smooth_l1_loss(x, x, -1, TN_MEAN), TN_EINVAL,
               "smooth_l1_loss: beta is -1, but must be finite and not negative");
    ck_refused(tn_bce_loss(x, x, tn_ones(TN_SHAPE(2)), TN_MEAN), TN_ESHAPE,
               "bce_loss: weight [2] does not broadcast to the input's [2, 3]");
    ck_refused(tn_info_nce_loss(x, x, 1, (tn_reduction)7), TN_EINVAL,
               "info_nce_loss: reduction 7 is not TN_MEAN, TN_SUM or TN_NONE");
    ck_refused(tn_triplet_margin_loss(x, x, NULL, 1, TN_MEAN), TN_EINVAL, "triplet_margin_loss: input 2 is NULL");
}
