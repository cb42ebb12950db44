/* max_pool2d — the largest element under each window; padding counts as -inf and NaN as the largest
 *
 *   gx gets gy at the largest element, the first of equal ones
 *
 * A hidden second result holds its position in the image, row · W + column. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/windows.h"
#include "core/products/convolve.h"
#define TN__TEMPLATE "autograd/ops/max_pool2d.c"
#include "core/real.h"

static bool max_pool2d_infer(tn_ctx *c)
{
    if (!tn__infer_pool(c, 2)) return false;
    c->result[1] = (tn_result){TN_I64, c->result[0].shape};
    return true;
}

static void max_pool2d_forward(tn_ctx *c)
{
    const int64_t  *x = c->in[0]->l.shape.d, *y = c->out[0]->l.shape.d;
    const tn__image m = {*(const tn__pool *)c->args, {x[2], x[3]}, {y[2], y[3]}};
    tn_scope        s = tn_scope_begin();
    tn_tensor      *in = tn__images(c->in[0]), *out = tn__images(c->out[0]), *at = tn__images(c->out[1]);
    if (in && out && at) tn__rows(TN__REALS(max_pool2d_fwd), 2, TN__LIST(out, at), TN__LIST(in), &m);
    tn_scope_end(s);
}

static void max_pool2d_backward_ops(tn_back *b)
{
    const tn_shape x = b->in_shape[0], y = b->gy[0]->l.shape;
    const tn_shape images = {.n = 3, .d = {x.d[0], x.d[1], x.d[2] * x.d[3]}},
                   windows = {.n = 3, .d = {y.d[0], y.d[1], y.d[2] * y.d[3]}};
    tn_tensor *gx = tn_zeros_of(b->gy[0]->dtype, images);
    gx = tn_scatter_add(gx, 2, tn_reshape(b->out[1], windows), tn_reshape(b->gy[0], windows));
    b->gx[0] = tn_reshape(gx, x);
}

#define POOL(k0, k1, s0, s1, p0, p1, d0, d1)                      \
    .args = &(tn__pool)                                           \
    {                                                             \
        {{k0, k1}, {s0, s1}, {p0, p1}, {d0, d1}, 1}, false, { 0 } \
    }
/* clang-format off */
static const tn__sample samples[] = {
    {.in = {{4, {2, 2, 4, 4}}}, .kind = {TN__ARG_DISTINCT}, POOL(2, 2, 2, 2, 0, 0, 1, 1)},
    {.in = {{4, {1, 2, 4, 5}}}, .kind = {TN__ARG_DISTINCT}, POOL(3, 2, 1, 2, 1, 1, 1, 1)}, /* windows overlap */
    {.in = {{4, {1, 1, 5, 6}}}, .kind = {TN__ARG_DISTINCT}, POOL(2, 3, 1, 1, 0, 1, 3, 2)},
    {.in = {{4, {2, 1, 3, 3}}}, .kind = {TN__ARG_DISTINCT}, POOL(3, 3, 3, 3, 0, 0, 1, 1)},
    {.in = {{4, {1, 2, 1, 1}}}, .kind = {TN__ARG_DISTINCT}, POOL(1, 1, 1, 1, 0, 0, 1, 1)},
    {.in = {{4, {0, 2, 3, 3}}}, .kind = {TN__ARG_DISTINCT}, POOL(2, 2, 2, 2, 0, 0, 1, 1)},
    {.in = {{3, {2, 3, 3}}}, POOL(2, 2, 2, 2, 0, 0, 1, 1),
     TN__FAILS(TN_ESHAPE, "max_pool2d: x must be [N, C, H, W], got [2, 3, 3]")},
    {.in = {{4, {1, 2, 3, 3}}}, POOL(2, 4, 2, 2, 0, 0, 1, 1), TN__FAILS(TN_ESHAPE,
     "max_pool2d: a window of size 4 and dilation 1 is larger than the 3 elements of dim 3 with padding 0")},
    {.in = {{4, {1, 2, 3, 3}}}, POOL(2, 2, 2, 2, 2, 0, 1, 1),
     TN__FAILS(TN_EINVAL, "max_pool2d: padding 2 is more than half of the window's size 2")},
    {.in = {{4, {1, 2, 2, 3}}}, POOL(2, 2, 1, 1, 1, 0, 3, 1),
     TN__FAILS(TN_EINVAL, "max_pool2d: with padding 1 and dilation 3, window 0 of dim 2 has no element")},
    {.in = {{4, {1, 2, 3, 3}}}, POOL(2, 0, 2, 2, 0, 0, 1, 1),
     TN__FAILS(TN_EINVAL, "max_pool2d: a window of size 0 in dim 3; it must be at least 1")},
    {.in = {{4, {1, 2, 3, 3}}}, .kind = {TN__ARG_INT}, POOL(2, 2, 2, 2, 0, 0, 1, 1),
     TN__FAILS(TN_EDTYPE, "max_pool2d: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
};
/* clang-format on */

const tn_op tn__op_max_pool2d = {TN__ROOM("max_pool2d", TN_AS_IS),
                                 .inputs = 1,
                                 .outputs = 2,
                                 .args_size = sizeof(tn__pool),
                                 .saves = TN_SAVE_OUT(1),
                                 .infer = max_pool2d_infer,
                                 .forward = max_pool2d_forward,
                                 .backward_ops = max_pool2d_backward_ops};
TN__SAMPLES(max_pool2d, samples);

tn_tensor *tn_max_pool2d_run(tn_pool2d_args a)
{
    const tn__pool p = {.windows = tn__pool_windows(&a)};
    tn_tensor     *y[2];
    if (!tn__no_ignore_padding("tn_max_pool2d", a.ignore_padding)) return NULL;
    tn_op_call(&tn__op_max_pool2d, 1, &a.x, 2, y, &p);
    return y[0];
}

#else /* ======================================================= kernels: an image [H, W] as one row, one real type */

static void TN__(max_pool2d_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const tn__image   *m = args;
    const tn__windows *w = &m->p.windows;
    const TN__REAL    *x = in[0];
    TN__REAL          *y = out[0];
    int64_t           *at = out[1];
    (void)n;
    for (int64_t i = 0; i < m->out[0]; i++) {
        int64_t row, row_first, row_end, col, first, end;
        tn__taps(m, 0, i, &row, &row_first, &row_end);
        for (int64_t j = 0; j < m->out[1]; j++) {
            tn__taps(m, 1, j, &col, &first, &end);
            int64_t found = (row + row_first * w->dilation[0]) * m->in[1] + col + first * w->dilation[1];
            for (int64_t k = row_first; k < row_end; k++) {
                const int64_t line = (row + k * w->dilation[0]) * m->in[1] + col;
                for (int64_t l = first; l < end; l++) { /* no branch: it would be mispredicted often */
                    const int64_t  here = line + l * w->dilation[1];
                    const TN__REAL v = x[here], best = x[found];
                    const int      larger = ((v > best) | (v != v)) & (best == best);
                    found += (here - found) & -(int64_t)larger;
                }
            }
            *y++ = x[found], *at++ = found;
        }
    }
}
#endif
