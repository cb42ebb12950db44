/* logaddexp — y = log(eᵃ + eᵇ) = max(a, b) + log1p(exp(-|a - b|)), without overflow
 *
 *   ga = gy · σ(a - b),  gb = gy · σ(b - a) */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/elementwise.h"
#define TN__TEMPLATE "autograd/ops/logaddexp.c"
#include "core/real.h"

static bool logaddexp_infer(tn_ctx *c) { return tn__need_real(c, 0) && tn__infer_binary(c); }
static void logaddexp_backward_ops(tn_back *b)
{
    tn_tensor *d = tn_sub(b->in[0], b->in[1]);
    if (b->need[0]) b->gx[0] = tn_mul(b->gy[0], tn_sigmoid(d));
    if (b->need[1]) b->gx[1] = tn_mul(b->gy[0], tn_sigmoid(tn_neg(d)));
}

static const tn__sample logaddexp_samples[] = {
    {.in = {{2, {3, 4}}, {2, {3, 4}}}},
    {.in = {{3, {2, 3, 4}}, {1, {4}}}, .low = {-40, -2}, .high = {40, 2}},
    {.in = {{2, {3, 1}}, {3, {2, 1, 4}}}, .low = {8, 8}, .high = {9, 9}},
    {.in = {{0, {0}}, {2, {2, 2}}}},
    {.in = {{2, {0, 3}}, {2, {1, 3}}}},
    {.in = {{1, {4}}, {1, {4}}},
     .kind = {TN__ARG_INT, TN__ARG_INT},
     TN__FAILS(TN_EDTYPE, "logaddexp: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
    TN__NO_BROADCAST(logaddexp),
};
TN__BINARY(logaddexp, REALS, TN_WIDE, .saves = TN_SAVE_IN(0) | TN_SAVE_IN(1), .infer = logaddexp_infer,
           .backward_ops = logaddexp_backward_ops)

#else /* ================================================================ kernels: contiguous, one real type */
TN__KERNEL(logaddexp_fwd)
{
    const TN__REAL *a = in[0], *b = in[1];
    TN__REAL       *y = out[0];
    (void)args;
    for (int64_t i = 0; i < n; i++) { /* equal: also two infinities, whose difference is NaN */
        const double u = (double)a[i], v = (double)b[i], d = u == v ? 0 : fabs(u - v);
        y[i] = (TN__REAL)((u > v ? u : v) + tn__libm_log1p(tn__libm_exp(-d)));
    }
}
#endif
