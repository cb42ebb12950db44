/* div — y = a / b; integers are divided as f32
 *
 *   ga = gy / b,  gb = -gy · y / b        (saves b, and y for gb)
 *
 * gb is computed as -(gy / b) · y, or as -gy · (y / b) where the first is not finite. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/elementwise.h"
#define TN__TEMPLATE "autograd/ops/div.c"
#include "core/real.h"

static bool div_infer(tn_ctx *c) { return tn__need_real(c, 0) && tn__infer_binary(c); }

static unsigned div_saves_for(const bool *need) { return TN_SAVE_IN(1) | (need[1] ? TN_SAVE_OUT(0) : 0); }
static void     div_backward(tn_back *b)
{
    if (b->need[0]) b->gx[0] = tn_div(b->gy[0], b->in[1]);
    if (b->need[1] && (b->gx[1] = tn_empty_like(b->gy[0])))
        tn__map(TN__REALS(div_bwd), TN__LIST(b->gx[1]), TN__LIST(b->gy[0], b->out[0], b->in[1]), NULL);
}
static void div_backward_ops(tn_back *b)
{
    if (b->need[0]) b->gx[0] = tn_div(b->gy[0], b->in[1]);
    if (b->need[1]) b->gx[1] = tn_neg(tn_mul(b->gy[0], tn_div(b->out[0], b->in[1])));
}

static const tn__sample div_samples[] = {
    {.in = {{2, {3, 4}}, {2, {3, 4}}}, .low = {-2, 0.5}, .high = {2, 3}},
    {.in = {{3, {2, 3, 4}}, {1, {4}}}, .low = {-2, -3}, .high = {2, -0.5}},
    {.in = {{2, {3, 1}}, {3, {2, 1, 4}}}, .low = {-2, 0.5}, .high = {2, 3}},
    {.in = {{0, {0}}, {2, {2, 2}}}, .low = {-2, 0.5}, .high = {2, 3}},
    {.in = {{2, {2, 2}}, {0, {0}}}, .low = {-2, 0.5}, .high = {2, 3}},
    {.in = {{2, {0, 3}}, {2, {1, 3}}}, .low = {-2, 0.5}, .high = {2, 3}},
    {.in = {{2, {2, 3}}, {2, {2, 3}}}, .low = {1e5, 1e3}, .high = {2e5, 2e3}},
    TN__NO_BROADCAST(div),
    {.in = {{1, {3}}, {1, {3}}},
     .kind = {TN__ARG_INT, TN__ARG_INT},
     TN__FAILS(TN_EDTYPE,
               "div: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")}, /* tn_div converts it */
};
TN__FORWARD(div, REALS, NULL, c->in[0], c->in[1])
TN__OP(div, 2, TN_JOIN, .saves = TN_SAVE_IN(1) | TN_SAVE_OUT(0), .saves_for = div_saves_for, .infer = div_infer,
       .backward = div_backward, .backward_ops = div_backward_ops, .inplace = true)

tn_tensor *tn_div(tn_tensor *a, tn_tensor *b) { return tn__binary(&tn__op_div, a, b, true); }
tn_tensor *tn_div_(tn_tensor *a, tn_tensor *b) { return tn__binary_(&tn__op_div, a, b, true); }

#else /* ================================================================ kernels: contiguous, one real type */
TN__EACH_PAIR(div_fwd, a[i] / b[i])

TN__KERNEL(div_bwd)
{
    const TN__REAL *gy = in[0], *y = in[1], *b = in[2];
    TN__REAL       *gb = out[0];
    (void)args;
    for (int64_t i = 0; i < n; i++) {
        const TN__REAL first = -(gy[i] / b[i]) * y[i], other = -gy[i] * (y[i] / b[i]);
        gb[i] = first - first == 0 ? first : other; /* true if finite */
    }
}
#endif
