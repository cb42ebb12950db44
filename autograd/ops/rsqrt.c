/* rsqrt — y = 1 / √x
 *
 *   gx = -gy · y³ / 2        (saves y only) */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/elementwise.h"

/* r in f32 has been rounded twice; a Newton step in f64 leaves one rounding. For x = 0 and infinity r is unchanged. */
static inline double refined(double x, double r)
{
    const double off = 1 - x * r * r, y = r + 0.5 * r * off;
    return y == y ? y : r;
}

#define TN__TEMPLATE "autograd/ops/rsqrt.c"
#include "core/real.h"

TN__BACKWARD(rsqrt, b->out[0], tn_empty_like(b->gy[0]), NULL)
static void rsqrt_backward_ops(tn_back *b)
{
    tn_tensor *y = b->out[0];
    b->gx[0] = tn_mul_scalar(tn_mul(b->gy[0], tn_mul(tn_square(y), y)), -0.5);
}

static const tn__sample rsqrt_samples[] = {
    TN__ROWS(.low = {0.5}, .high = {3}),
    {.in = {{2, {2, 3}}}, .low = {1000}, .high = {3000}},
    TN__REAL_ONLY(rsqrt),
};
TN__UNARY(rsqrt, REALS, TN_AS_IS, .saves = TN_SAVE_OUT(0), .backward = rsqrt_backward)

#else /* ================================================================ kernels: contiguous, one real type */
TN__KERNEL(rsqrt_fwd)
{
    const TN__REAL *x = in[0];
    TN__REAL       *y = out[0];
    (void)args;
    for (int64_t i = 0; i < n; i++) {
        const TN__REAL r = 1 / TN__M(sqrt)(x[i]);
        y[i] = sizeof r == sizeof(float) ? (TN__REAL)refined((double)x[i], (double)r) : r;
    }
}

TN__EACH_GRAD(rsqrt_bwd, y, (TN__REAL)-0.5 * gy[i] * (y[i] * y[i] * y[i]))
#endif
