/* max, min, argmax, argmin — the largest or the smallest element along a dim, and its index: the first of equal ones;
 * NaN wins
 *
 *   max, min:  gx = gy at that index, else 0 */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
#include "core/kernels/sum_lanes.h"
typedef struct {
    int  dim; /* argmax, argmin: may be TN_ALL */
    bool keepdim;
} args_t;
typedef struct {
    bool least, only_where;
} kernel_args;
#define TN__TEMPLATE "autograd/ops/max.c"
#define TN__WITH_I64
#include "core/real.h"

static bool    only_where(const tn_op *op) { return op == &tn__op_argmax || op == &tn__op_argmin; }
static tn_dims chosen(const tn_op *op, int dim)
{
    return only_where(op) && dim == TN_ALL ? (tn_dims){.n = 0} : TN_DIMS(dim);
}

static bool max_infer(tn_ctx *c)
{
    const tn_dims dims = chosen(c->op, TN_ARG(c, dim));
    if (!tn__need_elements(c, dims)) return false;
    if (only_where(c->op)) return tn__infer_reduced(c, 0, dims, TN_ARG(c, keepdim), TN_I64);
    return tn__infer_reduced(c, 0, dims, TN_ARG(c, keepdim), c->in[0]->dtype) &&
           tn__infer_reduced(c, 1, dims, TN_ARG(c, keepdim), TN_I64);
}
static void max_forward(tn_ctx *c)
{
    static const tn__reducer f32 = TN__REDUCER_PARTS(first, f32), f64 = TN__REDUCER_PARTS(first, f64),
                             i64 = TN__REDUCER_PARTS(first, i64);
    const kernel_args k = {c->op == &tn__op_min || c->op == &tn__op_argmin, only_where(c->op)};
    const tn__list    y = k.only_where ? TN__LIST(c->out[0]) : TN__LIST(c->out[0], c->out[1]);
    tn__reduce((tn__reducers){&f32, &f64, &i64}, tn__dims_of(c->in[0], chosen(c->op, TN_ARG(c, dim))), y, c->in[0], &k);
}
static void max_backward_ops(tn_back *b)
{
    const tn_dims  dims = TN_DIMS(TN_ARG(b, dim));
    const tn_shape x = b->in_shape[0];
    if (!b->gy[0]) return;
    tn_tensor *index = tn__unreduced(b->out[1], x, dims, TN_ARG(b, keepdim));
    tn_tensor *gy = tn__unreduced(b->gy[0], x, dims, TN_ARG(b, keepdim));
    b->gx[0] = tn_scatter_add(tn_zeros_of(b->in_dtype[0], x), TN_ARG(b, dim), index, gy);
}

#define COMMON(name)                                                                                         \
    {.in = {{2, {3, 4}}}, .kind = {TN__ARG_DISTINCT}, .args = &(args_t){1, false}},                          \
        {.in = {{3, {2, 3, 4}}}, .kind = {TN__ARG_DISTINCT}, .args = &(args_t){-2, true}},                   \
        {.in = {{2, {3, 1}}}, .kind = {TN__ARG_DISTINCT}, .args = &(args_t){-1, false}},                     \
        {.in = {{0, {0}}}, .args = &(args_t){0, false}}, {.in = {{2, {0, 3}}}, .args = &(args_t){1, false}}, \
        {.in = {{2, {3, 4}}}, .kind = {TN__ARG_INT}, .low = {-3}, .high = {3}, .args = &(args_t){0, false}}, \
        {.in = {{2, {3, 4}}}, .kind = {TN__ARG_MASK}, .args = &(args_t){1, false}},                          \
        {.in = {{2, {3, 0}}},                                                                                \
         .args = &(args_t){1, false},                                                                        \
         .status = TN_ESHAPE,                                                                                \
         .fails = name ": dim 1 of [3, 0] is empty: there is no element to choose"},                         \
    {                                                                                                        \
        .in = {{2, {3, 4}}}, .args = &(args_t){2, false}, .status = TN_EINDEX,                               \
        .fails = name ": dim 2 is out of range for a 2-d tensor"                                             \
    }
