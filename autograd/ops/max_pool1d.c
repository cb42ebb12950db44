/* max_pool1d — the largest element under each window; padding counts as -inf and NaN as the largest
 *
 * x [N, C, L]. Computed as max_pool2d on images of one row. */
#include "autograd/rooms/windows.h"

static bool max_pool1d_infer(tn_ctx *c) { return tn__infer_pool(c, 1); }
static void max_pool1d_compose(tn_ctx *c)
{
    tn_tensor *x = tn__as_rows(c->in[0]), *y[2];
    tn_op_call(&tn__op_max_pool2d, 1, &x, 2, y, c->args);
    c->out[0] = tn__from_rows(y[0]);
}

#define POOL(size, stride, padding, dilation)                                  \
    .args = &(tn__pool)                                                        \
    {                                                                          \
        {{1, size}, {1, stride}, {0, padding}, {1, dilation}, 1}, false, { 0 } \
    }
/* clang-format off */
static const tn__sample samples[] = {
    {.in = {{3, {2, 3, 6}}}, .kind = {TN__ARG_DISTINCT}, POOL(2, 2, 0, 1)},
    {.in = {{3, {1, 2, 7}}}, .kind = {TN__ARG_DISTINCT}, POOL(3, 1, 1, 1)},
    {.in = {{3, {2, 1, 8}}}, .kind = {TN__ARG_DISTINCT}, POOL(3, 2, 1, 2)},
    {.in = {{3, {2, 2, 5}}}, .kind = {TN__ARG_DISTINCT}, POOL(5, 5, 0, 1)}, /* over the whole length */
    {.in = {{3, {2, 2, 1}}}, .kind = {TN__ARG_DISTINCT}, POOL(1, 1, 0, 1)},
    {.in = {{3, {0, 2, 4}}}, .kind = {TN__ARG_DISTINCT}, POOL(2, 2, 0, 1)},
    {.in = {{2, {3, 4}}}, POOL(2, 2, 0, 1), TN__FAILS(TN_ESHAPE, "max_pool1d: x must be [N, C, L], got [3, 4]")},
    {.in = {{3, {1, 3, 4}}}, POOL(5, 5, 0, 1), TN__FAILS(TN_ESHAPE,
     "max_pool1d: a window of size 5 and dilation 1 is larger than the 4 elements of dim 2 with padding 0")},
    {.in = {{3, {1, 3, 4}}}, POOL(3, 1, 2, 1),
     TN__FAILS(TN_EINVAL, "max_pool1d: padding 2 is more than half of the window's size 3")},
    {.in = {{3, {1, 3, 4}}}, POOL(3, -1, 1, 1),
     TN__FAILS(TN_EINVAL, "max_pool1d: stride must be 1 to 2147483647, got -1")},
};
/* clang-format on */

const tn_op tn__op_max_pool1d = {TN__ROOM("max_pool1d", TN_AS_IS), .inputs = 1, .args_size = sizeof(tn__pool),
                                 .infer = max_pool1d_infer, .compose = max_pool1d_compose};
TN__SAMPLES(max_pool1d, samples);

tn_tensor *tn_max_pool1d_run(tn_pool1d_args a)
{
    const tn__pool p = {tn__pool_windows_1d(&a), false, {0}};
    if (!tn__no_ignore_padding("tn_max_pool1d", a.ignore_padding)) return NULL;
    return tn_apply_args(&tn__op_max_pool1d, &p, a.x);
}
