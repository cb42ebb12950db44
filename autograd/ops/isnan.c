/* isnan — true for NaN; bool, without gradient; false for all integers */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
#define TN__TEMPLATE "autograd/ops/isnan.c"
#define TN__WITH_I64
#include "core/real.h"

static bool isnan_infer(tn_ctx *c)
{
    tn_infer_like(c, 0, 0);
    c->result[0].dtype = TN_BOOL;
    return true;
}
static void isnan_forward(tn_ctx *c) { tn__map(TN__NUMBERS(isnan_fwd), TN__LIST(c->out[0]), TN__LIST(c->in[0]), NULL); }

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}}},
    {.in = {{0, {0}}}},
    {.in = {{2, {0, 3}}}},
    {.in = {{3, {2, 1, 3}}}, .kind = {TN__ARG_INT}},
    {.in = {{1, {4}}}, .kind = {TN__ARG_MASK}},
};

const tn_op tn__op_isnan = {TN__ROOM("isnan", TN_AS_IS), .inputs = 1, .infer = isnan_infer, .forward = isnan_forward};
TN__SAMPLES(isnan, samples);

tn_tensor *tn_isnan(tn_tensor *x) { return tn_apply(&tn__op_isnan, x); }

#else /* ==================================================================== kernels: contiguous, one dtype */

static void TN__(isnan_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *x = in[0];
    TN__REAL       *y = out[0];
    (void)args, (void)x;
#if TN__IS_REAL
    for (int64_t i = 0; i < n; i++) y[i] = x[i] != x[i];
#else
    for (int64_t i = 0; i < n; i++) y[i] = 0;
#endif
}
#endif
