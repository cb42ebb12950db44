/* embedding_q8 — y[i] = weight[index[i]], the rows of a table in 8 bits or f16 (tn_q8_pack, tn_f16_pack), in the dtype
 * that the table was packed from. tn_embedding calls it for such a weight. No gradient. */
#include "autograd/rooms/q8.h"

static bool embedding_q8_infer(tn_ctx *c)
{
    const tn_shape i = c->in[1]->l.shape;
    tn__q8         w;
    if (!tn__need_q8(c, 0, &w) || !tn__need_index(c, 1)) return false;
    if (i.n + 1 > TN_MAX_DIMS)
        return tn_infer_fail(c, TN_ESHAPE, "an index of %d dims leaves no dim for the width", i.n);
    c->result[0] = (tn_result){w.dtype, i};
    c->result[0].shape.d[c->result[0].shape.n++] = w.in;
    return tn__index_check("embedding_q8", "index", c->in[1], w.out);
}
static void embedding_q8_forward(tn_ctx *c)
{
    tn__q8 w;
    if (tn__q8_of(c->in[0], &w)) tn__q8_rows(&w, c->in[1], c->out[0]);
}

static const tn__sample samples[] = {
    {.in = {{2, {4, 32}}, {1, {3}}},
     .kind = {TN__ARG_REAL, TN__ARG_INDEX},
     TN__FAILS(TN_EDTYPE,
               "embedding_q8: weight is f32 [4, 32], but must be stored in 8 bits or f16; pack it with tn_q8_pack or "
               "tn_f16_pack")},
};

const tn_op tn__op_embedding_q8 = {TN__ROOM("embedding_q8", TN_AS_IS), .inputs = 2, .infer = embedding_q8_infer,
                                   .forward = embedding_q8_forward};
TN__SAMPLES(embedding_q8, samples);

tn_tensor *tn__embedding_q8(tn_tensor *weight, tn_tensor *index)
{
    return tn_apply(&tn__op_embedding_q8, weight, index);
}
