/* elu — y = x where x > 0, else alpha · (eˣ - 1)
 *
 *   gx = gy where x > 0, else gy · alpha · eˣ
 *
 * In backward_ops eˣ is computed at 0 where x > 0: an infinity there, although not used, would make the second
 * derivative NaN. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/elementwise.h"
typedef struct {
    double alpha;
} args_t;
#define TN__TEMPLATE "autograd/ops/elu.c"
#include "core/real.h"

TN__BACKWARD(elu, b->in[0], tn_empty_like(b->gy[0]), b->args)
static void elu_backward_ops(tn_back *b)
{
    tn_tensor *x = b->in[0], *gy = b->gy[0], *above = tn_gt(x, tn_scalar(0));
    tn_tensor *slope = tn_mul_scalar(tn_exp(tn_masked_fill(x, above, 0)), TN_ARG(b, alpha));
    b->gx[0] = tn_where(above, gy, tn_mul(gy, slope));
}

static const tn__sample elu_samples[] = {
    {.in = {{2, {3, 4}}}, .args = &(args_t){1}, .low = {0.5}, .high = {2}},
    {.in = {{2, {3, 4}}}, .args = &(args_t){1}, .low = {-2}, .high = {-0.5}},
    {.in = {{0, {0}}}, .args = &(args_t){0.3}, .low = {-2}, .high = {-0.5}},
    {.in = {{2, {0, 4}}}, .args = &(args_t){1}},
    {.in = {{3, {2, 1, 3}}}, .args = &(args_t){1.7}, .low = {-4000}, .high = {-3000}},
    {.in = {{2, {2, 3}}}, .args = &(args_t){1}, .low = {3000}, .high = {4000}},
    TN__REAL_ONLY_K(elu, 1),
};
TN__SCALAR(elu, REALS, TN_AS_IS, .saves = TN_SAVE_IN(0), .infer = tn__infer_real, .backward = elu_backward)

tn_tensor *tn_elu(tn_tensor *x, double alpha) { return tn_apply_args(&tn__op_elu, &(args_t){alpha}, x); }

#else /* ================================================================ kernels: contiguous, one real type */
TN__KERNEL(elu_fwd)
{
    const TN__REAL *x = in[0], alpha = (TN__REAL)((const args_t *)args)->alpha;
    TN__REAL       *y = out[0];
    for (int64_t i = 0; i < n; i++) y[i] = x[i] > 0 ? x[i] : alpha * TN__M(expm1)(x[i]);
}

TN__KERNEL(elu_bwd)
{
    const TN__REAL *x = in[0], *gy = in[1], alpha = (TN__REAL)((const args_t *)args)->alpha;
    TN__REAL       *gx = out[0];
    for (int64_t i = 0; i < n; i++) gx[i] = x[i] > 0 ? gy[i] : gy[i] * (alpha * TN__M(exp)(x[i]));
}
#endif
