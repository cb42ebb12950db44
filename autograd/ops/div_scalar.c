/* div_scalar — y = x / k for a plain number k; integers are divided as f32
 *
 *   gx = gy / k */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/elementwise.h"
typedef tn__scalar args_t;
#define TN__TEMPLATE "autograd/ops/div_scalar.c"
#include "core/real.h"

static void div_scalar_backward(tn_back *b)
{
    if ((b->gx[0] = tn__grad_room(b)))
        tn__map(TN__REALS(div_scalar_fwd), TN__LIST(b->gx[0]), TN__LIST(b->gy[0]), b->args);
}
static void div_scalar_backward_ops(tn_back *b) { b->gx[0] = tn_div_scalar(b->gy[0], TN_ARG(b, k)); }

static const tn__sample div_scalar_samples[] = {
    TN__ROWS_SCALAR,
    TN__REAL_ONLY_K(div_scalar, 2),
};
TN__SCALAR(div_scalar, REALS, TN_AS_IS, .infer = tn__infer_real, .backward = div_scalar_backward, .inplace = true)

tn_tensor *tn_div_scalar(tn_tensor *x, double k)
{
    if (x && !tn__is_float(x->dtype)) x = tn_to(x, TN_F32);
    return tn_apply_args(&tn__op_div_scalar, &(args_t){k}, x);
}
tn_tensor *tn_div_scalar_(tn_tensor *x, double k) { return tn_apply_args_(&tn__op_div_scalar, &(args_t){k}, x); }

#else /* ================================================================ kernels: contiguous, one real type */
TN__EACH_SCALAR(div_scalar_fwd, x[i] / k)
#endif
