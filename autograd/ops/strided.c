/* strided — elements of a tensor selected by an offset and strides; the gradients of views whose memory an in-place op
 * has changed (tape/history.c) are made of these ops
 *
 *   strided        y = x[at]                           gx = strided_add(gy)
 *   strided_add    y = 0 but y[at] += x                gx = strided(gy)
 *   strided_clear  y = x but y[at] = 0                 gx = strided_clear(gy)
 *   overwrite      y = x but y[at] = z                 gx = strided_clear(gy),  gz = strided(gy)
 *
 * Places that `at` selects more than once (expanded dims, overlapping windows) are added in the order of its
 * elements. */
#include "autograd/rooms/room.h"

typedef tn__strided_args args_t;

/* For infer: all places of `at` must be elements of a tensor of n elements. */
static bool inside(const tn_ctx *c, const tn__layout *at, int64_t n)
{
    if (tn__layout_inside(at, n)) return true;
    return tn_infer_fail(c, TN_EINDEX, "its strides reach beyond the %lld elements", (long long)n);
}

/* The layout of x, which is contiguous, under `at`, whose offset counts from x's first element. */
static tn__layout part_of(const tn_tensor *x, const tn__layout *at)
{
    tn__layout l = *at;
    l.offset += x->l.offset;
    return l;
}

static bool strided_infer(tn_ctx *c)
{
    c->result[0].dtype = c->in[0]->dtype, c->result[0].shape = TN_ARG(c, at).shape;
    return inside(c, &TN_ARG(c, at), tn_numel(c->in[0]));
}
static void strided_forward(tn_ctx *c)
{
    const tn_tensor *x = c->in[0];
    tn_tensor       *copy = NULL;
    if (!tn__layout_contiguous(&x->l)) {
        if (!(copy = tn__new_owned(x->dtype, x->l.shape))) return;
        tn__copy(copy, x);
        x = copy;
    }
    const tn__layout y = part_of(x, &TN_ARG(c, at));
    c->out[0] = tn__alias_owned(x, &y);
    tn_drop(copy);
}
static void strided_back(tn_back *b)
{
    const args_t a = {TN_ARG(b, at), b->in_shape[0]};
    b->gx[0] = tn_apply_args(&tn__op_strided_add, &a, b->gy[0]);
}

static bool add_infer(tn_ctx *c)
{
    char          is[192], should[192];
    const args_t *a = c->args;
    if (!tn__shape_check("strided_add", c->in[0]->dtype, a->shape)) return false;
    c->result[0].dtype = c->in[0]->dtype, c->result[0].shape = a->shape;
    if (!tn_shape_equal(c->in[0]->l.shape, a->at.shape))
        return tn_infer_fail(c, TN_ESHAPE, "x is %s, but its places are %s",
                             tn_shape_text(c->in[0]->l.shape, is, sizeof is),
                             tn_shape_text(a->at.shape, should, sizeof should));
    return inside(c, &a->at, tn_shape_numel(a->shape));
}
static void add_forward(tn_ctx *c)
{
    tn_tensor       *x = c->in[0], *y = c->out[0];
    const tn__layout at = part_of(y, &TN_ARG(c, at)), row = tn__layout_of_shape((tn_shape){.n = 1, .d = {tn_numel(y)}});
    tn__fill(y, 0);
    if (!tn__layout_repeats(&at)) {
        tn_tensor to = tn__stack_view(y, &at);
        tn__copy(&to, x);
        return;
    }
    tn_scope   s = tn_scope_begin();
    tn_tensor *place = tn_arange(tn_numel(y)), *index = NULL, to = tn__stack_view(y, &row);
    if (place) index = tn_contiguous(tn_reshape(tn__alias(place, &TN_ARG(c, at)), (tn_shape){.n = 1, .d = {-1}}));
    x = tn_contiguous(tn_reshape(x, (tn_shape){.n = 1, .d = {-1}}));
    if (index && x) tn__add_rows(&to, 0, index, x, -1);
    tn_scope_end(s);
}
static void take_back(tn_back *b) { b->gx[0] = tn_apply_args(&tn__op_strided, b->args, b->gy[0]); }

static bool clear_infer(tn_ctx *c) { return tn_infer_like(c, 0, 0) && inside(c, &TN_ARG(c, at), tn_numel(c->in[0])); }
static void clear_forward(tn_ctx *c)
{
    const tn__layout at = part_of(c->out[0], &TN_ARG(c, at));
    tn_tensor        to = tn__stack_view(c->out[0], &at);
    tn__copy(c->out[0], c->in[0]);
    tn__fill(&to, 0);
}
static void clear_back(tn_back *b) { b->gx[0] = tn_apply_args(&tn__op_strided_clear, b->args, b->gy[0]); }

static bool over_infer(tn_ctx *c)
{
    char is[192], should[192];
    if (!tn_infer_like(c, 0, 0)) return false;
    if (c->in[0]->dtype != c->in[1]->dtype)
        return tn_infer_fail(c, TN_EDTYPE, "dtypes differ: %s and %s", tn_dtype_name(c->in[0]->dtype),
                             tn_dtype_name(c->in[1]->dtype));
    if (!tn_shape_equal(c->in[1]->l.shape, TN_ARG(c, at).shape))
        return tn_infer_fail(c, TN_ESHAPE, "z is %s, but its places are %s",
                             tn_shape_text(c->in[1]->l.shape, is, sizeof is),
                             tn_shape_text(TN_ARG(c, at).shape, should, sizeof should));
    return inside(c, &TN_ARG(c, at), tn_numel(c->in[0]));
}
static void over_forward(tn_ctx *c)
{
    const tn__layout at = part_of(c->out[0], &TN_ARG(c, at));
    tn_tensor        to = tn__stack_view(c->out[0], &at);
    tn__copy(c->out[0], c->in[0]);
    tn__copy(&to, c->in[1]);
}
static void over_back(tn_back *b)
{
    if (b->need[0]) clear_back(b);
    if (b->need[1]) b->gx[1] = tn_apply_args(&tn__op_strided, b->args, b->gy[0]);
}

