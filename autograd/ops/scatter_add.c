/* scatter_add — y = x, then y[.., index[.., i, ..], ..] += src[.., i, ..] along one dim, in the order of i
 *
 *   gx = gy        gsrc = gy at the index (gather) */
#include "autograd/rooms/room.h"

typedef struct {
    int dim;
} args_t;

static bool scatter_add_infer(tn_ctx *c)
{
    const tn_tensor *x = c->in[0], *index = c->in[1], *src = c->in[2];
    int              dim = TN_ARG(c, dim);
    char             a[192], b[192];
    if (!tn__wrap_dim("scatter_add", &dim, x->l.shape.n) || !tn__infer_along(c, dim, index, x)) return false;
    bool fits = src->l.shape.n == index->l.shape.n;
    for (int i = 0; fits && i < index->l.shape.n; i++) fits = index->l.shape.d[i] <= src->l.shape.d[i];
    if (!fits)
        return tn_infer_fail(c, TN_ESHAPE, "an index of shape %s reaches beyond src %s",
                             tn_shape_text(index->l.shape, a, sizeof a), tn_shape_text(src->l.shape, b, sizeof b));
    if (src->dtype != x->dtype)
        return tn_infer_fail(c, TN_EDTYPE, "x is %s and src %s; convert one with tn_to", tn_dtype_name(x->dtype),
                             tn_dtype_name(src->dtype));
    return tn_infer_like(c, 0, 0) &&
           tn__index_check("scatter_add", "index", index, x->l.shape.n ? x->l.shape.d[dim] : 1);
}
static void scatter_add_forward(tn_ctx *c)
{
    int dim = TN_ARG(c, dim);
    tn__wrap_dim("scatter_add", &dim, c->in[0]->l.shape.n);
    tn__copy(c->out[0], c->in[0]);
    tn__scatter_add(c->out[0], dim, c->in[1], c->in[2]);
}
static void scatter_add_backward_ops(tn_back *b)
{
    if (b->need[0]) b->gx[0] = b->gy[0];
    if (!b->need[2]) return;
    tn_tensor *g = tn_gather(b->gy[0], TN_ARG(b, dim), b->in[1]);
    if (!g || tn_shape_equal(tn_shape_of(g), b->in_shape[2])) {
        b->gx[2] = g;
        return;
    }
    /* elements of src beyond the index's size are not used and get no gradient */
    tn_shape before = {.n = b->in_shape[2].n}, after = before;
    for (int i = 0; i < before.n; i++) after.d[i] = b->in_shape[2].d[i] - tn_shape_of(g).d[i];
    b->gx[2] = tn_pad(g, before, after, 0);
}

#define INDEX                                     \
    {                                             \
        TN__ARG_REAL, TN__ARG_INDEX, TN__ARG_REAL \
    }
static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}, {2, {3, 5}}, {2, {3, 5}}},
     .kind = INDEX,
     .high = {2, 4, 2},
     .low = {-2, 0, -2},
     .args = &(args_t){1}},
    {.in = {{2, {3, 4}}, {2, {5, 2}}, {2, {6, 3}}},
     .kind = INDEX,
     .high = {2, 3, 2},
     .low = {-2, 0, -2},
     .args = &(args_t){0}},
    {.in = {{3, {2, 3, 4}}, {3, {1, 3, 2}}, {3, {1, 3, 2}}},
     .kind = INDEX,
     .high = {2, 4, 2},
     .low = {-2, 0, -2},
     .args = &(args_t){-1}},
    {.in = {{0, {0}}, {0, {0}}, {0, {0}}}, .kind = INDEX, .high = {2, 1, 2}, .low = {-2, 0, -2}, .args = &(args_t){0}},
    {.in = {{2, {3, 4}}, {2, {0, 4}}, {2, {2, 4}}},
     .kind = INDEX,
     .high = {2, 3, 2},
     .low = {-2, 0, -2},
     .args = &(args_t){0}},
    {.in = {{1, {3}}, {1, {2}}, {1, {2}}},
     .kind = INDEX,
     .low = {0, 3},
     .high = {0, 4},
     .args = &(args_t){0},
     TN__FAILS(TN_EINDEX, "scatter_add: index 3 at [0] is outside 0 … 2")},
    {.in = {{1, {3}}, {1, {2}}, {1, {1}}},
     .kind = INDEX,
     .high = {0, 3},
     .args = &(args_t){0},
     TN__FAILS(TN_ESHAPE, "scatter_add: an index of shape [2] reaches beyond src [1]")},
    {.in = {{1, {3}}, {1, {2}}, {1, {2}}},
     .kind = {TN__ARG_REAL, TN__ARG_INDEX, TN__ARG_INT},
     .high = {0, 3},
     .args = &(args_t){0},
     TN__FAILS(TN_EDTYPE, "scatter_add: x is f32 and src i64; convert one with tn_to")},
};

const tn_op tn__op_scatter_add = {TN__ROOM("scatter_add", TN_JOIN),
                                  .inputs = 3,
                                  .args_size = sizeof(args_t),
                                  .saves = TN_SAVE_IN(1),
                                  .infer = scatter_add_infer,
                                  .forward = scatter_add_forward,
                                  .backward_ops = scatter_add_backward_ops};
TN__SAMPLES(scatter_add, samples);

tn_tensor *tn_scatter_add(tn_tensor *x, int dim, tn_tensor *index, tn_tensor *src)
{
    return tn_apply_args(&tn__op_scatter_add, &(args_t){dim}, x, index, src);
}
