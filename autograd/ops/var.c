/* var, std — the variance over all dims, or the given ones, and its root
 *
 *   var = Σ (x - mean)² / (n - 1), or / n if biased        std = √var
 *   var:  gx = gy · 2 (x - mean) / (n - 1)
 *   std:  gx = gy · (x - mean) / ((n - 1) std), and 0 where std is 0
 *
 * The statistics of blocks are computed around the blocks' means and combined (Chan, Golub, LeVeque 1983), in f64: a
 * large mean loses no digits. The mean is kept for the backward as two values, itself and its rounding error, in hidden
 * results. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
#include "core/kernels/sum_lanes.h"
typedef struct {
    tn_dims dims;
    bool    keepdim, biased;
} args_t;
typedef struct {
    bool   biased, root;
    double scale; /* backward: 2 / (n - 1) or 1 / (n - 1) */
} kernel_args;
#define TN__TEMPLATE "autograd/ops/var.c"
#include "core/real.h"

static bool var_infer(tn_ctx *c)
{
    const tn_dtype dt = c->in[0]->dtype;
    if (!tn__need_real(c, 0)) return false;
    for (int i = 1; i < 3; i++)
        if (!tn__infer_reduced(c, i, TN_ARG(c, dims), TN_ARG(c, keepdim), tn__wide(dt))) return false;
    return tn__infer_reduced(c, 0, TN_ARG(c, dims), TN_ARG(c, keepdim), dt);
}
static void var_forward(tn_ctx *c)
{
    static const tn__reducer f32 = TN__REDUCER_PARTS(var, f32), f64 = TN__REDUCER_PARTS(var, f64);
    const kernel_args        k = {TN_ARG(c, biased), c->op == &tn__op_std, 0};
    tn__reduce((tn__reducers){&f32, &f64, NULL}, tn__dims_of(c->in[0], TN_ARG(c, dims)),
               TN__LIST(c->out[0], c->out[1], c->out[2]), c->in[0], &k);
}

static double divisor(const tn_back *b)
{
    const int64_t n = tn__count_of(b->in_shape[0], TN_ARG(b, dims));
    return (double)(TN_ARG(b, biased) ? n : tn__max_i64(0, n - 1));
}
static void var_backward(tn_back *b)
{
    const tn_shape    x = b->in_shape[0];
    const bool        root = b->op == &tn__op_std;
    const kernel_args k = {false, root, (root ? 1 : 2) / divisor(b)};
    tn_tensor        *mean = tn__unreduced(b->out[1], x, TN_ARG(b, dims), TN_ARG(b, keepdim));
    tn_tensor        *rest = tn__unreduced(b->out[2], x, TN_ARG(b, dims), TN_ARG(b, keepdim));
    tn_tensor        *gy = tn__unreduced(b->gy[0], x, TN_ARG(b, dims), TN_ARG(b, keepdim));
    tn_tensor        *y = tn__unreduced(b->out[0], x, TN_ARG(b, dims), TN_ARG(b, keepdim));
    if ((b->gx[0] = tn_empty_like(b->in[0])) && mean && rest && gy && y)
        tn__map(TN__REALS(var_bwd), TN__LIST(b->gx[0]), TN__LIST(b->in[0], mean, rest, gy, y), &k);
}
static void var_backward_ops(tn_back *b)
{
    const tn_shape x = b->in_shape[0];
    const bool     root = b->op == &tn__op_std;
    tn_tensor     *gy = tn__unreduced(b->gy[0], x, TN_ARG(b, dims), TN_ARG(b, keepdim));
    tn_tensor     *d = tn_sub(b->in[0], tn_mean(b->in[0], .dims = TN_ARG(b, dims), .keepdim = true));
    if (root) {
        tn_tensor *y = tn__unreduced(b->out[0], x, TN_ARG(b, dims), TN_ARG(b, keepdim));
        tn_tensor *none = tn_eq(y, tn_scalar(0));
        gy = tn_masked_fill(tn_div(gy, tn_masked_fill(y, none, 1)), none, 0);
    }
    b->gx[0] = tn_mul(tn_mul_scalar(gy, (root ? 1 : 2) / divisor(b)), d);
}

#define COMMON(name)                                                                                              \
    {.in = {{2, {3, 4}}}, .args = &(args_t){{.n = 0, .d = {0}}, false, false}},                                   \
        {.in = {{3, {2, 3, 4}}}, .args = &(args_t){{.n = 1, .d = {1}}, false, true}},                             \
        {.in = {{3, {2, 3, 4}}}, .args = &(args_t){{.n = 2, .d = {-1, 0}}, true, false}},                         \
        {.in = {{2, {0, 3}}}, .args = &(args_t){{.n = 1, .d = {1}}, true, false}},                                \
        {.in = {{2, {3, 4}}},                                                                                     \
         .args = &(args_t){{.n = 1, .d = {2}}, false, false},                                                     \
         .status = TN_EINDEX,                                                                                     \
         .fails = name ": dim 2 is out of range for a 2-d tensor"},                                               \
    {                                                                                                             \
        .in = {{1, {2}}}, .args = &(args_t){{.n = 0, .d = {0}}, false, false}, .kind = {TN__ARG_INT},             \
        .status = TN_EDTYPE, .fails = name ": needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)" \
    }
