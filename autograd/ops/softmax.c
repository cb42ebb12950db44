/* softmax — y_i = exp(x_i) / Σ_j exp(x_j) along one dim
 *
 *   gx = y · (gy - Σ gy·y)          (saves y only)
 *
 * The largest x of the row is subtracted first, so that large inputs do not overflow; sums are computed in f64. An
 * element of -inf gives 0 and has gradient 0; a row of only -inf gives NaN. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
typedef struct {
    int dim;
} args_t;
#define TN__TEMPLATE "autograd/ops/softmax.c"
#include "core/real.h"

static bool softmax_infer(tn_ctx *c)
{
    int dim = TN_ARG(c, dim);
    return tn__infer_real(c) && tn__wrap_dim("softmax", &dim, c->in[0]->l.shape.n);
}
static void softmax_forward(tn_ctx *c)
{
    tn__rows(TN__REALS(softmax_fwd), TN_ARG(c, dim), TN__LIST(c->out[0]), TN__LIST(c->in[0]), NULL);
}

static void softmax_backward(tn_back *b)
{
    if ((b->gx[0] = tn_empty_like(b->gy[0])))
        tn__rows(TN__REALS(softmax_bwd), TN_ARG(b, dim), TN__LIST(b->gx[0]), TN__LIST(b->out[0], b->gy[0]), NULL);
}
static void softmax_backward_ops(tn_back *b)
{
    tn_tensor *y = b->out[0], *gy = b->gy[0],
              *dot = tn_sum(tn_mul(gy, y), .dims = TN_DIMS(TN_ARG(b, dim)), .keepdim = true);
    b->gx[0] = tn_mul(y, tn_sub(gy, dot));
}

/* clang-format off */
static const tn__sample samples[] = {
    {.in = {{1, {5}}}, .args = &(args_t){-1}},
    {.in = {{3, {2, 3, 4}}}, .args = &(args_t){1}},
    {.in = {{2, {3, 4}}}, .args = &(args_t){0}, .low = {80}, .high = {90}}, /* no overflow */
    {.in = {{2, {2, 3}}}, .args = &(args_t){1}, .low = {-1e38}, .high = {-9e37}, .flat_kink = true},
    {.in = {{2, {3, 1}}}, .args = &(args_t){-1}},
    {.in = {{2, {2, 19}}}, .args = &(args_t){-1}},
    {.in = {{2, {0, 3}}}, .args = &(args_t){-1}},
    {.in = {{2, {3, 0}}}, .args = &(args_t){-1}},
    {.in = {{0, {0}}}, .args = &(args_t){0}},
    {.in = {{2, {3, 4}}}, .args = &(args_t){2},
     TN__FAILS(TN_EINDEX, "softmax: dim 2 is out of range for a 2-d tensor")},
    {.in = {{1, {2}}}, .args = &(args_t){0}, .kind = {TN__ARG_INT},
     TN__FAILS(TN_EDTYPE, "softmax: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
};
/* clang-format on */

const tn_op tn__op_softmax = {TN__ROOM("softmax", TN_WIDE), .inputs = 1,
                              .args_size = sizeof(args_t),  .saves = TN_SAVE_OUT(0),
                              .infer = softmax_infer,       .forward = softmax_forward,
                              .backward = softmax_backward, .backward_ops = softmax_backward_ops};
TN__SAMPLES(softmax, samples);

tn_tensor *tn_softmax(tn_tensor *x, int dim) { return tn_apply_args(&tn__op_softmax, &(args_t){dim}, x); }

#else /* =========================================================== kernels: contiguous rows, one real type */

static void TN__(softmax_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *x = in[0];
    TN__REAL       *y = out[0];
    (void)args;
    const double sum = TN__(tn__exp_sum)(n, y, x, TN__(tn__row_max)(n, x));
    tn__kernels()->TN__(rows)->scale(n, y, y, (TN__REAL)(1 / sum));
}

static void TN__(softmax_bwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    (void)args;
    tn__kernels()->TN__(rows)->softmax_back(n, out[0], in[0], in[1]);
}
#endif
