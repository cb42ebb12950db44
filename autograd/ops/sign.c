/* sign — -1, 0 or 1; 0 for NaN, as in PyTorch
 *
 *   gx = 0 */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/elementwise.h"
#define TN__TEMPLATE "autograd/ops/sign.c"
#define TN__WITH_I64
#include "core/real.h"

static const tn__sample sign_samples[] = {
    {.in = {{2, {3, 4}}}, .low = {0.5}, .high = {2}},
    {.in = {{0, {0}}}, .low = {-2}, .high = {-0.5}},
    {.in = {{3, {2, 0, 3}}}},
    {.in = {{3, {2, 1, 5}}}, .low = {-3}, .high = {-0.5}},
    {.in = {{2, {2, 3}}}, .low = {0.5}, .high = {40}},
    TN__ROW_INT,
    {.in = {{2, {2, 3}}}, .kind = {TN__ARG_MASK}},
};
TN__STEP(sign, tn__infer_same)

#else /* ==================================================================== kernels: contiguous, one dtype */
TN__EACH(sign_fwd, (TN__REAL)((x[i] > 0) - (x[i] < 0)))
#endif
