/* maximum, minimum — the larger, or smaller, of two elements; NaN wins over any number
 *
 *   ga = gy · w(a, b),  gb = gy · w(b, a)        w: 1 for the chosen one, 0 for the other, 1/2 for both if equal
 *
 * A NaN is neither less nor greater, so if one is NaN both get the whole gradient, as in PyTorch. */
#ifndef TN__REAL /* ============================================================================== the rooms */
#include "autograd/rooms/elementwise.h"
#define TN__TEMPLATE "autograd/ops/maximum.c"
#define TN__WITH_I64
#include "core/real.h"

static bool takes_larger(const tn_back *b) { return b->op == &tn__op_maximum; }

static void maximum_backward(tn_back *b)
{
    for (int i = 0; i < 2; i++) {
        int large = takes_larger(b) ? i : 1 - i;
        if (b->need[i] && (b->gx[i] = tn_empty_like(b->gy[0])))
            tn__map(TN__REALS(maximum_bwd), TN__LIST(b->gx[i]), TN__LIST(b->in[large], b->in[1 - large], b->gy[0]),
                    NULL);
    }
}
static void maximum_backward_ops(tn_back *b)
{
    tn_tensor *gy = b->gy[0], *shared = tn_where(tn_eq(b->in[0], b->in[1]), tn_mul_scalar(gy, 0.5), gy);
    for (int i = 0; i < 2; i++) {
        int large = takes_larger(b) ? i : 1 - i;
        if (b->need[i]) b->gx[i] = tn_masked_fill(shared, tn_lt(b->in[large], b->in[1 - large]), 0);
    }
}

/* clang-format off */
#define ROWS(op)                                                                                      \
    static const tn__sample op##_samples[] = {                                                        \
        {.in = {{2, {3, 4}}, {2, {3, 4}}}, .low = {-2, 2.1}, .high = {2, 3}},                         \
        {.in = {{3, {2, 3, 4}}, {1, {4}}}, .low = {0.5, -2}, .high = {3, 0.4}},                       \
        {.in = {{2, {3, 1}}, {3, {2, 1, 4}}}, .low = {-2, 2.1}, .high = {2, 3}},                      \
        {.in = {{0, {0}}, {2, {2, 2}}}, .low = {1e5, -2}, .high = {2e5, 2}},                          \
        {.in = {{2, {0, 3}}, {2, {1, 3}}}},                                                           \
        {.in = {{2, {4, 3}}, {1, {3}}}, .kind = {TN__ARG_INT, TN__ARG_INT}},                          \
        {.in = {{1, {5}}, {1, {5}}}, .kind = {TN__ARG_MASK, TN__ARG_MASK}}, TN__NO_BROADCAST(op)}
/* clang-format on */
ROWS(maximum);
ROWS(minimum);
TN__BINARY(maximum, NUMBERS, TN_JOIN, .saves = TN_SAVE_IN(0) | TN_SAVE_IN(1), .infer = tn__infer_binary,
           .backward = maximum_backward, .backward_ops = maximum_backward_ops)
TN__BINARY(minimum, NUMBERS, TN_JOIN, .saves = TN_SAVE_IN(0) | TN_SAVE_IN(1), .infer = tn__infer_binary,
           .backward = maximum_backward, .backward_ops = maximum_backward_ops)

#else /* ==================================================================== kernels: contiguous, one dtype */
#define EXTREME(name, sign)                                   \
    TN__KERNEL(name)                                          \
    {                                                         \
        const TN__REAL *a = in[0], *b = in[1];                \
        TN__REAL       *y = out[0];                           \
        (void)args;                                           \
        for (int64_t i = 0; i < n; i++) { /* a NaN is kept */ \
            TN__REAL best = a[i] sign b[i] ? a[i] : b[i];     \
            y[i] = a[i] != a[i] ? a[i] : best;                \
        }                                                     \
    }
EXTREME(maximum_fwd, >)
EXTREME(minimum_fwd, <)
#undef EXTREME

#if TN__IS_REAL
static void TN__(maximum_bwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *p = in[0], *q = in[1], *gy = in[2];
    TN__REAL       *gp = out[0];
    (void)args;
    for (int64_t i = 0; i < n; i++) gp[i] = p[i] < q[i] ? 0 : p[i] == q[i] ? gy[i] * (TN__REAL)0.5 : gy[i];
}
#endif
#endif
