/* rope — rotary position embeddings (Su et al. 2021): pairs of elements in x's last dim, rotated by angles that grow
 * with the position
 *
 *   a' = a cos φ - b sin φ,   b' = b cos φ + a sin φ      of a pair (a, b); φ = position · ω_i for pair i
 *
 * so the product of a query and a key depends on their distance. The gradient is rotated back, by -φ:
 *
 *   ga = ga' cos φ + gb' sin φ,   gb = gb' cos φ - ga' sin φ;   gcos = ga' a + gb' b,   gsin = gb' a - ga' b
 *
 * x [..., D], angles [..., R]: R / 2 cosines, then R / 2 sines, broadcast to x's rows. The first R of the D elements
 * are rotated, the others stay. Pairs are (x_i, x_{i + R/2}) as in GPT-NeoX and Hugging Face's LLaMA; interleaved:
 * (x_{2i}, x_{2i + 1}) as in GPT-J and llama2.c. Angles are computed in f64 from the position alone, so that a
 * position's angle has the same bits in any context. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
typedef struct {
    bool interleaved, back; /* back: by -φ */
} args_t;
typedef struct {
    int64_t half, dim; /* pairs, D */
    bool    interleaved, back;
} turn;
#define TN__TEMPLATE "autograd/ops/rope.c"
#include "core/real.h"

static bool rope_infer(tn_ctx *c)
{
    char           text[192], angles[192];
    const tn_shape s = c->in[0]->l.shape;
    tn_shape       a = c->in[1]->l.shape;
    if (!tn__infer_real(c) || !tn__need_real(c, 1)) return false;
    const int64_t dim = s.n ? s.d[s.n - 1] : 0, turned = a.n ? a.d[a.n - 1] : 1;
    tn_shape_text(s, text, sizeof text), tn_shape_text(a, angles, sizeof angles);
    if (turned % 2 || turned > dim)
        return tn_infer_fail(
            c, TN_ESHAPE,
            "the last dim of angles %s must be even and no larger than that of x %s: the number of elements of a row "
            "that are rotated",
            angles, text);
    a.d[a.n - 1] = dim;
    if (!tn__broadcastable(a, s))
        return tn_infer_fail(c, TN_ESHAPE, "angles %s do not broadcast to the rows of x %s", angles, text);
    return true;
}
static void rope_forward(tn_ctx *c)
{
    const tn_shape s = c->in[0]->l.shape, a = c->in[1]->l.shape;
    const turn     t = {a.d[a.n - 1] / 2, s.d[s.n - 1], TN_ARG(c, interleaved), TN_ARG(c, back)};
    tn__rows(TN__REALS(rope_fwd), -1, TN__LIST(c->out[0]), TN__LIST(c->in[0], c->in[1]), &t);
}

static unsigned rope_saves_for(const bool *need) { return TN_SAVE_IN(1) | (need[1] ? TN_SAVE_IN(0) : 0); }

/* The first or the second element of each pair: [..., R / 2]. */
static tn_tensor *of_pairs(tn_tensor *x, int64_t half, bool interleaved, int which)
{
    if (!interleaved) return tn_narrow(x, -1, which * half, half);
    return tn_slice(tn_narrow(x, -1, 0, 2 * half), -1, which, 2 * half, 2);
}
static void rope_backward_ops(tn_back *b)
{
    const args_t *a = b->args;
    const args_t  other = {a->interleaved, !a->back};
    tn_tensor    *gy = b->gy[0];
    if (b->need[0]) b->gx[0] = tn_apply_args(&tn__op_rope, &other, gy, b->in[1]);
    if (!b->need[1]) return;
    const int64_t half = b->in_shape[1].d[b->in_shape[1].n - 1] / 2;
    tn_tensor    *x[2], *g[2];
    for (int i = 0; i < 2; i++)
        x[i] = of_pairs(b->in[0], half, a->interleaved, i), g[i] = of_pairs(gy, half, a->interleaved, i);
    tn_tensor *sine = tn_sub(tn_mul(g[1], x[0]), tn_mul(g[0], x[1]));
    b->gx[1] = tn_cat(-1, tn_add(tn_mul(g[0], x[0]), tn_mul(g[1], x[1])), a->back ? tn_neg(sine) : sine);
}

