/* mul — y = a · b
 *
 *   ga = gy · b,  gb = gy · a        (each saved only if the other's gradient is needed) */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/elementwise.h"
#define TN__TEMPLATE "autograd/ops/mul.c"
#define TN__WITH_I64
#include "core/real.h"

static unsigned mul_saves_for(const bool *need)
{
    return (need[0] ? TN_SAVE_IN(1) : 0) | (need[1] ? TN_SAVE_IN(0) : 0);
}
static void mul_backward_ops(tn_back *b)
{
    if (b->need[0]) b->gx[0] = tn_mul(b->gy[0], b->in[1]);
    if (b->need[1]) b->gx[1] = tn_mul(b->gy[0], b->in[0]);
}

static const tn__sample mul_samples[] = {
    TN__ROWS_PAIR(),
    {.in = {{2, {2, 3}}, {1, {3}}}, .kind = {TN__ARG_INT, TN__ARG_INT}, .low = {-9, -9}, .high = {9, 9}},
    {.in = {{1, {5}}, {1, {5}}}, .kind = {TN__ARG_MASK, TN__ARG_MASK}}, /* and */
    TN__NO_BROADCAST(mul),
};
TN__BINARY(mul, NUMBERS, TN_JOIN, .saves = TN_SAVE_IN(0) | TN_SAVE_IN(1), .saves_for = mul_saves_for,
           .infer = tn__infer_binary, .backward_ops = mul_backward_ops, .inplace = true)
tn_tensor *tn_mul_(tn_tensor *a, tn_tensor *b) { return tn__binary_(&tn__op_mul, a, b, false); }

#else /* ==================================================================== kernels: contiguous, one dtype */
TN__EACH_PAIR(mul_fwd, TN__EITHER(a[i] * b[i], TN__WRAP(a[i], *, b[i])))
#endif
