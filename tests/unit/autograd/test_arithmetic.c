/* test_arithmetic.c — arithmetic between dtypes and with plain numbers: the promoted dtype of each pair, integers at
 * the ends of their ranges, in-place results, and the gradients of powers and extremes where they are a convention. */
#include "autograd/autograd.h"
#include "tests/common/check_main.h"

enum { B, U, I, L, H, F, D, TYPES }; /* bool u8 i32 i64 bf16 f32 f64, from the narrowest to the widest */
static const tn_dtype type[] = {TN_BOOL, TN_U8, TN_I32, TN_I64, TN_BF16, TN_F32, TN_F64};

static tn_tensor *integers(tn_dtype dt, int n, const int64_t *v)
{
    tn_tensor *t = tn_empty_of(TN_I64, TN_SHAPE(n));
    for (int i = 0; i < n; i++) tn_set_i64(t, i, v[i]);
    return dt == TN_I64 ? t : tn_to(t, dt);
}
#define I64(...) integers(TN_I64, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})
#define NARROW(dt, ...) \
    integers(dt, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})
static tn_tensor *f64(double v) { return tn_full_of(TN_F64, TN_SHAPE(1), v); }

static void holds(const tn_tensor *t, tn_dtype dt, int n, const int64_t *want)
{
    ck_assert_msg(t != NULL, "%s", tn_error_message());
    ck_assert_str_eq(tn_dtype_name(tn_dtype_of(t)), tn_dtype_name(dt));
    ck_assert_int_eq(tn_numel(t), n);
    for (int i = 0; i < n; i++)
        ck_assert_msg(tn_get_i64(t, i) == want[i], "[%d] is %lld, should be %lld", i, (long long)tn_get_i64(t, i),
                      (long long)want[i]);
}
#define HOLDS(t, dt, ...) \
    holds(t, dt, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

/* ---- promotion of two dtypes ------------------------------------------------------------------------------------- */

TEST(all_pairs)
{
    for (int a = 0; a < TYPES; a++)
        for (int b = 0; b < TYPES; b++) {
            tn_tensor *x = tn_ones_of(type[a], TN_SHAPE(3)), *y = tn_ones_of(type[b], TN_SHAPE(2, 1)),
                      *z = tn_add(x, y);
            ck_assert_msg(z && tn_dtype_of(z) == type[a > b ? a : b], "%s + %s is %s", tn_dtype_name(type[a]),
                          tn_dtype_name(type[b]), z ? tn_dtype_name(tn_dtype_of(z)) : tn_error_message());
            double two = a == B && b == B ? 1 : 2; /* true or true */
            for (int i = 0; i < 6; i++) ck_assert_double_eq(tn_get(z, i), two);
        }
}

/* Row: the tensor with dims; column: the 0-d one. The tensor with dims decides, unless the other has a higher kind
 * (bool, integer, floating); tn_scalar's f64 counts as f32 with integers. */
TEST(all_pairs_with_a_single_number)
{
    static const int meet[TYPES][TYPES] = {
        {B, U, I, L, H, F, F}, /* bool */
        {U, U, U, U, H, F, F}, /* u8   */
        {I, I, I, I, H, F, F}, /* i32  */
        {L, L, L, L, H, F, F}, /* i64  */
        {H, H, H, H, H, H, H}, /* bf16 */
        {F, F, F, F, F, F, F}, /* f32  */
        {D, D, D, D, D, D, D}, /* f64  */
    };
    for (int a = 0; a < TYPES; a++)
        for (int b = 0; b < TYPES; b++)
            for (int order = 0; order < 2; order++) {
                tn_tensor *dims = tn_ones_of(type[a], TN_SHAPE(3)), *one = tn_ones_of(type[b], TN_SCALAR);
                tn_tensor *z = order ? tn_mul(dims, one) : tn_mul(one, dims);
                ck_assert_msg(z && tn_dtype_of(z) == type[meet[a][b]], "%s[3] · %s is %s", tn_dtype_name(type[a]),
                              tn_dtype_name(type[b]), z ? tn_dtype_name(tn_dtype_of(z)) : tn_error_message());
                ck_assert_double_eq(tn_get(z, 2), 1);
            }
    ck_assert_int_eq(tn_dtype_of(tn_add(tn_scalar_of(TN_F32, 1), tn_scalar(1))),
                     TN_F64); /* both 0-d: the wider dtype */
    ck_assert_int_eq(tn_dtype_of(tn_add(tn_scalar_of(TN_I64, 1), tn_scalar_of(TN_BF16, 1))), TN_BF16);
}

TEST(gradients_come_back_in_the_inputs_types)
{
    tn_tensor *a = tn_requires_grad(tn_full_of(TN_F32, TN_SHAPE(2, 3), 3)),
              *b = tn_requires_grad(tn_full_of(TN_F64, TN_SHAPE(3), 2));
    tn_tensor *half = tn_requires_grad(tn_full_of(TN_BF16, TN_SHAPE(2, 1), 4)),
              *whole = tn_full_of(TN_I64, TN_SHAPE(3), 5);
    tn_backward(tn_sum(tn_mul(tn_mul(tn_mul(a, b), half), whole)));
    ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
    ck_assert_int_eq(tn_dtype_of(tn_grad(a)), TN_F32);
    ck_assert_int_eq(tn_dtype_of(tn_grad(b)), TN_F64);
    ck_assert_int_eq(tn_dtype_of(tn_grad(half)), TN_BF16);
    ck_assert_double_eq(tn_get(tn_grad(a), 5), 2 * 4 * 5);
    ck_assert_double_eq(tn_get(tn_grad(b), 2), 2 * 3 * 4 * 5);
    ck_assert_double_eq(tn_get(tn_grad(half), 1), 3 * 3 * 2 * 5);
}

TEST(division_is_real)
{
    tn_tensor *y = tn_div(I64(7, -7, 1), I64(2, 2, 0));
    ck_assert_int_eq(tn_dtype_of(y), TN_F32);
    ck_assert_double_eq(tn_get(y, 0), 3.5);
    ck_assert_double_eq(tn_get(y, 1), -3.5);
    ck_assert_double_eq(tn_get(y, 2), INFINITY);
    ck_assert_int_eq(tn_dtype_of(tn_div(tn_ones_of(TN_BOOL, TN_SHAPE(2)), tn_ones_of(TN_U8, TN_SHAPE(2)))), TN_F32);
    ck_assert_int_eq(tn_dtype_of(tn_div(tn_ones_of(TN_BF16, TN_SHAPE(2)), I64(1, 1))), TN_BF16);
    y = tn_div_scalar(I64(7, -7), 2);
    ck_assert_int_eq(tn_dtype_of(y), TN_F32);
    ck_assert_double_eq(tn_get(y, 1), -3.5);
}

/* ---- integers ---------------------------------------------------------------------------------------------------- */

TEST(integers_are_exact_and_wrap)
{
    const int64_t big = ((int64_t)1 << 62) + 1;
    HOLDS(tn_add(I64(big, INT64_MAX, INT64_MIN), I64(2, 1, -1)), TN_I64, big + 2, INT64_MIN, INT64_MAX);
    HOLDS(tn_sub(I64(big, INT64_MIN, 0), I64(2, 1, INT64_MIN)), TN_I64, big - 2, INT64_MAX, INT64_MIN);
    HOLDS(tn_mul(I64(big, INT64_MIN), I64(1, -1)), TN_I64, big, INT64_MIN);
    HOLDS(tn_add_scalar(I64(big, INT64_MAX), 1), TN_I64, big + 1, INT64_MIN);
    HOLDS(tn_mul_scalar(I64(((int64_t)1 << 53) + 1, big), 3), TN_I64, 3 * (((int64_t)1 << 53) + 1),
          (int64_t)(3 * (uint64_t)big));
    HOLDS(tn_rsub_scalar(I64(big, INT64_MIN), 1), TN_I64, 1 - big, INT64_MIN + 1);
    HOLDS(tn_neg(I64(big, INT64_MIN)), TN_I64, -big, INT64_MIN);
    HOLDS(tn_abs(I64(-big, INT64_MIN, 3)), TN_I64, big, INT64_MIN, 3);
    HOLDS(tn_square(I64(-3037000499, 4)), TN_I64, 3037000499 * 3037000499, 16);
    HOLDS(tn_sign(I64(-big, 0, big)), TN_I64, -1, 0, 1);
    HOLDS(tn_relu(I64(-big, 0, big)), TN_I64, 0, 0, big);
    HOLDS(tn_round(I64(big, -big)), TN_I64, big, -big);
    HOLDS(tn_maximum(I64(big, big + 1), I64(big + 1, big)), TN_I64, big + 1, big + 1);
    HOLDS(tn_minimum(I64(big, big + 1), I64(big + 1, big)), TN_I64, big, big);
    HOLDS(tn_pow(I64(3, -2, 0, 7, 2), I64(4, 63, 0, 0, 64)), TN_I64, 81, INT64_MIN, 1, 1, 0);
    HOLDS(tn_pow_scalar(I64(3, -2), 3), TN_I64, 27, -8);
    HOLDS(tn_add(NARROW(TN_U8, 255, 7), NARROW(TN_U8, 1, 1)), TN_U8, 0, 8);
    HOLDS(tn_neg(NARROW(TN_U8, 1, 0)), TN_U8, 255, 0);
    HOLDS(tn_add(NARROW(TN_I32, INT32_MAX, 7), NARROW(TN_I32, 1, 1)), TN_I32, INT32_MIN, 8);
    HOLDS(tn_mul_scalar(NARROW(TN_I32, 1 << 30, 7), 2), TN_I32, INT32_MIN, 14);
    HOLDS(tn_mul(NARROW(TN_BOOL, 0, 0, 1, 1), NARROW(TN_BOOL, 0, 1, 0, 1)), TN_BOOL, 0, 0, 0, 1);
    HOLDS(tn_add(NARROW(TN_BOOL, 0, 0, 1, 1), NARROW(TN_BOOL, 0, 1, 0, 1)), TN_BOOL, 0, 1, 1, 1);
    HOLDS(tn_maximum(NARROW(TN_BOOL, 0, 0, 1, 1), NARROW(TN_BOOL, 0, 1, 0, 1)), TN_BOOL, 0, 1, 1, 1);
}

TEST(remainders)
{
    HOLDS(tn_remainder(I64(7, -7, 7, -7, 6, -6, 0, INT64_MIN, INT64_MIN), I64(3, 3, -3, -3, 3, -3, 5, -1, INT64_MAX)),
          TN_I64, 1, 2, -2, -1, 0, 0, 0, 0, INT64_MAX - 1);
    const double a[] = {7.5, -7.5, 7.5, -7.5, 6, -6, 0, 5, INFINITY}, b[] = {2, 2, -2, -2, 3, -3, 1, INFINITY, 2},
                 want[] = {1.5, 0.5, -0.5, -1.5, 0, 0, 0, 5, NAN};
    for (int i = 0; i < 9; i++) {
        double got = tn_item(tn_remainder(f64(a[i]), f64(b[i])));
        ck_assert_msg(got == want[i] || (isnan(got) && isnan(want[i])), "%g mod %g is %g", a[i], b[i], got);
    }
    ck_assert(isnan(tn_item(tn_remainder(f64(1), f64(0)))));
    ck_refused(tn_remainder(I64(1, 2), tn_reshape(I64(3, 4, 5, 0), TN_SHAPE(2, 2))), TN_EINVAL,
               "remainder: integer division by zero: the divisor is 0 at [1, 1]");
    ck_refused(tn_remainder(tn_scalar_of(TN_I64, 1), tn_scalar_of(TN_I64, 0)), TN_EINVAL,
               "remainder: integer division by zero: the divisor is 0 at []");
}

TEST(plain_numbers_never_widen)
{
    for (int t = U; t < TYPES; t++) {
        tn_tensor *x = tn_full_of(type[t], TN_SHAPE(2), 3);
        ck_assert_int_eq(tn_dtype_of(tn_add_scalar(x, 2)), type[t]);
        ck_assert_double_eq(tn_get(tn_add_scalar(x, 2), 1), 5);
        ck_assert_double_eq(tn_get(tn_mul_scalar(x, 2), 1), 6);
        ck_assert_double_eq(tn_get(tn_rsub_scalar(x, 5), 1), 2);
        ck_assert_double_eq(tn_get(tn_pow_scalar(x, 2), 1), 9);
        ck_assert_double_eq(tn_get(tn_clamp(x, 0, 2), 1), 2);
        ck_assert_int_eq(tn_dtype_of(tn_clamp(x, 0, 2)), type[t]);
    }
    ck_refused(tn_add_scalar(NARROW(TN_U8, 1), 0.5), TN_EDTYPE,
               "add_scalar: x is u8 and 0.5 is not a whole number; convert x with tn_to(x, TN_F32)");
    ck_refused(tn_mul_scalar(I64(1), NAN), TN_EDTYPE,
               "mul_scalar: x is i64 and nan is not a whole number; convert x with tn_to(x, TN_F32)");
    HOLDS(tn_clamp(NARROW(TN_U8, 1, 200), 100, 300), TN_U8, 100, 200);
    HOLDS(tn_clamp(NARROW(TN_U8, 1, 200), -5, 100), TN_U8, 1, 100);
    HOLDS(tn_clamp(I64(INT64_MIN, 5, INT64_MAX), -INFINITY, INFINITY), TN_I64, INT64_MIN, 5, INT64_MAX);
    ck_refused(tn_clamp(NARROW(TN_U8, 1, 200), 300, 400), TN_EINVAL, "clamp: no u8 is between 300 and 400");
    ck_refused(tn_clamp(NARROW(TN_U8, 1, 200), -INFINITY, -1), TN_EINVAL, "clamp: no u8 is between -inf and -1");
}

/* ---- in-place ops ------------------------------------------------------------------------------------------------ */

TEST(in_place)
{
    tn_tensor  *x = tn_full_of(TN_F32, TN_SHAPE(2, 3), 2), *row = tn_full_of(TN_F32, TN_SHAPE(3), 3);
    const void *memory = tn_data(x);
    ck_assert_ptr_eq(tn_add_(x, row), x);                        /* 5 */
    ck_assert_ptr_eq(tn_mul_(x, tn_scalar(2)), x);               /* 10 */
    ck_assert_ptr_eq(tn_sub_(x, tn_full(TN_SHAPE(2, 1), 1)), x); /* 9 */
    ck_assert_ptr_eq(tn_div_(x, I64(3, 3, 3)), x);               /* 3 */
    ck_assert_ptr_eq(tn_add_scalar_(x, 1), x);                   /* 4 */
    ck_assert_ptr_eq(tn_mul_scalar_(x, 8), x);                   /* 32 */
    ck_assert_ptr_eq(tn_div_scalar_(x, 2), x);                   /* 16 */
    ck_assert_ptr_eq(tn_sqrt_(x), x);                            /* 4 */
    ck_assert_ptr_eq(tn_neg_(x), x);                             /* -4 */
    ck_assert_ptr_eq(tn_clamp_(x, -3, 1), x);                    /* -3 */
    ck_assert_ptr_eq(tn_relu_(x), x);                            /* 0 */
    ck_assert_ptr_eq(tn_exp_(x), x);                             /* 1 */
    ck_assert_ptr_eq(tn_masked_fill_(x, NARROW(TN_BOOL, 0, 1, 0), 0), x);
    ck_assert_ptr_eq(tn_data(x), memory);
    for (int i = 0; i < 6; i++) ck_assert_double_eq(tn_get(x, i), i % 3 == 1 ? 0 : 1);
    ck_assert_double_eq(tn_get(tn_tanh_(x), 0), (double)tanhf(1));
    ck_assert_double_eq(tn_get(tn_sigmoid_(x), 1), 0.5);

    ck_refused(tn_add_(row, x), TN_ESHAPE, "add_: the result has shape [2, 3] and cannot overwrite one of shape [3]");
    ck_assert_double_eq(tn_get(row, 0), 3);
    ck_refused(tn_mul_(I64(1, 2), tn_ones(TN_SHAPE(2))), TN_EDTYPE,
               "mul_: the result is f32 and cannot overwrite a tensor of i64");
    ck_refused(tn_div_(I64(1, 2), I64(1, 2)), TN_EDTYPE,
               "div_: the result is f32 and cannot overwrite a tensor of i64");
    ck_refused(tn_masked_fill_(row, tn_zeros_of(TN_BOOL, TN_SHAPE(2, 3)), 1), TN_ESHAPE,
               "masked_fill_: the result has shape [2, 3] and cannot overwrite one of shape [3]");
}

/* In-place ops on the tape have the gradients of the same ops with separate results. */
static tn_tensor *bounded(tn_tensor *x, bool over) { return over ? tn_clamp_(x, 0.7, 1.2) : tn_clamp(x, 0.7, 1.2); }
static tn_tensor *filled(tn_tensor *x, bool over)
{
    tn_tensor *mask = NARROW(TN_BOOL, 0, 1, 0);
    return over ? tn_masked_fill_(x, mask, 3) : tn_masked_fill(x, mask, 3);
}

TEST(gradients_over_the_first_argument)
{
    static tn_tensor *(*const one[][2])(tn_tensor *) = {{tn_neg, tn_neg_},         {tn_exp, tn_exp_},
                                                        {tn_sqrt, tn_sqrt_},       {tn_tanh, tn_tanh_},
                                                        {tn_sigmoid, tn_sigmoid_}, {tn_relu, tn_relu_}};
    static tn_tensor *(*const two[][2])(tn_tensor *, tn_tensor *) = {
        {tn_add, tn_add_}, {tn_sub, tn_sub_}, {tn_mul, tn_mul_}, {tn_div, tn_div_}};
    static tn_tensor *(*const plain[][2])(tn_tensor *, double) = {
        {tn_add_scalar, tn_add_scalar_}, {tn_mul_scalar, tn_mul_scalar_}, {tn_div_scalar, tn_div_scalar_}};
    double grad[2][2][3];
    for (int f = 0; f < 6 + 4 + 2 + 3 + 2; f++) {
        for (int over = 0; over < 2; over++) {
            tn_tensor *x = tn_requires_grad(tn_linspace_of(TN_F64, 0.5, 1.5, 3)),
                      *b = tn_requires_grad(tn_full_of(TN_F64, TN_SHAPE(1), 2));
            tn_tensor *y = tn_mul(x, b);
            if (f < 6) y = one[f][over](y);
            else if (f < 10) y = two[f - 6][over](y, b);
            else if (f < 12)
                y = two[f - 10][over](y, y); /* only add and sub: the others save the tensor that they change */
            else if (f < 15) y = plain[f - 12][over](y, 3);
            else y = f == 15 ? bounded(y, over) : filled(y, over);
            tn_backward(tn_sum(tn_mul(tn_square(y), b)));
            ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
            for (int i = 0; i < 3; i++) grad[over][0][i] = tn_get(tn_grad(x), i);
            grad[over][1][0] = tn_item(tn_grad(b));
        }
        for (int i = 0; i < 3; i++) ck_assert_double_eq(grad[0][0][i], grad[1][0][i]);
        ck_assert_double_eq(grad[0][1][0], grad[1][1][0]);
    }
    tn_tensor *x = tn_requires_grad(tn_ones(TN_SHAPE(2))), *y = tn_exp(x);
    tn_mul_scalar_(y, 2); /* changes the result that exp saved */
    ck_assert_int_eq(tn_backward(tn_sum(y)), TN_ESTATE);
    ck_assert_str_eq(
        tn_error_message(),
        "backward: mul_scalar_ changed in place the tensor saved by exp (result 0); use mul_scalar, or move it before "
        "the exp");
    tn_clear_error();
}

/* ---- gradients that are a convention ----------------------------------------------------------------------------- */

static void slopes(tn_tensor *(*f)(tn_tensor *, tn_tensor *), double a, double b, double want_a, double want_b)
{
    for (int ops = 0; ops < 2; ops++) {
        tn_tensor *in[] = {tn_requires_grad(f64(a)), tn_requires_grad(f64(b))}, *g[2], *y = f(in[0], in[1]);
        tn_grad_of(y, 2, in, g, .create_graph = ops);
        ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
        double ga = g[0] ? tn_item(g[0]) : 0, gb = g[1] ? tn_item(g[1]) : 0;
        ck_assert_msg((ga == want_a || (isnan(ga) && isnan(want_a))) && (gb == want_b || (isnan(gb) && isnan(want_b))),
                      "at %g and %g%s: %g and %g, should be %g and %g", a, b, ops ? ", made of ops" : "", ga, gb,
                      want_a, want_b);
    }
}

TEST(powers)
{
    slopes(tn_pow, 0, 0, 0, 0);
    slopes(tn_pow, 0, 1, 1, 0);
    slopes(tn_pow, 0, 2, 0, 0);
    slopes(tn_pow, 0, 0.5, INFINITY, 0);
    slopes(tn_pow, 0, -1, -INFINITY, -INFINITY);
    slopes(tn_pow, 3, 0, 0, log(3));
    slopes(tn_pow, -2, 2, -4, NAN);
    slopes(tn_pow, 2, 3, 12, 8 * log(2));
    const double at[] = {0, -0.0, 2, -3, INFINITY}, k[] = {0, 1, 2, 3, -1, -2, 0.5, 2.5};
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 8; j++) {
            if (k[j] == 0.5) continue; /* a root: of -0 it is -0, of -infinity NaN */
            double y = tn_item(tn_pow_scalar(f64(at[i]), k[j])), want = pow(at[i], k[j]);
            ck_assert_msg(y == want || (isnan(y) && isnan(want)), "%g to the power %g: %.17g, should be %.17g", at[i],
                          k[j], y, want);
        }
    tn_tensor *x = tn_requires_grad(f64(0)); /* the slopes of x⁰ and x¹ at 0 */
    ck_assert_double_eq(tn_item(tn_grad_wrt(tn_pow_scalar(x, 0), x, false)), 0);
    ck_assert_double_eq(tn_item(tn_grad_wrt(tn_pow_scalar(x, 1), x, false)), 1);
    ck_assert_double_eq(tn_item(tn_grad_wrt(tn_pow_scalar(x, 0.5), x, false)), INFINITY);
}

