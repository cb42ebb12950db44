/* test_choice.c — comparisons, logic and masks: NaN and infinities, promotion of dtypes, masks that broadcast,
 * selection by a mask from any layout, and tn_allclose. */
#include "autograd/autograd.h"
#include "autograd/rooms/registry.h"
#include "tests/common/check_main.h"

static tn_tensor *reals(tn_dtype dt, int n, const double *v)
{
    tn_tensor *t = tn_empty_of(dt, TN_SHAPE(n));
    for (int i = 0; i < n; i++) tn_set(t, i, v[i]);
    return t;
}
#define OF(dt, ...) reals(dt, (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), (double[]){__VA_ARGS__})
#define F64(...) OF(TN_F64, __VA_ARGS__)
#define BITS(...) OF(TN_BOOL, __VA_ARGS__)

/* bits: '1' for true */
static void reads(const tn_tensor *t, const char *bits)
{
    ck_assert_msg(t != NULL, "%s", tn_error_message());
    ck_assert_int_eq(tn_dtype_of(t), TN_BOOL);
    ck_assert_int_eq(tn_numel(t), (int64_t)strlen(bits));
    for (int i = 0; bits[i]; i++)
        ck_assert_msg(tn_get(t, i) == bits[i] - '0', "[%d] is %g, should be %c", i, tn_get(t, i), bits[i]);
}

/* ---- comparisons and logic --------------------------------------------------------------------------------------- */

TEST(comparisons)
{
    const tn_dtype types[] = {TN_F64, TN_F32, TN_BF16};
    for (int k = 0; k < 3; k++) {
        tn_tensor *a = OF(types[k], 1, 2, 3, 0, INFINITY, -INFINITY, NAN, NAN, 1);
        tn_tensor *b = OF(types[k], 2, 2, 2, -0.0, INFINITY, INFINITY, NAN, 1, NAN);
        reads(tn_eq(a, b), "010110000");
        reads(tn_ne(a, b), "101001111");
        reads(tn_lt(a, b), "100001000");
        reads(tn_le(a, b), "110111000");
        reads(tn_gt(a, b), "001000000");
        reads(tn_ge(a, b), "011110000");
        reads(tn_isnan(a), "000000110");
        reads(tn_isfinite(a), "111100001");
    }
}

TEST(comparisons_between_types)
{
    const int64_t big = (int64_t)1 << 53; /* f64 has no odd numbers above it */
    tn_tensor    *a = tn_full_of(TN_I64, TN_SHAPE(1), 0), *b = tn_full_of(TN_I64, TN_SHAPE(1), 0);
    tn_set_i64(a, 0, big), tn_set_i64(b, 0, big + 1);
    reads(tn_eq(a, b), "0");
    reads(tn_lt(a, b), "1");
    reads(tn_gt(OF(TN_I32, 1, 2, 3), OF(TN_F32, 1.5, 1.5, 3.5)), "010");
    reads(tn_ge(OF(TN_U8, 0, 200), tn_scalar(0.5)), "01");
    reads(tn_eq(BITS(0, 1), OF(TN_I64, 0, 1)), "11");
    reads(tn_lt(OF(TN_I64, 1, 2), tn_scalar_of(TN_I64, 2)), "10");
    reads(tn_isnan(OF(TN_I32, 1, 2)), "00");
    reads(tn_isfinite(OF(TN_I64, 1, 2)), "11");
    tn_tensor *y = tn_eq(tn_ones(TN_SHAPE(3, 1)), tn_ones(TN_SHAPE(2, 1, 4)));
    ck_assert(tn_shape_equal(tn_shape_of(y), TN_SHAPE(2, 3, 4)));
    /* the comparison of a tensor on the tape is not on the tape */
    tn_tensor *x = tn_requires_grad(tn_ones(TN_SHAPE(2)));
    ck_assert(!tn_needs_grad(tn_gt(x, tn_scalar(0))));
    ck_assert(!tn_needs_grad(tn_logical_not(x)));
}

