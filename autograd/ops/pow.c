/* pow — y = aᵇ
 *
 *   ga = gy · b · aᵇ⁻¹        0 where b = 0
 *   gb = gy · y · ln a        0 where a = 0 and b ≥ 0
 *
 * In backward_ops a is replaced by 1 where b = 0 and 1 / a is not finite, so that derivatives of no order multiply
 * infinity by 0. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/elementwise.h"
#define TN__TEMPLATE "autograd/ops/pow.c"
#define TN__WITH_I64
#include "core/real.h"

static bool is_negative(int64_t v) { return v < 0; }
static bool pow_infer(tn_ctx *c)
{
    const tn_tensor *b = c->in[1];
    char             text[192];
    int64_t          at;
    if (!tn__infer_binary(c)) return false;
    if (c->result[0].dtype == TN_BOOL)
        return tn_infer_fail(c, TN_EDTYPE, "does not support bool; convert it with tn_to(x, TN_I64)");
    if (tn__is_float(b->dtype) || (at = tn__find_i64(b, is_negative)) < 0) return true;
    return tn_infer_fail(
        c, TN_EINVAL,
        "an integer to a negative power is not an integer: the exponent is %lld at %s; convert a with tn_to(a, TN_F32)",
        (long long)tn_get_i64(b, at), tn__position_text(b->l.shape, at, text, sizeof text));
}

static unsigned pow_saves_for(const bool *need)
{
    return TN_SAVE_IN(0) | TN_SAVE_IN(1) | (need[1] ? TN_SAVE_OUT(0) : 0);
}
static void pow_backward(tn_back *b)
{
    tn_tensor *gy = b->gy[0];
    if (b->need[0] && (b->gx[0] = tn_empty_like(gy)))
        tn__map(TN__REALS(bwd_base), TN__LIST(b->gx[0]), TN__LIST(b->in[0], b->in[1], gy), NULL);
    if (b->need[1] && (b->gx[1] = tn_empty_like(gy)))
        tn__map(TN__REALS(bwd_exponent), TN__LIST(b->gx[1]), TN__LIST(b->in[0], b->in[1], b->out[0], gy), NULL);
}
static void pow_backward_ops(tn_back *b)
{
    tn_tensor *x = b->in[0], *e = b->in[1], *zero = tn_scalar(0), *at_zero = tn_eq(x, zero);
    if (b->need[0]) {
        tn_tensor *beyond = tn_logical_not(tn_isfinite(tn_reciprocal(tn_detach(x))));
        tn_tensor *base = tn_masked_fill(x, tn_logical_and(beyond, tn_eq(e, zero)), 1);
        b->gx[0] = tn_mul(b->gy[0], tn_mul(e, tn_pow(base, tn_add_scalar(e, -1))));
    }
    if (b->need[1]) {
        tn_tensor *base = tn_masked_fill(x, tn_logical_and(at_zero, tn_ge(e, zero)), 1);
        b->gx[1] = tn_mul(b->gy[0], tn_mul(b->out[0], tn_log(base)));
    }
}

/* clang-format off */
static const tn__sample pow_samples[] = {
    {.in = {{2, {3, 4}}, {2, {3, 4}}}, .low = {0.5, -2}, .high = {2, 2}},
    {.in = {{3, {2, 3, 4}}, {1, {4}}}, .low = {0.5, 0.5}, .high = {2, 3}},
    {.in = {{2, {3, 1}}, {3, {2, 1, 4}}}, .low = {0.5, -2}, .high = {2, 2}},
    {.in = {{0, {0}}, {2, {2, 2}}}, .low = {0.5, -2}, .high = {2, 2}},
    {.in = {{2, {2, 2}}, {0, {0}}}, .low = {0.5, -2}, .high = {2, 2}},
    {.in = {{2, {0, 3}}, {2, {1, 3}}}},
    {.in = {{2, {3, 4}}, {1, {4}}}, .kind = {TN__ARG_INT, TN__ARG_INT}, .low = {-9, 0}, .high = {9, 6}},
    {.in = {{1, {4}}, {2, {2, 4}}}, .kind = {TN__ARG_INT, TN__ARG_INT}, .low = {-9, -1}, .high = {9, 0},
     TN__FAILS(TN_EINVAL,
     "pow: an integer to a negative power is not an integer: the exponent is -1 at [0, 0]; convert a with "
     "tn_to(a, TN_F32)")},
    TN__NO_BOOL_PAIR(pow),
    TN__NO_BROADCAST(pow),
};
/* clang-format on */
TN__BINARY(pow, NUMBERS, TN_WIDE, .saves = TN_SAVE_IN(0) | TN_SAVE_IN(1) | TN_SAVE_OUT(0), .saves_for = pow_saves_for,
           .infer = pow_infer, .backward = pow_backward, .backward_ops = pow_backward_ops)

#else /* ==================================================================== kernels: contiguous, one dtype */
TN__EACH_PAIR(pow_fwd, TN__EITHER(TN__M(pow)(a[i], b[i]), tn__pow_i64(a[i], b[i])))

#if TN__IS_REAL
TN__KERNEL(bwd_base)
{
    const TN__REAL *a = in[0], *b = in[1], *gy = in[2];
    TN__REAL       *ga = out[0];
    (void)args;
    for (int64_t i = 0; i < n; i++) ga[i] = b[i] == 0 ? 0 : gy[i] * (b[i] * TN__M(pow)(a[i], b[i] - 1));
}

TN__KERNEL(bwd_exponent)
{
    const TN__REAL *a = in[0], *b = in[1], *y = in[2], *gy = in[3];
    TN__REAL       *gb = out[0];
    (void)args;
    for (int64_t i = 0; i < n; i++) gb[i] = a[i] == 0 && b[i] >= 0 ? 0 : gy[i] * (y[i] * TN__M(log)(a[i]));
}
#endif
#endif
