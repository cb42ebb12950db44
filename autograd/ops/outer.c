/* outer — y_ij = a_i · b_j of two vectors, computed as a column times a row */
#include "autograd/rooms/room.h"

static bool outer_infer(tn_ctx *c)
{
    const tn_tensor *a = c->in[0], *b = c->in[1];
    char             as[300], bs[300];
    if (a->l.shape.n != 1 || b->l.shape.n != 1)
        return tn_infer_fail(c, TN_ESHAPE, "takes two 1-d tensors, got %s and %s", tn__describe(a, as, sizeof as),
                             tn__describe(b, bs, sizeof bs));
    c->result[0] = (tn_result){tn__promote(a, b), TN_SHAPE(a->l.shape.d[0], b->l.shape.d[0])};
    return true;
}
static void outer_compose(tn_ctx *c) { c->out[0] = tn_mul(tn_unsqueeze(c->in[0], 1), c->in[1]); }

static const tn__sample samples[] = {
    {.in = {{1, {3}}, {1, {4}}}},
    {.in = {{1, {1}}, {1, {5}}}},
    {.in = {{1, {5}}, {1, {1}}}},
    {.in = {{1, {0}}, {1, {3}}}},
    {.in = {{1, {2}}, {1, {2}}}, .low = {-30, 1e-3}, .high = {30, 1e-2}},
    {.in = {{2, {3, 1}}, {1, {4}}}, TN__FAILS(TN_ESHAPE, "outer: takes two 1-d tensors, got [3, 1] and [4]")},
    {.in = {{1, {3}}, {0, {0}}}, TN__FAILS(TN_ESHAPE, "outer: takes two 1-d tensors, got [3] and []")},
};

const tn_op tn__op_outer = {TN__ROOM("outer", TN_AS_IS), .inputs = 2, .infer = outer_infer, .compose = outer_compose};
TN__SAMPLES(outer, samples);

tn_tensor *tn_outer(tn_tensor *a, tn_tensor *b) { return tn_apply(&tn__op_outer, a, b); }
