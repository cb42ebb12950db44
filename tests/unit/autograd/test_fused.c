/* test_fused.c — fused ops against the ops they replace: equal to the bit, or as close as the order of sums allows,
 * with any options, and without storing what they promise not to store. */
#include "core/tensor/tensor.h"
#include "nn/nn.h"
#include "tests/common/check_main.h"

static tn_tensor *leaf(tn_tensor *x)
{
    tn_requires_grad(x);
    return x;
}
static void same(const tn_tensor *a, const tn_tensor *b, const char *what)
{
    ck_assert_msg(a && b && tn_shape_equal(a->l.shape, b->l.shape) && a->dtype == b->dtype, "%s: %s", what,
                  tn_error_message());
    ck_assert_msg(!memcmp(tn__ptr(a), tn__ptr(b), (size_t)tn_numel(a) * tn__dtype_bytes(a->dtype)), "%s", what);
}

/* ---- add_dropout_norm -------------------------------------------------------------------------------------------- */

static void beside_its_parts(tn_dtype dt, tn_shape s, double p, bool sum_is_used)
{
    tn_seed(5);
    const tn_shape     row = TN_SHAPE(s.d[s.n - 1]);
    tn_tensor         *in[] = {leaf(tn_normal_of(dt, s, 0, 1)), leaf(tn_normal_of(dt, s, 0, 1)),
                               leaf(tn_normal_of(dt, row, 1, 1)), leaf(tn_normal_of(dt, row, 0, 1))};
    tn_tensor         *c = tn_normal_of(dt, s, 0, 1), *sum = NULL, *one[4], *other[4];
    const tn_generator before = *tn_current_generator();
    tn_tensor         *y = tn_add_dropout_norm(in[0], in[1], in[2], in[3], .p = p, .eps = 1e-5, .sum = &sum);
    const tn_generator after = *tn_current_generator();
    *tn_current_generator() = before;
    tn_tensor *sum2 = tn_add(in[0], tn_dropout(in[1], p)), *y2 = tn_layer_norm(sum2, in[2], in[3], 1e-5);
    ck_assert(after.position == tn_current_generator()->position && after.seed == before.seed);
    same(sum, sum2, "the sum"), same(y, y2, "the norm");
    if (sum_is_used) y = tn_add(tn_square(y), tn_mul(sum, c)), y2 = tn_add(tn_square(y2), tn_mul(sum2, c));
    tn_grad_of(y, 4, in, one, .seed = c);
    tn_grad_of(y2, 4, in, other, .seed = c);
    for (int i = 0; i < 4; i++) same(one[i], other[i], "a gradient");
}

/* Loop: the dtype, whether the sum is also used, and no dropout. */
TEST_EACH(residual, 8) { beside_its_parts(_i % 2 ? TN_F64 : TN_F32, TN_SHAPE(7, 5, 37), _i / 4 ? 0 : 0.3, _i & 2); }

/* Results larger than the caches bypass them; rows that are aligned, and rows that are not. */
TEST_EACH(larger_than_the_caches, tn_test_slow() ? 2 : 4)
{
    const tn_dtype dt = _i % 2 ? TN_F64 : TN_F32;
    const int64_t  n = _i / 2 ? 1025 : 1024, rows = ((int64_t)64 << 20) / (4 * (int64_t)tn__dtype_bytes(dt)) / 1024 + 4;
    ck_assert(tn__beyond_caches(4 * rows * n * (int64_t)tn__dtype_bytes(dt)));
    beside_its_parts(dt, TN_SHAPE(rows, n), 0.3, false);
    /* a row of many, compared with the same row alone */
    tn_tensor *x = leaf(tn_normal_of(dt, TN_SHAPE(2 * rows, n), 0, 1)), *gy = tn_normal_of(dt, TN_SHAPE(n), 0, 1),
              *g[2];
    tn_grad_of(tn_layer_norm(x, NULL, NULL, 1e-5), 1, &x, g, .seed = tn_expand(gy, x->l.shape));
    for (int64_t r = 0; r < 2 * rows; r += 911) {
        tn_tensor *one = leaf(tn_select(tn_detach(x), 0, r));
        tn_grad_of(tn_layer_norm(one, NULL, NULL, 1e-5), 1, &one, g + 1, .seed = gy);
        same(tn_contiguous(tn_select(g[0], 0, r)), g[1], "a row's gradient");
    }
}

TEST(only_the_sum_is_used)
{
    tn_tensor *x = leaf(tn_normal(TN_SHAPE(3, 9), 0, 1)), *h = leaf(tn_normal(TN_SHAPE(3, 9), 0, 1)), *sum, *g[2];
    ck_assert(tn_add_dropout_norm(x, h, NULL, NULL, .p = 0.5, .eps = 1e-5, .sum = &sum));
    tn_grad_of(tn_sum(sum), 2, ((tn_tensor *[]){x, h}), g);
    for (int64_t i = 0; i < 27; i++) {
        ck_assert(tn_get(g[0], i) == 1);
        const double kept = tn_get(g[1], i);
        ck_assert(kept == 0 || kept == 2);
        ck_assert(tn_get(sum, i) == (double)((float)tn_get(x, i) + (float)(tn_get(h, i) * kept)));
    }
}

