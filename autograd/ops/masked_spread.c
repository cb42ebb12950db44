/* masked_spread — the inverse of masked_select: y, of the shape in args, has x's elements, in order, where the mask
 * (which broadcasts to y) is true, and 0 elsewhere. Only for gradients; not in ops.h.
 *
 *   gx = masked_select(gy, mask) */
#include "autograd/rooms/room.h"

static tn_shape shape_of(const void *args) { return *(const tn_shape *)args; }

static bool masked_spread_infer(tn_ctx *c)
{
    const tn_tensor *x = c->in[0], *mask = c->in[1];
    const tn_shape   to = shape_of(c->args);
    char             have[192], want[192];
    if (mask->dtype != TN_BOOL)
        return tn_infer_fail(c, TN_EDTYPE, "the mask must be bool, got %s", tn_dtype_name(mask->dtype));
    if (!tn__shape_check("masked_spread", x->dtype, to)) return false;
    if (!tn__broadcastable(mask->l.shape, to))
        return tn_infer_fail(c, TN_ESHAPE, "a mask of shape %s does not broadcast to %s",
                             tn_shape_text(mask->l.shape, have, sizeof have), tn_shape_text(to, want, sizeof want));
    if (x->l.shape.n != 1 || x->l.shape.d[0] != tn__mask_count(mask, to))
        return tn_infer_fail(c, TN_ESHAPE, "the mask is true at %lld places, but x is %s",
                             (long long)tn__mask_count(mask, to), tn_shape_text(x->l.shape, have, sizeof have));
    c->result[0] = (tn_result){x->dtype, to};
    return true;
}
static void masked_spread_forward(tn_ctx *c) { tn__mask_spread(c->out[0], c->in[0], c->in[1]); }
static void masked_spread_backward_ops(tn_back *b) { b->gx[0] = tn_masked_select(b->gy[0], b->in[1]); }

/* A sample cannot know the number of elements that a random mask selects, except for an empty y: 0. masked_select's
 * gradients of gradients test other sizes. */
/* clang-format off */
static const tn__sample samples[] = {
    {.in = {{1, {0}}, {2, {0, 3}}}, .kind = {TN__ARG_REAL, TN__ARG_MASK}, .args = &(tn_shape){.n = 2, .d = {0, 3}}},
    {.in = {{1, {0}}, {1, {3}}}, .kind = {TN__ARG_REAL, TN__ARG_MASK}, .args = &(tn_shape){.n = 3, .d = {2, 0, 3}}},
    {.in = {{1, {0}}, {0, {0}}}, .kind = {TN__ARG_INT, TN__ARG_MASK}, .args = &(tn_shape){.n = 1, .d = {0}}},
    {.in = {{1, {3}}, {1, {3}}}, .args = &(tn_shape){.n = 1, .d = {3}},
     TN__FAILS(TN_EDTYPE, "masked_spread: the mask must be bool, got f32")},
    {.in = {{1, {3}}, {1, {3}}}, .kind = {TN__ARG_REAL, TN__ARG_MASK}, .args = &(tn_shape){.n = 1, .d = {4}},
     TN__FAILS(TN_ESHAPE, "masked_spread: a mask of shape [3] does not broadcast to [4]")},
    {.in = {{1, {5}}, {1, {1}}}, .kind = {TN__ARG_REAL, TN__ARG_MASK}, .args = &(tn_shape){.n = 2, .d = {0, 4}},
     TN__FAILS(TN_ESHAPE, "masked_spread: the mask is true at 0 places, but x is [5]")},
};
/* clang-format on */

const tn_op tn__op_masked_spread = {TN__ROOM("masked_spread", TN_AS_IS),
                                    .inputs = 2,
                                    .args_size = sizeof(tn_shape),
                                    .saves = TN_SAVE_IN(1),
                                    .infer = masked_spread_infer,
                                    .forward = masked_spread_forward,
                                    .backward_ops = masked_spread_backward_ops};
TN__SAMPLES(masked_spread, samples);
