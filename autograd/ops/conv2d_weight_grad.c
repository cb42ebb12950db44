/* conv2d_weight_grad — the gradient of conv2d by its weight [O, C/groups, KH, KW], from x [N, C, H, W] and gy [N, O,
 * OH, OW]: each element is the product of gy and the x under that tap, summed over images and positions
 *
 * With u the gradient of the result:   gx = input_grad(gy, u),  g_gy = conv2d(x, u) */
#include "autograd/rooms/windows.h"
#include "core/products/convolve.h"

static bool conv2d_weight_grad_infer(tn_ctx *c)
{
    const tn__conv_grad *a = c->args;
    const tn__windows   *g = &a->windows;
    const tn_tensor     *tx = c->in[0], *gy = c->in[1];
    const int64_t       *x = tx->l.shape.d, *y = gy->l.shape.d;
    char                 ys[192], xs[192];
    int64_t              out[2];
    if (!tn__need_real(c, 0) || !tn__need_real(c, 1)) return false;
    tn_shape_text(gy->l.shape, ys, sizeof ys), tn_shape_text(tx->l.shape, xs, sizeof xs);
    if (gy->dtype != tx->dtype || gy->l.shape.n != 4 || tx->l.shape.n != 4 || g->groups < 1 || y[0] != x[0] ||
        x[1] % g->groups || y[1] % g->groups)
        return tn_infer_fail(c, TN_ESHAPE, "gradient %s does not match x %s in %lld groups", ys, xs,
                             (long long)g->groups);
    if (!tn__windows_fit(c, g, 2, (int64_t[]){x[2], x[3]}, out)) return false;
    if (out[0] != y[2] || out[1] != y[3])
        return tn_infer_fail(c, TN_ESHAPE, "gradient %s does not match windows of %lld by %lld on x %s", ys,
                             (long long)g->size[0], (long long)g->size[1], xs);
    c->result[0] = (tn_result){gy->dtype, {.n = 4, .d = {y[1], x[1] / g->groups, g->size[0], g->size[1]}}};
    return true;
}

static void conv2d_weight_grad_forward(tn_ctx *c)
{
    tn__convolve_weight(&((const tn__conv_grad *)c->args)->windows, c->in[0], c->out[0], c->in[1]);
}

static unsigned conv2d_weight_grad_saves_for(const bool *need)
{
    return (need[0] ? TN_SAVE_IN(1) : 0) | (need[1] ? TN_SAVE_IN(0) : 0);
}
static void conv2d_weight_grad_backward_ops(tn_back *b)
{
    tn__conv_grad a = *(const tn__conv_grad *)b->args;
    a.in[0] = b->in_shape[0].d[2], a.in[1] = b->in_shape[0].d[3];
    if (b->need[0]) b->gx[0] = tn_apply_args(&tn__op_conv2d_input_grad, &a, b->in[1], b->gy[0]);
    if (b->need[1]) b->gx[1] = tn_op_apply(&tn__op_conv2d, &a.windows, 3, (tn_tensor *[]){b->in[0], b->gy[0], NULL});
}

#define CONV(h, w, s0, s1, p0, p1, d0, d1, groups)            \
    .args = &(tn__conv_grad)                                  \
    {                                                         \
        {{h, w}, {s0, s1}, {p0, p1}, {d0, d1}, groups}, { 0 } \
    }
/* clang-format off */
static const tn__sample samples[] = {
    {.in = {{4, {2, 2, 4, 4}}, {4, {2, 3, 3, 2}}}, CONV(2, 3, 1, 1, 0, 0, 1, 1, 1)},
    {.in = {{4, {1, 1, 3, 4}}, {4, {1, 2, 3, 4}}}, CONV(3, 3, 1, 1, 1, 1, 1, 1, 1)},
    {.in = {{4, {1, 4, 5, 3}}, {4, {1, 4, 2, 2}}}, CONV(2, 2, 2, 1, 0, 0, 2, 1, 2)},
    {.in = {{4, {2, 3, 2, 2}}, {4, {2, 2, 2, 2}}}, CONV(1, 1, 1, 1, 0, 0, 1, 1, 1)},
    {.in = {{4, {0, 2, 3, 3}}, {4, {0, 2, 2, 2}}}, CONV(2, 2, 1, 1, 0, 0, 1, 1, 1)}, /* zeros */
    {.in = {{4, {2, 2, 3, 3}}, {4, {1, 2, 2, 2}}}, CONV(2, 2, 1, 1, 0, 0, 1, 1, 1),
     TN__FAILS(TN_ESHAPE, "conv2d_weight_grad: gradient [1, 2, 2, 2] does not match x [2, 2, 3, 3] in 1 groups")},
    {.in = {{4, {1, 2, 3, 3}}, {4, {1, 2, 2, 2}}}, CONV(3, 2, 1, 1, 0, 0, 1, 1, 1), TN__FAILS(TN_ESHAPE,
     "conv2d_weight_grad: gradient [1, 2, 2, 2] does not match windows of 3 by 2 on x [1, 2, 3, 3]")},
};
/* clang-format on */

const tn_op tn__op_conv2d_weight_grad = {
    TN__ROOM("conv2d_weight_grad", TN_JOIN),   .inputs = 2,
    .args_size = sizeof(tn__conv_grad),        .saves = TN_SAVE_IN(0) | TN_SAVE_IN(1),
    .saves_for = conv2d_weight_grad_saves_for, .infer = conv2d_weight_grad_infer,
    .forward = conv2d_weight_grad_forward,     .backward_ops = conv2d_weight_grad_backward_ops};
TN__SAMPLES(conv2d_weight_grad, samples);
