/* softplus — y = ln(1 + exp(βx)) / β, or x where βx > 20, as in PyTorch
 *
 *   gx = gy · sigmoid(βx), or gy where βx > 20 */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/elementwise.h"
typedef struct {
    double beta;
} args_t;
static double beta_of(const void *args) { return ((const args_t *)args)->beta; }
#define TN__TEMPLATE "autograd/ops/softplus.c"
#include "core/real.h"

static bool softplus_infer(tn_ctx *c)
{
    if (!tn__infer_real(c)) return false;
    return TN_ARG(c, beta) != 0 || tn_infer_fail(c, TN_EINVAL, "beta is 0, but must not be 0; PyTorch's default is 1");
}

TN__BACKWARD(softplus, b->in[0], tn_empty_like(b->gy[0]), b->args)
static void softplus_backward_ops(tn_back *b)
{
    tn_tensor *gy = b->gy[0], *z = tn_mul_scalar(b->in[0], beta_of(b->args));
    b->gx[0] = tn_where(tn_gt(z, tn_scalar(20)), gy, tn_mul(gy, tn_sigmoid(z)));
}

static const tn__sample softplus_samples[] = {
    {.in = {{2, {3, 4}}}, .args = &(args_t){1}},
    {.in = {{0, {0}}}, .args = &(args_t){1}},
    {.in = {{2, {0, 4}}}, .args = &(args_t){2}},
    {.in = {{3, {2, 1, 3}}}, .args = &(args_t){0.5}, .low = {-9}, .high = {9}},
    {.in = {{2, {2, 3}}}, .args = &(args_t){3}, .low = {-1e4}, .high = {-9e3}},
    {.in = {{2, {2, 3}}}, .args = &(args_t){3}, .low = {9e3}, .high = {1e4}},
    TN__REAL_ONLY_K(softplus, 1),
    {.in = {{1, {2}}},
     .args = &(args_t){0},
     TN__FAILS(TN_EINVAL, "softplus: beta is 0, but must not be 0; PyTorch's default is 1")},
};
TN__SCALAR(softplus, REALS, TN_AS_IS, .saves = TN_SAVE_IN(0), .infer = softplus_infer, .backward = softplus_backward)

tn_tensor *tn_softplus(tn_tensor *x, double beta) { return tn_apply_args(&tn__op_softplus, &(args_t){beta}, x); }

#else /* ================================================================ kernels: contiguous, one real type */
TN__KERNEL(softplus_fwd)
{
    const TN__REAL *x = in[0], beta = (TN__REAL)beta_of(args);
    TN__REAL       *y = out[0];
    for (int64_t i = 0; i < n; i++) y[i] = beta * x[i];
    TN__(tn__softplus)(n, y, y);
    for (int64_t i = 0; i < n; i++) y[i] = beta * x[i] > 20 ? x[i] : y[i] / beta;
}

TN__KERNEL(softplus_bwd)
{
    const TN__REAL *x = in[0], *gy = in[1], beta = (TN__REAL)beta_of(args);
    TN__REAL       *gx = out[0];
    for (int64_t i = 0; i < n; i++) gx[i] = beta * x[i];
    TN__(tn__sigmoid)(n, gx, gx);
    for (int64_t i = 0; i < n; i++) gx[i] = beta * x[i] > 20 ? gy[i] : gy[i] * gx[i];
}
#endif
