/* lsh_attention.c — attention among few keys: positions are sorted and cut into chunks, and each attends to its own
 * chunk and the neighbouring ones (Kitaev, Kaiser, Levskaya 2020: Reformer)
 *
 *   y_t = Σ_j w_tj v_j,   w_tj = exp(s_tj - L_t),   s_tj = scale · q_t · k_j,   L_t = ln Σ_j exp(s_tj)
 *
 * over all keys j of position t, in each of several rounds of sorting: a j found in two rounds counts twice. In a round
 * positions are sorted by bucket, equal buckets by position; the rounds are concatenated, and as in Hugging Face's code
 * the chunk before the very first is the very last. More chunks before or after than there are is rejected: the code
 * there then repeats the own chunk, which no model wants. Without buckets there is one round in the order of the
 * sequence, which is local attention; a sequence of at most `chunk` positions is one chunk.
 *
 *   gw_tj = gy_t · v_j,   gs_tj = w_tj (gw_tj - gy_t · y_t),   then gq, gk, gv as in attention
 *
 * apart: a position attends to itself only if it has no other key (queries and keys are one vector there, and its
 * product with itself would outweigh all others): its score is a constant, -1e5, as in the training of the published
 * models. As in theirs, L is rounded to the dtype, in each round and over the rounds, and the error is not corrected.
 *
 * Dropout is drawn for each element of [B, H, sorted, keys], as by the op dropout. Memory, for one head of one sequence
 * at a time: [sorted, keys] scores and rows of q, k and v; only L, a value for each position, is kept for the
 * backward. */
#include "autograd/rooms/room.h"
#include "extras/lsh_attention.h"
#include "extras/reformer/lsh_products.h"
typedef struct {
    int64_t  chunk, before, after;
    bool     causal, apart;
    double   scale, dropout;
    uint64_t seed, position;
} args_t;
enum { Q, K, V, BUCKETS, KEYS, INPUTS };

static bool infer_sizes(const tn_ctx *c)
{
    const args_t  *a = c->args;
    char           x[192], y[192];
    const tn_shape q = c->in[Q]->l.shape, k = c->in[K]->l.shape, v = c->in[V]->l.shape;
    if (q.n != 4 || !tn_shape_equal(q, k))
        return tn_infer_fail(c, TN_ESHAPE, "q %s and k %s must both be [B, H, T, D]", tn_shape_text(q, x, sizeof x),
                             tn_shape_text(k, y, sizeof y));
    if (v.n != 4 || v.d[0] != q.d[0] || v.d[1] != q.d[1] || v.d[2] != q.d[2])
        return tn_infer_fail(c, TN_ESHAPE, "v %s must be [B, H, T, E] with q's %s", tn_shape_text(v, x, sizeof x),
                             tn_shape_text(q, y, sizeof y));
    if (a->chunk < 1 || a->before < 0 || a->after < 0 || a->before > 64 || a->after > 64)
        return tn_infer_fail(
            c, TN_EINVAL,
            "chunk is %lld, before %lld, after %lld; chunk must be at least 1, before and after from 0 to 64",
            (long long)a->chunk, (long long)a->before, (long long)a->after);
    if (q.d[2] > a->chunk && q.d[2] % a->chunk)
        return tn_infer_fail(c, TN_ESHAPE, "%lld positions are not a multiple of the chunk size %lld; pad them",
                             (long long)q.d[2], (long long)a->chunk);
    return true;
}

static bool infer_chunks(const tn_ctx *c)
{
    const args_t    *a = c->args;
    char             x[192], y[192];
    const tn_tensor *buckets = c->in[BUCKETS];
    const tn_shape   q = c->in[Q]->l.shape, s = buckets ? buckets->l.shape : (tn_shape){.n = 0};
    int64_t          sorted = q.d[2];
    if (buckets && (s.n != 4 || s.d[0] != q.d[0] || s.d[1] != q.d[1] || s.d[2] < 1 || s.d[3] != q.d[2]))
        return tn_infer_fail(c, TN_ESHAPE, "buckets %s must be [B, H, rounds, T] with q's %s",
                             tn_shape_text(s, x, sizeof x), tn_shape_text(q, y, sizeof y));
    if (buckets && (!tn__mul_i64(s.d[2], s.d[3], &sorted) || sorted > INT32_MAX))
        return tn_infer_fail(c, TN_ESHAPE, "buckets %s are too many", tn_shape_text(s, x, sizeof x));
    const int64_t chunks = sorted / a->chunk; /* of a sequence that is more than one chunk */
    if (q.d[2] > a->chunk && tn__max_i64(a->before, a->after) > chunks)
        return tn_infer_fail(c, TN_EINVAL,
                             "before is %lld, after %lld, but there are only %lld chunks; lower them or "
                             "lengthen the sequence",
                             (long long)a->before, (long long)a->after, (long long)chunks);
    return true;
}

