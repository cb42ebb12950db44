/* take_along — gather with x and index broadcast to each other in the other dims; made of expand and gather */
#include "autograd/rooms/room.h"

typedef struct {
    int dim;
} args_t;

/* The shapes of x and index after broadcasting all dims but one. */
static bool shapes(const char *op, tn_shape x, tn_shape i, int dim, tn_shape *xs, tn_shape *is)
{
    tn_shape a = x, b = i, to;
    char     tx[192], ti[192];
    if (x.n != i.n)
        return tn_raise_false(TN_ESHAPE, "%s: x %s and the index %s must have as many dims", op,
                              tn_shape_text(x, tx, sizeof tx), tn_shape_text(i, ti, sizeof ti));
    if (x.n) a.d[dim] = b.d[dim] = 1;
    if (!tn__broadcast(op, a, b, &to)) return false;
    *xs = *is = to;
    if (x.n) xs->d[dim] = x.d[dim], is->d[dim] = i.d[dim];
    return true;
}

static bool take_along_infer(tn_ctx *c)
{
    tn_shape xs, is;
    int      dim = TN_ARG(c, dim);
    if (!tn__wrap_dim("take_along", &dim, c->in[0]->l.shape.n) || !tn__need_index(c, 1)) return false;
    if (!shapes("take_along", c->in[0]->l.shape, c->in[1]->l.shape, dim, &xs, &is)) return false;
    return tn__index_check("take_along", "index", c->in[1], xs.n ? xs.d[dim] : 1);
}
static void take_along_compose(tn_ctx *c)
{
    tn_shape xs, is;
    int      dim = TN_ARG(c, dim);
    tn__wrap_dim("take_along", &dim, c->in[0]->l.shape.n);
    if (shapes("take_along", c->in[0]->l.shape, c->in[1]->l.shape, dim, &xs, &is))
        c->out[0] = tn_gather(tn_expand(c->in[0], xs), dim, tn_expand(c->in[1], is));
}

/* clang-format off */
#define INDEX {TN__ARG_REAL, TN__ARG_INDEX}
static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}, {2, {1, 5}}}, .kind = INDEX, .high = {2, 4}, .low = {-2}, .args = &(args_t){1}},
    {.in = {{3, {2, 1, 4}}, {3, {2, 3, 2}}}, .kind = INDEX, .high = {2, 4}, .low = {-2}, .args = &(args_t){-1}},
    {.in = {{2, {3, 4}}, {2, {2, 4}}}, .kind = INDEX, .high = {2, 3}, .low = {-2}, .args = &(args_t){0}},
    {.in = {{0, {0}}, {0, {0}}}, .kind = INDEX, .high = {2, 1}, .low = {-2}, .args = &(args_t){0}},
    {.in = {{2, {3, 4}}, {2, {3, 0}}}, .kind = INDEX, .high = {2, 4}, .low = {-2}, .args = &(args_t){1}},
    {.in = {{2, {3, 4}}, {1, {4}}}, .kind = INDEX, .args = &(args_t){1},
     TN__FAILS(TN_ESHAPE, "take_along: x [3, 4] and the index [4] must have as many dims")},
    {.in = {{2, {3, 4}}, {2, {2, 4}}}, .kind = INDEX, .args = &(args_t){1}, TN__FAILS(TN_ESHAPE,
     "take_along: shapes [3, 1] and [2, 1] do not broadcast: dim -2 is 3 in one and 2 in the other")},
    {.in = {{1, {4}}, {1, {2}}}, .kind = INDEX, .low = {0, 4}, .high = {0, 5}, .args = &(args_t){0},
     TN__FAILS(TN_EINDEX, "take_along: index 4 at [0] is outside 0 … 3")},
};
/* clang-format on */

const tn_op tn__op_take_along = {TN__ROOM("take_along", TN_AS_IS), .inputs = 2, .args_size = sizeof(args_t),
                                 .infer = take_along_infer, .compose = take_along_compose};
TN__SAMPLES(take_along, samples);

tn_tensor *tn_take_along(tn_tensor *x, tn_tensor *index, int dim)
{
    return tn_apply_args(&tn__op_take_along, &(args_t){dim}, x, index);
}
