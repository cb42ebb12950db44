/* square — y = x²
 *
 *   gx = 2 · gy · x */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/elementwise.h"
#define TN__TEMPLATE "autograd/ops/square.c"
#define TN__WITH_I64
#include "core/real.h"

static void square_backward_ops(tn_back *b) { b->gx[0] = tn_mul_scalar(tn_mul(b->gy[0], b->in[0]), 2); }

static const tn__sample square_samples[] = {
    TN__ROWS(),
    {.in = {{2, {2, 3}}}, .low = {-40}, .high = {40}},
    TN__ROW_INT,
    TN__NO_BOOL(square),
};
TN__UNARY(square, NUMBERS, TN_AS_IS, .saves = TN_SAVE_IN(0))

#else /* ==================================================================== kernels: contiguous, one dtype */
TN__EACH(square_fwd, TN__EITHER(x[i] * x[i], TN__WRAP(x[i], *, x[i])))
#endif
