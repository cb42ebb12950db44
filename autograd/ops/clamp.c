/* clamp — y = min(max(x, low), high); -INFINITY and INFINITY mean no bound; NaN stays NaN
 *
 *   gx = gy where low < x < high, else 0, also at a bound, as in PyTorch 2.15
 *
 * Where low > high every y is high, as in PyTorch. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/elementwise.h"
typedef struct {
    double low, high;
} args_t;
#define TN__TEMPLATE "autograd/ops/clamp.c"
#define TN__WITH_I64
#include "core/real.h"

static bool clamp_infer(tn_ctx *c)
{
    const double   low = TN_ARG(c, low), high = TN_ARG(c, high);
    const tn_dtype dt = c->in[0]->dtype;
    const double   least = dt == TN_I64 ? -0x1p63 : dt == TN_I32 ? INT32_MIN : 0;
    const double   end = dt == TN_I64 ? 0x1p63 : dt == TN_I32 ? 0x1p31 : 0x1p8;
    if (!tn__infer_numbers(c)) return false;
    if (low != low || high != high)
        return tn_infer_fail(c, TN_EINVAL, "a bound is NaN; for no bound pass -INFINITY or INFINITY");
    if (tn__is_float(dt)) return true;
    if (!isinf(low) && !tn__need_whole(c, 0, low)) return false;
    if (!isinf(high) && !tn__need_whole(c, 0, high)) return false;
    if (low < end && high >= least) return true;
    return tn_infer_fail(c, TN_EINVAL, "no %s is between %g and %g", tn_dtype_name(dt), low, high);
}

TN__BACKWARD(clamp, b->in[0], tn__grad_room(b), b->args)
/* A bound as the kernels use it: in f64, or rounded to f32. */
static tn_tensor *bound_like(const tn_tensor *x, double bound)
{
    return tn_scalar_of(tn_dtype_of(x) == TN_F64 ? TN_F64 : TN_F32, bound);
}
static void clamp_backward_ops(tn_back *b)
{
    tn_tensor *x = b->in[0], *low = bound_like(x, TN_ARG(b, low)), *high = bound_like(x, TN_ARG(b, high));
    tn_tensor *above = isinf(TN_ARG(b, low)) ? tn_ge(x, low) : tn_gt(x, low); /* false for NaN */
    tn_tensor *below = isinf(TN_ARG(b, high)) ? tn_le(x, high) : tn_lt(x, high);
    b->gx[0] = tn_masked_fill(b->gy[0], tn_logical_not(tn_logical_and(above, below)), 0);
}

/* clang-format off */
static const tn__sample clamp_samples[] = {
    {.in = {{2, {3, 4}}}, .args = &(args_t){-0.5, 0.5}, .low = {0.6}, .high = {2}},
    {.in = {{2, {3, 4}}}, .args = &(args_t){-3, 3}},
    {.in = {{0, {0}}}, .args = &(args_t){-INFINITY, 0}, .low = {-2}, .high = {-0.5}},
    {.in = {{2, {0, 4}}}, .args = &(args_t){0, 1}},
    {.in = {{3, {2, 1, 3}}}, .args = &(args_t){1, INFINITY}, .low = {-0.5}, .high = {0.5}},
    {.in = {{1, {4}}}, .args = &(args_t){5, 3}, .low = {3.5}, .high = {4.5}}, /* all 3 */
    {.in = {{1, {9}}}, .args = &(args_t){-3, 4}, .kind = {TN__ARG_INT}, .low = {-9}, .high = {9}},
    {.in = {{1, {9}}}, .args = &(args_t){-INFINITY, 4}, .kind = {TN__ARG_INT}, .low = {-9}, .high = {9}},
    {.in = {{1, {2}}}, .args = &(args_t){0, NAN},
     TN__FAILS(TN_EINVAL, "clamp: a bound is NaN; for no bound pass -INFINITY or INFINITY")},
    {.in = {{1, {2}}}, .args = &(args_t){0.5, 2}, .kind = {TN__ARG_INT},
     TN__FAILS(TN_EDTYPE, "clamp: x is i64 and 0.5 is not a whole number; convert x with tn_to(x, TN_F32)")},
    {.in = {{1, {2}}}, .args = &(args_t){INFINITY, INFINITY}, .kind = {TN__ARG_INT},
     TN__FAILS(TN_EINVAL, "clamp: no i64 is between inf and inf")},
    {.in = {{1, {2}}}, .args = &(args_t){0, 1}, .kind = {TN__ARG_MASK},
     TN__FAILS(TN_EDTYPE, "clamp: does not support bool; convert it with tn_to(x, TN_I64)")},
};
/* clang-format on */
TN__SCALAR(clamp, NUMBERS, TN_AS_IS, .saves = TN_SAVE_IN(0), .infer = clamp_infer, .backward = clamp_backward,
           .inplace = true)

tn_tensor *tn_clamp(tn_tensor *x, double low, double high)
{
    return tn_apply_args(&tn__op_clamp, (&(args_t){low, high}), x);
}
tn_tensor *tn_clamp_(tn_tensor *x, double low, double high)
{
    return tn_apply_args_(&tn__op_clamp, (&(args_t){low, high}), x);
}

#else /* ==================================================================== kernels: contiguous, one dtype */
TN__KERNEL(clamp_fwd)
{
    const args_t   *a = args;
    const TN__REAL *x = in[0];
    TN__REAL       *y = out[0];
#if TN__IS_REAL
    const TN__REAL  low = (TN__REAL)a->low, high = (TN__REAL)a->high;
#else
    const int64_t low = a->low >= -0x1p63 ? (int64_t)a->low : INT64_MIN;
    const int64_t high = a->high < 0x1p63 ? (int64_t)a->high : INT64_MAX;
#endif
    for (int64_t i = 0; i < n; i++) {
        TN__REAL v = x[i] < low ? low : x[i];
        y[i] = v > high ? high : v;
    }
}

#if TN__IS_REAL
TN__KERNEL(clamp_bwd)
{
    const args_t   *a = args;
    const TN__REAL *x = in[0], *gy = in[1], low = (TN__REAL)a->low, high = (TN__REAL)a->high;
    const int       from = isinf(a->low), to = isinf(a->high); /* without a bound infinity passes too */
    TN__REAL       *gx = out[0];
    for (int64_t i = 0; i < n; i++) {
        const TN__REAL g = gy[i]; /* read unconditionally, so that the loop has no branch */
        const int      above = (x[i] > low) | (from & (x[i] == low)), below = (x[i] < high) | (to & (x[i] == high));
        gx[i] = above & below ? g : 0;
    }
}
#endif
#endif
