/* test_jacobian.c — tn_jacobian and tn_hvp: against formulas, for functions that do not depend on x, and mistakes. */
#include "autograd/autograd.h"
#include "tests/common/check_main.h"

static tn_tensor *matrix(void)
{
    return tn_reshape(tn_add_scalar(tn_mul_scalar(tn_to(tn_arange(12), TN_F64), 0.3), -1.5), TN_SHAPE(3, 4));
}

/* y_i = sin(Σ_j m_ij x_j²): dy_i/dx_j = cos(…) 2 m_ij x_j */
static tn_tensor *vector_of(tn_tensor *const *in, int n, void *user)
{
    return (void)n, tn_sin(tn_matmul(user, tn_square(in[0])));
}
/* x of another shape, and a result without dims */
static tn_tensor *cubes(tn_tensor *const *in, int n, void *user)
{
    return (void)n, (void)user, tn_sum(tn_pow_scalar(in[0], 3));
}
static tn_tensor *constant(tn_tensor *const *in, int n, void *user)
{
    return (void)in, (void)n, (void)user, tn_ones_of(TN_F64, TN_SHAPE(2));
}
static tn_tensor *linear(tn_tensor *const *in, int n, void *user) { return (void)n, (void)user, tn_sum(in[0]); }
static tn_tensor *nothing(tn_tensor *const *in, int n, void *user) { return (void)in, (void)n, (void)user, NULL; }

TEST(jacobians)
{
    tn_tensor *m = matrix(), *x = tn_from_data(TN_F64, TN_SHAPE(4), (double[]){0.5, -1, 2, 0.25});
    tn_tensor *j = tn_jacobian(vector_of, x, m), *inner = tn_matmul(m, tn_square(x));
    ck_assert_msg(j && tn_shape_equal(tn_shape_of(j), TN_SHAPE(3, 4)), "%s", tn_error_message());
    ck_assert(!tn_needs_grad(j) && !tn_needs_grad(x));
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 4; k++) {
            const double want = cos(tn_get(inner, i)) * 2 * tn_get_at(m, TN_SHAPE(i, k)) * tn_get(x, k);
            ck_assert_double_le(fabs(tn_get_at(j, TN_SHAPE(i, k)) - want), 1e-14);
        }
    tn_tensor *matrix_x = tn_transpose(m, 0, 1), *g = tn_jacobian(cubes, matrix_x, NULL);
    ck_assert(tn_shape_equal(tn_shape_of(g), TN_SHAPE(4, 3)));
    for (int i = 0; i < 12; i++)
        ck_assert_double_le(fabs(tn_get(g, i) - 3 * tn_get(matrix_x, i) * tn_get(matrix_x, i)), 1e-14);
    g = tn_jacobian(constant, x, NULL);
    ck_assert(tn_shape_equal(tn_shape_of(g), TN_SHAPE(2, 4)) && tn_item(tn_any(g)) == 0);
}

TEST(hessians)
{
    tn_tensor *m = matrix(), *v = tn_add_scalar(tn_square(m), -1), *h = tn_hvp(cubes, m, v, NULL);
    ck_assert_msg(h && tn_shape_equal(tn_shape_of(h), TN_SHAPE(3, 4)), "%s", tn_error_message());
    for (int i = 0; i < 12; i++) ck_assert_double_le(fabs(tn_get(h, i) - 6 * tn_get(m, i) * tn_get(v, i)), 1e-13);
    h = tn_hvp(linear, m, v, NULL);
    ck_assert(tn_shape_equal(tn_shape_of(h), TN_SHAPE(3, 4)) && tn_item(tn_any(h)) == 0);
}

TEST(mistakes)
{
    tn_tensor *m = matrix(), *many = tn_reshape(m, TN_SHAPE(1, 1, 1, 1, 1, 1, 3, 4));
    ck_refused(tn_jacobian(NULL, m, NULL), TN_EINVAL, "tn_jacobian: fn is NULL");
    ck_refused(tn_jacobian(cubes, NULL, NULL), TN_EINVAL, "tn_jacobian: x is NULL");
    ck_refused(tn_jacobian(nothing, m, NULL), TN_EINVAL, "tn_jacobian: fn returned NULL");
    ck_refused(tn_jacobian(constant, many, NULL), TN_ESHAPE, "tn_jacobian: the result would have 9 dims, more than 8");
    ck_refused(tn_hvp(cubes, m, NULL, NULL), TN_ESHAPE, "tn_hvp: v is NULL, but must have the shape of x, [3, 4]");
    ck_refused(tn_hvp(constant, m, m, NULL), TN_ESHAPE, "tn_hvp: fn returned [2], but must return one element");
    const tn_scope s = tn_no_grad_begin();
    ck_refused(tn_jacobian(cubes, m, NULL), TN_ESTATE, "tn_jacobian: gradients are off, by tn_no_grad_begin()");
    tn_scope_end(s);
}
