/* isnan — true for NaN; bool, without gradient; false for all integers */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/elementwise.h"
#define TN__TEMPLATE "autograd/ops/isnan.c"
#define TN__WITH_I64
#include "core/real.h"

static const tn__sample isnan_samples[] = {
    TN__ROWS_TEST,
};
TN__TEST(isnan)

#else /* ==================================================================== kernels: contiguous, one dtype */
TN__EACH(isnan_fwd, TN__EITHER(x[i] != x[i], 0))
#endif
