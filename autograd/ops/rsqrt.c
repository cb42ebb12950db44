/* rsqrt — y = 1 / √x
 *
 *   gx = -gy · y³ / 2        (saves y only) */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"

/* r in f32 has been rounded twice; a Newton step in f64 leaves one rounding. For x = 0 and infinity r is unchanged. */
static inline double refined(double x, double r)
{
    const double off = 1 - x * r * r, y = r + 0.5 * r * off;
    return y == y ? y : r;
}

#define TN__TEMPLATE "autograd/ops/rsqrt.c"
#include "core/real.h"

static void rsqrt_forward(tn_ctx *c) { tn__map(TN__REALS(rsqrt_fwd), TN__LIST(c->out[0]), TN__LIST(c->in[0]), NULL); }

static void rsqrt_backward(tn_back *b)
{
    if ((b->gx[0] = tn_empty_like(b->gy[0])))
        tn__map(TN__REALS(rsqrt_bwd), TN__LIST(b->gx[0]), TN__LIST(b->out[0], b->gy[0]), NULL);
}
static void rsqrt_backward_ops(tn_back *b)
{
    tn_tensor *y = b->out[0];
    b->gx[0] = tn_mul_scalar(tn_mul(b->gy[0], tn_mul(tn_square(y), y)), -0.5);
}

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}}, .low = {0.5}, .high = {3}},
    {.in = {{0, {0}}}, .low = {0.5}, .high = {3}},
    {.in = {{3, {2, 0, 3}}}, .low = {0.5}, .high = {3}},
    {.in = {{3, {2, 1, 5}}}, .low = {0.5}, .high = {3}},
    {.in = {{2, {2, 3}}}, .low = {1000}, .high = {3000}},
    {.in = {{1, {2}}},
     .kind = {TN__ARG_INT},
     TN__FAILS(TN_EDTYPE, "rsqrt: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
};

const tn_op tn__op_rsqrt = {TN__ROOM("rsqrt", TN_AS_IS),       .inputs = 1,
                            .saves = TN_SAVE_OUT(0),           .infer = tn__infer_real,
                            .forward = rsqrt_forward,          .backward = rsqrt_backward,
                            .backward_ops = rsqrt_backward_ops};
TN__SAMPLES(rsqrt, samples);

tn_tensor *tn_rsqrt(tn_tensor *x) { return tn_apply(&tn__op_rsqrt, x); }

#else /* ================================================================ kernels: contiguous, one real type */

static void TN__(rsqrt_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *x = in[0];
    TN__REAL       *y = out[0];
    (void)args;
    for (int64_t i = 0; i < n; i++) {
        const TN__REAL r = 1 / TN__M(sqrt)(x[i]);
        y[i] = sizeof r == sizeof(float) ? (TN__REAL)refined((double)x[i], (double)r) : r;
    }
}

static void TN__(rsqrt_bwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *y = in[0], *gy = in[1];
    TN__REAL       *gx = out[0];
    (void)args;
    for (int64_t i = 0; i < n; i++) gx[i] = (TN__REAL)-0.5 * gy[i] * (y[i] * y[i] * y[i]);
}
#endif