TEST(logic)
{
    tn_tensor *a = BITS(0, 0, 1, 1), *b = BITS(0, 1, 0, 1);
    reads(tn_logical_and(a, b), "0001");
    reads(tn_logical_or(a, b), "0111");
    reads(tn_logical_xor(a, b), "0110");
    reads(tn_logical_not(a), "1100");
    reads(tn_logical_not(F64(0, -0.0, 0.5, NAN, INFINITY)), "11000"); /* true if not 0 */
    reads(tn_logical_and(F64(0.5, NAN, 0, 1), OF(TN_I64, 2, -1, 7, 0)), "1100");
    reads(tn_logical_or(F64(1e-300, 0), tn_zeros(TN_SHAPE(2))), "10");
    reads(tn_logical_or(tn_scalar(1e-300), tn_zeros(TN_SHAPE(2))),
          "11"); /* in f32, to which addition would convert, it is 0 */
    reads(tn_logical_xor(OF(TN_I64, 4, 4), OF(TN_I64, 2, 0)), "01");
}

TEST(closeness)
{
    const double inf = INFINITY;
    static const struct {
        double a, b, rtol, atol;
        bool   close;
    } at[] = {
        {1, 1, 0, 0, true},
        {1, 1.1, 0, 0.11, true},
        {1, 1.1, 0, 0.09, false},
        {100, 101, 0.01, 0, true},
        {101, 100, 0.0099, 0, false},
        {101, 102, 0.0099, 0, true}, /* relative to b */
        {0, 1e-9, 1e-5, 1e-8, true},
        {0, -0.0, 0, 0, true},
        {INFINITY, INFINITY, 0, 0, true},
        {-INFINITY, -INFINITY, 0, 0, true},
        {INFINITY, -INFINITY, 1, 1, false},
        {1, INFINITY, 1, 1, false},
        {INFINITY, 1, 1, 1e300, false},
        {NAN, NAN, 1, 1, false},
        {NAN, 1, 1, 1, false},
    };
    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        for (int k = 0; k < 2; k++) {
            tn_dtype dt = k ? TN_F32 : TN_F64;
            bool     close = tn_allclose(OF(dt, 1, at[i].a), OF(dt, 1, at[i].b), at[i].rtol, at[i].atol);
            ck_assert_msg(close == at[i].close, "%g and %g by %g and %g", at[i].a, at[i].b, at[i].rtol, at[i].atol);
            ck_assert_int_eq(tn_error(), TN_OK);
        }
    ck_assert(tn_allclose(tn_ones(TN_SHAPE(3, 4)), tn_scalar(1), 0, 0));
    ck_assert(tn_allclose(tn_ones(TN_SHAPE(3, 4)), OF(TN_I64, 1, 1, 1, 1), 0, 0));
    ck_assert(!tn_allclose(tn_ones(TN_SHAPE(3, 4)), OF(TN_I64, 1, 1, 1, 2), 0, 0.5));
    ck_assert(tn_allclose(OF(TN_I64, 5, 7), OF(TN_I64, 6, 6), 0, 1));
    ck_assert(tn_allclose(tn_zeros(TN_SHAPE(0, 3)), tn_ones(TN_SHAPE(0, 3)), 0, 0));
    tn_tensor *x = tn_requires_grad(tn_ones(TN_SHAPE(2)));
    ck_assert(tn_allclose(x, tn_mul(x, x), 0, 0));
    int64_t alive = tn_memory_now().tensors;
    ck_assert(!tn_allclose(tn_keep(x), x, 0, -inf));
    ck_refused(NULL, TN_EINVAL, "allclose: rtol and atol must not be negative, got 0 and -inf");
    ck_assert(!tn_allclose(x, x, NAN, 0));
    ck_refused(NULL, TN_EINVAL, "allclose: rtol and atol must not be negative, got nan and 0");
    ck_assert(!tn_allclose(x, NULL, 0, 0));
    ck_refused(NULL, TN_EINVAL, "allclose: input 1 is NULL");
    tn_drop(x);
    ck_assert_int_eq(tn_memory_now().tensors, alive);
    tn_raise(TN_EIO, "earlier");
    ck_assert(!tn_allclose(x, x, 1, 1)); /* an error is set */
    tn_clear_error();
}

/* ---- choosing ---------------------------------------------------------------------------------------------------- */

