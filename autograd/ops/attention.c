/* attention — y = w v with w = softmax over the keys of (scale · q kᵀ + mask), and dropout on w
 *
 *   gv = wᵀ gy,   gw = gy vᵀ,   gs = w (gw - Σ w gw),   gq = scale · gs k,   gk = scale · gsᵀ q,   gmask = gs
 *
 * q [..., T, D], k [..., S, D], v [..., S, E], leading dims broadcast; or all three packed in one, [B, T, 3, H, D], and
 * then the gradient is also one tensor. For gv, w is taken after the dropout, and the same dropout is applied to gw;
 * for gs, w is taken before it.
 *
 * Masked keys have no influence, even if they are NaN; a query whose keys are all masked gets 0, and gradient 0. The op
 * is streamed (core/products/attention.c): it computes w one block at a time, and keeps two values of each row for the
 * backward, the largest score and 1 / Σ exp, in a hidden second result. attention_and_weights also computes w, from
 * attention_scores, attention_weights (which implements the masks) and dropout. Gradients of gradients use the same ops
 * and select_matmul. Dropout uses the same random words for element i of w as the op dropout. */
#include "autograd/rooms/attention_args.h"
#include "autograd/rooms/room.h"
#include "core/products/attention.h"
enum { Q, K, V, MASK, KEYS, INPUTS };
typedef struct {
    bool     causal;
    int64_t  past, window;
    double   dropout, scale;
    uint64_t seed, position; /* of the generator */
    tn_dims  order;          /* of the result's dims */
} args_t;

static bool fail(const tn_ctx *c, const char *a, const tn_tensor *x, const char *b, const tn_tensor *y,
                 const char *problem)
{
    char xs[192], ys[192];
    return tn_infer_fail(c, TN_ESHAPE, "%s %s and %s %s %s", a, tn_shape_text(x->l.shape, xs, sizeof xs), b,
                         tn_shape_text(y->l.shape, ys, sizeof ys), problem);
}

/* The leading dims of a and b, broadcast. */
static bool broadcast_lead(tn_shape a, tn_shape b, tn_shape *to)
{
    *to = (tn_shape){.n = a.n > b.n ? a.n : b.n};
    for (int i = 1; i <= to->n; i++) {
        const int64_t x = i <= a.n ? a.d[a.n - i] : 1, y = i <= b.n ? b.d[b.n - i] : 1;
        if (x != y && x != 1 && y != 1) return false;
        to->d[to->n - i] = x == 1 ? y : x;
    }
    return true;
}
static tn_shape lead_of(const tn_tensor *x)
{
    tn_shape s = x->l.shape;
    s.n -= 2;
    return s;
}
static tn_shape with(tn_shape lead, int64_t rows, int64_t cols)
{
    lead.d[lead.n++] = rows, lead.d[lead.n++] = cols;
    return lead;
}

/* True if q, k and v are packed in one tensor. */
static bool packed(int nin, const tn_shape *shape, tn_tensor *const *in)
{
    return nin >= 3 && !in[K] && !in[V] && shape->n == 5 && shape->d[2] == 3;
}
/* Tensor i (q, k or v) of the packed x [B, T, 3, H, D], as a view [B, H, T, D] on the stack. */
static tn_tensor heads_of(const tn_tensor *x, int i)
{
    static const int turn[4] = {0, 3, 1, 4};
    tn__layout       l = {.shape.n = 4, .offset = x->l.offset + i * x->l.stride[2]};
    for (int d = 0; d < 4; d++) l.shape.d[d] = x->l.shape.d[turn[d]], l.stride[d] = x->l.stride[turn[d]];
    return tn__stack_view(x, &l);
}
/* Stores q, k and v in to[3]: views on the stack, [B, H, T, D] each if they are packed. */
static void parts_of(tn_tensor *const *in, tn_tensor *to)
{
    const bool one = packed(3, &in[Q]->l.shape, in);
    for (int i = 0; i < 3; i++) to[i] = one ? heads_of(in[Q], i) : tn__stack_view(in[i], &in[i]->l);
}

