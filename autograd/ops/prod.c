/* prod — the product over all dims, or the given ones; integers and bool multiply as i64
 *
 *   gx_i = gy · Π_{j ≠ i} x_j
 *
 * With p the product of the elements that are not 0, and z the number of zeros: gx_i / gy is p / x_i for z = 0; p where
 * x_i = 0 for z = 1; and 0 otherwise. p and z are hidden results for the backward, p in f64, so that an f32 product
 * neither overflows nor underflows on the way. For second derivatives the product of all other elements is computed
 * from the cumulative products from both ends, by doubling. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
#include "core/kernels/sum_lanes.h"
typedef struct {
    tn_dims dims;
    bool    keepdim;
} args_t;
#define TN__TEMPLATE "autograd/ops/prod.c"
#define TN__WITH_I64
#include "core/real.h"

static bool prod_infer(tn_ctx *c)
{
    const tn_dtype dt = c->in[0]->dtype;
    for (int i = 1; i < 3; i++)
        if (!tn__infer_reduced(c, i, TN_ARG(c, dims), TN_ARG(c, keepdim), tn__is_float(dt) ? TN_F64 : TN_I64))
            return false;
    return tn__infer_reduced(c, 0, TN_ARG(c, dims), TN_ARG(c, keepdim), tn__is_float(dt) ? dt : TN_I64);
}
static void prod_forward(tn_ctx *c)
{
    static const tn__reducer f32 = TN__REDUCER_PARTS(prod, f32), f64 = TN__REDUCER_PARTS(prod, f64),
                             i64 = TN__REDUCER_PARTS(prod, i64);
    tn__reduce((tn__reducers){&f32, &f64, &i64}, tn__dims_of(c->in[0], TN_ARG(c, dims)),
               TN__LIST(c->out[0], c->out[1], c->out[2]), c->in[0], NULL);
}
static void prod_backward(tn_back *b)
{
    const tn_shape x = b->in_shape[0];
    tn_tensor     *p = tn__unreduced(b->out[1], x, TN_ARG(b, dims), TN_ARG(b, keepdim));
    tn_tensor     *z = tn__unreduced(b->out[2], x, TN_ARG(b, dims), TN_ARG(b, keepdim));
    tn_tensor     *gy = tn__unreduced(b->gy[0], x, TN_ARG(b, dims), TN_ARG(b, keepdim));
    if (tn__count_of(x, TN_ARG(b, dims)) == 1) b->gx[0] = gy; /* p / x would be ∞ / ∞ */
    else if (tn_shape_numel(x) && (b->gx[0] = tn_empty_like(b->in[0])) && p && z && gy)
        tn__map((tn__kernel_set){prod_bwd_f32, prod_bwd_f64, NULL}, TN__LIST(b->gx[0]), TN__LIST(b->in[0], p, z, gy),
                NULL);
}

/* For each element the product of the elements before it along the last dim (after it, for step -1). */
static tn_tensor *others(tn_tensor *x, int64_t n, int step)
{
    const int  last = tn_ndim(x) - 1;
    tn_shape   none = {.n = last + 1}, before = none, after = none;
    tn_tensor *p = x;
    for (int64_t k = 1, first = 1; k < n; k = first ? 1 : 2 * k, first = 0) { /* shift by one; then join 1, 2, 4 … */
        before.d[last] = step * k, after.d[last] = -step * k;
        tn_tensor *shifted = tn_pad(p, before, after, 1);
        p = first ? shifted : tn_mul(p, shifted);
    }
    return n > 1 ? p : tn_ones_like(x);
}
static void prod_backward_ops(tn_back *b)
{
    const tn_shape x = b->in_shape[0];
    const tn_dims  dims = tn__dims_of(b->in[0], TN_ARG(b, dims));
    const int64_t  n = tn__count_of(x, TN_ARG(b, dims));
    if (tn_shape_numel(x) == 0) return;
    tn_tensor *gy = tn__unreduced(b->gy[0], x, TN_ARG(b, dims), TN_ARG(b, keepdim));
    /* joins the reduced dims into one, the last */
    tn_dims  order = {.n = x.n}, back = order;
    tn_shape moved = {.n = x.n}, joined = {.n = 0};
    int      k = 0;
    for (int i = 0, g = 0; i < x.n; i++) {
        if (g < dims.n && dims.d[g] == i) g++;
        else joined.d[joined.n++] = x.d[i], order.d[k++] = i;
    }
    for (int g = 0; g < dims.n; g++) order.d[k++] = dims.d[g];
    for (int i = 0; i < x.n; i++) back.d[order.d[i]] = i, moved.d[i] = x.d[order.d[i]];
    joined.d[joined.n++] = n;
    tn_tensor *row = tn_reshape(x.n ? tn_permute(b->in[0], order) : b->in[0], joined);
    if (!row) return;
    row = tn_reshape(tn_mul(others(row, n, 1), others(row, n, -1)), moved);
    b->gx[0] = tn_mul(gy, x.n ? tn_permute(row, back) : row);
}

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}}, .args = &(args_t){{.n = 0, .d = {0}}, false}},
    {.in = {{3, {2, 3, 4}}}, .args = &(args_t){{.n = 1, .d = {1}}, false}},
    {.in = {{3, {2, 3, 4}}}, .args = &(args_t){{.n = 2, .d = {-1, 0}}, true}},
    {.in = {{2, {2, 5}}},
     .args = &(args_t){{.n = 1, .d = {-1}}, false},
     .low = {0},
     .high = {1e-300}}, /* as if all were 0 */
    {.in = {{2, {3, 1}}}, .args = &(args_t){{.n = 1, .d = {1}}, true}},
    {.in = {{0, {0}}}, .args = &(args_t){{.n = 0, .d = {0}}, false}},
    {.in = {{2, {0, 3}}}, .args = &(args_t){{.n = 1, .d = {0}}, false}},
    {.in = {{2, {0, 3}}}, .args = &(args_t){{.n = 1, .d = {1}}, true}},
    {.in = {{2, {2, 3}}},
     .kind = {TN__ARG_INT},
     .low = {-9},
     .high = {9},
     .args = &(args_t){{.n = 1, .d = {1}}, false}},
    {.in = {{2, {3, 4}}},
     .args = &(args_t){{.n = 1, .d = {2}}, false},
     TN__FAILS(TN_EINDEX, "prod: dim 2 is out of range for a 2-d tensor")},
};