TEST(where_chooses)
{
    tn_tensor *y = tn_where(BITS(1, 0, 1), F64(1, 2, NAN), F64(INFINITY, 5, 6));
    ck_assert_double_eq(tn_get(y, 0), 1);
    ck_assert_double_eq(tn_get(y, 1), 5);
    ck_assert(isnan(tn_get(y, 2)));
    y = tn_where(OF(TN_U8, 1, 0, 7), tn_scalar(1),
                 OF(TN_I64, 3, 4, 5)); /* u8 is accepted as bool; i64 and tn_scalar: f32 */
    ck_assert_int_eq(tn_dtype_of(y), TN_F32);
    ck_assert_double_eq(tn_get(y, 1), 4);
    ck_assert_double_eq(tn_get(y, 2), 1);
    y = tn_where(tn_ones_of(TN_BOOL, TN_SHAPE(2, 1)), tn_ones_of(TN_BF16, TN_SHAPE(3)),
                 tn_zeros_of(TN_F32, TN_SHAPE(4, 1, 1)));
    ck_assert_int_eq(tn_dtype_of(y), TN_F32);
    ck_assert(tn_shape_equal(tn_shape_of(y), TN_SHAPE(4, 2, 3)));
    tn_tensor *big = tn_zeros_of(TN_I64, TN_SHAPE(2));
    tn_set_i64(big, 1, ((int64_t)1 << 62) + 1);
    ck_assert_int_eq(tn_get_i64(tn_where(BITS(0, 1), big, tn_zeros_of(TN_I64, TN_SHAPE(2))), 1),
                     ((int64_t)1 << 62) + 1);
    ck_refused(tn_where(tn_ones(TN_SHAPE(2)), tn_ones(TN_SHAPE(2)), tn_ones(TN_SHAPE(2))), TN_EDTYPE,
               "where: the condition must be bool, got f32; a comparison such as tn_gt(x, y) returns one");
    /* the side that is not chosen gets no gradient, not even from NaN */
    tn_tensor *a = tn_requires_grad(F64(0, 4)), *b = tn_requires_grad(F64(1, 1));
    tn_backward(tn_sum(tn_where(tn_gt(a, tn_scalar(0)), tn_sqrt(a), b)));
    ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
    ck_assert_double_eq(tn_get(tn_grad(a), 1), 0.25);
    ck_assert_double_eq(tn_get(tn_grad(b), 0), 1);
    ck_assert_double_eq(tn_get(tn_grad(b), 1), 0);
}

TEST(masked_fill_fills)
{
    tn_tensor *x = tn_requires_grad(F64(1, NAN, 3)), *y = tn_masked_fill(x, BITS(0, 1, 1), -INFINITY);
    ck_assert_double_eq(tn_get(y, 0), 1);
    ck_assert_double_eq(tn_get(y, 1), -INFINITY);
    tn_backward(y, .seed = F64(2, INFINITY, NAN));
    ck_assert_double_eq(tn_get(tn_grad(x), 0), 2);
    ck_assert_double_eq(tn_get(tn_grad(x), 1), 0);
    ck_assert_double_eq(tn_get(tn_grad(x), 2), 0);
    y = tn_masked_fill(OF(TN_U8, 1, 2), BITS(1, 0), 255);
    ck_assert_int_eq(tn_dtype_of(y), TN_U8);
    ck_assert_double_eq(tn_get(y, 0), 255);
    ck_assert(tn_shape_equal(tn_shape_of(tn_masked_fill(F64(1, 2), tn_zeros_of(TN_BOOL, TN_SHAPE(3, 1)), 0)),
                             TN_SHAPE(3, 2)));
    ck_refused(tn_masked_fill(OF(TN_U8, 1, 2), BITS(1, 0), 256), TN_EINVAL,
               "masked_fill: value 256 does not fit u8, which holds 0 to 255");
    ck_refused(tn_masked_fill(F64(1, 2), OF(TN_U8, 1, 0), 0), TN_EDTYPE,
               "masked_fill: the mask must be bool, got u8; a comparison such as tn_gt(x, y) returns one");
}

