/* amax, amin — the largest and the smallest element over all dims, or the given ones; NaN wins
 *
 *   gx = gy / count where x = y, else 0        (equal maxima share the gradient; count: the number of maxima)
 *
 * The count is a hidden second result for the backward. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
#include "core/kernels/sum_lanes.h"
typedef struct {
    tn_dims dims;
    bool    keepdim;
} args_t;
typedef struct {
    bool least;
} kernel_args;
#define TN__TEMPLATE "autograd/ops/amax.c"
#define TN__WITH_I64
#include "core/real.h"

static bool amax_infer(tn_ctx *c)
{
    const tn_dtype dt = c->in[0]->dtype;
    return tn__need_elements(c, TN_ARG(c, dims)) && tn__infer_reduced(c, 0, TN_ARG(c, dims), TN_ARG(c, keepdim), dt) &&
           tn__infer_reduced(c, 1, TN_ARG(c, dims), TN_ARG(c, keepdim), tn__is_float(dt) ? tn__wide(dt) : TN_I64);
}
static void amax_forward(tn_ctx *c)
{
    static const tn__reducer f32 = TN__REDUCER_PARTS(best, f32), f64 = TN__REDUCER_PARTS(best, f64),
                             i64 = TN__REDUCER_PARTS(best, i64);
    const kernel_args k = {c->op == &tn__op_amin};
    tn__reduce((tn__reducers){&f32, &f64, &i64}, tn__dims_of(c->in[0], TN_ARG(c, dims)), TN__LIST(c->out[0], c->out[1]),
               c->in[0], &k);
}
static void amax_backward(tn_back *b)
{
    const tn_shape x = b->in_shape[0];
    tn_tensor     *y = tn__unreduced(b->out[0], x, TN_ARG(b, dims), TN_ARG(b, keepdim));
    tn_tensor     *count = tn__unreduced(b->out[1], x, TN_ARG(b, dims), TN_ARG(b, keepdim));
    tn_tensor     *gy = tn__unreduced(b->gy[0], x, TN_ARG(b, dims), TN_ARG(b, keepdim));
    if ((b->gx[0] = tn_empty_like(b->in[0])) && y && count && gy)
        tn__map((tn__kernel_set){amax_bwd_f32, amax_bwd_f64, NULL}, TN__LIST(b->gx[0]),
                TN__LIST(b->in[0], y, count, gy), NULL);
}
static void amax_backward_ops(tn_back *b)
{
    const tn_shape x = b->in_shape[0];
    tn_tensor     *y = tn__unreduced(b->out[0], x, TN_ARG(b, dims), TN_ARG(b, keepdim));
    tn_tensor     *gy = tn__unreduced(b->gy[0], x, TN_ARG(b, dims), TN_ARG(b, keepdim));
    tn_tensor     *one = tn_to(tn_eq(b->in[0], y), b->in_dtype[0]);
    b->gx[0] = tn_mul(one, tn_div(gy, tn_sum(one, .dims = TN_ARG(b, dims), .keepdim = true)));
}

/* clang-format off */
static const tn__sample max_samples[] = {
    {.in = {{2, {3, 4}}}, .kind = {TN__ARG_DISTINCT}, .args = &(args_t){{.n = 0, .d = {0}}, false}},
    {.in = {{3, {2, 3, 4}}}, .kind = {TN__ARG_DISTINCT}, .args = &(args_t){{.n = 1, .d = {1}}, false}},
    {.in = {{3, {2, 3, 4}}}, .kind = {TN__ARG_DISTINCT}, .args = &(args_t){{.n = 2, .d = {-1, 0}}, true}},
    {.in = {{2, {3, 1}}}, .kind = {TN__ARG_DISTINCT}, .args = &(args_t){{.n = 1, .d = {1}}, true}},
    {.in = {{0, {0}}}, .args = &(args_t){{.n = 0, .d = {0}}, false}},
    {.in = {{2, {0, 3}}}, .args = &(args_t){{.n = 1, .d = {1}}, false}},
    {.in = {{2, {3, 4}}}, .kind = {TN__ARG_INT}, .low = {-9}, .high = {9},
     .args = &(args_t){{.n = 1, .d = {1}}, false}},
    {.in = {{2, {0, 3}}}, .args = &(args_t){{.n = 1, .d = {0}}, false},
     TN__FAILS(TN_ESHAPE, "amax: dim 0 of [0, 3] is empty: there is no element to choose")},
    {.in = {{2, {3, 0}}}, .args = &(args_t){{.n = 0, .d = {0}}, false},
     TN__FAILS(TN_ESHAPE, "amax: dim 1 of [3, 0] is empty: there is no element to choose")},
    {.in = {{1, {3}}}, .args = &(args_t){{.n = 1, .d = {1}}, false},
     TN__FAILS(TN_EINDEX, "amax: dim 1 is out of range for a 1-d tensor")},
};
/* clang-format on */
static const tn__sample min_samples[] = {
    {.in = {{2, {3, 4}}}, .kind = {TN__ARG_DISTINCT}, .args = &(args_t){{.n = 0, .d = {0}}, false}},
    {.in = {{3, {2, 3, 4}}}, .kind = {TN__ARG_DISTINCT}, .args = &(args_t){{.n = 2, .d = {1, 2}}, false}},
    {.in = {{3, {2, 3, 4}}}, .kind = {TN__ARG_DISTINCT}, .args = &(args_t){{.n = 1, .d = {0}}, true}},
    {.in = {{0, {0}}}, .args = &(args_t){{.n = 0, .d = {0}}, true}},
    {.in = {{2, {3, 0}}}, .args = &(args_t){{.n = 1, .d = {0}}, false}},
    {.in = {{2, {3, 4}}}, .kind = {TN__ARG_MASK}, .args = &(args_t){{.n = 1, .d = {1}}, false}},
    {.in = {{2, {3, 0}}},
     .args = &(args_t){{.n = 1, .d = {-1}}, false},
     TN__FAILS(TN_ESHAPE, "amin: dim 1 of [3, 0] is empty: there is no element to choose")},
};

