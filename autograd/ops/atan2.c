/* atan2 — the angle of the point (b, a), from -π to π
 *
 *   ga = gy · b / (a² + b²),  gb = -gy · a / (a² + b²)        0 at the origin */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
#define TN__TEMPLATE "autograd/ops/atan2.c"
#include "core/real.h"

static bool atan2_infer(tn_ctx *c)
{
    if (!tn__infer_binary(c)) return false;
    if (tn__is_float(c->result[0].dtype)) return true;
    return tn_infer_fail(c, TN_EDTYPE, "needs floating tensors, got %s; convert them with tn_to(x, TN_F32)",
                         tn_dtype_name(c->result[0].dtype));
}
static void atan2_forward(tn_ctx *c)
{
    tn__map(TN__REALS(atan2_fwd), TN__LIST(c->out[0]), TN__LIST(c->in[0], c->in[1]), NULL);
}
static void atan2_backward_ops(tn_back *b)
{
    tn_tensor *y = b->in[0], *x = b->in[1], *squares = tn_add(tn_square(y), tn_square(x));
    tn_tensor *by = tn_div(b->gy[0], tn_masked_fill(squares, tn_eq(squares, tn_scalar(0)), 1));
    if (b->need[0]) b->gx[0] = tn_mul(by, x);
    if (b->need[1]) b->gx[1] = tn_neg(tn_mul(by, y));
}

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}, {2, {3, 4}}}, .low = {0.5, -2}, .high = {2, 2}},
    {.in = {{3, {2, 3, 4}}, {1, {4}}}, .low = {-2, 0.5}, .high = {2, 2}},
    {.in = {{2, {3, 1}}, {3, {2, 1, 4}}}, .low = {-2, 0.5}, .high = {-0.5, 2}},
    {.in = {{0, {0}}, {2, {2, 2}}}, .low = {0.5, -2}, .high = {2, 2}},
    {.in = {{2, {0, 3}}, {2, {1, 3}}}},
    {.in = {{1, {4}}, {1, {4}}},
     .kind = {TN__ARG_INT, TN__ARG_INT},
     TN__FAILS(TN_EDTYPE, "atan2: needs floating tensors, got i64; convert them with tn_to(x, TN_F32)")},
    {.in = {{1, {3}}, {1, {4}}},
     TN__FAILS(TN_ESHAPE, "atan2: shapes [3] and [4] do not broadcast: dim -1 is 3 in one and 4 in the other")},
};

const tn_op tn__op_atan2 = {TN__ROOM("atan2", TN_WIDE),
                            .inputs = 2,
                            .saves = TN_SAVE_IN(0) | TN_SAVE_IN(1),
                            .infer = atan2_infer,
                            .forward = atan2_forward,
                            .backward_ops = atan2_backward_ops};
TN__SAMPLES(atan2, samples);

tn_tensor *tn_atan2(tn_tensor *a, tn_tensor *b) { return tn__binary(&tn__op_atan2, a, b, false); }

#else /* ================================================================ kernels: contiguous, one real type */

static void TN__(atan2_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *a = in[0], *b = in[1];
    TN__REAL       *y = out[0];
    const int       keep = errno;
    (void)args;
    for (int64_t i = 0; i < n; i++) y[i] = (TN__REAL)tn__errno_kept(keep, atan2((double)a[i], (double)b[i]));
}
#endif
