/* log1p — y = ln(1 + x), accurate near 0
 *
 *   gx = gy / (1 + x) */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/elementwise.h"
#define TN__TEMPLATE "autograd/ops/log1p.c"
#include "core/real.h"

static void log1p_backward_ops(tn_back *b) { b->gx[0] = tn_div(b->gy[0], tn_add_scalar(b->in[0], 1)); }

static const tn__sample log1p_samples[] = {
    TN__ROWS(.low = {-0.5}, .high = {3}),
    {.in = {{2, {2, 3}}}, .low = {1000}, .high = {3000}},
    TN__REAL_ONLY(log1p),
};
TN__UNARY(log1p, REALS, TN_WIDE, .saves = TN_SAVE_IN(0))

#else /* ================================================================ kernels: contiguous, one real type */
TN__ALL(log1p_fwd, tn__log1p)
#endif
