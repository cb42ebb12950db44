/* tanh — y = (eˣ - e⁻ˣ) / (eˣ + e⁻ˣ)
 *
 *   gx = gy · (1 - y²)        (saves y only) */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/elementwise.h"
#define TN__TEMPLATE "autograd/ops/tanh.c"
#include "core/real.h"

TN__BACKWARD(tanh, b->out[0], tn__grad_room(b), NULL)
static void tanh_backward_ops(tn_back *b) { b->gx[0] = tn_mul(b->gy[0], tn_rsub_scalar(tn_square(b->out[0]), 1)); }

static const tn__sample tanh_samples[] = {
    TN__ROWS(),
    {.in = {{2, {2, 3}}}, .low = {-9}, .high = {9}},
    TN__REAL_ONLY(tanh),
};
TN__UNARY(tanh, REALS, TN_AS_IS, .saves = TN_SAVE_OUT(0), .backward = tanh_backward, .inplace = true)
tn_tensor *tn_tanh_(tn_tensor *x) { return tn_apply_args_(&tn__op_tanh, NULL, x); }

#else /* ================================================================ kernels: contiguous, one real type */
TN__ALL(tanh_fwd, tn__tanh)
TN__EACH_GRAD(tanh_bwd, y, gy[i] * (1 - y[i] * y[i]))
#endif
