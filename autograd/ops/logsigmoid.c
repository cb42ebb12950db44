/* logsigmoid — y = ln sigmoid(x) = -ln(1 + e⁻ˣ)
 *
 *   gx = gy · sigmoid(-x) */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/elementwise.h"
#define TN__TEMPLATE "autograd/ops/logsigmoid.c"
#include "core/real.h"

TN__BACKWARD(logsigmoid, b->in[0], tn_empty_like(b->gy[0]), NULL)
static void logsigmoid_backward_ops(tn_back *b) { b->gx[0] = tn_mul(b->gy[0], tn_sigmoid(tn_neg(b->in[0]))); }

static const tn__sample logsigmoid_samples[] = {
    TN__ROWS(),
    {.in = {{2, {2, 3}}}, .low = {-9}, .high = {9}},
    {.in = {{2, {2, 3}}}, .low = {-1e4}, .high = {-9e3}},
    {.in = {{2, {2, 3}}}, .low = {9e3}, .high = {1e4}},
    TN__REAL_ONLY(logsigmoid),
};
TN__UNARY(logsigmoid, REALS, TN_AS_IS, .saves = TN_SAVE_IN(0), .backward = logsigmoid_backward)

#else /* ================================================================ kernels: contiguous, one real type */
TN__KERNEL(logsigmoid_fwd)
{
    const TN__REAL *x = in[0];
    TN__REAL       *y = out[0];
    (void)args;
    for (int64_t i = 0; i < n; i++) y[i] = -x[i];
    TN__(tn__softplus)(n, y, y);
    for (int64_t i = 0; i < n; i++) y[i] = 0 - y[i];
}

TN__KERNEL(logsigmoid_bwd)
{
    const TN__REAL *x = in[0], *gy = in[1];
    TN__REAL       *gx = out[0];
    (void)args;
    for (int64_t i = 0; i < n; i++) gx[i] = -x[i];
    TN__(tn__sigmoid)(n, gx, gx);
    for (int64_t i = 0; i < n; i++) gx[i] = gy[i] * gx[i];
}
#endif
