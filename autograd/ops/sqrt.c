/* sqrt — y = √x; NaN below 0
 *
 *   gx = gy / (2y)        (saves y only; infinite at 0) */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/elementwise.h"
#define TN__TEMPLATE "autograd/ops/sqrt.c"
#include "core/real.h"

static void sqrt_backward_ops(tn_back *b) { b->gx[0] = tn_div(b->gy[0], tn_mul_scalar(b->out[0], 2)); }

static const tn__sample sqrt_samples[] = {
    TN__ROWS(.low = {0.5}, .high = {3}),
    {.in = {{2, {2, 3}}}, .low = {1000}, .high = {3000}},
    TN__REAL_ONLY(sqrt),
};
TN__UNARY(sqrt, REALS, TN_AS_IS, .saves = TN_SAVE_OUT(0), .inplace = true)
tn_tensor *tn_sqrt_(tn_tensor *x) { return tn_apply_args_(&tn__op_sqrt, NULL, x); }

#else /* ================================================================ kernels: contiguous, one real type */
TN__EACH(sqrt_fwd, TN__M(sqrt)(x[i]))
#endif
