/* bincount — the number of times that each index occurs, or the sums of weights; made of index_add
 *
 *   gweights = gy at the index */
#include "autograd/rooms/room.h"

typedef struct {
    int64_t minlength;
} args_t;

static int64_t length(const tn_ctx *c)
{
    int64_t n = TN_ARG(c, minlength);
    for (int64_t i = 0, count = tn_numel(c->in[0]); i < count; i++) n = tn__max_i64(n, tn_get_i64(c->in[0], i) + 1);
    return n;
}
static bool is_last(int64_t v) { return v == INT64_MAX; }
static bool bincount_infer(tn_ctx *c)
{
    const tn_tensor *x = c->in[0], *w = c->in[1];
    char             a[192], b[192];
    if (!tn__need_index(c, 0) || (w && !tn__need_real(c, 1))) return false;
    if (x->l.shape.n != 1)
        return tn_infer_fail(c, TN_ESHAPE, "x must be 1-d, got %s", tn_shape_text(x->l.shape, a, sizeof a));
    if (w && !tn_shape_equal(w->l.shape, x->l.shape))
        return tn_infer_fail(c, TN_ESHAPE, "weights %s do not have the shape of x, %s",
                             tn_shape_text(w->l.shape, a, sizeof a), tn_shape_text(x->l.shape, b, sizeof b));
    if (TN_ARG(c, minlength) < 0)
        return tn_infer_fail(c, TN_EINVAL, "minlength is %lld, but must not be negative",
                             (long long)TN_ARG(c, minlength));
    if (tn__find_i64(x, is_last) >= 0)
        return tn_infer_fail(c, TN_EINDEX, "index %lld is too large", (long long)INT64_MAX);
    const int64_t n = length(c);
    return tn__shape_check("bincount", TN_I64, TN_SHAPE(n)) && tn__index_check("bincount", "index", x, n);
}
static void bincount_compose(tn_ctx *c)
{
    const tn_dtype dt = c->in[1] ? c->in[1]->dtype : TN_I64;
    tn_tensor     *src = c->in[1] ? c->in[1] : tn_ones_of(TN_I64, c->in[0]->l.shape);
    c->out[0] = tn_index_add(tn_zeros_of(dt, TN_SHAPE(length(c))), 0, c->in[0], src);
}

/* clang-format off */
static const tn__sample samples[] = {
    {.in = {{1, {9}}}, .kind = {TN__ARG_INDEX, TN__ARG_ABSENT}, .high = {4}, .args = &(args_t){0}},
    {.in = {{1, {7}}, {1, {7}}}, .kind = {TN__ARG_INDEX}, .high = {4, 2}, .low = {0, -2}, .args = &(args_t){6}},
    {.in = {{1, {0}}}, .kind = {TN__ARG_INDEX, TN__ARG_ABSENT}, .args = &(args_t){0}},
    {.in = {{1, {0}}, {1, {0}}}, .kind = {TN__ARG_INDEX}, .args = &(args_t){3}},
    {.in = {{1, {2}}}, .kind = {TN__ARG_INDEX, TN__ARG_ABSENT}, .low = {-1}, .high = {0}, .args = &(args_t){0},
     TN__FAILS(TN_EINDEX, "bincount: index -1 at [0] is outside 0 … -1")},
    {.in = {{2, {2, 2}}}, .kind = {TN__ARG_INDEX, TN__ARG_ABSENT}, .args = &(args_t){0},
     TN__FAILS(TN_ESHAPE, "bincount: x must be 1-d, got [2, 2]")},
    {.in = {{1, {2}}, {1, {3}}}, .kind = {TN__ARG_INDEX}, .args = &(args_t){0},
     TN__FAILS(TN_ESHAPE, "bincount: weights [3] do not have the shape of x, [2]")},
    {.in = {{1, {2}}}, .kind = {TN__ARG_INDEX, TN__ARG_ABSENT}, .args = &(args_t){-1},
     TN__FAILS(TN_EINVAL, "bincount: minlength is -1, but must not be negative")},
};
/* clang-format on */

const tn_op tn__op_bincount = {TN__ROOM("bincount", TN_WIDE), .inputs = 2,
                               .optional = TN__IN(1),         .args_size = sizeof(args_t),
                               .infer = bincount_infer,       .compose = bincount_compose};
TN__SAMPLES(bincount, samples);

tn_tensor *tn_bincount(tn_tensor *x, tn_tensor *weights, int64_t minlength)
{
    return tn_apply_args(&tn__op_bincount, &(args_t){minlength}, x, weights);
}
