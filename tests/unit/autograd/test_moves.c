/* test_moves.c — copies and conversions, joining, cutting and moving: each result against index arithmetic, for all
 * dtypes. Checks that apply to every op are in test_ops.c. */
#include "tests/common/check_main.h"

#include "autograd/autograd.h"
#include "core/base/thread.h"

enum { DTYPES = 7 };

/* ---- conversion: every pair of dtypes ---------------------------------------------------------------------------- */

/* The values of each dtype in this test, as doubles. All are exact in their dtype. */
static int values_of(tn_dtype dt, double *v)
{
    static const double real[] = {0,      -0.0, 1,     -1,          2.5,          -2.5,         3.5,    255,
                                  256,    300,  -129,  2147483648., -2147483648., -4294967296., 0x1p62, -0x1p63,
                                  0x1p63, 1e30, -1e30, NAN,         INFINITY,     -INFINITY};
    static const double whole[] = {
        0, 1, -1, 2, 255, 256, 300, -129, 2147483647., -2147483648., 2147483648., 0x1p40, -0x1p40, 0x1p62, -0x1p63};
    int n = 0;
    for (size_t i = 0; tn_dtype_is_float(dt) && i < sizeof real / sizeof *real; i++) {
        v[n] = real[i];
        if (dt != TN_F64) v[n] = (double)(float)v[n];
        if (dt == TN_BF16 && (v[n] == 255 || v[n] == 300 || fabs(v[n]) == 129 || fabs(v[n]) > 1e29)) continue;
        n++;
    }
    for (size_t i = 0; !tn_dtype_is_float(dt) && i < sizeof whole / sizeof *whole; i++) {
        const double low[] = {[TN_I64] = -0x1p63, [TN_I32] = -0x1p31, [TN_U8] = 0, [TN_BOOL] = 0};
        const double high[] = {[TN_I64] = 0x1p62, [TN_I32] = 0x1p31 - 1, [TN_U8] = 255, [TN_BOOL] = 1};
        if (whole[i] >= low[dt] && whole[i] <= high[dt]) v[n++] = whole[i];
    }
    return n;
}

/* The value of the low bits of an integer; from 2^63 on the integer counts as INT64_MAX. */
static double low_bits(double whole, double range, bool sign)
{
    double low = whole >= 0x1p63 ? range - 1 : whole < -0x1p63 ? 0 : fmod(whole, range);
    if (low < 0) low += range;
    return sign && low >= range / 2 ? low - range : low + 0.0;
}

/* v converted to another dtype: the reference. */
static double converted(double v, tn_dtype from, tn_dtype to)
{
    if (to == TN_F64) return v;
    if (to == TN_F32) return (double)(float)v;
    if (to == TN_BOOL) return v != 0;
    if (to == TN_BF16) {
        if (v - v != 0 || v == 0) return v;
        int          e;
        const double f = frexp((double)(float)v, &e) * 256; /* 8 bits, ties to even */
        return ldexp(nearbyint(f), e - 8);
    }
    const double whole = isnan(v) ? 0 : trunc(v) + 0.0; /* no -0 among integers */
    if (to == TN_U8) return low_bits(whole, 256, false);
    if (to == TN_I32 && from == TN_I64) return low_bits(whole, 0x1p32, true);
    const double most = to == TN_I64 ? 0x1p63 : 0x1p31 - 1, least = to == TN_I64 ? -0x1p63 : -0x1p31;
    return whole > most ? most : whole < least ? least : whole; /* INT64_MAX reads back as 2^63 */
}