static bool lsh_attention_infer(tn_ctx *c)
{
    const args_t    *a = c->args;
    char             x[192];
    const tn_tensor *buckets = c->in[BUCKETS], *padding = c->in[KEYS];
    for (int i = Q; i <= V; i++)
        if (!tn__need_real(c, i)) return false;
    if (c->in[K]->dtype != c->in[Q]->dtype || c->in[V]->dtype != c->in[Q]->dtype)
        return tn_infer_fail(c, TN_EDTYPE, "dtypes differ: q is %s, k %s, v %s", tn_dtype_name(c->in[Q]->dtype),
                             tn_dtype_name(c->in[K]->dtype), tn_dtype_name(c->in[V]->dtype));
    if (!infer_sizes(c)) return false;
    const tn_shape q = c->in[Q]->l.shape;
    if (buckets && !tn__need_index(c, BUCKETS)) return false;
    if (!infer_chunks(c)) return false;
    if (q.d[2] > INT32_MAX) return tn_infer_fail(c, TN_ESHAPE, "%lld positions are too many", (long long)q.d[2]);
    if (padding && padding->dtype != TN_BOOL)
        return tn_infer_fail(c, TN_EDTYPE, "key_padding_mask must be bool (true: padding), got %s",
                             tn_dtype_name(padding->dtype));
    if (padding && !tn_shape_equal(padding->l.shape, TN_SHAPE(q.d[0], q.d[2])))
        return tn_infer_fail(c, TN_ESHAPE, "key_padding_mask %s must be [B, T] = [%lld, %lld]",
                             tn_shape_text(padding->l.shape, x, sizeof x), (long long)q.d[0], (long long)q.d[2]);
    if (!tn__need_probability(c, a->dropout)) return false;
    if (!(a->scale - a->scale == 0)) return tn_infer_fail(c, TN_EINVAL, "scale is %g", a->scale);
    tn_shape l = q, o = q;
    l.n = 3, o.d[3] = c->in[V]->l.shape.d[3];
    c->result[0] = (tn_result){c->in[Q]->dtype, o};
    c->result[1] = (tn_result){tn__wide(c->in[Q]->dtype), l};
    return true;
}

/* ---- fused ------------------------------------------------------------------------------------------------------- */

/* The arguments of the kernel; bf16 is converted to f32. */
static tn__lsh_call call_of(const args_t *a, tn_tensor *const *in)
{
    tn_tensor *x[3];
    for (int i = Q; i <= V; i++) x[i] = in[i]->dtype == TN_BF16 ? tn_to(in[i], TN_F32) : in[i];
    return (tn__lsh_call){x[Q],      x[K],     x[V],      in[BUCKETS],
                          in[KEYS],  a->chunk, a->before, a->after,
                          a->causal, a->apart, a->scale,  tn__drop_of(a->dropout, a->seed, a->position)};
}

static void lsh_attention_forward(tn_ctx *c)
{
    const tn_scope     s = tn_no_grad_begin();
    const tn__lsh_call a = call_of(c->args, c->in);
    const tn_dtype     dt = c->out[1]->dtype;
    tn_tensor         *y = c->out[0]->dtype == dt ? c->out[0] : tn_empty_of(dt, c->out[0]->l.shape);
    if (tn_error() == TN_OK) tn__lsh_attend(&a, y, c->out[1]);
    if (tn_error() == TN_OK && y != c->out[0]) tn__copy(c->out[0], y);
    tn_scope_end(s);
}

static void lsh_attention_backward(tn_back *b)
{
    const tn_dtype dt = b->out[1]->dtype;
    for (int i = Q; i <= V; i++)
        if (b->need[i]) b->gx[i] = tn_zeros_of(dt, b->in_shape[i]);
    const tn_scope     s = tn_no_grad_begin();
    const tn__lsh_call a = call_of(b->args, b->in);
    tn_tensor         *y = tn_to(b->out[0], dt), *gy = tn_to(b->gy[0], dt);
    if (tn_error() == TN_OK) tn__lsh_attend_back(&a, y, b->out[1], gy, b->gx);
    tn_scope_end(s);
}

/* ---- made of ops ------------------------------------------------------------------------------------------------- */

