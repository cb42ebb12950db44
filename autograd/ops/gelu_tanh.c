/* gelu_tanh — gelu's approximation y = x/2 · (1 + tanh u) with u = √(2/π) · (x + 0.044715 x³)
 *
 * As (1 + tanh u) / 2 = sigmoid(2u) =: s, and s' = 2 s (1 - s) u':
 *   y = x s        gx = gy · (s + x s (1 - s) · 2u')        2u' = √(8/π) · (1 + 3 · 0.044715 x²)
 *
 * Beyond |x| = 100 s is 0 or 1 in any dtype, and the second term is 0; infinity times 0 must not be computed there. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/elementwise.h"
#define ROOT 1.59576912160573071176 /* √(8/π) */
#define CUBE 0.044715
#define TN__TEMPLATE "autograd/ops/gelu_tanh.c"
#include "core/real.h"

TN__BACKWARD(gelu_tanh, b->in[0], tn__grad_room(b), NULL)
tn_tensor *tn__gelu_tanh_derivative(tn_tensor *x)
{
    x = tn_clamp(x, -100, 100);
    tn_tensor *xx = tn_square(x);
    tn_tensor *z = tn_mul(tn_mul_scalar(x, ROOT), tn_add_scalar(tn_mul_scalar(xx, CUBE), 1)); /* 2u */
    tn_tensor *s = tn_sigmoid(z), *slope = tn_mul(s, tn_sigmoid(tn_neg(z)));
    tn_tensor *dz = tn_add_scalar(tn_mul_scalar(xx, 3 * CUBE * ROOT), ROOT);
    return tn_add(s, tn_mul(tn_mul(x, slope), dz));
}
static void gelu_tanh_backward_ops(tn_back *b) { b->gx[0] = tn_mul(b->gy[0], tn__gelu_tanh_derivative(b->in[0])); }

static const tn__sample gelu_tanh_samples[] = {
    {.in = {{2, {3, 4}}}},
    {.in = {{0, {0}}}},
    {.in = {{2, {0, 3}}}},
    {.in = {{3, {2, 1, 3}}}, .low = {-9}, .high = {9}},
    {.in = {{2, {2, 3}}}, .low = {-1e4}, .high = {-9e3}},
    {.in = {{2, {2, 3}}}, .low = {9e3}, .high = {1e4}},
    TN__REAL_ONLY(gelu_tanh),
};
TN__UNARY(gelu_tanh, REALS, TN_AS_IS, .saves = TN_SAVE_IN(0), .backward = gelu_tanh_backward)

#else /* ================================================================ kernels: contiguous, one real type */
TN__ALL(gelu_tanh_fwd, tn__gelu_tanh)
TN__ALL_GRAD(gelu_tanh_bwd, tn__gelu_tanh_slope)
#endif