TEST_EACH(conversions, DTYPES *DTYPES)
{
    const tn_dtype from = (tn_dtype)(_i / DTYPES), to = (tn_dtype)(_i % DTYPES);
    double         v[64];
    const int      n = values_of(from, v);
    tn_tensor     *same = tn_to(tn_from_data(TN_F64, TN_SHAPE(n), v), from), *wide = tn_zeros_of(from, TN_SHAPE(n, 3));
    if (from == TN_I64) tn_set_i64(same, n - 1, INT64_MAX), v[n - 1] = 0x1p63;
    tn_copy_(tn_select(wide, 1, 1), same);
    tn_tensor *dense = tn_to(same, to), *strided = tn_to(tn_select(wide, 1, 1), to);
    ck_assert_msg(strided, "%s", tn_error_message());
    ck_assert_int_eq(tn_dtype_of(dense), to);
    ck_assert_int_eq(dense == same, from == to);
    for (int i = 0; i < n; i++) {
        const double should = converted(v[i], from, to), is = tn_get(dense, i);
        ck_assert_msg((isnan(is) && isnan(should)) || (is == should && signbit(is) == signbit(should)),
                      "%s %g to %s: %g, should be %g", tn_dtype_name(from), v[i], tn_dtype_name(to), is, should);
        ck_assert(!memcmp(&(double){tn_get(strided, i)}, &is, sizeof is) || isnan(is));
    }
}

TEST(conversions_pass_gradients)
{
    tn_tensor *x = tn_requires_grad(tn_from_data(TN_F64, TN_SHAPE(3), (double[]){1, 2, 3}));
    tn_tensor *y = tn_to(tn_to(tn_to(x, TN_F32), TN_BF16), TN_F64);
    tn_backward(tn_sum(tn_mul(y, tn_from_data(TN_F64, TN_SHAPE(3), (double[]){1, -0.5, 0.25}))));
    ck_assert_int_eq(tn_dtype_of(tn_grad(x)), TN_F64);
    ck_assert_double_eq(tn_get(tn_grad(x), 1), -0.5);
    ck_assert(tn_needs_grad(tn_to(x, TN_BF16)));
    for (tn_dtype dt = TN_I64; dt <= TN_BOOL; dt++) ck_assert(!tn_needs_grad(tn_to(x, dt)));
}

TEST(what_need_not_be_copied_is_not)
{
    tn_tensor *x = tn_zeros(TN_SHAPE(4, 6)), *t = tn_transpose(x, 0, 1);
    ck_assert_ptr_eq(tn_contiguous(x), x);
    ck_assert_ptr_eq(tn_to(x, TN_F32), x);
    ck_assert_ptr_eq(tn_to(t, TN_F32), t);
    ck_assert_ptr_ne(tn_contiguous(t), t);
    ck_assert(tn_is_contiguous(tn_contiguous(t)) && !tn_shares_memory(tn_contiguous(t), x));
    ck_assert(tn_is_contiguous(tn_clone(t)) && !tn_shares_memory(tn_clone(x), x));
    tn_tensor *row = tn_select(x, 0, 1);
    ck_assert_ptr_eq(tn_contiguous(row), row);
}

/* A tensor large enough for full squares and for parts at their borders, in every order of its dims: copied from that
 * order, and to it. */
TEST_EACH(large_copies, DTYPES)
{
    const tn_dtype dt = (tn_dtype)_i;
    const tn_shape s = TN_SHAPE(2, 9, 133, 5);
    tn_tensor     *x = tn_empty_of(dt, s), *back = tn_empty_of(dt, s);
    const int64_t  n = tn_numel(x);
    for (int64_t k = 0; k < n; k++) tn_set_i64(x, k, dt == TN_BOOL ? k * k / 7 % 2 : k % 251);
    const size_t  bytes = (size_t)n * tn_dtype_size(dt);
    const int64_t stride[4] = {9 * 133 * 5, 133 * 5, 5, 1};
    for (int order = 0; order < 24; order += tn_test_slow() ? 5 : 1) {
        tn_dims d = {.n = 4, .d = {order / 6, order / 2 % 3, order % 2, 0}};
        for (int i = 3; i >= 0; i--) /* the i-th of those not yet taken */
            for (int k = i + 1; k < 4; k++) d.d[k] += d.d[k] >= d.d[i];
        tn_scope   scope = tn_scope_begin();
        tn_tensor *seen = tn_permute(x, d), *copy = NULL;
        ck_assert_msg(seen, "%s", tn_error_message());
        for (int threads = 1; threads <= 7; threads += 3) {
            tn_set_threads(threads);
            tn__self.shrink = threads == 7 ? 5000 : 0;
            copy = tn_clone(seen);
            const tn_shape c = tn_shape_of(copy);
            int64_t        k = 0;
            for (int64_t i0 = 0; i0 < c.d[0]; i0++)
                for (int64_t i1 = 0; i1 < c.d[1]; i1++)
                    for (int64_t i2 = 0; i2 < c.d[2]; i2++)
                        for (int64_t i3 = 0; i3 < c.d[3]; i3++) {
                            const int64_t at =
                                i0 * stride[d.d[0]] + i1 * stride[d.d[1]] + i2 * stride[d.d[2]] + i3 * stride[d.d[3]];
                            const size_t size = tn_dtype_size(dt);
                            ck_assert(!memcmp((const char *)tn_data(copy) + (size_t)k++ * size,
                                              (const char *)tn_data(x) + (size_t)at * size, size));
                        }
            tn_fill(back, 1);
            tn_copy_(tn_permute(back, d), copy);
            ck_assert_mem_eq(tn_data(back), tn_data(x), bytes);
        }
        tn__self.shrink = 0;
        tn_set_threads(0);
        tn_scope_end(scope);
    }
}

