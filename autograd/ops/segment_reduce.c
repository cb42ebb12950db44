/* segment_reduce — sums, products, minima or maxima of consecutive slices of dim 0, lengths[i] of them for slice i of
 * the result; made of scatter into 0, 1, ∞ or -∞, which an empty segment keeps */
#include "autograd/rooms/room.h"

typedef struct {
    tn_scatter_mode how;
} args_t;

static bool segment_reduce_infer(tn_ctx *c)
{
    const tn_tensor *x = c->in[0], *lengths = c->in[1];
    char             text[192];
    int64_t          sum = 0;
    if (!tn__need_real(c, 0) || !tn__need_index(c, 1)) return false;
    if (x->l.shape.n < 1 || lengths->l.shape.n != 1)
        return tn_infer_fail(c, TN_ESHAPE, "x must have a dim and the lengths must be 1-d, got lengths %s",
                             tn_shape_text(lengths->l.shape, text, sizeof text));
    if (TN_ARG(c, how) == TN_SCATTER_SET)
        return tn_infer_fail(c, TN_EINVAL, "TN_SCATTER_SET combines nothing; pass TN_SCATTER_SUM, PROD, AMIN or AMAX");
    for (int64_t i = 0, n = tn_numel(lengths); i < n; i++) {
        const int64_t v = tn_get_i64(lengths, i);
        if (v < 0 || v > x->l.shape.d[0] - sum)
            return tn_infer_fail(c, TN_EINVAL, "length %lld at [%lld], but %lld of %lld slices are left", (long long)v,
                                 (long long)i, (long long)(x->l.shape.d[0] - sum), (long long)x->l.shape.d[0]);
        sum += v;
    }
    if (sum == x->l.shape.d[0]) return true;
    return tn_infer_fail(c, TN_EINVAL, "the lengths add up to %lld, but x has %lld slices", (long long)sum,
                         (long long)x->l.shape.d[0]);
}
static void segment_reduce_compose(tn_ctx *c)
{
    static const double   empty[] = {0, 0, 1, INFINITY, -INFINITY};
    const tn_scatter_mode how = TN_ARG(c, how);
    tn_tensor            *x = c->in[0];
    tn_shape              s = x->l.shape, one = s;
    tn_tensor            *index = tn_empty_of(TN_I64, TN_SHAPE(s.d[0]));
    int64_t              *to = index ? tn__ptr(index) : NULL;
    for (int64_t i = 0, n = tn_numel(c->in[1]); to && i < n; i++)
        for (int64_t k = tn_get_i64(c->in[1], i); k > 0; k--) *to++ = i;
    for (int i = 1; i < s.n; i++) one.d[i] = 1;
    s.d[0] = tn_numel(c->in[1]);
    index = tn_expand(tn_reshape(index, one), x->l.shape);
    c->out[0] = tn_scatter_reduce(tn_full_of(x->dtype, s, empty[how]), 0, index, x, how);
}

#define HOW(how, from, to) \
    .kind = {0, TN__ARG_INDEX}, .low = {0.5, from}, .high = {1.5, to}, .args = &(args_t) { TN_SCATTER_##how }
/* clang-format off */
static const tn__sample samples[] = {
    {.in = {{2, {6, 3}}, {1, {3}}}, HOW(SUM, 2, 3)},
    {.in = {{1, {6}}, {1, {2}}}, HOW(PROD, 3, 4)},
    {.in = {{3, {4, 2, 3}}, {1, {4}}}, HOW(AMIN, 1, 2)},
    {.in = {{2, {6, 2}}, {1, {2}}}, HOW(AMAX, 3, 4)},
    {.in = {{2, {0, 3}}, {1, {2}}}, HOW(SUM, 0, 1)},
    {.in = {{2, {0, 3}}, {1, {0}}}, HOW(PROD, 0, 1)},
    {.in = {{1, {5}}, {1, {2}}}, HOW(SUM, 3, 4),
     TN__FAILS(TN_EINVAL, "segment_reduce: length 3 at [1], but 2 of 5 slices are left")},
    {.in = {{1, {7}}, {1, {2}}}, HOW(SUM, 3, 4),
     TN__FAILS(TN_EINVAL, "segment_reduce: the lengths add up to 6, but x has 7 slices")},
    {.in = {{1, {6}}, {1, {2}}}, HOW(SET, 3, 4),
     TN__FAILS(TN_EINVAL, "segment_reduce: TN_SCATTER_SET combines nothing; pass TN_SCATTER_SUM, PROD, AMIN or AMAX")},
    {.in = {{1, {6}}, {2, {2, 1}}}, HOW(SUM, 3, 4),
     TN__FAILS(TN_ESHAPE, "segment_reduce: x must have a dim and the lengths must be 1-d, got lengths [2, 1]")},
};
/* clang-format on */

const tn_op tn__op_segment_reduce = {TN__ROOM("segment_reduce", TN_WIDE), .inputs = 2, .args_size = sizeof(args_t),
                                     .infer = segment_reduce_infer, .compose = segment_reduce_compose};
TN__SAMPLES(segment_reduce, samples);

tn_tensor *tn_segment_reduce(tn_tensor *x, tn_tensor *lengths, tn_scatter_mode how)
{
    if (tn__blocked() || !tn__scatter_mode_valid("segment_reduce", how)) return NULL;
    return tn_apply_args(&tn__op_segment_reduce, &(args_t){how}, x, lengths);
}
