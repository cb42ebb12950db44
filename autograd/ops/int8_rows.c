/* int8_rows — each row of the last dim in 8 bits: its n elements as signed bytes, then their scale in f32
 *
 *   y = round(x / s) with s = max |x| / 127, halves to even
 *
 * A row below 2^-100 gives zeros, one with NaN or an infinity the scale NaN. There
 * is no gradient. */
#include "autograd/rooms/q8.h"

static bool int8_rows_infer(tn_ctx *c)
{
    char     text[192];
    tn_shape y = c->in[0]->l.shape;
    if (!tn__need_real(c, 0)) return false;
    if (c->in[0]->dtype == TN_F64)
        return tn_infer_fail(c, TN_EDTYPE,
                             "x is f64, but rows of 8 bits are made of f32 or bf16; convert it with "
                             "tn_to(x, TN_F32)");
    if (!y.n || !y.d[y.n - 1] || !tn__add_i64(y.d[y.n - 1], TN_INT8_ROW_SCALE, &y.d[y.n - 1]))
        return tn_infer_fail(c, TN_ESHAPE, "x must be [..., n] with an n of at least 1, got %s",
                             tn_shape_text(c->in[0]->l.shape, text, sizeof text));
    c->result[0] = (tn_result){TN_U8, y};
    return tn__shape_check(c->op->name, TN_U8, y);
}

/* The skeleton converts each byte from i64. */
static void int8_rows_fwd(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const float *x = in[0];
    float        scale, inverse;
    int64_t     *y = out[0];
    uint8_t      bytes[TN_INT8_ROW_SCALE];
    (void)args;
    tn__int8_scale(tn__int8_max(n, x), 127, &scale, &inverse);
    for (int64_t i = 0; i < n; i++) y[i] = inverse == 0 ? 0 : (uint8_t)tn__int8_round(x[i] * inverse);
    memcpy(bytes, &scale, sizeof bytes);
    for (int i = 0; i < TN_INT8_ROW_SCALE; i++) y[n + i] = bytes[i];
}
static void int8_rows_forward(tn_ctx *c)
{
    tn__rows((tn__kernel_set){.f32 = int8_rows_fwd}, -1, TN__LIST(c->out[0]), TN__LIST(c->in[0]), NULL);
}

/* The results are bytes: tests/unit/nn/test_int8_cache.c. */
/* clang-format off */
static const tn__sample samples[] = {
    {.in = {{2, {3, 0}}}, .kind = {TN__ARG_CONST},
     TN__FAILS(TN_ESHAPE, "int8_rows: x must be [..., n] with an n of at least 1, got [3, 0]")},
    {.in = {{0, {0}}}, .kind = {TN__ARG_CONST},
     TN__FAILS(TN_ESHAPE, "int8_rows: x must be [..., n] with an n of at least 1, got []")},
    {.in = {{1, {2}}}, .kind = {TN__ARG_INT},
     TN__FAILS(TN_EDTYPE, "int8_rows: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
};
/* clang-format on */

const tn_op tn__op_int8_rows = {TN__ROOM("int8_rows", TN_AS_IS), .inputs = 1, .infer = int8_rows_infer,
                                .forward = int8_rows_forward};
TN__SAMPLES(int8_rows, samples);

tn_tensor *tn_int8_rows(tn_tensor *x) { return tn_apply(&tn__op_int8_rows, x); }
