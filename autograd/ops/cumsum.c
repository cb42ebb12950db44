/* cumsum, cumprod — y_i = Σ_{j ≤ i} x_j or Π_{j ≤ i} x_j along one dim; integers and bool as i64
 *
 *   cumsum    gx_i = Σ_{j ≥ i} gy_j: a cumulative sum from the other end
 *   cumprod   gx_i = P_i S_i with P_i = Π_{j < i} x_j and S_i = gy_i + x_{i+1} S_{i+1}: exact where x has zeros. By
 *             doubling: P joins 1, 2, 4 … factors; S joins the maps s → gy_i + x_{i+1} s
 *
 * Floating sums and products are computed in f64. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
typedef struct {
    int  dim;
    bool reverse;
} args_t;
#define TN__TEMPLATE "autograd/ops/cumsum.c"
#define TN__WITH_I64
#include "core/real.h"

static bool cumsum_infer(tn_ctx *c)
{
    int dim = TN_ARG(c, dim);
    tn_infer_like(c, 0, 0);
    if (!tn__is_float(c->in[0]->dtype)) c->result[0].dtype = TN_I64;
    return tn__wrap_dim(c->op->name, &dim, c->in[0]->l.shape.n);
}
static void cumsum_forward(tn_ctx *c)
{
    tn__rows(TN__NUMBERS(cumsum_fwd), TN_ARG(c, dim), TN__LIST(c->out[0]), TN__LIST(c->in[0]), c->args);
}
static void cumsum_backward_ops(tn_back *b)
{
    b->gx[0] = tn_apply_args(&tn__op_cumsum, (&(args_t){TN_ARG(b, dim), !TN_ARG(b, reverse)}), b->gy[0]);
}

static void cumprod_forward(tn_ctx *c)
{
    tn__rows(TN__NUMBERS(cumprod_fwd), TN_ARG(c, dim), TN__LIST(c->out[0]), TN__LIST(c->in[0]), NULL);
}
/* x moved by `by` along dim, and `fill` where nothing comes from. */
static tn_tensor *moved(tn_tensor *x, int dim, int64_t by, double fill)
{
    tn_shape before = {.n = tn_ndim(x)}, after = before;
    before.d[dim] = by, after.d[dim] = -by;
    return tn_pad(x, before, after, fill);
}
static void cumprod_backward_ops(tn_back *b)
{
    const tn_shape shape = b->in_shape[0];
    int            dim = TN_ARG(b, dim);
    tn__wrap_dim("cumprod", &dim, shape.n);
    const int64_t n = shape.n ? shape.d[dim] : 1;
    b->gx[0] = b->gy[0];
    if (n < 2) return;
    tn_tensor *x = b->in[0], *p = moved(x, dim, 1, 1), *s = b->gy[0], *factor = moved(x, dim, -1, 0);
    for (int64_t k = 1; k < n; k *= 2) {
        p = tn_mul(p, moved(p, dim, k, 1));
        s = tn_add(s, tn_mul(factor, moved(s, dim, -k, 0)));
        factor = tn_mul(factor, moved(factor, dim, -k, 0));
    }
    b->gx[0] = tn_mul(p, s);
}

static const tn__sample samples[] = {
    {.in = {{1, {5}}}, .args = &(args_t){0, false}},
    {.in = {{3, {2, 3, 4}}}, .args = &(args_t){1, false}},
    {.in = {{2, {3, 4}}}, .args = &(args_t){-1, true}},
    {.in = {{2, {3, 1}}}, .args = &(args_t){1, false}},
    {.in = {{0, {0}}}, .args = &(args_t){-1, false}},
    {.in = {{2, {0, 3}}}, .args = &(args_t){0, false}},
    {.in = {{2, {2, 3}}}, .kind = {TN__ARG_INT}, .low = {-9}, .high = {9}, .args = &(args_t){1, false}},
    {.in = {{2, {2, 3}}}, .kind = {TN__ARG_MASK}, .args = &(args_t){1, false}},
    {.in = {{2, {3, 4}}},
     .args = &(args_t){2, false},
     TN__FAILS(TN_EINDEX, "cumsum: dim 2 is out of range for a 2-d tensor")},
};

const tn_op tn__op_cumsum = {TN__ROOM("cumsum", TN_WIDE), .inputs = 1,
                             .args_size = sizeof(args_t), .infer = cumsum_infer,
                             .forward = cumsum_forward,   .backward_ops = cumsum_backward_ops};
TN__SAMPLES(cumsum, samples);

static const tn__sample cumprod_samples[] = {
    {.in = {{1, {5}}}, .args = &(args_t){0, false}},
    {.in = {{3, {2, 3, 4}}}, .args = &(args_t){1, false}, .low = {0.5}, .high = {1.5}},
    {.in = {{2, {3, 7}}}, .args = &(args_t){-1, false}},
    {.in = {{2, {5, 3}}}, .kind = {TN__ARG_REAL}, .low = {-1e-300}, .high = {1e-300}, .args = &(args_t){0, false}},
    {.in = {{2, {3, 1}}}, .args = &(args_t){1, false}},
    {.in = {{0, {0}}}, .args = &(args_t){-1, false}},
    {.in = {{2, {0, 3}}}, .args = &(args_t){0, false}},
    {.in = {{2, {2, 3}}}, .kind = {TN__ARG_INT}, .low = {-9}, .high = {9}, .args = &(args_t){1, false}},
    {.in = {{2, {2, 3}}}, .kind = {TN__ARG_MASK}, .args = &(args_t){1, false}},
    {.in = {{2, {3, 4}}},
     .args = &(args_t){2, false},
     TN__FAILS(TN_EINDEX, "cumprod: dim 2 is out of range for a 2-d tensor")},
};

const tn_op tn__op_cumprod = {TN__ROOM("cumprod", TN_WIDE),
                              .inputs = 1,
                              .args_size = sizeof(args_t),
                              .saves = TN_SAVE_IN(0),
                              .infer = cumsum_infer,
                              .forward = cumprod_forward,
                              .backward_ops = cumprod_backward_ops};
TN__SAMPLES(cumprod, cumprod_samples);

tn_tensor *tn_cumsum(tn_tensor *x, int dim) { return tn_apply_args(&tn__op_cumsum, (&(args_t){dim, false}), x); }
tn_tensor *tn_cumprod(tn_tensor *x, int dim) { return tn_apply_args(&tn__op_cumprod, (&(args_t){dim, false}), x); }

#else /* =============================================================== kernels: contiguous rows, one dtype */

#if TN__IS_REAL
#define SUM double
#else
#define SUM uint64_t /* wraps, as integers do */
#endif
static void TN__(cumsum_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *x = in[0];
    TN__REAL       *y = out[0];
    SUM             sum = 0;
    if (((const args_t *)args)->reverse)
        for (int64_t i = n - 1; i >= 0; i--) y[i] = (TN__REAL)(sum += (SUM)x[i]);
    else
        for (int64_t i = 0; i < n; i++) y[i] = (TN__REAL)(sum += (SUM)x[i]);
}
static void TN__(cumprod_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *x = in[0];
    TN__REAL       *y = out[0];
    SUM             product = 1;
    (void)args;
    for (int64_t i = 0; i < n; i++) y[i] = (TN__REAL)(product *= (SUM)x[i]);
}
#undef SUM
#endif
