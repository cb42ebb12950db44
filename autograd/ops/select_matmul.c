/* select_matmul — y = a b as matmul, but terms with a zero of a are skipped: they are 0 even if b is NaN or infinite
 *
 *   ga = gy bᵀ,  gb = aᵀ gy, in which terms with a zero of a are also skipped
 *
 * Attention's sum over the values: a value of weight 0 may hold anything. (ga may then be NaN where a is 0; the
 * backward of attention_weights, which made the zeros, replaces it by 0.) */
#include "autograd/rooms/room.h"

static bool select_matmul_infer(tn_ctx *c)
{
    if (c->in[0]->l.shape.n < 2 || c->in[1]->l.shape.n < 2)
        return tn_infer_fail(c, TN_ESHAPE, "takes matrices, got %d-d by %d-d", c->in[0]->l.shape.n,
                             c->in[1]->l.shape.n);
    return tn__infer_matmul(c);
}
static void select_matmul_forward(tn_ctx *c) { tn__gemm_finite(c->in[0], c->in[1], c->out[0]); }

static void select_matmul_backward_ops(tn_back *b)
{
    tn_tensor *gy = b->gy[0];
    if (b->need[0]) b->gx[0] = tn_matmul(gy, tn_transpose(b->in[1], -1, -2));
    if (b->need[1]) b->gx[1] = tn_apply(&tn__op_select_matmul, tn_transpose(b->in[0], -1, -2), gy);
}

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}, {2, {4, 2}}}},
    {.in = {{3, {2, 3, 4}}, {3, {2, 4, 3}}}},
    {.in = {{4, {2, 1, 3, 2}}, {3, {3, 2, 2}}}},
    {.in = {{3, {2, 3, 4}}, {2, {4, 3}}}},
    {.in = {{2, {2, 0}}, {2, {0, 3}}}},
    {.in = {{3, {0, 2, 3}}, {2, {3, 2}}}},
    {.in = {{2, {2, 3}}, {2, {4, 5}}},
     TN__FAILS(TN_ESHAPE, "select_matmul: inner sizes differ: [2, 3] by [4, 5]: 3 and 4")},
    {.in = {{2, {2, 3}}, {1, {3}}}, TN__FAILS(TN_ESHAPE, "select_matmul: takes matrices, got 2-d by 1-d")},
};

const tn_op tn__op_select_matmul = {
    TN__ROOM("select_matmul", TN_NARROW(2)), .inputs = 2,
    .saves = TN_SAVE_IN(0) | TN_SAVE_IN(1),  .infer = select_matmul_infer,
    .forward = select_matmul_forward,        .backward_ops = select_matmul_backward_ops};
TN__SAMPLES(select_matmul, samples);