/* For infer: q, k and v (or the packed tensor) must be floating matrices of one dtype. */
static bool infer_parts(const tn_ctx *c)
{
    static const char *const name[] = {"q", "k", "v"}, *const dims[] = {"[..., T, D]", "[..., S, D]", "[..., S, E]"};
    char       text[192];
    const bool one = c->in[Q] && packed(c->nin, &c->in[Q]->l.shape, c->in);
    for (int i = 0; i < (one ? 1 : 3); i++) {
        const tn_tensor *x = c->in[i];
        if (!x) return tn_infer_fail(c, TN_EINVAL, "%s is NULL", name[i]);
        if (!tn__is_float(x->dtype))
            return tn_infer_fail(c, TN_EDTYPE, "%s must be floating, got %s; convert it with tn_to(%s, TN_F32)",
                                 name[i], tn_dtype_name(x->dtype), name[i]);
        if (x->l.shape.n < 2)
            return tn_infer_fail(c, TN_ESHAPE, "%s must be %s, got %s", name[i], dims[i],
                                 tn_shape_text(x->l.shape, text, sizeof text));
    }
    return true;
}

/* For infer: the shapes of the scores, and of the result before its dims are reordered. */
static bool infer_shapes(const tn_ctx *c, const tn_tensor *part, tn_shape *scores, tn_shape *result)
{
    const tn_tensor *q = &part[0], *k = &part[1], *v = &part[2];
    const int        nq = q->l.shape.n, nk = k->l.shape.n, nv = v->l.shape.n;
    const int64_t    queries = q->l.shape.d[nq - 2], count = k->l.shape.d[nk - 2];
    tn_shape         s = {.n = 0}, y = {.n = 0};
    if (k->dtype != q->dtype || v->dtype != q->dtype)
        return tn_infer_fail(c, TN_EDTYPE, "dtypes differ: q is %s, k %s, v %s", tn_dtype_name(q->dtype),
                             tn_dtype_name(k->dtype), tn_dtype_name(v->dtype));
    if (q->l.shape.d[nq - 1] != k->l.shape.d[nk - 1]) return fail(c, "q", q, "k", k, "differ in their last dim");
    if (count != v->l.shape.d[nv - 2])
        return fail(c, "k", k, "v", v, "differ in the number of keys, their second to last dim");
    if (!broadcast_lead(lead_of(q), lead_of(k), &s))
        return fail(c, "q", q, "k", k, "have leading dims that do not broadcast");
    if (!broadcast_lead(s, lead_of(v), &y)) return fail(c, "k", k, "v", v, "have leading dims that do not broadcast");
    *scores = with(s, queries, count), *result = with(y, queries, v->l.shape.d[nv - 1]);
    return tn__shape_check(c->op->name, q->dtype, *scores);
}

static bool infer_masks(const tn_ctx *c, tn_shape s)
{
    const tn_tensor *attn_mask = c->in[MASK], *keys = c->in[KEYS];
    const int64_t    count = s.d[s.n - 1];
    char             text[192], scores[192];
    if (attn_mask && attn_mask->dtype != TN_BOOL && !tn__is_float(attn_mask->dtype))
        return tn_infer_fail(c, TN_EDTYPE,
                             "attn_mask must be bool (true: masked) or floating (added to the scores), got %s",
                             tn_dtype_name(attn_mask->dtype));
    if (attn_mask && !tn__broadcastable(attn_mask->l.shape, s))
        return tn_infer_fail(c, TN_ESHAPE, "attn_mask %s does not broadcast to the scores' %s",
                             tn_shape_text(attn_mask->l.shape, text, sizeof text),
                             tn_shape_text(s, scores, sizeof scores));
    if (keys && keys->dtype != TN_BOOL)
        return tn_infer_fail(c, TN_EDTYPE, "key_padding_mask must be bool (true: padding), got %s",
                             tn_dtype_name(keys->dtype));
    if (keys && (s.n < 3 || keys->l.shape.n != 2 || keys->l.shape.d[0] != s.d[0] || keys->l.shape.d[1] != count))
        return tn_infer_fail(c, TN_ESHAPE,
                             "key_padding_mask %s does not fit the scores' %s: it must be [first dim, last dim]",
                             tn_shape_text(keys->l.shape, text, sizeof text), tn_shape_text(s, scores, sizeof scores));
    return true;
}

