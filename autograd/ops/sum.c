/* sum — the sum over all dims, or the given ones
 *
 *   gx = gy, repeated over the reduced dims
 *
 * Floating sums are computed in f64, in the lanes of core/kernels/sum_lanes.h. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
#include "core/kernels/sum_lanes.h"
typedef struct {
    tn_dims dims;
    bool    keepdim, wide; /* wide: the result of bf16 is f32 */
} args_t;
#define TN__TEMPLATE "autograd/ops/sum.c"
#define TN__WITH_I64
#include "core/real.h"

static bool sum_infer(tn_ctx *c)
{
    tn_dims        dims = TN_ARG(c, dims);
    const tn_dtype dt = c->in[0]->dtype;
    c->result[0].dtype = !tn__is_float(dt) ? TN_I64 : TN_ARG(c, wide) ? tn__wide(dt) : dt;
    return tn__reduced_shape("sum", c->in[0]->l.shape, &dims, TN_ARG(c, keepdim), &c->result[0].shape);
}
static void sum_forward(tn_ctx *c)
{
    static const tn__reducer f32 = TN__REDUCER_OF_LANES(sum, f32), f64 = TN__REDUCER_OF_LANES(sum, f64),
                             i64 = TN__REDUCER_PARTS(sum, i64);
    tn_dims dims = TN_ARG(c, dims);
    tn__wrap_dims("sum", &dims, c->in[0]->l.shape.n);
    tn__reduce((tn__reducers){&f32, &f64, &i64}, dims, TN__LIST(c->out[0]), c->in[0], NULL);
}
static void sum_backward_ops(tn_back *b)
{
    tn_tensor *g = tn__unreduced(b->gy[0], b->in_shape[0], TN_ARG(b, dims), TN_ARG(b, keepdim));
    b->gx[0] = tn_expand(g, b->in_shape[0]);
}

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}}, .args = &(args_t){{.n = 0, .d = {0}}, false, false}},
    {.in = {{3, {2, 3, 4}}}, .args = &(args_t){{.n = 1, .d = {1}}, false, false}},
    {.in = {{3, {2, 3, 4}}}, .args = &(args_t){{.n = 2, .d = {-1, 0}}, true, false}},
    {.in = {{0, {0}}}, .args = &(args_t){{.n = 0, .d = {0}}, false, false}},
    {.in = {{2, {0, 3}}}, .args = &(args_t){{.n = 1, .d = {0}}, false, false}},
    {.in = {{2, {0, 3}}}, .args = &(args_t){{.n = 1, .d = {1}}, true, false}},
    {.in = {{2, {3, 4}}},
     .args = &(args_t){{.n = 2, .d = {0, -2}}, false, false},
     TN__FAILS(TN_EINVAL, "sum: dim 0 is listed twice")},
};

const tn_op tn__op_sum = {TN__ROOM("sum", TN_WIDE),    .inputs = 1,
                          .args_size = sizeof(args_t), .infer = sum_infer,
                          .forward = sum_forward,      .backward_ops = sum_backward_ops};
TN__SAMPLES(sum, samples);

tn_tensor *tn__sum_wide(tn_tensor *x, tn_dims dims)
{
    return tn_apply_args(&tn__op_sum, (&(args_t){dims, true, true}), x);
}
tn_tensor *tn_sum_run(tn_reduce_args a)
{
    if (!tn__reduce_options("tn_sum", &a, false, false)) return NULL;
    return tn_apply_args(&tn__op_sum, (&(args_t){a.dims, a.keepdim, false}), a.x);
}

#else /* ================================================================== a reducer over blocks of one dtype */

#if TN__IS_REAL
typedef tn__lanes TN__(sum_state);
#else
typedef tn__ilanes TN__(sum_state);
#endif

static void TN__(sum_init)(void *state, const void *args)
{
    (void)args;
    *(TN__(sum_state) *)state = (TN__(sum_state)){{0}};
}
static void TN__(sum_step)(int64_t n, int64_t at, void *state, const void *x, const void *args)
{
    (void)at, (void)args;
    TN__(tn__add_lanes)(state, n, x);
}
static void TN__(sum_merge)(void *state, const void *later, const void *args)
{
    TN__(sum_state) *s = state;
    const TN__(sum_state) *l = later;
    (void)args;
    for (int k = 0; k < TN__LANES; k++) s->lane[k] += l->lane[k];
}
static void TN__(sum_finish)(int64_t n, const void *state, void *const *out, const void *args)
{
    (void)n, (void)args;
#if TN__IS_REAL
    *(TN__REAL *)out[0] = (TN__REAL)tn__lanes_total(*(const tn__lanes *)state);
#else
    *(TN__REAL *)out[0] = tn__ilanes_total(state);
#endif
}
#endif
