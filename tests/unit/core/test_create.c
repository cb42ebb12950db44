/* test_create.c — new tensors of every kind, and invalid requests. */
#include "tests/common/check_main.h"

#include "core/tensor/tensor.h"
#include <float.h>

/* For loops: Check's own assertions each write to a pipe, whether they hold or not. */
#define EACH(holds) ((holds) ? (void)0 : ck_abort_msg("%s", #holds))

static const tn_dtype types[] = {TN_F32, TN_F64, TN_BF16, TN_I64, TN_I32, TN_U8, TN_BOOL};
enum { TYPES = sizeof types / sizeof *types };

static void all_are(const tn_tensor *t, tn_dtype dt, tn_shape s, double value)
{
    ck_assert_ptr_nonnull(t);
    ck_assert_int_eq(tn_dtype_of(t), dt);
    ck_assert(tn_shape_equal(tn_shape_of(t), s));
    ck_assert(tn_is_contiguous(t));
    for (int64_t i = 0; i < tn_numel(t); i++) EACH(tn_get(t, i) == value);
}

/* ---- constant ------------------------------------------------------------------------------------------------- */

TEST_EACH(constants, TYPES)
{
    const tn_shape shapes[] = {TN_SCALAR,
                               TN_SHAPE(0),
                               TN_SHAPE(1),
                               TN_SHAPE(7),
                               TN_SHAPE(2, 3),
                               TN_SHAPE(4, 0, 2),
                               TN_SHAPE(1, 2, 1, 2, 1, 2, 1, 2),
                               TN_SHAPE(70, 1000)};
    const tn_dtype dt = types[_i];
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const tn_shape s = shapes[i];
        all_are(tn_zeros_of(dt, s), dt, s, 0);
        all_are(tn_ones_of(dt, s), dt, s, 1);
        all_are(tn_full_of(dt, s, 1), dt, s, 1);
        if (dt != TN_BOOL) all_are(tn_full_of(dt, s, 42), dt, s, 42);
        tn_tensor *t = tn_empty_of(dt, s);
        ck_assert_int_eq(tn_dtype_of(t), dt);
        ck_assert(tn_shape_equal(tn_shape_of(t), s));
        all_are(tn_zeros_like(t), dt, s, 0);
        all_are(tn_ones_like(t), dt, s, 1);
        all_are(tn_full_like(t, 1), dt, s, 1);
        t = tn_empty_like(t);
        ck_assert_int_eq(tn_dtype_of(t), dt);
        ck_assert(tn_shape_equal(tn_shape_of(t), s));
    }
    all_are(tn_scalar_of(dt, 1), dt, TN_SCALAR, 1);
}

TEST(short_forms)
{
    const tn_shape s = TN_SHAPE(3, 2);
    ck_assert_int_eq(tn_dtype_of(tn_empty(s)), TN_F32);
    all_are(tn_zeros(s), TN_F32, s, 0);
    all_are(tn_ones(s), TN_F32, s, 1);
    all_are(tn_full(s, -2.5), TN_F32, s, -2.5);
    all_are(tn_scalar(0.1), TN_F64, TN_SCALAR, 0.1);
}

TEST(a_like_of_a_view_is_contiguous)
{
    tn_tensor *base = tn_zeros(TN_SHAPE(3, 4));
    tn__layout l = {.shape = {.n = 2, .d = {4, 3}}, .stride = {1, 4}};
    all_are(tn_ones_like(tn__alias(base, &l)), TN_F32, TN_SHAPE(4, 3), 1);
}

