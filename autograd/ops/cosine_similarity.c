/* cosine_similarity — Σ a b / (|a| |b|) along one dim; a norm below eps counts as eps
 *
 *   With â = a / max(|a|, eps), b̂ = b / max(|b|, eps):
 *   ga = gy (b̂ - y â) / max(|a|, eps), without y â where |a| < eps; gb with a and b exchanged */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/losses.h"
#include "core/kernels/sum_lanes.h"
typedef struct {
    int    dim;
    double eps;
} args_t;
#define TN__TEMPLATE "autograd/ops/cosine_similarity.c"
#include "core/real.h"

static bool cosine_similarity_infer(tn_ctx *c)
{
    int      dim = TN_ARG(c, dim);
    tn_shape both;
    if (!tn__need_real(c, 0) || !tn__infer_binary(c)) return false;
    both = c->result[0].shape;
    if (!(TN_ARG(c, eps) >= 0))
        return tn_infer_fail(c, TN_EINVAL, "eps is %g, but must not be negative", TN_ARG(c, eps));
    return tn__reduced_shape("cosine_similarity", both, &(tn_dims){.n = 1, .d = {dim}}, false, &c->result[0].shape);
}

/* The two inputs, broadcast; t, in which the dim was reduced, with that dim as size 1. */
typedef struct {
    tn_tensor a, b, t;
    int       dim;
} sight;
static sight look(const tn_tensor *a, const tn_tensor *b, const tn_tensor *t, int dim)
{
    tn_shape both = {.n = 0}, kept;
    tn_dims  dims = {.n = 1, .d = {dim}};
    sight    s;
    tn__broadcast("cosine_similarity", a->l.shape, b->l.shape, &both);
    tn__reduced_shape("cosine_similarity", both, &dims, true, &kept);
    tn__layout la = tn__layout_expand(&a->l, both), lb = tn__layout_expand(&b->l, both), lt;
    tn__layout_reshape(&t->l, kept, &lt);
    s.a = tn__stack_view(a, &la), s.b = tn__stack_view(b, &lb), s.t = tn__stack_view(t, &lt);
    s.dim = dim;
    return s;
}
static void cosine_similarity_forward(tn_ctx *c)
{
    sight s = look(c->in[0], c->in[1], c->out[0], TN_ARG(c, dim));
    tn__rows(TN__REALS(cosine_similarity_fwd), s.dim, TN__LIST(&s.t), TN__LIST(&s.a, &s.b), c->args);
}
static void cosine_similarity_backward(tn_back *b)
{
    sight s = look(b->in[0], b->in[1], b->gy[0], TN_ARG(b, dim));
    for (int i = 0; i < 2; i++)
        if (b->need[i]) b->gx[i] = tn_empty_of(b->in_dtype[i], s.a.l.shape);
    if (!tn_error())
        tn__rows(TN__REALS(cosine_similarity_bwd), s.dim, TN__LIST(b->gx[0], b->gx[1]), TN__LIST(&s.a, &s.b, &s.t),
                 b->args);
}
static void cosine_similarity_backward_ops(tn_back *b)
{
    const double eps = TN_ARG(b, eps);
    tn_shape     both;
    tn_tensor   *unit[2], *by[2], *over[2];
    if (!tn__broadcast("cosine_similarity", b->in_shape[0], b->in_shape[1], &both)) return;
    for (int i = 0; i < 2; i++) {
        tn_tensor *norm = tn_norm(tn_expand(b->in[i], both), .dims = TN_DIMS(TN_ARG(b, dim)), .keepdim = true);
        by[i] = tn_clamp(norm, eps, (double)INFINITY);
        unit[i] = tn_div(b->in[i], by[i]);
        over[i] = tn_to(tn_ge(norm, tn_scalar(eps)), b->in_dtype[i]);
    }
    const tn_dims dims = TN_DIMS(TN_ARG(b, dim));
    tn_tensor    *gy = tn__unreduced(b->gy[0], both, dims, false), *y = tn__unreduced(b->out[0], both, dims, false);
    for (int i = 0; i < 2; i++)
        if (b->need[i]) b->gx[i] = tn_mul(tn_div(gy, by[i]), tn_sub(unit[1 - i], tn_mul(tn_mul(over[i], y), unit[i])));
}