/* ---- copy_ ------------------------------------------------------------------------------------------------------- */

TEST(copy_over)
{
    tn_tensor *x = tn_ones_of(TN_I32, TN_SHAPE(2, 3));
    ck_assert_ptr_eq(tn_copy_(x, tn_from_data(TN_F32, TN_SHAPE(3), (float[]){1.9f, -1.9f, 7})), x);
    static const int32_t should[] = {1, -1, 7, 1, -1, 7};
    ck_assert_mem_eq(tn_data(x), should, sizeof should);
    tn_copy_(tn_select(x, 1, 0), tn_scalar(5));
    ck_assert_int_eq(tn_get_i64(x, 3), 5);

    tn_tensor *row = tn_arange(6); /* over itself, shifted in both directions */
    tn_copy_(tn_narrow(row, 0, 1, 5), tn_narrow(row, 0, 0, 5));
    for (int64_t i = 0; i < 6; i++) ck_assert_int_eq(tn_get_i64(row, i), i ? i - 1 : 0);
    tn_copy_(tn_narrow(row, 0, 0, 5), tn_narrow(row, 0, 1, 5));
    for (int64_t i = 0; i < 6; i++) ck_assert_int_eq(tn_get_i64(row, i), i < 5 ? i : 4);
    tn_tensor *square = tn_view(tn_arange(9), TN_SHAPE(3, 3));
    tn_copy_(square, tn_transpose(square, 0, 1));
    for (int64_t i = 0; i < 9; i++) ck_assert_int_eq(tn_get_i64(square, i), i % 3 * 3 + i / 3);
    tn_copy_(row, row);
    ck_assert_int_eq(tn_get_i64(row, 5), 4);
}

TEST(copy_on_the_tape)
{
    tn_tensor *x = tn_requires_grad(tn_full(TN_SHAPE(2, 3), 2)),
              *src = tn_requires_grad(tn_full_of(TN_F64, TN_SHAPE(3), 5));
    tn_tensor *y = tn_mul(x, x), *seen = tn_sum(y);
    tn_copy_(y, src);
    tn_tensor *loss = tn_add(tn_sum(tn_mul_scalar(y, 3)), tn_mul_scalar(seen, 0.5));
    ck_assert_double_eq(tn_item(loss), 6 * 15 + 12);
    tn_backward(loss);
    ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
    for (int64_t i = 0; i < 6; i++)
        ck_assert_double_eq(tn_get(tn_grad(x), i), 2); /* 0.5 · 2x: nothing through y's new values */
    for (int64_t i = 0; i < 3; i++) ck_assert_double_eq(tn_get(tn_grad(src), i), 6);
    ck_assert_int_eq(tn_dtype_of(tn_grad(src)), TN_F64);
    tn_tensor *plain = tn_zeros(TN_SHAPE(3)); /* an overwritten constant is on the tape */
    ck_assert(tn_needs_grad(tn_copy_(plain, src)));
    ck_refused(tn_copy_(x, src), TN_ESTATE,
               "copy_: this tensor collects gradients and cannot be overwritten on the tape; change it between "
               "tn_no_grad_begin() and tn_scope_end()");
    ck_refused(tn_copy_(tn_expand(tn_zeros(TN_SHAPE(1)), TN_SHAPE(3)), src), TN_EINVAL,
               "copy_: several elements of the target share memory (it is expanded, or made of overlapping windows); "
               "tn_clone it first");
    ck_refused(
        tn_mul_scalar_(tn_unfold(tn_ones(TN_SHAPE(5)), 0, 3, 1), 2), TN_EINVAL,
        "mul_scalar_: several elements of the target share memory (it is expanded, or made of overlapping windows); "
        "tn_clone it first");
    ck_refused(tn_copy_(tn_zeros(TN_SHAPE(3)), NULL), TN_EINVAL, "copy: input 1 is NULL");
    ck_refused(tn_copy_(NULL, src), TN_EINVAL, "copy_: the target is NULL");
}

