/* div_scalar — y = x / k for a plain number k; integers are divided as f32
 *
 *   gx = gy / k */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
typedef struct {
    double k;
} args_t;
#define TN__TEMPLATE "autograd/ops/div_scalar.c"
#include "core/real.h"

static void div_scalar_forward(tn_ctx *c)
{
    tn__map(TN__REALS(div_scalar_fwd), TN__LIST(c->out[0]), TN__LIST(c->in[0]), c->args);
}
static void div_scalar_backward(tn_back *b)
{
    if ((b->gx[0] = tn__grad_room(b)))
        tn__map(TN__REALS(div_scalar_fwd), TN__LIST(b->gx[0]), TN__LIST(b->gy[0]), b->args);
}
static void div_scalar_backward_ops(tn_back *b) { b->gx[0] = tn_div_scalar(b->gy[0], TN_ARG(b, k)); }

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}}, .args = &(args_t){0.7}},
    {.in = {{0, {0}}}, .args = &(args_t){-3}},
    {.in = {{2, {0, 4}}}, .args = &(args_t){2}},
    {.in = {{3, {2, 1, 3}}}, .args = &(args_t){-1e3}},
    {.in = {{1, {5}}}, .args = &(args_t){1}},
    {.in = {{1, {2}}},
     .args = &(args_t){2},
     .kind = {TN__ARG_INT},
     TN__FAILS(TN_EDTYPE, "div_scalar: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
};

const tn_op tn__op_div_scalar = {TN__ROOM("div_scalar", TN_AS_IS),
                                 .inputs = 1,
                                 .args_size = sizeof(args_t),
                                 .infer = tn__infer_real,
                                 .forward = div_scalar_forward,
                                 .backward = div_scalar_backward,
                                 .backward_ops = div_scalar_backward_ops,
                                 .inplace = true};
TN__SAMPLES(div_scalar, samples);

tn_tensor *tn_div_scalar(tn_tensor *x, double k)
{
    if (x && !tn__is_float(x->dtype)) x = tn_to(x, TN_F32);
    return tn_apply_args(&tn__op_div_scalar, &(args_t){k}, x);
}
tn_tensor *tn_div_scalar_(tn_tensor *x, double k) { return tn_apply_args_(&tn__op_div_scalar, &(args_t){k}, x); }

#else /* ================================================================ kernels: contiguous, one real type */

static void TN__(div_scalar_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *x = in[0];
    TN__REAL       *y = out[0], k = (TN__REAL)((const args_t *)args)->k;
    for (int64_t i = 0; i < n; i++) y[i] = x[i] / k;
}
#endif
