/* index_select — the slices of x at a 1-d index along one dim
 *
 *   gx = zeros, with the slices of gy added at the index (index_add) */
#include "autograd/rooms/room.h"

typedef struct {
    int dim;
} args_t;

static bool index_select_infer(tn_ctx *c)
{
    const tn_tensor *x = c->in[0], *index = c->in[1];
    int              dim = TN_ARG(c, dim);
    char             a[192];
    if (!tn__wrap_dim("index_select", &dim, x->l.shape.n) || !tn__need_index(c, 1)) return false;
    if (index->l.shape.n > 1)
        return tn_infer_fail(
            c, TN_ESHAPE,
            "the index must be 1-d, got %s; for rows of a table see tn_embedding, for elements tn_take_along",
            tn_shape_text(index->l.shape, a, sizeof a));
    tn_infer_like(c, 0, 0);
    if (x->l.shape.n) c->result[0].shape.d[dim] = tn_shape_numel(index->l.shape);
    else if (tn_shape_numel(index->l.shape) != 1)
        return tn_infer_fail(c, TN_ESHAPE, "a 0-d tensor has one element to select, the index has %lld",
                             (long long)tn_shape_numel(index->l.shape));
    return tn__index_check("index_select", "index", index, x->l.shape.n ? x->l.shape.d[dim] : 1);
}
static int dim_of(const args_t *a, int ndim)
{
    int dim = a->dim;
    tn__wrap_dim("index_select", &dim, ndim);
    return dim;
}
static void index_select_forward(tn_ctx *c)
{
    tn__take_rows(c->out[0], c->in[0], dim_of(c->args, c->in[0]->l.shape.n), c->in[1]);
}
static void index_select_backward(tn_back *b)
{
    tn_tensor *buffer = tn__grad_buffer(b, 0);
    if (buffer) tn__add_rows(buffer, dim_of(b->args, b->in_shape[0].n), b->in[1], b->gy[0], -1);
}
static void index_select_backward_ops(tn_back *b)
{
    b->gx[0] = tn_index_add(tn_zeros_of(b->in_dtype[0], b->in_shape[0]), TN_ARG(b, dim), b->in[1], b->gy[0]);
}

/* clang-format off */
#define INDEX {TN__ARG_REAL, TN__ARG_INDEX}
static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}, {1, {5}}}, .kind = INDEX, .high = {2, 3}, .low = {-2}, .args = &(args_t){0}},
    {.in = {{3, {2, 3, 4}}, {1, {4}}}, .kind = INDEX, .high = {2, 3}, .low = {-2}, .args = &(args_t){1}},
    {.in = {{2, {3, 4}}, {1, {2}}}, .kind = INDEX, .high = {2, 4}, .low = {-2}, .args = &(args_t){-1}},
    {.in = {{2, {3, 4}}, {0, {0}}}, .kind = INDEX, .high = {2, 3}, .low = {-2}, .args = &(args_t){0}},
    {.in = {{2, {3, 4}}, {1, {0}}}, .kind = INDEX, .high = {2, 3}, .low = {-2}, .args = &(args_t){0}},
    {.in = {{0, {0}}, {1, {1}}}, .kind = INDEX, .high = {2, 1}, .low = {-2}, .args = &(args_t){0}},
    {.in = {{2, {3, 4}}, {1, {2}}}, .kind = INDEX, .low = {0, 3}, .high = {0, 4}, .args = &(args_t){0},
     TN__FAILS(TN_EINDEX, "index_select: index 3 at [0] is outside 0 … 2")},
    {.in = {{2, {3, 4}}, {2, {2, 2}}}, .kind = INDEX, .args = &(args_t){0}, TN__FAILS(TN_ESHAPE,
     "index_select: the index must be 1-d, got [2, 2]; for rows of a table see tn_embedding, for elements "
     "tn_take_along")},
    {.in = {{0, {0}}, {1, {2}}}, .kind = INDEX, .high = {0, 1}, .args = &(args_t){0},
     TN__FAILS(TN_ESHAPE, "index_select: a 0-d tensor has one element to select, the index has 2")},
};
/* clang-format on */

const tn_op tn__op_index_select = {TN__ROOM("index_select", TN_AS_IS), .inputs = 2,
                                   .args_size = sizeof(args_t),        .saves = TN_SAVE_IN(1),
                                   .infer = index_select_infer,        .forward = index_select_forward,
                                   .backward = index_select_backward,  .backward_ops = index_select_backward_ops};
TN__SAMPLES(index_select, samples);

tn_tensor *tn_index_select(tn_tensor *x, int dim, tn_tensor *index)
{
    return tn_apply_args(&tn__op_index_select, &(args_t){dim}, x, index);
}
