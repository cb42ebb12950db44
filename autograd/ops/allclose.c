/* allclose — |a - b| ≤ atol + rtol · |b|, element by element: bool, without gradient; tn_allclose: true if all are
 *
 * Equal infinities are close; NaN is close to nothing, and nothing finite is close to an infinity. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
typedef struct {
    double rtol, atol;
} args_t;
#define TN__TEMPLATE "autograd/ops/allclose.c"
#define TN__WITH_I64
#include "core/real.h"

static bool allclose_infer(tn_ctx *c)
{
    const double rtol = TN_ARG(c, rtol), atol = TN_ARG(c, atol);
    if (rtol >= 0 && atol >= 0) return tn__infer_compare(c);
    return tn_infer_fail(c, TN_EINVAL, "rtol and atol must not be negative, got %g and %g", rtol, atol);
}
static void allclose_forward(tn_ctx *c)
{
    tn__map(TN__NUMBERS(allclose_fwd), TN__LIST(c->out[0]), TN__LIST(c->in[0], c->in[1]), c->args);
}

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}, {2, {3, 4}}}, .args = &(args_t){0.1, 0.5}},
    {.in = {{3, {2, 3, 4}}, {1, {4}}}, .args = &(args_t){0, 1}},
    {.in = {{0, {0}}, {2, {2, 2}}}, .args = &(args_t){0, 0}},
    {.in = {{2, {0, 3}}, {2, {1, 3}}}, .args = &(args_t){0, 0}},
    {.in = {{2, {3, 4}}, {1, {4}}}, .args = &(args_t){0, 1}, .kind = {TN__ARG_INT, TN__ARG_INT}},
    {.in = {{1, {3}}, {1, {4}}},
     .args = &(args_t){0, 1},
     TN__FAILS(TN_ESHAPE, "allclose: shapes [3] and [4] do not broadcast: dim -1 is 3 in one and 4 in the other")},
    {.in = {{1, {3}}, {1, {3}}},
     .args = &(args_t){0, -1},
     TN__FAILS(TN_EINVAL, "allclose: rtol and atol must not be negative, got 0 and -1")},
};

const tn_op tn__op_allclose = {TN__ROOM("allclose", TN_JOIN), .inputs = 2, .args_size = sizeof(args_t),
                               .infer = allclose_infer, .forward = allclose_forward};
TN__SAMPLES(allclose, samples);

bool tn_allclose(tn_tensor *a, tn_tensor *b, double rtol, double atol)
{
    tn_scope s = tn_no_grad_begin();
    if (a && b && a->dtype != b->dtype) {
        tn_dtype dt = tn__promote(a, b);
        a = tn_to(a, dt), b = tn_to(b, dt);
    }
    tn_tensor *close = tn_apply_args(&tn__op_allclose, (&(args_t){rtol, atol}), a, b);
    bool       all = close && tn__mask_count(close, close->l.shape) == tn_numel(close);
    tn_scope_end(s);
    return all;
}

#else /* ==================================================================== kernels: contiguous, one dtype */

static void TN__(allclose_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const args_t   *t = args;
    const TN__REAL *a = in[0], *b = in[1];
    TN__REAL       *y = out[0];
    for (int64_t i = 0; i < n; i++) {
        double p = (double)a[i], q = (double)b[i], apart = fabs(p - q);
        y[i] = a[i] == b[i] || (isfinite(apart) && apart <= t->atol + t->rtol * fabs(q));
    }
}
#endif
