/* silu — y = x · s with s = sigmoid(x); 0 at -inf, the limit
 *
 *   gx = gy · (s + x s (1 - s))        1 - s = sigmoid(-x)
 *
 * Beyond |x| = 1000 s is 0 or 1 in any dtype, and the second term is 0; infinity times 0 must not be computed there. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
#include "core/kernels/vecmath.h"
#define TN__TEMPLATE "autograd/ops/silu.c"
#include "core/real.h"

static void silu_forward(tn_ctx *c) { tn__map(TN__REALS(silu_fwd), TN__LIST(c->out[0]), TN__LIST(c->in[0]), NULL); }

static void silu_backward(tn_back *b)
{
    if ((b->gx[0] = tn__grad_room(b)))
        tn__map(TN__REALS(silu_bwd), TN__LIST(b->gx[0]), TN__LIST(b->in[0], b->gy[0]), NULL);
}
static void silu_backward_ops(tn_back *b)
{
    tn_tensor *x = tn_clamp(b->in[0], -1000, 1000), *s = tn_sigmoid(x);
    b->gx[0] = tn_mul(b->gy[0], tn_add(s, tn_mul(x, tn_mul(s, tn_sigmoid(tn_neg(x))))));
}

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
     TN__FAILS(TN_EDTYPE, "silu: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
};

const tn_op tn__op_silu = {TN__ROOM("silu", TN_AS_IS),       .inputs = 1,
                           .saves = TN_SAVE_IN(0),           .infer = tn__infer_real,
                           .forward = silu_forward,          .backward = silu_backward,
                           .backward_ops = silu_backward_ops};
TN__SAMPLES(silu, samples);

tn_tensor *tn_silu(tn_tensor *x) { return tn_apply(&tn__op_silu, x); }

#else /* ================================================================ kernels: contiguous, one real type */

static void TN__(silu_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    (void)args;
    TN__(tn__silu)(n, out[0], in[0]);
}

static void TN__(silu_bwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    (void)args;
    TN__(tn__silu_slope)(n, out[0], in[0], in[1]);
}
#endif
