/* isfinite — true if neither infinite nor NaN; bool, without gradient; true for all integers */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
#define TN__TEMPLATE "autograd/ops/isfinite.c"
#define TN__WITH_I64
#include "core/real.h"

static bool isfinite_infer(tn_ctx *c)
{
    tn_infer_like(c, 0, 0);
    c->result[0].dtype = TN_BOOL;
    return true;
}
static void isfinite_forward(tn_ctx *c)
{
    tn__map(TN__NUMBERS(isfinite_fwd), TN__LIST(c->out[0]), TN__LIST(c->in[0]), NULL);
}

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}}},
    {.in = {{0, {0}}}},
    {.in = {{2, {0, 3}}}},
    {.in = {{3, {2, 1, 3}}}, .kind = {TN__ARG_INT}},
    {.in = {{1, {4}}}, .kind = {TN__ARG_MASK}},
};

const tn_op tn__op_isfinite = {TN__ROOM("isfinite", TN_AS_IS), .inputs = 1, .infer = isfinite_infer,
                               .forward = isfinite_forward};
TN__SAMPLES(isfinite, samples);

tn_tensor *tn_isfinite(tn_tensor *x) { return tn_apply(&tn__op_isfinite, x); }

#else /* ==================================================================== kernels: contiguous, one dtype */

static void TN__(isfinite_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *x = in[0];
    TN__REAL       *y = out[0];
    (void)args, (void)x;
#if TN__IS_REAL
    for (int64_t i = 0; i < n; i++) y[i] = x[i] - x[i] == 0; /* inf - inf is NaN */
#else
    for (int64_t i = 0; i < n; i++) y[i] = 1;
#endif
}
#endif
