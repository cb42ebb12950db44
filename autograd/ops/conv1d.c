/* conv1d — y[n, o, t] = b[o] + Σ w[o, c, k] · x[n, c, t · stride + k · dilation - padding]
 *
 * x [N, C, L], w [O, C/groups, K], b [O] or NULL. Computed as conv2d on images of one row. */
#include "autograd/rooms/windows.h"
#include "core/products/convolve.h"

static bool conv1d_infer(tn_ctx *c) { return tn__infer_convolution(c, 1); }
static void conv1d_compose(tn_ctx *c)
{
    tn_tensor *in[3] = {tn__as_rows(c->in[0]), tn__as_rows(c->in[1]), c->in[2]};
    c->out[0] = tn__from_rows(tn_op_apply(&tn__op_conv2d, c->args, 3, in));
}

#define WINDOWS(s0, s1, p0, p1, d0, d1, groups) \
    .args = &(tn__windows) { {0}, {s0, s1}, {p0, p1}, {d0, d1}, groups }
/* clang-format off */
static const tn__sample samples[] = {
    {.in = {{3, {2, 3, 6}}, {3, {4, 3, 3}}, {1, {4}}}, WINDOWS(1, 1, 0, 0, 1, 1, 1)},
    {.in = {{3, {2, 2, 5}}, {3, {3, 2, 2}}}, .kind = {0, 0, TN__ARG_ABSENT}, WINDOWS(1, 1, 0, 2, 1, 1, 1)},
    {.in = {{3, {1, 2, 9}}, {3, {2, 2, 3}}, {1, {2}}}, WINDOWS(1, 2, 0, 1, 1, 3, 1)},
    {.in = {{3, {2, 4, 5}}, {3, {6, 2, 2}}, {1, {6}}}, WINDOWS(1, 1, 0, 0, 1, 1, 2)},
    {.in = {{3, {2, 3, 1}}, {3, {2, 3, 1}}, {1, {2}}}, WINDOWS(1, 1, 0, 0, 1, 1, 1)},
    {.in = {{3, {0, 3, 4}}, {3, {2, 3, 2}}, {1, {2}}}, WINDOWS(1, 1, 0, 0, 1, 1, 1)},
    {.in = {{2, {3, 4}}, {3, {2, 3, 2}}, {1, {2}}}, WINDOWS(1, 1, 0, 0, 1, 1, 1),
     TN__FAILS(TN_ESHAPE, "conv1d: x must be [N, C, L], got [3, 4]")},
    {.in = {{3, {1, 3, 4}}, {2, {2, 3}}, {1, {2}}}, WINDOWS(1, 1, 0, 0, 1, 1, 1),
     TN__FAILS(TN_ESHAPE, "conv1d: weight must be [out, in/groups, K], got [2, 3]")},
    {.in = {{3, {1, 3, 4}}, {3, {2, 3, 5}}, {1, {2}}}, WINDOWS(1, 1, 0, 0, 1, 1, 1), TN__FAILS(TN_ESHAPE,
     "conv1d: a window of size 5 and dilation 1 is larger than the 4 elements of dim 2 with padding 0")},
    {.in = {{3, {1, 3, 4}}, {3, {2, 3, 0}}, {1, {2}}}, WINDOWS(1, 1, 0, 0, 1, 1, 1),
     TN__FAILS(TN_EINVAL, "conv1d: a window of size 0 in dim 2; it must be at least 1")},
    {.in = {{3, {1, 3, 4}}, {3, {2, 3, 2}}}, .kind = {TN__ARG_ABSENT, 0, TN__ARG_ABSENT}, WINDOWS(1, 1, 0, 0, 1, 1, 1),
     TN__FAILS(TN_EINVAL, "conv1d: x is NULL")},
};
/* clang-format on */

const tn_op tn__op_conv1d = {TN__ROOM("conv1d", TN_NARROW(3)), .inputs = 3,           .optional = TN__FIRST_IN(3),
                             .args_size = sizeof(tn__windows), .infer = conv1d_infer, .compose = conv1d_compose};
TN__SAMPLES(conv1d, samples);

tn_tensor *tn_conv1d_run(tn_conv1d_args a)
{
    tn_tensor        *in[3] = {a.x, a.weight, a.bias};
    const tn__windows g = {{0, 0}, {1, a.stride}, {0, a.padding}, {1, a.dilation}, a.groups};
    tn__promote_all(3, in);
    return tn_op_apply(&tn__op_conv1d, &g, 3, in);
}
