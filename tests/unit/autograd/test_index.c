/* test_index.c — ops by index, beyond the registry's samples: all dtypes, equal elements, NaN, padding, and sizes at
 * which the work is divided among threads. */
#include "autograd/autograd.h"
#include "tests/common/check_main.h"

static tn_tensor     *ints(int n, const int64_t *v) { return tn_from_data(TN_I64, TN_SHAPE(n), v); }
static const tn_dtype all_types[] = {TN_F32, TN_F64, TN_BF16, TN_I64, TN_I32, TN_U8, TN_BOOL};

TEST(every_number_type)
{
    const int picked[4] = {2, 0, 0, 1};
    for (size_t k = 0; k < sizeof all_types / sizeof *all_types; k++) {
        tn_tensor *x = tn_to(tn_reshape(tn_arange(12), TN_SHAPE(3, 4)), all_types[k]);
        tn_tensor *rows = tn_index_select(x, 0, ints(4, (int64_t[]){2, 0, 0, 1})),
                  *cols = tn_index_select(x, 1, ints(2, (int64_t[]){3, 1}));
        tn_tensor *i = tn_transpose(tn_reshape(ints(4, (int64_t[]){0, 2, 1, 0}), TN_SHAPE(2, 2)), 0, 1),
                  *g = tn_gather(x, 0, i);
        ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
        for (int r = 0; r < 4; r++)
            for (int c = 0; c < 4; c++)
                ck_assert_double_eq(tn_get_at(rows, TN_SHAPE(r, c)), tn_get_at(x, TN_SHAPE(picked[r], c)));
        for (int r = 0; r < 3; r++) ck_assert_double_eq(tn_get_at(cols, TN_SHAPE(r, 0)), tn_get_at(x, TN_SHAPE(r, 3)));
        for (int r = 0; r < 2; r++)
            for (int c = 0; c < 2; c++)
                ck_assert_double_eq(tn_get_at(g, TN_SHAPE(r, c)),
                                    tn_get_at(x, TN_SHAPE((int64_t)tn_get_at(i, TN_SHAPE(r, c)), c)));
        tn_tensor *one = tn_ones_of(all_types[k], TN_SHAPE(3, 4)), *zero = tn_zeros_of(all_types[k], TN_SHAPE(2, 4));
        tn_tensor *sum = tn_index_add(zero, 0, ints(3, (int64_t[]){1, 1, 0}), one);
        ck_assert_double_eq(tn_get_at(sum, TN_SHAPE(1, 3)), all_types[k] == TN_BOOL ? 1 : 2);
        ck_assert_double_eq(tn_get_at(sum, TN_SHAPE(0, 0)), 1);
    }
}

TEST(padding_gets_no_gradient)
{
    tn_tensor *w = tn_requires_grad(tn_ones(TN_SHAPE(4, 2))),
              *i = tn_reshape(ints(6, (int64_t[]){0, 1, 3, 0, 1, 1}), TN_SHAPE(2, 3));
    for (int graph = 0; graph < 2; graph++) {
        tn_tensor *y = tn_embedding(w, i, 0, false), *g = tn_grad_wrt(tn_sum(y), w, graph);
        ck_assert(tn_shape_equal(tn_shape_of(y), TN_SHAPE(2, 3, 2)));
        for (int r = 0; r < 4; r++) ck_assert_double_eq(tn_get_at(g, TN_SHAPE(r, 1)), r == 1 ? 3 : r == 3);
    }
}

/* A table that is also a matrix: both uses are added in one gradient, in any order. */
TEST(tied_table)
{
    tn_tensor *w = tn_requires_grad(tn_ones(TN_SHAPE(3, 2))), *i = ints(2, (int64_t[]){2, 2});
    tn_tensor *h = tn_embedding(w, i, -1, false);             /* [2, 2] */
    tn_backward(tn_sum(tn_matmul(h, tn_transpose(w, 0, 1)))); /* every row of w gets Σh, row 2 also 2·Σw */
    ck_assert_int_eq(tn_error(), TN_OK);
    for (int r = 0; r < 3; r++) ck_assert_double_eq(tn_get_at(tn_grad(w), TN_SHAPE(r, 0)), r == 2 ? 2 + 6 : 2);
}

