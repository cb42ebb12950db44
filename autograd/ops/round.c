/* round — the nearest integer; of two equally near ones the even one
 *
 *   gx = 0 */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
#define TN__TEMPLATE "autograd/ops/round.c"
#define TN__WITH_I64
#include "core/real.h"

static void round_forward(tn_ctx *c) { tn__map(TN__NUMBERS(round_fwd), TN__LIST(c->out[0]), TN__LIST(c->in[0]), NULL); }
static void round_backward_ops(tn_back *b) { b->gx[0] = tn_zeros_like(b->gy[0]); }

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}}, .low = {0.1}, .high = {0.4}},
    {.in = {{0, {0}}}, .low = {-0.9}, .high = {-0.6}},
    {.in = {{3, {2, 0, 3}}}},
    {.in = {{3, {2, 1, 5}}}, .low = {6.6}, .high = {6.9}},
    {.in = {{2, {2, 3}}}, .low = {-7.4}, .high = {-7.1}},
    {.in = {{2, {2, 3}}}, .kind = {TN__ARG_INT}, .low = {-5}, .high = {6}},
    {.in = {{1, {2}}},
     .kind = {TN__ARG_MASK},
     TN__FAILS(TN_EDTYPE, "round: does not support bool; convert it with tn_to(x, TN_I64)")},
};

const tn_op tn__op_round = {TN__ROOM("round", TN_AS_IS), .inputs = 1, .infer = tn__infer_numbers,
                            .forward = round_forward, .backward_ops = round_backward_ops};
TN__SAMPLES(round, samples);

tn_tensor *tn_round(tn_tensor *x) { return tn_apply(&tn__op_round, x); }

#else /* ==================================================================== kernels: contiguous, one dtype */

static void TN__(round_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *x = in[0];
    TN__REAL       *y = out[0];
    (void)args;
#if TN__IS_REAL
    for (int64_t i = 0; i < n; i++) y[i] = TN__M(rint)(x[i]);
#else
    for (int64_t i = 0; i < n; i++) y[i] = x[i];
#endif
}
#endif