TEST(special_values)
{
    ck_assert(isnan(tn_item(tn_full(TN_SHAPE(1), NAN))));
    ck_assert_double_eq(tn_item(tn_full(TN_SHAPE(1), -INFINITY)), -INFINITY);
    ck_assert(signbit(tn_item(tn_full(TN_SHAPE(1), -0.0))));
    ck_assert_double_eq(tn_item(tn_full(TN_SHAPE(1), 1e-45)), 0x1p-149);
    ck_assert_double_eq(tn_item(tn_full(TN_SHAPE(1), FLT_MAX)), FLT_MAX);
    ck_assert_double_eq(tn_item(tn_full_of(TN_F64, TN_SHAPE(1), DBL_MAX)), DBL_MAX);
    ck_assert_double_eq(tn_item(tn_full_of(TN_I64, TN_SHAPE(1), 2.9)), 2); /* truncated towards zero, as in PyTorch */
    ck_assert_double_eq(tn_item(tn_full_of(TN_I32, TN_SHAPE(1), -2.9)), -2);
    ck_assert_double_eq(tn_item(tn_full_of(TN_U8, TN_SHAPE(1), 255.9)), 255);
    ck_assert_double_eq(tn_item(tn_full_of(TN_U8, TN_SHAPE(1), -0.9)), 0);
    ck_assert_int_eq(tn_get_i64(tn_full_of(TN_I64, TN_SHAPE(1), -0x1p63), 0), INT64_MIN);
    ck_assert_double_eq(tn_item(tn_full_of(TN_BOOL, TN_SHAPE(1), 0.25)), 1);
    ck_assert_double_eq(tn_item(tn_full_of(TN_BOOL, TN_SHAPE(1), NAN)), 1);
}

TEST(values_that_do_not_fit)
{
    const tn_shape s = TN_SHAPE(2);
    ck_refused(tn_full_of(TN_U8, s, 256), TN_EINVAL, "tn_full_of: value 256 does not fit u8, which holds 0 to 255");
    ck_refused(tn_full_of(TN_U8, s, -1), TN_EINVAL, "tn_full_of: value -1 does not fit u8, which holds 0 to 255");
    ck_refused(tn_full_of(TN_I32, s, 0x1p31), TN_EINVAL,
               "tn_full_of: value 2.14748e+09 does not fit i32, which holds -2147483648 to 2147483647");
    ck_refused(tn_full_of(TN_I64, s, 0x1p63), TN_EINVAL,
               "tn_full_of: value 9.22337e+18 does not fit i64, which holds -2^63 to 2^63 - 1");
    ck_refused(tn_full_of(TN_I64, s, NAN), TN_EINVAL,
               "tn_full_of: value nan does not fit i64, which holds -2^63 to 2^63 - 1");
    ck_refused(tn_scalar_of(TN_I32, -INFINITY), TN_EINVAL,
               "tn_scalar_of: value -inf does not fit i32, which holds -2147483648 to 2147483647");
    ck_refused(tn_full(s, 1e39), TN_EINVAL, "tn_full: value 1e+39 is too large for f32");
    ck_refused(tn_full_of(TN_BF16, s, 3.4e38), TN_EINVAL, "tn_full_of: value 3.4e+38 is too large for bf16");
    ck_refused(tn_full_like(tn_zeros_of(TN_U8, s), 1000), TN_EINVAL,
               "tn_full_like: value 1000 does not fit u8, which holds 0 to 255");
}

