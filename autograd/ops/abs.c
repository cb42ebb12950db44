/* abs — y = |x|
 *
 *   gx = gy · sign(x), so 0 at 0 */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
#define TN__TEMPLATE "autograd/ops/abs.c"
#define TN__WITH_I64
#include "core/real.h"

static void abs_forward(tn_ctx *c) { tn__map(TN__NUMBERS(abs_fwd), TN__LIST(c->out[0]), TN__LIST(c->in[0]), NULL); }
static void abs_backward_ops(tn_back *b) { b->gx[0] = tn_mul(b->gy[0], tn_sign(b->in[0])); }

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}}, .low = {-2}, .high = {-0.5}},
    {.in = {{0, {0}}}, .low = {0.5}, .high = {2}},
    {.in = {{3, {2, 0, 3}}}},
    {.in = {{3, {2, 1, 5}}}, .low = {-3}, .high = {-0.5}},
    {.in = {{2, {2, 3}}}, .low = {0.5}, .high = {40}},
    {.in = {{2, {2, 3}}}, .kind = {TN__ARG_INT}, .low = {-5}, .high = {6}},
    {.in = {{1, {2}}},
     .kind = {TN__ARG_MASK},
     TN__FAILS(TN_EDTYPE, "abs: does not support bool; convert it with tn_to(x, TN_I64)")},
};

const tn_op tn__op_abs = {TN__ROOM("abs", TN_AS_IS), .inputs = 1,
                          .saves = TN_SAVE_IN(0),    .infer = tn__infer_numbers,
                          .forward = abs_forward,    .backward_ops = abs_backward_ops};
TN__SAMPLES(abs, samples);

tn_tensor *tn_abs(tn_tensor *x) { return tn_apply(&tn__op_abs, x); }

#else /* ==================================================================== kernels: contiguous, one dtype */

static void TN__(abs_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *x = in[0];
    TN__REAL       *y = out[0];
    (void)args;
#if TN__IS_REAL
    for (int64_t i = 0; i < n; i++) y[i] = TN__M(fabs)(x[i]);
#else
    for (int64_t i = 0; i < n; i++) y[i] = x[i] < 0 ? (TN__REAL)(0 - (uint64_t)x[i]) : x[i];
#endif
}
#endif