#define ROOM(title)                                                                                           \
    TN__ROOM(title, TN_AS_IS), .inputs = 1, .outputs = 2, .args_size = sizeof(args_t),                        \
                               .saves = TN_SAVE_IN(0) | TN_SAVE_OUT(0) | TN_SAVE_OUT(1), .infer = amax_infer, \
                               .forward = amax_forward, .backward = amax_backward, .backward_ops = amax_backward_ops
const tn_op tn__op_amax = {ROOM("amax")};
TN__SAMPLES(amax, max_samples);
const tn_op tn__op_amin = {ROOM("amin")};
TN__SAMPLES(amin, min_samples);

static tn_tensor *amax_call(const char *caller, const tn_op *op, tn_reduce_args a)
{
    tn_tensor *out[2];
    if (!tn__reduce_options(caller, &a, false, false)) return NULL;
    tn_op_call(op, 1, &a.x, 2, out, &(args_t){a.dims, a.keepdim});
    return out[0];
}
tn_tensor *tn_amax_run(tn_reduce_args a) { return amax_call("tn_amax", &tn__op_amax, a); }
tn_tensor *tn_amin_run(tn_reduce_args a) { return amax_call("tn_amin", &tn__op_amin, a); }

#else /* ================================================================== a reducer over blocks of one dtype */

typedef struct {
    TN__REAL best;
    int64_t  count; /* number of elements equal to best; 0 before the first, and for NaN */
} TN__(best_state);

static void TN__(best_join)(TN__(best_state) * s, TN__REAL best, int64_t count, bool least)
{
    if (TN__(tn__isnan)(s->best)) return;
    if (TN__(tn__isnan)(best) || (count && (!s->count || (least ? best < s->best : best > s->best))))
        s->best = best, s->count = count;
    else if (best == s->best) s->count += count;
}

static void TN__(best_init)(void *state, const void *args)
{
    (void)args;
    *(TN__(best_state) *)state = (TN__(best_state)){0, 0};
}
static void TN__(best_step)(int64_t n, int64_t at, void *state, const void *in, const void *args)
{
    const TN__REAL *x = in;
    const bool      least = ((const kernel_args *)args)->least;
    TN__(best_state) *s = state;
    const TN__REAL best = least ? TN__(tn__lowest)(n, x) : TN__(tn__highest)(n, x);
    int64_t        count = 0;
    (void)at;
    if (s->count && (least ? best > s->best : best < s->best)) return;
    for (int64_t i = 0; i < n; i++) count += x[i] == best;
    TN__(best_join)(s, best, count, least);
}
static void TN__(best_merge)(void *state, const void *later, const void *args)
{
    const TN__(best_state) *l = later;
    TN__(best_join)(state, l->best, l->count, ((const kernel_args *)args)->least);
}
static void TN__(best_finish)(int64_t n, const void *state, void *const *out, const void *args)
{
    const TN__(best_state) *s = state;
    (void)n, (void)args;
    *(TN__REAL *)out[0] = s->best;
    *(TN__REAL *)out[1] = (TN__REAL)s->count;
}

#if TN__IS_REAL
static void TN__(amax_bwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *x = in[0], *y = in[1], *count = in[2], *gy = in[3];
    TN__REAL       *gx = out[0];
    (void)args;
    for (int64_t i = 0; i < n; i++) gx[i] = (x[i] == y[i] ? gy[i] : 0) / count[i]; /* NaN: 0 / 0 */
}
#endif
#endif
