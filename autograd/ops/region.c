/* region — a part of a tensor as a view: slice, narrow, select, diagonal, unfold; and the op that their backwards use:
 * region, zeros of a shape with a tensor added at the place of a part
 *
 *   y = part(x)                      gx = region(gy)
 *   y = region(x)                    gx = part(gy)
 *
 * The fast backward adds gy at its place to the incomplete gradient of x, so that the gradients of all rows, taken one
 * by one, cost no more than one sweep over x. Windows of unfold may overlap: then each element is the sum over its
 * windows, in their order. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"

typedef struct {
    int     dim, dim1;  /* dim1: diagonal */
    int64_t start;      /* slice, narrow; select: the index; diagonal: the offset */
    int64_t size, step; /* narrow and unfold: the size; slice: the end */
} args_t;
typedef struct {
    const tn_op *view;
    args_t       part;
    tn_shape     shape;
} region_args;

#define TN__TEMPLATE "autograd/ops/region.c"
#define TN__WITH_I64
#include "core/real.h"

/* The layout of the part that `view` takes of x. */
static bool region_geometry(const char *name, const tn_op *view, const args_t *a, const tn__layout *x, tn__layout *y)
{
    if (view == &tn__op_slice) return tn__view_slice(name, x, a->dim, a->start, a->size, a->step, y);
    if (view == &tn__op_narrow) return tn__view_narrow(name, x, a->dim, a->start, a->size, y);
    if (view == &tn__op_select) return tn__view_select(name, x, a->dim, a->start, y);
    if (view == &tn__op_diagonal) return tn__view_diagonal(name, x, a->start, a->dim, a->dim1, y);
    return tn__view_unfold(name, x, a->dim, a->size, a->step, y);
}

static void add_dense(tn_tensor *to, const tn__layout *place, const tn_tensor *x, const tn__layout *source)
{
    tn_tensor y = tn__stack_view(to, place), more = tn__stack_view(x, source);
    tn__map(TN__NUMBERS(add), TN__LIST(&y), TN__LIST(&y, &more), NULL);
}

/* Adds x at its place in `to`. */
static void add_region(tn_tensor *to, const tn_op *view, const args_t *a, const tn_tensor *x)
{
    tn__layout y;
    if (!region_geometry(view->name, view, a, &to->l, &y)) return;
    if (view != &tn__op_unfold || a->size <= a->step || to->l.shape.n == 0) {
        add_dense(to, &y, x, &x->l);
        return;
    }
    /* Both loops add an element's windows in the same order, from the first to the last. */
    const int     last = y.shape.n - 1, dim = a->dim < 0 ? a->dim + last : a->dim;
    const int64_t windows = y.shape.d[dim];
    const bool    by_window = windows <= a->size;
    for (int64_t i = 0, n = by_window ? windows : a->size; i < n; i++) {
        tn__layout    place, source;
        const int     along = by_window ? dim : last;
        const int64_t at = by_window ? i : n - 1 - i;
        if (tn__view_select("unfold", &y, along, at, &place) && tn__view_select("unfold", &x->l, along, at, &source))
            add_dense(to, &place, x, &source);
    }
}

static bool part_infer(tn_ctx *c)
{
    tn__layout y;
    return region_geometry(c->op->name, c->op, c->args, &c->in[0]->l, &y) && tn__infer_view(c, &y);
}
static void part_forward(tn_ctx *c)
{
    tn__layout y;
    if (region_geometry(c->op->name, c->op, c->args, &c->in[0]->l, &y)) c->out[0] = tn__alias_owned(c->in[0], &y);
}
static void part_backward(tn_back *b)
{
    tn_tensor *gx = tn__grad_buffer(b, 0);
    if (gx) add_region(gx, b->op, b->args, b->gy[0]);
}
static void part_backward_ops(tn_back *b)
{
    const region_args a = {b->op, *(const args_t *)b->args, b->in_shape[0]};
    b->gx[0] = tn_apply_args(&tn__op_region, &a, b->gy[0]);
}

#define ROOM(title)                                                                                                    \
    TN__ROOM(title, TN_AS_IS), .inputs = 1, .args_size = sizeof(args_t), .infer = part_infer, .forward = part_forward, \
                               .backward = part_backward, .backward_ops = part_backward_ops, .view = true

/* ---- region ---- */

