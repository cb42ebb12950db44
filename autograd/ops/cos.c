/* cos — y = cos x
 *
 *   gx = -gy · sin x */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/elementwise.h"
#define TN__TEMPLATE "autograd/ops/cos.c"
#include "core/real.h"

TN__BACKWARD(cos, b->in[0], tn_empty_like(b->gy[0]), NULL)
static void cos_backward_ops(tn_back *b) { b->gx[0] = tn_neg(tn_mul(b->gy[0], tn_sin(b->in[0]))); }

static const tn__sample cos_samples[] = {
    TN__ROWS(),
    {.in = {{2, {2, 3}}}, .low = {-30}, .high = {30}},
    TN__REAL_ONLY(cos),
};
TN__UNARY(cos, REALS, TN_AS_IS, .saves = TN_SAVE_IN(0), .backward = cos_backward)

#else /* ================================================================ kernels: contiguous, one real type */
TN__ALL(cos_fwd, tn__cos)

TN__KERNEL(cos_bwd)
{
    const TN__REAL *x = in[0], *gy = in[1];
    TN__REAL       *gx = out[0];
    (void)args;
    TN__(tn__sin)(n, gx, x);
    for (int64_t i = 0; i < n; i++) gx[i] = -gy[i] * gx[i];
}
#endif
