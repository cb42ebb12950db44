/* gelu — y = x · Φ(x), with Φ the cumulative distribution function of the normal distribution and φ its density
 *
 *   Φ(x) = erfc(-x / √2) / 2        φ(x) = exp(-x² / 2) / √(2π)
 *   gx = gy · (Φ(x) + x φ(x))
 *
 * Beyond |x| = 100 Φ is 0 or 1 in any dtype, and φ is 0; infinity times 0 must not be computed there. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/elementwise.h"
#define ROOT_HALF 0.70710678118654752440 /* 1/√2 */
#define DENSITY 0.39894228040143267794   /* 1/√(2π) */
#define TN__TEMPLATE "autograd/ops/gelu.c"
#include "core/real.h"

TN__BACKWARD(gelu, b->in[0], tn__grad_room(b), NULL)
tn_tensor *tn__gelu_derivative(tn_tensor *x)
{
    x = tn_clamp(x, -100, 100);
    tn_tensor *cdf = tn_mul_scalar(tn_add_scalar(tn_erf(tn_mul_scalar(x, ROOT_HALF)), 1), 0.5);
    tn_tensor *pdf = tn_mul_scalar(tn_exp(tn_mul_scalar(tn_square(x), -0.5)), DENSITY);
    return tn_add(cdf, tn_mul(x, pdf));
}
static void gelu_backward_ops(tn_back *b) { b->gx[0] = tn_mul(b->gy[0], tn__gelu_derivative(b->in[0])); }

static const tn__sample gelu_samples[] = {
    {.in = {{2, {3, 4}}}},
    {.in = {{0, {0}}}},
    {.in = {{2, {0, 3}}}},
    {.in = {{3, {2, 1, 5}}}},
    {.in = {{2, {2, 3}}}, .low = {-9}, .high = {9}},
    {.in = {{2, {2, 3}}}, .low = {-1e4}, .high = {-9e3}},
    {.in = {{2, {2, 3}}}, .low = {9e3}, .high = {1e4}},
    TN__REAL_ONLY(gelu),
};
TN__UNARY(gelu, REALS, TN_AS_IS, .saves = TN_SAVE_IN(0), .backward = gelu_backward)

#else /* ================================================================ kernels: contiguous, one real type */
TN__ALL(gelu_fwd, tn__gelu)
TN__ALL_GRAD(gelu_bwd, tn__gelu_slope)
#endif
