/* cos — y = cos x
 *
 *   gx = -gy · sin x */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
#include "core/kernels/vecmath.h"
#define TN__TEMPLATE "autograd/ops/cos.c"
#include "core/real.h"

static void cos_forward(tn_ctx *c) { tn__map(TN__REALS(cos_fwd), TN__LIST(c->out[0]), TN__LIST(c->in[0]), NULL); }

static void cos_backward(tn_back *b)
{
    if ((b->gx[0] = tn_empty_like(b->gy[0])))
        tn__map(TN__REALS(cos_bwd), TN__LIST(b->gx[0]), TN__LIST(b->in[0], b->gy[0]), NULL);
}
static void cos_backward_ops(tn_back *b) { b->gx[0] = tn_neg(tn_mul(b->gy[0], tn_sin(b->in[0]))); }

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}}},
    {.in = {{0, {0}}}},
    {.in = {{3, {2, 0, 3}}}},
    {.in = {{3, {2, 1, 5}}}},
    {.in = {{2, {2, 3}}}, .low = {-30}, .high = {30}},
    {.in = {{1, {2}}},
     .kind = {TN__ARG_INT},
     TN__FAILS(TN_EDTYPE, "cos: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
};

const tn_op tn__op_cos = {TN__ROOM("cos", TN_AS_IS),       .inputs = 1,
                          .saves = TN_SAVE_IN(0),          .infer = tn__infer_real,
                          .forward = cos_forward,          .backward = cos_backward,
                          .backward_ops = cos_backward_ops};
TN__SAMPLES(cos, samples);

tn_tensor *tn_cos(tn_tensor *x) { return tn_apply(&tn__op_cos, x); }

#else /* ================================================================ kernels: contiguous, one real type */

static void TN__(cos_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    (void)args;
    TN__(tn__cos)(n, out[0], in[0]);
}

static void TN__(cos_bwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *x = in[0], *gy = in[1];
    TN__REAL       *gx = out[0];
    (void)args;
    TN__(tn__sin)(n, gx, x);
    for (int64_t i = 0; i < n; i++) gx[i] = -gy[i] * gx[i];
}
#endif