TEST(sort_is_stable_and_nan_is_largest)
{
    const int   upward[7] = {4, 2, 6, 0, 3, 5, 1}, downward[7] = {1, 5, 0, 3, 2, 6, 4};
    const float v[7] = {2, NAN, 1, 2, -INFINITY, INFINITY, 1};
    tn_tensor  *x = tn_from_data(TN_F32, TN_SHAPE(7), v);
    tn_pair     up = tn_sort(x, 0), down = tn_sort(x, 0, .descending = true);
    for (int i = 0; i < 7; i++) {
        ck_assert_int_eq(tn_get_i64(up.indices, i), upward[i]);
        ck_assert_int_eq(tn_get_i64(down.indices, i), downward[i]);
        double got = tn_get(up.values, i), want = v[tn_get_i64(up.indices, i)];
        ck_assert(got == want || (isnan(got) && isnan(want)));
    }
    for (int k = 0; k <= 7; k++) {
        tn_pair most = tn_topk(x, k, 0), least = tn_topk(x, k, 0, .smallest = true);
        for (int i = 0; i < k; i++) {
            ck_assert_int_eq(tn_get_i64(most.indices, i), tn_get_i64(down.indices, i));
            ck_assert_int_eq(tn_get_i64(least.indices, i), tn_get_i64(up.indices, i));
        }
    }
    tn_topk(x, -1, 0);
    ck_assert_str_eq(tn_error_message(), "topk: k is -1, but must be at least 0");
    tn_clear_error();
}

TEST(sort_of_many)
{
    const int  n = 20000;
    tn_tensor *x = tn_randint(TN_SHAPE(2, n), 0, 500);
    tn_pair    p = tn_sort(x, 1);
    for (int r = 0; r < 2; r++)
        for (int i = 1; i < n; i++) {
            int64_t a = tn_get_i64(p.values, (int64_t)r * n + i - 1), b = tn_get_i64(p.values, (int64_t)r * n + i);
            ck_assert(a < b || (a == b && tn_get_i64(p.indices, (int64_t)r * n + i - 1) <
                                              tn_get_i64(p.indices, (int64_t)r * n + i)));
        }
}

TEST(nonzero_in_order)
{
    const float v[6] = {0, 3, -0.0f, NAN, 0, -1};
    tn_tensor  *at = tn_nonzero(tn_from_data(TN_F32, TN_SHAPE(2, 3), v));
    ck_assert(tn_shape_equal(tn_shape_of(at), TN_SHAPE(3, 2)));
    const int want[6] = {0, 1, 1, 0, 1, 2};
    for (int i = 0; i < 6; i++) ck_assert_int_eq(tn_get_i64(at, i), want[i]);
    ck_assert(tn_shape_equal(tn_shape_of(tn_nonzero(tn_scalar(5))), TN_SHAPE(1, 0)));
    ck_assert(tn_shape_equal(tn_shape_of(tn_nonzero(tn_scalar(0))), TN_SHAPE(0, 0)));
}

/* Many rows at one index: they are added in the order of the index, for any number of threads. */
TEST(the_same_bits)
{
    tn_tensor *index = tn_randint(TN_SHAPE(900), 0, 7), *src = tn_uniform(TN_SHAPE(900, 300), -1, 1),
              *zero = tn_zeros(TN_SHAPE(7, 300));
    tn_tensor *wide = tn_expand(tn_reshape(index, TN_SHAPE(900, 1)), TN_SHAPE(900, 300)), *first[3] = {NULL};
    for (int threads = 1; threads <= 7; threads += threads < 3 ? 1 : 4) {
        tn_set_threads(threads);
        tn_tensor *y[3] = {tn_index_add(zero, 0, index, src), tn_scatter_add(zero, 0, wide, src),
                           tn_index_select(src, 0, index)};
        for (int k = 0; k < 3; k++) {
            if (!first[k]) first[k] = y[k];
            ck_assert(!memcmp(tn_data(first[k]), tn_data(y[k]), (size_t)tn_numel(y[k]) * sizeof(float)));
        }
    }
    tn_set_threads(0);
    ck_assert(!memcmp(tn_data(first[0]), tn_data(first[1]), 7 * 300 * sizeof(float)));
    double sum = 0, want = 0;
    for (int64_t i = 0; i < 7 * 300; i++) sum += tn_get(first[0], i);
    for (int64_t i = 0; i < 900 * 300; i++) want += tn_get(src, i);
    ck_assert_double_eq_tol(sum, want, 0.05);
}