#define ARGS(...) \
    .args = &(args_t) { __VA_ARGS__ }
/* clang-format off */
static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}, {2, {3, 4}}}, ARGS(false, false)},
    {.in = {{2, {3, 4}}, {2, {3, 4}}}, ARGS(true, false)},
    {.in = {{4, {2, 2, 3, 6}}, {2, {3, 4}}}, ARGS(false, true)}, /* two elements of each row stay */
    {.in = {{4, {2, 3, 2, 7}}, {4, {2, 3, 1, 6}}}, ARGS(true, true)},
    {.in = {{3, {2, 2, 34}}, {2, {2, 34}}}, .kind = {0, TN__ARG_CONST}, ARGS(false, false)},
    {.in = {{2, {2, 3}}, {2, {2, 0}}}, ARGS(false, false)},
    {.in = {{2, {0, 4}}, {2, {0, 4}}}, ARGS(true, false)},
    {.in = {{1, {2}}, {1, {2}}}, ARGS(true, false)},
    {.in = {{2, {2, 4}}, {2, {2, 3}}}, ARGS(false, false), TN__FAILS(TN_ESHAPE,
     "rope: the last dim of angles [2, 3] must be even and no larger than that of x [2, 4]: the number of "
     "elements of a row that are rotated")},
    {.in = {{2, {2, 4}}, {2, {2, 6}}}, ARGS(false, false), TN__FAILS(TN_ESHAPE,
     "rope: the last dim of angles [2, 6] must be even and no larger than that of x [2, 4]: the number of "
     "elements of a row that are rotated")},
    {.in = {{2, {2, 4}}, {2, {3, 4}}}, ARGS(false, false),
     TN__FAILS(TN_ESHAPE, "rope: angles [3, 4] do not broadcast to the rows of x [2, 4]")},
    {.in = {{2, {2, 4}}, {2, {2, 4}}}, .kind = {0, TN__ARG_INT}, ARGS(false, false),
     TN__FAILS(TN_EDTYPE, "rope: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
};
/* clang-format on */

const tn_op tn__op_rope = {TN__ROOM("rope", TN_AS_IS),
                           .inputs = 2,
                           .saves = TN_SAVE_IN(0) | TN_SAVE_IN(1),
                           .saves_for = rope_saves_for,
                           .args_size = sizeof(args_t),
                           .infer = rope_infer,
                           .forward = rope_forward,
                           .backward_ops = rope_backward_ops};
TN__SAMPLES(rope, samples);

tn_tensor *tn_rope(tn_tensor *x, tn_tensor *angles, bool interleaved)
{
    const args_t args = {interleaved, false};
    return tn_apply_args(&tn__op_rope, &args, x, angles);
}

#else /* =========================================================== kernels: contiguous rows, one real type */

static void TN__(rope_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const turn     *t = args;
    const TN__REAL *x = in[0], *cosine = in[1], *sine = cosine + t->half, sign = t->back ? -1 : 1;
    const int64_t   step = t->interleaved ? 2 : 1, apart = t->interleaved ? 1 : t->half;
    TN__REAL       *y = out[0];
    (void)n;
    for (int64_t i = 0; i < t->half; i++) {
        const TN__REAL a = x[i * step], b = x[i * step + apart], s = sign * sine[i];
        y[i * step] = a * cosine[i] - b * s;
        y[i * step + apart] = b * cosine[i] + a * s;
    }
    for (int64_t i = 2 * t->half; i < t->dim; i++) y[i] = x[i];
}
#endif
