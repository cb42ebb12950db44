/* logsumexp — y = log Σ exp(x) over all dims, or the given ones
 *
 *   gx = gy · exp(x - y)
 *
 * Streaming: the sum is Σ exp(x - shift) with shift the running maximum of x, and is rescaled when the maximum grows.
 * If the maximum is infinite the shift is 0: only -inf gives -inf, with gradient 0; an inf gives inf. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
#include "core/kernels/vecmath.h"
#include "core/kernels/sum_lanes.h"
typedef struct {
    tn_dims dims;
    bool    keepdim;
} args_t;
#define TN__TEMPLATE "autograd/ops/logsumexp.c"
#include "core/real.h"

static bool logsumexp_infer(tn_ctx *c)
{
    return tn__need_real(c, 0) && tn__infer_reduced(c, 0, TN_ARG(c, dims), TN_ARG(c, keepdim), c->in[0]->dtype);
}
static void logsumexp_forward(tn_ctx *c)
{
    static const tn__reducer f32 = TN__REDUCER_PARTS(lse, f32), f64 = TN__REDUCER_PARTS(lse, f64);
    tn__reduce((tn__reducers){&f32, &f64, NULL}, tn__dims_of(c->in[0], TN_ARG(c, dims)), TN__LIST(c->out[0]), c->in[0],
               NULL);
}
static void logsumexp_backward(tn_back *b)
{
    tn_tensor *y = tn__unreduced(b->out[0], b->in_shape[0], TN_ARG(b, dims), TN_ARG(b, keepdim));
    tn_tensor *gy = tn__unreduced(b->gy[0], b->in_shape[0], TN_ARG(b, dims), TN_ARG(b, keepdim));
    if ((b->gx[0] = tn_empty_like(b->in[0])) && y && gy)
        tn__map(TN__REALS(logsumexp_bwd), TN__LIST(b->gx[0]), TN__LIST(b->in[0], y, gy), NULL);
}
static void logsumexp_backward_ops(tn_back *b)
{
    tn_tensor *y = tn__unreduced(b->out[0], b->in_shape[0], TN_ARG(b, dims), TN_ARG(b, keepdim));
    tn_tensor *gy = tn__unreduced(b->gy[0], b->in_shape[0], TN_ARG(b, dims), TN_ARG(b, keepdim));
    y = tn_masked_fill(y, tn_eq(y, tn_scalar(-(double)INFINITY)), 0);
    b->gx[0] = tn_mul(gy, tn_exp(tn_sub(b->in[0], y)));
}

/* clang-format off */
static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}}, .args = &(args_t){{.n = 0, .d = {0}}, false}},
    {.in = {{3, {2, 3, 4}}}, .args = &(args_t){{.n = 1, .d = {1}}, false}},
    {.in = {{3, {2, 3, 4}}}, .args = &(args_t){{.n = 2, .d = {-1, 0}}, true}},
    {.in = {{2, {3, 4}}}, .args = &(args_t){{.n = 1, .d = {0}}, false}, .low = {80}, .high = {90}},
    {.in = {{2, {2, 19}}}, .args = &(args_t){{.n = 1, .d = {1}}, false}},
    {.in = {{0, {0}}}, .args = &(args_t){{.n = 0, .d = {0}}, false}},
    {.in = {{2, {3, 1}}}, .args = &(args_t){{.n = 1, .d = {1}}, true}},
    {.in = {{2, {0, 3}}}, .args = &(args_t){{.n = 1, .d = {1}}, true}},
    {.in = {{2, {3, 4}}}, .args = &(args_t){{.n = 1, .d = {2}}, false},
     TN__FAILS(TN_EINDEX, "logsumexp: dim 2 is out of range for a 2-d tensor")},
    {.in = {{1, {2}}}, .args = &(args_t){{.n = 0, .d = {0}}, false}, .kind = {TN__ARG_INT},
     TN__FAILS(TN_EDTYPE, "logsumexp: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
};
/* clang-format on */

const tn_op tn__op_logsumexp = {TN__ROOM("logsumexp", TN_WIDE), .inputs = 1,
                                .args_size = sizeof(args_t),    .saves = TN_SAVE_IN(0) | TN_SAVE_OUT(0),
                                .infer = logsumexp_infer,       .forward = logsumexp_forward,
                                .backward = logsumexp_backward, .backward_ops = logsumexp_backward_ops};
TN__SAMPLES(logsumexp, samples);

tn_tensor *tn_logsumexp_run(tn_reduce_args a)
{
    if (!tn__reduce_options("tn_logsumexp", &a, false, false)) return NULL;
    return tn_apply_args(&tn__op_logsumexp, (&(args_t){a.dims, a.keepdim}), a.x);
}

#else /* ============================================================== a reducer over blocks of one real type */

typedef struct {
    double max; /* running maximum; initially -inf */
    double sum; /* Σ exp(x - max), or Σ exp(x) if max is infinite */
} TN__(lse_state);

static void TN__(lse_join)(TN__(lse_state) * s, double max, double sum)
{
    if (max > s->max) {
        const double m = s->max, total = s->sum;
        s->max = max, s->sum = sum;
        max = m, sum = total;
    }
    if (max == s->max || isinf(s->max)) s->sum += sum; /* only -inf: 0 */
    else s->sum += sum * exp(max - s->max);
}

static void TN__(lse_init)(void *state, const void *args)
{
    (void)args;
    *(TN__(lse_state) *)state = (TN__(lse_state)){-(double)INFINITY, 0};
}
static void TN__(lse_step)(int64_t n, int64_t at, void *state, const void *in, const void *args)
{
    const TN__REAL *x = in;
    TN__REAL        e[256], max = TN__(tn__highest)(n, x);
    const TN__REAL  shift = isfinite(max) ? max : 0; /* NaN: gives NaN */
    (void)at, (void)args;
    tn__lanes s = {{0}};
    for (int64_t done = 0; done < n;) { /* blocks have at most 256 elements, but the kernel need not rely on that */
        const int64_t k = n - done < 256 ? n - done : 256;
        for (int64_t i = 0; i < k; i++) e[i] = x[done + i] - shift;
        TN__(tn__exp)(k, e, e);
        TN__(tn__add_lanes)(&s, k, e);
        done += k;
    }
    TN__(lse_join)(state, (double)max, tn__lanes_total(s));
}
static void TN__(lse_merge)(void *state, const void *later, const void *args)
{
    const TN__(lse_state) *l = later;
    (void)args;
    TN__(lse_join)(state, l->max, l->sum);
}
static void TN__(lse_finish)(int64_t n, const void *state, void *const *out, const void *args)
{
    const TN__(lse_state) *s = state;
    (void)n, (void)args;
    *(TN__REAL *)out[0] = (TN__REAL)(log(s->sum) + (isfinite(s->max) ? s->max : 0));
}

static void TN__(logsumexp_bwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *x = in[0], *y = in[1], *gy = in[2];
    TN__REAL       *gx = out[0];
    (void)args;
    TN__REAL e[256];
    for (int64_t done = 0, k; done < n; done += k, x += k, y += k, gy += k, gx += k) {
        k = n - done < 256 ? n - done : 256;
        for (int64_t i = 0; i < k; i++) e[i] = x[i] - y[i];
        TN__(tn__exp)(k, e, e);
        for (int64_t i = 0; i < k; i++) {
            const TN__REAL g = gy[i] * e[i]; /* computed unconditionally, so that the loop has no branch */
            gx[i] = y[i] == -(TN__REAL)INFINITY ? 0 : g;
        }
    }
}
#endif
