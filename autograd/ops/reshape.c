/* reshape — the same elements, in the same order, under another shape: reshape, view, flatten, squeeze, unsqueeze
 *
 *   gx = gy under x's shape
 *
 * A view if strides can express the shape. If they cannot, view raises and the others copy. */
#include "autograd/rooms/room.h"

_Static_assert((int)TN__ALL_DIMS == TN_ALL, "core/tensor/view.c knows tn_squeeze's TN_ALL under its own name");

typedef struct {
    tn_shape shape;       /* reshape, view: the new one */
    int      first, last; /* flatten: the dims to join; squeeze, unsqueeze: the dim */
} args_t;

static bool target(const tn_ctx *c, tn_shape *to)
{
    const char    *op = c->op->name;
    const tn_shape from = c->in[0]->l.shape;
    if (c->op == &tn__op_flatten) return tn__view_flatten(op, from, TN_ARG(c, first), TN_ARG(c, last), to);
    if (c->op == &tn__op_squeeze) return tn__view_squeeze(op, from, TN_ARG(c, first), to);
    if (c->op == &tn__op_unsqueeze) return tn__view_unsqueeze(op, from, TN_ARG(c, first), to);
    *to = TN_ARG(c, shape);
    return tn__view_shape(op, from, to);
}

static bool reshape_infer(tn_ctx *c)
{
    tn__layout y;
    char       strides[192], from[192], to[192];
    if (!target(c, &y.shape)) return false;
    if (c->op == &tn__op_view && !tn__layout_reshape(&c->in[0]->l, y.shape, &y))
        return tn_infer_fail(
            c, TN_ESHAPE, "strides %s of %s allow no view of shape %s; use tn_reshape, which copies if needed",
            tn_shape_text(tn_strides_of(c->in[0]), strides, sizeof strides),
            tn_shape_text(c->in[0]->l.shape, from, sizeof from), tn_shape_text(y.shape, to, sizeof to));
    return tn__infer_view(c, &y);
}

static void reshape_forward(tn_ctx *c)
{
    const tn_tensor *x = c->in[0];
    tn__layout       y;
    if (tn__layout_reshape(&x->l, c->result[0].shape, &y)) {
        c->out[0] = tn__alias_owned(x, &y);
    } else if ((c->out[0] = tn__new_owned(x->dtype, c->result[0].shape))) {
        const tn__layout in_order = tn__layout_of_shape(x->l.shape);
        tn_tensor        copy = tn__stack_view(c->out[0], &in_order);
        tn__copy(&copy, x);
    }
}

static void reshape_backward_ops(tn_back *b) { b->gx[0] = tn_reshape(b->gy[0], b->in_shape[0]); }

#define ROOM(title)                                                                              \
    TN__ROOM(title, TN_AS_IS), .inputs = 1, .args_size = sizeof(args_t), .infer = reshape_infer, \
                               .forward = reshape_forward, .backward_ops = reshape_backward_ops, .view = true

static const tn__sample view_samples[] = {
    {.in = {{0, {0}}}, .args = &(args_t){.shape = {.n = 2, .d = {1, 1}}}},
    {.in = {{1, {1}}}, .args = &(args_t){.shape = {.n = 0, .d = {0}}}},
    {.in = {{2, {0, 3}}}, .args = &(args_t){.shape = {.n = 3, .d = {2, 0, 5}}}},
    {.in = {{2, {3, 4}}},
     .args = &(args_t){.shape = {.n = 1, .d = {5}}},
     TN__FAILS(TN_ESHAPE, "view: [3, 4] has 12 elements, which do not fill [5]")},
};
const tn_op tn__op_view = {ROOM("view")};
TN__SAMPLES(view, view_samples);

/* clang-format off */
static const tn__sample reshape_samples[] = {
    {.in = {{2, {3, 4}}}, .args = &(args_t){.shape = {.n = 2, .d = {2, 6}}}},
    {.in = {{3, {2, 3, 4}}}, .args = &(args_t){.shape = {.n = 2, .d = {4, -1}}}},
    {.in = {{3, {2, 1, 6}}}, .args = &(args_t){.shape = {.n = 4, .d = {2, 3, 1, 2}}}},
    {.in = {{0, {0}}}, .args = &(args_t){.shape = {.n = 1, .d = {-1}}}},
    {.in = {{2, {1, 1}}}, .args = &(args_t){.shape = {.n = 0, .d = {0}}}},
    {.in = {{2, {0, 3}}}, .args = &(args_t){.shape = {.n = 2, .d = {4, 0}}}},
    {.in = {{2, {0, 3}}}, .args = &(args_t){.shape = {.n = 2, .d = {-1, 3}}}},
    {.in = {{2, {3, 4}}}, .args = &(args_t){.shape = {.n = 2, .d = {5, -1}}},
     TN__FAILS(TN_ESHAPE, "reshape: [3, 4] has 12 elements, which do not fill [5, -1]")},
    {.in = {{2, {3, 4}}}, .args = &(args_t){.shape = {.n = 2, .d = {-1, -1}}},
     TN__FAILS(TN_ESHAPE, "reshape: only one dim may be -1, but [-1, -1] has several")},
    {.in = {{2, {0, 3}}}, .args = &(args_t){.shape = {.n = 2, .d = {0, -1}}},
     TN__FAILS(TN_ESHAPE, "reshape: with a size of 0 the -1 in [0, -1] is ambiguous; write the size")},
    {.in = {{1, {4}}}, .args = &(args_t){.shape = {.n = 2, .d = {-2, -1}}},
     TN__FAILS(TN_ESHAPE, "reshape: [-2, 1] has a negative size in dim 0")},
    {.in = {{1, {4}}}, .args = &(args_t){.shape = {.n = 9, .d = {4}}},
     TN__FAILS(TN_ESHAPE, "reshape: a shape has 0 to 8 dims, got 9")},
};
/* clang-format on */
const tn_op tn__op_reshape = {ROOM("reshape")};
TN__SAMPLES(reshape, reshape_samples);

