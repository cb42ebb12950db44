/* logsigmoid — y = ln sigmoid(x) = -ln(1 + e⁻ˣ)
 *
 *   gx = gy · sigmoid(-x) */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
#include "core/kernels/vecmath.h"
#define TN__TEMPLATE "autograd/ops/logsigmoid.c"
#include "core/real.h"

static void logsigmoid_forward(tn_ctx *c)
{
    tn__map(TN__REALS(logsigmoid_fwd), TN__LIST(c->out[0]), TN__LIST(c->in[0]), NULL);
}

static void logsigmoid_backward(tn_back *b)
{
    if ((b->gx[0] = tn_empty_like(b->gy[0])))
        tn__map(TN__REALS(logsigmoid_bwd), TN__LIST(b->gx[0]), TN__LIST(b->in[0], b->gy[0]), NULL);
}
static void logsigmoid_backward_ops(tn_back *b) { b->gx[0] = tn_mul(b->gy[0], tn_sigmoid(tn_neg(b->in[0]))); }

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}}},
    {.in = {{0, {0}}}},
    {.in = {{3, {2, 0, 3}}}},
    {.in = {{3, {2, 1, 5}}}},
    {.in = {{2, {2, 3}}}, .low = {-9}, .high = {9}},
    {.in = {{2, {2, 3}}}, .low = {-1e4}, .high = {-9e3}},
    {.in = {{2, {2, 3}}}, .low = {9e3}, .high = {1e4}},
    {.in = {{1, {2}}},
     .kind = {TN__ARG_INT},
     TN__FAILS(TN_EDTYPE, "logsigmoid: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
};

const tn_op tn__op_logsigmoid = {TN__ROOM("logsigmoid", TN_AS_IS),
                                 .inputs = 1,
                                 .saves = TN_SAVE_IN(0),
                                 .infer = tn__infer_real,
                                 .forward = logsigmoid_forward,
                                 .backward = logsigmoid_backward,
                                 .backward_ops = logsigmoid_backward_ops};
TN__SAMPLES(logsigmoid, samples);

tn_tensor *tn_logsigmoid(tn_tensor *x) { return tn_apply(&tn__op_logsigmoid, x); }

#else /* ================================================================ kernels: contiguous, one real type */

static void TN__(logsigmoid_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *x = in[0];
    TN__REAL       *y = out[0];
    (void)args;
    for (int64_t i = 0; i < n; i++) y[i] = -x[i];
    TN__(tn__softplus)(n, y, y);
    for (int64_t i = 0; i < n; i++) y[i] = 0 - y[i];
}

static void TN__(logsigmoid_bwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *x = in[0], *gy = in[1];
    TN__REAL       *gx = out[0];
    (void)args;
    for (int64_t i = 0; i < n; i++) gx[i] = -x[i];
    TN__(tn__sigmoid)(n, gx, gx);
    for (int64_t i = 0; i < n; i++) gx[i] = gy[i] * gx[i];
}
#endif
