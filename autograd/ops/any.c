/* any, all — true if one element, or if each element, is not 0. NaN is not 0. No elements: false and true. Without
 * gradient. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
typedef struct {
    tn_dims dims;
    bool    keepdim;
} args_t;
typedef struct {
    bool all;
} kernel_args;
#define TN__TEMPLATE "autograd/ops/any.c"
#define TN__WITH_I64
#include "core/real.h"

static bool any_infer(tn_ctx *c) { return tn__infer_reduced(c, 0, TN_ARG(c, dims), TN_ARG(c, keepdim), TN_BOOL); }
static void any_forward(tn_ctx *c)
{
    static const tn__reducer f32 = TN__REDUCER_PARTS(found, f32), f64 = TN__REDUCER_PARTS(found, f64),
                             i64 = TN__REDUCER_PARTS(found, i64);
    const kernel_args k = {c->op == &tn__op_all};
    tn__reduce((tn__reducers){&f32, &f64, &i64}, tn__dims_of(c->in[0], TN_ARG(c, dims)), TN__LIST(c->out[0]), c->in[0],
               &k);
}

#define ROWS(name)                                                                                                   \
    {.in = {{2, {3, 4}}}, .kind = {TN__ARG_MASK}, .args = &(args_t){{.n = 0, .d = {0}}, false}},                     \
        {.in = {{3, {2, 3, 4}}}, .kind = {TN__ARG_MASK}, .args = &(args_t){{.n = 2, .d = {-1, 0}}, true}},           \
        {.in = {{2, {3, 2}}},                                                                                        \
         .kind = {TN__ARG_INT},                                                                                      \
         .low = {-1},                                                                                                \
         .high = {2},                                                                                                \
         .args = &(args_t){{.n = 1, .d = {1}}, false}},                                                              \
        {.in = {{2, {3, 4}}}, .kind = {TN__ARG_CONST}, .args = &(args_t){{.n = 1, .d = {0}}, false}},                \
        {.in = {{0, {0}}}, .kind = {TN__ARG_MASK}, .args = &(args_t){{.n = 0, .d = {0}}, false}},                    \
        {.in = {{2, {0, 3}}}, .kind = {TN__ARG_MASK}, .args = &(args_t){{.n = 1, .d = {0}}, false}},                 \
    {                                                                                                                \
        .in = {{1, {3}}}, .kind = {TN__ARG_MASK}, .args = &(args_t){{.n = 1, .d = {1}}, false}, .status = TN_EINDEX, \
        .fails = name ": dim 1 is out of range for a 1-d tensor"                                                     \
    }
static const tn__sample any_samples[] = {ROWS("any")};
static const tn__sample all_samples[] = {ROWS("all")};

#define ROOM(title) \
    TN__ROOM(title, TN_AS_IS), .inputs = 1, .args_size = sizeof(args_t), .infer = any_infer, .forward = any_forward
const tn_op tn__op_any = {ROOM("any")};
TN__SAMPLES(any, any_samples);
const tn_op tn__op_all = {ROOM("all")};
TN__SAMPLES(all, all_samples);

tn_tensor *tn_any_run(tn_reduce_args a)
{
    if (!tn__reduce_options("tn_any", &a, false, false)) return NULL;
    return tn_apply_args(&tn__op_any, (&(args_t){a.dims, a.keepdim}), a.x);
}
tn_tensor *tn_all_run(tn_reduce_args a)
{
    if (!tn__reduce_options("tn_all", &a, false, false)) return NULL;
    return tn_apply_args(&tn__op_all, (&(args_t){a.dims, a.keepdim}), a.x);
}

#else /* ================================================================== a reducer over blocks of one dtype */

typedef struct {
    bool found; /* any: an element that is not 0; all: one that is 0 */
} TN__(found_state);

static void TN__(found_init)(void *state, const void *args)
{
    (void)args;
    ((TN__(found_state) *)state)->found = false;
}
static void TN__(found_step)(int64_t n, int64_t at, void *state, const void *in, const void *args)
{
    const TN__REAL *x = in;
    TN__(found_state) *s = state;
    const bool zero = ((const kernel_args *)args)->all;
    (void)at;
    for (int64_t i = 0; i < n && !s->found; i++) s->found = (x[i] == 0) == zero;
}
static void TN__(found_merge)(void *state, const void *later, const void *args)
{
    (void)args;
    ((TN__(found_state) *)state)->found |= ((const TN__(found_state) *)later)->found;
}
static void TN__(found_finish)(int64_t n, const void *state, void *const *out, const void *args)
{
    (void)n;
    *(TN__REAL *)out[0] = ((const TN__(found_state) *)state)->found != ((const kernel_args *)args)->all;
}
#endif
