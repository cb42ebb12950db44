/* relu — y = max(x, 0)
 *
 *   gx = gy where y > 0, else 0: so 0 at 0        (saves y only) */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/elementwise.h"
#define TN__TEMPLATE "autograd/ops/relu.c"
#define TN__WITH_I64
#include "core/real.h"

TN__BACKWARD(relu, b->out[0], tn__grad_room(b), NULL)
static void relu_backward_ops(tn_back *b) { b->gx[0] = tn_masked_fill(b->gy[0], tn_le(b->out[0], tn_scalar(0)), 0); }

static const tn__sample relu_samples[] = {
    TN__ROWS_NEAR_0,
    TN__NO_BOOL(relu),
};
TN__UNARY(relu, NUMBERS, TN_AS_IS, .saves = TN_SAVE_OUT(0), .backward = relu_backward, .inplace = true)
tn_tensor *tn_relu_(tn_tensor *x) { return tn_apply_args_(&tn__op_relu, NULL, x); }

#else /* ==================================================================== kernels: contiguous, one dtype */
TN__EACH(relu_fwd, x[i] <= 0 ? 0 : x[i]) /* NaN stays */

#if TN__IS_REAL
TN__KERNEL(relu_bwd)
{
    const TN__REAL *y = in[0], *gy = in[1];
    TN__REAL       *gx = out[0];
    (void)args;
    for (int64_t i = 0; i < n; i++) {
        const TN__REAL g = gy[i]; /* read unconditionally, so that the loop has no branch */
        gx[i] = y[i] <= 0 ? 0 : g;
    }
}
#endif
#endif
