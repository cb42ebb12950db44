/* test_init.c — initial values: their distribution, the initial values of modules, and that a call that fails draws
 * nothing. Seeds are fixed; the bounds are five standard deviations of the estimate. */
#include "core/base/thread.h"
#include "nn/nn.h"
#include "tests/common/check_main.h"
#include "tests/common/faults.h"

typedef struct {
    double mean, var, least, most;
} stats;

static stats of(const tn_tensor *t)
{
    stats         s = {0, 0, INFINITY, -INFINITY};
    const int64_t n = tn_numel(t);
    for (int64_t i = 0; i < n; i++) {
        const double v = tn_get(t, i);
        s.mean += v / (double)n, s.least = fmin(s.least, v), s.most = fmax(s.most, v);
    }
    for (int64_t i = 0; i < n; i++) s.var += (tn_get(t, i) - s.mean) * (tn_get(t, i) - s.mean) / (double)(n - 1);
    return s;
}

/* U(-k, k): kurtosis 9/5, so the variance of the variance is 4/5 σ⁴ / n. */
static void is_uniform(const tn_tensor *t, double k)
{
    const stats  s = of(t);
    const double n = (double)tn_numel(t), var = k * k / 3;
    ck_assert_double_le(s.most, k);
    ck_assert_double_ge(s.least, -k);
    ck_assert_double_ge(s.most, k * (1 - 20 / n)); /* probability e^-20 that none of n values is above */
    ck_assert_double_le(s.least, -k * (1 - 20 / n));
    ck_assert_double_le(fabs(s.mean), 5 * sqrt(var / n));
    ck_assert_double_le(fabs(s.var - var), 5 * var * sqrt(0.8 / n));
}

/* N(mean, std²): kurtosis 3. */
static void is_normal(const tn_tensor *t, double mean, double std)
{
    const stats  s = of(t);
    const double n = (double)tn_numel(t), var = std * std;
    int64_t      within = 0;
    for (int64_t i = 0; i < tn_numel(t); i++) within += fabs(tn_get(t, i) - mean) < std;
    ck_assert_double_le(fabs(s.mean - mean), 5 * std / sqrt(n));
    ck_assert_double_le(fabs(s.var - var), 5 * var * sqrt(2 / n));
    ck_assert_double_le(fabs((double)within / n - 0.682689492), 5 * sqrt(0.2166 / n));
}

static void all_are(const tn_tensor *t, double v)
{
    for (int64_t i = 0; i < tn_numel(t); i++) ck_assert_double_eq(tn_get(t, i), v);
}

static tn_tensor *room(int64_t a, int64_t b) { return tn_requires_grad(tn_zeros(TN_SHAPE(a, b))); }

TEST(plain_ones)
{
    tn_tensor *t = room(100, 200);
    ck_assert(tn_init_uniform(t, -0.25, 0.25) == t);
    is_uniform(t, 0.25);
    ck_assert(tn_init_normal(t, 3, 0.5) == t);
    is_normal(t, 3, 0.5);
    all_are(tn_init_constant(t, 0.3f), (double)0.3f);
    all_are(tn_init_ones(t), 1);
    all_are(tn_init_zeros(t), 0);
    tn_init_eye(t);
    for (int64_t i = 0; i < 100; i++)
        for (int64_t j = 0; j < 200; j++) ck_assert_double_eq(tn_get_at(t, TN_SHAPE(i, j)), i == j);
    ck_assert(tn_needs_grad(t));
    /* the draw is that of tn_uniform_of, for any strides of t */
    tn_seed(7);
    tn_tensor *u = tn_uniform_of(TN_F64, TN_SHAPE(3, 4), 0, 1),
              *turned = tn_transpose(tn_zeros_of(TN_F64, TN_SHAPE(4, 3)), 0, 1);
    tn_seed(7);
    ck_assert(tn_allclose(tn_init_uniform(turned, 0, 1), u, 0, 0));
}

