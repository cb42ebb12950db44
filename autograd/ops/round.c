/* round — the nearest integer; of two equally near ones the even one
 *
 *   gx = 0 */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/elementwise.h"
#define TN__TEMPLATE "autograd/ops/round.c"
#define TN__WITH_I64
#include "core/real.h"

static const tn__sample round_samples[] = {
    TN__ROWS_STEP,
    TN__NO_BOOL(round),
};
TN__STEP(round, tn__infer_numbers)

#else /* ==================================================================== kernels: contiguous, one dtype */
TN__EACH(round_fwd, TN__EITHER(TN__M(rint)(x[i]), x[i]))
#endif