TEST(bad_shapes_and_types)
{
    const tn_shape nine = {.n = 9, .d = {1, 1, 1, 1, 1, 1, 1, 1}}, minus = {.n = -1, .d = {0}};
    const int64_t  huge = (int64_t)1 << 62;
    ck_refused(tn_zeros(TN_SHAPE(2, -3)), TN_ESHAPE, "tn_zeros: [2, -3] has a negative size in dim 1");
    ck_refused(tn_empty(nine), TN_ESHAPE, "tn_empty: a shape has 0 to 8 dims, got 9");
    ck_refused(tn_empty(minus), TN_ESHAPE, "tn_empty: a shape has 0 to 8 dims, got -1");
    ck_refused(tn_ones(TN_SHAPE(huge)), TN_ESHAPE,
               "tn_ones: [4611686018427387904] is too large: its bytes do not fit in 63 bits");
    ck_refused(tn_empty_of(TN_U8, TN_SHAPE(huge, 4)), TN_ESHAPE,
               "tn_empty_of: [4611686018427387904, 4] is too large: its bytes do not fit in 63 bits");
    ck_refused(tn_zeros(TN_SHAPE(0, huge, huge)), TN_ESHAPE,
               "tn_zeros: [0, 4611686018427387904, 4611686018427387904] is too large: its bytes do not fit in 63 bits");
    ck_refused(tn_zeros_of((tn_dtype)7, TN_SHAPE(2)), TN_EDTYPE, "tn_zeros_of: 7 is not a dtype");
    ck_refused(tn_full_of((tn_dtype)-1, TN_SHAPE(2), 0), TN_EDTYPE, "tn_full_of: -1 is not a dtype");
    ck_refused(tn_arange_of((tn_dtype)70, 0, 1, 1), TN_EDTYPE, "tn_arange_of: 70 is not a dtype");
    ck_refused(tn_linspace_of((tn_dtype)70, 0, 1, 1), TN_EDTYPE, "tn_linspace_of: 70 is not a dtype");
    ck_refused(tn_eye_of((tn_dtype)70, 1, 1), TN_EDTYPE, "tn_eye_of: 70 is not a dtype");
    ck_refused(tn_from_data((tn_dtype)70, TN_SHAPE(1), ""), TN_EDTYPE, "tn_from_data: 70 is not a dtype");
    ck_refused(tn_eye(-1, 2), TN_ESHAPE, "tn_eye: [-1, 2] has a negative size in dim 0");
    ck_refused(tn_zeros_like(NULL), TN_EINVAL, "tn_zeros_like: t is NULL");
    ck_refused(tn_empty_like(NULL), TN_EINVAL, "tn_empty_like: t is NULL");

    const int64_t terabytes = (int64_t)1 << 44;
    ck_refused_code(tn_empty_of(TN_F64, TN_SHAPE(terabytes)), TN_ENOMEM);
}

TEST(nothing_is_made_while_an_error_stands)
{
    tn_tensor *t = tn_zeros(TN_SHAPE(2));
    double     data[2] = {0};
    tn_raise(TN_EINVAL, "planted");
    ck_assert_ptr_null(tn_empty(TN_SHAPE(2)));
    ck_assert_ptr_null(tn_zeros(TN_SHAPE(2)));
    ck_assert_ptr_null(tn_full(TN_SHAPE(2), 1e300));
    ck_assert_ptr_null(tn_ones_like(t));
    ck_assert_ptr_null(tn_ones_like(NULL));
    ck_assert_ptr_null(tn_empty_like(t));
    ck_assert_ptr_null(tn_scalar(1));
    ck_assert_ptr_null(tn_arange(3));
    ck_assert_ptr_null(tn_arange_of(TN_F32, 0, 1, 1));
    ck_assert_ptr_null(tn_linspace(0, 1, 3));
    ck_assert_ptr_null(tn_eye(2, 2));
    ck_assert_ptr_null(tn_from_data(TN_F64, TN_SHAPE(2), data));
    ck_assert_str_eq(tn_error_message(), "planted (12 later calls skipped)");
    tn_clear_error();
}

/* ---- counted -------------------------------------------------------------------------------------------------- */

TEST(arange)
{
    tn_tensor *t = tn_arange(100000);
    ck_assert_int_eq(tn_dtype_of(t), TN_I64);
    ck_assert_int_eq(tn_numel(t), 100000);
    for (int64_t i = 0; i < 100000; i++) EACH(tn_get_i64(t, i) == i);
    ck_assert_int_eq(tn_numel(tn_arange(0)), 0);
    ck_refused(tn_arange(-1), TN_EINVAL, "tn_arange: n is -1, but must not be negative");
}

