/* rsub_scalar — y = k - x for a plain number k, which must be whole if x holds integers
 *
 *   gx = -gy */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/elementwise.h"
typedef tn__scalar args_t;
#define TN__TEMPLATE "autograd/ops/rsub_scalar.c"
#define TN__WITH_I64
#include "core/real.h"

static void rsub_scalar_backward_ops(tn_back *b) { b->gx[0] = tn_neg(b->gy[0]); }

static const tn__sample rsub_scalar_samples[] = {
    TN__ROWS_SCALAR,
    TN__ROWS_SCALAR_INT(rsub_scalar),
};
TN__SCALAR(rsub_scalar, NUMBERS, TN_AS_IS, .infer = tn__infer_scalar)

tn_tensor *tn_rsub_scalar(tn_tensor *x, double k) { return tn_apply_args(&tn__op_rsub_scalar, &(args_t){k}, x); }

#else /* ==================================================================== kernels: contiguous, one dtype */
TN__EACH_SCALAR(rsub_scalar_fwd, TN__EITHER(k - x[i], TN__WRAP(k, -, x[i])))
#endif
