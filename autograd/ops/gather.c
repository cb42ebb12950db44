/* gather — y[.., i, ..] = x[.., index[.., i, ..], ..] along one dim
 *
 *   gx = zeros, with gy added where it came from (scatter_add) */
#include "autograd/rooms/room.h"

typedef struct {
    int dim;
} args_t;

/* index must have as many dims as x, and must not be larger, except along dim */
bool tn__infer_along(tn_ctx *c, int dim, const tn_tensor *small, const tn_tensor *large)
{
    char a[192], b[192];
    if (!tn__need_index(c, 1)) return false;
    bool fits = small->l.shape.n == large->l.shape.n;
    for (int i = 0; fits && i < small->l.shape.n; i++) fits = i == dim || small->l.shape.d[i] <= large->l.shape.d[i];
    if (fits) return true;
    return tn_infer_fail(
        c, TN_ESHAPE,
        "an index of shape %s does not fit %s: it must have as many dims, and must not be larger except in dim %d",
        tn_shape_text(small->l.shape, a, sizeof a), tn_shape_text(large->l.shape, b, sizeof b), dim);
}

static bool gather_infer(tn_ctx *c)
{
    const tn_tensor *x = c->in[0], *index = c->in[1];
    int              dim = TN_ARG(c, dim);
    if (!tn__wrap_dim("gather", &dim, x->l.shape.n) || !tn__infer_along(c, dim, index, x)) return false;
    c->result[0] = (tn_result){x->dtype, index->l.shape};
    return tn__index_check("gather", "index", index, x->l.shape.n ? x->l.shape.d[dim] : 1);
}
static void gather_forward(tn_ctx *c)
{
    int dim = TN_ARG(c, dim);
    tn__wrap_dim("gather", &dim, c->in[0]->l.shape.n);
    tn__gather(c->out[0], c->in[0], dim, c->in[1]);
}
static void gather_backward(tn_back *b)
{
    tn_tensor *buffer = tn__grad_buffer(b, 0);
    int        dim = TN_ARG(b, dim);
    tn__wrap_dim("gather", &dim, b->in_shape[0].n);
    if (buffer) tn__scatter(buffer, dim, b->in[1], b->gy[0], TN__ADD);
}
static void gather_backward_ops(tn_back *b)
{
    b->gx[0] = tn_scatter_add(tn_zeros_of(b->in_dtype[0], b->in_shape[0]), TN_ARG(b, dim), b->in[1], b->gy[0]);
}

/* clang-format off */
#define INDEX {TN__ARG_REAL, TN__ARG_INDEX}
static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}, {2, {3, 5}}}, .kind = INDEX, .high = {2, 4}, .low = {-2}, .args = &(args_t){1}},
    {.in = {{2, {3, 4}}, {2, {2, 4}}}, .kind = INDEX, .high = {2, 3}, .low = {-2}, .args = &(args_t){0}},
    {.in = {{3, {2, 3, 4}}, {3, {2, 2, 3}}}, .kind = INDEX, .high = {2, 4}, .low = {-2}, .args = &(args_t){-1}},
    {.in = {{0, {0}}, {0, {0}}}, .kind = INDEX, .high = {2, 1}, .low = {-2}, .args = &(args_t){0}},
    {.in = {{2, {3, 4}}, {2, {3, 0}}}, .kind = INDEX, .high = {2, 4}, .low = {-2}, .args = &(args_t){1}},
    {.in = {{2, {3, 4}}, {2, {3, 2}}}, .kind = INDEX, .low = {0, 4}, .high = {0, 5}, .args = &(args_t){1},
     TN__FAILS(TN_EINDEX, "gather: index 4 at [0, 0] is outside 0 … 3")},
    {.in = {{2, {3, 4}}, {2, {3, 2}}}, .kind = INDEX, .low = {0, -1}, .high = {0, 0}, .args = &(args_t){1},
     TN__FAILS(TN_EINDEX, "gather: index -1 at [0, 0] is outside 0 … 3")},
    {.in = {{2, {3, 4}}, {2, {4, 2}}}, .kind = INDEX, .high = {2, 3}, .args = &(args_t){1}, TN__FAILS( TN_ESHAPE,
     "gather: an index of shape [4, 2] does not fit [3, 4]: it must have as many dims, and must not be larger "
     "except in dim 1")},
    {.in = {{2, {3, 4}}, {1, {4}}}, .kind = INDEX, .high = {2, 3}, .args = &(args_t){0}, TN__FAILS( TN_ESHAPE,
     "gather: an index of shape [4] does not fit [3, 4]: it must have as many dims, and must not be larger except "
     "in dim 0")},
    {.in = {{2, {3, 4}}, {2, {3, 4}}}, .args = &(args_t){0},
     TN__FAILS(TN_EDTYPE, "gather: indices must be i64 or i32, got f32")},
    {.in = {{2, {3, 4}}, {2, {3, 4}}}, .kind = INDEX, .args = &(args_t){2},
     TN__FAILS(TN_EINDEX, "gather: dim 2 is out of range for a 2-d tensor")},
};
/* clang-format on */

const tn_op tn__op_gather = {TN__ROOM("gather", TN_AS_IS), .inputs = 2,
                             .args_size = sizeof(args_t),  .saves = TN_SAVE_IN(1),
                             .infer = gather_infer,        .forward = gather_forward,
                             .backward = gather_backward,  .backward_ops = gather_backward_ops};
TN__SAMPLES(gather, samples);

tn_tensor *tn_gather(tn_tensor *x, int dim, tn_tensor *index)
{
    return tn_apply_args(&tn__op_gather, &(args_t){dim}, x, index);
}