static const tn__sample flatten_samples[] = {
    {.in = {{3, {2, 3, 4}}}, .args = &(args_t){.first = 0, .last = -1}},
    {.in = {{3, {2, 3, 4}}}, .args = &(args_t){.first = 1, .last = 2}},
    {.in = {{3, {2, 3, 4}}}, .args = &(args_t){.first = 0, .last = 1}},
    {.in = {{3, {2, 3, 4}}}, .args = &(args_t){.first = 1, .last = 1}},
    {.in = {{0, {0}}}, .args = &(args_t){.first = 0, .last = -1}},
    {.in = {{3, {2, 0, 4}}}, .args = &(args_t){.first = 1, .last = -1}},
    {.in = {{3, {2, 3, 4}}},
     .args = &(args_t){.first = 2, .last = 1},
     TN__FAILS(TN_EINVAL, "flatten: the first dim, 2, comes after the last, 1")},
    {.in = {{2, {2, 3}}},
     .args = &(args_t){.first = 0, .last = 2},
     TN__FAILS(TN_EINDEX, "flatten: dim 2 is out of range for a 2-d tensor")},
};
const tn_op tn__op_flatten = {ROOM("flatten")};
TN__SAMPLES(flatten, flatten_samples);

static const tn__sample squeeze_samples[] = {
    {.in = {{3, {1, 3, 1}}}, .args = &(args_t){.first = TN_ALL}},
    {.in = {{3, {1, 3, 1}}}, .args = &(args_t){.first = -1}},
    {.in = {{3, {1, 3, 1}}}, .args = &(args_t){.first = 1}},
    {.in = {{2, {1, 1}}}, .args = &(args_t){.first = TN_ALL}},
    {.in = {{0, {0}}}, .args = &(args_t){.first = 0}},
    {.in = {{3, {1, 0, 2}}}, .args = &(args_t){.first = 0}},
    {.in = {{2, {1, 3}}},
     .args = &(args_t){.first = 2},
     TN__FAILS(TN_EINDEX, "squeeze: dim 2 is out of range for a 2-d tensor")},
};
const tn_op tn__op_squeeze = {ROOM("squeeze")};
TN__SAMPLES(squeeze, squeeze_samples);

static const tn__sample unsqueeze_samples[] = {
    {.in = {{2, {3, 4}}}, .args = &(args_t){.first = 0}},
    {.in = {{2, {3, 4}}}, .args = &(args_t){.first = 1}},
    {.in = {{2, {3, 4}}}, .args = &(args_t){.first = -1}},
    {.in = {{0, {0}}}, .args = &(args_t){.first = 0}},
    {.in = {{2, {0, 4}}}, .args = &(args_t){.first = -2}},
    {.in = {{2, {3, 4}}},
     .args = &(args_t){.first = 3},
     TN__FAILS(TN_EINDEX, "unsqueeze: dim 3 is out of range: a new dim of a 2-d tensor must be from -3 to 2")},
    {.in = {{8, {1, 1, 1, 1, 1, 1, 1, 2}}},
     .args = &(args_t){.first = 0},
     TN__FAILS(TN_ESHAPE, "unsqueeze: the result would have 9 dims, more than 8")},
};
const tn_op tn__op_unsqueeze = {ROOM("unsqueeze")};
TN__SAMPLES(unsqueeze, unsqueeze_samples);

static tn_tensor *to_shape(const tn_op *op, tn_tensor *x, tn_shape s)
{
    return tn_apply_args(op, &(args_t){.shape = s}, x);
}
static tn_tensor *to_dims(const tn_op *op, tn_tensor *x, int first, int last)
{
    return tn_apply_args(op, (&(args_t){.first = first, .last = last}), x);
}
tn_tensor *tn_view(tn_tensor *x, tn_shape s) { return to_shape(&tn__op_view, x, s); }
tn_tensor *tn_reshape(tn_tensor *x, tn_shape s) { return to_shape(&tn__op_reshape, x, s); }
tn_tensor *tn_flatten_run(tn_tensor *x, int first, int last) { return to_dims(&tn__op_flatten, x, first, last); }
tn_tensor *tn_squeeze(tn_tensor *x, int dim) { return to_dims(&tn__op_squeeze, x, dim, 0); }
tn_tensor *tn_unsqueeze(tn_tensor *x, int dim) { return to_dims(&tn__op_unsqueeze, x, dim, 0); }
