/* mish — y = x · tanh(ln(1 + eˣ)); 0 at -inf, the limit
 *
 * With s = sigmoid(x) and r = 1 - s = sigmoid(-x), eˣ = s / r, and so
 *
 *   t = tanh(ln(1 + eˣ)) = s (1 + r) / (1 + r²)        1 - t² = (2r / (1 + r²))²
 *   y = x t        gx = gy · (t + x s (1 - t²))
 *
 * Nothing overflows, and values cancel only where the slope changes its sign. The smaller of s and r is computed, the
 * other is 1 minus it. Beyond |x| = 1000 they are 0 and 1 in any dtype; infinity times 0 must not be computed there. y
 * is computed by a function of core/kernels/vecmath.h. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
#include "core/kernels/vecmath.h"
#define TN__TEMPLATE "autograd/ops/mish.c"
#include "core/real.h"

static void mish_forward(tn_ctx *c) { tn__map(TN__REALS(mish_fwd), TN__LIST(c->out[0]), TN__LIST(c->in[0]), NULL); }

static void mish_backward(tn_back *b)
{
    if ((b->gx[0] = tn_empty_like(b->gy[0])))
        tn__map(TN__REALS(mish_bwd), TN__LIST(b->gx[0]), TN__LIST(b->in[0], b->gy[0]), NULL);
}
static void mish_backward_ops(tn_back *b)
{
    tn_tensor *x = tn_clamp(b->in[0], -1000, 1000), *s = tn_sigmoid(x), *r = tn_sigmoid(tn_neg(x));
    tn_tensor *below = tn_add_scalar(tn_square(r), 1);
    tn_tensor *t = tn_div(tn_mul(s, tn_add_scalar(r, 1)), below), *root = tn_div(tn_mul_scalar(r, 2), below);
    b->gx[0] = tn_mul(b->gy[0], tn_add(t, tn_mul(x, tn_mul(s, tn_square(root)))));
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
     TN__FAILS(TN_EDTYPE, "mish: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
};

const tn_op tn__op_mish = {TN__ROOM("mish", TN_AS_IS),       .inputs = 1,
                           .saves = TN_SAVE_IN(0),           .infer = tn__infer_real,
                           .forward = mish_forward,          .backward = mish_backward,
                           .backward_ops = mish_backward_ops};
TN__SAMPLES(mish, samples);

tn_tensor *tn_mish(tn_tensor *x) { return tn_apply(&tn__op_mish, x); }

#else /* ================================================================ kernels: contiguous, one real type */

static void TN__(mish_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    (void)args;
    TN__(tn__mish)(n, out[0], in[0]);
}

static void TN__(mish_bwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *x = in[0], *gy = in[1];
    TN__REAL       *gx = out[0];
    (void)args;
    for (int64_t i = 0; i < n; i++) gx[i] = x[i] < 0 ? x[i] : -x[i];
    TN__(tn__sigmoid)(n, gx, gx);
    for (int64_t i = 0; i < n; i++) {
        const TN__REAL at = x[i] > 1000 ? 1000 : x[i] < -1000 ? -1000 : x[i];
        const TN__REAL less = gx[i], more = 1 - less, s = x[i] < 0 ? less : more, r = x[i] < 0 ? more : less;
        const TN__REAL below = 1 + r * r, t = s * (1 + r) / below, root = 2 * r / below;
        gx[i] = gy[i] * (t + at * s * (root * root));
    }
}
#endif