#define FLAT(name)                                                                          \
    {.in = {{2, {3, 4}}}, .kind = {TN__ARG_DISTINCT}, .args = &(args_t){TN_ALL, false}},    \
        {.in = {{2, {3, 4}}}, .kind = {TN__ARG_DISTINCT}, .args = &(args_t){TN_ALL, true}}, \
    {                                                                                       \
        .in = {{2, {0, 3}}}, .args = &(args_t){TN_ALL, false}, .status = TN_ESHAPE,         \
        .fails = name ": dim 0 of [0, 3] is empty: there is no element to choose"           \
    }
static const tn__sample max_samples[] = {COMMON("max")};
static const tn__sample min_samples[] = {COMMON("min")};
static const tn__sample argmax_samples[] = {COMMON("argmax"), FLAT("argmax")};
static const tn__sample argmin_samples[] = {COMMON("argmin"), FLAT("argmin")};

#define ROOM(title) \
    TN__ROOM(title, TN_AS_IS), .inputs = 1, .args_size = sizeof(args_t), .infer = max_infer, .forward = max_forward
const tn_op tn__op_max = {ROOM("max"), .outputs = 2, .saves = TN_SAVE_OUT(1), .backward_ops = max_backward_ops};
TN__SAMPLES(max, max_samples);
const tn_op tn__op_min = {ROOM("min"), .outputs = 2, .saves = TN_SAVE_OUT(1), .backward_ops = max_backward_ops};
TN__SAMPLES(min, min_samples);
const tn_op tn__op_argmax = {ROOM("argmax")};
TN__SAMPLES(argmax, argmax_samples);
const tn_op tn__op_argmin = {ROOM("argmin")};
TN__SAMPLES(argmin, argmin_samples);

static tn_pair max_call(const tn_op *op, tn_tensor *x, int dim, bool keepdim)
{
    tn_tensor *out[2];
    tn_op_call(op, 1, &x, 2, out, &(args_t){dim, keepdim});
    return (tn_pair){out[0], out[1]};
}
tn_pair    tn_max(tn_tensor *x, int dim, bool keepdim) { return max_call(&tn__op_max, x, dim, keepdim); }
tn_pair    tn_min(tn_tensor *x, int dim, bool keepdim) { return max_call(&tn__op_min, x, dim, keepdim); }
tn_tensor *tn_argmax(tn_tensor *x, int dim, bool keepdim)
{
    return tn_apply_args(&tn__op_argmax, (&(args_t){dim, keepdim}), x);
}
tn_tensor *tn_argmin(tn_tensor *x, int dim, bool keepdim)
{
    return tn_apply_args(&tn__op_argmin, (&(args_t){dim, keepdim}), x);
}

#else /* ================================================================== a reducer over blocks of one dtype */

typedef struct {
    TN__REAL best;
    int64_t  where; /* -1 before the first */
} TN__(first_state);

/* True if `best`, which comes later, replaces the one in s: not if it is equal, or if the one in s is NaN. */
static bool TN__(beats)(const TN__(first_state) * s, TN__REAL best, bool least)
{
    if (s->where < 0) return true;
    if (TN__(tn__isnan)(s->best)) return false;
    return TN__(tn__isnan)(best) || (least ? best < s->best : best > s->best);
}

static void TN__(first_init)(void *state, const void *args)
{
    (void)args;
    *(TN__(first_state) *)state = (TN__(first_state)){0, -1};
}
static void TN__(first_step)(int64_t n, int64_t at, void *state, const void *in, const void *args)
{
    const TN__REAL *x = in;
    const bool      least = ((const kernel_args *)args)->least;
    TN__(first_state) *s = state;
    const TN__REAL best = least ? TN__(tn__lowest)(n, x) : TN__(tn__highest)(n, x);
    int64_t        i = 0;
    if (n == 0 || !TN__(beats)(s, best, least)) return;
    while (TN__(tn__isnan)(best) ? !TN__(tn__isnan)(x[i]) : x[i] != best) i++;
    s->best = best, s->where = at + i;
}
static void TN__(first_merge)(void *state, const void *later, const void *args)
{
    const TN__(first_state) *l = later;
    if (l->where >= 0 && TN__(beats)(state, l->best, ((const kernel_args *)args)->least))
        *(TN__(first_state) *)state = *l;
}
static void TN__(first_finish)(int64_t n, const void *state, void *const *out, const void *args)
{
    const TN__(first_state) *s = state;
    const bool only_where = ((const kernel_args *)args)->only_where;
    (void)n;
    *(int64_t *)out[only_where ? 0 : 1] = s->where;
    if (!only_where) *(TN__REAL *)out[0] = s->best;
}
#endif