/* ---- cutting ----------------------------------------------------------------------------------------------------- */

TEST(split_and_chunk)
{
    tn_tensor *x = tn_view(tn_arange(30), TN_SHAPE(10, 3)), *out[16];
    for (int64_t part = 1; part <= 12; part++) {
        const int n = tn_split(x, part, -2, 16, out);
        int64_t   row = 0;
        ck_assert_int_eq(n, (10 + part - 1) / part);
        for (int i = 0; i < n; i++) {
            ck_assert_int_eq(tn_size(out[i], 0), i < n - 1 || 10 % part == 0 ? part < 10 ? part : 10 : 10 % part);
            ck_assert(tn_shares_memory(out[i], x));
            for (int64_t k = 0; k < tn_numel(out[i]); k++) ck_assert_int_eq(tn_get_i64(out[i], k), row * 3 + k);
            row += tn_size(out[i], 0);
        }
        ck_assert_int_eq(row, 10);
    }
    static const int counts[] = {0, 1, 2, 3,  4,  5, 5,
                                 5, 5, 5, 10, 10, 10}; /* PyTorch's: at most the requested number */
    for (int64_t chunks = 1; chunks <= 12; chunks++) {
        ck_assert_int_eq(tn_chunk(x, chunks, 0, 16, out), counts[chunks]);
        ck_assert_int_eq(tn_size(out[0], 0), (10 + chunks - 1) / chunks);
    }
    tn_tensor *none = tn_zeros(TN_SHAPE(2, 0));
    ck_assert_int_eq(tn_split(none, 4, 1, 16, out), 1);
    ck_assert_int_eq(tn_split(none, 0, 1, 16, out), 1);
    ck_assert_int_eq(tn_chunk(none, 3, 1, 16, out), 3);
    ck_assert_int_eq(tn_numel(out[2]), 0);
    ck_assert_int_eq(tn_chunk(x, INT64_MAX, 1, 16, out), 3);

    ck_assert_int_eq(tn_split(x, 3, 0, 3, out), 0);
    ck_refused(NULL, TN_EINVAL, "split: dim 0 of size 10 gives 4 parts, out has room for 3");
    ck_assert_int_eq(tn_split(x, 3, 0, 16, NULL), 0);
    ck_refused(NULL, TN_EINVAL, "split: dim 0 of size 10 gives 4 parts, out has room for 0");
    ck_assert_int_eq(tn_split(x, 0, 0, 16, out), 0);
    ck_refused(NULL, TN_EINVAL, "split: the size of a part must be at least 1, got 0");
    ck_assert_int_eq(tn_chunk(x, 0, 0, 16, out), 0);
    ck_refused(NULL, TN_EINVAL, "chunk: the number of chunks must be at least 1, got 0");
    ck_assert_int_eq(tn_chunk(none, INT64_MAX, 1, 16, out), 0);
    ck_refused(NULL, TN_EINVAL, "chunk: dim 1 of size 0 gives 9223372036854775807 parts, out has room for 16");
    ck_assert_int_eq(tn_chunk(x, 2, 2, 16, out), 0);
    ck_refused(NULL, TN_EINDEX, "chunk: dim 2 is out of range for a 2-d tensor");
    ck_assert_int_eq(tn_chunk(tn_scalar(1), 2, 0, 16, out), 0);
    ck_refused(NULL, TN_ESHAPE, "chunk: a 0-d tensor has no dim to split");
    ck_assert_int_eq(tn_split(NULL, 2, 0, 16, out), 0);
    ck_refused(NULL, TN_EINVAL, "split: the tensor is NULL");

    tn_tensor *w = tn_requires_grad(tn_ones(TN_SHAPE(7)));
    ck_assert_int_eq(tn_split(w, 3, 0, 16, out), 3);
    tn_backward(tn_add(tn_sum(tn_mul_scalar(out[0], 2)), tn_sum(out[2])));
    for (int64_t i = 0; i < 7; i++) ck_assert_double_eq(tn_get(tn_grad(w), i), i < 3 ? 2 : i < 6 ? 0 : 1);
}