static bool region_infer(tn_ctx *c)
{
    const region_args *a = c->args;
    const tn__layout   whole = tn__layout_of_shape(a->shape);
    tn__layout         part;
    char               is[192], should[192];
    if (!tn__shape_check("region", c->in[0]->dtype, a->shape) ||
        !region_geometry("region", a->view, &a->part, &whole, &part))
        return false;
    if (!tn_shape_equal(part.shape, c->in[0]->l.shape))
        return tn_infer_fail(c, TN_ESHAPE, "cannot fill a %s of shape %s with a tensor of shape %s", a->view->name,
                             tn_shape_text(part.shape, should, sizeof should),
                             tn_shape_text(c->in[0]->l.shape, is, sizeof is));
    c->result[0].dtype = c->in[0]->dtype, c->result[0].shape = a->shape;
    return true;
}
static void region_forward(tn_ctx *c)
{
    const region_args *a = c->args;
    tn__fill(c->out[0], 0);
    add_region(c->out[0], a->view, &a->part, c->in[0]);
}
static void region_backward_ops(tn_back *b)
{
    const region_args *a = b->args;
    b->gx[0] = tn_apply_args(a->view, &a->part, b->gy[0]);
}

static const tn__sample region_samples[] = {
    {.in = {{2, {3, 2}}}, .args = &(region_args){&tn__op_slice, {1, 0, 1, 5, 2}, {.n = 2, .d = {3, 6}}}},
    {.in = {{2, {2, 4}}}, .args = &(region_args){&tn__op_narrow, {0, 0, -2, 2, 0}, {.n = 2, .d = {3, 4}}}},
    {.in = {{2, {2, 4}}}, .args = &(region_args){&tn__op_select, {1, 0, 2, 0, 0}, {.n = 3, .d = {2, 3, 4}}}},
    {.in = {{0, {0}}}, .args = &(region_args){&tn__op_select, {0, 0, 1, 0, 0}, {.n = 1, .d = {3}}}},
    {.in = {{2, {2, 3}}}, .args = &(region_args){&tn__op_diagonal, {0, 2, 0, 0, 0}, {.n = 3, .d = {3, 2, 4}}}},
    {.in = {{2, {4, 3}}}, .args = &(region_args){&tn__op_unfold, {0, 0, 0, 3, 1}, {.n = 1, .d = {6}}}},
    {.in = {{3, {2, 2, 4}}}, .args = &(region_args){&tn__op_unfold, {1, 0, 0, 4, 3}, {.n = 2, .d = {2, 8}}}},
    {.in = {{2, {0, 2}}}, .args = &(region_args){&tn__op_slice, {1, 0, 1, 5, 2}, {.n = 2, .d = {0, 6}}}},
    {.in = {{2, {3, 4}}},
     .args = &(region_args){&tn__op_select, {0, 0, 3, 0, 0}, {.n = 1, .d = {3}}},
     TN__FAILS(TN_EINDEX, "region: index 3 is out of range for dim 0 of size 3")},
    {.in = {{2, {3, 4}}},
     .args = &(region_args){&tn__op_select, {0, 0, 0, 0, 0}, {.n = 2, .d = {3, 5}}},
     TN__FAILS(TN_ESHAPE, "region: cannot fill a select of shape [5] with a tensor of shape [3, 4]")},
};
const tn_op tn__op_region = {TN__ROOM("region", TN_AS_IS),     .inputs = 1,
                             .args_size = sizeof(region_args), .infer = region_infer,
                             .forward = region_forward,        .backward_ops = region_backward_ops};
TN__SAMPLES(region, region_samples);

/* ---- the parts ---- */

/* clang-format off */
static const tn__sample slice_samples[] = {
    {.in = {{2, {3, 6}}}, .args = &(args_t){1, 0, 1, 5, 2}},
    {.in = {{2, {6, 3}}}, .args = &(args_t){-2, 0, -5, -1, 3}},
    {.in = {{3, {2, 3, 4}}}, .args = &(args_t){1, 0, -100, 100, 1}}, /* clamped */
    {.in = {{2, {3, 4}}}, .args = &(args_t){0, 0, 2, 1, 1}}, /* empty */
    {.in = {{2, {3, 4}}}, .args = &(args_t){1, 0, 1, INT64_MAX, INT64_MAX}},
    {.in = {{2, {0, 4}}}, .args = &(args_t){0, 0, 0, 3, 1}},
    {.in = {{2, {1, 4}}}, .args = &(args_t){0, 0, 0, 1, 2}},
    {.in = {{1, {4}}}, .args = &(args_t){0, 0, 3, 0, -1},
     TN__FAILS(TN_EINVAL, "slice: the step must be at least 1, got -1; tn_flip reverses a dim")},
    {.in = {{1, {4}}}, .args = &(args_t){1, 0, 0, 4, 1},
     TN__FAILS(TN_EINDEX, "slice: dim 1 is out of range for a 1-d tensor")},
    {.in = {{0, {0}}}, .args = &(args_t){0, 0, 0, 1, 1},
     TN__FAILS(TN_ESHAPE, "slice: a 0-d tensor has no dim to slice; add one with tn_unsqueeze(x, 0)")},
};
/* clang-format on */
const tn_op tn__op_slice = {ROOM("slice")};
TN__SAMPLES(slice, slice_samples);