/* in = 50 · 6, out = 40 · 6 */
TEST(by_fan)
{
    tn_tensor *t = tn_zeros(TN_SHAPE(40, 50, 2, 3));
    is_uniform(tn_init_xavier_uniform(t, 1), sqrt(6.0 / 540));
    is_uniform(tn_init_xavier_uniform(t, 2), 2 * sqrt(6.0 / 540));
    is_normal(tn_init_xavier_normal(t, 1), 0, sqrt(2.0 / 540));
    is_uniform(tn_init_kaiming_uniform(t), sqrt(6.0 / 300));
    is_uniform(tn_init_kaiming_uniform(t, .a = sqrt(5)), sqrt(1.0 / 300));
    is_uniform(tn_init_kaiming_uniform(t, .fan_out = true, .nonlinearity = TN_TANH), 5.0 / 3 * sqrt(3.0 / 240));
    ck_refused(tn_init_kaiming_normal(t, .nonlinearity = TN_RELU, .a = 0.5), TN_EINVAL,
               "tn_init_kaiming_normal: .a is set but has no effect because .nonlinearity is not "
               "TN_LEAKY_RELU; remove .a");
    is_normal(tn_init_kaiming_normal(t, .nonlinearity = TN_RELU), 0, sqrt(2.0 / 300));
    is_normal(tn_init_kaiming_normal(t, .fan_out = true, .nonlinearity = TN_NO_NONLINEARITY), 0, sqrt(1.0 / 240));
}

TEST(gains_are_pytorchs)
{
    ck_assert_double_eq_tol(tn_gain(TN_RELU, 0), 1.4142135623730951, 1e-15);
    ck_assert_double_eq_tol(tn_gain(TN_LEAKY_RELU, 0.01), 1.4141428569978354, 1e-15);
    ck_assert_double_eq_tol(tn_gain(TN_LEAKY_RELU, 0.2), 1.3867504905630728, 1e-15);
    ck_assert_double_eq_tol(tn_gain(TN_TANH, 0), 1.6666666666666667, 1e-15);
    ck_assert_double_eq(tn_gain(TN_SIGMOID, 0), 1);
    ck_assert_double_eq(tn_gain(TN_NO_NONLINEARITY, 0), 1);
    ck_assert_double_eq(tn_gain(TN_SELU, 0), 0.75);
}

static double normal_below(double x) { return 0.5 * erfc(-x / sqrt(2)); }

/* Compares the distribution function at eleven points. */
static void is_truncated(tn_tensor *t, double mean, double std, double low, double high)
{
    ck_assert(tn_init_trunc_normal(t, mean, std, low, high) == t);
    const double n = (double)tn_numel(t), a = normal_below((low - mean) / std), b = normal_below((high - mean) / std);
    const stats  s = of(t);
    ck_assert_double_ge(s.least, low);
    ck_assert_double_le(s.most, high);
    for (int i = 1; i < 12; i++) {
        const double x = low + (high - low) * i / 12, p = (normal_below((x - mean) / std) - a) / (b - a);
        int64_t      below = 0;
        for (int64_t k = 0; k < tn_numel(t); k++) below += tn_get(t, k) <= x;
        ck_assert_double_le(fabs((double)below / n - p), 5 * sqrt(p * (1 - p) / n) + 1e-9);
    }
}

