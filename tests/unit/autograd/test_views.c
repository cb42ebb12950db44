/* test_views.c — views: each shows the elements given by index arithmetic, in the same memory. Chains of views, and
 * their gradients, are in test_view_chains.c; checks that apply to every op are in test_ops.c.
 *
 * The bases hold 0, 1, 2 … in their memory, so that an element's value is its position. */
#include "tests/common/check_main.h"

#include "autograd/autograd.h"
#include "core/tensor/tensor.h"

enum { BASES = 5, D0 = 3, D1 = 4, D2 = 5 };

/* [3, 4, 5]: dense, permuted, a part of a larger tensor, with steps, expanded */
static tn_tensor *base(int kind)
{
    tn_tensor *x = NULL;
    switch (kind) {
    case 0: return tn_view(tn_arange(60), TN_SHAPE(D0, D1, D2));
    case 1: return tn_permute(tn_view(tn_arange(60), TN_SHAPE(D2, D0, D1)), TN_DIMS(1, 2, 0));
    case 2:
        x = tn_view(tn_arange(300), TN_SHAPE(5, 6, 10));
        return tn_narrow(tn_narrow(tn_narrow(x, 0, 1, D0), 1, 2, D1), 2, 3, D2);
    case 3:
        x = tn_view(tn_arange(480), TN_SHAPE(6, 8, 10));
        return tn_slice(tn_slice(tn_slice(x, 0, 1, 6, 2), 1, 0, 8, 2), 2, 1, 10, 2);
    default: return tn_expand(tn_view(tn_arange(15), TN_SHAPE(D0, 1, D2)), TN_SHAPE(D0, D1, D2));
    }
}

static const int64_t size[3] = {D0, D1, D2};
static int64_t at(const tn_tensor *x, const int64_t *i) { return (int64_t)tn_get_at(x, TN_SHAPE(i[0], i[1], i[2])); }

/* The elements that a view should show. */
static struct {
    int     n;
    int64_t v[4096];
} want;
static void expect(int64_t v) { want.v[want.n++] = v; }

static void check(const tn_tensor *y, const tn_tensor *x, tn_shape s)
{
    char a[192], b[192];
    ck_assert_msg(y, "%s", tn_error_message());
    ck_assert_msg(tn_shape_equal(tn_shape_of(y), s), "has shape %s, should have %s",
                  tn_shape_text(tn_shape_of(y), a, sizeof a), tn_shape_text(s, b, sizeof b));
    ck_assert(tn_shares_memory(x, y));
    ck_assert_int_eq(tn_numel(y), want.n);
    for (int64_t k = 0; k < want.n; k++) ck_assert_int_eq(tn_get_i64(y, k), want.v[k]);
    ck_assert_int_ge(y->l.offset, 0);
    ck_assert_int_le((int64_t)((y->l.offset + (want.n > 0)) * 8), (int64_t)y->storage->bytes);
    want.n = 0;
}

/* ---- geometry against index arithmetic --------------------------------------------------------------------------- */

/* All elements of x with i[dim] replaced by each of list: the reference for slice, narrow and select. */
static void expect_rows(const tn_tensor *x, int dim, const int64_t *list, int64_t n)
{
    int64_t i[3], range[3] = {D0, D1, D2};
    range[dim] = n;
    for (int64_t a = 0; a < range[0]; a++)
        for (int64_t b = 0; b < range[1]; b++)
            for (int64_t c = 0; c < range[2]; c++) {
                i[0] = a, i[1] = b, i[2] = c;
                i[dim] = list[i[dim]];
                expect(at(x, i));
            }
}

TEST_EACH(slices, BASES)
{
    tn_tensor *x = base(_i);
    for (int dim = 0; dim < 3; dim++)
        for (int64_t start = -7; start <= 7; start++)
            for (int64_t end = -7; end <= 7; end++)
                for (int64_t step = 1; step <= 3; step++) {
                    int64_t list[8], n = 0, from = start < 0 ? start + size[dim] : start,
                                     to = end < 0 ? end + size[dim] : end;
                    for (int64_t k = from < 0 ? 0 : from; k < to && k < size[dim]; k += step) list[n++] = k;
                    tn_shape s = {.n = 3, .d = {D0, D1, D2}};
                    s.d[dim] = n;
                    tn_scope scope = tn_scope_begin();
                    expect_rows(x, dim, list, n);
                    check(tn_slice(x, start % 2 ? dim : dim - 3, start, end, step), x, s);
                    tn_scope_end(scope);
                }
    int64_t every[] = {0, 1, 2, 3};
    expect_rows(x, 1, every, 4);
    check(tn_slice(x, 1, INT64_MIN, INT64_MAX, 1), x, TN_SHAPE(D0, D1, D2));
    expect_rows(x, 1, every + 2, 1);
    check(tn_slice(x, 1, 2, INT64_MAX, INT64_MAX), x, TN_SHAPE(D0, 1, D2));
}

