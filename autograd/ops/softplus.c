/* softplus — y = ln(1 + exp(βx)) / β, or x where βx > 20, as in PyTorch
 *
 *   gx = gy · sigmoid(βx), or gy where βx > 20 */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
#include "core/kernels/vecmath.h"
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

static void softplus_forward(tn_ctx *c)
{
    tn__map(TN__REALS(softplus_fwd), TN__LIST(c->out[0]), TN__LIST(c->in[0]), c->args);
}

static void softplus_backward(tn_back *b)
{
    if ((b->gx[0] = tn_empty_like(b->gy[0])))
        tn__map(TN__REALS(softplus_bwd), TN__LIST(b->gx[0]), TN__LIST(b->in[0], b->gy[0]), b->args);
}
static void softplus_backward_ops(tn_back *b)
{
    tn_tensor *gy = b->gy[0], *z = tn_mul_scalar(b->in[0], beta_of(b->args));
    b->gx[0] = tn_where(tn_gt(z, tn_scalar(20)), gy, tn_mul(gy, tn_sigmoid(z)));
}

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}}, .args = &(args_t){1}},
    {.in = {{0, {0}}}, .args = &(args_t){1}},
    {.in = {{2, {0, 4}}}, .args = &(args_t){2}},
    {.in = {{3, {2, 1, 3}}}, .args = &(args_t){0.5}, .low = {-9}, .high = {9}},
    {.in = {{2, {2, 3}}}, .args = &(args_t){3}, .low = {-1e4}, .high = {-9e3}},
    {.in = {{2, {2, 3}}}, .args = &(args_t){3}, .low = {9e3}, .high = {1e4}},
    {.in = {{1, {2}}},
     .args = &(args_t){1},
     .kind = {TN__ARG_INT},
     TN__FAILS(TN_EDTYPE, "softplus: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
    {.in = {{1, {2}}},
     .args = &(args_t){0},
     TN__FAILS(TN_EINVAL, "softplus: beta is 0, but must not be 0; PyTorch's default is 1")},
};

const tn_op tn__op_softplus = {TN__ROOM("softplus", TN_AS_IS), .inputs = 1,
                               .args_size = sizeof(args_t),    .saves = TN_SAVE_IN(0),
                               .infer = softplus_infer,        .forward = softplus_forward,
                               .backward = softplus_backward,  .backward_ops = softplus_backward_ops};
TN__SAMPLES(softplus, samples);

tn_tensor *tn_softplus(tn_tensor *x, double beta) { return tn_apply_args(&tn__op_softplus, &(args_t){beta}, x); }

#else /* ================================================================ kernels: contiguous, one real type */

static void TN__(softplus_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *x = in[0], beta = (TN__REAL)beta_of(args);
    TN__REAL       *y = out[0];
    for (int64_t i = 0; i < n; i++) y[i] = beta * x[i];
    TN__(tn__softplus)(n, y, y);
    for (int64_t i = 0; i < n; i++) y[i] = beta * x[i] > 20 ? x[i] : y[i] / beta;
}

static void TN__(softplus_bwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *x = in[0], *gy = in[1], beta = (TN__REAL)beta_of(args);
    TN__REAL       *gx = out[0];
    for (int64_t i = 0; i < n; i++) gx[i] = beta * x[i];
    TN__(tn__sigmoid)(n, gx, gx);
    for (int64_t i = 0; i < n; i++) gx[i] = beta * x[i] > 20 ? gy[i] : gy[i] * gx[i];
}
#endif
