/* sigmoid — y = 1 / (1 + e⁻ˣ)
 *
 *   gx = gy · y · (1 - y)        (saves y only)
 *
 * With e = exp(-|x|), which cannot overflow: 1 / (1 + e) from 0 on, e / (1 + e) below. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/elementwise.h"
#define TN__TEMPLATE "autograd/ops/sigmoid.c"
#include "core/real.h"

TN__BACKWARD(sigmoid, b->out[0], tn__grad_room(b), NULL)
static void sigmoid_backward_ops(tn_back *b)
{
    b->gx[0] = tn_mul(b->gy[0], tn_mul(b->out[0], tn_rsub_scalar(b->out[0], 1)));
}

static const tn__sample sigmoid_samples[] = {
    TN__ROWS(),
    {.in = {{2, {2, 3}}}, .low = {-9}, .high = {9}},
    {.in = {{2, {2, 3}}}, .low = {-1e4}, .high = {-9e3}},
    TN__REAL_ONLY(sigmoid),
};
TN__UNARY(sigmoid, REALS, TN_AS_IS, .saves = TN_SAVE_OUT(0), .backward = sigmoid_backward, .inplace = true)
tn_tensor *tn_sigmoid_(tn_tensor *x) { return tn_apply_args_(&tn__op_sigmoid, NULL, x); }

#else /* ================================================================ kernels: contiguous, one real type */
TN__ALL(sigmoid_fwd, tn__sigmoid)
TN__EACH_GRAD(sigmoid_bwd, y, gy[i] * (y[i] * (1 - y[i])))
#endif
