/* weight_norm — v · g / ‖v‖, the norm over all dims but one: a weight as a direction v and a length g (Salimans and
 * Kingma, 2016); made of ops */
#include "autograd/rooms/room.h"

typedef struct {
    int dim;
} args_t;

static bool weight_norm_infer(tn_ctx *c)
{
    const tn_tensor *v = c->in[0], *g = c->in[1];
    char             a[192], b[192];
    int              dim = TN_ARG(c, dim);
    tn_shape         want = v->l.shape;
    if (!tn__need_real(c, 0) || !tn__need_real(c, 1) || !tn__wrap_dim("weight_norm", &dim, want.n)) return false;
    for (int i = 0; i < want.n; i++)
        if (i != dim) want.d[i] = 1;
    if (tn_shape_equal(g->l.shape, want)) return true;
    return tn_infer_fail(c, TN_ESHAPE, "g is %s, but for this v and dim it must be %s",
                         tn_shape_text(g->l.shape, a, sizeof a), tn_shape_text(want, b, sizeof b));
}
static void weight_norm_compose(tn_ctx *c)
{
    tn_tensor *v = c->in[0], *squares = tn_square(v);
    tn_dims    others = {.n = 0};
    int        dim = TN_ARG(c, dim);
    tn__wrap_dim("weight_norm", &dim, v->l.shape.n);
    for (int i = 0; i < v->l.shape.n; i++)
        if (i != dim) others.d[others.n++] = i;
    if (others.n) squares = tn_sum(squares, .dims = others, .keepdim = true); /* without dims: over all */
    c->out[0] = tn_mul(v, tn_div(c->in[1], tn_sqrt(squares)));
}

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}, {2, {3, 1}}}, .low = {0.5, -2}, .high = {2, 2}, .args = &(args_t){0}},
    {.in = {{3, {2, 3, 4}}, {3, {1, 1, 4}}}, .low = {-2, 0.5}, .high = {-0.5, 2}, .args = &(args_t){-1}},
    {.in = {{1, {5}}, {1, {5}}}, .kind = {TN__ARG_CONST}, .low = {0.5, -2}, .high = {2, 2}, .args = &(args_t){0}},
    {.in = {{2, {0, 3}}, {2, {0, 1}}}, .args = &(args_t){0}},
    {.in = {{2, {3, 4}}, {1, {3}}},
     .args = &(args_t){0},
     TN__FAILS(TN_ESHAPE, "weight_norm: g is [3], but for this v and dim it must be [3, 1]")},
    {.in = {{2, {3, 4}}, {1, {3}}},
     .args = &(args_t){2},
     TN__FAILS(TN_EINDEX, "weight_norm: dim 2 is out of range for a 2-d tensor")},
};

const tn_op tn__op_weight_norm = {TN__ROOM("weight_norm", TN_WIDE), .inputs = 2, .args_size = sizeof(args_t),
                                  .infer = weight_norm_infer, .compose = weight_norm_compose};
TN__SAMPLES(weight_norm, samples);

tn_tensor *tn_weight_norm(tn_tensor *v, tn_tensor *g, int dim)
{
    return tn_apply_args(&tn__op_weight_norm, &(args_t){dim}, v, g);
}