/* ---- joining and moving, in every dtype -------------------------------------------------------------------------- */

enum { R = 3, C = 5 };

/* Element (i, j) of the input; only a few values, which every dtype can represent. */
static int64_t value(int64_t i, int64_t j) { return (i * 7 + j * 3) % 11 % 2 + (i + j) % 2; }

/* Compares y with f(i, j), converted to y's dtype. */
#define EVERY(y, rows, cols, expr)                                                                  \
    do {                                                                                            \
        tn_tensor *y_ = (y);                                                                        \
        ck_assert_msg(y_, "%s", tn_error_message());                                                \
        ck_assert_int_eq(tn_dtype_of(y_), dt);                                                      \
        ck_assert(tn_shape_equal(tn_shape_of(y_), TN_SHAPE(rows, cols)));                           \
        for (int64_t i = 0; i < (rows); i++)                                                        \
            for (int64_t j = 0; j < (cols); j++) {                                                  \
                const int64_t v_ = (expr);                                                          \
                ck_assert_int_eq((int64_t)tn_get(y_, i *(cols) + j), dt == TN_BOOL ? v_ != 0 : v_); \
            }                                                                                       \
    } while (0)

TEST_EACH(moves, 2 * DTYPES)
{
    const tn_dtype dt = (tn_dtype)(_i / 2);
    tn_tensor     *x = tn_zeros_of(dt, _i % 2 ? TN_SHAPE(C, R) : TN_SHAPE(R, C)); /* odd: a transposed view */
    if (_i % 2) x = tn_transpose(x, 0, 1);
    for (int64_t i = 0; i < R; i++)
        for (int64_t j = 0; j < C; j++) tn_set_at(x, TN_SHAPE(i, j), (double)value(i, j));
    EVERY(tn_clone(x), R, C, value(i, j));
    EVERY(tn_contiguous(x), R, C, value(i, j));
    EVERY(tn_cat(0, x, tn_narrow(x, 0, 1, 2), x), 2 * R + 2, C,
          value(i < R       ? i
                : i < R + 2 ? i - R + 1
                            : i - R - 2,
                j));
    EVERY(tn_cat(-1, x, tn_narrow(x, 1, 0, 2)), R, C + 2, value(i, j % C));
    EVERY(tn_reshape(tn_stack(1, x, x), TN_SHAPE(2 * R, C)), 2 * R, C, value(i / 2, j));
    EVERY(tn_reshape(tn_stack(-1, x, x), TN_SHAPE(R, 2 * C)), R, 2 * C, value(i, j / 2));
    EVERY(tn_pad(x, TN_SHAPE(1, 2), TN_SHAPE(2, 0), 1), R + 3, C + 2,
          i < 1 || i > R || j < 2 ? 1 : value(i - 1, j - 2));
    EVERY(tn_pad(x, TN_SHAPE(-1, 1), TN_SHAPE(2, -3), 1), R + 1, C - 2, i >= R - 1 || j < 1 ? 1 : value(i + 1, j - 1));
    for (int64_t d = -4; d <= 6; d++) {
        EVERY(tn_tril(x, d), R, C, j - i <= d ? value(i, j) : 0);
        EVERY(tn_triu(x, d), R, C, j - i >= d ? value(i, j) : 0);
        EVERY(tn_roll(x, d, 1), R, C, value(i, (j - d + 2 * C) % C));
        EVERY(tn_roll(x, d, 0), R, C, value((i - d + 2 * R) % R, j));
    }
    EVERY(tn_flip(x, TN_DIMS(0)), R, C, value(R - 1 - i, j));
    EVERY(tn_flip(x, TN_DIMS(-1)), R, C, value(i, C - 1 - j));
    EVERY(tn_flip(x, TN_DIMS(0, 1)), R, C, value(R - 1 - i, C - 1 - j));
    EVERY(tn_repeat(x, TN_SHAPE(5, 3)), 5 * R, 3 * C, value(i % R, j % C));
    EVERY(tn_reshape(tn_repeat(x, TN_SHAPE(2, 1, 2)), TN_SHAPE(2 * R, 2 * C)), 2 * R, 2 * C, value(i % R, j % C));
    EVERY(tn_repeat_interleave(x, 3, 0), 3 * R, C, value(i / 3, j));
    EVERY(tn_repeat_interleave(x, 3, -1), R, 3 * C, value(i, j / 3));
    EVERY(tn_reshape(tn_unfold(x, 1, 2, 3), TN_SHAPE(R, 4)), R, 4, value(i, j / 2 * 3 + j % 2));
    EVERY(tn_copy_(tn_ones_of(dt, TN_SHAPE(2, R, C)), x)
              ? tn_select(tn_copy_(tn_ones_of(dt, TN_SHAPE(2, R, C)), x), 0, 1)
              : NULL,
          R, C, value(i, j));
}