/* An index [B, H, chunks, n] as an index of rows, [B, H, chunks · n, width]. */
static tn_tensor *rows_at(tn_tensor *at, int64_t width)
{
    const tn_shape s = tn_shape_of(at);
    tn_tensor     *flat = tn_reshape(at, TN_SHAPE(s.d[0], s.d[1], s.d[2] * s.d[3], 1));
    return tn_expand(flat, TN_SHAPE(s.d[0], s.d[1], s.d[2] * s.d[3], width));
}
/* The rows of x at that index, in chunks: [B, H, chunks, n, width]. */
static tn_tensor *chunks_at(tn_tensor *x, tn_tensor *at)
{
    const tn_shape s = tn_shape_of(at);
    const int64_t  width = tn_size(x, -1);
    return tn_reshape(tn_gather(x, 2, rows_at(at, width)), TN_SHAPE(s.d[0], s.d[1], s.d[2], s.d[3], width));
}
static tn_tensor *back_at(tn_tensor *g, tn_tensor *at, const tn_shape *like)
{
    const int64_t width = like->d[3];
    return tn_scatter_add(tn_zeros_of(tn_dtype_of(g), *like), 2, rows_at(at, width),
                          tn_reshape(g, TN_SHAPE(like->d[0], like->d[1], -1, width)));
}

/* The weights before dropout. *none: mask of padding; *fixed: mask of constant scores. */
static tn_tensor *weights_of(const args_t *a, tn_tensor *keys, tn_tensor *q, tn_tensor *k, tn_tensor *own_at,
                             tn_tensor *keys_at, tn_tensor *place, tn_tensor **none, tn_tensor **fixed)
{
    const tn_shape o = tn_shape_of(own_at), p = tn_shape_of(place);
    const int64_t  batch = o.d[0], heads = o.d[1], nkeys = tn_size(keys_at, -1);
    const tn_shape s = TN_SHAPE(batch, heads, o.d[2], o.d[3], nkeys);
    tn_tensor     *t = tn_unsqueeze(own_at, -1), *u = tn_unsqueeze(keys_at, -2);
    *none = tn_expand(a->causal ? tn_gt(u, t) : tn_zeros_of(TN_BOOL, TN_SCALAR), s);
    if (keys) {
        tn_tensor *of = tn_expand(tn_reshape(keys, TN_SHAPE(batch, 1, p.d[3])), TN_SHAPE(batch, heads, p.d[3]));
        tn_tensor *at = tn_reshape(keys_at, TN_SHAPE(batch, heads, -1));
        of = tn_reshape(tn_gather(of, 2, at), TN_SHAPE(batch, heads, o.d[2], 1, nkeys));
        *none = tn_logical_or(*none, of);
    }
    *fixed = a->apart ? tn_expand(tn_eq(t, u), s) : tn_zeros_of(TN_BOOL, s);
    *none = tn_logical_and(*none, tn_logical_not(*fixed));
    tn_tensor *x = tn_mul_scalar(tn_matmul(q, tn_transpose(k, -1, -2)), a->scale);
    x = tn_masked_fill(tn_masked_fill(x, *none, -1e30), *fixed, TN__LSH_ALONE);
    tn_tensor *l = tn_reshape(tn_logsumexp(x, .dims = TN_DIMS(-1)), TN_SHAPE(batch, heads, -1));
    l = tn_gather(l, 2, tn_reshape(place, TN_SHAPE(batch, heads, -1)));
    l = tn_logsumexp(tn_reshape(l, TN_SHAPE(batch, heads, p.d[2], p.d[3])), .dims = TN_DIMS(2));
    l = tn_gather(l, 2, tn_reshape(own_at, TN_SHAPE(batch, heads, -1)));
    l = tn_reshape(l, TN_SHAPE(batch, heads, o.d[2], o.d[3], 1));
    return tn_masked_fill(tn_exp(tn_sub(x, l)), *none, 0);
}

static tn_tensor *dropped(const args_t *a, tn_tensor *w)
{
    return a->dropout > 0 ? tn__drop_at(w, a->dropout, a->seed, a->position, NULL, 0) : w;
}

