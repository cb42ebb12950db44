/* mish — y = x · tanh(ln(1 + eˣ)); 0 at -inf, the limit
 *
 * With s = sigmoid(x) and r = 1 - s = sigmoid(-x), eˣ = s / r, and so
 *
 *   t = tanh(ln(1 + eˣ)) = s (1 + r) / (1 + r²)        1 - t² = (2r / (1 + r²))²
 *   y = x t        gx = gy · (t + x s (1 - t²))
 *
 * Nothing overflows, and values cancel only where the slope changes its sign. The smaller of s and r is computed, the
 * other is 1 minus it. Beyond |x| = 1000 they are 0 and 1 in any dtype; infinity times 0 must not be computed there. y
 * is computed by a function of core/kernels/vecmath.h. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/elementwise.h"
#define TN__TEMPLATE "autograd/ops/mish.c"
#include "core/real.h"

TN__BACKWARD(mish, b->in[0], tn_empty_like(b->gy[0]), NULL)
static void mish_backward_ops(tn_back *b)
{
    tn_tensor *x = tn_clamp(b->in[0], -1000, 1000), *s = tn_sigmoid(x), *r = tn_sigmoid(tn_neg(x));
    tn_tensor *below = tn_add_scalar(tn_square(r), 1);
    tn_tensor *t = tn_div(tn_mul(s, tn_add_scalar(r, 1)), below), *root = tn_div(tn_mul_scalar(r, 2), below);
    b->gx[0] = tn_mul(b->gy[0], tn_add(t, tn_mul(x, tn_mul(s, tn_square(root)))));
}

static const tn__sample mish_samples[] = {
    TN__ROWS(),
    {.in = {{2, {2, 3}}}, .low = {-9}, .high = {9}},
    {.in = {{2, {2, 3}}}, .low = {-1e4}, .high = {-9e3}},
    {.in = {{2, {2, 3}}}, .low = {9e3}, .high = {1e4}},
    TN__REAL_ONLY(mish),
};
TN__UNARY(mish, REALS, TN_AS_IS, .saves = TN_SAVE_IN(0), .backward = mish_backward)

#else /* ================================================================ kernels: contiguous, one real type */
TN__ALL(mish_fwd, tn__mish)

TN__KERNEL(mish_bwd)
{
    const TN__REAL *x = in[0], *gy = in[1];
    TN__REAL       *gx = out[0];
    (void)args;
    for (int64_t i = 0; i < n; i++) gx[i] = x[i] < 0 ? x[i] : -x[i];
    TN__(tn__sigmoid)(n, gx, gx);
    for (int64_t i = 0; i < n; i++) {
        const TN__REAL at = x[i] > 1000 ? 1000 : x[i] < -1000 ? -1000 : x[i];
        const TN__REAL less = gx[i], more = 1 - less, s = x[i] < 0 ? less : more, r = x[i] < 0 ? more : less;
        const TN__REAL below = 1 + r * r, t = s * (1 + r) / below, root = 2 * r / below;
        gx[i] = gy[i] * (t + at * s * (root * root));
    }
}
#endif
