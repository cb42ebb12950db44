/* test_view_chains.c — gradients through chains of views and into the parts of a tensor; recomputation, checks and
 * parts of the tape where values were written through views. */
#include "tests/common/check_main.h"

#include "autograd/autograd.h"

static int64_t below(int64_t n) { return tn_random_below(tn_current_generator(), n); }

typedef struct {
    int      kind, dim, dim1;
    int64_t  a, b, step;
    tn_shape s;
    tn_dims  order;
} chain_link;

static tn_tensor *apply(const chain_link *l, tn_tensor *x)
{
    switch (l->kind) {
    case 0: return tn_slice(x, l->dim, l->a, l->b, l->step);
    case 1: return tn_select(x, l->dim, l->a);
    case 2: return tn_permute(x, l->order);
    case 3: return tn_unfold(x, l->dim, l->a, l->step);
    case 4: return tn_diagonal(x, l->a, l->dim, l->dim1);
    case 5: return tn_unsqueeze(x, l->dim);
    case 6: return tn_expand(x, l->s);
    case 7: return tn_flatten(x, l->dim, l->dim1);
    case 8: return tn_narrow(x, l->dim, l->a, l->b);
    case 9: return tn_transpose(x, l->dim, l->dim1);
    default: return tn_squeeze(x, TN_ALL);
    }
}

static chain_link draw(tn_shape s)
{
    for (;;) {
        chain_link l = {.kind = (int)below(11), .step = 1 + below(3), .order.n = s.n};
        l.dim = s.n ? (int)below(s.n) : 0, l.dim1 = s.n ? (int)below(s.n) : 0;
        const int64_t n = s.n ? s.d[l.dim] : 0;
        const bool    small = tn_shape_numel(s) <= 120 && s.n < 6;
        if (l.kind == 5 && s.n < 6) return l;
        if (s.n == 0 || n == 0) continue;
        switch (l.kind) {
        case 0: l.a = below(n), l.b = l.a + 1 + below(n); return l;
        case 1:
            if (s.n < 3) continue;
            l.a = below(2 * n) - n;
            return l;
        case 2:
            for (int i = 0; i < s.n; i++) l.order.d[i] = i;
            for (int i = s.n - 1; i > 0; i--) {
                int k = (int)below(i + 1), t = l.order.d[i];
                l.order.d[i] = l.order.d[k], l.order.d[k] = t;
            }
            return l;
        case 3:
            l.a = 1 + below(n);
            if (!small) continue;
            return l;
        case 4:
            if (s.n < 3 || l.dim == l.dim1) continue;
            l.a = below(3) - 1;
            if (l.a >= s.d[l.dim1] || -l.a >= n) continue;
            return l;
        case 6:
            l.s = s;
            if (!small || n != 1) continue;
            l.s.d[l.dim] = 1 + below(3);
            return l;
        case 7:
            if (l.dim1 < l.dim) continue;
            return l;
        case 8: l.a = below(n), l.b = 1 + below(n - l.a); return l;
        case 9:
        case 10: return l;
        default: continue;
        }
    }
}

/* Compares a chain of views with the same chain with a dense copy after each step; the gradient of a weighted sum is,
 * at each place, the sum of the weights of the elements that show it. */
TEST_EACH(chains, 300)
{
    tn_seed((uint64_t)_i);
    tn_tensor *x = tn_view(tn_to(tn_arange(120), TN_F64), TN_SHAPE(4, 5, 6)), *y = tn_requires_grad(x),
              *dense = tn_detach(x);
    for (int step = 0; step < 8; step++) {
        chain_link l = draw(tn_shape_of(y));
        y = apply(&l, y), dense = tn_clone(apply(&l, dense));
        ck_assert_msg(y && dense, "%s", tn_error_message());
        ck_assert(tn_shape_equal(tn_shape_of(y), tn_shape_of(dense)));
        for (int64_t k = 0; k < tn_numel(y); k++) ck_assert_double_eq(tn_get(y, k), tn_get(dense, k));
    }
    tn_tensor *w = tn_to(tn_randint(tn_shape_of(y), -8, 8), TN_F64), *again = NULL;
    double     should[120] = {0};
    for (int64_t k = 0; k < tn_numel(y); k++) should[(int)tn_get(dense, k)] += tn_get(w, k);
    tn_tensor *loss = tn_sum(tn_mul(y, w));
    again = tn_grad_wrt(loss, x, true);
    tn_backward(loss);
    ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
    for (int64_t k = 0; k < 120; k++) {
        ck_assert_double_eq(tn_get(tn_grad(x), k), should[k]);
        ck_assert_double_eq(tn_get(again, k), should[k]);
    }
}

