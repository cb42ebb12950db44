/* leaky_relu — y = x where x > 0, else slope · x
 *
 *   gx = gy where x > 0, else slope · gy: so slope at 0 */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/elementwise.h"
typedef struct {
    double slope;
} args_t;
#define TN__TEMPLATE "autograd/ops/leaky_relu.c"
#include "core/real.h"

TN__BACKWARD(leaky_relu, b->in[0], tn__grad_room(b), b->args)
static void leaky_relu_backward_ops(tn_back *b)
{
    tn_tensor *gy = b->gy[0], *above = tn_gt(b->in[0], tn_scalar(0));
    b->gx[0] = tn_where(above, gy, tn_mul_scalar(gy, TN_ARG(b, slope)));
}

static const tn__sample leaky_relu_samples[] = {
    {.in = {{2, {3, 4}}}, .args = &(args_t){0.01}, .low = {0.5}, .high = {2}},
    {.in = {{2, {3, 4}}}, .args = &(args_t){0.01}, .low = {-2}, .high = {-0.5}},
    {.in = {{0, {0}}}, .args = &(args_t){0.3}, .low = {-2}, .high = {-0.5}},
    {.in = {{2, {0, 4}}}, .args = &(args_t){0.3}},
    {.in = {{3, {2, 1, 3}}}, .args = &(args_t){-2}, .low = {-4000}, .high = {-3000}},
    TN__REAL_ONLY_K(leaky_relu, 0.1),
};
TN__SCALAR(leaky_relu, REALS, TN_AS_IS, .saves = TN_SAVE_IN(0), .infer = tn__infer_real,
           .backward = leaky_relu_backward)

tn_tensor *tn_leaky_relu(tn_tensor *x, double slope) { return tn_apply_args(&tn__op_leaky_relu, &(args_t){slope}, x); }

#else /* ================================================================ kernels: contiguous, one real type */
TN__KERNEL(leaky_relu_fwd)
{
    const TN__REAL *x = in[0], slope = (TN__REAL)((const args_t *)args)->slope;
    TN__REAL       *y = out[0];
    for (int64_t i = 0; i < n; i++) y[i] = x[i] * (x[i] > 0 ? 1 : slope); /* compiled without a branch */
}

TN__KERNEL(leaky_relu_bwd)
{
    const TN__REAL *x = in[0], *gy = in[1], slope = (TN__REAL)((const args_t *)args)->slope;
    TN__REAL       *gx = out[0];
    for (int64_t i = 0; i < n; i++) gx[i] = gy[i] * (x[i] > 0 ? 1 : slope);
}
#endif
