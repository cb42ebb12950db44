/* tan, asin, acos, atan, sinh, cosh, log2, log10 — the C library's functions, computed in f64 and rounded to the dtype
 *
 *   tan    gx = gy (1 + y²)          acos   gx = -gy / √(1 - x²)      cosh    gx = gy sinh x
 *   asin   gx = gy / √(1 - x²)       sinh   gx = gy cosh x            log2    gx = gy / (x ln 2)
 *   atan   gx = gy / (1 + x²)                                         log10   gx = gy / (x ln 10) */
#ifndef TN__REAL /* ============================================================================== the rooms */
#include "autograd/rooms/elementwise.h"
#define TN__TEMPLATE "autograd/ops/trigonometry.c"
typedef struct {
    double (*of)(double);
} function;
#include "core/real.h"

static tn_tensor *tan_slope(tn_tensor *x) { return tn_add_scalar(tn_square(tn_tan(x)), 1); }
static tn_tensor *asin_slope(tn_tensor *x) { return tn_rsqrt(tn_rsub_scalar(tn_square(x), 1)); }
static tn_tensor *acos_slope(tn_tensor *x) { return tn_neg(asin_slope(x)); }
static tn_tensor *atan_slope(tn_tensor *x) { return tn_reciprocal(tn_add_scalar(tn_square(x), 1)); }
#define sinh_slope tn_cosh
#define cosh_slope tn_sinh
static tn_tensor *log2_slope(tn_tensor *x) { return tn_reciprocal(tn_mul_scalar(x, 0.69314718055994530942)); }
static tn_tensor *log10_slope(tn_tensor *x) { return tn_reciprocal(tn_mul_scalar(x, 2.30258509299404568402)); }

/* F(function, low, high): values between which the derivatives are far from infinity */
#define FUNCTIONS(F)  \
    F(tan, -1.3, 1.3) \
    F(asin, -0.8, 0.8) F(acos, -0.8, 0.8) F(atan, -3, 3) F(sinh, -3, 3) F(cosh, -3, 3) F(log2, 0.3, 4) F(log10, 0.3, 4)
#define ROW(f, low, high) {&tn__op_##f, {f}, f##_slope},
static const struct {
    const tn_op *op;
    function     function;
    tn_tensor *(*slope)(tn_tensor *x);
} rows[] = {FUNCTIONS(ROW)};

static int row_of(const tn_op *op)
{
    int i = 0;
    while (rows[i].op != op) i++;
    return i;
}
static void libm_forward(tn_ctx *c)
{
    tn__map(TN__REALS(libm), TN__LIST(c->out[0]), TN__LIST(c->in[0]), &rows[row_of(c->op)].function);
}
static void libm_backward_ops(tn_back *b) { b->gx[0] = tn_mul(b->gy[0], rows[row_of(b->op)].slope(b->in[0])); }

/* clang-format off */
#define ROOM(f, from, to)                                                                                            \
    static const tn__sample f##_samples[] = {                                                                        \
        {.in = {{2, {3, 4}}}, .low = {from}, .high = {to}}, {.in = {{0, {0}}}, .low = {from}, .high = {to}},         \
        {.in = {{3, {2, 0, 3}}}}, {.in = {{3, {2, 1, 5}}}, .low = {from}, .high = {to}}, TN__REAL_ONLY(f)};          \
    const tn_op tn__op_##f = {TN__ROOM(#f, TN_WIDE),   .inputs = 1,             .saves = TN_SAVE_IN(0),              \
                              .infer = tn__infer_real, .forward = libm_forward, .backward_ops = libm_backward_ops};  \
    TN__SAMPLES(f, f##_samples);                                                                                     \
    tn_tensor *tn_##f(tn_tensor *x) { return tn_apply(&tn__op_##f, x); }
/* clang-format on */
FUNCTIONS(ROOM)

#else /* ================================================================ kernels: contiguous, one real type */
TN__KERNEL(libm)
{
    const TN__REAL *x = in[0];
    TN__REAL       *y = out[0];
    const int       keep = errno;
    for (int64_t i = 0; i < n; i++) y[i] = (TN__REAL)tn__errno_kept(keep, ((const function *)args)->of((double)x[i]));
}
#endif
