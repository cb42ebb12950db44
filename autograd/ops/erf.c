/* erf — y = 2/√π · ∫ exp(-t²) dt from 0 to x
 *
 *   gx = gy · 2/√π · exp(-x²) */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
#include "core/kernels/vecmath.h"
#define TN__TEMPLATE "autograd/ops/erf.c"
#include "core/real.h"

static void erf_forward(tn_ctx *c) { tn__map(TN__REALS(erf_fwd), TN__LIST(c->out[0]), TN__LIST(c->in[0]), NULL); }

static void erf_backward(tn_back *b)
{
    if ((b->gx[0] = tn_empty_like(b->gy[0])))
        tn__map(TN__REALS(erf_bwd), TN__LIST(b->gx[0]), TN__LIST(b->in[0], b->gy[0]), NULL);
}
static void erf_backward_ops(tn_back *b)
{
    tn_tensor *density = tn_exp(tn_neg(tn_square(b->in[0])));
    b->gx[0] = tn_mul(b->gy[0], tn_mul_scalar(density, 1.12837916709551257390));
}

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}}},
    {.in = {{0, {0}}}},
    {.in = {{3, {2, 0, 3}}}},
    {.in = {{3, {2, 1, 5}}}},
    {.in = {{2, {2, 3}}}, .low = {-6}, .high = {6}},
    {.in = {{1, {2}}},
     .kind = {TN__ARG_INT},
     TN__FAILS(TN_EDTYPE, "erf: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
};

const tn_op tn__op_erf = {TN__ROOM("erf", TN_AS_IS),       .inputs = 1,
                          .saves = TN_SAVE_IN(0),          .infer = tn__infer_real,
                          .forward = erf_forward,          .backward = erf_backward,
                          .backward_ops = erf_backward_ops};
TN__SAMPLES(erf, samples);

tn_tensor *tn_erf(tn_tensor *x) { return tn_apply(&tn__op_erf, x); }

#else /* ================================================================ kernels: contiguous, one real type */

static void TN__(erf_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    (void)args;
    TN__(tn__erf)(n, out[0], in[0]);
}

static void TN__(erf_bwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *x = in[0], *gy = in[1];
    TN__REAL       *gx = out[0];
    (void)args;
    for (int64_t i = 0; i < n; i++) gx[i] = -x[i] * x[i];
    TN__(tn__exp)(n, gx, gx);
    for (int64_t i = 0; i < n; i++) gx[i] = gy[i] * ((TN__REAL)1.12837916709551257390 * gx[i]);
}
#endif
