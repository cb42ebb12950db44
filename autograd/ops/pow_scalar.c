/* pow_scalar — y = xᵏ for a plain number k, which must be whole and not negative if x holds integers
 *
 *   gx = gy · k · xᵏ⁻¹        0 for k = 0, gy for k = 1: so that derivatives of x², x³ … end in 0
 *
 * The powers that models use are computed as products, quotients and roots instead of calls of pow. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/elementwise.h"
typedef tn__scalar args_t;
#define TN__TEMPLATE "autograd/ops/pow_scalar.c"
#define TN__WITH_I64
#include "core/real.h"

static bool pow_scalar_infer(tn_ctx *c)
{
    const double k = TN_ARG(c, k);
    if (!tn__infer_numbers(c) || !tn__need_whole(c, 0, k)) return false;
    if (tn__is_float(c->in[0]->dtype) || k >= 0) return true;
    return tn_infer_fail(c, TN_EINVAL, "an integer to the power %g is not an integer; convert x with tn_to(x, TN_F32)",
                         k);
}

static void pow_scalar_backward(tn_back *b)
{
    if (TN_ARG(b, k) == 0) b->gx[0] = tn_zeros_like(b->gy[0]);
    else if (TN_ARG(b, k) == 1) b->gx[0] = b->gy[0];
    else if ((b->gx[0] = tn_empty_like(b->gy[0])))
        tn__map(TN__REALS(pow_scalar_bwd), TN__LIST(b->gx[0]), TN__LIST(b->in[0], b->gy[0]), b->args);
}
static void pow_scalar_backward_ops(tn_back *b)
{
    const double k = TN_ARG(b, k);
    if (k == 0) b->gx[0] = tn_zeros_like(b->gy[0]);
    else if (k == 1) b->gx[0] = b->gy[0];
    else b->gx[0] = tn_mul(b->gy[0], tn_mul_scalar(k == 2 ? b->in[0] : tn_pow_scalar(b->in[0], k - 1), k));
}

static const tn__sample pow_scalar_samples[] = {
    {.in = {{2, {3, 4}}}, .args = &(args_t){2}},
    {.in = {{2, {3, 4}}}, .args = &(args_t){3}},
    {.in = {{0, {0}}}, .args = &(args_t){1}},
    {.in = {{2, {0, 4}}}, .args = &(args_t){2.5}},
    {.in = {{2, {3, 4}}}, .args = &(args_t){0}},
    {.in = {{3, {2, 1, 3}}}, .args = &(args_t){-1}, .low = {0.5}, .high = {2}},
    {.in = {{2, {2, 3}}}, .args = &(args_t){-2}, .low = {-2}, .high = {-0.5}},
    {.in = {{2, {2, 3}}}, .args = &(args_t){0.5}, .low = {0.5}, .high = {2}},
    {.in = {{2, {2, 3}}}, .args = &(args_t){-0.5}, .low = {0.5}, .high = {2}},
    {.in = {{2, {2, 3}}}, .args = &(args_t){2.7}, .low = {0.5}, .high = {2}},
    {.in = {{2, {2, 3}}}, .args = &(args_t){5}},
    {.in = {{2, {3, 4}}}, .args = &(args_t){7}, .kind = {TN__ARG_INT}, .low = {-9}, .high = {9}},
    TN__NOT_WHOLE(pow_scalar),
    {.in = {{1, {2}}},
     .args = &(args_t){-2},
     .kind = {TN__ARG_INT},
     TN__FAILS(TN_EINVAL, "pow_scalar: an integer to the power -2 is not an integer; convert x with tn_to(x, TN_F32)")},
    TN__NO_BOOL_K(pow_scalar, 2),
};
TN__SCALAR(pow_scalar, NUMBERS, TN_WIDE, .saves = TN_SAVE_IN(0), .infer = pow_scalar_infer,
           .backward = pow_scalar_backward)

tn_tensor *tn_pow_scalar(tn_tensor *x, double k) { return tn_apply_args(&tn__op_pow_scalar, &(args_t){k}, x); }

#else /* ==================================================================== kernels: contiguous, one dtype */
#if TN__IS_REAL
#define EACH(expr) \
    for (int64_t i = 0; i < n; i++) y[i] = (expr)
static void TN__(power)(int64_t n, TN__REAL *y, const TN__REAL *x, double k)
{
    if (k == 1) EACH(x[i]);
    else if (k == 2) EACH(x[i] * x[i]);
    else if (k == 3) EACH(x[i] * x[i] * x[i]);
    else if (k == -1) EACH(1 / x[i]);
    else if (k == -2) EACH(1 / (x[i] * x[i]));
    else if (k == 0.5) EACH(TN__M(sqrt)(x[i]));
    else if (k == -0.5) EACH(1 / TN__M(sqrt)(x[i]));
    else EACH(TN__M(pow)(x[i], (TN__REAL)k));
}
#undef EACH
#endif

TN__KERNEL(pow_scalar_fwd)
{
    const double k = ((const args_t *)args)->k;
#if TN__IS_REAL
    TN__(power)(n, out[0], in[0], k);
#else
    const TN__REAL *x = in[0];
    TN__REAL       *y = out[0];
    for (int64_t i = 0; i < n; i++) y[i] = tn__pow_i64(x[i], (int64_t)k);
#endif
}

#if TN__IS_REAL
TN__KERNEL(pow_scalar_bwd)
{
    const TN__REAL *x = in[0], *gy = in[1];
    TN__REAL       *gx = out[0];
    const double    k = ((const args_t *)args)->k;
    TN__(power)(n, gx, x, k - 1);
    for (int64_t i = 0; i < n; i++) gx[i] = gy[i] * ((TN__REAL)k * gx[i]);
}
#endif
#endif