/* Every dtype, layouts and broadcasting, beyond one block of the skeleton, against a plain loop. */
TEST(masked_select_selects)
{
    const tn_dtype types[] = {TN_F32, TN_F64, TN_BF16, TN_I64, TN_I32, TN_U8, TN_BOOL};
    for (int k = 0; k < 7; k++)
        for (int form = 0; form < 5; form++) {
            tn_scope   s = tn_scope_begin();
            tn_tensor *x = tn_to(tn_randint(TN_SHAPE(47, 53), 0, types[k] == TN_BOOL ? 2 : 200), types[k]);
            tn_tensor *mask = tn_to(tn_bernoulli(TN_SHAPE(47, 53), 0.4), TN_BOOL);
            if (form == 1) x = tn_transpose(x, 0, 1), mask = tn_transpose(mask, 0, 1);
            if (form == 2) x = tn_slice(x, 1, 1, 53, 3), mask = tn_slice(tn_slice(mask, 0, 0, 47, 2), 1, 2, 20, 1);
            if (form == 2) x = tn_slice(x, 0, 0, 47, 2), x = tn_narrow(x, 1, 0, 18), mask = tn_narrow(mask, 1, 0, 18);
            if (form == 3) mask = tn_narrow(mask, 0, 5, 1);
            if (form == 4) x = tn_narrow(x, 1, 7, 1);
            tn_tensor *y = tn_masked_select(x, mask);
            ck_assert_msg(y != NULL, "%s", tn_error_message());
            ck_assert_int_eq(tn_dtype_of(y), types[k]);
            ck_assert_int_eq(tn_ndim(y), 1);
            tn_shape   shape = form == 4 ? tn_shape_of(mask) : tn_shape_of(x);
            tn_tensor *xx = tn_expand(x, shape), *mm = tn_expand(mask, shape);
            int64_t    at = 0;
            for (int64_t i = 0; i < tn_numel(xx); i++)
                if (tn_get(mm, i) != 0) {
                    ck_assert_int_lt(at, tn_numel(y));
                    ck_assert_int_eq(tn_get_i64(y, at++), tn_get_i64(xx, i));
                }
            ck_assert_int_eq(at, tn_numel(y));
            /* and back, from a list that is also not dense */
            tn_tensor *twice = tn_slice(tn_repeat_interleave(y, 2, 0), 0, 0, 2 * at, 2);
            tn_tensor *back = tn_apply_args(&tn__op_masked_spread, &shape, twice, mask);
            ck_assert_msg(back != NULL, "%s", tn_error_message());
            for (int64_t i = 0; i < tn_numel(xx); i++)
                ck_assert_int_eq(tn_get_i64(back, i), tn_get(mm, i) != 0 ? tn_get_i64(xx, i) : 0);
            tn_scope_end(s);
        }
}

TEST(masked_select_ends)
{
    ck_assert_int_eq(tn_numel(tn_masked_select(tn_ones(TN_SHAPE(3)), BITS(0, 0, 0))), 0);
    ck_assert_int_eq(tn_numel(tn_masked_select(tn_ones(TN_SHAPE(0, 3)), BITS(1, 1, 1))), 0);
    ck_assert_int_eq(tn_numel(tn_masked_select(tn_scalar(3), tn_scalar_of(TN_BOOL, 1))), 1);
    ck_assert_int_eq(tn_numel(tn_masked_select(tn_ones(TN_SHAPE(2, 3)), tn_scalar_of(TN_BOOL, 1))), 6);
    unsigned char bytes[] = {2, 0, 255, 1}; /* memory from outside may hold more than 0 and 1 */
    tn_tensor    *y = tn_masked_select(F64(1, 2, 3, 4), tn_borrow(TN_BOOL, TN_SHAPE(4), bytes, NULL, NULL));
    ck_assert_int_eq(tn_numel(y), 3);
    ck_assert_double_eq(tn_get(y, 1), 3);
    ck_assert_double_eq(tn_get(y, 2), 4);
    ck_refused(tn_apply_args(&tn__op_masked_spread, &TN_SHAPE(2, 2), F64(1, 2, 3), BITS(1, 0)), TN_ESHAPE,
               "masked_spread: the mask is true at 2 places, but x is [3]");
}

TEST(masked_select_gradients)
{
    tn_tensor *x = tn_requires_grad(F64(1, 2, 3, 4)), *mask = BITS(1, 0, 0, 1), *g;
    tn_tensor *y =
        tn_sum(tn_mul(tn_masked_select(x, mask), tn_masked_select(tn_square(x), mask))); /* Σ x³ where selected */
    const double want[3][4] = {{3, 0, 0, 48}, {6, 0, 0, 24}, {6, 0, 0, 6}};
    for (int order = 0; order < 3; order++) {
        g = tn_grad_wrt(y, x, true);
        ck_assert_msg(g != NULL, "%s", tn_error_message());
        for (int i = 0; i < 4; i++) ck_assert_double_eq(tn_get(g, i), want[order][i]);
        y = tn_sum(g);
    }
    x = tn_requires_grad(F64(1, 2)); /* an x that is broadcast collects from all its places */
    tn_backward(tn_sum(tn_masked_select(x, tn_reshape(BITS(1, 0, 1, 1), TN_SHAPE(2, 2)))));
    ck_assert_double_eq(tn_get(tn_grad(x), 0), 2);
    ck_assert_double_eq(tn_get(tn_grad(x), 1), 1);
}
