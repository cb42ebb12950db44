/* gelu_tanh — gelu's approximation y = x/2 · (1 + tanh u) with u = √(2/π) · (x + 0.044715 x³)
 *
 * As (1 + tanh u) / 2 = sigmoid(2u) =: s, and s' = 2 s (1 - s) u':
 *   y = x s        gx = gy · (s + x s (1 - s) · 2u')        2u' = √(8/π) · (1 + 3 · 0.044715 x²)
 *
 * Beyond |x| = 100 s is 0 or 1 in any dtype, and the second term is 0; infinity times 0 must not be computed there. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
#define ROOT 1.59576912160573071176 /* √(8/π) */
#define CUBE 0.044715
#define TN__TEMPLATE "autograd/ops/gelu_tanh.c"
#include "core/real.h"

static void gelu_tanh_forward(tn_ctx *c)
{
    tn__map(TN__REALS(gelu_tanh_fwd), TN__LIST(c->out[0]), TN__LIST(c->in[0]), NULL);
}

static void gelu_tanh_backward(tn_back *b)
{
    if ((b->gx[0] = tn__grad_room(b)))
        tn__map(TN__REALS(gelu_tanh_bwd), TN__LIST(b->gx[0]), TN__LIST(b->in[0], b->gy[0]), NULL);
}
tn_tensor *tn__gelu_tanh_derivative(tn_tensor *x)
{
    x = tn_clamp(x, -100, 100);
    tn_tensor *xx = tn_square(x);
    tn_tensor *z = tn_mul(tn_mul_scalar(x, ROOT), tn_add_scalar(tn_mul_scalar(xx, CUBE), 1)); /* 2u */
    tn_tensor *s = tn_sigmoid(z), *slope = tn_mul(s, tn_sigmoid(tn_neg(z)));
    tn_tensor *dz = tn_add_scalar(tn_mul_scalar(xx, 3 * CUBE * ROOT), ROOT);
    return tn_add(s, tn_mul(tn_mul(x, slope), dz));
}
static void gelu_tanh_backward_ops(tn_back *b) { b->gx[0] = tn_mul(b->gy[0], tn__gelu_tanh_derivative(b->in[0])); }

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}}},
    {.in = {{0, {0}}}},
    {.in = {{2, {0, 3}}}},
    {.in = {{3, {2, 1, 3}}}, .low = {-9}, .high = {9}},
    {.in = {{2, {2, 3}}}, .low = {-1e4}, .high = {-9e3}},
    {.in = {{2, {2, 3}}}, .low = {9e3}, .high = {1e4}},
    {.in = {{1, {2}}},
     .kind = {TN__ARG_INT},
     TN__FAILS(TN_EDTYPE, "gelu_tanh: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
};

const tn_op tn__op_gelu_tanh = {TN__ROOM("gelu_tanh", TN_AS_IS),
                                .inputs = 1,
                                .saves = TN_SAVE_IN(0),
                                .infer = tn__infer_real,
                                .forward = gelu_tanh_forward,
                                .backward = gelu_tanh_backward,
                                .backward_ops = gelu_tanh_backward_ops};
TN__SAMPLES(gelu_tanh, samples);

tn_tensor *tn_gelu_tanh(tn_tensor *x) { return tn_apply(&tn__op_gelu_tanh, x); }

#else /* ================================================================ kernels: contiguous, one real type */

static void TN__(gelu_tanh_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    (void)args;
    TN__(tn__gelu_tanh)(n, out[0], in[0]);
}

static void TN__(gelu_tanh_bwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    (void)args;
    TN__(tn__gelu_tanh_slope)(n, out[0], in[0], in[1]);
}
#endif
