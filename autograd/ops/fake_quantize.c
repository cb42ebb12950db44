/* fake_quantize — each row of the last dim rounded and back, as products in int8 round it
 *
 *   y = H⁻¹ s · round(H x / s) with s = max |H x| / 63; for weights s = max(max |H x| / 127, M / 256), M the largest
 *   sum of |H x| that the kernels of int8 add in 16 bits (docs/quantisation.md). H mixes the columns. Halves are
 *   rounded to even.
 *   gx = gy: straight through. No value is outside the range, which is the row's own.
 *
 * In f32 the values are those of the products, bit for bit. A row below 2^-100 gives zeros, one with NaN or an infinity
 * NaN. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/q8.h"
typedef struct {
    bool weight;
} args_t;
#define TN__TEMPLATE "autograd/ops/fake_quantize.c"
#include "core/real.h"

static bool fake_quantize_infer(tn_ctx *c)
{
    return tn__infer_real(c) &&
           (c->in[0]->l.shape.n > 0 ||
            tn_infer_fail(c, TN_ESHAPE, "x has no dims, but must be [..., n]: each row of n has a scale of its own"));
}
static void fake_quantize_forward(tn_ctx *c)
{
    tn__rows(TN__REALS(fake_quantize_fwd), -1, TN__LIST(c->out[0]), TN__LIST(c->in[0]), c->args);
}
static void fake_quantize_backward_ops(tn_back *b) { b->gx[0] = b->gy[0]; }

/* Constants: differences of a function with steps are not its gradient. tests/unit/autograd/test_fake_quantize.c. */
#define INPUT \
    .kind = {TN__ARG_CONST}, .args = &(args_t) { false }
/* clang-format off */
static const tn__sample samples[] = {
    {.in = {{2, {3, 19}}}, INPUT},
    {.in = {{1, {7}}}, INPUT},
    {.in = {{3, {2, 3, 4}}}, .kind = {TN__ARG_CONST}, .args = &(args_t){true}},
    {.in = {{2, {5, 21}}}, .kind = {TN__ARG_CONST}, .args = &(args_t){true}},
    {.in = {{2, {3, 1}}}, INPUT},
    {.in = {{2, {0, 3}}}, INPUT},
    {.in = {{2, {3, 0}}}, INPUT},
    {.in = {{0, {0}}}, .args = &(args_t){false},
     TN__FAILS(TN_ESHAPE, "fake_quantize: x has no dims, but must be [..., n]: each row of n has a scale of its own")},
    {.in = {{1, {2}}}, .args = &(args_t){false}, .kind = {TN__ARG_INT},
     TN__FAILS(TN_EDTYPE, "fake_quantize: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
};
/* clang-format on */

const tn_op tn__op_fake_quantize = {TN__ROOM("fake_quantize", TN_AS_IS), .inputs = 1,
                                    .args_size = sizeof(args_t),         .infer = fake_quantize_infer,
                                    .forward = fake_quantize_forward,    .backward_ops = fake_quantize_backward_ops};
TN__SAMPLES(fake_quantize, samples);

tn_tensor *tn_fake_quantize(tn_tensor *x) { return tn_apply_args(&tn__op_fake_quantize, &(args_t){false}, x); }
tn_tensor *tn_fake_quantize_weight(tn_tensor *w) { return tn_apply_args(&tn__op_fake_quantize, &(args_t){true}, w); }

#else /* =========================================================== kernels: contiguous rows, one real type */

/* tn__int8_mix of at most TN__INT8_MIX columns, in place, with the sums in the same order. */
static void TN__(fake_quantize_mix)(int64_t columns, TN__REAL *x, bool divide)
{
    for (int64_t n = TN__INT8_MIX; columns; columns -= n, x += n) {
        while (n > columns) n /= 2;
        for (int64_t h = n / 2; h; h /= 2)
            for (int64_t i = 0; i < n; i++) {
                if (i & h) continue;
                const TN__REAL a = x[i], b = x[i + h];
                x[i] = a + b, x[i + h] = a - b;
            }
        for (int64_t i = 0; divide && i < n; i++) x[i] *= 1 / (TN__REAL)n;
    }
}

/* The maximum of |x|, or the value of 127 in the scale of weights; NaN if x has one. */
static TN__REAL TN__(fake_quantize_max)(int64_t n, const TN__REAL *x, bool weight)
{
    TN__REAL max = 0, sum[2] = {0, 0};
    for (int64_t i = 0; i < n && !isnan(max); i++) {
        TN__REAL *of = &sum[i / 2 % 2];
        if (i % TN__INT8_GROUP == 0) sum[0] = sum[1] = 0;
        *of += TN__M(fabs)(x[i]);
        if (!(TN__M(fabs)(x[i]) <= max)) max = TN__M(fabs)(x[i]);
        if (weight && !(*of * (TN__REAL)(127.0 / (double)TN__INT8_SUM) <= max))
            max = *of * (TN__REAL)(127.0 / (double)TN__INT8_SUM);
    }
    return max;
}

static void TN__(fake_quantize_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const args_t   *a = args;
    const TN__REAL *x = in[0], to = a->weight ? 127 : TN__INT8_INPUT;
    TN__REAL       *y = out[0], max = 0;
    for (int64_t at = 0, m; at < n && !isnan(max); at += m) {
        m = tn__min_i64(TN__INT8_MIX, n - at);
        memcpy(y + at, x + at, (size_t)m * sizeof *y);
        TN__(fake_quantize_mix)(m, y + at, a->weight);
        const TN__REAL some = TN__(fake_quantize_max)(m, y + at, a->weight);
        if (!(some <= max)) max = some;
    }
    const bool     some = isfinite(max) && max >= (TN__REAL)0x1p-100;
    const TN__REAL scale = !isfinite(max) ? (TN__REAL)NAN : some ? max / to : 0, inverse = some ? to / max : 0;
    for (int64_t i = 0; i < n; i++) y[i] = some ? TN__M(rint)(y[i] * inverse) * scale : scale;
    for (int64_t at = 0; some && at < n; at += TN__INT8_MIX)
        TN__(fake_quantize_mix)(tn__min_i64(TN__INT8_MIX, n - at), y + at, !a->weight);
}
#endif
