/* remainder — y = a - b · ⌊a / b⌋, which has the sign of b, as in Python; floor_divide — ⌊a / b⌋
 *
 *   remainder      ga = gy,  gb = -gy · ⌊a / b⌋        where ⌊a / b⌋ = (a - y) / b, rounded to an integer
 *   floor_divide   ga = gb = 0
 *
 * For an infinite b the quotient is 0, or -1 where a has the other sign (and y is b). */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/elementwise.h"
#define TN__TEMPLATE "autograd/ops/remainder.c"
#define TN__WITH_I64
#include "core/real.h"

static bool is_zero(int64_t v) { return v == 0; }
static bool remainder_infer(tn_ctx *c)
{
    const tn_tensor *b = c->in[1];
    char             text[192];
    int64_t          at;
    if (!tn__infer_binary(c)) return false;
    if (c->result[0].dtype == TN_BOOL)
        return tn_infer_fail(c, TN_EDTYPE, "does not support bool; convert it with tn_to(x, TN_I64)");
    if (tn__is_float(b->dtype) || !tn_shape_numel(c->result[0].shape) || (at = tn__find_i64(b, is_zero)) < 0)
        return true;
    return tn_infer_fail(c, TN_EINVAL, "integer division by zero: the divisor is 0 at %s",
                         tn__position_text(b->l.shape, at, text, sizeof text));
}
static unsigned remainder_saves_for(const bool *need)
{
    return need[1] ? TN_SAVE_IN(0) | TN_SAVE_IN(1) | TN_SAVE_OUT(0) : 0;
}
static void remainder_backward(tn_back *b)
{
    if (b->need[0]) b->gx[0] = b->gy[0];
    if (b->need[1] && (b->gx[1] = tn_empty_like(b->gy[0])))
        tn__map(TN__REALS(remainder_bwd), TN__LIST(b->gx[1]), TN__LIST(b->in[0], b->in[1], b->out[0], b->gy[0]), NULL);
}
static void remainder_backward_ops(tn_back *b)
{
    if (b->need[0]) b->gx[0] = b->gy[0];
    if (!b->need[1]) return;
    tn_tensor *x = tn_detach(b->in[0]), *by = tn_detach(b->in[1]), *y = tn_detach(b->out[0]);
    tn_tensor *whole = tn_round(tn_div(tn_sub(x, y), by)), *small = tn_isfinite(x);
    small = tn_logical_and(small, tn_eq(tn_abs(by), tn_scalar(INFINITY)));
    whole = tn_masked_fill(whole, tn_logical_and(small, tn_eq(x, y)), 0);
    whole = tn_masked_fill(whole, tn_logical_and(small, tn_eq(by, y)), -1);
    b->gx[1] = tn_neg(tn_mul(b->gy[0], whole));
}

/* clang-format off */
static const tn__sample remainder_samples[] = {
    {.in = {{2, {3, 4}}, {2, {3, 4}}}, .low = {0.1, 0.5}, .high = {0.4, 0.9}},
    {.in = {{3, {2, 3, 4}}, {1, {4}}}, .low = {-0.4, 0.5}, .high = {-0.1, 0.9}},
    {.in = {{2, {3, 1}}, {3, {2, 1, 4}}}, .low = {2.1, 0.9}, .high = {2.4, 1}},
    {.in = {{0, {0}}, {2, {2, 2}}}, .low = {0.1, -0.9}, .high = {0.4, -0.5}},
    {.in = {{2, {2, 2}}, {0, {0}}}, .low = {-2.4, -1}, .high = {-2.1, -0.9}},
    {.in = {{2, {0, 3}}, {2, {1, 3}}}},
    {.in = {{2, {3, 4}}, {1, {4}}}, .kind = {TN__ARG_INT, TN__ARG_INT}, .low = {-9, 1}, .high = {9, 5}},
    {.in = {{2, {3, 4}}, {1, {4}}}, .kind = {TN__ARG_INT, TN__ARG_INT}, .low = {-9, -5}, .high = {9, 0}},
    {.in = {{2, {0, 4}}, {1, {4}}}, .kind = {TN__ARG_INT, TN__ARG_INT}, .low = {0, 0}, .high = {1, 1}},
    {.in = {{1, {4}}, {2, {2, 4}}}, .kind = {TN__ARG_INT, TN__ARG_INT}, .low = {-9, 0}, .high = {9, 1},
     TN__FAILS(TN_EINVAL, "remainder: integer division by zero: the divisor is 0 at [0, 0]")},
    TN__NO_BOOL_PAIR(remainder),
    TN__NO_BROADCAST(remainder),
};
/* clang-format on */