/* clang-format off */
static const tn__sample var_samples[] = {
    COMMON("var"),
    {.in = {{0, {0}}}, .args = &(args_t){{.n = 0, .d = {0}}, false, true}},
    {.in = {{2, {3, 1}}}, .args = &(args_t){{.n = 1, .d = {1}}, true, true}},
    {.in = {{2, {2, 5}}}, .args = &(args_t){{.n = 1, .d = {1}}, false, false}, .low = {9999}, .high = {10001},
     .f32_tol = 1e-3},
};
/* clang-format on */
static const tn__sample std_samples[] = {
    COMMON("std"),
    {.in = {{1, {9}}}, .kind = {TN__ARG_DISTINCT}, .args = &(args_t){{.n = 1, .d = {0}}, true, true}},
};

#define ROOM(title)                                                                                      \
    TN__ROOM(title, TN_WIDE), .inputs = 1, .outputs = 3, .args_size = sizeof(args_t),                    \
                              .saves = TN_SAVE_IN(0) | TN_SAVE_OUT(0) | TN_SAVE_OUT(1) | TN_SAVE_OUT(2), \
                              .infer = var_infer, .forward = var_forward, .backward = var_backward,      \
                              .backward_ops = var_backward_ops
const tn_op tn__op_var = {ROOM("var")};
TN__SAMPLES(var, var_samples);
const tn_op tn__op_std = {ROOM("std")};
TN__SAMPLES(std, std_samples);

static tn_tensor *var_call(const char *caller, const tn_op *op, tn_reduce_args a)
{
    tn_tensor *out[3];
    if (!tn__reduce_options(caller, &a, true, false)) return NULL;
    tn_op_call(op, 1, &a.x, 3, out, &(args_t){a.dims, a.keepdim, a.biased});
    return out[0];
}
tn_tensor *tn_var_run(tn_reduce_args a) { return var_call("tn_var", &tn__op_var, a); }
tn_tensor *tn_std_run(tn_reduce_args a) { return var_call("tn_std", &tn__op_std, a); }

#else /* ============================================================== a reducer over blocks of one real type */

typedef struct {
    int64_t n;
    double  mean, squares; /* Σ (x - mean)² */
} TN__(var_state);

static void TN__(var_join)(TN__(var_state) * s, int64_t n, double mean, double squares)
{
    if (n == 0) return;
    const double all = (double)(s->n + n), d = mean - s->mean, share = (double)n / all;
    s->squares += squares + d * d * (double)s->n * share;
    s->mean += d * share;
    s->n += n;
}

static void TN__(var_init)(void *state, const void *args)
{
    (void)args;
    *(TN__(var_state) *)state = (TN__(var_state)){0, 0, 0};
}
static void TN__(var_step)(int64_t n, int64_t at, void *state, const void *in, const void *args)
{
    const TN__REAL *x = in;
    const double    mean = TN__(tn__sum)(n, x) / (double)(n ? n : 1);
    tn__lanes       s = {{0}};
    (void)at, (void)args;
    double d[TN__LANES];
    for (int64_t i = 0; i < n; i += TN__LANES) {
        const int lanes = n - i < TN__LANES ? (int)(n - i) : TN__LANES;
        for (int k = 0; k < lanes; k++) d[k] = (double)x[i + k] - mean;
        for (int k = 0; k < lanes; k++) s.lane[k] += d[k] * d[k];
    }
    TN__(var_join)(state, n, mean, tn__lanes_total(s));
}
static void TN__(var_merge)(void *state, const void *later, const void *args)
{
    const TN__(var_state) *l = later;
    (void)args;
    TN__(var_join)(state, l->n, l->mean, l->squares);
}
static void TN__(var_finish)(int64_t n, const void *state, void *const *out, const void *args)
{
    const TN__(var_state) *s = state;
    const kernel_args *k = args;
    const double       var = s->squares / (double)(k->biased || n == 0 ? n : n - 1);
    const TN__REAL     mean = (TN__REAL)s->mean;
    *(TN__REAL *)out[0] = (TN__REAL)(k->root ? sqrt(var) : var);
    *(TN__REAL *)out[1] = mean;
    *(TN__REAL *)out[2] = (TN__REAL)(s->mean - (double)mean);
}

static void TN__(var_bwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL    *x = in[0], *mean = in[1], *rest = in[2], *gy = in[3], *y = in[4];
    const kernel_args *k = args;
    const TN__REAL     scale = (TN__REAL)k->scale;
    TN__REAL          *gx = out[0];
    if (!k->root)
        for (int64_t i = 0; i < n; i++) gx[i] = gy[i] * scale * (x[i] - mean[i] - rest[i]);
    else
        for (int64_t i = 0; i < n; i++) gx[i] = y[i] == 0 ? 0 : gy[i] / y[i] * scale * (x[i] - mean[i] - rest[i]);
}
#endif
