/* linear_act — y = f(v), v = x Wᵀ + b over the last dim of x, with f applied while the product is still in the cache:
 * linear_gelu, linear_relu
 *
 *   gv = gy · f'(v), and as in linear.c:  gx = gv W,  gW = gvᵀ x,  gb = Σ gv over all rows of x
 *
 * For gelu v is a hidden second result for the backward; it is empty if the call is not recorded. relu needs only y. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/linear.h"
#include "autograd/rooms/q8.h"
#include "autograd/tape/tape.h"
#include "core/kernels/vecmath.h"
typedef struct {
    bool tanh; /* gelu by the approximation with tanh */
} args_t;
#define TN__TEMPLATE "autograd/ops/linear_act.c"
#include "core/real.h"

static void backward_by(tn_back *b, tn__kernel_set slope, tn_tensor *of)
{
    tn_tensor *g = tn__grad_room(b);
    if (!g) return;
    tn__map(slope, TN__LIST(g), TN__LIST(of, b->gy[0]), NULL);
    tn__linear_backward(b, g);
}

/* ---- gelu -------------------------------------------------------------------------------------------------------- */

static bool linear_gelu_infer(tn_ctx *c)
{
    bool tape = false;
    if (!tn__infer_linear(c)) return false;
    for (int i = 0; i < 3; i++) tape = tape || (c->in[i] && tn__needs_grad(c->in[i]));
    c->result[1] = c->result[0];
    if (!tape || tn__self.mode.no_grad) c->result[1].shape = TN_SHAPE(0);
    return true;
}
static void linear_gelu_forward(tn_ctx *c)
{
    tn_tensor *pre = tn_shape_equal(c->out[1]->l.shape, c->out[0]->l.shape) ? c->out[1] : NULL;
    tn__linear_forward(c, TN_ARG(c, tanh) ? TN__ACT_GELU_TANH : TN__ACT_GELU, pre);
}
static void linear_gelu_backward(tn_back *b)
{
    backward_by(b, TN_ARG(b, tanh) ? TN__REALS(gelu_tanh_slope) : TN__REALS(gelu_slope), b->out[1]);
}
static void linear_gelu_backward_ops(tn_back *b)
{
    tn_tensor *v = tn_linear(b->in[0], b->in[1], b->in[2]);
    tn__linear_backward(b, tn_mul(b->gy[0], TN_ARG(b, tanh) ? tn__gelu_tanh_derivative(v) : tn__gelu_derivative(v)));
}

#define EXACT \
    .args = &(args_t) { false }
#define TANH \
    .args = &(args_t) { true }
/* clang-format off */
static const tn__sample gelu_samples[] = {
    {.in = {{2, {3, 4}}, {2, {2, 4}}, {1, {2}}}, EXACT},
    {.in = {{3, {2, 3, 4}}, {2, {5, 4}}, {1, {5}}}, TANH},
    {.in = {{3, {2, 3, 4}}, {2, {3, 4}}}, .kind = {0, 0, TN__ARG_ABSENT}, EXACT},
    {.in = {{1, {4}}, {2, {3, 4}}, {1, {3}}}, EXACT},
    {.in = {{2, {3, 1}}, {2, {1, 1}}, {1, {1}}}, TANH},
    {.in = {{2, {0, 4}}, {2, {3, 4}}, {1, {3}}}, EXACT},
    {.in = {{2, {2, 0}}, {2, {3, 0}}, {1, {3}}}, EXACT}, /* only the bias */
    {.in = {{2, {2, 4}}, {2, {0, 4}}, {1, {0}}}, EXACT},
    {.in = {{2, {2, 3}}, {2, {2, 4}}, {1, {2}}}, EXACT,
     TN__FAILS(TN_ESHAPE, "linear_gelu: x [2, 3] does not fit weight [2, 4] ([out, in]): its last dim must be 4")},
    {.in = {{2, {2, 3}}, {2, {2, 3}}}, .kind = {0, TN__ARG_ABSENT, TN__ARG_ABSENT}, EXACT,
     TN__FAILS(TN_EINVAL, "linear_gelu: weight is NULL")},
};
/* clang-format on */

const tn_op tn__op_linear_gelu = {TN__ROOM("linear_gelu", TN_NARROW(3)),
                                  .inputs = 3,
                                  .outputs = 2,
                                  .optional = TN__FIRST_IN(3),
                                  .saves = TN_SAVE_IN(0) | TN_SAVE_IN(1) | TN_SAVE_IN(2) | TN_SAVE_OUT(1),
                                  .args_size = sizeof(args_t),
                                  .infer = linear_gelu_infer,
                                  .forward = linear_gelu_forward,
                                  .backward = linear_gelu_backward,
                                  .backward_ops = linear_gelu_backward_ops};
