/* log_softmax — y_i = x_i - log Σ_j exp(x_j) along one dim
 *
 *   gx = gy - exp(y) · Σ gy          (saves y only)
 *
 * The largest x of the row is subtracted first; sums are computed in f64, so that y near 0 keeps its digits. An element
 * of -inf gives -inf; a row of only -inf gives NaN. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
typedef struct {
    int dim;
} args_t;
#define TN__TEMPLATE "autograd/ops/log_softmax.c"
#include "core/real.h"

static bool log_softmax_infer(tn_ctx *c)
{
    int dim = TN_ARG(c, dim);
    return tn__infer_real(c) && tn__wrap_dim("log_softmax", &dim, c->in[0]->l.shape.n);
}
static void log_softmax_forward(tn_ctx *c)
{
    tn__rows(TN__REALS(log_softmax_fwd), TN_ARG(c, dim), TN__LIST(c->out[0]), TN__LIST(c->in[0]), NULL);
}

static void log_softmax_backward(tn_back *b)
{
    if ((b->gx[0] = tn_empty_like(b->gy[0])))
        tn__rows(TN__REALS(log_softmax_bwd), TN_ARG(b, dim), TN__LIST(b->gx[0]), TN__LIST(b->out[0], b->gy[0]), NULL);
}
static void log_softmax_backward_ops(tn_back *b)
{
    tn_tensor *sum = tn_sum(b->gy[0], .dims = TN_DIMS(TN_ARG(b, dim)), .keepdim = true);
    b->gx[0] = tn_sub(b->gy[0], tn_mul(tn_exp(b->out[0]), sum));
}

/* clang-format off */
static const tn__sample samples[] = {
    {.in = {{1, {5}}}, .args = &(args_t){-1}},
    {.in = {{3, {2, 3, 4}}}, .args = &(args_t){1}},
    {.in = {{2, {3, 4}}}, .args = &(args_t){0}, .low = {80}, .high = {90}},
    {.in = {{2, {2, 19}}}, .args = &(args_t){-1}},
    {.in = {{2, {3, 1}}}, .args = &(args_t){-1}},
    {.in = {{2, {0, 3}}}, .args = &(args_t){-1}},
    {.in = {{2, {3, 0}}}, .args = &(args_t){1}},
    {.in = {{0, {0}}}, .args = &(args_t){-1}},
    {.in = {{2, {3, 4}}}, .args = &(args_t){-3},
     TN__FAILS(TN_EINDEX, "log_softmax: dim -3 is out of range for a 2-d tensor")},
    {.in = {{1, {2}}}, .args = &(args_t){0}, .kind = {TN__ARG_INT},
     TN__FAILS(TN_EDTYPE, "log_softmax: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
};
/* clang-format on */

const tn_op tn__op_log_softmax = {TN__ROOM("log_softmax", TN_WIDE), .inputs = 1,
                                  .args_size = sizeof(args_t),      .saves = TN_SAVE_OUT(0),
                                  .infer = log_softmax_infer,       .forward = log_softmax_forward,
                                  .backward = log_softmax_backward, .backward_ops = log_softmax_backward_ops};
TN__SAMPLES(log_softmax, samples);

tn_tensor *tn_log_softmax(tn_tensor *x, int dim) { return tn_apply_args(&tn__op_log_softmax, &(args_t){dim}, x); }

#else /* =========================================================== kernels: contiguous rows, one real type */

static void TN__(log_softmax_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *x = in[0];
    TN__REAL       *y = out[0], max = TN__(tn__row_max)(n, x);
    (void)args;
    tn__kernels()->TN__(rows)->log_softmax(n, y, x, max, log(TN__(tn__exp_sum)(n, NULL, x, max)));
}

static void TN__(log_softmax_bwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    (void)args;
    TN__(tn__exp)(n, out[0], in[0]);
    tn__kernels()->TN__(rows)->log_softmax_back(n, out[0], in[1]);
}
#endif
