/* ceil — the smallest integer not below x
 *
 *   gx = 0 */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/elementwise.h"
#define TN__TEMPLATE "autograd/ops/ceil.c"
#define TN__WITH_I64
#include "core/real.h"

static const tn__sample ceil_samples[] = {
    TN__ROWS_STEP,
    TN__NO_BOOL(ceil),
};
TN__STEP(ceil, tn__infer_numbers)

#else /* ==================================================================== kernels: contiguous, one dtype */
TN__EACH(ceil_fwd, TN__EITHER(TN__M(ceil)(x[i]), x[i]))
#endif
