/* mean — the mean over all dims, or the given ones; of no elements: NaN
 *
 *   gx = gy / n, repeated over the reduced dims
 *
 * The sum is computed in f64, in the lanes of core/kernels/sum_lanes.h, and divided before it is rounded. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
#include "core/kernels/sum_lanes.h"
typedef struct {
    tn_dims dims;
    bool    keepdim;
} args_t;
#define TN__TEMPLATE "autograd/ops/mean.c"
#include "core/real.h"

static bool mean_infer(tn_ctx *c)
{
    return tn__need_real(c, 0) && tn__infer_reduced(c, 0, TN_ARG(c, dims), TN_ARG(c, keepdim), c->in[0]->dtype);
}
static void mean_forward(tn_ctx *c)
{
    static const tn__reducer f32 = TN__REDUCER_OF_LANES(mean, f32), f64 = TN__REDUCER_OF_LANES(mean, f64);
    tn__reduce((tn__reducers){&f32, &f64, NULL}, tn__dims_of(c->in[0], TN_ARG(c, dims)), TN__LIST(c->out[0]), c->in[0],
               NULL);
}
static void mean_backward_ops(tn_back *b)
{
    tn_tensor    *g = tn__unreduced(b->gy[0], b->in_shape[0], TN_ARG(b, dims), TN_ARG(b, keepdim));
    const int64_t n = tn__count_of(b->in_shape[0], TN_ARG(b, dims));
    b->gx[0] = tn_expand(tn_div_scalar(g, n ? (double)n : 1), b->in_shape[0]); /* of no elements: 0, not NaN, for gy */
}

/* clang-format off */
static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}}, .args = &(args_t){{.n = 0, .d = {0}}, false}},
    {.in = {{3, {2, 3, 4}}}, .args = &(args_t){{.n = 1, .d = {1}}, false}},
    {.in = {{3, {2, 3, 4}}}, .args = &(args_t){{.n = 2, .d = {-1, 0}}, true}},
    {.in = {{3, {2, 1, 4}}}, .args = &(args_t){{.n = 1, .d = {1}}, false}},
    {.in = {{0, {0}}}, .args = &(args_t){{.n = 0, .d = {0}}, false}},
    {.in = {{2, {0, 3}}}, .args = &(args_t){{.n = 1, .d = {1}}, true}},
    {.in = {{2, {3, 4}}}, .args = &(args_t){{.n = 1, .d = {2}}, false},
     TN__FAILS(TN_EINDEX, "mean: dim 2 is out of range for a 2-d tensor")},
    {.in = {{1, {2}}}, .args = &(args_t){{.n = 0, .d = {0}}, false}, .kind = {TN__ARG_INT},
     TN__FAILS(TN_EDTYPE, "mean: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
};
/* clang-format on */

const tn_op tn__op_mean = {TN__ROOM("mean", TN_WIDE),   .inputs = 1,
                           .args_size = sizeof(args_t), .infer = mean_infer,
                           .forward = mean_forward,     .backward_ops = mean_backward_ops};
TN__SAMPLES(mean, samples);

tn_tensor *tn_mean_run(tn_reduce_args a)
{
    if (!tn__reduce_options("tn_mean", &a, false, false)) return NULL;
    return tn_apply_args(&tn__op_mean, (&(args_t){a.dims, a.keepdim}), a.x);
}

#else /* ============================================================== a reducer over blocks of one real type */

typedef tn__lanes TN__(mean_state);

static void TN__(mean_init)(void *state, const void *args)
{
    (void)args;
    *(tn__lanes *)state = (tn__lanes){{0}};
}
static void TN__(mean_step)(int64_t n, int64_t at, void *state, const void *x, const void *args)
{
    (void)at, (void)args;
    TN__(tn__add_lanes)(state, n, x);
}
static void TN__(mean_merge)(void *state, const void *later, const void *args)
{
    tn__lanes       *s = state;
    const tn__lanes *l = later;
    (void)args;
    for (int k = 0; k < TN__LANES; k++) s->lane[k] += l->lane[k];
}
static void TN__(mean_finish)(int64_t n, const void *state, void *const *out, const void *args)
{
    (void)args;
    *(TN__REAL *)out[0] = (TN__REAL)(tn__lanes_total(*(const tn__lanes *)state) / (double)n);
}
#endif
