/* copy — writes src over x, broadcast and converted; the old values of x have no influence
 *
 *   gsrc = gy,  gx = 0 */
#include "autograd/rooms/room.h"

static bool copy_infer(tn_ctx *c)
{
    char a[192], b[192];
    if (!tn__broadcastable(c->in[1]->l.shape, c->in[0]->l.shape))
        return tn_infer_fail(c, TN_ESHAPE, "%s does not broadcast to %s", tn_shape_text(c->in[1]->l.shape, a, sizeof a),
                             tn_shape_text(c->in[0]->l.shape, b, sizeof b));
    return tn_infer_like(c, 0, 0);
}
static void copy_forward(tn_ctx *c) { tn__copy(c->out[0], c->in[1]); }
static void copy_backward_ops(tn_back *b)
{
    if (b->need[1]) b->gx[1] = b->gy[0];
}

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}, {2, {3, 4}}}},
    {.in = {{3, {2, 3, 4}}, {2, {3, 1}}}},
    {.in = {{2, {3, 4}}, {0, {0}}}},
    {.in = {{0, {0}}, {0, {0}}}},
    {.in = {{2, {0, 4}}, {1, {4}}}},
    {.in = {{2, {3, 4}}, {2, {3, 4}}}, .kind = {TN__ARG_REAL, TN__ARG_INT}, .low = {0, -9}, .high = {0, 9}},
    {.in = {{1, {4}}, {2, {3, 4}}}, TN__FAILS(TN_ESHAPE, "copy: [3, 4] does not broadcast to [4]")},
    {.in = {{2, {3, 4}}, {1, {3}}}, TN__FAILS(TN_ESHAPE, "copy: [3] does not broadcast to [3, 4]")},
};

const tn_op tn__op_copy = {
    TN__ROOM("copy", TN_AS_IS),        .inputs = 2,    .infer = copy_infer, .forward = copy_forward,
    .backward_ops = copy_backward_ops, .inplace = true};
TN__SAMPLES(copy, samples);

tn_tensor *tn_copy_(tn_tensor *x, tn_tensor *src) { return tn_apply_args_(&tn__op_copy, NULL, x, src); }
