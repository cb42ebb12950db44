/* masked_select — the elements of x where the mask is true, in order, 1-d; x and mask broadcast
 *
 *   gx = gy's elements at the places they were taken from, 0 elsewhere (masked_spread) */
#include "autograd/rooms/room.h"

static bool masked_select_infer(tn_ctx *c)
{
    const tn_tensor *x = c->in[0], *mask = c->in[1];
    tn_shape         s;
    if (mask->dtype != TN_BOOL)
        return tn_infer_fail(c, TN_EDTYPE,
                             "the mask must be bool, got %s; a comparison such as tn_gt(x, y) returns one",
                             tn_dtype_name(mask->dtype));
    if (!tn__broadcast("masked_select", x->l.shape, mask->l.shape, &s)) return false;
    c->result[0] = (tn_result){x->dtype, {.n = 1, .d = {tn__mask_count(mask, s)}}};
    return true;
}
static void masked_select_forward(tn_ctx *c)
{
    tn_shape s;
    tn__broadcast("masked_select", c->in[0]->l.shape, c->in[1]->l.shape, &s);
    tn__mask_select(c->out[0], c->in[0], c->in[1], s);
}
static void masked_select_backward_ops(tn_back *b)
{
    tn_shape s;
    tn__broadcast("masked_select", b->in_shape[0], b->in_shape[1], &s);
    b->gx[0] = tn_apply_args(&tn__op_masked_spread, &s, b->gy[0], b->in[1]);
}

#define MASK(x) .kind = {x, TN__ARG_MASK}
static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}, {2, {3, 4}}}, MASK(TN__ARG_REAL)},
    {.in = {{3, {2, 3, 4}}, {2, {3, 1}}}, MASK(TN__ARG_REAL)},
    {.in = {{1, {4}}, {3, {2, 1, 4}}}, MASK(TN__ARG_REAL)},
    {.in = {{0, {0}}, {1, {5}}}, MASK(TN__ARG_REAL)},
    {.in = {{0, {0}}, {0, {0}}}, MASK(TN__ARG_REAL)},
    {.in = {{2, {0, 3}}, {1, {3}}}, MASK(TN__ARG_REAL)},
    {.in = {{2, {3, 4}}, {1, {4}}}, MASK(TN__ARG_INT)},
    {.in = {{2, {3, 4}}, {1, {4}}}, MASK(TN__ARG_MASK)},
    {.in = {{1, {3}}, {1, {3}}},
     TN__FAILS(TN_EDTYPE,
               "masked_select: the mask must be bool, got f32; a comparison such as tn_gt(x, y) returns one")},
    {.in = {{1, {3}}, {1, {4}}},
     MASK(TN__ARG_REAL),
     TN__FAILS(TN_ESHAPE, "masked_select: shapes [3] and [4] do not broadcast: dim -1 is 3 in one and 4 in the other")},
};

const tn_op tn__op_masked_select = {TN__ROOM("masked_select", TN_AS_IS),
                                    .inputs = 2,
                                    .saves = TN_SAVE_IN(1),
                                    .infer = masked_select_infer,
                                    .forward = masked_select_forward,
                                    .backward_ops = masked_select_backward_ops};
TN__SAMPLES(masked_select, samples);

tn_tensor *tn_masked_select(tn_tensor *x, tn_tensor *mask) { return tn_apply(&tn__op_masked_select, x, mask); }
