/* test_grad_rows.c — the gradient of a table, stored as the rows that were used: it equals the dense one, bit for bit,
 * when that is requested; its cost is that of its rows; and optimizers step these rows. */
#include "optim/optim.h"
#include "tests/common/check_main.h"
#include "tests/common/faults.h"

enum { ROWS = 40, WIDTH = 70 };

static tn_tensor *table(tn_dtype dt)
{
    const tn_scope s = tn_no_grad_begin();
    tn_seed(5);
    return tn_requires_grad(tn_scope_return(s, tn_normal_of(dt, TN_SHAPE(ROWS, WIDTH), 0, 1)));
}

static tn_tensor *ints(int n, const int64_t *v) { return tn_from_data(TN_I64, TN_SHAPE(n), v); }

/* Three lookups in two backwards: many rows twice, a transposed i32 index, and padding; with `whole` also a product. */
static void use(tn_tensor *w, bool sparse, bool whole)
{
    const tn_dtype dt = tn_dtype_of(w);
    tn_seed(9);
    tn_tensor *a = tn_randint(TN_SHAPE(3, 17), 0, ROWS / 2), *b = tn_randint(TN_SHAPE(4, 5), 10, ROWS);
    tn_tensor *turned = tn_transpose(tn_to(b, TN_I32), 0, 1);
    tn_tensor *ga = tn_normal_of(dt, TN_SHAPE(3, 17, WIDTH), 0, 1), *gb = tn_normal_of(dt, TN_SHAPE(5, 4, WIDTH), 0, 1);
    tn_tensor *loss = tn_add(tn_sum(tn_mul(tn_embedding(w, a, -1, sparse), ga)),
                             tn_sum(tn_mul(tn_embedding(w, turned, 12, sparse), gb)));
    if (whole) loss = tn_add(loss, tn_sum(tn_mul(w, tn_normal_of(dt, TN_SHAPE(ROWS, WIDTH), 0, 1))));
    tn_backward(loss);
    tn_backward(tn_sum(tn_mul(tn_embedding(w, turned, -1, sparse), gb)));
}

static const tn_dtype floats[] = {TN_F32, TN_F64, TN_BF16};

TEST_EACH(bits_of_the_dense_gradient, 3)
{
    for (int threads = 1; threads <= 3; threads += 2)
        for (int whole = 0; whole < 2; whole++) {
            tn_set_threads(threads);
            tn_tensor *dense = table(floats[_i]), *some = table(floats[_i]), *rows;
            use(dense, false, whole), use(some, true, whole);
            ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
            tn_tensor *g = tn_grad_rows(some, &rows);
            ck_assert_ptr_null(tn_grad_rows(dense, NULL));
            ck_assert_int_eq(!g, whole);
            for (int64_t i = 0; g && i < tn_numel(rows); i++) {
                const int64_t row = tn_get_i64(rows, i);
                ck_assert(i == 0 || tn_get_i64(rows, i - 1) < row);
                ck_assert(tn_same_bits(tn_select(g, 0, i), tn_select(tn_grad(dense), 0, row)));
            }
            ck_assert(!g || tn_numel(rows) < ROWS);
            ck_assert(tn_same_bits(tn_grad(some), tn_grad(dense)));
            ck_assert_ptr_null(tn_grad_rows(some, &rows));
            ck_assert_ptr_null(rows);
        }
}

TEST(few_rows_of_both_kinds_meet)
{
    tn_tensor *dense = table(TN_F32), *some = table(TN_F32), *list = ints(3, (int64_t[]){7, 2, 7});
    for (int order = 0; order < 2; order++) { /* rows added to a dense gradient, and the reverse */
        tn_zero_grad(dense), tn_zero_grad(some);
        for (int k = 0; k < 2; k++) {
            tn_backward(tn_sum(tn_embedding(dense, list, -1, false)));
            tn_backward(tn_sum(tn_embedding(some, list, -1, k == order)));
        }
        ck_assert_ptr_null(tn_grad_rows(some, NULL));
        ck_assert(tn_same_bits(tn_grad(some), tn_grad(dense)));
    }
}