/* clang-format off */
static const tn__sample narrow_samples[] = {
    {.in = {{2, {3, 6}}}, .args = &(args_t){1, 0, 2, 3, 0}},
    {.in = {{2, {3, 6}}}, .args = &(args_t){0, 0, -2, 2, 0}},
    {.in = {{3, {2, 3, 4}}}, .args = &(args_t){-2, 0, 0, 3, 0}},
    {.in = {{2, {3, 4}}}, .args = &(args_t){0, 0, 3, 0, 0}},
    {.in = {{2, {3, 0}}}, .args = &(args_t){0, 0, 1, 2, 0}},
    {.in = {{2, {3, 4}}}, .args = &(args_t){0, 0, 4, 0, 0},
     TN__FAILS(TN_EINDEX, "narrow: start 4 is out of range for dim 0 of size 3")},
    {.in = {{2, {3, 4}}}, .args = &(args_t){1, 0, 2, 3, 0},
     TN__FAILS(TN_EINDEX, "narrow: 3 elements from 2 on do not fit into dim 1 of size 4")},
    {.in = {{2, {3, 4}}}, .args = &(args_t){1, 0, 2, -1, 0},
     TN__FAILS(TN_EINDEX, "narrow: -1 elements from 2 on do not fit into dim 1 of size 4")},
    {.in = {{0, {0}}}, .args = &(args_t){0, 0, 0, 1, 0},
     TN__FAILS(TN_ESHAPE, "narrow: a 0-d tensor has no dim to slice; add one with tn_unsqueeze(x, 0)")},
};
/* clang-format on */
const tn_op tn__op_narrow = {ROOM("narrow")};
TN__SAMPLES(narrow, narrow_samples);

/* clang-format off */
static const tn__sample select_samples[] = {
    {.in = {{2, {3, 4}}}, .args = &(args_t){.dim = 0, .start = 1}},
    {.in = {{3, {2, 3, 4}}}, .args = &(args_t){.dim = 1, .start = -1}},
    {.in = {{3, {2, 3, 4}}}, .args = &(args_t){.dim = -1, .start = -4}},
    {.in = {{1, {3}}}, .args = &(args_t){.dim = 0, .start = 2}},
    {.in = {{2, {3, 0}}}, .args = &(args_t){.dim = 0, .start = 2}},
    {.in = {{2, {3, 4}}}, .args = &(args_t){.dim = 0, .start = 3},
     TN__FAILS(TN_EINDEX, "select: index 3 is out of range for dim 0 of size 3")},
    {.in = {{2, {3, 0}}}, .args = &(args_t){.dim = 1, .start = 0},
     TN__FAILS(TN_EINDEX, "select: index 0 is out of range for dim 1 of size 0")},
    {.in = {{0, {0}}}, .args = &(args_t){.dim = 0},
     TN__FAILS(TN_ESHAPE, "select: a 0-d tensor has no dim to slice; add one with tn_unsqueeze(x, 0)")},
};
/* clang-format on */
const tn_op tn__op_select = {ROOM("select")};
TN__SAMPLES(select, select_samples);

