/* avg_pool1d — the mean of the elements under each window; padding counts as zeros, or (ignore_padding) not at all
 *
 * x [N, C, L]. Computed as avg_pool2d on images of one row. */
#include "autograd/rooms/windows.h"

static bool avg_pool1d_infer(tn_ctx *c) { return tn__infer_pool(c, 1); }
static void avg_pool1d_compose(tn_ctx *c)
{
    c->out[0] = tn__from_rows(tn_apply_args(&tn__op_avg_pool2d, c->args, tn__as_rows(c->in[0])));
}

#define POOL(size, stride, padding, dilation, ignore)                           \
    .args = &(tn__pool)                                                         \
    {                                                                           \
        {{1, size}, {1, stride}, {0, padding}, {1, dilation}, 1}, ignore, { 0 } \
    }
/* clang-format off */
static const tn__sample samples[] = {
    {.in = {{3, {2, 3, 6}}}, POOL(2, 2, 0, 1, false)},
    {.in = {{3, {1, 2, 7}}}, POOL(3, 1, 1, 1, false)},
    {.in = {{3, {2, 1, 8}}}, POOL(3, 2, 1, 2, true)},
    {.in = {{3, {2, 2, 5}}}, POOL(5, 5, 0, 1, false)}, /* over the whole length */
    {.in = {{3, {2, 2, 1}}}, POOL(1, 1, 0, 1, false)},
    {.in = {{3, {0, 2, 4}}}, POOL(2, 2, 0, 1, false)},
    {.in = {{2, {3, 4}}}, POOL(2, 2, 0, 1, false), TN__FAILS(TN_ESHAPE, "avg_pool1d: x must be [N, C, L], got [3, 4]")},
    {.in = {{3, {1, 3, 4}}}, POOL(5, 5, 0, 1, false), TN__FAILS(TN_ESHAPE,
     "avg_pool1d: a window of size 5 and dilation 1 is larger than the 4 elements of dim 2 with padding 0")},
    {.in = {{3, {1, 3, 4}}}, POOL(3, 1, 2, 1, false),
     TN__FAILS(TN_EINVAL, "avg_pool1d: padding 2 is more than half of the window's size 3")},
    {.in = {{3, {1, 3, 4}}}, POOL(3, -1, 1, 1, false),
     TN__FAILS(TN_EINVAL, "avg_pool1d: stride must be 1 to 2147483647, got -1")},
};
/* clang-format on */

const tn_op tn__op_avg_pool1d = {TN__ROOM("avg_pool1d", TN_AS_IS), .inputs = 1, .args_size = sizeof(tn__pool),
                                 .infer = avg_pool1d_infer, .compose = avg_pool1d_compose};
TN__SAMPLES(avg_pool1d, samples);

tn_tensor *tn_avg_pool1d_run(tn_pool1d_args a)
{
    const tn__pool p = {tn__pool_windows_1d(&a), a.ignore_padding, {0}};
    return tn_apply_args(&tn__op_avg_pool1d, &p, a.x);
}
