/* mul_scalar — y = k · x for a plain number k, which must be whole if x holds integers
 *
 *   gx = k · gy */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
typedef struct {
    double k;
} args_t;
#define TN__TEMPLATE "autograd/ops/mul_scalar.c"
#define TN__WITH_I64
#include "core/real.h"

static bool mul_scalar_infer(tn_ctx *c) { return tn__infer_numbers(c) && tn__need_whole(c, 0, TN_ARG(c, k)); }
static void mul_scalar_forward(tn_ctx *c)
{
    tn__map(TN__NUMBERS(mul_scalar_fwd), TN__LIST(c->out[0]), TN__LIST(c->in[0]), c->args);
}
static void mul_scalar_backward(tn_back *b)
{
    if ((b->gx[0] = tn__grad_room(b)))
        tn__map(TN__NUMBERS(mul_scalar_fwd), TN__LIST(b->gx[0]), TN__LIST(b->gy[0]), b->args);
}
static void mul_scalar_backward_ops(tn_back *b) { b->gx[0] = tn_mul_scalar(b->gy[0], TN_ARG(b, k)); }

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}}, .args = &(args_t){0.7}},
    {.in = {{0, {0}}}, .args = &(args_t){-3}},
    {.in = {{2, {0, 4}}}, .args = &(args_t){2}},
    {.in = {{3, {2, 1, 3}}}, .args = &(args_t){-1e3}},
    {.in = {{1, {5}}}, .args = &(args_t){1}},
    {.in = {{2, {2, 3}}}, .args = &(args_t){-3}, .kind = {TN__ARG_INT}, .low = {-9}, .high = {9}},
    {.in = {{1, {2}}},
     .args = &(args_t){0.5},
     .kind = {TN__ARG_INT},
     TN__FAILS(TN_EDTYPE, "mul_scalar: x is i64 and 0.5 is not a whole number; convert x with tn_to(x, TN_F32)")},
    {.in = {{1, {2}}},
     .args = &(args_t){1e20},
     .kind = {TN__ARG_INT},
     TN__FAILS(TN_EDTYPE, "mul_scalar: x is i64 and 1e+20 does not fit in it; convert x with tn_to(x, TN_F64)")},
    {.in = {{1, {2}}},
     .args = &(args_t){1},
     .kind = {TN__ARG_MASK},
     TN__FAILS(TN_EDTYPE, "mul_scalar: does not support bool; convert it with tn_to(x, TN_I64)")},
};

const tn_op tn__op_mul_scalar = {TN__ROOM("mul_scalar", TN_AS_IS),
                                 .inputs = 1,
                                 .args_size = sizeof(args_t),
                                 .infer = mul_scalar_infer,
                                 .forward = mul_scalar_forward,
                                 .backward = mul_scalar_backward,
                                 .backward_ops = mul_scalar_backward_ops,
                                 .inplace = true};
TN__SAMPLES(mul_scalar, samples);

tn_tensor *tn_mul_scalar(tn_tensor *x, double k) { return tn_apply_args(&tn__op_mul_scalar, &(args_t){k}, x); }
tn_tensor *tn_mul_scalar_(tn_tensor *x, double k) { return tn_apply_args_(&tn__op_mul_scalar, &(args_t){k}, x); }

#else /* ==================================================================== kernels: contiguous, one dtype */

static void TN__(mul_scalar_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *x = in[0];
    TN__REAL       *y = out[0], k = (TN__REAL)((const args_t *)args)->k;
#if TN__IS_REAL
    for (int64_t i = 0; i < n; i++) y[i] = x[i] * k;
#else
    for (int64_t i = 0; i < n; i++) y[i] = (TN__REAL)((uint64_t)x[i] * (uint64_t)k); /* wraps, as integers do */
#endif
}
#endif