const tn_op tn__op_prod = {TN__ROOM("prod", TN_WIDE),
                           .inputs = 1,
                           .outputs = 3,
                           .args_size = sizeof(args_t),
                           .saves = TN_SAVE_IN(0) | TN_SAVE_OUT(1) | TN_SAVE_OUT(2),
                           .infer = prod_infer,
                           .forward = prod_forward,
                           .backward = prod_backward,
                           .backward_ops = prod_backward_ops};
TN__SAMPLES(prod, samples);

tn_tensor *tn_prod_run(tn_reduce_args a)
{
    tn_tensor *out[3];
    if (!tn__reduce_options("tn_prod", &a, false, false)) return NULL;
    tn_op_call(&tn__op_prod, 1, &a.x, 3, out, &(args_t){a.dims, a.keepdim});
    return out[0];
}

#else /* ================================================================== a reducer over blocks of one dtype */

#if TN__IS_REAL
typedef double TN__(factor);
#else
typedef uint64_t TN__(factor); /* wraps, as integers do */
#endif
typedef struct {
    TN__(factor) lane[TN__LANES];
    int64_t zeros;
} TN__(prod_state);

static void TN__(prod_init)(void *state, const void *args)
{
    TN__(prod_state) *s = state;
    (void)args;
    for (int k = 0; k < TN__LANES; k++) s->lane[k] = 1;
    s->zeros = 0;
}
static void TN__(prod_step)(int64_t n, int64_t at, void *state, const void *in, const void *args)
{
    const TN__REAL *x = in;
    TN__(prod_state) *s = state;
    (void)at, (void)args;
    for (int64_t i = 0; i < n; i++) {
        s->zeros += x[i] == 0;
        s->lane[i % TN__LANES] *= x[i] == 0 ? 1 : (TN__(factor))x[i];
    }
}
static void TN__(prod_merge)(void *state, const void *later, const void *args)
{
    TN__(prod_state) *s = state;
    const TN__(prod_state) *l = later;
    (void)args;
    for (int k = 0; k < TN__LANES; k++) s->lane[k] *= l->lane[k];
    s->zeros += l->zeros;
}
static void TN__(prod_finish)(int64_t n, const void *state, void *const *out, const void *args)
{
    const TN__(prod_state) *s = state;
    TN__(factor) p = 1;
    (void)n, (void)args;
    for (int k = 0; k < TN__LANES; k++) p *= s->lane[k];
    *(TN__REAL *)out[0] = (TN__REAL)(s->zeros ? p * 0 : p); /* inf · 0 is NaN */
    *(TN__REAL *)out[1] = (TN__REAL)p;
    *(TN__REAL *)out[2] = (TN__REAL)s->zeros;
}

#if TN__IS_REAL
static void TN__(prod_bwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *x = in[0], *p = in[1], *zeros = in[2], *gy = in[3];
    TN__REAL       *gx = out[0];
    (void)args;
    for (int64_t i = 0; i < n; i++)
        gx[i] = zeros[i] == 0 ? gy[i] * (p[i] / x[i]) : zeros[i] == 1 && x[i] == 0 ? gy[i] * p[i] : 0;
}
#endif
#endif
