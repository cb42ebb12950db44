/* silu — y = x · s with s = sigmoid(x); 0 at -inf, the limit
 *
 *   gx = gy · (s + x s (1 - s))        1 - s = sigmoid(-x)
 *
 * Beyond |x| = 1000 s is 0 or 1 in any dtype, and the second term is 0; infinity times 0 must not be computed there. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/elementwise.h"
#define TN__TEMPLATE "autograd/ops/silu.c"
#include "core/real.h"

TN__BACKWARD(silu, b->in[0], tn__grad_room(b), NULL)
static void silu_backward_ops(tn_back *b)
{
    tn_tensor *x = tn_clamp(b->in[0], -1000, 1000), *s = tn_sigmoid(x);
    b->gx[0] = tn_mul(b->gy[0], tn_add(s, tn_mul(x, tn_mul(s, tn_sigmoid(tn_neg(x))))));
}

static const tn__sample silu_samples[] = {
    TN__ROWS(),
    {.in = {{2, {2, 3}}}, .low = {-9}, .high = {9}},
    {.in = {{2, {2, 3}}}, .low = {-1e4}, .high = {-9e3}},
    {.in = {{2, {2, 3}}}, .low = {9e3}, .high = {1e4}},
    TN__REAL_ONLY(silu),
};
TN__UNARY(silu, REALS, TN_AS_IS, .saves = TN_SAVE_IN(0), .backward = silu_backward)

#else /* ================================================================ kernels: contiguous, one real type */
TN__ALL(silu_fwd, tn__silu)
TN__ALL_GRAD(silu_bwd, tn__silu_slope)
#endif
