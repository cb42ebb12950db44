/* avg_pool2d_grad — the gradient of avg_pool2d: from gy [N, C, OH, OW] to x [N, C, H, W]. Each gy, divided like the
 * mean, is added to every element of its window
 *
 * With u the gradient of the result:   g_gy = avg_pool2d(u) */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/windows.h"
#include "core/products/convolve.h"
#define TN__TEMPLATE "autograd/ops/avg_pool2d_grad.c"
#include "core/real.h"

static bool avg_pool2d_grad_infer(tn_ctx *c)
{
    const tn__pool *p = c->args;
    const tn_shape  gy = c->in[0]->l.shape;
    char            text[192];
    int64_t         out[2];
    if (!tn__need_real(c, 0)) return false;
    if (!tn__pool_fit(c, &p->windows, 2, p->in, out)) return false;
    if (gy.n != 4 || gy.d[2] != out[0] || gy.d[3] != out[1])
        return tn_infer_fail(c, TN_ESHAPE, "gradient %s does not match windows on %lld by %lld",
                             tn_shape_text(gy, text, sizeof text), (long long)p->in[0], (long long)p->in[1]);
    c->result[0] = (tn_result){c->in[0]->dtype, {.n = 4, .d = {gy.d[0], gy.d[1], p->in[0], p->in[1]}}};
    return true;
}

static void avg_pool2d_grad_forward(tn_ctx *c)
{
    const int64_t  *y = c->in[0]->l.shape.d, *x = c->out[0]->l.shape.d;
    const tn__image m = {*(const tn__pool *)c->args, {x[2], x[3]}, {y[2], y[3]}};
    tn_scope        s = tn_scope_begin();
    tn_tensor      *in = tn__images(c->in[0]), *out = tn__images(c->out[0]);
    if (in && out) tn__rows(TN__REALS(avg_pool2d_grad_fwd), 2, TN__LIST(out), TN__LIST(in), &m);
    tn_scope_end(s);
}

static void avg_pool2d_grad_backward_ops(tn_back *b)
{
    b->gx[0] = tn_apply_args(&tn__op_avg_pool2d, (const tn__pool *)b->args, b->gy[0]);
}

#define POOL(h, w, k0, k1, s0, s1, p0, p1, d0, d1, ignore)            \
    .args = &(tn__pool)                                               \
    {                                                                 \
        {{k0, k1}, {s0, s1}, {p0, p1}, {d0, d1}, 1}, ignore, { h, w } \
    }
static const tn__sample samples[] = {
    {.in = {{4, {2, 2, 2, 2}}}, POOL(4, 4, 2, 2, 2, 2, 0, 0, 1, 1, false)},
    {.in = {{4, {1, 2, 4, 3}}}, POOL(4, 5, 3, 2, 1, 2, 1, 1, 1, 1, false)},
    {.in = {{4, {1, 2, 4, 3}}}, POOL(4, 5, 3, 2, 1, 2, 1, 1, 1, 1, true)},
    {.in = {{4, {1, 1, 2, 4}}}, POOL(5, 6, 2, 3, 1, 1, 0, 1, 3, 2, true)},
    {.in = {{4, {2, 0, 1, 1}}}, POOL(3, 3, 2, 2, 2, 2, 0, 0, 1, 1, false)},
    {.in = {{4, {2, 2, 2, 2}}},
     POOL(5, 3, 2, 2, 2, 2, 0, 0, 1, 1, false),
     TN__FAILS(TN_ESHAPE, "avg_pool2d_grad: gradient [2, 2, 2, 2] does not match windows on 5 by 3")},
    {.in = {{3, {2, 2, 2}}},
     POOL(4, 4, 2, 2, 2, 2, 0, 0, 1, 1, false),
     TN__FAILS(TN_ESHAPE, "avg_pool2d_grad: gradient [2, 2, 2] does not match windows on 4 by 4")},
};

const tn_op tn__op_avg_pool2d_grad = {
    TN__ROOM("avg_pool2d_grad", TN_AS_IS), .inputs = 1,
    .args_size = sizeof(tn__pool),         .infer = avg_pool2d_grad_infer,
    .forward = avg_pool2d_grad_forward,    .backward_ops = avg_pool2d_grad_backward_ops};
TN__SAMPLES(avg_pool2d_grad, samples);

#else /* ======================================================= kernels: an image [H, W] as one row, one real type */

static void TN__(avg_pool2d_grad_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const tn__image   *m = args;
    const tn__windows *w = &m->p.windows;
    const TN__REAL    *gy = in[0];
    TN__REAL          *gx = out[0];
    (void)n;
    for (int64_t i = 0; i < m->in[0] * m->in[1]; i++) gx[i] = 0;
    for (int64_t i = 0; i < m->out[0]; i++) {
        int64_t row, row_first, row_end, col, first, end;
        tn__taps(m, 0, i, &row, &row_first, &row_end);
        for (int64_t j = 0; j < m->out[1]; j++) {
            tn__taps(m, 1, j, &col, &first, &end);
            const double   count = m->p.ignore_padding ? (double)((row_end - row_first) * (end - first))
                                                       : (double)w->size[0] * (double)w->size[1];
            const TN__REAL share = *gy++ / (TN__REAL)count;
            for (int64_t k = row_first; k < row_end; k++) {
                TN__REAL *line = gx + (row + k * w->dilation[0]) * m->in[1];
                for (int64_t l = first; l < end; l++) line[col + l * w->dilation[1]] += share;
            }
        }
    }
}
#endif
