/* mul_scalar — y = k · x for a plain number k, which must be whole if x holds integers
 *
 *   gx = k · gy */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/elementwise.h"
typedef tn__scalar args_t;
#define TN__TEMPLATE "autograd/ops/mul_scalar.c"
#define TN__WITH_I64
#include "core/real.h"

static void mul_scalar_backward(tn_back *b)
{
    if ((b->gx[0] = tn__grad_room(b)))
        tn__map(TN__NUMBERS(mul_scalar_fwd), TN__LIST(b->gx[0]), TN__LIST(b->gy[0]), b->args);
}
static void mul_scalar_backward_ops(tn_back *b) { b->gx[0] = tn_mul_scalar(b->gy[0], TN_ARG(b, k)); }

static const tn__sample mul_scalar_samples[] = {
    TN__ROWS_SCALAR,
    TN__ROWS_SCALAR_INT(mul_scalar),
};
TN__SCALAR(mul_scalar, NUMBERS, TN_AS_IS, .infer = tn__infer_scalar, .backward = mul_scalar_backward, .inplace = true)

tn_tensor *tn_mul_scalar(tn_tensor *x, double k) { return tn_apply_args(&tn__op_mul_scalar, &(args_t){k}, x); }
tn_tensor *tn_mul_scalar_(tn_tensor *x, double k) { return tn_apply_args_(&tn__op_mul_scalar, &(args_t){k}, x); }

#else /* ==================================================================== kernels: contiguous, one dtype */
TN__EACH_SCALAR(mul_scalar_fwd, TN__EITHER(x[i] * k, TN__WRAP(x[i], *, k)))
#endif
