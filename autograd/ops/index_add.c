/* index_add — y = x with the slices of src added at a 1-d index along one dim, in the order of the index
 *
 *   gx = gy        gsrc = the slices of gy at the index (index_select) */
#include "autograd/rooms/room.h"

typedef struct {
    int dim;
} args_t;

static bool index_add_infer(tn_ctx *c)
{
    const tn_tensor *x = c->in[0], *index = c->in[1], *src = c->in[2];
    int              dim = TN_ARG(c, dim);
    char             a[192], b[192];
    if (!tn__wrap_dim("index_add", &dim, x->l.shape.n) || !tn__need_index(c, 1)) return false;
    if (index->l.shape.n > 1)
        return tn_infer_fail(c, TN_ESHAPE, "the index must be 1-d, got %s; for several dims see tn_scatter_add",
                             tn_shape_text(index->l.shape, a, sizeof a));
    tn_shape want = x->l.shape;
    if (want.n) want.d[dim] = tn_shape_numel(index->l.shape);
    if (!tn_shape_equal(src->l.shape, want))
        return tn_infer_fail(c, TN_ESHAPE, "src is %s, but for this x and index it must be %s",
                             tn_shape_text(src->l.shape, a, sizeof a), tn_shape_text(want, b, sizeof b));
    if (src->dtype != x->dtype)
        return tn_infer_fail(c, TN_EDTYPE, "x is %s and src %s; convert one with tn_to", tn_dtype_name(x->dtype),
                             tn_dtype_name(src->dtype));
    return tn_infer_like(c, 0, 0) && tn__index_check("index_add", "index", index, x->l.shape.n ? x->l.shape.d[dim] : 1);
}
static void index_add_forward(tn_ctx *c)
{
    int dim = TN_ARG(c, dim);
    tn__wrap_dim("index_add", &dim, c->in[0]->l.shape.n);
    tn__copy(c->out[0], c->in[0]);
    tn__add_rows(c->out[0], dim, c->in[1], c->in[2], -1);
}
static void index_add_backward_ops(tn_back *b)
{
    if (b->need[0]) b->gx[0] = b->gy[0];
    if (b->need[2]) b->gx[2] = tn_reshape(tn_index_select(b->gy[0], TN_ARG(b, dim), b->in[1]), b->in_shape[2]);
}

/* clang-format off */
#define INDEX {TN__ARG_REAL, TN__ARG_INDEX, TN__ARG_REAL}
static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}, {1, {5}}, {2, {5, 4}}}, .kind = INDEX, .high = {2, 3, 2}, .low = {-2, 0, -2},
     .args = &(args_t){0}},
    {.in = {{3, {2, 3, 4}}, {1, {2}}, {3, {2, 2, 4}}}, .kind = INDEX, .high = {2, 3, 2}, .low = {-2, 0, -2},
     .args = &(args_t){1}},
    {.in = {{2, {3, 4}}, {1, {6}}, {2, {3, 6}}}, .kind = INDEX, .high = {2, 4, 2}, .low = {-2, 0, -2},
     .args = &(args_t){-1}},
    {.in = {{2, {3, 4}}, {1, {0}}, {2, {0, 4}}}, .kind = INDEX, .high = {2, 3, 2}, .low = {-2, 0, -2},
     .args = &(args_t){0}},
    {.in = {{0, {0}}, {1, {1}}, {0, {0}}}, .kind = INDEX, .high = {2, 1, 2}, .low = {-2, 0, -2}, .args = &(args_t){0}},
    {.in = {{2, {3, 4}}, {1, {2}}, {2, {2, 3}}}, .kind = INDEX, .args = &(args_t){0},
     TN__FAILS(TN_ESHAPE, "index_add: src is [2, 3], but for this x and index it must be [2, 4]")},
    {.in = {{2, {3, 4}}, {2, {2, 1}}, {2, {2, 4}}}, .kind = INDEX, .args = &(args_t){0},
     TN__FAILS(TN_ESHAPE, "index_add: the index must be 1-d, got [2, 1]; for several dims see tn_scatter_add")},
    {.in = {{1, {3}}, {1, {2}}, {1, {2}}}, .kind = INDEX, .low = {0, 3}, .high = {0, 4}, .args = &(args_t){0},
     TN__FAILS(TN_EINDEX, "index_add: index 3 at [0] is outside 0 … 2")},
};
/* clang-format on */

const tn_op tn__op_index_add = {TN__ROOM("index_add", TN_JOIN),
                                .inputs = 3,
                                .args_size = sizeof(args_t),
                                .saves = TN_SAVE_IN(1),
                                .infer = index_add_infer,
                                .forward = index_add_forward,
                                .backward_ops = index_add_backward_ops};
TN__SAMPLES(index_add, samples);

tn_tensor *tn_index_add(tn_tensor *x, int dim, tn_tensor *index, tn_tensor *src)
{
    return tn_apply_args(&tn__op_index_add, &(args_t){dim}, x, index, src);
}