TEST(truncated)
{
    tn_tensor *t = tn_zeros_of(TN_F64, TN_SHAPE(100, 200));
    is_truncated(t, 0, 1, -2, 2);
    is_truncated(t, 0, 0.02, -2, 2); /* the bounds are far in the tails */
    is_truncated(t, 1, 2, -1, 1.5);
    is_truncated(t, 0, 1, 3, 4); /* the upper tail */
    is_truncated(t, 0, 1, -9, -8);
    is_truncated(t, 0, 1, 7, 7.5);
    const stats s = of(tn_init_trunc_normal(t, 0, 1, 50, 51)); /* the range has probability 0 in f64 */
    ck_assert(s.least == 50 && s.most == 50);                  /* the bound next to the mean */
    const stats below = of(tn_init_trunc_normal(t, 0, 1, -51, -50));
    ck_assert(below.least == -50 && below.most == -50);
    ck_refused(tn_init_trunc_normal(t, NAN, 1, 0, 2), TN_EINVAL,
               "tn_init_trunc_normal: mean is nan, std 1 and the range from 0 to 2, but mean and std must be "
               "finite, std above 0, and low below high");
    ck_assert_ptr_null(tn_init_trunc_normal(t, 0, INFINITY, 0, 2));
    tn_clear_error();
    ck_refused(tn_init_trunc_normal(t, 0, 1, 2, 2), TN_EINVAL,
               "tn_init_trunc_normal: mean is 0, std 1 and the range from 2 to 2, but mean and std must be "
               "finite, std above 0, and low below high");
}

/* The rows, or the columns if fewer: lengths and angles. */
static void is_orthogonal(tn_shape s, double gain)
{
    tn_tensor *t = tn_zeros_of(TN_F64, s);
    ck_assert(tn_init_orthogonal(t, gain) == t);
    tn_tensor    *q = tn_flatten(t, 1, -1);
    const int64_t rows = tn_size(q, 0), cols = tn_size(q, 1), n = rows < cols ? rows : cols;
    if (rows > cols) q = tn_transpose(q, 0, 1);
    tn_tensor *product = tn_matmul(q, tn_transpose(q, 0, 1));
    ck_assert(
        tn_allclose(product, tn_mul_scalar(tn_eye_of(TN_F64, n, n), gain * gain), 0, 1e-13 * gain * gain * (double)n));
}

TEST(orthogonal)
{
    is_orthogonal(TN_SHAPE(5, 3), 1);
    is_orthogonal(TN_SHAPE(3, 5), 2);
    is_orthogonal(TN_SHAPE(70, 70), 1);
    is_orthogonal(TN_SHAPE(33, 100), 0.5);
    is_orthogonal(TN_SHAPE(130, 64), 1);
    is_orthogonal(TN_SHAPE(8, 3, 2, 2), 1);
    is_orthogonal(TN_SHAPE(1, 1), 3);
    /* a row of it is a random direction: in n dims its elements have variance 1/n */
    tn_tensor  *t = tn_init_orthogonal(tn_zeros(TN_SHAPE(100, 100)), 1);
    const stats s = of(t);
    ck_assert_double_le(fabs(s.mean), 5 * 0.1 / 100);
    ck_assert_double_le(fabs(s.var - 0.01), 1e-5);
    ck_assert_ptr_nonnull(tn_init_orthogonal(tn_zeros(TN_SHAPE(0, 3)), 1));
    ck_refused(tn_init_orthogonal(tn_zeros(TN_SHAPE(3)), 1), TN_ESHAPE,
               "tn_init_orthogonal: the tensor must be floating with at least two dims, got [3]");
}

TEST(sparse)
{
    tn_tensor *t = tn_zeros(TN_SHAPE(50, 400));
    ck_assert(tn_init_sparse(t, 0.33, 0.1) == t);
    int64_t first = 0;
    double  squares = 0;
    for (int64_t c = 0; c < 400; c++) {
        int64_t zeros = 0;
        for (int64_t r = 0; r < 50; r++) {
            const double v = tn_get_at(t, TN_SHAPE(r, c));
            zeros += v == 0, squares += v * v;
        }
        first += tn_get_at(t, TN_SHAPE(0, c)) == 0;
        ck_assert_int_eq(zeros, 17); /* ⌈0.33 · 50⌉ */
    }
    ck_assert_double_eq_tol(squares / (400 * 33), 0.01, 5 * 0.01 * sqrt(2.0 / (400 * 33)));
    ck_assert_double_le(fabs((double)first / 400 - 0.34), 5 * sqrt(0.34 * 0.66 / 400)); /* at any place in the column */
    ck_refused(tn_init_sparse(t, 1.5, 1), TN_EINVAL,
               "tn_init_sparse: .sparsity is 1.5, but a probability is from 0 to 1");
    ck_refused(tn_init_sparse(tn_zeros(TN_SHAPE(3)), 0.5, 1), TN_ESHAPE,
               "tn_init_sparse: the tensor must have two dims, got [3]");
}

