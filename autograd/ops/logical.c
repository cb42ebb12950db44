/* logical — and, or, xor, not: bool, without gradient. Every element that is not 0 counts as true, also NaN. */
#ifndef TN__REAL /* ============================================================================== the rooms */
#include "autograd/rooms/elementwise.h"
#define TN__TEMPLATE "autograd/ops/logical.c"
#define TN__WITH_I64
#include "core/real.h"

static const tn__sample logical_not_samples[] = {
    {.in = {{2, {3, 4}}}, .kind = {TN__ARG_MASK}},
    {.in = {{2, {3, 4}}}, .kind = {TN__ARG_INT}},
    {.in = {{0, {0}}}},
    {.in = {{2, {0, 3}}}},
    {.in = {{3, {2, 1, 3}}}},
};
TN__TEST(logical_not)

/* Each input is converted to bool separately: converting to the wider dtype first could round a small value to 0. */
static tn_tensor *on_bools(const tn_op *op, tn_tensor *a, tn_tensor *b)
{
    if (a && b && a->dtype != b->dtype) a = tn_to(a, TN_BOOL), b = tn_to(b, TN_BOOL);
    return tn_apply(op, a, b);
}

/* clang-format off */
#define ROOM(op)                                                                                                 \
    static const tn__sample op##_samples[] = {                                                                   \
        {.in = {{2, {3, 4}}, {2, {3, 4}}}, .kind = {TN__ARG_MASK, TN__ARG_MASK}},                                \
        {.in = {{3, {2, 3, 4}}, {1, {4}}}, .kind = {TN__ARG_INT, TN__ARG_INT}},                                  \
        {.in = {{2, {3, 1}}, {3, {2, 1, 4}}}, .kind = {TN__ARG_MASK, TN__ARG_MASK}},                             \
        {.in = {{0, {0}}, {2, {2, 2}}}}, {.in = {{2, {0, 3}}, {2, {1, 3}}}}, TN__NO_BROADCAST(op)};              \
    TN__FORWARD(op, NUMBERS, NULL, c->in[0], c->in[1])                                                           \
    TN__OP(op, 2, TN_JOIN, .infer = tn__infer_compare)                                                           \
    tn_tensor *tn_##op(tn_tensor *a, tn_tensor *b) { return on_bools(&tn__op_##op, a, b); }
/* clang-format on */
ROOM(logical_and)
ROOM(logical_or)
ROOM(logical_xor)

#else /* ==================================================================== kernels: contiguous, one dtype */
TN__EACH(logical_not_fwd, x[i] == 0)
TN__EACH_PAIR(logical_and_fwd, (a[i] != 0) & (b[i] != 0))
TN__EACH_PAIR(logical_or_fwd, (a[i] != 0) | (b[i] != 0))
TN__EACH_PAIR(logical_xor_fwd, (a[i] != 0) ^ (b[i] != 0))
#endif