static bool attention_infer(tn_ctx *c)
{
    const double  p = TN_ARG(c, dropout), scale = TN_ARG(c, scale);
    const tn_dims order = TN_ARG(c, order);
    tn_tensor     part[3];
    tn_shape      s = {.n = 0}, y = {.n = 0}, rows;
    if (!infer_parts(c)) return false;
    parts_of(c->in, part);
    if (!infer_shapes(c, part, &s, &y) || !infer_masks(c, s)) return false;
    if (!(p >= 0 && p <= 1))
        return tn_infer_fail(c, TN_EINVAL, "dropout is %g, but a probability must be from 0 to 1", p);
    if (!(scale - scale == 0)) return tn_infer_fail(c, TN_EINVAL, "scale is %g", scale);
    if (TN_ARG(c, past) < 0 || (TN_ARG(c, past) && !TN_ARG(c, causal)))
        return tn_infer_fail(c, TN_EINVAL, "past is %lld, but must be 0, or at least 1 together with causal",
                             (long long)TN_ARG(c, past));
    if (TN_ARG(c, window) < 0 || (TN_ARG(c, window) && !TN_ARG(c, causal)))
        return tn_infer_fail(c, TN_EINVAL, "window is %lld, but must be 0, or at least 1 together with causal",
                             (long long)TN_ARG(c, window));
    const tn_dtype dt = part[0].dtype;
    c->result[0] = (tn_result){dt, y};
    if (order.n) {
        const tn__layout l = {.shape = y};
        tn__layout       permuted;
        if (!tn__view_permute(c->op->name, &l, order, &permuted)) return false;
        c->result[0].shape = permuted.shape;
    }
    rows = y, rows.d[rows.n - 1] = 2;
    if (c->op == &tn__op_attention) c->result[1] = (tn_result){tn__wide(dt), rows};
    else c->result[1] = (tn_result){dt, s};
    return true;
}

/* ---- streamed ---------------------------------------------------------------------------------------------------- */

/* A view of x expanded to the leading dims of the result; NULL stays NULL. */
static const tn_tensor *expanded(const tn_tensor *x, tn_shape lead, int64_t rows, tn_tensor *to)
{
    if (!x) return NULL;
    const tn__layout l = tn__layout_expand(&x->l, with(lead, rows, x->l.shape.n ? x->l.shape.d[x->l.shape.n - 1] : 1));
    *to = tn__stack_view(x, &l);
    return to;
}
/* The result (or its gradient) with its dims in the order [..., T, E]. */
static const tn_tensor *unpermuted(const tn_tensor *y, tn_dims order, tn_tensor *to)
{
    tn__layout l = y->l;
    for (int i = 0; i < order.n; i++) {
        const int d = order.d[i] < 0 ? order.d[i] + order.n : order.d[i];
        l.shape.d[d] = y->l.shape.d[i], l.stride[d] = y->l.stride[i];
    }
    *to = tn__stack_view(y, &l);
    return to;
}

typedef struct {
    tn__attention_call c;
    tn_tensor          part[3], x[12];
    tn_shape           lead;
} call;