/* ---- initial values of modules --------------------------------------------------------------------------------- */

TEST(modules_start_as_pytorchs_do)
{
    tn_linear *l = tn_linear_new(.in = 64, .out = 3000);
    is_uniform(l->weight, 1.0 / 8), is_uniform(l->bias, 1.0 / 8);
    tn_bilinear *bi = tn_bilinear_new(.in1 = 16, .in2 = 5, .out = 3000);
    is_uniform(bi->weight, 0.25), is_uniform(bi->bias, 0.25);
    tn_embedding *e = tn_embedding_new(.count = 1000, .dim = 16, .padding = 999);
    is_normal(e->weight, 0, 1);
    all_are(tn_select(tn_detach(e->weight), 0, 999), 0);
    ck_assert_double_ne(tn_get_at(e->weight, TN_SHAPE(0, 0)), 0);
    tn_embedding_bag *bag = tn_embedding_bag_new(.count = 1000, .dim = 16, .padding = 0);
    is_normal(bag->weight, 0, 1);
    all_are(tn_select(tn_detach(bag->weight), 0, 0), 0);
    tn_layer_norm *ln = tn_layer_norm_new(.dim = 7);
    all_are(ln->weight, 1), all_are(ln->bias, 0);
    tn_rms_norm *rms = tn_rms_norm_new(.dim = 7);
    all_are(rms->weight, 1);
    tn_batch_norm *bn = tn_batch_norm1d_new(.features = 7);
    all_are(bn->weight, 1), all_are(bn->bias, 0), all_are(bn->running_mean, 0), all_are(bn->running_var, 1);
    ck_assert_int_eq(tn_get_i64(bn->num_batches_tracked, 0), 0);
    tn_group_norm *gn = tn_group_norm_new(.groups = 2, .channels = 6);
    all_are(gn->weight, 1), all_are(gn->bias, 0);
    tn_conv1d *c1 = tn_conv1d_new(.in = 8, .out = 2000, .size = 4, .groups = 2);
    is_uniform(c1->weight, 0.25), is_uniform(c1->bias, 0.25);
    tn_conv2d *c2 = tn_conv2d_new(.in = 4, .out = 2000, .size = 2);
    is_uniform(c2->weight, 0.25), is_uniform(c2->bias, 0.25);
    tn_conv2d *c3 = tn_conv_transpose2d_new(.in = 2000, .out = 8, .size = 2, .groups = 2);
    is_uniform(c3->weight, 0.25), is_uniform(c3->bias, 0.25);
    tn_free(c3);
    tn_linear *normed = tn_linear_new(.in = 64, .out = 3000, .weight_norm = true);
    is_uniform(normed->weight_v, 1.0 / 8), is_uniform(normed->bias, 1.0 / 8);
    ck_assert_ptr_null(normed->weight);
    ck_assert(tn_allclose(tn_weight_norm(normed->weight_v, normed->weight_g, 0), normed->weight_v, 1e-6, 0));
    tn_free(normed);
    tn_activation *slopes = tn_prelu_new(.parameters = 5);
    all_are(slopes->weight, 0.25);
    tn_free(slopes);
    tn_positions *p = tn_learned_positions_new(.length = 500, .dim = 20);
    is_normal(p->weight, 0, 1);
    tn_free(l), tn_free(bi), tn_free(e), tn_free(bag), tn_free(ln), tn_free(rms), tn_free(bn), tn_free(gn), tn_free(c1),
        tn_free(c2), tn_free(p);
}

/* ---- a call that fails draws nothing --------------------------------------------------------------------------- */

