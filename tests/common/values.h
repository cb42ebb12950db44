/* values.h — small tensors, and their elements and gradients compared with numbers. */
#ifndef TENON_TESTS_COMMON_VALUES_H
#define TENON_TESTS_COMMON_VALUES_H

#include "autograd/autograd.h"
#include "tests/common/check_main.h"

#define F32(...) tn_from_data(TN_F32, TN_SHAPE(sizeof((float[]){__VA_ARGS__}) / sizeof(float)), (float[]){__VA_ARGS__})
#define F64(...) \
    tn_from_data(TN_F64, TN_SHAPE(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), (double[]){__VA_ARGS__})

static const double inf = (double)INFINITY;

static inline void expect(const tn_tensor *t, int64_t n, const double *want, double tol)
{
    ck_assert_msg(t != NULL, "%s", tn_error_message());
    ck_assert_int_eq(tn_numel(t), n);
    for (int64_t i = 0; i < n; i++) {
        const double x = tn_get(t, i);
        if (x == want[i] || (isnan(x) && isnan(want[i]))) continue;
        ck_assert_msg(fabs(x - want[i]) <= tol * fabs(want[i]), "[%lld] is %.17g, should be %.17g", (long long)i, x,
                      want[i]);
    }
}
#define EXPECT(t, tol, ...) expect(t, sizeof((double[]){__VA_ARGS__}) / sizeof(double), (double[]){__VA_ARGS__}, tol)

/* The gradient of a result of one element, by the fast backward or by the one that can be differentiated again. */
static inline tn_tensor *gradient(tn_tensor *y, tn_tensor *x, bool ops)
{
    tn_tensor *g = NULL;
    tn_grad_of_run(
        (tn_grad_of_args){.root = y, .count = 1, .wrt = &x, .grad = &g, .create_graph = ops, .retain = true});
    return g;
}

#endif
