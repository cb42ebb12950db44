/* embedding — y[i] = weight[index[i]], the rows of a table
 *
 *   gweight = zeros, with the rows of gy added at the index, except the padding row; if sparse and weight is a leaf,
 *   only the rows that are in the index (sparse_grad.c) */
#include "autograd/rooms/q8.h"

typedef struct {
    int64_t padding; /* -1: none */
    bool    sparse;
} args_t;

static bool embedding_infer(tn_ctx *c)
{
    const tn_shape w = c->in[0]->l.shape, i = c->in[1]->l.shape;
    const int64_t  padding = TN_ARG(c, padding);
    char           a[192];
    if (!tn__need_index(c, 1)) return false;
    if (w.n != 2)
        return tn_infer_fail(c, TN_ESHAPE, "weight must be [entries, width], got %s", tn_shape_text(w, a, sizeof a));
    if (i.n + 1 > TN_MAX_DIMS)
        return tn_infer_fail(c, TN_ESHAPE, "an index of %d dims leaves no dim for the width", i.n);
    if (padding < -1 || padding >= w.d[0])
        return tn_infer_fail(c, TN_EINDEX, "padding %lld is not one of the %lld entries; -1: no padding",
                             (long long)padding, (long long)w.d[0]);
    c->result[0] = (tn_result){c->in[0]->dtype, i};
    c->result[0].shape.d[c->result[0].shape.n++] = w.d[1];
    return tn__index_check("embedding", "index", c->in[1], w.d[0]);
}
static void embedding_forward(tn_ctx *c) { tn__take_rows(c->out[0], c->in[0], 0, c->in[1]); }
static void embedding_backward(tn_back *b)
{
    if (TN_ARG(b, sparse) && tn__grad_rows(b, 0, b->in[1], b->gy[0], TN_ARG(b, padding))) return;
    tn_tensor *buffer = tn__grad_buffer(b, 0);
    if (buffer) tn__add_rows(buffer, 0, b->in[1], b->gy[0], TN_ARG(b, padding));
}
static void embedding_backward_ops(tn_back *b)
{
    const int64_t padding = TN_ARG(b, padding), n = tn_numel(b->in[1]), width = b->in_shape[0].d[1];
    tn_shape      flat = {.n = 2, .d = {n, width}}, list = {.n = 1, .d = {n}}, one = {.n = 2, .d = {n, 1}};
    tn_tensor    *index = tn_reshape(b->in[1], list), *g = tn_reshape(b->gy[0], flat);
    if (padding >= 0) g = tn_masked_fill(g, tn_reshape(tn_eq(index, tn_scalar_of(TN_I64, (double)padding)), one), 0);
    b->gx[0] = tn_index_add(tn_zeros_of(b->in_dtype[0], b->in_shape[0]), 0, index, g);
}

/* clang-format off */
#define INDEX {TN__ARG_REAL, TN__ARG_INDEX}
static const tn__sample samples[] = {
    {.in = {{2, {5, 3}}, {2, {2, 4}}}, .kind = INDEX, .high = {2, 5}, .low = {-2}, .args = &(args_t){-1, false}},
    /* indices from 1 on: row 0 is padding, whose gradient is 0 although its differences are not */
    {.in = {{2, {5, 3}}, {2, {2, 4}}}, .kind = INDEX, .high = {2, 5}, .low = {-2, 1}, .args = &(args_t){0, false}},
    {.in = {{2, {5, 1}}, {1, {7}}}, .kind = INDEX, .high = {2, 4}, .low = {-2}, .args = &(args_t){4, false}},
    {.in = {{2, {5, 3}}, {0, {0}}}, .kind = INDEX, .high = {2, 5}, .low = {-2}, .args = &(args_t){-1, false}},
    {.in = {{2, {5, 3}}, {2, {0, 4}}}, .kind = INDEX, .high = {2, 5}, .low = {-2}, .args = &(args_t){-1, false}},
    {.in = {{2, {5, 3}}, {2, {2, 4}}}, .kind = INDEX, .low = {0, 5}, .high = {0, 6}, .args = &(args_t){-1, false},
     TN__FAILS(TN_EINDEX, "embedding: index 5 at [0, 0] is outside 0 … 4")},
    {.in = {{2, {5, 3}}, {1, {2}}}, .kind = INDEX, .args = &(args_t){5, false},
     TN__FAILS(TN_EINDEX, "embedding: padding 5 is not one of the 5 entries; -1: no padding")},
    {.in = {{1, {5}}, {1, {2}}}, .kind = INDEX, .args = &(args_t){-1, false},
     TN__FAILS(TN_ESHAPE, "embedding: weight must be [entries, width], got [5]")},
    {.in = {{2, {5, 3}}, {1, {2}}}, .args = &(args_t){-1, false},
     TN__FAILS(TN_EDTYPE, "embedding: indices must be i64 or i32, got f32")},
    {.in = {{2, {9, 3}}, {2, {2, 4}}}, .kind = INDEX, .high = {2, 9}, .low = {-2}, .args = &(args_t){-1, true}},
    {.in = {{2, {9, 3}}, {1, {0}}}, .kind = INDEX, .high = {2, 9}, .low = {-2}, .args = &(args_t){-1, true}},
    {.in = {{2, {9, 3}}, {1, {7}}}, .kind = INDEX, .high = {2, 9}, .low = {-2, 1}, .args = &(args_t){0, true}},
};
/* clang-format on */

const tn_op tn__op_embedding = {TN__ROOM("embedding", TN_AS_IS), .inputs = 2,
                                .args_size = sizeof(args_t),     .saves = TN_SAVE_IN(1) | TN__FEW_ROWS,
                                .infer = embedding_infer,        .forward = embedding_forward,
                                .backward = embedding_backward,  .backward_ops = embedding_backward_ops};
TN__SAMPLES(embedding, samples);

tn_tensor *tn_embedding_run(tn_tensor *weight, tn_tensor *index, int64_t padding, bool sparse)
{
    if (tn_is_packed(weight)) return tn__embedding_q8(weight, index);
    const args_t args = {padding, sparse};
    return tn_apply_args(&tn__op_embedding, &args, weight, index);
}