TEST(no_rows)
{
    tn_tensor *w = table(TN_F32), *rows;
    tn_backward(tn_sum(tn_embedding(w, tn_zeros_of(TN_I64, TN_SHAPE(0, 3)), -1, true)));
    tn_backward(tn_sum(tn_embedding(w, ints(2, (int64_t[]){4, 4}), 4, true)));
    ck_assert(tn_grad_rows(w, &rows) && tn_numel(rows) == 0);
    ck_assert_double_eq(tn_item(tn_sum(tn_abs(tn_grad(w)))), 0);
    tn_zero_grad(w);
    ck_assert(!tn_grad(w) && !tn_grad_rows(w, &rows) && !rows);
    ck_assert(!tn_grad_rows(NULL, &rows) && !rows);
}

static tn_tensor *twice(tn_tensor *g, void *user)
{
    ck_assert_int_eq(tn_size(g, 0), ROWS);
    ++*(int *)user;
    return tn_mul_scalar(g, 2);
}

/* Hooks, targets and anomaly mode receive the dense gradient. */
TEST(hooks_targets_and_anomalies)
{
    tn_tensor *w = table(TN_F64), *list = ints(3, (int64_t[]){7, 2, 7});
    int        calls = 0;
    tn_tensor *g = tn_grad_wrt(tn_sum(tn_embedding(w, list, -1, true)), w, false);
    ck_assert(tn_size(g, 0) == ROWS && !tn_grad(w));
    ck_assert_double_eq(tn_get_at(g, TN_SHAPE(7, 3)), 2);
    tn_on_grad(w, twice, &calls);
    tn_backward(tn_sum(tn_embedding(w, list, -1, true)));
    ck_assert_int_eq(calls, 1);
    ck_assert_double_eq(tn_get_at(tn_grad(w), TN_SHAPE(7, 3)), 4);
    tn_tensor *v = table(TN_F64);
    tn_detect_anomaly(true);
    tn_backward(tn_sum(tn_log(tn_mul_scalar(tn_embedding(v, list, -1, true), 0))));
    tn_detect_anomaly(false);
    ck_error_code(TN_ENUMERIC);
    /* not a leaf: the gradient of its input is dense */
    tn_backward(tn_sum(tn_embedding(tn_mul_scalar(v, 3), list, -1, true)));
    ck_assert(!tn_grad_rows(v, NULL));
    ck_assert_double_eq(tn_get_at(tn_grad(v), TN_SHAPE(7, 3)), 6);
}

/* tn_adopt gives a leaf another tensor: the collected gradient stays that of the old one, as with a dense gradient. */
TEST_EACH(another_shape_is_adopted, 2)
{
    tn_tensor *w = table(TN_F32), *list = ints(2, (int64_t[]){39, 2});
    tn_backward(tn_sum(tn_embedding(w, list, -1, true)));
    tn_adopt(w, tn_ones_of(_i ? TN_F64 : TN_F32, _i ? TN_SHAPE(ROWS, WIDTH) : TN_SHAPE(3, 2)));
    ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
    ck_assert_ptr_null(tn_grad_rows(w, NULL));
    ck_assert(tn_shape_equal(tn_shape_of(tn_grad(w)), TN_SHAPE(ROWS, WIDTH)) && tn_dtype_of(tn_grad(w)) == TN_F32);
    ck_assert_double_eq(tn_get_at(tn_grad(w), TN_SHAPE(39, WIDTH - 1)), 1);
    tn_zero_grad(w);
    tn_backward(tn_sum(tn_embedding(w, ints(1, (int64_t[]){1}), -1, true)));
    ck_assert_double_eq(tn_item(tn_sum(tn_grad(w))), (double)tn_size(w, 1));
}

static tn_tensor *becomes_small(tn_tensor *g, void *w)
{
    const tn_scope s = tn_no_grad_begin();
    tn_adopt(w, tn_ones(TN_SHAPE(3, 2)));
    tn_scope_end(s);
    return (void)g, NULL;
}

