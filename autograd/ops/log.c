/* log — y = ln x; -inf at 0, NaN below
 *
 *   gx = gy / x */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
#include "core/kernels/vecmath.h"
#define TN__TEMPLATE "autograd/ops/log.c"
#include "core/real.h"

static void log_forward(tn_ctx *c) { tn__map(TN__REALS(log_fwd), TN__LIST(c->out[0]), TN__LIST(c->in[0]), NULL); }
static void log_backward_ops(tn_back *b) { b->gx[0] = tn_div(b->gy[0], b->in[0]); }

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}}, .low = {0.5}, .high = {3}},
    {.in = {{0, {0}}}, .low = {0.5}, .high = {3}},
    {.in = {{3, {2, 0, 3}}}, .low = {0.5}, .high = {3}},
    {.in = {{3, {2, 1, 5}}}, .low = {0.5}, .high = {3}},
    {.in = {{2, {2, 3}}}, .low = {1000}, .high = {3000}},
    {.in = {{1, {2}}},
     .kind = {TN__ARG_INT},
     TN__FAILS(TN_EDTYPE, "log: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
};

const tn_op tn__op_log = {TN__ROOM("log", TN_WIDE), .inputs = 1,
                          .saves = TN_SAVE_IN(0),   .infer = tn__infer_real,
                          .forward = log_forward,   .backward_ops = log_backward_ops};
TN__SAMPLES(log, samples);

tn_tensor *tn_log(tn_tensor *x) { return tn_apply(&tn__op_log, x); }

#else /* ================================================================ kernels: contiguous, one real type */

static void TN__(log_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    (void)args;
    TN__(tn__log)(n, out[0], in[0]);
}
#endif
