/* isinf — true for infinity and -infinity; bool, without gradient; false for all integers */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/elementwise.h"
#define TN__TEMPLATE "autograd/ops/isinf.c"
#define TN__WITH_I64
#include "core/real.h"

static const tn__sample isinf_samples[] = {
    TN__ROWS_TEST,
};
TN__TEST(isinf)

#else /* ==================================================================== kernels: contiguous, one dtype */
TN__EACH(isinf_fwd, TN__EITHER(x[i] == (TN__REAL)INFINITY || x[i] == -(TN__REAL)INFINITY, 0))
#endif
