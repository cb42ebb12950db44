/* sin — y = sin x
 *
 *   gx = gy · cos x */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/elementwise.h"
#define TN__TEMPLATE "autograd/ops/sin.c"
#include "core/real.h"

static void sin_backward_ops(tn_back *b) { b->gx[0] = tn_mul(b->gy[0], tn_cos(b->in[0])); }

static const tn__sample sin_samples[] = {
    TN__ROWS(),
    {.in = {{2, {2, 3}}}, .low = {-30}, .high = {30}},
    TN__REAL_ONLY(sin),
};
TN__UNARY(sin, REALS, TN_AS_IS, .saves = TN_SAVE_IN(0))

#else /* ================================================================ kernels: contiguous, one real type */
TN__ALL(sin_fwd, tn__sin)
#endif
