/* add — y = a + b
 *
 *   ga = gy,  gb = gy */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/elementwise.h"
#define TN__TEMPLATE "autograd/ops/add.c"
#define TN__WITH_I64
#include "core/real.h"

static void add_backward_ops(tn_back *b)
{
    for (int i = 0; i < 2; i++)
        if (b->need[i]) b->gx[i] = b->gy[0];
}

static const tn__sample add_samples[] = {
    TN__ROWS_PAIR(),
    {.in = {{2, {2, 3}}, {1, {3}}}, .kind = {TN__ARG_INT, TN__ARG_INT}, .low = {-9, -9}, .high = {9, 9}},
    {.in = {{1, {5}}, {1, {5}}}, .kind = {TN__ARG_MASK, TN__ARG_MASK}}, /* or */
    TN__NO_BROADCAST(add),
    {.in = {{1, {3}}, {1, {3}}},
     .kind = {TN__ARG_REAL, TN__ARG_INT},
     TN__FAILS(TN_EDTYPE, "add: dtypes differ: f32 and i64")},
};
TN__BINARY(add, NUMBERS, TN_JOIN, .infer = tn__infer_binary, .backward_ops = add_backward_ops, .inplace = true)
tn_tensor *tn_add_(tn_tensor *a, tn_tensor *b) { return tn__binary_(&tn__op_add, a, b, false); }

#else /* ==================================================================== kernels: contiguous, one dtype */
TN__EACH_PAIR(add_fwd, TN__EITHER(a[i] + b[i], TN__WRAP(a[i], +, b[i])))
#endif
