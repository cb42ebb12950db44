/* neg — y = -x
 *
 *   gx = -gy */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/elementwise.h"
#define TN__TEMPLATE "autograd/ops/neg.c"
#define TN__WITH_I64
#include "core/real.h"

static void neg_backward(tn_back *b)
{
    if ((b->gx[0] = tn__grad_room(b))) tn__map(TN__NUMBERS(neg_fwd), TN__LIST(b->gx[0]), TN__LIST(b->gy[0]), NULL);
}
static void neg_backward_ops(tn_back *b) { b->gx[0] = tn_neg(b->gy[0]); }

static const tn__sample neg_samples[] = {
    TN__ROWS(),
    TN__ROW_INT,
    TN__NO_BOOL(neg),
};
TN__UNARY(neg, NUMBERS, TN_AS_IS, .backward = neg_backward, .inplace = true)
tn_tensor *tn_neg_(tn_tensor *x) { return tn_apply_args_(&tn__op_neg, NULL, x); }

#else /* ==================================================================== kernels: contiguous, one dtype */
TN__EACH(neg_fwd, TN__EITHER(-x[i], (TN__REAL)(0 - (uint64_t)x[i])))
#endif
