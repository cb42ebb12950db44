/* permute — the dims in another order; transpose: exchanges two dims
 *
 *   gx = gy with the inverse order */
#include "autograd/rooms/room.h"

typedef struct {
    tn_dims order; /* transpose: the two dims */
} args_t;

static bool permute_geometry(const tn_ctx *c, tn__layout *y)
{
    const tn_dims     order = TN_ARG(c, order);
    const tn__layout *x = &c->in[0]->l;
    if (c->op == &tn__op_transpose) return tn__view_transpose(c->op->name, x, order.d[0], order.d[1], y);
    return tn__view_permute(c->op->name, x, order, y);
}
static bool permute_infer(tn_ctx *c)
{
    tn__layout y;
    return permute_geometry(c, &y) && tn__infer_view(c, &y);
}
static void permute_forward(tn_ctx *c)
{
    tn__layout y;
    if (permute_geometry(c, &y)) c->out[0] = tn__alias_owned(c->in[0], &y);
}

static void permute_backward_ops(tn_back *b)
{
    const tn_dims order = TN_ARG(b, order);
    tn_dims       back = {.n = order.n};
    for (int i = 0; i < order.n; i++) back.d[order.d[i] < 0 ? order.d[i] + order.n : order.d[i]] = i;
    b->gx[0] = tn_permute(b->gy[0], back);
}
static void transpose_backward_ops(tn_back *b)
{
    b->gx[0] = tn_transpose(b->gy[0], TN_ARG(b, order).d[0], TN_ARG(b, order).d[1]);
}

/* clang-format off */
static const tn__sample permute_samples[] = {
    {.in = {{3, {2, 3, 4}}}, .args = &(args_t){{.n = 3, .d = {2, 0, 1}}}},
    {.in = {{4, {2, 3, 1, 2}}}, .args = &(args_t){{.n = 4, .d = {0, -1, 1, -2}}}},
    {.in = {{2, {3, 4}}}, .args = &(args_t){{.n = 2, .d = {0, 1}}}},
    {.in = {{0, {0}}}, .args = &(args_t){{.n = 0, .d = {0}}}},
    {.in = {{3, {2, 0, 4}}}, .args = &(args_t){{.n = 3, .d = {1, 2, 0}}}},
    {.in = {{3, {2, 3, 4}}}, .args = &(args_t){{.n = 2, .d = {1, 0}}},
     TN__FAILS(TN_EINVAL, "permute: the order lists 2 dims, the tensor has 3")},
    {.in = {{2, {2, 3}}}, .args = &(args_t){{.n = 2, .d = {0, 2}}},
     TN__FAILS(TN_EINDEX, "permute: dim 2 is out of range for a 2-d tensor")},
    {.in = {{2, {2, 3}}}, .args = &(args_t){{.n = 2, .d = {1, -1}}},
     TN__FAILS(TN_EINVAL, "permute: dim 1 is listed twice")},
};
/* clang-format on */
const tn_op tn__op_permute = {TN__ROOM("permute", TN_AS_IS),
                              .inputs = 1,
                              .args_size = sizeof(args_t),
                              .infer = permute_infer,
                              .forward = permute_forward,
                              .backward_ops = permute_backward_ops,
                              .view = true};
TN__SAMPLES(permute, permute_samples);

static const tn__sample transpose_samples[] = {
    {.in = {{2, {3, 4}}}, .args = &(args_t){{.n = 2, .d = {0, 1}}}},
    {.in = {{4, {2, 3, 1, 4}}}, .args = &(args_t){{.n = 2, .d = {-1, 1}}}},
    {.in = {{2, {3, 4}}}, .args = &(args_t){{.n = 2, .d = {1, 1}}}},
    {.in = {{0, {0}}}, .args = &(args_t){{.n = 2, .d = {0, -1}}}},
    {.in = {{2, {0, 4}}}, .args = &(args_t){{.n = 2, .d = {0, 1}}}},
    {.in = {{2, {2, 3}}},
     .args = &(args_t){{.n = 2, .d = {0, 2}}},
     TN__FAILS(TN_EINDEX, "transpose: dim 2 is out of range for a 2-d tensor")},
    {.in = {{2, {2, 3}}},
     .args = &(args_t){{.n = 2, .d = {-3, 0}}},
     TN__FAILS(TN_EINDEX, "transpose: dim -3 is out of range for a 2-d tensor")},
};
const tn_op tn__op_transpose = {TN__ROOM("transpose", TN_AS_IS),
                                .inputs = 1,
                                .args_size = sizeof(args_t),
                                .infer = permute_infer,
                                .forward = permute_forward,
                                .backward_ops = transpose_backward_ops,
                                .view = true};
TN__SAMPLES(transpose, transpose_samples);

tn_tensor *tn_permute(tn_tensor *x, tn_dims order) { return tn_apply_args(&tn__op_permute, &(args_t){order}, x); }
tn_tensor *tn_transpose(tn_tensor *x, int dim0, int dim1)
{
    return tn_apply_args(&tn__op_transpose, (&(args_t){TN_DIMS(dim0, dim1)}), x);
}
