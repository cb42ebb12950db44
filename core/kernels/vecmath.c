/* vecmath.c — softmax's functions of a row of f64. See vecmath.h. */
#include "core/kernels/vecmath.h"
#include "core/kernels/sum_lanes.h"

double tn__row_max_f64(int64_t n, const double *x) { return tn__highest_f64(n, x); }

double tn__exp_sum_f64(int64_t n, double *y, const double *x, double shift)
{
    enum { BLOCK = 256 };
    double    own[BLOCK];
    tn__lanes sum = {{0}};
    for (int64_t at = 0; at < n; at += BLOCK) {
        const int64_t k = n - at < BLOCK ? n - at : BLOCK;
        double       *e = y ? y + at : own;
        for (int64_t i = 0; i < k; i++) e[i] = x[at + i] - shift;
        tn__exp_f64(k, e, e);
        tn__add_lanes_f64(&sum, k, e);
    }
    return tn__lanes_total(sum);
}
