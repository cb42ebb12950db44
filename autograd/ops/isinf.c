/* isinf — true for infinity and -infinity; bool, without gradient; false for all integers */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
#define TN__TEMPLATE "autograd/ops/isinf.c"
#define TN__WITH_I64
#include "core/real.h"

static bool isinf_infer(tn_ctx *c)
{
    tn_infer_like(c, 0, 0);
    c->result[0].dtype = TN_BOOL;
    return true;
}
static void isinf_forward(tn_ctx *c) { tn__map(TN__NUMBERS(isinf_fwd), TN__LIST(c->out[0]), TN__LIST(c->in[0]), NULL); }

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}}},
    {.in = {{0, {0}}}},
    {.in = {{2, {0, 3}}}},
    {.in = {{3, {2, 1, 3}}}, .kind = {TN__ARG_INT}},
    {.in = {{1, {4}}}, .kind = {TN__ARG_MASK}},
};

const tn_op tn__op_isinf = {TN__ROOM("isinf", TN_AS_IS), .inputs = 1, .infer = isinf_infer, .forward = isinf_forward};
TN__SAMPLES(isinf, samples);

tn_tensor *tn_isinf(tn_tensor *x) { return tn_apply(&tn__op_isinf, x); }

#else /* ==================================================================== kernels: contiguous, one dtype */

static void TN__(isinf_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *x = in[0];
    TN__REAL       *y = out[0];
    (void)args, (void)x;
#if TN__IS_REAL
    for (int64_t i = 0; i < n; i++) y[i] = x[i] == (TN__REAL)INFINITY || x[i] == -(TN__REAL)INFINITY;
#else
    for (int64_t i = 0; i < n; i++) y[i] = 0;
#endif
}
#endif