static void attention_prepare(call *k, const args_t *a, tn_tensor *const *in, tn_tensor *y, tn_tensor *stat)
{
    tn__attention_call *c = &k->c;
    parts_of(in, k->part);
    *c = (tn__attention_call){.causal = a->causal, .scale = a->scale, .stat = stat};
    c->window = tn__min_i64(a->window, INT64_MAX / 4); /* so that sums with it do not overflow */
    c->past = tn__min_i64(a->past, c->window ? INT64_MAX / 4 : k->part[1].l.shape.d[k->part[1].l.shape.n - 2]);
    c->drop = tn__drop_of(a->dropout, a->seed, a->position);
    c->y = unpermuted(y, a->order, &k->x[0]);
    k->lead = lead_of(c->y);
    const int64_t queries = k->part[0].l.shape.d[k->part[0].l.shape.n - 2];
    const int64_t keys = k->part[1].l.shape.d[k->part[1].l.shape.n - 2];
    tn_shape      s;
    broadcast_lead(lead_of(&k->part[0]), lead_of(&k->part[1]), &s);
    const tn__layout scores = tn__layout_of_shape(with(s, queries, keys));
    c->draw = tn__layout_expand(&scores, with(k->lead, queries, keys));
    c->q = expanded(&k->part[0], k->lead, queries, &k->x[1]);
    c->k = expanded(&k->part[1], k->lead, keys, &k->x[2]);
    c->v = expanded(&k->part[2], k->lead, keys, &k->x[3]);
    if (in[MASK]) {
        const tn__layout l = tn__layout_expand(&in[MASK]->l, c->draw.shape);
        k->x[4] = tn__stack_view(in[MASK], &l), c->mask[0] = &k->x[4];
    }
    if (in[KEYS]) { /* [B, S], where B is the first dim of the scores */
        tn__layout l = {.shape = c->draw.shape, .offset = in[KEYS]->l.offset};
        l.stride[k->lead.n - s.n] = in[KEYS]->l.shape.d[0] == 1 ? 0 : in[KEYS]->l.stride[0];
        l.stride[l.shape.n - 1] = in[KEYS]->l.stride[1];
        k->x[5] = tn__stack_view(in[KEYS], &l), c->mask[1] = &k->x[5];
    }
}

static void attention_forward(tn_ctx *c)
{
    call k;
    attention_prepare(&k, c->args, c->in, c->out[0], c->out[1]);
    tn__attend(&k.c);
}

static void attention_backward(tn_back *b)
{
    const args_t *a = b->args;
    call          k;
    attention_prepare(&k, a, b->in, b->out[0], b->out[1]);
    const bool        one = !b->in[K];
    const tn_tensor **to[3] = {&k.c.gq, &k.c.gk, &k.c.gv};
    for (int i = 0; i < 3; i++) {
        if (!b->need[one ? 0 : i]) continue;
        const tn_tensor *x = i == 0 ? k.c.q : i == 1 ? k.c.k : k.c.v;
        if (!one) b->gx[i] = tn_empty_of(x->dtype, x->l.shape);
        else if (i == 0) b->gx[Q] = tn_empty_of(b->in_dtype[Q], b->in_shape[Q]);
        if (tn__self.error) return;
        k.x[6 + i] = one ? heads_of(b->gx[Q], i) : tn__stack_view(b->gx[i], &b->gx[i]->l);
        *to[i] = &k.x[6 + i];
    }
    if (b->need[MASK] && !(k.c.gs = b->gx[MASK] = tn_zeros_of(tn__wide(k.c.q->dtype), k.c.draw.shape))) return;
    k.c.gy = unpermuted(b->gy[0], a->order, &k.x[9]);
    tn__attend_back(&k.c);
}

/* ---- made of ops ------------------------------------------------------------------------------------------------- */

static void ops_of(tn_tensor *const *in, tn_tensor **part)
{
    const bool one = !in[K];
    for (int i = 0; i < 3; i++) part[i] = one ? tn_permute(tn_select(in[Q], 2, i), TN_DIMS(0, 2, 1, 3)) : in[i];
}

