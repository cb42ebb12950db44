/* erf — y = 2/√π · ∫ exp(-t²) dt from 0 to x
 *
 *   gx = gy · 2/√π · exp(-x²) */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/elementwise.h"
#define TN__TEMPLATE "autograd/ops/erf.c"
#include "core/real.h"

TN__BACKWARD(erf, b->in[0], tn_empty_like(b->gy[0]), NULL)
static void erf_backward_ops(tn_back *b)
{
    tn_tensor *density = tn_exp(tn_neg(tn_square(b->in[0])));
    b->gx[0] = tn_mul(b->gy[0], tn_mul_scalar(density, 1.12837916709551257390));
}

static const tn__sample erf_samples[] = {
    TN__ROWS(),
    {.in = {{2, {2, 3}}}, .low = {-6}, .high = {6}},
    TN__REAL_ONLY(erf),
};
TN__UNARY(erf, REALS, TN_AS_IS, .saves = TN_SAVE_IN(0), .backward = erf_backward)

#else /* ================================================================ kernels: contiguous, one real type */
TN__ALL(erf_fwd, tn__erf)

TN__KERNEL(erf_bwd)
{
    const TN__REAL *x = in[0], *gy = in[1];
    TN__REAL       *gx = out[0];
    (void)args;
    for (int64_t i = 0; i < n; i++) gx[i] = -x[i] * x[i];
    TN__(tn__exp)(n, gx, gx);
    for (int64_t i = 0; i < n; i++) gx[i] = gy[i] * ((TN__REAL)1.12837916709551257390 * gx[i]);
}
#endif
