/* logaddexp — y = log(eᵃ + eᵇ) = max(a, b) + log1p(exp(-|a - b|)), without overflow
 *
 *   ga = gy · σ(a - b),  gb = gy · σ(b - a) */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
#define TN__TEMPLATE "autograd/ops/logaddexp.c"
#include "core/real.h"

static bool logaddexp_infer(tn_ctx *c) { return tn__need_real(c, 0) && tn__infer_binary(c); }
static void logaddexp_forward(tn_ctx *c)
{
    tn__map(TN__REALS(logaddexp_fwd), TN__LIST(c->out[0]), TN__LIST(c->in[0], c->in[1]), NULL);
}
static void logaddexp_backward_ops(tn_back *b)
{
    tn_tensor *d = tn_sub(b->in[0], b->in[1]);
    if (b->need[0]) b->gx[0] = tn_mul(b->gy[0], tn_sigmoid(d));
    if (b->need[1]) b->gx[1] = tn_mul(b->gy[0], tn_sigmoid(tn_neg(d)));
}

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}, {2, {3, 4}}}},
    {.in = {{3, {2, 3, 4}}, {1, {4}}}, .low = {-40, -2}, .high = {40, 2}},
    {.in = {{2, {3, 1}}, {3, {2, 1, 4}}}, .low = {8, 8}, .high = {9, 9}},
    {.in = {{0, {0}}, {2, {2, 2}}}},
    {.in = {{2, {0, 3}}, {2, {1, 3}}}},
    {.in = {{1, {4}}, {1, {4}}},
     .kind = {TN__ARG_INT, TN__ARG_INT},
     TN__FAILS(TN_EDTYPE, "logaddexp: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
    {.in = {{1, {3}}, {1, {4}}},
     TN__FAILS(TN_ESHAPE, "logaddexp: shapes [3] and [4] do not broadcast: dim -1 is 3 in one and 4 in the other")},
};

const tn_op tn__op_logaddexp = {TN__ROOM("logaddexp", TN_WIDE),         .inputs = 2,
                                .saves = TN_SAVE_IN(0) | TN_SAVE_IN(1), .infer = logaddexp_infer,
                                .forward = logaddexp_forward,           .backward_ops = logaddexp_backward_ops};
TN__SAMPLES(logaddexp, samples);

tn_tensor *tn_logaddexp(tn_tensor *a, tn_tensor *b) { return tn__binary(&tn__op_logaddexp, a, b, false); }

#else /* ================================================================ kernels: contiguous, one real type */

static void TN__(logaddexp_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
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