#define ROOM(title, n) TN__ROOM(title, n > 1 ? TN_JOIN : TN_AS_IS), .inputs = n, .args_size = sizeof(args_t)

static const tn__sample strided_samples[] = {
    {.in = {{2, {3, 4}}}, .args = &(args_t){.at = {1, {.n = 2, .d = {2, 3}}, {1, 4}}}}, /* some columns, transposed */
    {.in = {{1, {6}}}, .args = &(args_t){.at = {0, {.n = 2, .d = {4, 3}}, {1, 1}}}},    /* windows */
    {.in = {{2, {2, 2}}}, .args = &(args_t){.at = {0, {.n = 3, .d = {2, 3, 2}}, {2, 0, 1}}}}, /* an expanded dim */
    {.in = {{0, {0}}}, .args = &(args_t){.at = {0, {.n = 1, .d = {1}}, {1}}}},
    {.in = {{2, {0, 4}}}, .args = &(args_t){.at = {9, {.n = 1, .d = {0}}, {1}}}},
    {.in = {{1, {4}}},
     .args = &(args_t){.at = {0, {.n = 1, .d = {3}}, {2}}},
     TN__FAILS(TN_EINDEX, "strided: its strides reach beyond the 4 elements")},
    {.in = {{1, {4}}},
     .args = &(args_t){.at = {1, {.n = 1, .d = {3}}, {-1}}},
     TN__FAILS(TN_EINDEX, "strided: its strides reach beyond the 4 elements")},
};
const tn_op tn__op_strided = {ROOM("strided", 1), .infer = strided_infer, .forward = strided_forward,
                              .backward_ops = strided_back, .view = true};
TN__SAMPLES(strided, strided_samples);

static const tn__sample add_samples[] = {
    {.in = {{2, {2, 3}}}, .args = &(args_t){{1, {.n = 2, .d = {2, 3}}, {1, 4}}, {.n = 2, .d = {3, 4}}}},
    {.in = {{2, {4, 3}}}, .args = &(args_t){{0, {.n = 2, .d = {4, 3}}, {1, 1}}, {.n = 1, .d = {6}}}},
    {.in = {{3, {2, 3, 2}}}, .args = &(args_t){{0, {.n = 3, .d = {2, 3, 2}}, {2, 0, 1}}, {.n = 2, .d = {2, 2}}}},
    {.in = {{1, {0}}}, .args = &(args_t){{0, {.n = 1, .d = {0}}, {1}}, {.n = 1, .d = {3}}}},
    {.in = {{1, {3}}},
     .args = &(args_t){{0, {.n = 1, .d = {2}}, {1}}, {.n = 1, .d = {4}}},
     TN__FAILS(TN_ESHAPE, "strided_add: x is [3], but its places are [2]")},
    {.in = {{1, {2}}},
     .args = &(args_t){{0, {.n = 1, .d = {2}}, {4}}, {.n = 1, .d = {4}}},
     TN__FAILS(TN_EINDEX, "strided_add: its strides reach beyond the 4 elements")},
};
const tn_op tn__op_strided_add = {ROOM("strided_add", 1), .infer = add_infer, .forward = add_forward,
                                  .backward_ops = take_back};
TN__SAMPLES(strided_add, add_samples);

static const tn__sample clear_samples[] = {
    {.in = {{2, {3, 4}}}, .args = &(args_t){.at = {1, {.n = 2, .d = {2, 3}}, {1, 4}}}},
    {.in = {{1, {3}}}, .args = &(args_t){.at = {0, {.n = 1, .d = {0}}, {1}}}},
    {.in = {{1, {4}}},
     .args = &(args_t){.at = {0, {.n = 1, .d = {3}}, {2}}},
     TN__FAILS(TN_EINDEX, "strided_clear: its strides reach beyond the 4 elements")},
};
const tn_op tn__op_strided_clear = {ROOM("strided_clear", 1), .infer = clear_infer, .forward = clear_forward,
                                    .backward_ops = clear_back};
TN__SAMPLES(strided_clear, clear_samples);

static const tn__sample over_samples[] = {
    {.in = {{2, {3, 4}}, {2, {2, 3}}}, .args = &(args_t){.at = {1, {.n = 2, .d = {2, 3}}, {1, 4}}}},
    {.in = {{1, {5}}, {0, {0}}}, .args = &(args_t){.at = {4, {.n = 0, .d = {0}}, {0}}}},
    {.in = {{1, {3}}, {1, {0}}}, .args = &(args_t){.at = {0, {.n = 1, .d = {0}}, {1}}}},
    {.in = {{1, {4}}, {1, {3}}},
     .args = &(args_t){.at = {0, {.n = 1, .d = {3}}, {2}}},
     TN__FAILS(TN_EINDEX, "overwrite: its strides reach beyond the 4 elements")},
    {.in = {{1, {4}}, {1, {2}}},
     .args = &(args_t){.at = {0, {.n = 1, .d = {3}}, {1}}},
     TN__FAILS(TN_ESHAPE, "overwrite: z is [2], but its places are [3]")},
};
const tn_op tn__op_overwrite = {ROOM("overwrite", 2), .infer = over_infer, .forward = over_forward,
                                .backward_ops = over_back};
TN__SAMPLES(overwrite, over_samples);