/* Splits a tensor and uses some parts twice: the parts' gradients are added in one buffer, together with other uses. */
TEST(taken_apart)
{
    enum { T = 300 };
    tn_tensor *x = tn_requires_grad(tn_full_of(TN_F64, TN_SHAPE(T, 4), 3)), *sum = tn_sum(tn_mul(x, x));
    for (int64_t t = 0; t < T; t++) {
        tn_tensor *row = tn_select(x, 0, t);
        sum = tn_add(sum, tn_sum(tn_mul(row, tn_scalar((double)t))));
        if (t % 3 == 0) sum = tn_add(sum, tn_sum(tn_unfold(row, 0, 3, 1)));
    }
    tn_backward(sum);
    ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
    static const double windows[] = {1, 2, 2, 1};
    for (int64_t t = 0; t < T; t++)
        for (int64_t k = 0; k < 4; k++)
            ck_assert_double_eq(tn_get_at(tn_grad(x), TN_SHAPE(t, k)), 6 + (double)t + (t % 3 == 0 ? windows[k] : 0));
}

/* Where windows overlap, an element's gradients are added from the first window to the last, for any division of
 * work. */
TEST(windows_add_up_in_order)
{
    for (int64_t window = 2; window <= 23; window += 3) { /* more windows than a window is long, and fewer */
        tn_tensor *x = tn_requires_grad(tn_zeros(TN_SHAPE(2, 24))), *y = tn_unfold(x, 1, window, 1);
        tn_tensor *g = tn_normal(tn_shape_of(y), 0, 1), *ops = NULL;
        ops = tn_grad_wrt(tn_sum(tn_mul(y, g)), x, true);
        tn_backward(y, .seed = g);
        ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
        for (int64_t row = 0; row < 2; row++)
            for (int64_t k = 0; k < 24; k++) {
                float sum = 0;
                for (int64_t w = 0; w + window <= 24; w++)
                    if (k >= w && k < w + window) sum += (float)tn_get_at(g, TN_SHAPE(row, w, k - w));
                ck_assert_float_eq((float)tn_get_at(tn_grad(x), TN_SHAPE(row, k)), sum);
                ck_assert_float_eq((float)tn_get_at(ops, TN_SHAPE(row, k)), sum);
            }
    }
}

/* ---- values written through views -------------------------------------------------------------------------------- */

/* 3 · the first element, written through a view of the result; the other half is 0. */
static tn_tensor *tripled(int64_t block, int half, tn_tensor *x, tn_tensor **m, const void *user)
{
    (void)block, (void)m, (void)user;
    tn_tensor *y = tn_mul_scalar(x, 1);
    if (half == 0) tn_mul_scalar_(tn_select(y, 0, 1), 3);
    return y;
}

TEST(reversible_with_a_view)
{
    tn_tensor *z = tn_zeros(TN_SHAPE(3)), *x = tn_requires_grad(tn_ones(TN_SHAPE(3))), *in[2] = {z, x}, *y[2];
    ck_assert_msg(tn_reversible(tripled, NULL, 0, 1, in, y) == TN_OK, "%s", tn_error_message());
    ck_assert_int_eq(tn_backward(tn_sum(y[0])), TN_OK);
    ck_assert(tn_get(tn_grad(x), 0) == 1 && tn_get(tn_grad(x), 1) == 3 && tn_get(tn_grad(x), 2) == 1);
}

static tn_tensor *scale; /* replaced below */
static tn_tensor *scaled(tn_tensor *const *in, int n, void *user)
{
    (void)n, (void)user;
    return tn_mul(in[0], scale);
}
static tn_tensor *a_constant(tn_tensor *const *in, int n, void *user)
{
    return (void)in, (void)n, (void)user, tn_ones(TN_SHAPE(3));
}

TEST(checkpoint_of_a_replacement)
{
    scale = tn_ones(TN_SHAPE(3));
    tn_tensor *x = tn_ones(TN_SHAPE(3)), *leaf = tn_requires_grad(tn_ones(TN_SHAPE(3))), *by = tn_mul_scalar(leaf, 1);
    tn_mul_scalar_(tn_narrow(by, 0, 0, 2), 5);
    const tn_scope s = tn_functional_begin(1, &scale, &by);
    tn_tensor     *y = tn_scope_return(s, tn_checkpoint(scaled, NULL, 1, &x));
    ck_assert_int_eq(tn_backward(tn_sum(y)), TN_OK);
    ck_assert(tn_get(tn_grad(leaf), 0) == 5 && tn_get(tn_grad(leaf), 1) == 5 && tn_get(tn_grad(leaf), 2) == 1);
}

TEST(checkpoint_of_a_freed_input)
{
    tn_tensor     *leaf = tn_requires_grad(tn_ones(TN_SHAPE(3)));
    const tn_scope s = tn_scope_begin();
    tn_tensor     *x = tn_mul_scalar(leaf, 2);
    tn_scope_end(s);
    ck_refused_has(tn_checkpoint(a_constant, NULL, 1, &x), TN_ESTATE, "freed");
}

