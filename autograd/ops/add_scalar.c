/* add_scalar — y = x + k for a plain number k, which must be whole if x holds integers
 *
 *   gx = gy */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/elementwise.h"
typedef tn__scalar args_t;
#define TN__TEMPLATE "autograd/ops/add_scalar.c"
#define TN__WITH_I64
#include "core/real.h"

static void add_scalar_backward_ops(tn_back *b) { b->gx[0] = b->gy[0]; }

static const tn__sample add_scalar_samples[] = {
    TN__ROWS_SCALAR,
    TN__ROWS_SCALAR_INT(add_scalar),
};
TN__SCALAR(add_scalar, NUMBERS, TN_AS_IS, .infer = tn__infer_scalar, .inplace = true)

tn_tensor *tn_add_scalar(tn_tensor *x, double k) { return tn_apply_args(&tn__op_add_scalar, &(args_t){k}, x); }
tn_tensor *tn_add_scalar_(tn_tensor *x, double k) { return tn_apply_args_(&tn__op_add_scalar, &(args_t){k}, x); }

#else /* ==================================================================== kernels: contiguous, one dtype */
TN__EACH_SCALAR(add_scalar_fwd, TN__EITHER(x[i] + k, TN__WRAP(x[i], +, k)))
#endif
