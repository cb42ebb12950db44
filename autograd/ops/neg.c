/* neg — y = -x
 *
 *   gx = -gy */
#ifndef TN_REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
#define TN_TEMPLATE "autograd/ops/neg.c"
#define TN_WITH_I64
#include "core/real.h"

static void neg_forward(tn_ctx *c) { tn__map(TN_NUMBERS(neg_fwd), TN_LIST(c->out[0]), TN_LIST(c->in[0]), NULL); }
static void neg_backward_ops(tn_back *b) { b->gx[0] = tn_neg(b->gy[0]); }

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}}},
    {.in = {{0, {0}}}},
    {.in = {{3, {2, 0, 3}}}},
    {.in = {{3, {2, 1, 5}}}},
    {.in = {{2, {2, 3}}}, .kind = {TN_ARG_INT}, .low = {-5}, .high = {6}},
    {.in = {{1, {2}}},
     .kind = {TN_ARG_MASK},
     .status = TN_EDTYPE,
     .fails = "neg: makes no sense for bool; convert it with tn_to(x, TN_I64)"},
};

const tn_op tn__op_neg = {TN_ROOM("neg", TN_AS_IS),         .inputs = 1,
                          .infer = tn__infer_numbers,       .forward = neg_forward,
                          .backward_ops = neg_backward_ops, .inplace = true};
TN_SAMPLES(neg, samples);

tn_tensor *tn_neg(tn_tensor *x) { return tn_apply(&tn__op_neg, x); }
tn_tensor *tn_neg_(tn_tensor *x) { return tn_apply_args_(&tn__op_neg, NULL, x); }

#else /* ============================================================== kernels: contiguous, one number type */

static void TN_(neg_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN_REAL *x = in[0];
    TN_REAL       *y = out[0];
    (void)args;
#if TN_IS_REAL
    for (int64_t i = 0; i < n; i++) y[i] = -x[i];
#else
    for (int64_t i = 0; i < n; i++) y[i] = (TN_REAL)(0 - (uint64_t)x[i]); /* wraps, as integers do */
#endif
}
#endif
