/* need.c — the memory of a call, calculated from calls with small sizes. Tensors of a forward are proportional to the
 * batch, or the same for all rows, and at most to the square of the length:
 *
 *   f(B, T) = a + p T + q T² + B (r T + s T²) */
#include "nn/base/nn_private.h"

#include <math.h>

enum { SHORT = 64 }; /* the smallest length: size classes and small tensors are little in comparison */

static double measured(int64_t batch, int64_t length, tn_tensor *(*call)(int64_t, int64_t, void *), void *user)
{
    const tn_scope s = tn_scope_begin();
    tn_trim();
    const size_t before = tn_memory_now().live;
    tn_reset_peak();
    if (!call(batch, length, user) && tn_error() == TN_OK)
        tn_raise(TN_ESTATE, "tn_need: the call returned NULL without raising an error");
    const size_t peak = tn_memory_now().peak;
    tn_scope_end(s);
    return peak > before ? (double)(peak - before) : 0;
}

size_t tn_need(int64_t batch, int64_t length, tn_tensor *(*call)(int64_t batch, int64_t length, void *user), void *user)
{
    if (tn__blocked() || !tn__at_least("tn_need", "batch", batch, 1) || !tn__at_least("tn_need", "length", length, 1) ||
        !tn__not_null("tn_need", "the call", (const void *)(uintptr_t)call))
        return 0;
    const int64_t t = length < 4 * SHORT ? (length + 3) / 4 : SHORT; /* no call is longer than the one asked about */
    const double  x = (double)t, B = (double)batch, T = (double)length;
    double        f[5];         /* (1, t), (1, 2 t), (1, 4 t), (2, t), (2, 2 t) */
    measured(1, t, call, user); /* the first call may pack weights */
    for (int i = 0; i < 5 && tn_error() == TN_OK; i++) f[i] = measured(i < 3 ? 1 : 2, t << (i % 3), call, user);
    if (tn_error() != TN_OK) return 0;
    const double d1 = (f[3] - f[0]) / x, d2 = (f[4] - f[1]) / (2 * x); /* r + s t, r + 2 s t */
    const double s = fmax(0, (d2 - d1) / x), r = fmax(0, d1 - s * x);
    const double g1 = f[0] - r * x - s * x * x, g2 = f[1] - 2 * r * x - 4 * s * x * x,
                 g4 = f[2] - 4 * r * x - 16 * s * x * x;
    const double q = fmax(0, ((g4 - g2) / 2 - (g2 - g1)) / (3 * x * x)), p = fmax(0, (g2 - g1) / x - 3 * q * x);
    const double a = fmax(0, g1 - p * x - q * x * x), all = a + p * T + q * T * T + B * (r * T + s * T * T);
    if (all < 9e18) return (size_t)all;
    tn_raise(TN_EINVAL, "tn_need: batch %lld of length %lld needs more than any memory", (long long)batch,
             (long long)length);
    return 0;
}