TEST(odd_cases)
{
    ck_refused(tn_cat_list(0, 0, NULL), TN_EINVAL, "cat: needs at least one tensor");
    ck_refused(tn_stack_list(0, 0, NULL), TN_EINVAL, "stack: needs at least one tensor");
    ck_refused(tn_cat(0, tn_zeros(TN_SHAPE(2)), NULL), TN_EINVAL, "cat: input 1 is NULL");
    tn_tensor *huge = tn_expand(tn_zeros(TN_SHAPE(1)), TN_SHAPE((int64_t)1 << 59)), *again[16];
    for (int i = 0; i < 16; i++) again[i] = huge;
    ck_refused(tn_cat_list(0, 16, again), TN_ESHAPE, "cat: the result is too large");
    ck_refused(tn_cat_list(0, 4, again), TN_ESHAPE,
               "cat: [2305843009213693952] is too large: its bytes do not fit in 63 bits");
    tn_tensor *many[100], *grown = tn_zeros(TN_SHAPE(0));
    for (int i = 0; i < 100; i++) {
        many[i] = tn_requires_grad(tn_full(TN_SHAPE(2), i));
        grown = tn_cat(0, grown, many[i]);
    }
    tn_tensor *at_once = tn_cat_list(0, 100, many), *rows = tn_stack_list(0, 100, many);
    for (int64_t i = 0; i < 200; i++) {
        ck_assert_double_eq(tn_get(grown, i), (double)(i / 2));
        ck_assert_double_eq(tn_get(at_once, i), (double)(i / 2));
        ck_assert_double_eq(tn_get(rows, i), (double)(i / 2));
    }
    tn_tensor *w = tn_to(tn_arange(200), TN_F32);
    tn_backward(tn_add(tn_sum(tn_mul(at_once, w)), tn_sum(tn_mul(tn_flatten(rows, 0, 1), w))));
    ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
    for (int i = 0; i < 100; i++) ck_assert_double_eq(tn_get(tn_grad(many[i]), 1), 2. * (2 * i + 1));
    ck_refused(tn_pad(tn_zeros_of(TN_U8, TN_SHAPE(1)), TN_SHAPE(1), TN_SHAPE(0), 257), TN_EINVAL,
               "pad: value 257 does not fit u8, which holds 0 to 255");
    ck_refused(tn_pad(NULL, TN_SCALAR, TN_SCALAR, 0), TN_EINVAL, "pad: input 0 is NULL");
    ck_refused(tn_tril(NULL, 0), TN_EINVAL, "tril: input 0 is NULL");
    ck_refused(tn_triu(NULL, 0), TN_EINVAL, "triu: input 0 is NULL");
    ck_refused(tn_roll(NULL, 1, 0), TN_EINVAL, "roll: input 0 is NULL");
    ck_refused(tn_flip(NULL, TN_DIMS(0)), TN_EINVAL, "flip: input 0 is NULL");
    ck_refused(tn_repeat(NULL, TN_SCALAR), TN_EINVAL, "repeat: input 0 is NULL");
    ck_refused(tn_repeat_interleave(NULL, 1, 0), TN_EINVAL, "repeat_interleave: input 0 is NULL");
}
