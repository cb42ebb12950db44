/* sub — y = a - b; not for two bool tensors, which could mean "a and not b" or "a differs from b"
 *
 *   ga = gy,  gb = -gy */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
#define TN__TEMPLATE "autograd/ops/sub.c"
#define TN__WITH_I64
#include "core/real.h"

static bool sub_infer(tn_ctx *c)
{
    if (!tn__infer_binary(c)) return false;
    if (c->result[0].dtype != TN_BOOL) return true;
    return tn_infer_fail(c, TN_EDTYPE,
                         "does not support bool; use tn_logical_xor(a, b), or tn_logical_not(x) for 1 - x");
}
static void sub_forward(tn_ctx *c)
{
    tn__map(TN__NUMBERS(sub_fwd), TN__LIST(c->out[0]), TN__LIST(c->in[0], c->in[1]), NULL);
}
static void sub_backward_ops(tn_back *b)
{
    if (b->need[0]) b->gx[0] = b->gy[0];
    if (b->need[1]) b->gx[1] = tn_neg(b->gy[0]);
}

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}, {2, {3, 4}}}},
    {.in = {{3, {2, 3, 4}}, {1, {4}}}},
    {.in = {{2, {3, 1}}, {3, {2, 1, 4}}}},
    {.in = {{0, {0}}, {2, {2, 2}}}},
    {.in = {{2, {0, 3}}, {2, {1, 3}}}},
    {.in = {{2, {2, 3}}, {1, {3}}}, .kind = {TN__ARG_INT, TN__ARG_INT}, .low = {-9, -9}, .high = {9, 9}},
    {.in = {{2, {2, 3}}, {2, {3, 2}}},
     TN__FAILS(TN_ESHAPE, "sub: shapes [2, 3] and [3, 2] do not broadcast: dim -1 is 3 in one and 2 in the other")},
    {.in = {{1, {3}}, {1, {3}}},
     .kind = {TN__ARG_MASK, TN__ARG_MASK},
     TN__FAILS(TN_EDTYPE, "sub: does not support bool; use tn_logical_xor(a, b), or tn_logical_not(x) for 1 - x")},
};

const tn_op tn__op_sub = {TN__ROOM("sub", TN_JOIN),         .inputs = 2,    .infer = sub_infer, .forward = sub_forward,
                          .backward_ops = sub_backward_ops, .inplace = true};
TN__SAMPLES(sub, samples);

tn_tensor *tn_sub(tn_tensor *a, tn_tensor *b) { return tn__binary(&tn__op_sub, a, b, false); }
tn_tensor *tn_sub_(tn_tensor *a, tn_tensor *b) { return tn__binary_(&tn__op_sub, a, b, false); }

#else /* ==================================================================== kernels: contiguous, one dtype */

static void TN__(sub_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *a = in[0], *b = in[1];
    TN__REAL       *y = out[0];
    (void)args;
#if TN__IS_REAL
    for (int64_t i = 0; i < n; i++) y[i] = a[i] - b[i];
#else
    for (int64_t i = 0; i < n; i++) y[i] = (TN__REAL)((uint64_t)a[i] - (uint64_t)b[i]); /* wraps, as integers do */
#endif
}
#endif
