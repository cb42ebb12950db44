/* norm — (Σ |x|ᵖ)^(1/p) over all dims, or the given ones; p = inf: the largest |x|; -inf: the smallest; 0: the number
 * of elements that are not 0
 *
 *   gx = gy · sign(x) · (|x| / y)^(p-1)        0 where x or y is 0
 *   p = 0: 0        p = ±inf: equal |x| share it, as in amax
 *
 * Sums are computed in f64, so that an f32 norm does not overflow on the way. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
#include "core/kernels/sum_lanes.h"
typedef struct {
    tn_dims dims;
    bool    keepdim;
    double  p;
} args_t;
#define TN__TEMPLATE "autograd/ops/norm.c"
#include "core/real.h"

static bool norm_infer(tn_ctx *c)
{
    const double p = TN_ARG(c, p);
    if (!tn__need_real(c, 0)) return false;
    if (isnan(p)) return tn_infer_fail(c, TN_EINVAL, "p is NaN");
    if (p < 0 && !tn__need_elements(c, TN_ARG(c, dims))) return false;
    return tn__infer_reduced(c, 0, TN_ARG(c, dims), TN_ARG(c, keepdim), c->in[0]->dtype);
}
static void norm_forward(tn_ctx *c)
{
    static const tn__reducer f32 = TN__REDUCER_PARTS(norm, f32), f64 = TN__REDUCER_PARTS(norm, f64);
    tn__reduce((tn__reducers){&f32, &f64, NULL}, tn__dims_of(c->in[0], TN_ARG(c, dims)), TN__LIST(c->out[0]), c->in[0],
               &TN_ARG(c, p));
}
static void norm_backward(tn_back *b)
{
    if (TN_ARG(b, p) == 0) return;
    tn_tensor *y = tn__unreduced(b->out[0], b->in_shape[0], TN_ARG(b, dims), TN_ARG(b, keepdim));
    tn_tensor *gy = tn__unreduced(b->gy[0], b->in_shape[0], TN_ARG(b, dims), TN_ARG(b, keepdim));
    if ((b->gx[0] = tn_empty_like(b->in[0])) && y && gy)
        tn__map(TN__REALS(norm_bwd), TN__LIST(b->gx[0]), TN__LIST(b->in[0], y, gy), &TN_ARG(b, p));
}
static void norm_backward_ops(tn_back *b)
{
    const double p = TN_ARG(b, p);
    tn_tensor   *x = b->in[0], *gy = tn__unreduced(b->gy[0], b->in_shape[0], TN_ARG(b, dims), TN_ARG(b, keepdim));
    if (p == 0) return;
    if (p == 1) {
        b->gx[0] = tn_mul(gy, tn_sign(x));
        return;
    }
    tn_tensor *y = tn__unreduced(b->out[0], b->in_shape[0], TN_ARG(b, dims), TN_ARG(b, keepdim));
    tn_tensor *none = tn_eq(y, tn_scalar(0)), *safe = tn_masked_fill(y, none, 1);
    if (p == 2) {
        b->gx[0] = tn_mul(tn_masked_fill(tn_div(gy, safe), none, 0), x);
        return;
    }
    /* a negative power of 0 is not finite */
    tn_tensor *zero = tn_eq(x, tn_scalar(0)), *size = tn_masked_fill(tn_abs(x), zero, 1);
    tn_tensor *share = tn_pow_scalar(tn_div(size, safe), p - 1);
    b->gx[0] = tn_mul(tn_masked_fill(tn_mul(gy, share), zero, 0), tn_sign(x));
}

/* p = ±inf: made of ops. */
static void norm_compose(tn_ctx *c)
{
    const tn_reduce_args a = {.x = tn_abs(c->in[0]), .dims = TN_ARG(c, dims), .keepdim = TN_ARG(c, keepdim)};
    c->out[0] = TN_ARG(c, p) > 0 ? tn_amax_run(a) : tn_amin_run(a);
}
static bool norm_inf_infer(tn_ctx *c)
{
    return tn__need_real(c, 0) && tn__need_elements(c, TN_ARG(c, dims)) &&
           tn__infer_reduced(c, 0, TN_ARG(c, dims), TN_ARG(c, keepdim), c->in[0]->dtype);
}

