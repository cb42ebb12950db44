/* rnn — a layer of the plain recurrent network over packed sequences (defined in autograd/rooms/recurrent.h)
 *
 *   h = y = tanh(x + h₋₁ Wᵀ), or relu
 *
 *   With gh = gy + the gradient from the next step: gx = gh (1 - h²), or for relu gh where h > 0, else 0;
 *   gh₋₁ = gx W,  gW = gxᵀ h₋₁ over all steps
 *
 * Kept are h and h₋₁. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/recurrent.h"
#include "core/kernels/vecmath.h"

#include <string.h>
#define TN__TEMPLATE "autograd/ops/rnn.c"
#include "core/real.h"

static void rnn_spread(const tn__steps *a, tn_tensor *const *k, tn_tensor *gh, tn_tensor *gc, tn_tensor **g)
{
    (void)a, (void)k, (void)gc;
    g[0] = gh;
}
static void rnn_chain(const tn__steps *a, tn_tensor *const *k, tn_tensor *const *g, tn_tensor **gx,
                      tn_tensor **gproduct)
{
    *gx = *gproduct = a->relu ? tn_masked_fill(g[0], tn_le(k[0], tn_scalar(0)), 0) : tn__tanh_back(g[0], k[0]);
}

static const tn__cell cell = {.gates = 1,
                              .kept = 2,
                              .forward = {rnn_fwd_f32, rnn_fwd_f64, NULL},
                              .backward = {rnn_bwd_f32, rnn_bwd_f64, NULL},
                              .spread = rnn_spread,
                              .chain = rnn_chain};

static bool rnn_infer(tn_ctx *c) { return tn__steps_infer(c, &cell); }
static void rnn_forward(tn_ctx *c) { tn__steps_forward(c, &cell); }
static void rnn_backward(tn_back *b) { tn__steps_backward(b, &cell); }
static void rnn_backward_ops(tn_back *b) { tn__steps_backward_ops(b, &cell); }

#define SIZES(...) \
    .args = &(tn__steps) { .sizes = __VA_ARGS__ }
static const int64_t    falling[] = {3, 2, 1};
static const tn__sample samples[] = {
    {.in = {{2, {6, 2}}, {2, {2, 2}}, {2, {3, 2}}}, SIZES(NULL, .steps = 2)},
    {.in = {{2, {6, 2}}, {2, {2, 2}}, {2, {3, 2}}}, SIZES(falling, .steps = 3)},
    {.in = {{2, {6, 3}}, {2, {3, 3}}, {2, {4, 3}}}, SIZES(falling, .steps = 3, .reverse = true, .relu = true)},
    {.in = {{2, {1, 1}}, {2, {1, 1}}, {2, {1, 1}}}, SIZES(NULL, .steps = 1, .reverse = true)},
    {.in = {{2, {0, 2}}, {2, {2, 2}}, {2, {3, 2}}}, SIZES(NULL, .steps = 0)},
    {.in = {{2, {6, 2}}, {2, {2, 3}}, {2, {3, 2}}},
     SIZES(NULL, .steps = 2),
     TN__FAILS(TN_ESHAPE, "rnn: weight is [2, 3], but must be [2, 2]: [gates · hidden, hidden]")},
};

const tn_op tn__op_rnn = {TN__ROOM("rnn", TN_NARROW(3)),
                          .inputs = 3,
                          .outputs = 3,
                          .saves = TN_SAVE_IN(TN__STEPS_WEIGHT) | TN_SAVE_OUT(2),
                          .args_size = sizeof(tn__steps),
                          .args_copy = tn__steps_copy,
                          .args_free = tn__steps_free,
                          .infer = rnn_infer,
                          .forward = rnn_forward,
                          .backward = rnn_backward,
                          .backward_ops = rnn_backward_ops};
TN__SAMPLES(rnn, samples);

tn_tensor *tn_rnn_steps_run(tn_steps_args a) { return tn__steps_call(&tn__op_rnn, a, false, false); }

#else /* =========================================================== kernels: contiguous rows, one real type */

static void TN__(rnn_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    TN__REAL *const y = out[0], *const k = out[3];
    const TN__REAL *const x = in[0];
    memcpy(k + n, in[1], (size_t)n * sizeof *k); /* may be out[1] itself */
    for (int64_t j = 0; j < n; j++) k[j] += x[j];
    if (((const tn__steps *)args)->relu)
        for (int64_t j = 0; j < n; j++) k[j] = k[j] <= 0 ? 0 : k[j]; /* NaN stays */
    else TN__(tn__tanh)(n, k, k);
    memcpy(y, k, (size_t)n * sizeof *k), memcpy(out[1], k, (size_t)n * sizeof *k);
}

static void TN__(rnn_bwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const int64_t   m = n / 2;
    TN__REAL *const gx = out[0], *const gh = out[2];
    const TN__REAL *const k = in[0], *const gy = in[1], *const gk = in[2];
    memcpy(gx, gh, (size_t)m * sizeof *gx), memset(gh, 0, (size_t)m * sizeof *gh);
    for (int64_t j = 0; gy && j < m; j++) gx[j] += gy[j];
    for (int64_t j = 0; gk && j < m; j++) gx[j] += gk[j], gh[j] = gk[m + j];
    if (((const tn__steps *)args)->relu)
        for (int64_t j = 0; j < m; j++) gx[j] = k[j] <= 0 ? 0 : gx[j];
    else
        for (int64_t j = 0; j < m; j++) gx[j] *= 1 - k[j] * k[j];
}
#endif