static void lsh_attention_backward_ops(tn_back *b)
{
    tn_tensor         *own_at, *keys_at, *place, *none, *fixed, *in[3];
    const args_t      *a = b->args;
    const tn__lsh_call call = call_of(a, b->in);
    for (int i = Q; i <= V; i++) in[i] = b->in[i]->dtype == TN_BF16 ? tn_to(b->in[i], TN_F32) : b->in[i];
    if (tn_error() != TN_OK) return;
    const bool any = tn__lsh_weights(&call) > 0;
    for (int i = Q; i <= V && !any; i++)
        if (b->need[i]) b->gx[i] = tn_zeros_of(b->in_dtype[i], b->in_shape[i]);
    if (!any || !tn__lsh_indices(&call, &own_at, &keys_at, &place)) return;
    tn_tensor *q = chunks_at(in[Q], own_at), *k = chunks_at(in[K], keys_at), *v = chunks_at(in[V], keys_at);
    tn_tensor *gy = tn_to(b->gy[0], tn_dtype_of(q)), *gys = chunks_at(gy, own_at);
    tn_tensor *w = weights_of(a, b->in[KEYS], q, k, own_at, keys_at, place, &none, &fixed);
    tn_tensor *same = tn_sum(tn_mul(gy, tn_to(b->out[0], tn_dtype_of(q))), .dims = TN_DIMS(-1), .keepdim = true);
    tn_tensor *gw = dropped(a, tn_matmul(gys, tn_transpose(v, -1, -2)));
    tn_tensor *gs = tn_masked_fill(tn_mul(w, tn_sub(gw, chunks_at(same, own_at))), fixed, 0);
    if (tn_error() != TN_OK) return;
    gs = tn_mul_scalar(gs, a->scale);
    if (b->need[Q]) b->gx[Q] = back_at(tn_matmul(gs, k), own_at, &b->in_shape[Q]);
    if (b->need[K]) b->gx[K] = back_at(tn_matmul(tn_transpose(gs, -1, -2), q), keys_at, &b->in_shape[K]);
    if (b->need[V]) b->gx[V] = back_at(tn_matmul(tn_transpose(dropped(a, w), -1, -2), gys), keys_at, &b->in_shape[V]);
}

#define ABSENT TN__ARG_ABSENT
#define PLAIN .kind = {0, 0, 0, ABSENT, ABSENT}
#define HASHED .kind = {0, 0, 0, TN__ARG_INDEX, ABSENT}, .high = {[BUCKETS] = 3}
#define BOTH .kind = {0, 0, 0, TN__ARG_INDEX, TN__ARG_MASK}, .high = {[BUCKETS] = 3}
/* If a position attends only to itself in several rounds, the sum of their weights is exp of the rounding error of
 * -1e5 + ln(rounds) in f32: at most half of 2^-7, once in a round and once over the rounds. */
#define ROUNDED .f32_tol = 0x1p-7
#define OF(b, h, t, d, e)                 \
    {4, {b, h, t, d}}, {4, {b, h, t, d}}, \
    {                                     \
        4, { b, h, t, e }                 \
    }
