/* isfinite — true if neither infinite nor NaN; bool, without gradient; true for all integers */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/elementwise.h"
#define TN__TEMPLATE "autograd/ops/isfinite.c"
#define TN__WITH_I64
#include "core/real.h"

static const tn__sample isfinite_samples[] = {
    TN__ROWS_TEST,
};
TN__TEST(isfinite)

#else /* ==================================================================== kernels: contiguous, one dtype */
TN__EACH(isfinite_fwd, TN__EITHER(x[i] - x[i] == 0, 1)) /* inf - inf is NaN */
#endif