/* tn_adopt in the middle of a backward pass: the rows of the gradient would be outside the new tensor. */
TEST(another_shape_in_a_hook)
{
    tn_tensor *w = table(TN_F32), *x = tn_requires_grad(tn_ones(TN_SHAPE(1))), *z = tn_mul_scalar(x, 2);
    tn_on_grad(z, becomes_small, w);
    tn_tensor *y = tn_sum(tn_embedding(w, ints(2, (int64_t[]){39, 2}), -1, true));
    tn_backward(tn_add(tn_sum(z), y)); /* z is older: its turn comes when the rows of w are stored */
    ck_assert_int_eq(tn_error(), TN_ESTATE);
    ck_assert_str_eq(tn_error_message(), "backward: tn_adopt replaced a table while its gradient was "
                                         "collected; call it before the forward pass or after the backward");
    tn_clear_error();
    ck_assert(!tn_grad(w) && !tn_grad(x));
}

static double all_of_it(int sparse_twice)
{
    const tn_scope s = tn_scope_begin();
    tn_embedding  *e = tn_embedding_new(.count = 50, .dim = 3, .sparse = true);
    tn_optimizer  *o = e ? tn_sgd_new(e, .lr = 0.1) : NULL;
    tn_tensor     *list = ints(4, (int64_t[]){4, 9, 4, 30});
    for (int k = 0; o && k <= sparse_twice; k++) tn_backward(tn_sum(tn_square(tn_call(e, list))));
    if (o) tn_step(o);
    const double sum = e ? tn_item(tn_sum(tn_square(e->weight))) : 0;
    tn_optimizer_free(o), tn_module_free(e);
    tn_scope_end(s);
    return sum;
}
static double seeded(int i)
{
    tn_seed(3);
    return all_of_it(i);
}

BARE_TEST_EACH(each_allocation_fails, 2) { tn_each_allocation_fails(seeded, _i, 1, 5, 20); }

/* Nothing of the table's size is allocated, filled or added. */
TEST(costs_what_the_rows_cost)
{
    tn_embedding *e = tn_embedding_new(.count = 200000, .dim = 16, .sparse = true);
    tn_optimizer *o = tn_sgd_new(e, .lr = 0.1, .clip.norm = 1);
    for (int k = 0; k < 3; k++) {
        const tn_scope s = tn_scope_begin();
        tn_tensor     *list = tn_randint(TN_SHAPE(8, 8), 0, 200000);
        const size_t   before = tn_memory_now().live;
        tn_reset_peak();
        tn_backward(tn_sum(tn_square(tn_call(e, list))));
        tn_clip_grads(e, .clip.value = 0.5);
        tn_step(o);
        ck_assert_int_eq(tn_error(), TN_OK);
        ck_assert_uint_lt(tn_memory_now().peak - before, 256 * 1024); /* the table: 12.8 MB */
        tn_scope_end(s);
    }
    tn_optimizer_free(o), tn_module_free(e);
}

/* ---- optimizers -------------------------------------------------------------------------------------------------- */

enum { SGD, ADAGRAD, MOMENTUM, ADAMW, DECAY, KINDS };
static tn_optimizer *make(int kind, tn_embedding *e, bool lazy)
{
    switch (kind) {
    case SGD: return tn_sgd_new(e, .lr = 0.1, .clip.value = 0.7);
    case ADAGRAD: return tn_adagrad_new(e, .lr = 0.1, .lr_decay = 0.1);
    case MOMENTUM: return tn_sgd_new(e, .lr = 0.1, .momentum = 0.9);
    case ADAMW: return tn_adamw_new(e, .lr = 0.1, .lazy = lazy);
    default: return tn_adagrad_new(e, .lr = 0.1, .weight_decay = 0.1);
    }
}

static tn_embedding *trained(int kind, tn_dtype dt, bool sparse, bool lazy, bool every_row)
{
    tn_seed(11);
    tn_embedding *e = tn_embedding_new(.count = 30, .dim = 5, .sparse = sparse, .padding = 3, .dtype = dt);
    tn_optimizer *o = make(kind, e, lazy);
    tn_accumulate(o, 2);
    for (int k = 0; k < 12; k++) {
        tn_tensor *list = every_row ? tn_remainder(tn_add(tn_arange_of(TN_I64, 0, 60, 1), tn_scalar_of(TN_I64, k)),
                                                   tn_scalar_of(TN_I64, 30))
                                    : tn_randint(TN_SHAPE(2, 6), 0, 20);
        tn_backward(tn_sum(tn_square(tn_call(e, list))));
        tn_step(o);
    }
    ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
    tn_optimizer_free(o);
    return e;
}