TEST_EACH(narrows_and_selects, BASES)
{
    tn_tensor *x = base(_i);
    for (int dim = 0; dim < 3; dim++)
        for (int64_t start = -6; start <= 6; start++) {
            const int64_t n = size[dim], from = start < 0 ? start + n : start;
            int64_t       list[8];
            for (int64_t k = 0; k < 8; k++) list[k] = from + k;
            for (int64_t length = -1; length <= 6; length++) {
                tn_tensor *y = tn_narrow(x, dim, start, length);
                if (from < 0 || from > n || length < 0 || from + length > n) {
                    ck_refused_code(y, TN_EINDEX);
                    continue;
                }
                tn_shape s = {.n = 3, .d = {D0, D1, D2}};
                s.d[dim] = length;
                expect_rows(x, dim, list, length);
                check(y, x, s);
            }
            tn_tensor *y = tn_select(x, dim - 3, start);
            if (from < 0 || from >= n) {
                ck_refused_code(y, TN_EINDEX);
                continue;
            }
            tn_shape s = {.n = 2, .d = {dim == 0 ? D1 : D0, dim == 2 ? D1 : D2}};
            expect_rows(x, dim, list, 1);
            check(y, x, s);
        }
}

TEST_EACH(diagonals, BASES)
{
    tn_tensor *x = base(_i);
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 3; b++) {
            if (a == b) continue;
            const int rest = 3 - a - b;
            for (int64_t offset = -7; offset <= 7; offset++) {
                int64_t i[3], n = 0;
                for (i[rest] = 0; i[rest] < size[rest]; i[rest]++) {
                    n = 0;
                    for (i[a] = 0; i[a] < size[a]; i[a]++)
                        for (i[b] = 0; i[b] < size[b]; i[b]++)
                            if (i[b] - i[a] == offset) expect(at(x, i)), n++;
                }
                check(tn_diagonal(x, offset, a, b - 3), x, TN_SHAPE(size[rest], n));
            }
        }
}

TEST_EACH(unfolds, BASES)
{
    tn_tensor *x = base(_i);
    for (int dim = 0; dim < 3; dim++)
        for (int64_t window = 0; window <= size[dim]; window++)
            for (int64_t step = 1; step <= 6; step++) {
                tn_shape s = {.n = 4, .d = {D0, D1, D2, window}};
                int64_t  n = 0;
                for (int64_t k = 0; k + window <= size[dim]; k += step) n++;
                s.d[dim] = n;
                for (int64_t a = 0; a < s.d[0]; a++)
                    for (int64_t b = 0; b < s.d[1]; b++)
                        for (int64_t c = 0; c < s.d[2]; c++)
                            for (int64_t w = 0; w < window; w++) {
                                int64_t i[3] = {a, b, c};
                                i[dim] = i[dim] * step + w;
                                expect(at(x, i));
                            }
                check(tn_unfold(x, dim - 3, window, step), x, s);
            }
}

TEST_EACH(orders, BASES)
{
    tn_tensor *x = base(_i);
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 3; b++) {
            if (a != b) {
                const int order[3] = {a, b, 3 - a - b};
                int64_t   i[3];
                for (i[order[0]] = 0; i[order[0]] < size[order[0]]; i[order[0]]++)
                    for (i[order[1]] = 0; i[order[1]] < size[order[1]]; i[order[1]]++)
                        for (i[order[2]] = 0; i[order[2]] < size[order[2]]; i[order[2]]++) expect(at(x, i));
                check(tn_permute(x, TN_DIMS(a - 3, b, 3 - a - b)), x,
                      TN_SHAPE(size[order[0]], size[order[1]], size[order[2]]));
            }
            tn_dims swapped = {.n = 3, .d = {0, 1, 2}};
            swapped.d[a] = b, swapped.d[b] = a;
            tn_tensor *p = tn_permute(x, swapped), *t = tn_transpose(x, a, b - 3);
            ck_assert(tn_shape_equal(tn_shape_of(p), tn_shape_of(t)) &&
                      tn_shape_equal(tn_strides_of(p), tn_strides_of(t)));
        }
}

/* The strides that show x's elements, in order, as shape s, found from their positions; false if no strides do. */
static bool viewable(const tn_tensor *x, tn_shape s)
{
    const int64_t n = tn_numel(x);
    int64_t       stride[TN_MAX_DIMS], below = 1;
    for (int d = s.n - 1; d >= 0; d--) {
        stride[d] = s.d[d] > 1 ? tn_get_i64(x, below) - tn_get_i64(x, 0) : 0;
        below *= s.d[d];
    }
    for (int64_t k = 0; k < n; k++) {
        int64_t place = tn_get_i64(x, 0), rest = k;
        for (int d = s.n - 1; d >= 0; d--) place += rest % s.d[d] * stride[d], rest /= s.d[d];
        if (place != tn_get_i64(x, k)) return false;
    }
    return true;
}

