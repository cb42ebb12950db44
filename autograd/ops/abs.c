/* abs — y = |x|
 *
 *   gx = gy · sign(x), so 0 at 0 */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/elementwise.h"
#define TN__TEMPLATE "autograd/ops/abs.c"
#define TN__WITH_I64
#include "core/real.h"

static void abs_backward_ops(tn_back *b) { b->gx[0] = tn_mul(b->gy[0], tn_sign(b->in[0])); }

static const tn__sample abs_samples[] = {
    TN__ROWS_NEAR_0,
    TN__NO_BOOL(abs),
};
TN__UNARY(abs, NUMBERS, TN_AS_IS, .saves = TN_SAVE_IN(0))

#else /* ==================================================================== kernels: contiguous, one dtype */
TN__EACH(abs_fwd, TN__EITHER(TN__M(fabs)(x[i]), x[i] < 0 ? (TN__REAL)(0 - (uint64_t)x[i]) : x[i]))
#endif
