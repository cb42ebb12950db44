/* exp — y = eˣ
 *
 *   gx = gy · y          (saves y only) */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/elementwise.h"
#define TN__TEMPLATE "autograd/ops/exp.c"
#include "core/real.h"

static void exp_backward_ops(tn_back *b) { b->gx[0] = tn_mul(b->gy[0], b->out[0]); }

static const tn__sample exp_samples[] = {
    TN__ROWS(),
    {.in = {{2, {2, 3}}}, .low = {-30}, .high = {-20}},
    TN__REAL_ONLY(exp),
};
TN__UNARY(exp, REALS, TN_WIDE, .saves = TN_SAVE_OUT(0), .inplace = true)
tn_tensor *tn_exp_(tn_tensor *x) { return tn_apply_args_(&tn__op_exp, NULL, x); }

#else /* ================================================================ kernels: contiguous, one real type */
TN__ALL(exp_fwd, tn__exp)
#endif
