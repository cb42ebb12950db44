/* conv2d_input_grad — the gradient of conv2d by its input: from gy [N, O, OH, OW] and w to x [N, C, H, W]; a transposed
 * convolution
 *
 * With u the gradient of the result:   g_gy = conv2d(u, w),  gw = weight_grad(u, gy) */
#include "autograd/rooms/windows.h"
#include "core/products/convolve.h"

static bool conv2d_input_grad_infer(tn_ctx *c)
{
    const tn__conv_grad *a = c->args;
    const tn_tensor     *gy = c->in[0], *w = c->in[1];
    const int64_t       *y = gy->l.shape.d, *k = w->l.shape.d, groups = a->windows.groups;
    char                 ys[192], ws[192];
    tn__windows          g = a->windows;
    int64_t              out[2], channels;
    if (!tn__need_real(c, 0) || !tn__need_real(c, 1)) return false;
    tn_shape_text(gy->l.shape, ys, sizeof ys), tn_shape_text(w->l.shape, ws, sizeof ws);
    if (gy->dtype != w->dtype || gy->l.shape.n != 4 || w->l.shape.n != 4 || groups < 1 || y[1] != k[0] ||
        k[0] % groups || a->in[0] < 0 || a->in[1] < 0 || !tn__mul_i64(k[1], groups, &channels))
        return tn_infer_fail(c, TN_ESHAPE, "gradient %s does not match weight %s in %lld groups", ys, ws,
                             (long long)groups);
    g.size[0] = k[2], g.size[1] = k[3];
    if (!tn__windows_fit(c, &g, 2, a->in, out)) return false;
    if (out[0] != y[2] || out[1] != y[3])
        return tn_infer_fail(c, TN_ESHAPE, "gradient %s does not match windows on %lld by %lld", ys,
                             (long long)a->in[0], (long long)a->in[1]);
    c->result[0] = (tn_result){gy->dtype, {.n = 4, .d = {y[0], channels, a->in[0], a->in[1]}}};
    return true;
}

static void conv2d_input_grad_forward(tn_ctx *c)
{
    tn__windows g = ((const tn__conv_grad *)c->args)->windows;
    g.size[0] = c->in[1]->l.shape.d[2], g.size[1] = c->in[1]->l.shape.d[3];
    tn__convolve_input(&g, c->out[0], c->in[1], c->in[0]);
}

static unsigned conv2d_input_grad_saves_for(const bool *need)
{
    return (need[0] ? TN_SAVE_IN(1) : 0) | (need[1] ? TN_SAVE_IN(0) : 0);
}
static void conv2d_input_grad_backward_ops(tn_back *b)
{
    tn__conv_grad a = *(const tn__conv_grad *)b->args;
    a.windows.size[0] = b->in_shape[1].d[2], a.windows.size[1] = b->in_shape[1].d[3];
    if (b->need[0]) b->gx[0] = tn_op_apply(&tn__op_conv2d, &a.windows, 3, (tn_tensor *[]){b->gy[0], b->in[1], NULL});
    if (b->need[1]) b->gx[1] = tn_apply_args(&tn__op_conv2d_weight_grad, &a, b->gy[0], b->in[0]);
}

#define CONV(h, w, s0, s1, p0, p1, d0, d1, groups)            \
    .args = &(tn__conv_grad)                                  \
    {                                                         \
        {{0}, {s0, s1}, {p0, p1}, {d0, d1}, groups}, { h, w } \
    }
static const tn__sample samples[] = {
    {.in = {{4, {2, 3, 3, 2}}, {4, {3, 2, 2, 3}}}, CONV(4, 4, 1, 1, 0, 0, 1, 1, 1)},
    {.in = {{4, {1, 2, 3, 4}}, {4, {2, 1, 3, 3}}}, CONV(3, 4, 1, 1, 1, 1, 1, 1, 1)},
    {.in = {{4, {1, 4, 2, 2}}, {4, {4, 2, 2, 2}}}, CONV(5, 3, 2, 1, 0, 0, 2, 1, 2)},
    {.in = {{4, {2, 2, 2, 2}}, {4, {2, 3, 1, 1}}}, CONV(2, 2, 1, 1, 0, 0, 1, 1, 1)},
    {.in = {{4, {0, 2, 2, 2}}, {4, {2, 3, 2, 2}}}, CONV(3, 3, 1, 1, 0, 0, 1, 1, 1)},
    {.in = {{4, {1, 0, 2, 2}}, {4, {0, 3, 2, 2}}}, CONV(3, 3, 1, 1, 0, 0, 1, 1, 1)}, /* zeros */
    {.in = {{4, {1, 2, 2, 2}}, {4, {3, 2, 2, 2}}},
     CONV(3, 3, 1, 1, 0, 0, 1, 1, 1),
     TN__FAILS(TN_ESHAPE, "conv2d_input_grad: gradient [1, 2, 2, 2] does not match weight [3, 2, 2, 2] in 1 groups")},
    {.in = {{4, {1, 3, 2, 2}}, {4, {3, 2, 2, 2}}},
     CONV(4, 3, 1, 1, 0, 0, 1, 1, 1),
     TN__FAILS(TN_ESHAPE, "conv2d_input_grad: gradient [1, 3, 2, 2] does not match windows on 4 by 3")},
};

const tn_op tn__op_conv2d_input_grad = {
    TN__ROOM("conv2d_input_grad", TN_JOIN),   .inputs = 2,
    .args_size = sizeof(tn__conv_grad),       .saves = TN_SAVE_IN(0) | TN_SAVE_IN(1),
    .saves_for = conv2d_input_grad_saves_for, .infer = conv2d_input_grad_infer,
    .forward = conv2d_input_grad_forward,     .backward_ops = conv2d_input_grad_backward_ops};
TN__SAMPLES(conv2d_input_grad, samples);