TEST_EACH(reshapes, BASES)
{
    tn_tensor *x = base(_i);
    int        shown = 0, copied = 0;
    for (int64_t a = 1; a <= 60; a++)
        for (int64_t b = 1; b <= 60; b++)
            for (int64_t c = 1; c <= 60; c++) {
                if (60 % a || 60 % (a * b) || 60 % (a * b * c)) continue;
                tn_shape   s = {.n = 4, .d = {a, b, c, 60 / (a * b * c)}}, open = s;
                tn_scope   scope = tn_scope_begin();
                const bool can = viewable(x, s);
                open.d[(a + b) % 4] = -1;
                tn_tensor *y = tn_reshape(x, open), *v = tn_view(x, s);
                if (can) ck_assert_msg(v, "%s", tn_error_message());
                else ck_assert(!v && tn_error() == TN_ESHAPE);
                tn_clear_error();
                if (!can) y = tn_reshape(x, s), ck_assert(tn_is_contiguous(y));
                ck_assert(tn_shape_equal(tn_shape_of(y), s));
                ck_assert_int_eq(tn_shares_memory(x, y), can);
                for (int64_t k = 0; k < 60; k++) {
                    ck_assert_int_eq(tn_get_i64(y, k), tn_get_i64(x, k));
                    if (v) ck_assert_int_eq(tn_get_i64(v, k), tn_get_i64(x, k));
                }
                if (can) shown++;
                else copied++;
                tn_scope_end(scope);
            }
    ck_assert_int_gt(shown, 0);
    ck_assert_int_eq(copied == 0, _i == 0); /* only the dense one has a view of every shape */
    for (int first = 0; first < 3; first++)
        for (int last = first; last < 3; last++) {
            tn_tensor *y = tn_flatten(x, first, last - 3);
            ck_assert_int_eq(tn_ndim(y), 3 - (last - first));
            for (int64_t k = 0; k < 60; k++) ck_assert_int_eq(tn_get_i64(y, k), tn_get_i64(x, k));
        }
}

TEST_EACH(dims_of_size_one, BASES)
{
    tn_tensor *x = base(_i);
    for (int dim = -4; dim <= 3; dim++) {
        tn_tensor *y = tn_unsqueeze(x, dim);
        tn_shape   s = {.n = 4, .d = {D0, D1, D2, 1}};
        const int  d = dim < 0 ? dim + 4 : dim;
        for (int i = 3; i > d; i--) s.d[i] = s.d[i - 1];
        s.d[d] = 1;
        for (int64_t k = 0; k < 60; k++) expect(tn_get_i64(x, k));
        check(y, x, s);
        ck_assert(tn_shape_equal(tn_shape_of(tn_squeeze(y, dim)), tn_shape_of(x)));
        ck_assert(tn_shape_equal(tn_strides_of(tn_squeeze(y, TN_ALL)), tn_strides_of(x)));
        ck_assert(tn_shape_equal(tn_shape_of(tn_squeeze(y, (d + 1) % 4)), s)); /* a size other than 1 is kept */
    }
    tn_tensor *one = tn_expand(tn_narrow(x, 1, 2, 1), TN_SHAPE(2, -1, 4, D2));
    for (int64_t r = 0; r < 2; r++)
        for (int64_t a = 0; a < D0; a++)
            for (int64_t b = 0; b < 4; b++)
                for (int64_t c = 0; c < D2; c++) expect(at(x, (int64_t[]){a, 2, c}));
    check(one, x, TN_SHAPE(2, D0, 4, D2));
}

/* ---- one memory -------------------------------------------------------------------------------------------------- */

TEST(writes_show_through)
{
    tn_tensor *x = tn_zeros(TN_SHAPE(4, 6));
    tn_fill(tn_select(x, 0, 1), 1);
    tn_fill(tn_slice(x, 1, 0, 6, 2), 2);
    tn_fill(tn_diagonal(x, 0, 0, 1), 3);
    tn_set_at(tn_transpose(x, 0, 1), TN_SHAPE(5, 0), 4);
    tn_set_at(tn_view(x, TN_SHAPE(2, 12)), TN_SHAPE(1, 11), 5);
    tn_fill(tn_narrow(tn_narrow(x, 0, 2, 1), 1, 3, 2), 6);
    tn_set_at(tn_unfold(tn_select(x, 0, 3), 0, 2, 3), TN_SHAPE(0, 1), 7);
    static const float should[4][6] = {{3, 0, 2, 0, 2, 4}, {2, 3, 2, 1, 2, 1}, {2, 0, 3, 6, 6, 0}, {2, 7, 2, 3, 2, 5}};
    ck_assert_mem_eq(tn_data(x), should, sizeof should);
    tn_tensor *copy = tn_clone(x), *reshaped = tn_reshape(tn_transpose(x, 0, 1), TN_SHAPE(24));
    tn_fill(x, 0);
    ck_assert_float_eq((float)tn_get(copy, 0), 3);
    ck_assert_float_eq((float)tn_get(reshaped, 0), 3);
}

