/* log — y = ln x; -inf at 0, NaN below
 *
 *   gx = gy / x */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/elementwise.h"
#define TN__TEMPLATE "autograd/ops/log.c"
#include "core/real.h"

static void log_backward_ops(tn_back *b) { b->gx[0] = tn_div(b->gy[0], b->in[0]); }

static const tn__sample log_samples[] = {
    TN__ROWS(.low = {0.5}, .high = {3}),
    {.in = {{2, {2, 3}}}, .low = {1000}, .high = {3000}},
    TN__REAL_ONLY(log),
};
TN__UNARY(log, REALS, TN_WIDE, .saves = TN_SAVE_IN(0))

#else /* ================================================================ kernels: contiguous, one real type */
TN__ALL(log_fwd, tn__log)
#endif
