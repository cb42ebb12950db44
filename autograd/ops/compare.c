/* compare — eq, ne, lt, le, gt, ge: bool, without gradient
 *
 * Two dtypes are promoted to the wider one first. NaN is not equal to anything, and neither less nor greater. */
#ifndef TN__REAL /* ============================================================================== the rooms */
#include "autograd/rooms/elementwise.h"
#define TN__TEMPLATE "autograd/ops/compare.c"
#define TN__WITH_I64
#include "core/real.h"

/* clang-format off */
#define ROOM(op)                                                                                                     \
    static const tn__sample op##_samples[] = {                                                                       \
        {.in = {{2, {3, 4}}, {2, {3, 4}}}}, {.in = {{3, {2, 3, 4}}, {1, {4}}}, .kind = {TN__ARG_INT, TN__ARG_INT}},  \
        {.in = {{2, {3, 1}}, {3, {2, 1, 4}}}, .kind = {TN__ARG_INT, TN__ARG_INT}}, {.in = {{0, {0}}, {2, {2, 2}}}},  \
        {.in = {{2, {0, 3}}, {2, {1, 3}}}}, {.in = {{2, {3, 4}}, {2, {3, 4}}}, .kind = {TN__ARG_MASK, TN__ARG_MASK}}, \
        TN__NO_BROADCAST(op)};                                                                                       \
    TN__BINARY(op, NUMBERS, TN_JOIN, .infer = tn__infer_compare)
/* clang-format on */
ROOM(eq)
ROOM(ne)
ROOM(lt)
ROOM(le)
ROOM(gt)
ROOM(ge)

#else /* ==================================================================== kernels: contiguous, one dtype */
TN__EACH_PAIR(eq_fwd, a[i] == b[i])
TN__EACH_PAIR(ne_fwd, a[i] != b[i])
TN__EACH_PAIR(lt_fwd, a[i] < b[i])
TN__EACH_PAIR(le_fwd, a[i] <= b[i])
TN__EACH_PAIR(gt_fwd, a[i] > b[i])
TN__EACH_PAIR(ge_fwd, a[i] >= b[i])
#endif
