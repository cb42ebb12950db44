/* square — y = x²
 *
 *   gx = 2 · gy · x */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
#define TN__TEMPLATE "autograd/ops/square.c"
#define TN__WITH_I64
#include "core/real.h"

static void square_forward(tn_ctx *c)
{
    tn__map(TN__NUMBERS(square_fwd), TN__LIST(c->out[0]), TN__LIST(c->in[0]), NULL);
}
static void square_backward_ops(tn_back *b) { b->gx[0] = tn_mul_scalar(tn_mul(b->gy[0], b->in[0]), 2); }

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}}},
    {.in = {{0, {0}}}},
    {.in = {{3, {2, 0, 3}}}},
    {.in = {{3, {2, 1, 5}}}},
    {.in = {{2, {2, 3}}}, .low = {-40}, .high = {40}},
    {.in = {{2, {2, 3}}}, .kind = {TN__ARG_INT}, .low = {-5}, .high = {6}},
    {.in = {{1, {2}}},
     .kind = {TN__ARG_MASK},
     TN__FAILS(TN_EDTYPE, "square: does not support bool; convert it with tn_to(x, TN_I64)")},
};

const tn_op tn__op_square = {TN__ROOM("square", TN_AS_IS), .inputs = 1,
                             .saves = TN_SAVE_IN(0),       .infer = tn__infer_numbers,
                             .forward = square_forward,    .backward_ops = square_backward_ops};
TN__SAMPLES(square, samples);

tn_tensor *tn_square(tn_tensor *x) { return tn_apply(&tn__op_square, x); }

#else /* ==================================================================== kernels: contiguous, one dtype */

static void TN__(square_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *x = in[0];
    TN__REAL       *y = out[0];
    (void)args;
#if TN__IS_REAL
    for (int64_t i = 0; i < n; i++) y[i] = x[i] * x[i];
#else
    for (int64_t i = 0; i < n; i++) y[i] = (TN__REAL)((uint64_t)x[i] * (uint64_t)x[i]); /* wraps */
#endif
}
#endif