TN__BINARY(remainder, NUMBERS, TN_JOIN, .saves = TN_SAVE_IN(0) | TN_SAVE_IN(1) | TN_SAVE_OUT(0),
           .saves_for = remainder_saves_for, .infer = remainder_infer, .backward = remainder_backward,
           .backward_ops = remainder_backward_ops)

/* ---- floor_divide ---- */

static void floor_divide_backward_ops(tn_back *b)
{
    for (int i = 0; i < 2; i++)
        if (b->need[i]) b->gx[i] = tn_zeros_like(b->gy[0]);
}

/* clang-format off */
static const tn__sample floor_divide_samples[] = {
    {.in = {{2, {3, 4}}, {2, {3, 4}}}, .low = {0.1, 0.5}, .high = {0.4, 0.9}},
    {.in = {{3, {2, 3, 4}}, {1, {4}}}, .low = {-0.4, 0.5}, .high = {-0.1, 0.9}},
    {.in = {{2, {3, 1}}, {3, {2, 1, 4}}}, .low = {2.1, -1}, .high = {2.4, -0.9}},
    {.in = {{0, {0}}, {2, {2, 2}}}, .low = {0.1, -0.9}, .high = {0.4, -0.5}},
    {.in = {{2, {0, 3}}, {2, {1, 3}}}},
    {.in = {{2, {3, 4}}, {1, {4}}}, .kind = {TN__ARG_INT, TN__ARG_INT}, .low = {-9, 1}, .high = {9, 5}},
    {.in = {{2, {3, 4}}, {1, {4}}}, .kind = {TN__ARG_INT, TN__ARG_INT}, .low = {-9, -5}, .high = {9, 0}},
    {.in = {{1, {4}}, {2, {2, 4}}}, .kind = {TN__ARG_INT, TN__ARG_INT}, .low = {-9, 0}, .high = {9, 1},
     TN__FAILS(TN_EINVAL, "floor_divide: integer division by zero: the divisor is 0 at [0, 0]")},
    TN__NO_BOOL_PAIR(floor_divide),
};
/* clang-format on */

TN__BINARY(floor_divide, NUMBERS, TN_JOIN, .infer = remainder_infer, .backward_ops = floor_divide_backward_ops)

#else /* ==================================================================== kernels: contiguous, one dtype */
TN__KERNEL(remainder_fwd)
{
    const TN__REAL *a = in[0], *b = in[1];
    TN__REAL       *y = out[0];
    (void)args;
    for (int64_t i = 0; i < n; i++) {
#if TN__IS_REAL
        TN__REAL r = TN__M(fmod)(a[i], b[i]);
#else
        TN__REAL r = b[i] == -1 ? 0 : a[i] % b[i];             /* INT64_MIN % -1 traps */
#endif
        y[i] = r != 0 && (r < 0) != (b[i] < 0) ? r + b[i] : r;
    }
}

/* For reals: (a - r) / b with r = fmod(a, b), rounded; an exact multiple of b is not one less, as ⌊a / b⌋ may be. */
TN__KERNEL(floor_divide_fwd)
{
    const TN__REAL *a = in[0], *b = in[1];
    TN__REAL       *y = out[0];
    (void)args;
    for (int64_t i = 0; i < n; i++) {
#if TN__IS_REAL
        const TN__REAL r = TN__M(fmod)(a[i], b[i]);
        const TN__REAL q = (a[i] - r) / b[i] - (r != 0 && (b[i] < 0) != (r < 0) ? 1 : 0), low = TN__M(floor)(q);
        if (b[i] == 0) y[i] = a[i] / b[i];
        else y[i] = q == 0 ? TN__M(copysign)(0, a[i] / b[i]) : q - low > (TN__REAL)0.5 ? low + 1 : low;
#else
        if (b[i] == -1) y[i] = (TN__REAL)(0 - (uint64_t)a[i]); /* INT64_MIN / -1 traps */
        else y[i] = a[i] / b[i] - (a[i] % b[i] && (a[i] < 0) != (b[i] < 0));
#endif
    }
}

#if TN__IS_REAL
TN__KERNEL(remainder_bwd)
{
    const TN__REAL *a = in[0], *b = in[1], *y = in[2], *gy = in[3];
    TN__REAL       *gb = out[0];
    (void)args;
    for (int64_t i = 0; i < n; i++) {
        TN__REAL whole = TN__M(rint)((a[i] - y[i]) / b[i]);
        if (a[i] - a[i] == 0 && b[i] - b[i] != 0 && b[i] == b[i]) whole = y[i] == a[i] ? 0 : -1;
        gb[i] = -gy[i] * whole;
    }
}
#endif
#endif