static tn_tensor *seen(tn_module *m, tn_tensor *x, void *user)
{
    (void)m;
    ++*(int *)user;
    return x;
}

/* A layer with hooks on its parts calls the parts separately: the same bits. Loop: TN_NORM_FIRST. */
TEST_EACH(hooks_see_the_parts, 2)
{
    int                           calls = 0;
    tn_transformer_encoder_layer *m = tn_transformer_encoder_layer_new(.dim = 12, .heads = 3, .ff = 20, .dropout = 0.2,
                                                                       .order = _i ? TN_NORM_FIRST : TN_NORM_LAST);
    tn_tensor                    *x = tn_normal(TN_SHAPE(2, 5, 12), 0, 1);
    tn_train(m, true);
    tn_seed(3);
    tn_tensor *y = tn_transformer_encoder_layer_forward(m, x);
    tn_module_before(m->norm1, seen, &calls), tn_module_before(m->norm2, seen, &calls);
    tn_module_before(m->dropout1, seen, &calls), tn_module_before(m->dropout2, seen, &calls);
    tn_seed(3);
    same(y, tn_transformer_encoder_layer_forward(m, x), "with hooks");
    ck_assert_int_eq(calls, 4);
    tn_free(m);
}

/* ---- linear_cross_entropy ---------------------------------------------------------------------------------------- */

enum { ROWS = 1500, IN = 24, CLASSES = 10000 }; /* two blocks of logits: the first of 832 rows */

static struct {
    tn_tensor *in[3], *target;
} lm;

/* rows: at most ROWS */
static void make_lm(tn_dtype dt, int rows)
{
    tn_seed(8);
    lm.in[0] = leaf(tn_normal_of(dt, TN_SHAPE(3, rows / 3, IN), 0, 1));
    lm.in[1] = leaf(tn_normal_of(dt, TN_SHAPE(CLASSES, IN), 0, 0.2));
    lm.in[2] = leaf(tn_normal_of(dt, TN_SHAPE(CLASSES), 0, 1));
    lm.target = tn_randint(TN_SHAPE(3, rows / 3), 0, CLASSES);
    int64_t *t = tn_data_mut(lm.target);
    for (int i = 0; i < rows; i += 7) t[i] = 3; /* ignored */
}

static int few_rows(void) { return tn_test_slow() ? 900 : ROWS; } /* still two blocks */

static void near_to(const tn_tensor *a, const tn_tensor *b, double tol, const char *what)
{
    double most = 0;
    ck_assert_msg(a && b && tn_shape_equal(a->l.shape, b->l.shape), "%s: %s", what, tn_error_message());
    for (int64_t i = 0; i < tn_numel(a); i++) most = fmax(most, fabs(tn_get(b, i)));
    for (int64_t i = 0; i < tn_numel(a); i++)
        if (!(fabs(tn_get(a, i) - tn_get(b, i)) <= tol * most))
            ck_abort_msg("%s [%d]: %g and %g", what, (int)i, tn_get(a, i), tn_get(b, i));
}

/* Loop: the dtype; mean or sum. */
TEST_EACH(like_the_two_ops, tn_test_slow() ? 2 : 4)
{
    const tn_reduction r = _i / 2 ? TN_SUM : TN_MEAN;
    const double       tol = _i % 2 ? 1e-12 : 1e-5;
    int64_t            counted = 0;
    tn_tensor         *one[3], *other[3];
    const int          rows = few_rows();
    make_lm(_i % 2 ? TN_F64 : TN_F32, rows);
    tn_tensor *z = tn_cross_entropy(tn_linear(lm.in[0], lm.in[1], lm.in[2]), lm.target, .ignore_index = 3,
                                    .label_smoothing = 0.1, .reduction = r);
    tn_grad_of(tn_mul_scalar(z, 3), 3, lm.in, other);
    tn_tensor *y = tn_linear_cross_entropy(lm.in[0], lm.in[1], lm.in[2], lm.target, .ignore_index = 3,
                                           .label_smoothing = 0.1, .reduction = r, .counted = &counted);
    tn_grad_of(tn_mul_scalar(y, 3), 3, lm.in, one);
    near_to(y, z, tol, "the loss");
    for (int i = 0; i < 3; i++) near_to(one[i], other[i], tol, "a gradient");
    ck_assert_int_ge(counted, rows - rows / 7 - 10);
    ck_assert_int_le(counted, rows - rows / 7);
}

