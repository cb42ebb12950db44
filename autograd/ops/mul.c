/* mul — y = a · b
 *
 *   ga = gy · b,  gb = gy · a        (each saved only if the other's gradient is needed) */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
#define TN__TEMPLATE "autograd/ops/mul.c"
#define TN__WITH_I64
#include "core/real.h"

static void mul_forward(tn_ctx *c)
{
    tn__map(TN__NUMBERS(mul_fwd), TN__LIST(c->out[0]), TN__LIST(c->in[0], c->in[1]), NULL);
}

static unsigned mul_saves_for(const bool *need)
{
    return (need[0] ? TN_SAVE_IN(1) : 0) | (need[1] ? TN_SAVE_IN(0) : 0);
}
static void mul_backward_ops(tn_back *b)
{
    if (b->need[0]) b->gx[0] = tn_mul(b->gy[0], b->in[1]);
    if (b->need[1]) b->gx[1] = tn_mul(b->gy[0], b->in[0]);
}

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}, {2, {3, 4}}}},
    {.in = {{3, {2, 3, 4}}, {1, {4}}}},
    {.in = {{2, {3, 1}}, {3, {2, 1, 4}}}},
    {.in = {{0, {0}}, {2, {2, 2}}}},
    {.in = {{2, {0, 3}}, {2, {1, 3}}}},
    {.in = {{2, {2, 3}}, {1, {3}}}, .kind = {TN__ARG_INT, TN__ARG_INT}, .low = {-9, -9}, .high = {9, 9}},
    {.in = {{1, {5}}, {1, {5}}}, .kind = {TN__ARG_MASK, TN__ARG_MASK}}, /* and */
    {.in = {{1, {3}}, {1, {4}}},
     TN__FAILS(TN_ESHAPE, "mul: shapes [3] and [4] do not broadcast: dim -1 is 3 in one and 4 in the other")},
};

const tn_op tn__op_mul = {TN__ROOM("mul", TN_JOIN),
                          .inputs = 2,
                          .saves = TN_SAVE_IN(0) | TN_SAVE_IN(1),
                          .saves_for = mul_saves_for,
                          .infer = tn__infer_binary,
                          .forward = mul_forward,
                          .backward_ops = mul_backward_ops,
                          .inplace = true};
TN__SAMPLES(mul, samples);

tn_tensor *tn_mul(tn_tensor *a, tn_tensor *b) { return tn__binary(&tn__op_mul, a, b, false); }
tn_tensor *tn_mul_(tn_tensor *a, tn_tensor *b) { return tn__binary_(&tn__op_mul, a, b, false); }

#else /* ==================================================================== kernels: contiguous, one dtype */

static void TN__(mul_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *a = in[0], *b = in[1];
    TN__REAL       *y = out[0];
    (void)args;
#if TN__IS_REAL
    for (int64_t i = 0; i < n; i++) y[i] = a[i] * b[i];
#else
    for (int64_t i = 0; i < n; i++) y[i] = (TN__REAL)((uint64_t)a[i] * (uint64_t)b[i]); /* wraps, as integers do */
#endif
}
#endif
