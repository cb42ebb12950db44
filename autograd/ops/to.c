/* to — the same values in another dtype
 *
 *   gx = gy in x's dtype         (no gradient passes through an integer dtype)
 *
 * To a narrower floating dtype: rounded to nearest. From floating to integer: rounded towards 0; NaN gives 0, values
 * out of range give the nearest one that fits. From integer to a narrower integer, and from any dtype to u8: the low
 * bits. To bool: true if not 0. */
#include "autograd/rooms/room.h"

typedef struct {
    tn_dtype dtype;
} args_t;

static bool to_infer(tn_ctx *c)
{
    const tn_dtype dt = TN_ARG(c, dtype);
    if ((unsigned)dt > TN_BOOL) return tn_infer_fail(c, TN_EDTYPE, "%d is not a dtype", (int)dt);
    c->result[0].dtype = dt;
    c->result[0].shape = c->in[0]->l.shape;
    return true;
}
static void to_forward(tn_ctx *c) { tn__copy(c->out[0], c->in[0]); }
static void to_backward_ops(tn_back *b) { b->gx[0] = tn_to(b->gy[0], b->in_dtype[0]); }

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}}, .args = &(args_t){TN_F64}},
    {.in = {{3, {2, 1, 4}}}, .args = &(args_t){TN_F64}},
    {.in = {{0, {0}}}, .args = &(args_t){TN_F64}},
    {.in = {{2, {0, 4}}}, .args = &(args_t){TN_F64}},
    {.in = {{2, {3, 4}}}, .kind = {TN__ARG_INT}, .low = {-9}, .high = {9}, .args = &(args_t){TN_F32}},
    {.in = {{2, {3, 4}}}, .kind = {TN__ARG_INT}, .low = {-9}, .high = {9}, .args = &(args_t){TN_I32}},
    {.in = {{2, {3, 4}}}, .kind = {TN__ARG_MASK}, .args = &(args_t){TN_I64}},
    {.in = {{1, {3}}}, .args = &(args_t){(tn_dtype)7}, TN__FAILS(TN_EDTYPE, "to: 7 is not a dtype")},
};

const tn_op tn__op_to = {TN__ROOM("to", TN_AS_IS), .inputs = 1,           .args_size = sizeof(args_t),
                         .infer = to_infer,        .forward = to_forward, .backward_ops = to_backward_ops};
TN__SAMPLES(to, samples);

tn_tensor *tn_to(tn_tensor *x, tn_dtype dt)
{
    if (x && !tn__self.error && x->dtype == dt) return x;
    return tn_apply_args(&tn__op_to, &(args_t){dt}, x);
}
