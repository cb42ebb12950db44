/* avg_pool2d — the mean of the elements under each window; padding counts as zeros, or (ignore_padding) not at all
 *
 *   gx: each gy, divided like the mean, is added to every element of its window (avg_pool2d_grad) */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/windows.h"
#include "core/products/convolve.h"
#define TN__TEMPLATE "autograd/ops/avg_pool2d.c"
#include "core/real.h"

static bool avg_pool2d_infer(tn_ctx *c) { return tn__infer_pool(c, 2); }

static void avg_pool2d_forward(tn_ctx *c)
{
    const int64_t  *x = c->in[0]->l.shape.d, *y = c->out[0]->l.shape.d;
    const tn__image m = {*(const tn__pool *)c->args, {x[2], x[3]}, {y[2], y[3]}};
    tn_scope        s = tn_scope_begin();
    tn_tensor      *in = tn__images(c->in[0]), *out = tn__images(c->out[0]);
    if (in && out) tn__rows(TN__REALS(avg_pool2d_fwd), 2, TN__LIST(out), TN__LIST(in), &m);
    tn_scope_end(s);
}

static void avg_pool2d_backward_ops(tn_back *b)
{
    tn__pool p = *(const tn__pool *)b->args;
    p.in[0] = b->in_shape[0].d[2], p.in[1] = b->in_shape[0].d[3];
    b->gx[0] = tn_apply_args(&tn__op_avg_pool2d_grad, &p, b->gy[0]);
}

#define POOL(k0, k1, s0, s1, p0, p1, d0, d1, ignore)               \
    .args = &(tn__pool)                                            \
    {                                                              \
        {{k0, k1}, {s0, s1}, {p0, p1}, {d0, d1}, 1}, ignore, { 0 } \
    }
/* clang-format off */
static const tn__sample samples[] = {
    {.in = {{4, {2, 2, 4, 4}}}, POOL(2, 2, 2, 2, 0, 0, 1, 1, false)},
    {.in = {{4, {1, 2, 4, 5}}}, POOL(3, 2, 1, 2, 1, 1, 1, 1, false)},
    {.in = {{4, {1, 2, 4, 5}}}, POOL(3, 2, 1, 2, 1, 1, 1, 1, true)},
    {.in = {{4, {1, 1, 5, 6}}}, POOL(2, 3, 1, 1, 0, 1, 3, 2, true)},
    {.in = {{4, {2, 1, 3, 3}}}, POOL(3, 3, 3, 3, 0, 0, 1, 1, false)},
    {.in = {{4, {1, 2, 1, 1}}}, POOL(1, 1, 1, 1, 0, 0, 1, 1, false)},
    {.in = {{4, {2, 0, 3, 3}}}, POOL(2, 2, 2, 2, 0, 0, 1, 1, false)},
    {.in = {{3, {2, 3, 3}}}, POOL(2, 2, 2, 2, 0, 0, 1, 1, false),
     TN__FAILS(TN_ESHAPE, "avg_pool2d: x must be [N, C, H, W], got [2, 3, 3]")},
    {.in = {{4, {1, 2, 3, 3}}}, POOL(4, 2, 2, 2, 0, 0, 1, 1, false), TN__FAILS(TN_ESHAPE,
     "avg_pool2d: a window of size 4 and dilation 1 is larger than the 3 elements of dim 2 with padding 0")},
    {.in = {{4, {1, 2, 3, 3}}}, POOL(2, 2, 2, 2, 0, 2, 1, 1, false),
     TN__FAILS(TN_EINVAL, "avg_pool2d: padding 2 is more than half of the window's size 2")},
    {.in = {{4, {1, 2, 3, 3}}}, .kind = {TN__ARG_INT}, POOL(2, 2, 2, 2, 0, 0, 1, 1, false),
     TN__FAILS(TN_EDTYPE, "avg_pool2d: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
};
/* clang-format on */

const tn_op tn__op_avg_pool2d = {TN__ROOM("avg_pool2d", TN_AS_IS), .inputs = 1,
                                 .args_size = sizeof(tn__pool),    .infer = avg_pool2d_infer,
                                 .forward = avg_pool2d_forward,    .backward_ops = avg_pool2d_backward_ops};
TN__SAMPLES(avg_pool2d, samples);

tn_tensor *tn_avg_pool2d_run(tn_pool2d_args a)
{
    const tn__pool p = {tn__pool_windows(&a), a.ignore_padding, {0}};
    return tn_apply_args(&tn__op_avg_pool2d, &p, a.x);
}

#else /* ======================================================= kernels: an image [H, W] as one row, one real type */

static void TN__(avg_pool2d_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const tn__image   *m = args;
    const tn__windows *w = &m->p.windows;
    const TN__REAL    *x = in[0];
    TN__REAL          *y = out[0];
    (void)n;
    for (int64_t i = 0; i < m->out[0]; i++) {
        int64_t row, row_first, row_end, col, first, end;
        tn__taps(m, 0, i, &row, &row_first, &row_end);
        for (int64_t j = 0; j < m->out[1]; j++) {
            double sum = 0;
            tn__taps(m, 1, j, &col, &first, &end);
            for (int64_t k = row_first; k < row_end; k++) {
                const TN__REAL *line = x + (row + k * w->dilation[0]) * m->in[1];
                for (int64_t l = first; l < end; l++) sum += (double)line[col + l * w->dilation[1]];
            }
            const double count = m->p.ignore_padding ? (double)((row_end - row_first) * (end - first))
                                                     : (double)w->size[0] * (double)w->size[1];
            *y++ = (TN__REAL)(sum / count);
        }
    }
}
#endif