static const tn__sample diagonal_samples[] = {
    {.in = {{2, {3, 4}}}, .args = &(args_t){0, 1, 0, 0, 0}},
    {.in = {{2, {3, 4}}}, .args = &(args_t){0, 1, 2, 0, 0}},
    {.in = {{2, {4, 3}}}, .args = &(args_t){0, 1, -2, 0, 0}},
    {.in = {{3, {3, 2, 4}}}, .args = &(args_t){-1, 0, 1, 0, 0}},
    {.in = {{2, {3, 4}}}, .args = &(args_t){0, 1, 4, 0, 0}},
    {.in = {{2, {3, 4}}}, .args = &(args_t){0, 1, INT64_MIN, 0, 0}},
    {.in = {{3, {0, 3, 3}}}, .args = &(args_t){1, 2, 0, 0, 0}},
    {.in = {{1, {3}}},
     .args = &(args_t){0, 1, 0, 0, 0},
     TN__FAILS(TN_ESHAPE, "diagonal: needs at least 2 dims, the tensor has 1")},
    {.in = {{2, {3, 3}}}, .args = &(args_t){1, -1, 0, 0, 0}, TN__FAILS(TN_EINVAL, "diagonal: both dims are 1")},
    {.in = {{2, {3, 3}}},
     .args = &(args_t){0, 2, 0, 0, 0},
     TN__FAILS(TN_EINDEX, "diagonal: dim 2 is out of range for a 2-d tensor")},
};
const tn_op tn__op_diagonal = {ROOM("diagonal")};
TN__SAMPLES(diagonal, diagonal_samples);

/* clang-format off */
static const tn__sample unfold_samples[] = {
    {.in = {{1, {7}}}, .args = &(args_t){0, 0, 0, 3, 1}},
    {.in = {{2, {2, 7}}}, .args = &(args_t){1, 0, 0, 3, 2}},
    {.in = {{2, {8, 2}}}, .args = &(args_t){-2, 0, 0, 6, 1}},
    {.in = {{3, {2, 6, 2}}}, .args = &(args_t){1, 0, 0, 2, 3}},
    {.in = {{1, {4}}}, .args = &(args_t){0, 0, 0, 4, INT64_MAX}},
    {.in = {{0, {0}}}, .args = &(args_t){0, 0, 0, 1, 1}},
    {.in = {{2, {0, 4}}}, .args = &(args_t){1, 0, 0, 2, 1}},
    {.in = {{1, {4}}}, .args = &(args_t){0, 0, 0, 0, 2}},
    {.in = {{1, {4}}}, .args = &(args_t){0, 0, 0, 5, 1},
     TN__FAILS(TN_EINVAL, "unfold: a window of 5 does not fit into dim 0 of size 4")},
    {.in = {{1, {4}}}, .args = &(args_t){0, 0, 0, 2, 0},
     TN__FAILS(TN_EINVAL, "unfold: the step must be at least 1, got 0")},
    {.in = {{8, {1, 1, 1, 1, 1, 1, 1, 2}}}, .args = &(args_t){0, 0, 0, 1, 1},
     TN__FAILS(TN_ESHAPE, "unfold: the result would have 9 dims, more than 8")},
};
/* clang-format on */
const tn_op tn__op_unfold = {ROOM("unfold")};
TN__SAMPLES(unfold, unfold_samples);

tn_tensor *tn_slice(tn_tensor *x, int dim, int64_t start, int64_t end, int64_t step)
{
    return tn_apply_args(&tn__op_slice, (&(args_t){.dim = dim, .start = start, .size = end, .step = step}), x);
}
tn_tensor *tn_narrow(tn_tensor *x, int dim, int64_t start, int64_t length)
{
    return tn_apply_args(&tn__op_narrow, (&(args_t){.dim = dim, .start = start, .size = length}), x);
}
tn_tensor *tn_select(tn_tensor *x, int dim, int64_t index)
{
    return tn_apply_args(&tn__op_select, (&(args_t){.dim = dim, .start = index}), x);
}
tn_tensor *tn_diagonal(tn_tensor *x, int64_t offset, int dim0, int dim1)
{
    return tn_apply_args(&tn__op_diagonal, (&(args_t){.dim = dim0, .dim1 = dim1, .start = offset}), x);
}
tn_tensor *tn_unfold(tn_tensor *x, int dim, int64_t size, int64_t step)
{
    return tn_apply_args(&tn__op_unfold, (&(args_t){.dim = dim, .size = size, .step = step}), x);
}

#else /* ==================================================================== kernels: contiguous, one dtype */

static void TN__(add)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *a = in[0], *b = in[1];
    TN__REAL       *y = out[0];
    (void)args;
#if TN__IS_REAL
    for (int64_t i = 0; i < n; i++) y[i] = a[i] + b[i];
#else
    for (int64_t i = 0; i < n; i++) y[i] = (TN__REAL)((uint64_t)a[i] + (uint64_t)b[i]); /* wraps, as integers do */
#endif
}
#endif