/* clang-format off */
static const tn__sample samples[] = {
    {.in = {OF(1, 2, 4, 2, 3)}, PLAIN, .args = &(args_t){2, 1, 0, true, false, 0.7, 0, 0, 0}},
    {.in = {OF(2, 1, 6, 2, 2)}, PLAIN, .args = &(args_t){2, 1, 1, false, false, 0.7, 0, 0, 0}},
    {.in = {OF(1, 1, 3, 2, 2)}, PLAIN, .args = &(args_t){4, 1, 0, true, true, 0.7, 0, 0, 0}},
    {.in = {OF(1, 2, 6, 2, 3), {4, {1, 2, 1, 6}}}, HASHED, .args = &(args_t){2, 1, 0, true, true, 0.7, 0, 0, 0}},
    {.in = {OF(1, 1, 4, 3, 2), {4, {1, 1, 3, 4}}}, HASHED, ROUNDED,
     .args = &(args_t){2, 1, 0, true, true, 0.5, 0, 0, 0}},
    {.in = {OF(2, 1, 4, 2, 2), {4, {2, 1, 2, 4}}, {2, {2, 4}}}, BOTH, ROUNDED,
     .args = &(args_t){2, 1, 0, true, true, 0.5, 0, 0, 0}},
    {.in = {OF(1, 2, 4, 2, 2), {4, {1, 2, 2, 4}}}, HASHED, ROUNDED,
     .args = &(args_t){2, 1, 1, false, true, 0.5, 0.4, 3, 5}},
    {.in = {OF(2, 1, 4, 2, 2), {0}, {2, {2, 4}}}, .kind = {0, 0, 0, ABSENT, TN__ARG_MASK},
     .args = &(args_t){2, 1, 0, true, false, 0.5, 0.3, 3, 0}},
    {.in = {OF(0, 1, 4, 2, 2)}, PLAIN, .args = &(args_t){2, 1, 0, true, false, 1, 0, 0, 0}},
    {.in = {OF(1, 1, 0, 2, 2)}, PLAIN, .args = &(args_t){2, 1, 0, true, false, 1, 0, 0, 0}},
    {.in = {OF(1, 1, 5, 2, 2)}, PLAIN, .args = &(args_t){2, 1, 0, true, false, 1, 0, 0, 0},
     TN__FAILS(TN_ESHAPE, "lsh_attention: 5 positions are not a multiple of the chunk size 2; pad them")},
    {.in = {{3, {1, 4, 2}}, {3, {1, 4, 2}}, {3, {1, 4, 2}}}, PLAIN, .args = &(args_t){2, 1, 0, true, false, 1, 0, 0, 0},
     TN__FAILS(TN_ESHAPE, "lsh_attention: q [1, 4, 2] and k [1, 4, 2] must both be [B, H, T, D]")},
    {.in = {{4, {1, 1, 4, 2}}, {4, {1, 1, 4, 2}}, {4, {1, 1, 3, 2}}}, PLAIN,
     .args = &(args_t){2, 1, 0, true, false, 1, 0, 0, 0},
     TN__FAILS(TN_ESHAPE, "lsh_attention: v [1, 1, 3, 2] must be [B, H, T, E] with q's [1, 1, 4, 2]")},
    {.in = {OF(1, 1, 4, 2, 2), {4, {1, 1, 1, 3}}}, HASHED, .args = &(args_t){2, 1, 0, true, false, 1, 0, 0, 0},
     TN__FAILS(TN_ESHAPE, "lsh_attention: buckets [1, 1, 1, 3] must be [B, H, rounds, T] with q's [1, 1, 4, 2]")},
    {.in = {OF(1, 1, 4, 2, 2)}, PLAIN, .args = &(args_t){0, 1, 0, true, false, 1, 0, 0, 0}, TN__FAILS( TN_EINVAL,
     "lsh_attention: chunk is 0, before 1, after 0; chunk must be at least 1, before and after from 0 to 64")},
    {.in = {OF(1, 1, 4, 2, 2)}, PLAIN, .args = &(args_t){2, 3, 0, true, false, 1, 0, 0, 0},
     TN__FAILS(TN_EINVAL, "lsh_attention: before is 3, after 0, but there are only 2 chunks; lower them or "
                               "lengthen the sequence")},
    {.in = {OF(1, 1, 4, 2, 2), {4, {1, 1, 1, 4}}}, HASHED, .args = &(args_t){2, 0, 3, true, false, 1, 0, 0, 0},
     TN__FAILS(TN_EINVAL, "lsh_attention: before is 0, after 3, but there are only 2 chunks; lower them or "
                               "lengthen the sequence")},
    {.in = {OF(1, 1, 4, 2, 2)}, PLAIN, .args = &(args_t){2, 1, 0, true, false, INFINITY, 0, 0, 0},
     TN__FAILS(TN_EINVAL, "lsh_attention: scale is inf")},
};
/* clang-format on */

const tn_op tn__op_lsh_attention = {TN__ROOM("lsh_attention", TN_WIDE),
                                    .inputs = INPUTS,
                                    .outputs = 2,
                                    .optional = TN__IN(BUCKETS) | TN__IN(KEYS),
                                    .saves = TN__FIRST_IN(INPUTS) | TN_SAVE_OUT(0) | TN_SAVE_OUT(1),
                                    .args_size = sizeof(args_t),
                                    .infer = lsh_attention_infer,
                                    .forward = lsh_attention_forward,
                                    .backward = lsh_attention_backward,
                                    .backward_ops = lsh_attention_backward_ops};
TN__SAMPLES(lsh_attention, samples);

tn_tensor *tn_lsh_attention_run(tn_lsh_attention_args a)
{
    tn_tensor    *in[INPUTS] = {a.q, a.k, a.v, a.buckets, a.key_padding_mask}, *out[2];
    tn_generator *g = tn_current_generator();
    args_t        args = {a.chunk, a.before, a.after, a.causal, a.apart, a.scale, a.dropout, g->seed, g->position};
    tn__promote_all(3, in);
    if (a.scale < 0 && in[Q] && in[Q]->l.shape.n) {
        const int64_t d = in[Q]->l.shape.d[in[Q]->l.shape.n - 1];
        args.scale = 1 / sqrt(d > 0 ? (double)d : 1);
    }
    if (tn_op_call(&tn__op_lsh_attention, INPUTS, in, 2, out, &args) == TN_OK && a.dropout > 0) g->position++;
    return out[0];
}