TN__SAMPLES(linear_gelu, gelu_samples);

static tn_tensor *linear_gelu(tn_tensor *x, tn_tensor *weight, tn_tensor *bias, bool tanh)
{
    if (tn_is_packed(weight)) return tn__linear_q8(x, weight, bias, tanh ? TN__ACT_GELU_TANH : TN__ACT_GELU);
    tn_tensor *in[3] = {x, weight, bias}, *out[2];
    tn__promote_all(3, in);
    tn_op_call(&tn__op_linear_gelu, 3, in, 2, out, &(args_t){tanh});
    return out[0];
}
tn_tensor *tn_linear_gelu(tn_tensor *x, tn_tensor *weight, tn_tensor *bias)
{
    return linear_gelu(x, weight, bias, false);
}
tn_tensor *tn_linear_gelu_tanh(tn_tensor *x, tn_tensor *weight, tn_tensor *bias)
{
    return linear_gelu(x, weight, bias, true);
}

/* ---- relu -------------------------------------------------------------------------------------------------------- */

static void     linear_relu_forward(tn_ctx *c) { tn__linear_forward(c, TN__ACT_RELU, NULL); }
static unsigned linear_relu_saves_for(const bool *need)
{
    return TN_SAVE_OUT(0) | (need[0] ? TN_SAVE_IN(1) : 0) | (need[1] ? TN_SAVE_IN(0) : 0);
}
static void linear_relu_backward(tn_back *b) { backward_by(b, TN__REALS(relu_slope), b->out[0]); }
static void linear_relu_backward_ops(tn_back *b)
{
    tn__linear_backward(b, tn_masked_fill(b->gy[0], tn_le(b->out[0], tn_scalar(0)), 0));
}

static const tn__sample relu_samples[] = {
    {.in = {{2, {3, 4}}, {2, {2, 4}}, {1, {2}}}, .low = {-1, -1, 5}, .high = {1, 1, 6}},
    {.in = {{3, {2, 3, 4}}, {2, {5, 4}}, {1, {5}}}, .low = {-1, -1, -6}, .high = {1, 1, -5}},
    {.in = {{3, {2, 3, 4}}, {2, {3, 4}}}, .kind = {0, 0, TN__ARG_ABSENT}, .low = {0.5, 0.5}, .high = {1, 2}},
    {.in = {{1, {4}}, {2, {3, 4}}, {1, {3}}}, .low = {0.5, -1}, .high = {1, -0.5}},
    {.in = {{2, {0, 4}}, {2, {3, 4}}, {1, {3}}}},
    {.in = {{2, {2, 0}}, {2, {3, 0}}, {1, {3}}}, .low = {0, 0, 0.5}, .high = {1, 1, 1}}, /* only the bias */
    {.in = {{2, {2, 4}}, {2, {0, 4}}, {1, {0}}}},
    {.in = {{2, {2, 3}}, {2, {2, 3}}, {1, {3}}},
     TN__FAILS(TN_ESHAPE, "linear_relu: bias [3] does not fit weight [2, 3] ([out, in]): it must be [2]")},
};

const tn_op tn__op_linear_relu = {TN__ROOM("linear_relu", TN_NARROW(3)),
                                  .inputs = 3,
                                  .optional = TN__FIRST_IN(3),
                                  .saves = TN_SAVE_IN(0) | TN_SAVE_IN(1) | TN_SAVE_OUT(0),
                                  .saves_for = linear_relu_saves_for,
                                  .infer = tn__infer_linear,
                                  .forward = linear_relu_forward,
                                  .backward = linear_relu_backward,
                                  .backward_ops = linear_relu_backward_ops};
TN__SAMPLES(linear_relu, relu_samples);

tn_tensor *tn_linear_relu(tn_tensor *x, tn_tensor *weight, tn_tensor *bias)
{
    if (tn_is_packed(weight)) return tn__linear_q8(x, weight, bias, TN__ACT_RELU);
    tn_tensor *in[3] = {x, weight, bias};
    tn__promote_all(3, in);
    return tn_op_apply(&tn__op_linear_relu, NULL, 3, in);
}

#else /* ================================================================ kernels: contiguous, one real type */

static void TN__(gelu_slope)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    (void)args;
    TN__(tn__gelu_slope)(n, out[0], in[0], in[1]);
}
static void TN__(gelu_tanh_slope)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    (void)args;
    TN__(tn__gelu_tanh_slope)(n, out[0], in[0], in[1]);
}
static void TN__(relu_slope)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *y = in[0], *gy = in[1];
    TN__REAL       *gx = out[0];
    (void)args;
    for (int64_t i = 0; i < n; i++) {
        const TN__REAL g = gy[i]; /* read unconditionally, so that the loop has no branch */
        gx[i] = y[i] <= 0 ? 0 : g;
    }
}
#endif