static tn_tensor *fill(int i, tn_tensor *t)
{
    switch (i) {
    case 0: return tn_init_uniform(t, 0, 1);
    case 1: return tn_init_normal(t, 0, 1);
    case 2: return tn_init_xavier_uniform(t, 1);
    case 3: return tn_init_kaiming_normal(t);
    case 4: return tn_init_trunc_normal(t, 0, 1, -2, 2);
    case 5: return tn_init_orthogonal(t, 1);
    case 6: return tn_init_sparse(t, 0.5, 1);
    default: return tn_init_eye(t);
    }
}

TEST_EACH(memory_that_fails, 8)
{
    tn_faulty_memory_begin();
    tn_scope   s = tn_scope_begin();
    tn_tensor *t = tn_zeros_of(TN_F64, TN_SHAPE(40, 50)), *want = tn_zeros_of(TN_F64, TN_SHAPE(40, 50));
    tn_seed(3);
    fill(_i, want);
    tn_seed(3);
    bool    reached = true;
    int64_t n = 0;
    for (; reached; n++) {
        tn_fail_memory(n, false);
        tn_tensor *r = fill(_i, t);
        reached = tn_memory_calls() > n;
        tn_fail_memory(-1, false);
        ck_assert_int_eq(tn_error(), reached ? TN_ENOMEM : TN_OK);
        tn_clear_error();
        ck_assert(reached ? !r : r == t);
        if (!reached) break;
        ck_assert_uint_eq(tn_current_generator()->position, 0);
        all_are(t, 0);
    }
    ck_assert_int_gt(n, 0);
    ck_assert(tn_allclose(t, want, 0, 0));
    tn_scope_end(s);
    tn_faulty_memory_end();
}

/* In the scope of a model that is then read from a file, nothing is drawn; constants are set as usual. */
TEST(nothing_drawn_in_vain)
{
    const tn_scope s = tn__blank_begin();
    tn_linear     *l = tn_linear_new(.in = 3, .out = 4);
    tn_mha        *a = tn_mha_new(.dim = 4, .heads = 2);
    tn_init_constant(l->weight, 3);
    ck_assert(tn_init_normal(l->weight, 0, 1) == l->weight && tn_init_orthogonal(l->weight, 1) == l->weight);
    ck_assert(tn_init_trunc_normal(l->weight, 0, 1, -1, 1) && tn_init_xavier_normal(l->weight, 1));
    ck_assert(tn_init_kaiming_uniform(l->weight) && tn_init_sparse(l->weight, 0.5, 1));
    ck_assert_double_eq(tn_get(l->weight, 5), 3);
    ck_assert_double_eq(tn_item(tn_sum(tn_init_ones(l->bias))), 4);
    ck_refused(tn_init_normal(NULL, 0, 1), TN_EINVAL, "tn_init_normal: the tensor is NULL");
    tn_scope_end(s);
    ck_assert_uint_eq(tn_current_generator()->position, 0);
    tn_init_normal(l->weight, 0, 1);
    ck_assert_uint_eq(tn_current_generator()->position, 3);
    tn_free(l), tn_free(a);
}

TEST(mistakes)
{
    ck_refused(tn_init_uniform(NULL, 0, 1), TN_EINVAL, "tn_init_uniform: the tensor is NULL");
    ck_refused(tn_init_ones(tn_zeros_of(TN_I64, TN_SHAPE(2))), TN_EDTYPE,
               "tn_init_ones: the tensor is i64, but must be floating");
    ck_refused(tn_init_xavier_uniform(tn_zeros(TN_SHAPE(3)), 1), TN_ESHAPE,
               "tn_init_xavier_uniform: a fan needs a weight [out, in, ...], got [3]; use tn_init_uniform "
               "or tn_init_zeros for biases");
    ck_refused(tn_init_eye(tn_zeros(TN_SHAPE(3))), TN_ESHAPE, "tn_init_eye: the tensor must have two dims, got [3]");
    ck_assert_double_eq(tn_gain((tn_nonlinearity)77, 0), 1);
    ck_error(TN_EINVAL, "tn_gain: 77 is not a tn_nonlinearity");
    ck_assert_uint_eq(tn_current_generator()->position, 0);
}
