/* compare — eq, ne, lt, le, gt, ge: bool, without gradient
 *
 * Two dtypes are promoted to the wider one first. NaN is not equal to anything, and neither less nor greater. */
#ifndef TN__REAL /* ============================================================================== the rooms */
#include "autograd/rooms/room.h"
#define TN__TEMPLATE "autograd/ops/compare.c"
#define TN__WITH_I64
#include "core/real.h"

#define ROWS(op)                                                                                       \
    static const tn__sample op##_samples[] = {                                                         \
        {.in = {{2, {3, 4}}, {2, {3, 4}}}},                                                            \
        {.in = {{3, {2, 3, 4}}, {1, {4}}}, .kind = {TN__ARG_INT, TN__ARG_INT}},                        \
        {.in = {{2, {3, 1}}, {3, {2, 1, 4}}}, .kind = {TN__ARG_INT, TN__ARG_INT}},                     \
        {.in = {{0, {0}}, {2, {2, 2}}}},                                                               \
        {.in = {{2, {0, 3}}, {2, {1, 3}}}},                                                            \
        {.in = {{2, {3, 4}}, {2, {3, 4}}}, .kind = {TN__ARG_MASK, TN__ARG_MASK}},                      \
        {.in = {{1, {3}}, {1, {4}}},                                                                   \
         .status = TN_ESHAPE,                                                                          \
         .fails = #op ": shapes [3] and [4] do not broadcast: dim -1 is 3 in one and 4 in the other"}, \
    }
#define ROOM(op)                                                                                \
    static void op##_forward(tn_ctx *c)                                                         \
    {                                                                                           \
        tn__map(TN__NUMBERS(op), TN__LIST(c->out[0]), TN__LIST(c->in[0], c->in[1]), NULL);      \
    }                                                                                           \
    ROWS(op);                                                                                   \
    const tn_op tn__op_##op = {TN__ROOM(#op, TN_JOIN), .inputs = 2, .infer = tn__infer_compare, \
                               .forward = op##_forward};                                        \
    TN__SAMPLES(op, op##_samples);                                                              \
    tn_tensor *tn_##op(tn_tensor *a, tn_tensor *b) { return tn__binary(&tn__op_##op, a, b, false); }

ROOM(eq)
ROOM(ne)
ROOM(lt)
ROOM(le)
ROOM(gt)
ROOM(ge)

#else /* ==================================================================== kernels: contiguous, one dtype */

#define COMPARE(op, sign)                                                                      \
    static void TN__(op)(int64_t n, void *const *out, const void *const *in, const void *args) \
    {                                                                                          \
        const TN__REAL *a = in[0], *b = in[1];                                                 \
        TN__REAL       *y = out[0];                                                            \
        (void)args;                                                                            \
        for (int64_t i = 0; i < n; i++) y[i] = a[i] sign b[i];                                 \
    }
COMPARE(eq, ==)
COMPARE(ne, !=)
COMPARE(lt, <)
COMPARE(le, <=)
COMPARE(gt, >)
COMPARE(ge, >=)
#undef COMPARE
#endif
