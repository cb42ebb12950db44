/* floor — the largest integer not above x
 *
 *   gx = 0 */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/elementwise.h"
#define TN__TEMPLATE "autograd/ops/floor.c"
#define TN__WITH_I64
#include "core/real.h"

static const tn__sample floor_samples[] = {
    TN__ROWS_STEP,
    TN__NO_BOOL(floor),
};
TN__STEP(floor, tn__infer_numbers)

#else /* ==================================================================== kernels: contiguous, one dtype */
TN__EACH(floor_fwd, TN__EITHER(TN__M(floor)(x[i]), x[i]))
#endif
