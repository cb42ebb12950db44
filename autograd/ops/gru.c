/* gru — a layer of gated recurrent units over packed sequences (defined in autograd/rooms/recurrent.h)
 *
 *   With x = [x_r x_z x_n] and the product s = h₋₁ Wᵀ + b = [s_r s_z s_n] of a step:
 *     r = σ(x_r + s_r),  z = σ(x_z + s_z),  n = tanh(x_n + r s_n),   h = n + z (h₋₁ - n) = y
 *
 *   With gh = gy + the gradient from the next step:
 *     a = gh (1-z) · (1-n²)
 *     gx = [a s_n · r(1-r),  gh (h₋₁ - n) · z(1-z),  a],   gs = gx with a r in place of a
 *     gh₋₁ = gh z + gs W,  gW = gsᵀ h₋₁ over all steps,  gb = Σ gs
 *
 * As in PyTorch r multiplies the product and its bias, so b cannot be a part of x. Kept are r, z, n, s_n, h₋₁. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/recurrent.h"
#include "core/kernels/vecmath.h"

#include <string.h>
#define TN__TEMPLATE "autograd/ops/gru.c"
#include "core/real.h"

enum { R, Z, N, S, H };

static void gru_spread(const tn__steps *a, tn_tensor *const *k, tn_tensor *gh, tn_tensor *gc, tn_tensor **g)
{
    (void)a, (void)gc;
    g[Z] = tn_mul(gh, tn_sub(k[H], k[N]));
    g[N] = tn_mul(gh, tn_rsub_scalar(k[Z], 1));
    g[H] = tn_mul(gh, k[Z]);
}
static void gru_chain(const tn__steps *a, tn_tensor *const *k, tn_tensor *const *g, tn_tensor **gx,
                      tn_tensor **gproduct)
{
    tn_tensor *n = tn__tanh_back(g[N], k[N]), *z = tn__sigmoid_back(g[Z], k[Z]);
    tn_tensor *r = tn__sigmoid_back(tn__add_optional(g[R], tn_mul(n, k[S])), k[R]);
    (void)a;
    *gx = tn_cat(1, r, z, n);
    *gproduct = tn_cat(1, r, z, tn__add_optional(g[S], tn_mul(n, k[R])));
}

static const tn__cell cell = {.gates = 3,
                              .kept = 5,
                              .split = true,
                              .forward = {gru_fwd_f32, gru_fwd_f64, NULL},
                              .backward = {gru_bwd_f32, gru_bwd_f64, NULL},
                              .spread = gru_spread,
                              .chain = gru_chain};

static bool gru_infer(tn_ctx *c) { return tn__steps_infer(c, &cell); }
static void gru_forward(tn_ctx *c) { tn__steps_forward(c, &cell); }
static void gru_backward(tn_back *b) { tn__steps_backward(b, &cell); }
static void gru_backward_ops(tn_back *b) { tn__steps_backward_ops(b, &cell); }

#define SIZES(...) \
    .args = &(tn__steps) { .sizes = __VA_ARGS__ }
#define NO_BIAS .kind = {[TN__STEPS_BIAS] = TN__ARG_ABSENT}
static const int64_t    falling[] = {3, 2, 1};
static const tn__sample samples[] = {
    {.in = {{2, {6, 6}}, {2, {6, 2}}, {2, {3, 2}}, {1, {6}}}, SIZES(NULL, .steps = 2)},
    {.in = {{2, {6, 6}}, {2, {6, 2}}, {2, {3, 2}}, {1, {6}}}, SIZES(falling, .steps = 3)},
    {.in = {{2, {6, 3}}, {2, {3, 1}}, {2, {4, 1}}}, NO_BIAS, SIZES(falling, .steps = 3, .reverse = true)},
    {.in = {{2, {1, 9}}, {2, {9, 3}}, {2, {1, 3}}, {1, {9}}}, SIZES(NULL, .steps = 1, .reverse = true)},
    {.in = {{2, {0, 6}}, {2, {6, 2}}, {2, {3, 2}}, {1, {6}}}, SIZES(NULL, .steps = 0)},
    {.in = {{2, {6, 6}}, {2, {6, 2}}, {2, {3, 2}}, {1, {2}}},
     SIZES(NULL, .steps = 2),
     TN__FAILS(TN_ESHAPE, "gru: bias is [2], but must be [6]: [gates · hidden]")},
};

const tn_op tn__op_gru = {TN__ROOM("gru", TN_NARROW(3)),
                          .inputs = 4,
                          .outputs = 3,
                          .optional = TN__IN(TN__STEPS_BIAS),
                          .saves = TN_SAVE_IN(TN__STEPS_WEIGHT) | TN_SAVE_OUT(2),
                          .args_size = sizeof(tn__steps),
                          .args_copy = tn__steps_copy,
                          .args_free = tn__steps_free,
                          .infer = gru_infer,
                          .forward = gru_forward,
                          .backward = gru_backward,
                          .backward_ops = gru_backward_ops};
TN__SAMPLES(gru, samples);

tn_tensor *tn_gru_steps_run(tn_steps_args a) { return tn__steps_call(&tn__op_gru, a, false, true); }

#else /* =========================================================== kernels: contiguous rows, one real type */

