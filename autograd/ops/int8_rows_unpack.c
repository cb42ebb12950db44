/* int8_rows_unpack — the elements of rows in 8 bits (int8_rows), in f32: each byte times the scale of its row
 *
 * There is no gradient. */
#include "autograd/rooms/q8.h"

static bool int8_rows_unpack_infer(tn_ctx *c)
{
    char             text[192];
    const tn_tensor *x = c->in[0];
    tn_shape         y = x->l.shape;
    if (x->dtype != TN_U8 || !y.n || y.d[y.n - 1] <= TN_INT8_ROW_SCALE)
        return tn_infer_fail(c, TN_EDTYPE, "the rows must be u8 [..., n + %d], as tn_int8_rows returns them, got %s %s",
                             TN_INT8_ROW_SCALE, tn_dtype_name(x->dtype), tn_shape_text(y, text, sizeof text));
    y.d[y.n - 1] -= TN_INT8_ROW_SCALE;
    c->result[0] = (tn_result){TN_F32, y};
    return tn__shape_check(c->op->name, TN_F32, y);
}

/* The skeleton converts each byte to i64. */
static void int8_rows_unpack_fwd(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const int64_t *x = in[0];
    float         *y = out[0], scale;
    uint8_t        bytes[TN_INT8_ROW_SCALE];
    (void)args;
    n -= TN_INT8_ROW_SCALE;
    for (int i = 0; i < TN_INT8_ROW_SCALE; i++) bytes[i] = (uint8_t)x[n + i];
    memcpy(&scale, bytes, sizeof scale);
    for (int64_t i = 0; i < n; i++) y[i] = (float)(int8_t)x[i] * scale;
}
static void int8_rows_unpack_forward(tn_ctx *c)
{
    tn__rows((tn__kernel_set){.f32 = int8_rows_unpack_fwd}, -1, TN__LIST(c->out[0]), TN__LIST(c->in[0]), NULL);
}

static const tn__sample samples[] = {
    {.in = {{2, {3, 7}}},
     .kind = {TN__ARG_CONST},
     TN__FAILS(TN_EDTYPE,
               "int8_rows_unpack: the rows must be u8 [..., n + 4], as tn_int8_rows returns them, got f32 [3, 7]")},
};

const tn_op tn__op_int8_rows_unpack = {TN__ROOM("int8_rows_unpack", TN_AS_IS), .inputs = 1,
                                       .infer = int8_rows_unpack_infer, .forward = int8_rows_unpack_forward};
TN__SAMPLES(int8_rows_unpack, samples);

tn_tensor *tn_int8_rows_unpack(tn_tensor *rows) { return tn_apply(&tn__op_int8_rows_unpack, rows); }
