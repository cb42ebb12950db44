/* reciprocal — y = 1 / x
 *
 *   gx = -gy · y²        (saves y only) */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/elementwise.h"
#define TN__TEMPLATE "autograd/ops/reciprocal.c"
#include "core/real.h"

TN__BACKWARD(reciprocal, b->out[0], tn_empty_like(b->gy[0]), NULL)
static void reciprocal_backward_ops(tn_back *b) { b->gx[0] = tn_neg(tn_mul(b->gy[0], tn_square(b->out[0]))); }

static const tn__sample reciprocal_samples[] = {
    TN__ROWS(.low = {0.5}, .high = {3}),
    {.in = {{2, {2, 3}}}, .low = {-3000}, .high = {-1000}},
    TN__REAL_ONLY(reciprocal),
};
TN__UNARY(reciprocal, REALS, TN_AS_IS, .saves = TN_SAVE_OUT(0), .backward = reciprocal_backward)

#else /* ================================================================ kernels: contiguous, one real type */
TN__EACH(reciprocal_fwd, 1 / x[i])
TN__EACH_GRAD(reciprocal_bwd, y, -gy[i] * (y[i] * y[i]))
#endif
