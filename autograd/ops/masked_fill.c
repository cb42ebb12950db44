/* masked_fill — y = value where the mask is true, else x; x and mask broadcast
 *
 *   gx = gy where the mask is false, else 0 */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
typedef struct {
    double value;
} args_t;
#define TN__TEMPLATE "autograd/ops/masked_fill.c"
#define TN__WITH_I64
#include "core/real.h"

static bool masked_fill_infer(tn_ctx *c)
{
    const tn_dtype dt = c->in[0]->dtype, mask = c->in[1]->dtype;
    const double   value = TN_ARG(c, value);
    if (mask != TN_BOOL)
        return tn_infer_fail(c, TN_EDTYPE,
                             "the mask must be bool, got %s; a comparison such as tn_gt(x, y) returns one",
                             tn_dtype_name(mask));
    if (!tn__need_whole(c, 0, value) || !tn__fits("masked_fill", "value", dt, value)) return false;
    c->result[0].dtype = dt;
    return tn__broadcast("masked_fill", c->in[0]->l.shape, c->in[1]->l.shape, &c->result[0].shape);
}
static void masked_fill_forward(tn_ctx *c)
{
    tn__map(TN__NUMBERS(masked_fill_fwd), TN__LIST(c->out[0]), TN__LIST(c->in[0], c->in[1]), c->args);
}
static void masked_fill_backward_ops(tn_back *b) { b->gx[0] = tn_masked_fill(b->gy[0], b->in[1], 0); }

#define MASK(x) .kind = {x, TN__ARG_MASK}
/* clang-format off */
static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}, {2, {3, 4}}}, MASK(TN__ARG_REAL), .args = &(args_t){-3}},
    {.in = {{3, {2, 3, 4}}, {2, {3, 1}}}, MASK(TN__ARG_REAL), .args = &(args_t){0.5}},
    {.in = {{1, {4}}, {3, {2, 1, 4}}}, MASK(TN__ARG_REAL), .args = &(args_t){0}},
    {.in = {{0, {0}}, {0, {0}}}, MASK(TN__ARG_REAL), .args = &(args_t){1}},
    {.in = {{2, {0, 3}}, {1, {3}}}, MASK(TN__ARG_REAL), .args = &(args_t){1}},
    {.in = {{2, {3, 4}}, {1, {4}}}, MASK(TN__ARG_INT), .args = &(args_t){-7}},
    {.in = {{2, {3, 4}}, {1, {4}}}, MASK(TN__ARG_MASK), .args = &(args_t){1}},
    {.in = {{1, {3}}, {1, {3}}}, .args = &(args_t){1},
     TN__FAILS(TN_EDTYPE, "masked_fill: the mask must be bool, got f32; a comparison such as tn_gt(x, y) returns one")},
    {.in = {{1, {3}}, {1, {3}}}, MASK(TN__ARG_INT), .args = &(args_t){0.5},
     TN__FAILS(TN_EDTYPE, "masked_fill: x is i64 and 0.5 is not a whole number; convert x with tn_to(x, TN_F32)")},
    {.in = {{1, {3}}, {1, {3}}}, MASK(TN__ARG_INT), .args = &(args_t){-INFINITY},
     TN__FAILS(TN_EDTYPE, "masked_fill: x is i64 and -inf does not fit in it; convert x with tn_to(x, TN_F64)")},
    {.in = {{1, {3}}, {1, {3}}}, MASK(TN__ARG_REAL), .args = &(args_t){-1e300},
     TN__FAILS(TN_EINVAL, "masked_fill: value -1e+300 is too large for f32")},
    {.in = {{1, {3}}, {1, {4}}}, MASK(TN__ARG_REAL), .args = &(args_t){1},
     TN__FAILS(TN_ESHAPE, "masked_fill: shapes [3] and [4] do not broadcast: dim -1 is 3 in one and 4 in the other")},
};
/* clang-format on */

const tn_op tn__op_masked_fill = {TN__ROOM("masked_fill", TN_AS_IS),
                                  .inputs = 2,
                                  .args_size = sizeof(args_t),
                                  .saves = TN_SAVE_IN(1),
                                  .infer = masked_fill_infer,
                                  .forward = masked_fill_forward,
                                  .backward_ops = masked_fill_backward_ops,
                                  .inplace = true};
TN__SAMPLES(masked_fill, samples);

tn_tensor *tn_masked_fill(tn_tensor *x, tn_tensor *mask, double value)
{
    return tn_apply_args(&tn__op_masked_fill, &(args_t){value}, x, mask);
}
tn_tensor *tn_masked_fill_(tn_tensor *x, tn_tensor *mask, double value)
{
    return tn_apply_args_(&tn__op_masked_fill, &(args_t){value}, x, mask);
}

#else /* ==================================================================== kernels: contiguous, one dtype */

static void TN__(masked_fill_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *x = in[0], *mask = in[1], value = (TN__REAL)((const args_t *)args)->value;
    TN__REAL       *y = out[0];
    for (int64_t i = 0; i < n; i++) {
        const TN__REAL kept = x[i]; /* read unconditionally, so that the loop has no branch */
        y[i] = mask[i] != 0 ? value : kept;
    }
}
#endif