TEST(arange_with_steps)
{
    static const struct {
        tn_dtype dt;
        double   start, end, step;
        int64_t  n;
        double   values[10];
    } rows[] = {{TN_F32, 0, 1, 0.25, 4, {0, 0.25, 0.5, 0.75}},
                {TN_F64, 0, 1, 0.1, 10, {0, 0.1, 0.2, 3 * 0.1, 0.4, 0.5, 6 * 0.1, 7 * 0.1, 0.8, 0.9}},
                {TN_F64, 1, 1.3, 0.1, 3, {1, 1.1, 1.2}}, /* PyTorch has a fourth, 1.3 */
                {TN_F64, 0, 0.3, 0.1, 3, {0, 0.1, 0.2}},
                {TN_I64, 5, -6, -3, 4, {5, 2, -1, -4}},
                {TN_I64, 0, 2.5, 1, 3, {0, 1, 2}},
                {TN_I32, -3, 3, 2, 3, {-3, -1, 1}},
                {TN_U8, 250, 256, 1, 6, {250, 251, 252, 253, 254, 255}},
                {TN_BF16, 0, 3, 1.5, 2, {0, 1.5}},
                {TN_F32, 2, 2, 1, 0, {0}},
                {TN_F32, 0, -1, -0.5, 2, {0, -0.5}},
                {TN_F32, 0, 1, 1e30, 1, {0}}};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        tn_tensor *t = tn_arange_of(rows[r].dt, rows[r].start, rows[r].end, rows[r].step);
        ck_assert_ptr_nonnull(t);
        ck_assert_int_eq(tn_dtype_of(t), rows[r].dt);
        ck_assert_msg(tn_numel(t) == rows[r].n, "row %d has %d elements", (int)r, (int)tn_numel(t));
        for (int64_t i = 0; i < rows[r].n; i++) EACH(tn_get(t, i) == rows[r].values[i]);
    }
    ck_refused(tn_arange_of(TN_F32, 0, 1, 0), TN_EINVAL, "tn_arange_of: step is 0");
    ck_refused(tn_arange_of(TN_F32, 0, 1, -0.5), TN_EINVAL,
               "tn_arange_of: from 0 to 1 by steps of -0.5 never reaches the end");
    ck_refused(tn_arange_of(TN_F32, 1, 0, 0.5), TN_EINVAL,
               "tn_arange_of: from 1 to 0 by steps of 0.5 never reaches the end");
    ck_refused(tn_arange_of(TN_F32, 0, NAN, 1), TN_EINVAL, "tn_arange_of: end is nan, but must be finite");
    ck_refused(tn_arange_of(TN_F64, 0, 1e300, 1e-300), TN_EINVAL,
               "tn_arange_of: from 0 to 1e+300 by steps of 1e-300 is too long");
    ck_refused(tn_arange_of(TN_F64, -1e308, 1e308, 1), TN_EINVAL,
               "tn_arange_of: from -1e+308 to 1e+308 by steps of 1 is too long");
    ck_refused(tn_arange_of(TN_I64, 0, 5, 0.5), TN_EINVAL, "tn_arange_of: step is 0.5, but must be an integer for i64");
    ck_refused(tn_arange_of(TN_I64, 0.5, 5, 1), TN_EINVAL,
               "tn_arange_of: start is 0.5, but must be an integer for i64");
    ck_refused(tn_arange_of(TN_BOOL, 0, 1, 1), TN_EDTYPE, "tn_arange_of: dtype bool cannot count");
    ck_refused(tn_arange_of(TN_U8, 250, 257, 1), TN_EINVAL,
               "tn_arange_of: the last element 256 does not fit u8, which holds 0 to 255");
    ck_refused(tn_arange_of(TN_U8, -1, 3, 1), TN_EINVAL,
               "tn_arange_of: start -1 does not fit u8, which holds 0 to 255");
}