static tn_tensor *weights_of(const args_t *a, tn_tensor *const *part, tn_tensor *attn_mask, tn_tensor *keys)
{
    const tn__attention_weights_args sight = {.causal = a->causal, .past = a->past, .window = a->window};
    const tn__attention_scores_args  product = {.scale = a->scale};
    const bool                       mask = attn_mask && attn_mask->dtype == TN_BOOL;
    tn_tensor                       *w = tn_op_apply(&tn__op_attention_scores, &product, 2, part);
    if (keys && w) { /* [B, S] → [B, 1, …, 1, S] */
        tn_shape s = {.n = w->l.shape.n};
        for (int i = 0; i < s.n; i++) s.d[i] = i == 0 ? keys->l.shape.d[0] : i == s.n - 1 ? keys->l.shape.d[1] : 1;
        keys = tn_reshape(keys, s);
    }
    return tn_apply_args(&tn__op_attention_weights, &sight, w, mask ? NULL : attn_mask, mask ? attn_mask : NULL, keys);
}
static tn_tensor *dropped(const args_t *a, tn_tensor *w)
{
    return a->dropout > 0 ? tn__drop_at(w, a->dropout, a->seed, a->position) : w;
}

/* The streamed op computes the result, so that it has the same bits with and without the weights. */
static void attention_compose(tn_ctx *c)
{
    const args_t *a = c->args;
    tn_tensor    *part[3], *y[2];
    ops_of(c->in, part);
    tn_op_call(&tn__op_attention, 5, c->in, 2, y, a);
    c->out[0] = y[0], c->out[1] = dropped(a, weights_of(a, part, c->in[MASK], c->in[KEYS]));
}

static void attention_backward_ops(tn_back *b)
{
    const args_t *a = b->args;
    tn_tensor    *part[3], *g[3], *gy = b->gy[0];
    tn_dims       back = {.n = a->order.n};
    for (int i = 0; i < back.n; i++) back.d[a->order.d[i] < 0 ? a->order.d[i] + back.n : a->order.d[i]] = i;
    if (back.n) gy = tn_permute(gy, back);
    ops_of(b->in, part);
    tn_tensor *w = weights_of(a, part, b->in[MASK], b->in[KEYS]);
    if (!w) return;
    tn_tensor *zero = tn_eq(w, tn_zeros_of(w->dtype, TN_SCALAR)); /* keys of weight 0 get gradient 0 */
    tn_tensor *gw = tn_masked_fill(dropped(a, tn_matmul(gy, tn_transpose(part[2], -1, -2))), zero, 0);
    tn_tensor *gs = tn_mul(w, tn_sub(gw, tn_sum(tn_mul(gw, w), .dims = TN_DIMS(-1), .keepdim = true)));
    gs = tn_masked_fill(gs, zero, 0); /* even if the sum is NaN because of other keys */
    g[0] = tn_mul_scalar(tn_apply(&tn__op_select_matmul, gs, part[1]), a->scale);
    g[1] = tn_mul_scalar(tn_apply(&tn__op_select_matmul, tn_transpose(gs, -1, -2), part[0]), a->scale);
    g[2] = tn_apply(&tn__op_select_matmul, tn_transpose(dropped(a, w), -1, -2), gy);
    for (int i = 0; i < 3 && b->in[K]; i++)
        if (b->need[i]) b->gx[i] = g[i];
    if (b->need[MASK]) b->gx[MASK] = gs;
    if (b->in[K] || !b->need[Q]) return;
    for (int i = 0; i < 3; i++) g[i] = tn_permute(g[i], TN_DIMS(0, 2, 1, 3));
    b->gx[Q] = tn_stack_list(2, 3, g);
}

const tn_op tn__op_attention = {TN__ROOM("attention", TN_NARROW(3)),
                                .inputs = INPUTS,
                                .outputs = 2,
                                .optional = TN__FIRST_IN(INPUTS),
                                .saves = TN__FIRST_IN(INPUTS) | TN_SAVE_OUT(0) | TN_SAVE_OUT(1),
                                .args_size = sizeof(args_t),
                                .infer = attention_infer,
                                .forward = attention_forward,
                                .backward = attention_backward,
                                .backward_ops = attention_backward_ops};

