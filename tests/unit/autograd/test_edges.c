/* test_edges.c — gradients at the limits of the dtypes: every value that is finite in PyTorch is finite here, in a
 * plain backward and in one that can be differentiated again. */
#include "autograd/autograd.h"
#include "tests/common/check_main.h"

#include <errno.h>

static tn_tensor *leaf(double v) { return tn_requires_grad(tn_scalar_of(TN_F32, v)); }

/* Checks the gradient of y by x, with the seed gy, by both backwards. */
static void gives(tn_tensor *y, tn_tensor *x, double gy, double should)
{
    tn_tensor *seed = tn_scalar_of(TN_F32, gy), *plain = NULL, *again = NULL;
    tn_grad_of(y, 1, &x, &plain, .seed = seed, .retain = true);
    tn_grad_of(y, 1, &x, &again, .seed = seed, .create_graph = true);
    ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
    ck_assert_ptr_nonnull(plain);
    ck_assert_ptr_nonnull(again);
    ck_assert_float_eq((float)tn_item(plain), (float)should);
    ck_assert_float_eq((float)tn_item(again), (float)should);
}

TEST(division)
{
    tn_tensor *b = leaf(1e-10);
    gives(tn_div(tn_scalar_of(TN_F32, 0), b), b, 1e30, 0);
    b = leaf(1e-20);
    gives(tn_div(tn_scalar_of(TN_F32, 1e-30), b), b, 1e20, -1e30);
}

TEST(powers)
{
    static const double at[] = {1e-40, -1e-42, NAN, 0, INFINITY, 3};
    for (int i = 0; i < 6; i++) {
        tn_tensor *x = leaf(at[i]);
        gives(tn_pow(x, tn_scalar_of(TN_F32, 0)), x, 2, 0);
    }
    tn_tensor *x = leaf(4), *e = leaf(0), *g = tn_grad_wrt(tn_pow(x, e), x, true);
    ck_assert_double_eq(tn_item(tn_grad_wrt(g, e, false)), 0.25); /* the derivative of e · xᵉ⁻¹ by e */
}

TEST(remainders)
{
    static const double row[][3] = {{3, INFINITY, 0}, {-3, INFINITY, 2}, {3, -INFINITY, 2}, {-3, -INFINITY, 0},
                                    {0, INFINITY, 0}, {7, 2, -6},        {-7, 2, 8}};
    for (int i = 0; i < 7; i++) {
        tn_tensor *b = leaf(row[i][1]);
        gives(tn_remainder(tn_scalar_of(TN_F32, row[i][0]), b), b, 2, row[i][2]);
    }
}

TEST(products_of_one)
{
    tn_tensor *x = leaf(INFINITY);
    gives(tn_prod(x), x, 3, 3);
    x = leaf(0);
    gives(tn_prod(x), x, 3, 3);
}

/* A gradient of zeros is also a gradient. */
TEST(steps)
{
    tn_tensor *x = leaf(1.5);
    gives(tn_sign(x), x, 1, 0);
    gives(tn_floor(x), x, 1, 0);
    gives(tn_ceil(x), x, 1, 0);
    gives(tn_round(x), x, 1, 0);
    gives(tn_pow_scalar(x, 0), x, 1, 0);
    tn_backward(tn_floor(x));
    ck_assert_ptr_nonnull(tn_grad(x));
    ck_assert_double_eq(tn_item(tn_grad(x)), 0);
}

TEST(padding)
{
    tn_tensor *x = tn_zeros_of(TN_U8, TN_SHAPE(2));
    ck_assert_ptr_null(tn_pad(x, TN_SHAPE(1), TN_SHAPE(1), 300));
    ck_assert_int_eq(tn_error(), TN_EINVAL);
    ck_assert_str_eq(tn_error_message(), "pad: value 300 does not fit u8, which holds 0 to 255");
    tn_clear_error();
    ck_assert_double_eq(tn_get(tn_pad(x, TN_SHAPE(1), TN_SHAPE(1), 255), 0), 255);
}

/* Ops do not change errno, although the C library's functions set it where they overflow or are undefined. */
TEST(errno_stays)
{
    static tn_tensor *(*const of[])(tn_tensor *) = {tn_exp, tn_log,  tn_log1p, tn_expm1,
                                                    tn_sin, tn_gelu, tn_mish,  tn_sqrt};
    static const double numbers[] = {-1, 0, 1e300, -1e300, INFINITY, -INFINITY, 1e-310};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        tn_tensor *x = tn_requires_grad(tn_from_data(TN_F64, TN_SHAPE(7), numbers));
        errno = 4321;
        tn_tensor *y = tn_sum(of[i](x));
        ck_assert_int_eq(errno, 4321);
        ck_assert_int_eq(tn_backward(y), TN_OK);
        ck_assert_int_eq(errno, 4321);
    }
}
