/* logical — and, or, xor, not: bool, without gradient. Every element that is not 0 counts as true, also NaN. */
#ifndef TN__REAL /* ============================================================================== the rooms */
#include "autograd/rooms/room.h"
#define TN__TEMPLATE "autograd/ops/logical.c"
#define TN__WITH_I64
#include "core/real.h"

static bool logical_not_infer(tn_ctx *c)
{
    tn_infer_like(c, 0, 0);
    c->result[0].dtype = TN_BOOL;
    return true;
}
static void logical_not_forward(tn_ctx *c)
{
    tn__map(TN__NUMBERS(not ), TN__LIST(c->out[0]), TN__LIST(c->in[0]), NULL);
}
static const tn__sample samples_not[] = {
    {.in = {{2, {3, 4}}}, .kind = {TN__ARG_MASK}},
    {.in = {{2, {3, 4}}}, .kind = {TN__ARG_INT}},
    {.in = {{0, {0}}}},
    {.in = {{2, {0, 3}}}},
    {.in = {{3, {2, 1, 3}}}},
};
const tn_op tn__op_logical_not = {TN__ROOM("logical_not", TN_AS_IS), .inputs = 1, .infer = logical_not_infer,
                                  .forward = logical_not_forward};
TN__SAMPLES(logical_not, samples_not);
tn_tensor *tn_logical_not(tn_tensor *x) { return tn_apply(&tn__op_logical_not, x); }

/* Each input is converted to bool separately: converting to the wider dtype first could round a small value to 0. */
static tn_tensor *on_bools(const tn_op *op, tn_tensor *a, tn_tensor *b)
{
    if (a && b && a->dtype != b->dtype) a = tn_to(a, TN_BOOL), b = tn_to(b, TN_BOOL);
    return tn_apply(op, a, b);
}

#define ROWS(op)                                                                                                  \
    static const tn__sample samples_##op[] = {                                                                    \
        {.in = {{2, {3, 4}}, {2, {3, 4}}}, .kind = {TN__ARG_MASK, TN__ARG_MASK}},                                 \
        {.in = {{3, {2, 3, 4}}, {1, {4}}}, .kind = {TN__ARG_INT, TN__ARG_INT}},                                   \
        {.in = {{2, {3, 1}}, {3, {2, 1, 4}}}, .kind = {TN__ARG_MASK, TN__ARG_MASK}},                              \
        {.in = {{0, {0}}, {2, {2, 2}}}},                                                                          \
        {.in = {{2, {0, 3}}, {2, {1, 3}}}},                                                                       \
        {.in = {{1, {3}}, {1, {4}}},                                                                              \
         .status = TN_ESHAPE,                                                                                     \
         .fails = "logical_" #op ": shapes [3] and [4] do not broadcast: dim -1 is 3 in one and 4 in the other"}, \
    }
#define ROOM(op)                                                                                                   \
    static void logical_##op##_forward(tn_ctx *c)                                                                  \
    {                                                                                                              \
        tn__map(TN__NUMBERS(op), TN__LIST(c->out[0]), TN__LIST(c->in[0], c->in[1]), NULL);                         \
    }                                                                                                              \
    ROWS(op);                                                                                                      \
    const tn_op tn__op_logical_##op = {TN__ROOM("logical_" #op, TN_JOIN), .inputs = 2, .infer = tn__infer_compare, \
                                       .forward = logical_##op##_forward};                                         \
    TN__SAMPLES(logical_##op, samples_##op);                                                                       \
    tn_tensor *tn_logical_##op(tn_tensor *a, tn_tensor *b) { return on_bools(&tn__op_logical_##op, a, b); }

ROOM(and)
ROOM(or)
ROOM(xor)

#else /* ==================================================================== kernels: contiguous, one dtype */

static void TN__(not )(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *x = in[0];
    TN__REAL       *y = out[0];
    (void)args;
    for (int64_t i = 0; i < n; i++) y[i] = x[i] == 0;
}

#define LOGICAL(op, sign)                                                                      \
    static void TN__(op)(int64_t n, void *const *out, const void *const *in, const void *args) \
    {                                                                                          \
        const TN__REAL *a = in[0], *b = in[1];                                                 \
        TN__REAL       *y = out[0];                                                            \
        (void)args;                                                                            \
        for (int64_t i = 0; i < n; i++) y[i] = (a[i] != 0) sign(b[i] != 0);                    \
    }
LOGICAL(and, &)
LOGICAL(or, |)
LOGICAL(xor, ^)
#undef LOGICAL
#endif