const tn_op tn__op_attention_and_weights = {TN__ROOM("attention", TN_NARROW(3)),
                                            .inputs = INPUTS,
                                            .outputs = 2,
                                            .optional = TN__FIRST_IN(INPUTS),
                                            .args_size = sizeof(args_t),
                                            .infer = attention_infer,
                                            .compose = attention_compose};

tn_tensor *tn_attention_run(tn_attention_args a)
{
    tn_tensor    *in[5] = {a.q, a.k, a.v, a.attn_mask, a.key_padding_mask}, *out[2];
    tn_generator *g = tn_current_generator();
    args_t        args = {.causal = a.causal,
                          .past = a.past,
                          .window = a.window,
                          .dropout = a.dropout,
                          .scale = a.scale,
                          .seed = g->seed,
                          .position = g->position,
                          .order = a.order};
    tn__promote_all(3, in);
    if (a.scale < 0) {
        const int64_t d = in[Q] && in[Q]->l.shape.n ? in[Q]->l.shape.d[in[Q]->l.shape.n - 1] : 1;
        args.scale = 1 / sqrt(d > 0 ? (double)d : 1);
    }
    if (tn_op_call(a.weights ? &tn__op_attention_and_weights : &tn__op_attention, 5, in, 2, out, &args) == TN_OK &&
        a.dropout > 0) {
        tn_tensor part[3];
        tn_shape  s;
        parts_of(in, part);
        broadcast_lead(lead_of(&part[0]), lead_of(&part[1]), &s);
        s = with(s, part[0].l.shape.d[part[0].l.shape.n - 2], part[1].l.shape.d[part[1].l.shape.n - 2]);
        g->position += tn__drop_blocks(tn_shape_numel(s));
    }
    if (a.weights) *a.weights = out[1];
    return out[0];
}

/* ---- samples ----------------------------------------------------------------------------------------------------- */

#define ABSENT TN__ARG_ABSENT
#define ONE .kind = {0, ABSENT, ABSENT, ABSENT, ABSENT}
#define NO_MASKS .kind = {0, 0, 0, ABSENT, ABSENT}
#define SMALL .in = {{2, {3, 2}}, {2, {4, 2}}, {2, {4, 3}}}
#define ARGS(...) \
    .args = &(args_t) { .seed = 3, __VA_ARGS__ }
#define ORDER(...)                                                                   \
    {                                                                                \
        .n = (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), .d = { __VA_ARGS__ } \
    }