TEST(extremes)
{
    slopes(tn_maximum, 1, 2, 0, 1);
    slopes(tn_maximum, 2, 1, 1, 0);
    slopes(tn_maximum, 2, 2, 0.5, 0.5);
    slopes(tn_maximum, INFINITY, INFINITY, 0.5, 0.5);
    slopes(tn_maximum, NAN, 1, 1, 1); /* as in PyTorch */
    slopes(tn_minimum, 1, 2, 1, 0);
    slopes(tn_minimum, 2, 1, 0, 1);
    slopes(tn_minimum, 2, 2, 0.5, 0.5);
    slopes(tn_minimum, 1, NAN, 1, 1);
    for (int k = 0; k < 2; k++) {
        tn_tensor *(*f)(tn_tensor *, tn_tensor *) = k ? tn_maximum : tn_minimum;
        ck_assert(isnan(tn_item(f(f64(NAN), f64(1)))));
        ck_assert(isnan(tn_item(f(f64(1), f64(NAN)))));
        ck_assert_double_eq(tn_item(f(f64(-INFINITY), f64(INFINITY))), k ? INFINITY : -INFINITY);
    }
}

TEST(remainder_gradients)
{
    slopes(tn_remainder, 7.5, 2, 1, -3);
    slopes(tn_remainder, -7.5, 2, 1, 4);
    slopes(tn_remainder, 7.5, -2, 1, 4);
    slopes(tn_div, 6, 3, 1.0 / 3, -6.0 / 9);
}