/* clang-format off */
static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}}, .args = &(args_t){{.n = 0, .d = {0}}, false, 2}},
    {.in = {{3, {2, 3, 4}}}, .args = &(args_t){{.n = 1, .d = {1}}, false, 1}},
    {.in = {{3, {2, 3, 4}}}, .args = &(args_t){{.n = 2, .d = {-1, 0}}, true, 3}},
    {.in = {{2, {3, 4}}}, .args = &(args_t){{.n = 1, .d = {0}}, false, 0.5}, .low = {0.1}, .high = {2}},
    {.in = {{2, {3, 4}}}, .args = &(args_t){{.n = 1, .d = {0}}, false, -1.5}, .low = {-2}, .high = {-0.1}},
    {.in = {{2, {3, 4}}}, .args = &(args_t){{.n = 1, .d = {0}}, false, 0}, .low = {0.1}, .high = {2}},
    {.in = {{2, {3, 1}}}, .args = &(args_t){{.n = 1, .d = {1}}, true, 2}},
    {.in = {{0, {0}}}, .args = &(args_t){{.n = 0, .d = {0}}, false, 2}},
    {.in = {{2, {0, 3}}}, .args = &(args_t){{.n = 1, .d = {0}}, false, 2}},
    {.in = {{2, {0, 3}}}, .args = &(args_t){{.n = 1, .d = {1}}, true, -1}},
    {.in = {{2, {3, 4}}}, .args = &(args_t){{.n = 1, .d = {2}}, false, 2},
     TN__FAILS(TN_EINDEX, "norm: dim 2 is out of range for a 2-d tensor")},
    {.in = {{1, {2}}}, .args = &(args_t){{.n = 0, .d = {0}}, false, (double)NAN},
     TN__FAILS(TN_EINVAL, "norm: p is NaN")},
    {.in = {{2, {0, 3}}}, .args = &(args_t){{.n = 1, .d = {0}}, false, -1},
     TN__FAILS(TN_ESHAPE, "norm: dim 0 of [0, 3] is empty: there is no element to choose")},
    {.in = {{1, {2}}}, .args = &(args_t){{.n = 0, .d = {0}}, false, 2}, .kind = {TN__ARG_INT},
     TN__FAILS(TN_EDTYPE, "norm: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
};
/* clang-format on */
static const tn__sample inf_samples[] = {
    {.in = {{2, {3, 4}}}, .kind = {TN__ARG_DISTINCT}, .args = &(args_t){{.n = 0, .d = {0}}, false, (double)INFINITY}},
    {.in = {{2, {3, 4}}}, .kind = {TN__ARG_DISTINCT}, .args = &(args_t){{.n = 1, .d = {1}}, true, (double)INFINITY}},
    {.in = {{2, {3, 4}}}, .kind = {TN__ARG_DISTINCT}, .args = &(args_t){{.n = 1, .d = {0}}, false, -(double)INFINITY}},
    {.in = {{0, {0}}}, .args = &(args_t){{.n = 0, .d = {0}}, false, (double)INFINITY}},
    {.in = {{2, {0, 3}}},
     .args = &(args_t){{.n = 1, .d = {0}}, false, (double)INFINITY},
     TN__FAILS(TN_ESHAPE, "norm: dim 0 of [0, 3] is empty: there is no element to choose")},
};

#define ROOM TN__ROOM("norm", TN_WIDE), .inputs = 1, .args_size = sizeof(args_t)
const tn_op tn__op_norm = {ROOM,
                           .saves = TN_SAVE_IN(0) | TN_SAVE_OUT(0),
                           .infer = norm_infer,
                           .forward = norm_forward,
                           .backward = norm_backward,
                           .backward_ops = norm_backward_ops};
TN__SAMPLES(norm, samples);
const tn_op tn__op_norm_inf = {ROOM, .infer = norm_inf_infer, .compose = norm_compose};
TN__SAMPLES(norm_inf, inf_samples);

tn_tensor *tn_norm_run(tn_reduce_args a)
{
    if (!tn__reduce_options("tn_norm", &a, false, true)) return NULL;
    return tn_apply_args(isinf(a.p) ? &tn__op_norm_inf : &tn__op_norm, (&(args_t){a.dims, a.keepdim, a.p}), a.x);
}

tn_tensor *tn_normalize(tn_tensor *x, int dim)
{
    return tn_div(x, tn_clamp(tn_norm(x, .dims = TN_DIMS(dim), .keepdim = true), 1e-12, INFINITY));
}

#else /* ============================================================== a reducer over blocks of one real type */

typedef tn__lanes TN__(norm_state);

static void TN__(norm_init)(void *state, const void *args)
{
    (void)args;
    *(tn__lanes *)state = (tn__lanes){{0}};
}
static void TN__(norm_step)(int64_t n, int64_t at, void *state, const void *in, const void *args)
{
    const TN__REAL *x = in;
    const double    p = *(const double *)args;
    tn__lanes      *s = state;
    (void)at;
    if (p == 2) TN__(tn__dot_lanes)(s, n, x, x);
    else if (p == 1)
        for (int64_t i = 0; i < n; i++) s->lane[i % TN__LANES] += fabs((double)x[i]);
    else if (p == 0)
        for (int64_t i = 0; i < n; i++) s->lane[i % TN__LANES] += x[i] != 0;
    else
        for (int64_t i = 0; i < n; i++) s->lane[i % TN__LANES] += pow(fabs((double)x[i]), p);
}
static void TN__(norm_merge)(void *state, const void *later, const void *args)
{
    tn__lanes       *s = state;
    const tn__lanes *l = later;
    (void)args;
    for (int k = 0; k < TN__LANES; k++) s->lane[k] += l->lane[k];
}
static void TN__(norm_finish)(int64_t n, const void *state, void *const *out, const void *args)
{
    const double p = *(const double *)args, sum = tn__lanes_total(*(const tn__lanes *)state);
    (void)n;
    *(TN__REAL *)out[0] = (TN__REAL)(p == 2 ? sqrt(sum) : p == 0 || p == 1 ? sum : pow(sum, 1 / p));
}

static void TN__(norm_bwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *x = in[0], *y = in[1], *gy = in[2];
    TN__REAL       *gx = out[0];
    const double    p = *(const double *)args;
    if (p == 2)
        for (int64_t i = 0; i < n; i++) gx[i] = y[i] == 0 ? 0 : gy[i] * (x[i] / y[i]);
    else if (p == 1)
        for (int64_t i = 0; i < n; i++) gx[i] = x[i] > 0 ? gy[i] : x[i] < 0 ? -gy[i] : 0 * x[i];
    else
        for (int64_t i = 0; i < n; i++) {
            const TN__REAL share = TN__M(pow)(TN__M(fabs)(x[i]) / y[i], (TN__REAL)(p - 1));
            gx[i] = x[i] == 0 || y[i] == 0 ? 0 : x[i] > 0 ? gy[i] * share : -gy[i] * share;
        }
}
#endif