static const tn__sample samples[] = {
    {SMALL, NO_MASKS, ARGS(.scale = 0.7)},
    {.in = {{4, {2, 2, 3, 2}}, {4, {2, 2, 3, 2}}, {4, {2, 2, 3, 2}}}, NO_MASKS, ARGS(.causal = true, .scale = 0.7)},
    {.in = {{3, {2, 2, 3}}, {3, {2, 4, 3}}, {3, {2, 4, 2}}, {2, {2, 4}}},
     .kind = {0, 0, 0, TN__ARG_MASK, ABSENT},
     ARGS(.scale = 0.5)},
    {.in = {{3, {2, 3, 2}}, {3, {2, 3, 2}}, {3, {2, 3, 2}}, {2, {3, 3}}},
     .kind = {0, 0, 0, 0, ABSENT},
     ARGS(.causal = true, .scale = 1)}, /* an added mask has a gradient */
    {.in = {{4, {2, 2, 2, 2}}, {4, {2, 1, 3, 2}}, {3, {1, 3, 2}}, {1, {3}}, {2, {2, 3}}},
     .kind = {0, 0, 0, TN__ARG_MASK, TN__ARG_MASK},
     ARGS(.scale = 0.5)},
    {.in = {{3, {2, 3, 2}}, {3, {2, 3, 2}}, {3, {2, 3, 2}}, {0}, {2, {2, 3}}},
     .kind = {0, 0, 0, ABSENT, TN__ARG_MASK},
     ARGS(.causal = true, .dropout = 0.5, .scale = 0.5)},
    {.in = {{5, {2, 3, 3, 2, 2}}},
     ONE,
     ARGS(.causal = true, .dropout = 0.3, .scale = 0.6, .position = 5, .order = ORDER(0, 2, 1, 3))},
    {.in = {{5, {1, 4, 3, 1, 3}}, {0}, {0}, {2, {4, 4}}, {2, {1, 4}}},
     .kind = {0, ABSENT, ABSENT, 0, TN__ARG_MASK},
     ARGS(.scale = 0.6)},
    {.in = {{4, {2, 2, 3, 2}}, {4, {2, 2, 5, 2}}, {4, {2, 2, 5, 3}}},
     NO_MASKS,
     ARGS(.causal = true, .past = 2, .scale = 0.6, .order = ORDER(2, 0, 1, -1))},
    {.in = {{3, {2, 5, 2}}, {3, {2, 6, 2}}, {3, {2, 6, 3}}},
     NO_MASKS,
     ARGS(.causal = true, .past = 1, .scale = 0.6, .window = 3)},
    {.in = {{3, {2, 4, 2}}, {3, {2, 4, 2}}, {3, {2, 4, 2}}, {2, {4, 4}}, {2, {2, 4}}},
     .kind = {0, 0, 0, 0, TN__ARG_MASK},
     ARGS(.causal = true, .dropout = 0.3, .scale = 0.6, .window = 2)},
    {.in = {{2, {1, 1}}, {2, {1, 1}}, {2, {1, 1}}}, NO_MASKS, ARGS(.scale = 1)},
    {.in = {{2, {2, 3}}, {2, {0, 3}}, {2, {0, 2}}}, NO_MASKS, ARGS(.scale = 1)}, /* no keys */
    {.in = {{3, {0, 2, 3}}, {3, {0, 2, 3}}, {3, {0, 2, 3}}}, NO_MASKS, ARGS(.causal = true, .scale = 1)},
    {.in = {{2, {3, 2}}, {2, {4, 3}}, {2, {4, 3}}},
     NO_MASKS,
     ARGS(.scale = 1),
     TN__FAILS(TN_ESHAPE, "attention: q [3, 2] and k [4, 3] differ in their last dim")},
    {.in = {{2, {3, 2}}, {2, {4, 2}}, {2, {3, 2}}},
     NO_MASKS,
     ARGS(.scale = 1),
     TN__FAILS(TN_ESHAPE, "attention: k [4, 2] and v [3, 2] differ in the number of keys, their second to last dim")},
    {.in = {{3, {2, 3, 2}}, {3, {3, 4, 2}}, {2, {4, 2}}},
     NO_MASKS,
     ARGS(.scale = 1),
     TN__FAILS(TN_ESHAPE, "attention: q [2, 3, 2] and k [3, 4, 2] have leading dims that do not broadcast")},
    {.in = {{3, {2, 3, 2}}, {3, {2, 4, 2}}, {3, {3, 4, 2}}},
     NO_MASKS,
     ARGS(.scale = 1),
     TN__FAILS(TN_ESHAPE, "attention: k [2, 4, 2] and v [3, 4, 2] have leading dims that do not broadcast")},
    {.in = {{2, {3, 2}}, {1, {2}}, {2, {3, 2}}},
     NO_MASKS,
     ARGS(.scale = 1),
     TN__FAILS(TN_ESHAPE, "attention: k must be [..., S, D], got [2]")},
    {.in = {{2, {3, 2}}, {2, {4, 2}}, {2, {4, 3}}, {2, {3, 3}}},
     .kind = {0, 0, 0, TN__ARG_MASK, ABSENT},
     ARGS(.scale = 1),
     TN__FAILS(TN_ESHAPE, "attention: attn_mask [3, 3] does not broadcast to the scores' [3, 4]")},
    {.in = {{2, {3, 2}}, {2, {4, 2}}, {2, {4, 3}}, {2, {3, 4}}},
     .kind = {0, 0, 0, TN__ARG_INT, ABSENT},
     ARGS(.scale = 1),
     TN__FAILS(TN_EDTYPE,
               "attention: attn_mask must be bool (true: masked) or floating (added to the scores), got i64")},
    {.in = {{3, {2, 3, 2}}, {3, {2, 4, 2}}, {3, {2, 4, 3}}, {0}, {2, {2, 3}}},
     .kind = {0, 0, 0, ABSENT, TN__ARG_MASK},
     ARGS(.scale = 1),
     TN__FAILS(
         TN_ESHAPE,
         "attention: key_padding_mask [2, 3] does not fit the scores' [2, 3, 4]: it must be [first dim, last dim]")},
    {.in = {{3, {2, 3, 2}}, {3, {2, 4, 2}}, {3, {2, 4, 3}}, {0}, {2, {2, 4}}},
     .kind = {0, 0, 0, ABSENT, 0},
     ARGS(.scale = 1),
     TN__FAILS(TN_EDTYPE, "attention: key_padding_mask must be bool (true: padding), got f32")},
    {SMALL, NO_MASKS, ARGS(.dropout = 1.5, .scale = 1),
     TN__FAILS(TN_EINVAL, "attention: dropout is 1.5, but a probability must be from 0 to 1")},
    {SMALL, NO_MASKS, ARGS(.scale = INFINITY), TN__FAILS(TN_EINVAL, "attention: scale is inf")},
    {SMALL, NO_MASKS, ARGS(.causal = true, .past = -1, .scale = 1),
     TN__FAILS(TN_EINVAL, "attention: past is -1, but must be 0, or at least 1 together with causal")},
    {SMALL, NO_MASKS, ARGS(.scale = 1, .window = 2),
     TN__FAILS(TN_EINVAL, "attention: window is 2, but must be 0, or at least 1 together with causal")},
    {SMALL, NO_MASKS, ARGS(.scale = 1, .order = ORDER(0, 1, 2)),
     TN__FAILS(TN_EINVAL, "attention: the order lists 3 dims, the tensor has 2")},
    {.in = {{5, {2, 3, 3, 2, 2}}, {4, {2, 2, 3, 2}}},
     .kind = {0, 0, ABSENT, ABSENT, ABSENT},
     ARGS(.scale = 1),
     TN__FAILS(TN_EINVAL, "attention: v is NULL")},
    {.in = {{2, {3, 2}}, {2, {4, 2}}},
     .kind = {0, 0, ABSENT, ABSENT, ABSENT},
     ARGS(.scale = 1),
     TN__FAILS(TN_EINVAL, "attention: v is NULL")},
    {.in = {{2, {3, 2}}, {2, {4, 2}}, {2, {4, 3}}},
     .kind = {TN__ARG_INT, 0, 0, ABSENT, ABSENT},
     ARGS(.scale = 1),
     TN__FAILS(TN_EDTYPE, "attention: q must be floating, got i64; convert it with tn_to(q, TN_F32)")},
};
TN__SAMPLES(attention, samples);

static const tn__sample weights_samples[] = {
    {.in = {{4, {2, 2, 3, 2}}, {4, {2, 2, 3, 2}}, {4, {2, 2, 3, 2}}}, NO_MASKS, ARGS(.causal = true, .scale = 0.7)},
    {.in = {{3, {2, 3, 2}}, {3, {2, 3, 2}}, {3, {2, 3, 2}}, {0}, {2, {2, 3}}},
     .kind = {0, 0, 0, ABSENT, TN__ARG_MASK},
     ARGS(.causal = true, .dropout = 0.3, .scale = 0.5)},
    {.in = {{5, {2, 3, 3, 2, 2}}},
     ONE,
     ARGS(.causal = true, .past = 1, .dropout = 0.3, .scale = 0.6, .position = 5, .order = ORDER(0, 2, 1, 3))},
    {.in = {{2, {3, 2}}, {2, {4, 3}}, {2, {4, 3}}},
     NO_MASKS,
     ARGS(.scale = 1),
     TN__FAILS(TN_ESHAPE, "attention: q [3, 2] and k [4, 3] differ in their last dim")},
};
TN__SAMPLES(attention_and_weights, weights_samples);