/* Slices are written out of order, so the index and the source are read before. */
TEST(index_copy_of_itself)
{
    tn_tensor *x = tn_to(tn_reshape(tn_arange(3), TN_SHAPE(3, 1)), TN_F32);
    tn_tensor *i = tn_from_data(TN_I64, TN_SHAPE(3), (int64_t[]){1, 2, 0});
    tn_index_copy_(x, 0, i, x);
    ck_assert(tn_get(x, 0) == 2 && tn_get(x, 1) == 0 && tn_get(x, 2) == 1);
    tn_tensor *index = tn_from_data(TN_I64, TN_SHAPE(2), (int64_t[]){1, 0});
    tn_index_copy_(index, 0, index, tn_from_data(TN_I64, TN_SHAPE(2), (int64_t[]){1000000000, 5}));
    ck_assert(tn_get_i64(index, 0) == 5 && tn_get_i64(index, 1) == 1000000000);
}

/* Only the part of the tape that was computed is consumed. */
TEST(the_other_part_of_the_tape)
{
    tn_tensor *w = tn_requires_grad(tn_full(TN_SHAPE(2), 3)), *x = tn_requires_grad(tn_ones(TN_SHAPE(2)));
    tn_tensor *square = tn_square(w), *g = tn_grad_wrt(tn_sum(tn_mul(x, square)), x, false);
    ck_assert(g && tn_get(g, 0) == 9);
    ck_assert_int_eq(tn_backward(tn_sum(square)), TN_OK);
    ck_assert(tn_get(tn_grad(w), 1) == 6);
}

static tn_tensor *filled(tn_tensor *const *in, int n, void *user)
{
    (void)n, (void)user;
    tn_tensor *y = tn_zeros_of(TN_F64, TN_SHAPE(3));
    tn_copy_(tn_narrow(y, 0, 0, 2), tn_square(in[0]));
    return y;
}

TEST(gradcheck_of_a_filled_constant)
{
    tn_tensor *x = tn_normal_of(TN_F64, TN_SHAPE(2), 0, 1);
    ck_assert_msg(tn_gradcheck(filled, .input = x) == TN_OK, "%s", tn_error_message());
}

TEST(mean_of_nothing_twice)
{
    tn_tensor *x = tn_requires_grad(tn_zeros(TN_SHAPE(0, 2))), *seed = tn_requires_grad(tn_ones(TN_SHAPE(2))), *g;
    ck_assert_int_eq(tn_grad_of_run((tn_grad_of_args){.root = tn_mean(x, .dims = TN_DIMS(0)),
                                                      .seed = seed,
                                                      .count = 1,
                                                      .wrt = &x,
                                                      .grad = &g,
                                                      .create_graph = true}),
                     TN_OK);
    ck_assert_int_eq(tn_backward(tn_sum(g)), TN_OK);
    ck_assert(!tn_grad(seed) || tn_get(tn_grad(seed), 0) == 0);
}

static tn_tensor *two_uses(tn_tensor *const *in, int n, void *user)
{
    (void)n, (void)user;
    return tn_add(tn_mul_scalar(in[0], 0.1), tn_sin(in[0]));
}

/* A leaf that a segment and a later op use: the sum of its gradients has the same order with a checkpoint. */
TEST(bits_of_a_leaf_in_a_segment)
{
    tn_tensor *grad[2];
    for (int k = 0; k < 2; k++) {
        tn_seed(3);
        tn_tensor *x = tn_requires_grad(tn_uniform(TN_SHAPE(64), -1, 1)), *w = tn_uniform(TN_SHAPE(64), -1, 1);
        tn_tensor *y = k ? tn_checkpoint(two_uses, NULL, 1, &x) : two_uses(&x, 1, NULL);
        ck_assert_int_eq(tn_backward(tn_sum(tn_add(tn_mul(y, w), tn_exp(x)))), TN_OK);
        grad[k] = tn_grad(x);
    }
    ck_assert_mem_eq(tn_data(grad[0]), tn_data(grad[1]), 256);
}

static tn_tensor *the_leaf(tn_tensor *const *in, int n, void *user) { return (void)in, (void)n, user; }

/* A segment returns a leaf itself: its gradient is right, and an in-place op on the result, which writes the leaf, is
 * detected by the backward. */
TEST(segment_that_returns_a_leaf)
{
    tn_tensor *x = tn_requires_grad(tn_ones(TN_SHAPE(3))), *w = tn_requires_grad(tn_ones(TN_SHAPE(3)));
    ck_assert_int_eq(tn_backward(tn_sum(tn_mul_scalar(tn_checkpoint(the_leaf, w, 1, &x), 5))), TN_OK);
    for (int i = 0; i < 3; i++) ck_assert_double_eq(tn_get(tn_grad(w), i), 5);
    tn_tensor *y = tn_checkpoint(the_leaf, w, 1, &x);
    ck_assert_int_ne(tn_backward(tn_sum(tn_mul_scalar_(y, 2))), TN_OK);
    ck_error_has(TN_ESTATE, "mul_scalar_ changed a leaf, which the function of tn_checkpoint used");
}
