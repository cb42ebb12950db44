/* sub — y = a - b; not for two bool tensors, which could mean "a and not b" or "a differs from b"
 *
 *   ga = gy,  gb = -gy */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/elementwise.h"
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
static void sub_backward_ops(tn_back *b)
{
    if (b->need[0]) b->gx[0] = b->gy[0];
    if (b->need[1]) b->gx[1] = tn_neg(b->gy[0]);
}

static const tn__sample sub_samples[] = {
    TN__ROWS_PAIR(),
    {.in = {{2, {2, 3}}, {1, {3}}}, .kind = {TN__ARG_INT, TN__ARG_INT}, .low = {-9, -9}, .high = {9, 9}},
    {.in = {{2, {2, 3}}, {2, {3, 2}}},
     TN__FAILS(TN_ESHAPE, "sub: shapes [2, 3] and [3, 2] do not broadcast: dim -1 is 3 in one and 2 in the other")},
    {.in = {{1, {3}}, {1, {3}}},
     .kind = {TN__ARG_MASK, TN__ARG_MASK},
     TN__FAILS(TN_EDTYPE, "sub: does not support bool; use tn_logical_xor(a, b), or tn_logical_not(x) for 1 - x")},
};
TN__BINARY(sub, NUMBERS, TN_JOIN, .infer = sub_infer, .backward_ops = sub_backward_ops, .inplace = true)
tn_tensor *tn_sub_(tn_tensor *a, tn_tensor *b) { return tn__binary_(&tn__op_sub, a, b, false); }

#else /* ==================================================================== kernels: contiguous, one dtype */
TN__EACH_PAIR(sub_fwd, TN__EITHER(a[i] - b[i], TN__WRAP(a[i], -, b[i])))
#endif