TEST(linspace)
{
    static const struct {
        double  start, end;
        int64_t steps;
    } rows[] = {{0, 1, 7},     {-0.3, 0.9, 6}, {-1, 1, 5},           {1, 0, 3},
                {0.1, 0.1, 4}, {3, 7, 2},      {-8e307, 1.6e308, 5}, {0, 1, 40000}};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        const double  a = rows[r].start, b = rows[r].end;
        const int64_t n = rows[r].steps;
        tn_tensor    *t = tn_linspace_of(TN_F64, a, b, n), *mirror = tn_linspace_of(TN_F64, b, a, n);
        ck_assert_int_eq(tn_numel(t), n);
        ck_assert_double_eq(tn_get(t, 0), a);
        ck_assert_double_eq(tn_get(t, n - 1), b);
        for (int64_t i = 0; i < n; i++) {
            const double part = (double)i / (double)(n - 1);
            EACH(fabs(tn_get(t, i) - (a * (1 - part) + b * part)) <= 4e-16 * (fabs(a) + fabs(b)));
            if (i != n / 2) EACH(tn_get(t, i) == tn_get(mirror, n - 1 - i));
        }
    }
    static const float sevenths[] = {0, 0x1.555556p-3f, 0x1.555556p-2f, 0.5f, 0x1.555556p-1f, 0x1.aaaaaap-1f, 1};
    tn_tensor         *t = tn_linspace(0, 1, 7);
    ck_assert_int_eq(tn_dtype_of(t), TN_F32);
    for (int64_t i = 0; i < 7; i++) ck_assert_double_eq(tn_get(t, i), (double)sevenths[i]);
    static const int64_t whole[] = {0, 2, 5, 7, 10}; /* as in PyTorch */
    t = tn_linspace_of(TN_I64, 0, 10, 5);
    for (int64_t i = 0; i < 5; i++) ck_assert_int_eq(tn_get_i64(t, i), whole[i]);
    all_are(tn_linspace(3, 9, 1), TN_F32, TN_SHAPE(1), 3);
    ck_assert_int_eq(tn_numel(tn_linspace(3, 9, 0)), 0);
    ck_refused(tn_linspace(0, 1, -1), TN_EINVAL, "tn_linspace: steps is -1, but must not be negative");
    ck_refused(tn_linspace(0, INFINITY, 3), TN_EINVAL, "tn_linspace: end is inf, but must be finite");
    ck_refused(tn_linspace(1e39, 0, 3), TN_EINVAL, "tn_linspace: start 1e+39 is too large for f32");
    ck_refused(tn_linspace_of(TN_U8, 0, 256, 3), TN_EINVAL,
               "tn_linspace_of: end 256 does not fit u8, which holds 0 to 255");
    ck_refused(tn_linspace_of(TN_BOOL, 0, 1, 3), TN_EDTYPE, "tn_linspace_of: dtype bool cannot count");
}

TEST_EACH(eye, TYPES)
{
    static const int64_t sizes[][2] = {{3, 3}, {2, 5}, {5, 2}, {1, 1}, {0, 4}, {4, 0}};
    for (int k = 0; k < 6; k++) {
        const int64_t rows = sizes[k][0], cols = sizes[k][1];
        tn_tensor    *t = tn_eye_of(types[_i], rows, cols);
        ck_assert_int_eq(tn_dtype_of(t), types[_i]);
        ck_assert(tn_shape_equal(tn_shape_of(t), TN_SHAPE(rows, cols)));
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < cols; j++) EACH(tn_get(t, i * cols + j) == (i == j));
    }
    ck_assert_int_eq(tn_dtype_of(tn_eye(2, 2)), TN_F32);
}

/* ---- from host memory -------------------------------------------------------------------------------------------- */

TEST(from_data)
{
    float          f[6] = {1, 2, 3, 4, 5, 6};
    const uint16_t b[2] = {0x3f80, 0xc000};
    const uint8_t  truths[4] = {0, 1, 2, 255};
    tn_tensor     *t = tn_from_data(TN_F32, TN_SHAPE(2, 3), f);
    f[0] = 100; /* it was copied */
    for (int64_t i = 0; i < 6; i++) ck_assert_double_eq(tn_get(t, i), (double)(i + 1));
    t = tn_from_data(TN_BF16, TN_SHAPE(2), b);
    ck_assert_double_eq(tn_get(t, 0), 1);
    ck_assert_double_eq(tn_get(t, 1), -2);
    t = tn_from_data(TN_BOOL, TN_SHAPE(4), truths);
    for (int64_t i = 0; i < 4; i++)
        ck_assert_int_eq(((const uint8_t *)tn_data(t))[i], i > 0); /* 0 or 1, nothing else */

    static int64_t many[50000];
    for (int64_t i = 0; i < 50000; i++) many[i] = i * i;
    ck_assert_mem_eq(tn_data(tn_from_data(TN_I64, TN_SHAPE(50000), many)), many, sizeof many);

    char bytes[8 * 3 + 1]; /* at an odd address */
    for (int k = 0; k < 3; k++) memcpy(bytes + 1 + 8 * k, &(double){k + 0.5}, 8);
    t = tn_from_data(TN_F64, TN_SHAPE(3), bytes + 1);
    for (int64_t i = 0; i < 3; i++) ck_assert_double_eq(tn_get(t, i), (double)i + 0.5);

    ck_assert_int_eq(tn_numel(tn_from_data(TN_F32, TN_SHAPE(3, 0), NULL)), 0);
    ck_refused(tn_from_data(TN_F32, TN_SHAPE(3), NULL), TN_EINVAL,
               "tn_from_data: data is NULL, but the shape has 3 elements");
    ck_refused(tn_from_data(TN_F32, TN_SHAPE(-3), f), TN_ESHAPE, "tn_from_data: [-3] has a negative size in dim 0");
}

