/* leaky_relu — y = x where x > 0, else slope · x
 *
 *   gx = gy where x > 0, else slope · gy: so slope at 0 */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
typedef struct {
    double slope;
} args_t;
#define TN__TEMPLATE "autograd/ops/leaky_relu.c"
#include "core/real.h"

static void leaky_relu_forward(tn_ctx *c)
{
    tn__map(TN__REALS(leaky_relu_fwd), TN__LIST(c->out[0]), TN__LIST(c->in[0]), c->args);
}

static void leaky_relu_backward(tn_back *b)
{
    if ((b->gx[0] = tn__grad_room(b)))
        tn__map(TN__REALS(leaky_relu_bwd), TN__LIST(b->gx[0]), TN__LIST(b->in[0], b->gy[0]), b->args);
}
static void leaky_relu_backward_ops(tn_back *b)
{
    tn_tensor *gy = b->gy[0], *above = tn_gt(b->in[0], tn_scalar(0));
    b->gx[0] = tn_where(above, gy, tn_mul_scalar(gy, TN_ARG(b, slope)));
}

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}}, .args = &(args_t){0.01}, .low = {0.5}, .high = {2}},
    {.in = {{2, {3, 4}}}, .args = &(args_t){0.01}, .low = {-2}, .high = {-0.5}},
    {.in = {{0, {0}}}, .args = &(args_t){0.3}, .low = {-2}, .high = {-0.5}},
    {.in = {{2, {0, 4}}}, .args = &(args_t){0.3}},
    {.in = {{3, {2, 1, 3}}}, .args = &(args_t){-2}, .low = {-4000}, .high = {-3000}},
    {.in = {{1, {2}}},
     .args = &(args_t){0.1},
     .kind = {TN__ARG_INT},
     TN__FAILS(TN_EDTYPE, "leaky_relu: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
};

const tn_op tn__op_leaky_relu = {TN__ROOM("leaky_relu", TN_AS_IS), .inputs = 1,
                                 .args_size = sizeof(args_t),      .saves = TN_SAVE_IN(0),
                                 .infer = tn__infer_real,          .forward = leaky_relu_forward,
                                 .backward = leaky_relu_backward,  .backward_ops = leaky_relu_backward_ops};
TN__SAMPLES(leaky_relu, samples);

tn_tensor *tn_leaky_relu(tn_tensor *x, double slope) { return tn_apply_args(&tn__op_leaky_relu, &(args_t){slope}, x); }

#else /* ================================================================ kernels: contiguous, one real type */

static void TN__(leaky_relu_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *x = in[0], slope = (TN__REAL)((const args_t *)args)->slope;
    TN__REAL       *y = out[0];
    for (int64_t i = 0; i < n; i++) y[i] = x[i] * (x[i] > 0 ? 1 : slope); /* compiled without a branch */
}

static void TN__(leaky_relu_bwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *x = in[0], *gy = in[1], slope = (TN__REAL)((const args_t *)args)->slope;
    TN__REAL       *gx = out[0];
    for (int64_t i = 0; i < n; i++) gx[i] = gy[i] * (x[i] > 0 ? 1 : slope);
}
#endif
