/* interpolate — x [N, C, …] resized along its other dims, one after the other; made of ops: element i of a resized dim
 * is
 *
 *   nearest   x[⌊i · in / out⌋]
 *   linear    (1 - w) x[⌊s⌋] + w x[⌊s⌋ + 1]    with s = (i + ½) in / out - ½, at least 0, and w = s - ⌊s⌋;
 *                                               with align_corners s = i (in - 1) / (out - 1)
 *
 * The quotient of nearest is rounded to f32, as in PyTorch. An element with w = 0 is x[⌊s⌋] itself: the other one does
 * not reach it, even if it is NaN or infinite. */
#include "autograd/rooms/resize.h"

typedef struct {
    tn_shape         size;
    tn_interpolation mode;
    bool             align_corners;
} args_t;

static bool interpolate_infer(tn_ctx *c)
{
    const args_t  *a = c->args;
    const tn_shape x = c->in[0]->l.shape;
    char           text[192], size[192];
    if (!tn__need_real(c, 0)) return false;
    if (a->size.n < 1 || x.n != a->size.n + 2)
        return tn_infer_fail(c, TN_ESHAPE, "size %s for x %s; it needs one number for each dim after N and C",
                             tn_shape_text(a->size, size, sizeof size), tn_shape_text(x, text, sizeof text));
    for (int i = 0; i < a->size.n; i++)
        if (a->size.d[i] < 1 || a->size.d[i] > INT32_MAX || x.d[2 + i] < 1 || x.d[2 + i] > INT32_MAX)
            return tn_infer_fail(c, TN_EINVAL, "sizes must be 1 to %d; from %s to %s", INT32_MAX,
                                 tn_shape_text(x, text, sizeof text), tn_shape_text(a->size, size, sizeof size));
    if (a->mode != TN_NEAREST && a->mode != TN_LINEAR)
        return tn_infer_fail(c, TN_EINVAL, "%d is not a tn_interpolation", (int)a->mode);
    if (!a->align_corners || a->mode == TN_LINEAR) return true;
    return tn_infer_fail(c, TN_EINVAL, "align_corners is only for TN_LINEAR");
}

static tn_tensor *nearest(tn_tensor *x, int dim, int64_t out)
{
    const int64_t in = tn_size(x, dim);
    const float   step = (float)in / (float)out;
    tn_tensor    *index = tn_empty_of(TN_I64, TN_SHAPE(out));
    int64_t      *to = index ? tn__ptr(index) : NULL;
    for (int64_t i = 0; to && i < out; i++) to[i] = tn__min_i64((int64_t)((float)i * step), in - 1);
    return tn_index_select(x, dim, index);
}

static tn_tensor *linear(tn_tensor *x, int dim, int64_t out, bool align)
{
    return tn_apply_args(&tn__op_resize, (&(tn__resize){dim, tn_size(x, dim), out, align, false}), x);
}

static void interpolate_compose(tn_ctx *c)
{
    const args_t *a = c->args;
    tn_tensor    *x = c->in[0];
    for (int i = 0; i < a->size.n && x; i++)
        x = a->mode == TN_NEAREST ? nearest(x, 2 + i, a->size.d[i]) : linear(x, 2 + i, a->size.d[i], a->align_corners);
    if (x) c->out[0] = tn_to(x, c->in[0]->dtype);
}

#define TO(count, a, b, mode, align) \
    .args = &(args_t) { {.n = count, .d = {a, b}}, mode, align }
/* clang-format off */
static const tn__sample samples[] = {
    {.in = {{3, {2, 3, 4}}}, TO(1, 7, 0, TN_NEAREST, false)},
    {.in = {{4, {1, 2, 5, 3}}}, TO(2, 2, 4, TN_NEAREST, false)},
    {.in = {{3, {2, 3, 4}}}, TO(1, 7, 0, TN_LINEAR, false)},
    {.in = {{4, {1, 2, 5, 3}}}, TO(2, 2, 4, TN_LINEAR, false)},
    {.in = {{4, {2, 1, 3, 4}}}, TO(2, 5, 1, TN_LINEAR, true)},
    {.in = {{4, {0, 1, 3, 4}}}, TO(2, 5, 2, TN_LINEAR, false)},
    {.in = {{3, {2, 3, 4}}}, TO(2, 2, 4, TN_LINEAR, false),
     TN__FAILS(TN_ESHAPE, "interpolate: size [2, 4] for x [2, 3, 4]; it needs one number for each dim after N and C")},
    {.in = {{3, {2, 3, 4}}}, TO(1, 0, 0, TN_LINEAR, false),
     TN__FAILS(TN_EINVAL, "interpolate: sizes must be 1 to 2147483647; from [2, 3, 4] to [0]")},
    {.in = {{3, {2, 3, 4}}}, TO(1, 2, 0, TN_NEAREST, true),
     TN__FAILS(TN_EINVAL, "interpolate: align_corners is only for TN_LINEAR")},
};
/* clang-format on */

const tn_op tn__op_interpolate = {TN__ROOM("interpolate", TN_WIDE), .inputs = 1, .args_size = sizeof(args_t),
                                  .infer = interpolate_infer, .compose = interpolate_compose};
TN__SAMPLES(interpolate, samples);

tn_tensor *tn_interpolate(tn_tensor *x, tn_shape size, tn_interpolation mode, bool align_corners)
{
    return tn_apply_args(&tn__op_interpolate, (&(args_t){size, mode, align_corners}), x);
}
