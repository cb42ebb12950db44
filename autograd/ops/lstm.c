/* lstm — a layer of long short-term memory over packed sequences (defined in autograd/rooms/recurrent.h)
 *
 *   With the sums i f g o of a step's x + h Wᵀ:
 *     i = σ(i), f = σ(f), g = tanh(g), o = σ(o),   c = f c + i g,   h = o tanh(c) = y
 *
 *   With gh = gy + the gradient of h from the next step, gc = the gradient of c from the next step:
 *     gc += gh o (1 - tanh²c)
 *     gi = gc g · i(1-i),  gf = gc c₋₁ · f(1-f),  gg = gc i · (1-g²),  go = gh tanh(c) · o(1-o)
 *     gx = [gi gf gg go],  gc₋₁ = gc f,  gh₋₁ = gx W,  gW = gxᵀ h₋₁ over all steps
 *
 * Kept are i, f, g, o, c₋₁, h₋₁; tanh(c) is computed again. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/recurrent.h"
#include "core/kernels/vecmath.h"

#include <string.h>
#define TN__TEMPLATE "autograd/ops/lstm.c"
#include "core/real.h"

enum { I, F, G, O, C, H };

static void lstm_spread(const tn__steps *a, tn_tensor *const *k, tn_tensor *gh, tn_tensor *gc, tn_tensor **g)
{
    tn_tensor *t = tn_tanh(tn_add(tn_mul(k[F], k[C]), tn_mul(k[I], k[G])));
    (void)a;
    gc = tn_add(gc, tn__tanh_back(tn_mul(gh, k[O]), t));
    g[I] = tn_mul(gc, k[G]), g[F] = tn_mul(gc, k[C]), g[G] = tn_mul(gc, k[I]), g[O] = tn_mul(gh, t);
    g[C] = tn_mul(gc, k[F]);
}
static void lstm_chain(const tn__steps *a, tn_tensor *const *k, tn_tensor *const *g, tn_tensor **gx,
                       tn_tensor **gproduct)
{
    (void)a;
    *gx = *gproduct = tn_cat(1, tn__sigmoid_back(g[I], k[I]), tn__sigmoid_back(g[F], k[F]), tn__tanh_back(g[G], k[G]),
                             tn__sigmoid_back(g[O], k[O]));
}

static const tn__cell cell = {.gates = 4,
                              .kept = 6,
                              .state = true,
                              .forward = {lstm_fwd_f32, lstm_fwd_f64, NULL},
                              .backward = {lstm_bwd_f32, lstm_bwd_f64, NULL},
                              .spread = lstm_spread,
                              .chain = lstm_chain};

static bool lstm_infer(tn_ctx *c) { return tn__steps_infer(c, &cell); }
static void lstm_forward(tn_ctx *c) { tn__steps_forward(c, &cell); }
static void lstm_backward(tn_back *b) { tn__steps_backward(b, &cell); }
static void lstm_backward_ops(tn_back *b) { tn__steps_backward_ops(b, &cell); }

#define SIZES(...) \
    .args = &(tn__steps) { .sizes = __VA_ARGS__ }
static const int64_t    falling[] = {3, 2, 1}, rising[] = {1, 2}, none[] = {2, 0};
static const tn__sample samples[] = {
    {.in = {{2, {6, 8}}, {2, {8, 2}}, {2, {3, 2}}, {2, {3, 2}}}, SIZES(NULL, .steps = 2)},
    {.in = {{2, {6, 8}}, {2, {8, 2}}, {2, {3, 2}}, {2, {3, 2}}}, SIZES(falling, .steps = 3)},
    {.in = {{2, {6, 4}}, {2, {4, 1}}, {2, {4, 1}}, {2, {4, 1}}},
     SIZES(falling, .steps = 3, .reverse = true)}, /* one sequence is empty */
    {.in = {{2, {1, 12}}, {2, {12, 3}}, {2, {1, 3}}, {2, {1, 3}}}, SIZES(NULL, .steps = 1, .reverse = true)},
    {.in = {{2, {0, 8}}, {2, {8, 2}}, {2, {3, 2}}, {2, {3, 2}}}, SIZES(NULL, .steps = 0)},
    {.in = {{2, {0, 8}}, {2, {8, 2}}, {2, {0, 2}}, {2, {0, 2}}}, SIZES(NULL, .steps = 3)},
    {.in = {{2, {2, 8}}, {2, {8, 2}}, {2, {2, 2}}, {2, {2, 2}}}, SIZES(none, .steps = 2)},
    {.in = {{2, {6, 6}}, {2, {8, 2}}, {2, {3, 2}}, {2, {3, 2}}},
     SIZES(NULL, .steps = 2),
     TN__FAILS(
         TN_ESHAPE,
         "lstm: x is [6, 6], but must be [6, 8]: a row for each sequence in each step, of the width of all gates")},
    {.in = {{2, {6, 8}}, {2, {2, 8}}, {2, {3, 2}}, {2, {3, 2}}},
     SIZES(NULL, .steps = 2),
     TN__FAILS(TN_ESHAPE, "lstm: weight is [2, 8], but must be [8, 2]: [gates · hidden, hidden]")},
    {.in = {{2, {6, 8}}, {2, {8, 2}}, {1, {2}}, {2, {3, 2}}},
     SIZES(NULL, .steps = 2),
     TN__FAILS(TN_ESHAPE, "lstm: h must be [rows, hidden], got [2]")},
    {.in = {{2, {6, 8}}, {2, {8, 2}}, {2, {3, 2}}, {2, {2, 2}}},
     SIZES(NULL, .steps = 2),
     TN__FAILS(TN_ESHAPE, "lstm: c is [2, 2], but must be [3, 2]: like h")},
    {.in = {{2, {6, 8}}, {2, {8, 2}}, {2, {3, 2}}, {2, {3, 2}}},
     SIZES(NULL, .steps = 3),
     TN__FAILS(TN_ESHAPE, "lstm: x has 6 rows, but there are 3 steps of 3 rows")},
    {.in = {{2, {3, 8}}, {2, {8, 2}}, {2, {2, 2}}, {2, {2, 2}}},
     SIZES(rising, .steps = 2),
     TN__FAILS(TN_EINVAL, "lstm: step 1 has 2 rows, but sizes must not increase from step to step: at most 1")},
    {.in = {{2, {5, 8}}, {2, {8, 2}}, {2, {3, 2}}, {2, {3, 2}}},
     SIZES(falling, .steps = 3),
     TN__FAILS(TN_ESHAPE, "lstm: x has 5 rows, but the sizes of the steps add up to 6")},
    {.in = {{2, {6, 8}}, {2, {8, 2}}, {2, {3, 2}}, {2, {3, 2}}},
     SIZES(NULL, .steps = -1),
     TN__FAILS(TN_EINVAL, "lstm: steps is -1, but must not be negative")},
    {.in = {{2, {6, 8}}, {2, {8, 2}}, {2, {3, 2}}, {2, {3, 2}}},
     .kind = {0, 0, TN__ARG_INT},
     SIZES(NULL, .steps = 2),
     TN__FAILS(TN_EDTYPE, "lstm: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
};

const tn_op tn__op_lstm = {TN__ROOM("lstm", TN_NARROW(3)),
                           .inputs = 4,
                           .outputs = 4,
                           .saves = TN_SAVE_IN(TN__STEPS_WEIGHT) | TN_SAVE_OUT(3),
                           .args_size = sizeof(tn__steps),
                           .args_copy = tn__steps_copy,
                           .args_free = tn__steps_free,
                           .infer = lstm_infer,
                           .forward = lstm_forward,
                           .backward = lstm_backward,
                           .backward_ops = lstm_backward_ops};
TN__SAMPLES(lstm, samples);

tn_tensor *tn_lstm_steps_run(tn_steps_args a)
{
    return a.proj ? tn__lstm_proj_call(a) : tn__steps_call(&tn__op_lstm, a, true, false);
}

#else /* =========================================================== kernels: contiguous rows, one real type */

static void TN__(lstm_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const int64_t   m = n / 4;
    TN__REAL *const k = out[3];
    TN__REAL *const y = out[0], *const before = k + 4 * m, *const h0 = k + 5 * m;
    const TN__REAL *const x = in[0], *const i = k, *const f = k + m;
    const TN__REAL *const g = k + 2 * m, *const o = k + 3 * m;
    TN__REAL *const h = out[1], *const c = out[2];
    const TN__REAL *const from_h = in[1], *const from_c = in[2]; /* may be h and c themselves */
    (void)args;
    for (int64_t j = 0; j < n; j++) k[j] += x[j];
    TN__(tn__sigmoid)(2 * m, k, k);
    TN__(tn__tanh)(m, k + 2 * m, k + 2 * m);
    TN__(tn__sigmoid)(m, k + 3 * m, k + 3 * m);
    memcpy(before, from_c, (size_t)m * sizeof *before), memcpy(h0, from_h, (size_t)m * sizeof *h0);
    for (int64_t j = 0; j < m; j++) c[j] = f[j] * before[j] + i[j] * g[j];
    TN__(tn__tanh)(m, y, c);
    for (int64_t j = 0; j < m; j++) y[j] *= o[j];
    memcpy(h, y, (size_t)m * sizeof *h);
}

/* Many small loops, which the compiler vectorises. */
static void TN__(lstm_bwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const int64_t   m = n / 6;
    TN__REAL *const gx = out[0];
    TN__REAL *const gh = out[2], *const gc = out[3], *const gi = gx;
    TN__REAL *const gf = gx + m, *const gg = gx + 2 * m, *const go = gx + 3 * m;
    const TN__REAL *const k = in[0], *const gy = in[1], *const gk = in[2];
    const TN__REAL *const i = k, *const f = k + m, *const g = k + 2 * m;
    const TN__REAL *const o = k + 3 * m, *const before = k + 4 * m;
    (void)args;
    for (int64_t j = 0; gy && j < m; j++) gh[j] += gy[j];
    for (int64_t j = 0; j < m; j++) gi[j] = f[j] * before[j] + i[j] * g[j];
    TN__(tn__tanh)(m, gi, gi);
    for (int64_t j = 0; j < m; j++) gc[j] += gh[j] * o[j] * (1 - gi[j] * gi[j]);
    for (int64_t j = 0; j < m; j++) go[j] = gh[j] * gi[j];
    for (int64_t j = 0; j < m; j++) gi[j] = gc[j] * g[j];
    for (int64_t j = 0; j < m; j++) gf[j] = gc[j] * before[j];
    for (int64_t j = 0; j < m; j++) gg[j] = gc[j] * i[j];
    for (int64_t j = 0; j < m; j++) gc[j] *= f[j];
    memset(gh, 0, (size_t)m * sizeof *gh);
    for (int64_t j = 0; gk && j < 4 * m; j++) gx[j] += gk[j];
    for (int64_t j = 0; gk && j < m; j++) gc[j] += gk[4 * m + j], gh[j] = gk[5 * m + j];
    for (int64_t j = 0; j < 2 * m; j++) gx[j] *= k[j] * (1 - k[j]);
    for (int64_t j = 0; j < m; j++) gg[j] *= 1 - g[j] * g[j], go[j] *= o[j] * (1 - o[j]);
}
#endif