/* clang-format off */
static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}, {2, {3, 4}}}, .args = &(args_t){1, 1e-8}},
    {.in = {{3, {2, 3, 4}}, {1, {4}}}, .args = &(args_t){-1, 1e-8}},
    {.in = {{3, {2, 3, 4}}, {2, {3, 1}}}, .kind = {0, TN__ARG_DISTINCT}, .args = &(args_t){1, 1e-8}},
    {.in = {{2, {3, 4}}, {1, {1}}}, .kind = {0, TN__ARG_CONST}, .args = &(args_t){1, 1e-8}},
    {.in = {{2, {3, 5}}, {2, {3, 5}}}, .args = &(args_t){1, 50}},
    {.in = {{0, {0}}, {0, {0}}}, .kind = {TN__ARG_CONST, TN__ARG_CONST}, .args = &(args_t){0, 1e-8}},
    {.in = {{2, {0, 3}}, {2, {0, 3}}}, .args = &(args_t){1, 1e-8}},
    {.in = {{2, {3, 0}}, {2, {3, 0}}}, .args = &(args_t){1, 1e-8}},
    {.in = {{1, {3}}, {1, {4}}}, .args = &(args_t){0, 1e-8}, TN__FAILS(TN_ESHAPE,
     "cosine_similarity: shapes [3] and [4] do not broadcast: dim -1 is 3 in one and 4 in the other")},
    {.in = {{1, {3}}, {1, {3}}}, .args = &(args_t){1, 1e-8},
     TN__FAILS(TN_EINDEX, "cosine_similarity: dim 1 is out of range for a 1-d tensor")},
    {.in = {{1, {3}}, {1, {3}}}, .args = &(args_t){0, -1},
     TN__FAILS(TN_EINVAL, "cosine_similarity: eps is -1, but must not be negative")},
};
/* clang-format on */

const tn_op tn__op_cosine_similarity = {TN__ROOM("cosine_similarity", TN_WIDE),
                                        .inputs = 2,
                                        .saves = TN_SAVE_IN(0) | TN_SAVE_IN(1) | TN_SAVE_OUT(0),
                                        .args_size = sizeof(args_t),
                                        .infer = cosine_similarity_infer,
                                        .forward = cosine_similarity_forward,
                                        .backward = cosine_similarity_backward,
                                        .backward_ops = cosine_similarity_backward_ops};
TN__SAMPLES(cosine_similarity, samples);

tn_tensor *tn_cosine_similarity(tn_tensor *a, tn_tensor *b, int dim, double eps)
{
    if (!tn__loss_types(&a, &b)) return NULL;
    return tn_apply_args(&tn__op_cosine_similarity, (&(args_t){dim, eps}), a, b);
}

#else /* =========================================================== kernels: contiguous rows, one real type */

static void TN__(cosine_similarity_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *a = in[0], *b = in[1];
    const double    eps = ((const args_t *)args)->eps;
    const double    na = fmax(sqrt(TN__(tn__dot)(n, a, a)), eps), nb = fmax(sqrt(TN__(tn__dot)(n, b, b)), eps);
    *(TN__REAL *)out[0] = (TN__REAL)(TN__(tn__dot)(n, a, b) / na / nb);
}

static void TN__(cosine_similarity_bwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *a = in[0], *b = in[1], *gy = in[2];
    TN__REAL       *ga = out[0], *gb = out[1];
    const double    eps = ((const args_t *)args)->eps, norm_a = sqrt(TN__(tn__dot)(n, a, a)),
                 norm_b = sqrt(TN__(tn__dot)(n, b, b));
    const double na = fmax(norm_a, eps), nb = fmax(norm_b, eps), y = TN__(tn__dot)(n, a, b) / na / nb, g = (double)*gy;
    const TN__REAL cross = (TN__REAL)(g / na / nb), own_a = (TN__REAL)(norm_a >= eps ? g * y / na / na : 0);
    const TN__REAL own_b = (TN__REAL)(norm_b >= eps ? g * y / nb / nb : 0);
    for (int64_t i = 0; ga && i < n; i++) ga[i] = cross * b[i] - own_a * a[i];
    for (int64_t i = 0; gb && i < n; i++) gb[i] = cross * a[i] - own_b * b[i];
}
#endif
