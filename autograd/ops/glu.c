/* glu — along dim, the first half a times sigmoid of the second half z: y = a · s with s = sigmoid(z)
 *
 *   ga = gy · s,  gz = gy · a · s · (1 - s)        1 - s = sigmoid(-z) */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
typedef struct {
    int dim;
} args_t;
#define TN__TEMPLATE "autograd/ops/glu.c"
#include "core/real.h"

static bool glu_infer(tn_ctx *c)
{
    const tn_shape s = c->in[0]->l.shape;
    int            dim = TN_ARG(c, dim);
    char           text[192];
    if (!tn__infer_real(c)) return false;
    if (s.n == 0) return tn_infer_fail(c, TN_ESHAPE, "a 0-d tensor cannot be halved; x must have a dim of even size");
    if (!tn__wrap_dim("glu", &dim, s.n)) return false;
    if (s.d[dim] % 2)
        return tn_infer_fail(c, TN_ESHAPE, "dim %d of %s cannot be halved: its size must be even", TN_ARG(c, dim),
                             tn_shape_text(s, text, sizeof text));
    c->result[0].shape.d[dim] /= 2;
    return true;
}
static void glu_forward(tn_ctx *c)
{
    tn__rows(TN__REALS(glu_fwd), TN_ARG(c, dim), TN__LIST(c->out[0]), TN__LIST(c->in[0]), NULL);
}

static void glu_backward(tn_back *b)
{
    if ((b->gx[0] = tn_empty_like(b->in[0])))
        tn__rows(TN__REALS(glu_bwd), TN_ARG(b, dim), TN__LIST(b->gx[0]), TN__LIST(b->in[0], b->gy[0]), NULL);
}
static void glu_backward_ops(tn_back *b)
{
    tn_tensor *x = b->in[0], *gy = b->gy[0];
    const int  dim = TN_ARG(b, dim);
    int64_t    half = tn_size(gy, dim);
    tn_tensor *a = tn_narrow(x, dim, 0, half), *z = tn_narrow(x, dim, half, half);
    tn_tensor *ga = tn_mul(gy, tn_sigmoid(z));
    b->gx[0] = tn_cat(dim, ga, tn_mul(tn_mul(ga, a), tn_sigmoid(tn_neg(z))));
}

/* clang-format off */
static const tn__sample samples[] = {
    {.in = {{1, {6}}}, .args = &(args_t){-1}},
    {.in = {{3, {2, 4, 3}}}, .args = &(args_t){1}},
    {.in = {{2, {2, 3}}}, .args = &(args_t){0}},
    {.in = {{2, {0, 4}}}, .args = &(args_t){1}},
    {.in = {{2, {3, 0}}}, .args = &(args_t){1}},
    {.in = {{2, {2, 6}}}, .args = &(args_t){1}, .low = {-40}, .high = {40}},
    {.in = {{2, {2, 3}}}, .args = &(args_t){-1},
     TN__FAILS(TN_ESHAPE, "glu: dim -1 of [2, 3] cannot be halved: its size must be even")},
    {.in = {{0, {0}}}, .args = &(args_t){0},
     TN__FAILS(TN_ESHAPE, "glu: a 0-d tensor cannot be halved; x must have a dim of even size")},
    {.in = {{2, {2, 4}}}, .args = &(args_t){2}, TN__FAILS(TN_EINDEX, "glu: dim 2 is out of range for a 2-d tensor")},
    {.in = {{1, {2}}}, .args = &(args_t){0}, .kind = {TN__ARG_INT},
     TN__FAILS(TN_EDTYPE, "glu: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
};
/* clang-format on */

const tn_op tn__op_glu = {TN__ROOM("glu", TN_AS_IS),   .inputs = 1,
                          .args_size = sizeof(args_t), .saves = TN_SAVE_IN(0),
                          .infer = glu_infer,          .forward = glu_forward,
                          .backward = glu_backward,    .backward_ops = glu_backward_ops};
TN__SAMPLES(glu, samples);

tn_tensor *tn_glu(tn_tensor *x, int dim) { return tn_apply_args(&tn__op_glu, &(args_t){dim}, x); }

#else /* =========================================================== kernels: contiguous rows, one real type */

static void TN__(glu_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const int64_t   half = n / 2;
    const TN__REAL *a = in[0], *z = a + half;
    TN__REAL       *y = out[0];
    (void)args;
    for (int64_t i = 0; i < half; i++) {
        TN__REAL e = TN__M(exp)(-TN__M(fabs)(z[i]));
        y[i] = a[i] * ((z[i] < 0 ? e : 1) / (1 + e));
    }
}

static void TN__(glu_bwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const int64_t   half = n / 2;
    const TN__REAL *a = in[0], *z = a + half, *gy = in[1];
    TN__REAL       *ga = out[0], *gz = ga + half;
    (void)args;
    for (int64_t i = 0; i < half; i++) {
        TN__REAL e = TN__M(exp)(-TN__M(fabs)(z[i]));
        ga[i] = gy[i] * ((z[i] < 0 ? e : 1) / (1 + e));
        gz[i] = gy[i] * a[i] * (e / ((1 + e) * (1 + e)));
    }
}
#endif
