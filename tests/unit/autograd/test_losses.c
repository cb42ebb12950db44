/* test_losses.c — losses, normalisation and dropout compared with plain loops in f64, at the ends of the dtypes'
 * ranges, and where Tenon differs from PyTorch on purpose. */
#include "autograd/autograd.h"
#include "tests/common/check_main.h"
#include "tests/common/values.h"

#define I64(...) \
    tn_from_data(TN_I64, TN_SHAPE(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

static bool bits(const tn_tensor *a, const tn_tensor *b)
{
    if (!a || !b || !tn_shape_equal(tn_shape_of(a), tn_shape_of(b))) return false;
    for (int64_t i = 0, n = tn_numel(a); i < n; i++) {
        const double x = tn_get(a, i), y = tn_get(b, i);
        if (memcmp(&x, &y, sizeof x) != 0) return false;
    }
    return true;
}

/* ---- cross-entropy ---- */

enum { N = 5, C = 4 };

/* The definition, as in PyTorch 1.13, for [N, C]. loss: [N]; slope: [N, C], the gradient of the reduced loss. */
static double reference(const double *x, const int64_t *t, const double *p, const double *w, double eps, int64_t ignore,
                        tn_reduction r, double *loss, double *slope)
{
    double sum = 0, divisor = 0, total[N], share[N][C];
    for (int i = 0; i < N; i++) {
        double z = 0;
        loss[i] = total[i] = 0;
        for (int c = 0; c < C; c++) z += exp(x[i * C + c]);
        for (int c = 0; c < C; c++) {
            const double wc = w ? w[c] : 1;
            if (p) share[i][c] = wc * ((1 - eps) * p[i * C + c] + eps / C);
            else share[i][c] = t[i] == ignore ? 0 : (c == t[i] ? (1 - eps) * wc : 0) + eps / C * wc;
            loss[i] -= share[i][c] * (x[i * C + c] - log(z));
            total[i] += share[i][c];
        }
        for (int c = 0; c < C; c++) slope[i * C + c] = total[i] * exp(x[i * C + c]) / z - share[i][c];
        sum += loss[i];
        if (p) divisor += 1;
        else if (t[i] != ignore) divisor += w ? w[t[i]] : 1;
    }
    for (int k = 0; r == TN_MEAN && k < N * C; k++) slope[k] /= divisor;
    return r == TN_MEAN ? sum / divisor : sum;
}

static void compare(const tn_tensor *got, const double *want, int n, const char *what, int at)
{
    ck_assert_msg(got != NULL, "%s", tn_error_message());
    for (int i = 0; i < n; i++)
        ck_assert_msg(fabs(tn_get(got, i) - want[i]) <= 1e-13 * (1 + fabs(want[i])),
                      "case %d: %s [%d] is %.17g, should be %.17g", at, what, i, tn_get(got, i), want[i]);
}

TEST_EACH(cross_entropy_by_definition, 24)
{
    const bool         classes = !(_i & 1), weighted = _i & 2, smooth = _i & 4;
    const tn_reduction r = (tn_reduction)(_i / 8);
    const int64_t      t[N] = {3, 0, 2, 0, 1};
    const double       w[C] = {0.5, 2, 1.25, 0.75}, eps = smooth ? 0.2 : 0;
    double             x[N * C], p[N * C], loss[N], slope[N * C];
    for (int i = 0; i < N * C; i++) x[i] = 3 * tn_random_double(NULL), p[i] = tn_random_double(NULL);
    const double want = reference(x, t, classes ? NULL : p, weighted ? w : NULL, eps, 2, r, loss, slope);

    for (int ops = 0; ops < 2; ops++)
        for (int middle = 0; middle < 2; middle++) { /* classes last, or in the middle: [1, C, N] */
            tn_tensor *logits = tn_requires_grad(tn_from_data(TN_F64, TN_SHAPE(N, C), x)), *seen = logits;
            tn_tensor *target =
                classes ? tn_from_data(TN_I64, TN_SHAPE(N), t) : tn_from_data(TN_F64, TN_SHAPE(N, C), p);
            if (middle) {
                seen = tn_unsqueeze(tn_transpose(logits, 0, 1), 0);
                target = tn_unsqueeze(classes ? target : tn_transpose(target, 0, 1), 0);
            }
            int64_t    counted = -1;
            tn_tensor *y =
                tn_cross_entropy(seen, target, .weight = weighted ? tn_from_data(TN_F64, TN_SHAPE(C), w) : NULL,
                                 .ignore_index = classes ? 2 : -100, .label_smoothing = eps, .reduction = r,
                                 .class_dim = middle ? 1 : -1, .counted = &counted);
            compare(y, r == TN_NONE ? loss : &want, r == TN_NONE ? N : 1, "loss", _i);
            ck_assert_int_eq(counted, classes ? N - 1 : N);
            compare(gradient(tn_sum(y), logits, ops), slope, N * C, "gradient", _i);
            /* nll_loss of log_softmax gives the same */
            if (!classes || smooth) continue;
            y = tn_nll_loss(tn_log_softmax(seen, middle ? 1 : -1), target,
                            .weight = weighted ? tn_from_data(TN_F64, TN_SHAPE(C), w) : NULL,
                            .ignore_index = classes ? 2 : -100, .reduction = r, .class_dim = middle ? 1 : -1,
                            .counted = &counted);
            compare(y, r == TN_NONE ? loss : &want, r == TN_NONE ? N : 1, "nll_loss", _i);
            compare(gradient(tn_sum(y), logits, ops), slope, N * C, "gradient of nll_loss", _i);
            ck_assert_int_eq(counted, N - 1);
        }
}

TEST(cross_entropy_departs)
{
    tn_tensor *x = tn_requires_grad(tn_uniform(TN_SHAPE(3, 4), -1, 1)), *t = tn_full_of(TN_I64, TN_SHAPE(3), -100);
    int64_t    counted = 7;
    for (int ops = 0; ops < 2; ops++)
        for (int r = 0; r < 2; r++) {
            tn_tensor *y =
                tn_cross_entropy(x, t, .counted = &counted, .reduction = (tn_reduction)r, .label_smoothing = 0.1);
            EXPECT(y, 0, 0);
            EXPECT(gradient(y, x, ops), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
            ck_assert_int_eq(counted, 0);
            EXPECT(tn_nll_loss(x, t, .reduction = (tn_reduction)r, .counted = &counted), 0, 0);
            ck_assert_int_eq(counted, 0);
        }
    EXPECT(tn_cross_entropy(tn_zeros(TN_SHAPE(0, 4)), tn_zeros_of(TN_I64, TN_SHAPE(0))), 0, 0);

    /* an ignored row may hold anything */
    x = tn_requires_grad(tn_from_data(TN_F32, TN_SHAPE(2, 2), (float[]){NAN, INFINITY, 0, 0}));
    for (int ops = 0; ops < 2; ops++)
        EXPECT(gradient(tn_cross_entropy(x, I64(-100, 1), .counted = &counted), x, ops), 1e-7, 0, 0, .5, -.5);
    ck_assert_int_eq(counted, 1);

    counted = 7;
    t = tn_zeros_of(TN_I64, TN_SHAPE(5, 20));
    tn_set(t, 3 * 20 + 17, 8000);
    ck_refused(tn_cross_entropy(tn_zeros(TN_SHAPE(5, 20, 8000)), t, .counted = &counted), TN_EINDEX,
               "cross_entropy: target 8000 at [3, 17] is outside 0…7999 and is not ignore_index -100");
    ck_assert_int_eq(counted, 7);
    ck_refused(tn_cross_entropy(tn_zeros(TN_SHAPE(1, 3)), I64(-1), .ignore_index = 0), TN_EINDEX,
               "cross_entropy: target -1 at [0] is outside 0…2 and is not ignore_index 0");
    ck_refused(tn_cross_entropy(tn_zeros(TN_SHAPE(1, 3)), I64(0), .weight = tn_requires_grad(tn_ones(TN_SHAPE(3)))),
               TN_EUNSUPPORTED,
               "cross_entropy: weight requires grad, but has no gradient here; pass tn_detach(weight)");
    ck_refused(tn_cross_entropy(NULL, I64(0)), TN_EINVAL, "cross_entropy: input 0 is NULL");
}

TEST(cross_entropy_of_extremes)
{
    tn_tensor *x =
        tn_requires_grad(tn_from_data(TN_F32, TN_SHAPE(2, 3), (float[]){1e4f, -1e4f, 0, 3e38f, 3e38f, -INFINITY}));
    tn_tensor *y = tn_cross_entropy(x, I64(2, 0), .reduction = TN_NONE);
    EXPECT(y, 1e-7, 1e4, log(2));
    EXPECT(gradient(tn_sum(y), x, false), 1e-7, 1, 0, -1, -.5, .5, 0);
    /* an impossible class that is not the target adds nothing to the loss */
    x = tn_from_data(TN_F32, TN_SHAPE(1, 3), (float[]){0, 0, -INFINITY});
    EXPECT(tn_cross_entropy(x, tn_from_data(TN_F32, TN_SHAPE(1, 3), (float[]){.5f, .5f, 0})), 1e-7, log(2));
    EXPECT(tn_cross_entropy(x, I64(2)), 0, inf);
    /* smoothing of 1: the share of the target is 0, also 0 times an infinite loss */
    tn_tensor *z = tn_from_data(TN_F32, TN_SHAPE(1, 1), ((float[]){1})), *ends = tn_zeros(TN_SHAPE(3));
    tn_set(ends, 0, -INFINITY);
    y = tn_linear_cross_entropy(z, tn_zeros(TN_SHAPE(3, 1)), ends, I64(0), .label_smoothing = 1);
    ck_assert(isinf(tn_item(y)) && tn_item(y) > 0);
    /* if all targets have weight 0 there is nothing to average, for any smoothing */
    for (int k = 0; k < 2; k++) {
        tn_tensor *w = tn_from_data(TN_F32, TN_SHAPE(3), (float[]){0, 1, 2});
        x = tn_requires_grad(tn_from_data(TN_F32, TN_SHAPE(2, 3), (float[]){1, 2, 3, 0, -1, 5}));
        y = tn_cross_entropy(x, I64(0, 0), .weight = w, .label_smoothing = k * 0.5);
        EXPECT(y, 0, 0);
        EXPECT(gradient(y, x, false), 0, 0, 0, 0, 0, 0, 0);
        x = tn_requires_grad(tn_from_data(TN_F32, TN_SHAPE(2, 3), (float[]){-1, -2, -3, 0, -1, -5}));
        y = tn_nll_loss(x, I64(0, 0), .weight = w);
        EXPECT(y, 0, 0);
        EXPECT(gradient(y, x, false), 0, 0, 0, 0, 0, 0, 0);
    }
    /* large logits keep the digits of small losses */
    x = tn_from_data(TN_F32, TN_SHAPE(1, 2), (float[]){1000, 1000 - 16});
    EXPECT(tn_cross_entropy(x, I64(0)), 1e-6, log1p(exp(-16)));
    /* i32 targets, bf16 logits */
    ck_assert(bits(tn_cross_entropy(x, tn_to(I64(1), TN_I32)), tn_cross_entropy(x, I64(1))));
    ck_assert_int_eq(tn_dtype_of(tn_cross_entropy(tn_to(x, TN_BF16), I64(1))), TN_BF16);
}

TEST(cross_entropy_bits)
{
    const int64_t rows = 301, classes = 501;
    tn_tensor    *x = tn_normal_of(TN_F64, TN_SHAPE(rows, classes), 0, 2), *t = tn_randint(TN_SHAPE(rows), 0, classes),
              *want = NULL, *g = NULL;
    tn_tensor *turned = tn_requires_grad(tn_detach(tn_transpose(tn_clone(tn_transpose(x, 0, 1)), 0, 1)));
    tn_requires_grad(x);
    for (int threads = 1; threads <= 7; threads += threads < 3 ? 1 : 4)
        for (int layout = 0; layout < 2; layout++) {
            tn_set_threads(threads);
            tn_tensor *seen = layout ? turned : x, *y = tn_cross_entropy(seen, t, .label_smoothing = 0.1),
                      *gy = gradient(y, seen, false);
            if (!want) want = y, g = gy;
            ck_assert_msg(bits(y, want) && bits(gy, g), "%d threads, layout %d", threads, layout);
        }
    /* a row's loss does not depend on the others */
    tn_tensor *all = tn_cross_entropy(x, t, .reduction = TN_NONE);
    tn_tensor *one = tn_cross_entropy(tn_narrow(x, 0, 300, 1), tn_narrow(t, 0, 300, 1), .reduction = TN_NONE);
    ck_assert(bits(one, tn_narrow(all, 0, 300, 1)));
}

/* ---- losses of pairs ---- */

TEST(losses_of_pairs)
{
    tn_tensor *a = F64(1, 2, 5), *b = F64(1, 4, 2);
    EXPECT(tn_mse_loss(a, b), 1e-15, 13.0 / 3);
    EXPECT(tn_mse_loss(a, b, .reduction = TN_SUM), 0, 13);
    EXPECT(tn_mse_loss(a, b, .reduction = TN_NONE), 0, 0, 4, 9);
    EXPECT(tn_l1_loss(a, b, .reduction = TN_NONE), 0, 0, 2, 3);
    EXPECT(tn_huber_loss(a, b, .reduction = TN_NONE), 0, 0, 1.5, 2.5);
    EXPECT(tn_huber_loss(a, b, .reduction = TN_SUM, .delta = 2.5), 1e-15, 2 + 2.5 * (3 - 1.25));
    EXPECT(tn_mse_loss(I64(1, 2), I64(2, 4)), 0, 2.5);
    ck_assert_int_eq(tn_dtype_of(tn_mse_loss(I64(1, 2), I64(2, 4))), TN_F32);
    tn_requires_grad(a);
    for (int ops = 0; ops < 2; ops++) {
        EXPECT(gradient(tn_l1_loss(a, b, .reduction = TN_SUM), a, ops), 0, 0, -1, 1);
        EXPECT(gradient(tn_huber_loss(a, b, .reduction = TN_SUM, .delta = 2.5), a, ops), 0, 0, -2, 2.5);
    }
    ck_refused(tn_mse_loss(a, b, .reduction = (tn_reduction)5), TN_EINVAL,
               "mse_loss: reduction 5 is not TN_MEAN, TN_SUM or TN_NONE");
    ck_refused(tn_mse_loss(a, b, .weight = b), TN_EINVAL, "mse_loss: has no weights");
    ck_refused(tn_l1_loss(a, b, .delta = 2), TN_EINVAL, "l1_loss: has no .delta");
    ck_refused(tn_huber_loss(a, b, .log_target = true), TN_EINVAL, "huber_loss: has no .log_target");
    ck_refused(tn_huber_loss(a, NULL), TN_EINVAL, "huber_loss: input 1 is NULL");
    ck_refused(tn_bce_with_logits(a, b, .batchmean = true), TN_EINVAL, "bce_with_logits: has no .batchmean");
}

/* PyTorch has the classes in dim 1, Tenon in the last. */
TEST(an_error_names_class_dim)
{
    tn_tensor *x = tn_zeros(TN_SHAPE(2, 3, 4)), *t = tn_zeros_of(TN_I64, TN_SHAPE(2, 4));
    ck_refused(tn_cross_entropy(x, t), TN_ESHAPE,
               "cross_entropy: the target is i64 [2, 4], but for 4 classes in dim 2 of [2, 3, 4] it must be [2, 3]; if "
               "the classes are in dim 1, set .class_dim = 1");
    ck_refused(tn_nll_loss(x, t), TN_ESHAPE,
               "nll_loss: the target is i64 [2, 4], but for 4 classes in dim 2 of [2, 3, 4] it must be [2, 3]; if the "
               "classes are in dim 1, set .class_dim = 1");
    ck_assert_ptr_nonnull(tn_cross_entropy(x, t, .class_dim = 1));
    ck_refused(tn_cross_entropy(x, t, .class_dim = 0), TN_ESHAPE,
               "cross_entropy: the target is i64 [2, 4], but for 2 classes in dim 0 of [2, 3, 4] it must be [3, 4]; if "
               "the classes are in dim 1, set .class_dim = 1");
}

/* [N, 1] and [N] would make N² pairs: equal values had a loss of 2.5. */
TEST(pairs_are_not_broadcast)
{
#define SHAPES_DIFFER(input, target) \
    "input " input " and target " target " must have the same shape; tn_reshape or tn_expand one of them"
    tn_tensor *x = tn_reshape(F64(1, 2, 3), TN_SHAPE(3, 1)), *t = F64(1, 2, 3);
    ck_refused(tn_mse_loss(x, t), TN_ESHAPE, "mse_loss: " SHAPES_DIFFER("[3, 1]", "[3]"));
    ck_refused(tn_l1_loss(x, t), TN_ESHAPE, "l1_loss: " SHAPES_DIFFER("[3, 1]", "[3]"));
    ck_refused(tn_huber_loss(x, t), TN_ESHAPE, "huber_loss: " SHAPES_DIFFER("[3, 1]", "[3]"));
    ck_refused(tn_kl_div(x, t), TN_ESHAPE, "kl_div: " SHAPES_DIFFER("[3, 1]", "[3]"));
    ck_refused(tn_bce_with_logits(x, t), TN_ESHAPE, "bce_with_logits: " SHAPES_DIFFER("[3, 1]", "[3]"));
    ck_refused(tn_mse_loss(t, tn_scalar(1)), TN_ESHAPE, "mse_loss: " SHAPES_DIFFER("[3]", "[]"));
    ck_refused(tn_mse_loss(I64(1, 2, 3), I64(1)), TN_ESHAPE, "mse_loss: " SHAPES_DIFFER("[3]", "[1]"));
}

TEST(divergence)
{
    tn_tensor   *x = tn_requires_grad(tn_from_data(TN_F64, TN_SHAPE(2, 2), (double[]){-1, -inf, -2, -3}));
    tn_tensor   *t = tn_requires_grad(tn_from_data(TN_F64, TN_SHAPE(2, 2), (double[]){1, 0, .25, .75}));
    const double sum = 1 + .25 * (log(.25) + 2) + .75 * (log(.75) + 3);
    EXPECT(tn_kl_div(x, t, .reduction = TN_SUM), 1e-15, sum);
    EXPECT(tn_kl_div(x, t), 1e-15, sum / 4);
    EXPECT(tn_kl_div(x, t, .batchmean = true), 1e-15, sum / 2);
    tn_tensor *half = F64(.5, .5);
    EXPECT(tn_kl_div(half, tn_log(half), .reduction = TN_NONE, .log_target = true), 1e-15, .5 * (log(.5) - .5),
           .5 * (log(.5) - .5));
    for (int ops = 0; ops < 2; ops++) {
        EXPECT(gradient(tn_kl_div(x, t, .reduction = TN_SUM), x, ops), 1e-15, -1, 0, -.25, -.75);
        tn_tensor *z = tn_requires_grad(F64(0, 1)), *l = F64(-1, -2);
        EXPECT(gradient(tn_kl_div(l, z, .reduction = TN_SUM), z, ops), 1e-15, 1, 3); /* 0 · log 0 adds nothing */
    }
    ck_refused(tn_kl_div(tn_scalar(1), tn_scalar(1), .batchmean = true), TN_ESHAPE,
               "kl_div: batchmean divides by the size of the first dim, and a 0-d input has none");
    ck_refused(tn_kl_div(x, t, .reduction = TN_NONE, .batchmean = true), TN_EINVAL,
               "kl_div: .batchmean is a mean; do not set .reduction");
}

TEST(binary_cross_entropy)
{
    tn_tensor *x = tn_requires_grad(F32(1e4f, -1e4f, 1e4f, -1e4f, 0)), *t = F32(1, 0, 0, 1, .25f);
    EXPECT(tn_bce_with_logits(x, t, .reduction = TN_NONE), 1e-7, 0, 0, 1e4, 1e4, log(2));
    for (int ops = 0; ops < 2; ops++)
        EXPECT(gradient(tn_bce_with_logits(x, t, .reduction = TN_SUM), x, ops), 1e-7, 0, 0, 1, -1, .25);
    EXPECT(tn_bce_with_logits(F64(2), F64(.3), .reduction = TN_NONE, .weight = F64(3), .pos_weight = F64(5)), 1e-14,
           3 * (5 * .3 * log1p(exp(-2)) + .7 * (2 + log1p(exp(-2)))));
    EXPECT(tn_bce_with_logits(I64(0), I64(1)), 1e-7, log(2));
}

TEST(cosine)
{
    EXPECT(tn_cosine_similarity(F64(3, 4), F64(4, 3), 0, 0), 1e-15, 24.0 / 25);
    EXPECT(tn_cosine_similarity(F32(3e30f, 4e30f), F32(-3e30f, -4e30f), 0, 0), 1e-6, -1);
    EXPECT(tn_cosine_similarity(I64(1, 0), F64(1, 1), 0, 0), 1e-15, sqrt(.5));
    for (int ops = 0; ops < 2; ops++) { /* the similarity of a zero vector is 0; its gradient is finite */
        tn_tensor *zero = tn_requires_grad(F64(0, 0)), *y = tn_cosine_similarity(zero, F64(3, 4), 0, 1e-2);
        EXPECT(y, 0, 0);
        EXPECT(gradient(y, zero, ops), 1e-13, 60, 80);
    }
    /* the same quotient by hand has the same bits; a row of zeros stays 0 */
    tn_tensor *x = tn_requires_grad(tn_reshape(F64(3, 4, 0, 0, -5, 12), TN_SHAPE(3, 2)));
    EXPECT(tn_normalize(x, 1), 1e-15, .6, .8, 0, 0, -5.0 / 13, 12.0 / 13);
    EXPECT(tn_normalize(x, 0), 1e-15, 3 / sqrt(34), 4 / sqrt(160), 0, 0, -5 / sqrt(34), 12 / sqrt(160));
    tn_tensor *length = tn_norm(x, .dims = TN_DIMS(-1), .keepdim = true);
    ck_assert(bits(tn_normalize(x, -1), tn_div(x, tn_clamp(length, 1e-12, INFINITY))));
    ck_assert_ptr_null(tn_normalize(NULL, 0));
    ck_assert_ptr_null(tn_normalize(x, 2));
    tn_clear_error();
}

/* ---- normalisation ---- */

TEST(layer_norm_of_extremes)
{
    const double d = 1 / sqrt(1.25 + 0.5);
    EXPECT(tn_layer_norm(F64(1, 2, 3, 4), F64(1, 1, 2, 1), F64(0, 1, 0, 0), 0.5), 1e-15, -1.5 * d, 1 - .5 * d, d,
           1.5 * d);
    EXPECT(tn_rms_norm(F64(1, 7), F64(1, 2), 24), 1e-15, 1 / 7.0, 2);

    /* constant rows are normalised to 0, so the result is the bias, for any eps */
    tn_tensor *x = tn_full(TN_SHAPE(2, 7), 1e4), *w = tn_full(TN_SHAPE(7), 3), *b = tn_to(tn_arange(7), TN_F32);
    EXPECT(tn_layer_norm(x, w, b, 1e-12), 0, 0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5, 6);

    /* a mean of 1e4, a spread of 1e-2: results and gradients are as accurate as f32 allows */
    const int64_t rows = 70, n = 768;
    x = tn_requires_grad(tn_normal(TN_SHAPE(rows, n), 1e4, 1e-2));
    w = tn_requires_grad(tn_uniform(TN_SHAPE(n), 0.5, 1.5)), b = tn_requires_grad(tn_zeros(TN_SHAPE(n)));
    tn_tensor *x2 = tn_requires_grad(tn_to(tn_detach(x), TN_F64)), *w2 = tn_requires_grad(tn_to(tn_detach(w), TN_F64));
    tn_tensor *y = tn_layer_norm(x, w, b, 1e-12), *y2 = tn_layer_norm(x2, w2, NULL, 1e-12),
              *seed = tn_uniform(TN_SHAPE(rows, n), -1, 1);
    for (int64_t i = 0; i < rows * n; i += 7) ck_assert_double_le(fabs(tn_get(y, i) - tn_get(y2, i)), 2e-6);
    tn_backward(y, .seed = seed);
    tn_backward(y2, .seed = tn_to(seed, TN_F64));
    for (int64_t i = 0; i < rows * n; i += 7)
        ck_assert_double_le(fabs(tn_get(tn_grad(x), i) - tn_get(tn_grad(x2), i)), 1e-3);
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t r = 0; r < rows; r++) sum += tn_get(seed, r * n + i);
        ck_assert_double_le(fabs(tn_get(tn_grad(w), i) - tn_get(tn_grad(w2), i)), 2e-5);
        ck_assert_double_le(fabs(tn_get(tn_grad(b), i) - sum), 1e-5);
    }
    /* eps of rms_norm */
    EXPECT(tn_rms_norm(F32(0, 0), NULL, 1e-12), 0, 0, 0);
    EXPECT(tn_rms_norm(F64(3e-8, 3e-8), NULL, 0), 1e-9, 1, 1); /* 0 is 0 */
    EXPECT(tn_rms_norm(F64(3e-8, 3e-8), NULL, 0x1p-52), 1e-9, 3e-8 / sqrt(9e-16 + 0x1p-52),
           3e-8 / sqrt(9e-16 + 0x1p-52));
    EXPECT(tn_rms_norm(F32(1e20f, 1e20f), NULL, 0), 1e-6, 1, 1);
}

TEST(layer_norm_bits)
{
    const int64_t rows = 1000, n = 50;
    tn_tensor    *x = tn_normal_of(TN_F64, TN_SHAPE(rows, 5, 10), 1, 2),
              *w = tn_uniform_of(TN_F64, TN_SHAPE(5, 10), -1, 1), *b = tn_uniform_of(TN_F64, TN_SHAPE(5, 10), -1, 1);
    tn_tensor *turned = tn_permute(tn_clone(tn_permute(x, TN_DIMS(2, 0, 1))), TN_DIMS(1, 2, 0)),
              *seed = tn_uniform_of(TN_F64, TN_SHAPE(rows, 5, 10), -1, 1);
    tn_tensor *seen[2] = {tn_requires_grad(x), tn_requires_grad(tn_detach(turned))}, *want[4] = {NULL};
    tn_requires_grad(w), tn_requires_grad(b);
    for (int threads = 1; threads <= 7; threads += threads < 3 ? 1 : 4)
        for (int layout = 0; layout < 2; layout++) {
            tn_set_threads(threads);
            tn_tensor *g[4] = {tn_layer_norm(seen[layout], w, b, 1e-5)};
            tn_grad_of(g[0], 3, ((tn_tensor *[]){seen[layout], w, b}), g + 1, .seed = seed);
            for (int i = 0; i < 4; i++) {
                if (!want[i]) want[i] = g[i];
                ck_assert_msg(bits(g[i], want[i]), "%d threads, layout %d: %d", threads, layout, i);
            }
        }
    ck_assert_int_eq(tn_numel(want[2]), n);
}

/* ---- dropout ---- */

static tn_tensor *drop_half(tn_tensor *const *in, int n, void *user)
{
    (void)n, (void)user;
    return tn_mul(tn_dropout(in[0], 0.5), tn_dropout(in[0], 0.25));
}

TEST(dropout_is_fair)
{
    const int64_t n = 100000;
    tn_tensor    *x = tn_ones(TN_SHAPE(n));
    for (double p = 0.1; p < 1; p += 0.4) {
        const int  apart[] = {1, 4, 8, 16}; /* elements of one word are 8 apart */
        int64_t    zeros = 0, pairs[4] = {0};
        tn_tensor *y = tn_dropout(x, p);
        for (int64_t i = 0; i < n; i++) {
            const double v = tn_get(y, i);
            for (int k = 0; k < 4; k++) pairs[k] += v == 0 && i >= apart[k] && tn_get(y, i - apart[k]) == 0;
            if (v == 0) zeros++;
            else ck_assert_double_eq(v, (double)(float)(1 / (1 - p)));
        }
        const double sd = sqrt((double)n * p * (1 - p));
        ck_assert_double_le(fabs((double)zeros - (double)n * p), 5 * sd);
        for (int k = 0; k < 4; k++) /* they are independent */
            ck_assert_double_le(fabs((double)pairs[k] - (double)n * p * p), 5 * 2 * sd);
    }
    ck_assert_ptr_eq(tn_dropout(x, 0), x);
    for (int i = 0; i < 2; i++) { /* p is rounded, but neither to 0 nor to 1 */
        tn_tensor   *y = tn_dropout(tn_ones(TN_SHAPE(1 << 21)), i ? 1 - 1e-9 : 1e-9);
        const double mean = tn_item(tn_mean(tn_to(tn_ne(y, tn_scalar(0)), TN_F64)));
        ck_assert_double_le(fabs((i ? mean : 1 - mean) - 0x1p-16), 0x1p-17);
    }
    EXPECT(tn_dropout(F32(1, INFINITY, NAN), 1), 0, 0, 0, 0);
}

/* The mask of [B, T, ...] does not depend on T, nor do later draws; attention's neither on the number of keys. */
TEST(dropout_of_longer_sequences)
{
    tn_tensor *y[2], *w[2], *rows = tn_from_data(TN_I64, TN_SHAPE(2), (int64_t[]){1, 30}), *row;
    double     next[2];
    for (int i = 0; i < 2; i++) {
        const int64_t length = i ? 29 : 17;
        tn_tensor    *q = tn_ones(TN_SHAPE(3, 2, length, 4));
        tn_seed(4);
        y[i] = tn_clone(tn_narrow(tn_dropout(tn_ones(TN_SHAPE(3, length, 5, 7)), 0.4), 1, 0, 17));
        tn_attention(q, q, q, .causal = true, .dropout = 0.4, .weights = &w[i]);
        w[i] = tn_clone(tn_narrow(tn_narrow(w[i], 2, 0, 17), 3, 0, 17));
        next[i] = tn_random_double(NULL);
    }
    ck_assert(bits(y[0], y[1]) && bits(w[0], w[1]) && next[0] == next[1]);
    ck_assert(!bits(tn_clone(tn_select(y[0], 0, 0)), tn_clone(tn_select(y[0], 0, 1))));
    tn_seed(4);
    tn_tensor *all = tn_dropout(tn_ones(TN_SHAPE(2, 29, 35)), 0.4);
    tn_seed(4);
    row = tn_dropout_rows(tn_ones(TN_SHAPE(2, 35)), 0.4, rows, 29); /* the second rows of both sequences */
    ck_assert(bits(row, tn_clone(tn_select(all, 1, 1))));
    ck_refused(tn_dropout_rows(row, 0.4, rows, 0), TN_EINVAL,
               "dropout: length is 0, which is not the number of rows of a sequence");
    ck_refused(tn_dropout_rows(row, 0.4, NULL, 2), TN_EINVAL, "dropout: length is 2, but rows is NULL");
    tn_set_i64(rows, 1, -1);
    ck_refused(tn_dropout_rows(row, 0.4, rows, 9), TN_EINDEX, "dropout: row 1 is -1, which is not the index of a row");
}

TEST(dropout_has_one_mask)
{
    tn_tensor *x = tn_uniform(TN_SHAPE(301, 67), 1, 2), *want = NULL;
    tn_tensor *turned = tn_transpose(tn_clone(tn_transpose(x, 0, 1)), 0, 1);
    tn_tensor *seen[] = {x, turned, tn_to(x, TN_F64), tn_to(x, TN_BF16)};
    for (int i = 0; i < 4; i++)
        for (int threads = 1; threads <= 7; threads += threads < 3 ? 1 : 4) {
            tn_set_threads(threads);
            tn_seed(3);
            tn_tensor *leaf = tn_requires_grad(tn_detach(seen[i])), *y = tn_dropout(leaf, 0.3);
            ck_assert(tn_current_generator()->position == 1);
            tn_tensor *g = gradient(tn_sum(y), leaf, false), *again = gradient(tn_sum(y), leaf, true);
            tn_tensor *mask = tn_ne(y, tn_scalar(0));
            if (!want) want = mask;
            ck_assert_msg(bits(mask, want), "layout %d, %d threads", i, threads);
            ck_assert_msg(bits(tn_ne(g, tn_scalar(0)), want) && bits(g, again), "gradient, layout %d, %d threads", i,
                          threads);
        }
    /* the next call draws another mask */
    ck_assert(!bits(tn_ne(tn_dropout(x, 0.3), tn_scalar(0)), want));
    /* a failed call draws no random numbers */
    const uint64_t position = tn_current_generator()->position;
    ck_refused(tn_dropout(x, 2), TN_EINVAL, "dropout: p is 2, but a probability must be from 0 to 1");
    ck_refused(tn_dropout(NULL, 0), TN_EINVAL, "dropout: input 0 is NULL");
    tn_set_memory_limit(tn_memory_now().live + 1000);
    ck_refused_code(tn_dropout(x, 0.5), TN_ENOMEM);
    tn_set_memory_limit(0);
    ck_assert(tn_current_generator()->position == position);

    /* recomputed: the same random numbers, the same gradient */
    tn_requires_grad(x);
    tn_generator g = {.seed = 9}, *own = tn_use_generator(&g);
    tn_tensor   *plain = gradient(tn_sum(drop_half(&x, 1, NULL)), x, false);
    g.position = 0;
    ck_assert(bits(gradient(tn_sum(tn_checkpoint(drop_half, NULL, 1, &x)), x, false), plain));
    tn_use_generator(own);
}