TEST_EACH(steps_have_the_bits_of_dense_ones, KINDS)
{
    for (size_t k = 0; k < 3; k++) {
        tn_embedding *dense = trained(_i, floats[k], false, false, false),
                     *some = trained(_i, floats[k], true, false, false);
        ck_assert(tn_same_bits(dense->weight, some->weight));
        tn_module_free(dense), tn_module_free(some);
        dense = trained(_i, floats[k], false, false, true), some = trained(_i, floats[k], true, true, true);
        if (_i != ADAMW) ck_assert(tn_same_bits(dense->weight, some->weight));
        for (int64_t r = 0; r < 30; r++) /* lazy: each row had a gradient each time, except the padding row */
            ck_assert(r == 3 || tn_same_bits(tn_select(dense->weight, 0, r), tn_select(some->weight, 0, r)));
        tn_module_free(dense), tn_module_free(some);
    }
}

TEST(lazy_leaves_the_other_rows)
{
    tn_embedding *e = tn_embedding_new(.count = 30, .dim = 5, .sparse = true);
    tn_tensor    *before = tn_clone(tn_detach(e->weight));
    tn_optimizer *o = tn_adamw_new(e, .lr = 0.1, .lazy = true, .weight_decay = 0.1);
    const int64_t used[2][3] = {{4, 5, 29}, {0, 5, 5}};
    for (int k = 0; k < 2; k++) {
        tn_backward(tn_sum(tn_square(tn_call(e, ints(3, used[k])))));
        tn_step(o);
    }
    for (int64_t r = 0; r < 30; r++)
        ck_assert_int_eq(tn_same_bits(tn_select(before, 0, r), tn_select(e->weight, 0, r)),
                         r != 0 && r != 4 && r != 5 && r != 29);
    tn_tensor *m = tn_optimizer_state(o, e->weight, "exp_avg");
    ck_assert_double_eq(tn_item(tn_sum(tn_abs(tn_select(m, 0, 6)))), 0);
    /* and row 4 is unchanged since its own step, with moments for one step */
    ck_assert_double_ne(tn_get_at(m, TN_SHAPE(4, 0)), 0);
    tn_optimizer_free(o), tn_module_free(e);
}

/* The norm is that of the dense gradient, except for the order of its sum; a NaN is found and named. */
TEST(clipping_by_norm)
{
    double norm[2];
    for (int sparse = 0; sparse < 2; sparse++) {
        tn_seed(2);
        tn_embedding *e = tn_embedding_new(.count = 1000, .dim = 20, .sparse = sparse);
        tn_optimizer *o = tn_sgd_new(e, .lr = 0.1, .clip = {.norm = 0.5, .error_if_nonfinite = true});
        tn_tensor    *list = tn_randint(TN_SHAPE(300), 0, 1000);
        tn_backward(tn_sum(tn_square(tn_call(e, list))));
        const double n = tn_clip_grads(e, .clip.norm = INFINITY);
        tn_step(o);
        norm[sparse] = tn_grad_norm(o);
        ck_assert_double_eq_tol(n, norm[sparse], 1e-12 * n);
        tn_backward(tn_sum(tn_mul_scalar(tn_call(e, list), NAN)));
        tn_step(o);
        ck_assert_int_eq(tn_error(), TN_ENUMERIC);
        ck_assert_str_eq(tn_error_message(), "tn_step: the gradient of 'weight' has a NaN or Inf; nothing was "
                                             "changed; to continue, call tn_clear_error and tn_zero_grads");
        tn_clear_error();
        tn_optimizer_free(o), tn_module_free(e);
    }
    ck_assert_double_eq_tol(norm[0], norm[1], 1e-12 * norm[0]);
}