static int   releases;
static void *released[2];
static void  release(void *data, void *user) { releases++, released[0] = data, released[1] = user; }

TEST(borrow)
{
    double     data[6] = {1, 2, 3, 4, 5, 6};
    int        user;
    tn_scope   s = tn_scope_begin();
    tn_tensor *t = tn_borrow(TN_F64, TN_SHAPE(2, 3), data, release, &user);
    releases = 0;
    ck_assert_ptr_eq(tn_data(t), data);
    data[4] = 50;
    ck_assert_double_eq(tn_get(t, 4), 50);
    ck_assert_int_eq(tn_set(t, 0, -1), TN_OK);
    ck_assert_double_eq(data[0], -1);
    tn_tensor *view = tn_keep(tn__alias(t, &t->l)); /* the storage lives as long as any handle on it */
    tn_scope_end(s);
    ck_assert_int_eq(releases, 0);
    ck_assert_double_eq(tn_get(view, 5), 6);
    tn_drop(view);
    ck_assert_int_eq(releases, 1);
    ck_assert_ptr_eq(released[0], data);
    ck_assert_ptr_eq(released[1], &user);

    s = tn_scope_begin();
    ck_assert_ptr_nonnull(tn_borrow(TN_F64, TN_SHAPE(6), data, NULL, NULL));
    ck_assert_ptr_nonnull(tn_borrow(TN_F64, TN_SHAPE(0), NULL, NULL, NULL));
    tn_scope_end(s);
}

/* Memory that could not be borrowed stays with the caller: release is not called. */
TEST(borrow_that_fails)
{
    double data[2] = {1, 2};
    releases = 0;
    ck_refused(tn_borrow(TN_F64, TN_SHAPE(2), NULL, release, NULL), TN_EINVAL,
               "tn_borrow: data is NULL, but the shape has 2 elements");
    ck_refused(tn_borrow(TN_F64, TN_SHAPE(1), (char *)data + 4, release, NULL), TN_EINVAL,
               "tn_borrow: data is not aligned for f64; copy it with tn_from_data");
    ck_refused(tn_borrow(TN_F64, TN_SHAPE(-2), data, release, NULL), TN_ESHAPE,
               "tn_borrow: [-2] has a negative size in dim 0");
    tn_trim();
    for (size_t room = 0; room < 4096; room += 64) {
        tn_set_memory_limit(tn_memory_now().live + room);
        tn_scope   s = tn_scope_begin();
        tn_tensor *t = tn_borrow(TN_F64, TN_SHAPE(2), data, release, NULL);
        ck_assert_int_eq(releases, 0);
        tn_set_memory_limit(0);
        tn_scope_end(s);
        ck_assert_int_eq(releases, t != NULL);
        ck_assert_int_eq(tn_error(), t ? TN_OK : TN_ENOMEM);
        ck_assert(room > 0 || !t);
        tn_clear_error();
        releases = 0;
        if (t) break;
    }
    tn_raise(TN_EINVAL, "planted");
    ck_assert_ptr_null(tn_borrow(TN_F64, TN_SHAPE(2), data, release, NULL));
    tn_clear_error();
    ck_assert_int_eq(releases, 0);
}