TEST(i32_indices)
{
    const int32_t v[2] = {2, 0};
    tn_tensor    *i = tn_from_data(TN_I32, TN_SHAPE(2), v), *x = tn_requires_grad(tn_ones(TN_SHAPE(3)));
    tn_backward(tn_sum(tn_index_select(x, 0, i)));
    for (int k = 0; k < 3; k++) ck_assert_double_eq(tn_get(tn_grad(x), k), k != 1);
}

/* Several slices in any order, along both dims, in all dtypes, also in place and converted. */
TEST_EACH(slices_are_replaced, 14)
{
    const tn_dtype dt = all_types[_i % 7];
    const int      dim = _i / 7;
    tn_tensor     *x = tn_to(tn_reshape(tn_arange_of(TN_I64, 0, 12, 1), TN_SHAPE(3, 4)), dt);
    tn_tensor     *index = ints(2, (const int64_t[]){2, 0});
    tn_tensor     *src = tn_to(tn_full_of(TN_I64, dim ? TN_SHAPE(3, 2) : TN_SHAPE(2, 4), 1), dt);
    for (int64_t i = 0; i < tn_numel(src); i++) tn_set(src, i, dt == TN_BOOL ? (double)(i % 2) : 20 + (double)i);
    tn_tensor *y = tn_index_copy(x, dim, index, src), *z = tn_clone(x);
    ck_assert_ptr_eq(tn_index_copy_(z, dim, index, tn_to(src, TN_F64)), z);
    for (int64_t i = 0; i < 12; i++) {
        const int64_t row = i / 4, col = i % 4, at = dim ? col : row;
        const int64_t from = dim ? row * 2 + (at == 0) : (at == 0) * 4 + col;
        const double  want = at == 0 || at == 2 ? tn_get(src, from) : tn_get(x, i);
        ck_assert(tn_get(y, i) == want && tn_get(z, i) == want);
    }
    if (dt != TN_F32 && dt != TN_F64) return;
    tn_tensor *a = tn_requires_grad(tn_clone(x)), *b = tn_requires_grad(tn_clone(src));
    tn_backward(tn_sum(tn_mul(tn_index_copy(a, dim, index, b), x)));
    for (int64_t i = 0; i < 12; i++) {
        const int64_t at = dim ? i % 4 : i / 4;
        ck_assert(tn_get(tn_grad(a), i) == (at == 0 || at == 2 ? 0 : (double)i));
    }
    for (int64_t i = 0; i < tn_numel(b); i++)
        ck_assert(tn_get(tn_grad(b), i) == (double)(dim ? i / 2 * 4 + (i % 2 ? 0 : 2) : (i / 4 ? 0 : 8) + i % 4));
}

/* bf16 sums are rounded once: one of 1000 ones would end at 256 if each sum were rounded. */
TEST(many_bf16_summands)
{
    tn_tensor *at = tn_zeros_of(TN_I64, TN_SHAPE(1000)), *zero = tn_zeros_of(TN_BF16, TN_SHAPE(2, 3));
    tn_tensor *one = tn_ones_of(TN_BF16, TN_SHAPE(1000, 3)), *x = tn_requires_grad(tn_ones_of(TN_BF16, TN_SHAPE(2, 3)));
    ck_assert_double_eq(tn_get(tn_index_add(zero, 0, at, one), 1), 1000);
    ck_assert_double_eq(tn_get(tn_scatter_add(zero, 0, tn_expand(tn_unsqueeze(at, -1), TN_SHAPE(1000, 3)), one), 1),
                        1000);
    ck_assert_int_eq(tn_backward(tn_sum(tn_index_select(x, 0, at))), TN_OK);
    for (int i = 0; i < 6; i++) ck_assert_double_eq(tn_get(tn_grad(x), i), i < 3 ? 1000 : 0);
}
