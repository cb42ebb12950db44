/* clone — a contiguous copy; contiguous: a copy only if x is not contiguous
 *
 *   gx = gy */
#include "autograd/rooms/room.h"

static void clone_forward(tn_ctx *c) { tn__copy(c->out[0], c->in[0]); }
static void clone_backward_ops(tn_back *b) { b->gx[0] = b->gy[0]; }

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}}},       {.in = {{3, {2, 1, 4}}}},
    {.in = {{4, {2, 3, 2, 2}}}}, {.in = {{0, {0}}}},
    {.in = {{2, {0, 4}}}},       {.in = {{2, {3, 4}}}, .kind = {TN__ARG_INT}, .low = {-9}, .high = {9}},
};

#define ROOM(title)                                                                            \
    TN__ROOM(title, TN_AS_IS), .inputs = 1, .infer = tn__infer_same, .forward = clone_forward, \
                               .backward_ops = clone_backward_ops
const tn_op tn__op_clone = {ROOM("clone")};
TN__SAMPLES(clone, samples);
const tn_op tn__op_contiguous = {ROOM("contiguous")};
TN__SAMPLES(contiguous, samples);

tn_tensor *tn_clone(tn_tensor *x) { return tn_apply(&tn__op_clone, x); }
tn_tensor *tn_contiguous(tn_tensor *x)
{
    if (x && !tn__self.error && tn__layout_contiguous(&x->l)) return x;
    return tn_apply(&tn__op_contiguous, x);
}
