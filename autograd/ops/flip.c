/* flip — reverses dims: y[i] = x[n - 1 - i] in each of them
 *
 *   gx = gy reversed */
#include "autograd/rooms/room.h"

typedef struct {
    tn_dims dims; /* none: all */
} args_t;

static bool flip_infer(tn_ctx *c)
{
    tn_dims dims = TN_ARG(c, dims);
    return tn__wrap_dims("flip", &dims, c->in[0]->l.shape.n) && tn_infer_like(c, 0, 0);
}

/* y is written as a view with negative strides, so that one copy of x suffices. */
static void flip_forward(tn_ctx *c)
{
    tn_dims    dims = TN_ARG(c, dims);
    tn__layout l = c->in[0]->l;
    if (tn_shape_numel(l.shape) == 0 || !tn__wrap_dims("flip", &dims, l.shape.n)) return;
    for (int i = 0; i < dims.n; i++) {
        const int d = dims.d[i];
        l.offset += (l.shape.d[d] - 1) * l.stride[d];
        l.stride[d] = -l.stride[d];
    }
    const tn_tensor turned = tn__stack_view(c->in[0], &l);
    tn__copy(c->out[0], &turned);
}
static void flip_backward_ops(tn_back *b) { b->gx[0] = tn_flip(b->gy[0], TN_ARG(b, dims)); }

static const tn__sample samples[] = {
    {.in = {{1, {5}}}, .args = &(args_t){{.n = 1, .d = {0}}}},
    {.in = {{3, {2, 3, 4}}}, .args = &(args_t){{.n = 2, .d = {-1, 0}}}},
    {.in = {{3, {2, 3, 2}}}, .args = &(args_t){{.n = 1, .d = {1}}}},
    {.in = {{2, {3, 4}}}, .args = &(args_t){{.n = 0, .d = {0}}}},
    {.in = {{2, {1, 3}}}, .args = &(args_t){{.n = 1, .d = {0}}}},
    {.in = {{0, {0}}}, .args = &(args_t){{.n = 0, .d = {0}}}},
    {.in = {{2, {0, 3}}}, .args = &(args_t){{.n = 2, .d = {0, 1}}}},
    {.in = {{1, {5}}}, .kind = {TN__ARG_INT}, .low = {-9}, .high = {9}, .args = &(args_t){{.n = 1, .d = {0}}}},
    {.in = {{2, {3, 4}}},
     .args = &(args_t){{.n = 1, .d = {2}}},
     TN__FAILS(TN_EINDEX, "flip: dim 2 is out of range for a 2-d tensor")},
    {.in = {{2, {3, 4}}},
     .args = &(args_t){{.n = 2, .d = {1, -1}}},
     TN__FAILS(TN_EINVAL, "flip: dim 1 is listed twice")},
};

const tn_op tn__op_flip = {TN__ROOM("flip", TN_AS_IS),  .inputs = 1,
                           .args_size = sizeof(args_t), .infer = flip_infer,
                           .forward = flip_forward,     .backward_ops = flip_backward_ops};
TN__SAMPLES(flip, samples);

tn_tensor *tn_flip(tn_tensor *x, tn_dims dims) { return tn_apply_args(&tn__op_flip, &(args_t){dims}, x); }