TEST(the_same_bits_for_any_threads)
{
    static const int threads[] = {1, 2, 3, 7};
    tn_tensor       *y[4], *g[4][3];
    make_lm(TN_F32, few_rows());
    for (int i = 0; i < (tn_test_slow() ? 2 : 4); i++) {
        tn_set_threads(threads[i]);
        y[i] = tn_linear_cross_entropy(lm.in[0], lm.in[1], lm.in[2], lm.target, .ignore_index = 3);
        tn_grad_of(y[i], 3, lm.in, g[i]);
        same(y[0], y[i], "the loss");
        for (int k = 0; k < 3; k++) same(g[0][k], g[i][k], "a gradient");
    }
}

/* Memory holds a block of logits, the gradients of x and W, and little more; without gradients only the block. */
TEST(holds_a_block)
{
    make_lm(TN_F32, ROWS);
    const double block = 832.0 * CLASSES * 4, weight = (double)CLASSES * IN * 4, all = (double)ROWS * CLASSES * 4;
    for (int wanted = 0; wanted < 2; wanted++) {
        const tn_scope s = wanted ? tn_scope_begin() : tn_no_grad_begin();
        tn_reset_peak();
        const double before = (double)tn_memory_now().live;
        tn_tensor   *y = tn_linear_cross_entropy(lm.in[0], lm.in[1], lm.in[2], lm.target);
        ck_assert(y);
        const double extra = (double)tn_memory_now().peak - before;
        ck_assert_msg(extra < 1.25 * block + wanted * 2 * weight && extra < 0.85 * all, "%g bytes", extra);
        tn_scope_end(s);
    }
}

/* An ignored row is not read; if all are ignored, the loss is 0. */
TEST(ignored_rows_cost_nothing)
{
    tn_tensor     *x = leaf(tn_normal(TN_SHAPE(4, 3), 0, 1)), *w = leaf(tn_normal(TN_SHAPE(6, 3), 0, 1)), *g[2];
    tn_tensor     *t = tn_from_data(TN_I64, TN_SHAPE(4), (int64_t[]){2, -100, 5, -100});
    const tn_scope s = tn_no_grad_begin();
    tn_set(x, 4, (double)NAN);
    tn_scope_end(s);
    int64_t counted = -1;
    tn_grad_of(tn_linear_cross_entropy(x, w, NULL, t, .counted = &counted), 2, ((tn_tensor *[]){x, w}), g);
    ck_assert_int_eq(counted, 2);
    for (int64_t i = 0; i < 12; i++) ck_assert(i / 3 % 2 ? tn_get(g[0], i) == 0 : isfinite(tn_get(g[0], i)));
    for (int64_t i = 0; i < 18; i++) ck_assert(isfinite(tn_get(g[1], i)));
    tn_tensor *none = tn_linear_cross_entropy(x, w, NULL, tn_full_of(TN_I64, TN_SHAPE(4), -100), .counted = &counted);
    ck_assert(tn_item(none) == 0 && counted == 0);
}

/* Shares below 2^-100 have gradient 0: products with them would be denormal, which is slow on Intel's CPUs. */
TEST(tiny_shares_have_no_gradient)
{
    enum { ALL = 120 };
    tn_tensor *x = tn_ones(TN_SHAPE(3, 1)), *t = tn_zeros_of(TN_I64, TN_SHAPE(3));
    for (int fused = 0; fused < 2; fused++) {
        tn_tensor *w = leaf(tn_reshape(tn_to(tn_arange(ALL), TN_F32), TN_SHAPE(ALL, 1)));
        tn_tensor *down = tn_neg(w);
        tn_tensor *y =
            fused ? tn_linear_cross_entropy(x, down, NULL, t) : tn_cross_entropy(tn_linear(x, down, NULL), t);
        tn_tensor *g = tn_grad_wrt(y, w, false);
        ck_assert_msg(g != NULL, "%s", tn_error_message());
        for (int64_t c = 1; c < ALL; c++)
            ck_assert_msg(c < 69 ? tn_get(g, c) < -1e-31 : c == 69 || tn_get(g, c) == 0, "class %d of %s: %a", (int)c,
                          fused ? "linear_cross_entropy" : "cross_entropy", tn_get(g, c));
    }
}

TEST(the_mlm_head_uses_it)
{
    tn_tensor   *e = tn_normal(TN_SHAPE(11, 8), 0, 1), *x = leaf(tn_normal(TN_SHAPE(5, 8), 0, 1)), *one, *other;
    tn_mlm_head *m = tn_mlm_head_new(.embedding = e);
    tn_tensor   *t = tn_randint(TN_SHAPE(5), 0, 11);
    tn_tensor   *y = tn_mlm_head_loss(m, x, .target = t), *z = tn_cross_entropy(tn_call(m, x), t);
    near_to(y, z, 1e-6, "the loss");
    one = tn_grad_wrt(y, x, false), other = tn_grad_wrt(z, x, false);
    near_to(one, other, 1e-5, "the gradient");
    ck_assert(!tn_mlm_head_loss(m, x, .target = t, .weight = e));
    ck_assert_str_eq(tn_error_message(), "tn_mlm_head_loss: .weight or .bias is set, but the head uses its own; "
                                         "remove them");
    tn_clear_error();
    tn_free(m);
}