static void TN__(gru_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const int64_t   m = n / 3;
    TN__REAL *const k = out[3], *const h = out[1];
    const TN__REAL *const from_h = in[1]; /* may be h itself */
    TN__REAL *const y = out[0], *const new = k + 2 * m, *const s = k + 3 * m;
    TN__REAL *const       from = k + 4 * m;
    const TN__REAL *const x = in[0], *const b = in[3], *const r = k, *const z = k + m;
    (void)args;
    for (int64_t j = 0; b && j < n; j++) k[j] += b[j];
    for (int64_t j = 0; j < 2 * m; j++) k[j] += x[j];
    TN__(tn__sigmoid)(2 * m, k, k);
    memcpy(s, new, (size_t)m * sizeof *s), memcpy(from, from_h, (size_t)m * sizeof *from);
    for (int64_t j = 0; j < m; j++) new[j] = x[2 * m + j] + r[j] * s[j];
    TN__(tn__tanh)(m, new, new);
    for (int64_t j = 0; j < m; j++) y[j] = new[j] + z[j] * (from[j] - new[j]);
    memcpy(h, y, (size_t)m * sizeof *h);
}

/* Many small loops, which the compiler vectorises. */
static void TN__(gru_bwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const int64_t   m = n / 5;
    TN__REAL *const gx = out[0];
    TN__REAL *const gs = out[1], *const gh = out[2], *const gr = gx;
    TN__REAL *const gz = gx + m, *const gn = gx + 2 * m, *const gsn = gs + 2 * m;
    const TN__REAL *const k = in[0], *const gy = in[1], *const gk = in[2];
    const TN__REAL *const r = k, *const z = k + m, *const new = k + 2 * m;
    const TN__REAL *const s = k + 3 * m, *const from = k + 4 * m;
    (void)args;
    for (int64_t j = 0; gy && j < m; j++) gh[j] += gy[j];
    for (int64_t j = 0; j < m; j++) gz[j] = gh[j] * (from[j] - new[j]);
    for (int64_t j = 0; j < m; j++) gn[j] = gh[j] * (1 - z[j]);
    for (int64_t j = 0; j < m; j++) gh[j] *= z[j];
    memset(gr, 0, (size_t)m * sizeof *gr), memset(gsn, 0, (size_t)m * sizeof *gsn);
    for (int64_t j = 0; gk && j < 3 * m; j++) gx[j] += gk[j];
    for (int64_t j = 0; gk && j < m; j++) gsn[j] = gk[3 * m + j], gh[j] += gk[4 * m + j];
    for (int64_t j = 0; j < m; j++) gn[j] *= 1 - new[j] * new[j];
    for (int64_t j = 0; j < m; j++) gr[j] += gn[j] * s[j];
    for (int64_t j = 0; j < m; j++) gsn[j] += gn[j] * r[j];
    for (int64_t j = 0; j < 2 * m; j++) gx[j] *= k[j] * (1 - k[j]);
    memcpy(gs, gx, 2 * (size_t)m * sizeof *gs);
}
#endif