/* A write that the tape recorded is a part of the history of all views of that memory. */
TEST(old_views_are_up_to_date)
{
    tn_tensor *x = tn_requires_grad(tn_ones(TN_SHAPE(3, 4)));
    tn_tensor *y = tn_mul_scalar(x, 2), *row = tn_select(y, 0, 1);
    tn_copy_(y, tn_zeros(TN_SHAPE(4)));
    ck_assert_double_eq(tn_item(tn_sum(tn_exp(row))), 4);
    tn_mul_(tn_select(y, 0, 2), tn_select(x, 0, 0));
    tn_copy_(tn_select(y, 0, 2), tn_select(x, 0, 0));
    tn_backward(tn_sum(y));
    ck_assert_int_eq(tn_error(), TN_OK);
    for (int i = 0; i < 12; i++) ck_assert_double_eq(tn_get(tn_grad(x), i), i < 4);
}

/* ---- rejected calls ---------------------------------------------------------------------------------------------- */

TEST(refused)
{
    tn_tensor *x = tn_zeros(TN_SHAPE(3, 4)), *t = tn_transpose(x, 0, 1);
    ck_refused(tn_view(t, TN_SHAPE(12)), TN_ESHAPE,
               "view: strides [1, 4] of [4, 3] allow no view of shape [12]; use tn_reshape, which copies if needed");
    ck_refused(tn_view(NULL, TN_SHAPE(1)), TN_EINVAL, "view: input 0 is NULL");
    ck_refused(tn_reshape(NULL, TN_SHAPE(1)), TN_EINVAL, "reshape: input 0 is NULL");
    ck_refused(tn_flatten(NULL, 0, -1), TN_EINVAL, "flatten: input 0 is NULL");
    ck_refused(tn_permute(NULL, TN_DIMS(0)), TN_EINVAL, "permute: input 0 is NULL");
    ck_refused(tn_transpose(NULL, 0, 1), TN_EINVAL, "transpose: input 0 is NULL");
    ck_refused(tn_slice(NULL, 0, 0, 1, 1), TN_EINVAL, "slice: input 0 is NULL");
    ck_refused(tn_narrow(NULL, 0, 0, 1), TN_EINVAL, "narrow: input 0 is NULL");
    ck_refused(tn_select(NULL, 0, 0), TN_EINVAL, "select: input 0 is NULL");
    ck_refused(tn_expand(NULL, TN_SHAPE(1)), TN_EINVAL, "expand: input 0 is NULL");
    ck_refused(tn_squeeze(NULL, 0), TN_EINVAL, "squeeze: input 0 is NULL");
    ck_refused(tn_unsqueeze(NULL, 0), TN_EINVAL, "unsqueeze: input 0 is NULL");
    ck_refused(tn_diagonal(NULL, 0, 0, 1), TN_EINVAL, "diagonal: input 0 is NULL");
    ck_refused(tn_unfold(NULL, 0, 1, 1), TN_EINVAL, "unfold: input 0 is NULL");
    ck_refused(tn_contiguous(NULL), TN_EINVAL, "contiguous: input 0 is NULL");
    ck_refused(tn_clone(NULL), TN_EINVAL, "clone: input 0 is NULL");
    ck_refused(tn_to(NULL, TN_F64), TN_EINVAL, "to: input 0 is NULL");
    /* a window of a window of … an expanded tensor: it needs no memory, but its size is still checked */
    tn_tensor *huge = tn_expand(tn_zeros(TN_SHAPE(1)), TN_SHAPE((int64_t)1 << 40));
    ck_assert_ptr_nonnull(huge);
    ck_refused(tn_unfold(huge, 0, (int64_t)1 << 39, 1), TN_ESHAPE,
               "unfold: [549755813889, 549755813888] is too large: its bytes do not fit in 63 bits");
    ck_refused(tn_expand(huge, TN_SHAPE((int64_t)1 << 40, (int64_t)1 << 40)), TN_ESHAPE,
               "expand: [1099511627776, 1099511627776] is too large: its bytes do not fit in 63 bits");
    tn_raise(TN_EINVAL, "set before");
    ck_assert(!tn_contiguous(x) && !tn_to(x, TN_F32) && !tn_select(x, 0, 0) && !tn_clone(x) &&
              !tn_reshape(x, TN_SHAPE(12)));
    tn_clear_error();
}
