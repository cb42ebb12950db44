/* tanh — y = (eˣ - e⁻ˣ) / (eˣ + e⁻ˣ)
 *
 *   gx = gy · (1 - y²)        (saves y only) */
#ifndef TN_REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
#include "core/kernels/vecmath.h"
#define TN_TEMPLATE "autograd/ops/tanh.c"
#include "core/real.h"

static void tanh_forward(tn_ctx *c) { tn__map(TN_REALS(tanh_fwd), TN_LIST(c->out[0]), TN_LIST(c->in[0]), NULL); }

static void tanh_backward(tn_back *b)
{
    if ((b->gx[0] = tn_empty_like(b->gy[0])))
        tn__map(TN_REALS(tanh_bwd), TN_LIST(b->gx[0]), TN_LIST(b->out[0], b->gy[0]), NULL);
}
static void tanh_backward_ops(tn_back *b) { b->gx[0] = tn_mul(b->gy[0], tn_rsub_scalar(tn_square(b->out[0]), 1)); }

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}}},
    {.in = {{0, {0}}}},
    {.in = {{3, {2, 0, 3}}}},
    {.in = {{3, {2, 1, 5}}}},
    {.in = {{2, {2, 3}}}, .low = {-9}, .high = {9}},
    {.in = {{1, {2}}},
     .kind = {TN_ARG_INT},
     .status = TN_EDTYPE,
     .fails = "tanh: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)"},
};

const tn_op tn__op_tanh = {TN_ROOM("tanh", TN_AS_IS),         .inputs = 1,
                           .saves = TN_SAVE_OUT(0),           .infer = tn__infer_real,
                           .forward = tanh_forward,           .backward = tanh_backward,
                           .backward_ops = tanh_backward_ops, .inplace = true};
TN_SAMPLES(tanh, samples);

tn_tensor *tn_tanh(tn_tensor *x) { return tn_apply(&tn__op_tanh, x); }
tn_tensor *tn_tanh_(tn_tensor *x) { return tn_apply_args_(&tn__op_tanh, NULL, x); }

#else /* ================================================================ kernels: contiguous, one real type */

static void TN_(tanh_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    (void)args;
    TN_(tn__tanh)(n, out[0], in[0]);
}

static void TN_(tanh_bwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN_REAL *y = in[0], *gy = in[1];
    TN_REAL       *gx = out[0];
    (void)args;
    for (int64_t i = 0; i < n; i++) gx[i] = gy[i] * (1 - y[i] * y[i]);
}
#endif
