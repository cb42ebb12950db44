/* atan2 — the angle of the point (b, a), from -π to π
 *
 *   ga = gy · b / (a² + b²),  gb = -gy · a / (a² + b²)        0 at the origin */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/elementwise.h"
#define TN__TEMPLATE "autograd/ops/atan2.c"
#include "core/real.h"

static bool atan2_infer(tn_ctx *c)
{
    if (!tn__infer_binary(c)) return false;
    if (tn__is_float(c->result[0].dtype)) return true;
    return tn_infer_fail(c, TN_EDTYPE, "needs floating tensors, got %s; convert them with tn_to(x, TN_F32)",
                         tn_dtype_name(c->result[0].dtype));
}
static void atan2_backward_ops(tn_back *b)
{
    tn_tensor *y = b->in[0], *x = b->in[1], *squares = tn_add(tn_square(y), tn_square(x));
    tn_tensor *by = tn_div(b->gy[0], tn_masked_fill(squares, tn_eq(squares, tn_scalar(0)), 1));
    if (b->need[0]) b->gx[0] = tn_mul(by, x);
    if (b->need[1]) b->gx[1] = tn_neg(tn_mul(by, y));
}

static const tn__sample atan2_samples[] = {
    {.in = {{2, {3, 4}}, {2, {3, 4}}}, .low = {0.5, -2}, .high = {2, 2}},
    {.in = {{3, {2, 3, 4}}, {1, {4}}}, .low = {-2, 0.5}, .high = {2, 2}},
    {.in = {{2, {3, 1}}, {3, {2, 1, 4}}}, .low = {-2, 0.5}, .high = {-0.5, 2}},
    {.in = {{0, {0}}, {2, {2, 2}}}, .low = {0.5, -2}, .high = {2, 2}},
    {.in = {{2, {0, 3}}, {2, {1, 3}}}},
    {.in = {{1, {4}}, {1, {4}}},
     .kind = {TN__ARG_INT, TN__ARG_INT},
     TN__FAILS(TN_EDTYPE, "atan2: needs floating tensors, got i64; convert them with tn_to(x, TN_F32)")},
    TN__NO_BROADCAST(atan2),
};
TN__BINARY(atan2, REALS, TN_WIDE, .saves = TN_SAVE_IN(0) | TN_SAVE_IN(1), .infer = atan2_infer,
           .backward_ops = atan2_backward_ops)

#else /* ================================================================ kernels: contiguous, one real type */
TN__KERNEL(atan2_fwd)
{
    const TN__REAL *a = in[0], *b = in[1];
    TN__REAL       *y = out[0];
    const int       keep = errno;
    (void)args;
    for (int64_t i = 0; i < n; i++) y[i] = (TN__REAL)tn__errno_kept(keep, atan2((double)a[i], (double)b[i]));
}
#endif
