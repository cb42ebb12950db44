/* add — y = a + b
 *
 *   ga = gy,  gb = gy */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
#define TN__TEMPLATE "autograd/ops/add.c"
#define TN__WITH_I64
#include "core/real.h"

static void add_forward(tn_ctx *c)
{
    tn__map(TN__NUMBERS(add_fwd), TN__LIST(c->out[0]), TN__LIST(c->in[0], c->in[1]), NULL);
}
static void add_backward_ops(tn_back *b)
{
    for (int i = 0; i < 2; i++)
        if (b->need[i]) b->gx[i] = b->gy[0];
}

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}, {2, {3, 4}}}},
    {.in = {{3, {2, 3, 4}}, {1, {4}}}},
    {.in = {{2, {3, 1}}, {3, {2, 1, 4}}}},
    {.in = {{0, {0}}, {2, {2, 2}}}},
    {.in = {{2, {0, 3}}, {2, {1, 3}}}},
    {.in = {{2, {2, 3}}, {1, {3}}}, .kind = {TN__ARG_INT, TN__ARG_INT}, .low = {-9, -9}, .high = {9, 9}},
    {.in = {{1, {5}}, {1, {5}}}, .kind = {TN__ARG_MASK, TN__ARG_MASK}}, /* or */
    {.in = {{1, {3}}, {1, {4}}},
     TN__FAILS(TN_ESHAPE, "add: shapes [3] and [4] do not broadcast: dim -1 is 3 in one and 4 in the other")},
    {.in = {{1, {3}}, {1, {3}}},
     .kind = {TN__ARG_REAL, TN__ARG_INT},
     TN__FAILS(TN_EDTYPE, "add: dtypes differ: f32 and i64")},
};

const tn_op tn__op_add = {TN__ROOM("add", TN_JOIN),         .inputs = 2,
                          .infer = tn__infer_binary,        .forward = add_forward,
                          .backward_ops = add_backward_ops, .inplace = true};
TN__SAMPLES(add, samples);

tn_tensor *tn_add(tn_tensor *a, tn_tensor *b) { return tn__binary(&tn__op_add, a, b, false); }
tn_tensor *tn_add_(tn_tensor *a, tn_tensor *b) { return tn__binary_(&tn__op_add, a, b, false); }

#else /* ==================================================================== kernels: contiguous, one dtype */

static void TN__(add_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *a = in[0], *b = in[1];
    TN__REAL       *y = out[0];
    (void)args;
#if TN__IS_REAL
    for (int64_t i = 0; i < n; i++) y[i] = a[i] + b[i];
#else
    for (int64_t i = 0; i < n; i++) y[i] = (TN__REAL)((uint64_t)a[i] + (uint64_t)b[i]); /* wraps, as integers do */
#endif
}
#endif
