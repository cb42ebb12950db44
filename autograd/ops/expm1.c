/* expm1 — y = eˣ - 1, accurate near 0
 *
 *   gx = gy · eˣ        (y + 1 would lose its digits where eˣ is small) */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
#define TN__TEMPLATE "autograd/ops/expm1.c"
#include "core/real.h"

static void expm1_forward(tn_ctx *c) { tn__map(TN__REALS(expm1_fwd), TN__LIST(c->out[0]), TN__LIST(c->in[0]), NULL); }
static void expm1_backward_ops(tn_back *b) { b->gx[0] = tn_mul(b->gy[0], tn_exp(b->in[0])); }

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}}},
    {.in = {{0, {0}}}},
    {.in = {{3, {2, 0, 3}}}},
    {.in = {{3, {2, 1, 5}}}},
    {.in = {{2, {2, 3}}}, .low = {-30}, .high = {-20}},
    {.in = {{2, {2, 3}}}, .low = {-1e-6}, .high = {1e-6}},
    {.in = {{1, {2}}},
     .kind = {TN__ARG_INT},
     TN__FAILS(TN_EDTYPE, "expm1: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
};

const tn_op tn__op_expm1 = {TN__ROOM("expm1", TN_WIDE), .inputs = 1,
                            .saves = TN_SAVE_IN(0),     .infer = tn__infer_real,
                            .forward = expm1_forward,   .backward_ops = expm1_backward_ops};
TN__SAMPLES(expm1, samples);

tn_tensor *tn_expm1(tn_tensor *x) { return tn_apply(&tn__op_expm1, x); }

#else /* ================================================================ kernels: contiguous, one real type */

static void TN__(expm1_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *x = in[0];
    TN__REAL       *y = out[0];
    (void)args;
    for (int64_t i = 0; i < n; i++) y[i] = TN__M(expm1)(x[i]);
}
#endif
