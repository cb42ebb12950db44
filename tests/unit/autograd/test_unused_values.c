/* test_unused_values.c — a NaN or an infinity reaches only results that depend on it: no op multiplies a value that it
 * does not use by 0. */
#include "tests/common/check_main.h"

#include "autograd/autograd.h"

static const double bad[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};

/* x [1, 1, 5] of ones, x[at] = value */
static tn_tensor *ones_but(int64_t at, double value)
{
    tn_tensor *x = tn_ones(TN_SHAPE(1, 1, 5));
    return tn_set(x, at, value), x;
}

static bool is(double a, double b) { return a == b || (a != a && b != b); }

TEST(adaptive_means)
{
    for (int b = 0; b < 3; b++) {
        tn_tensor *y = tn_adaptive_avg_pool1d(ones_but(4, bad[b]), 2); /* windows 0 … 2 and 2 … 4 */
        ck_assert(tn_get(y, 0) == 1 && is(tn_get(y, 1), bad[b]));
        tn_tensor *square = tn_reshape(ones_but(4, bad[b]), TN_SHAPE(1, 1, 1, 5));
        y = tn_adaptive_avg_pool2d(tn_expand(square, TN_SHAPE(1, 1, 3, 5)), 2, 3); /* 0 … 1, 1 … 3, 3 … 4 */
        for (int i = 0; i < 2; i++)
            ck_assert(tn_get(y, 3 * i) == 1 && tn_get(y, 3 * i + 1) == 1 && is(tn_get(y, 3 * i + 2), bad[b]));
        tn_tensor *x = tn_requires_grad(tn_ones(TN_SHAPE(1, 1, 5))), *gy = tn_ones(TN_SHAPE(1, 1, 2));
        tn_set(gy, 1, bad[b]);
        tn_backward(tn_adaptive_avg_pool1d(x, 2), .seed = gy);
        ck_assert(fabs(tn_get(tn_grad(x), 0) - 1.0 / 3) < 1e-7 && is(tn_get(tn_grad(x), 4), bad[b]));
    }
}

TEST(interpolation)
{
    for (int b = 0; b < 3; b++) {
        tn_tensor *x = ones_but(2, bad[b]);
        tn_tensor *same = tn_interpolate(x, TN_SHAPE(5), TN_LINEAR, false);
        for (int i = 0; i < 5; i++) ck_assert(is(tn_get(same, i), i == 2 ? bad[b] : 1));
        tn_tensor *wide = tn_interpolate(x, TN_SHAPE(9), TN_LINEAR, true); /* every second one is an element of x */
        for (int i = 0; i < 9; i++) ck_assert(is(tn_get(wide, i), i >= 3 && i <= 5 ? bad[b] : 1));
    }
}

TEST(slopes)
{
    for (int b = 0; b < 3; b++) {
        tn_tensor *x = tn_requires_grad(tn_ones(TN_SHAPE(2))), *w = tn_requires_grad(tn_full(TN_SHAPE(1), bad[b]));
        tn_backward(tn_sum(tn_prelu(x, w)));
        ck_assert(tn_get(tn_grad(x), 0) == 1 && tn_get(tn_grad(w), 0) == 0);
        tn_tensor *far = tn_requires_grad(tn_full(TN_SHAPE(2), (double)INFINITY));
        tn_tensor *quarter = tn_requires_grad(tn_full(TN_SHAPE(1), 0.25));
        tn_backward(tn_sum(tn_prelu(far, quarter)));
        ck_assert(tn_get(tn_grad(far), 0) == 1 && tn_get(tn_grad(quarter), 0) == 0);
    }
}
