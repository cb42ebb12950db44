/* attention — y = w v with w = softmax over the keys of (scale · q kᵀ + mask), and dropout on w; with a cap c,
 * c tanh(scale · q kᵀ / c) + mask
 *
 *   gv = wᵀ gy,   gw = gy vᵀ,   gs = w (gw - Σ w gw),   gq = scale · gs k,   gk = scale · gsᵀ q,   gmask = gs
 *
 * With a cap gs is multiplied by tanh' for gq and gk.
 *
 * q [..., T, D], k [..., S, D], v [..., S, E], leading dims broadcast; or all three packed in one, [B, T, 3, H, D], and
 * then the gradient is also one tensor. With int8 k and v are constants in rows of 8 bits (int8_rows). For gv, w is
 * taken after the dropout, and the same dropout is applied to gw; for gs, w is taken before it.
 *
 * Masked keys have no influence, even if they are NaN; a query whose keys are all masked gets 0, and gradient 0. The op
 * is streamed (core/products/attention.c): it computes w one block at a time, and keeps two values of each row for the
 * backward, the largest score and 1 / Σ exp, in a hidden second result. attention_and_weights also computes w, from
 * attention_scores, attention_weights (which implements the masks) and dropout. Gradients of gradients use the same ops
 * and select_matmul. Dropout has the mask of the op dropout for attention's weights, which depends neither on T nor on
 * S. */
#include "autograd/rooms/attention_shapes.h"
#include "autograd/rooms/sequences.h"
#include "core/products/attention.h"
typedef tn__attention_args args_t;

/* ---- streamed ---------------------------------------------------------------------------------------------------- */

/* A view of x expanded to the leading dims of the result; NULL stays NULL. */
static const tn_tensor *expanded(const tn_tensor *x, tn_shape lead, int64_t rows, tn_tensor *to)
{
    if (!x) return NULL;
    const tn__layout l =
        tn__layout_expand(&x->l, tn__with_lead(lead, rows, x->l.shape.n ? x->l.shape.d[x->l.shape.n - 1] : 1));
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

/* The places of the scores [lead, queries, keys] for dropout; with offsets [sequences, lead, queries, keys]. */
static tn__layout draw_of(tn_tensor *const *in, const call *k, tn_shape lead, int64_t queries, int64_t keys)
{
    tn_shape to = k->lead;
    if (in[TN__OFFSETS]) {
        queries = tn__longest_of(in[TN__OFFSETS]), keys = tn__longest_of(in[TN__KEY_OFFSETS]);
        for (int i = lead.n++; i > 0; i--) lead.d[i] = lead.d[i - 1];
        for (int i = to.n++; i > 0; i--) to.d[i] = to.d[i - 1];
        lead.d[0] = to.d[0] = in[TN__OFFSETS]->l.shape.d[0] - 1;
    }
    const tn__layout scores = tn__drop_layout(tn__with_lead(lead, queries, keys));
    return tn__layout_expand(&scores, tn__with_lead(to, queries, keys));
}

static void attention_prepare(call *k, const args_t *a, tn_tensor *const *in, tn_tensor *y, tn_tensor *stat)
{
    tn__attention_call *c = &k->c;
    tn__attention_parts(a->int8, in, k->part);
    *c = (tn__attention_call){.causal = a->causal, .scale = a->scale, .cap = a->scale == 0 ? 0 : a->cap, .stat = stat};
    c->window = tn__min_i64(a->window, INT64_MAX / 4); /* so that sums with it do not overflow */
    c->past = tn__min_i64(a->past, c->window ? INT64_MAX / 4 : k->part[1].l.shape.d[k->part[1].l.shape.n - 2]);
    c->drop = tn__drop_of(a->dropout, a->seed, a->position);
    c->y = unpermuted(y, a->order, &k->x[0]);
    k->lead = tn__lead_of(c->y);
    const int64_t queries = k->part[0].l.shape.d[k->part[0].l.shape.n - 2];
    const int64_t keys = k->part[1].l.shape.d[k->part[1].l.shape.n - 2];
    tn_shape      s;
    tn__broadcast_lead(tn__lead_of(&k->part[0]), tn__lead_of(&k->part[1]), &s);
    c->draw = draw_of(in, k, s, queries, keys);
    c->q = expanded(&k->part[0], k->lead, queries, &k->x[1]);
    c->k = expanded(&k->part[1], k->lead, keys, &k->x[2]);
    c->v = expanded(&k->part[2], k->lead, keys, &k->x[3]);
    if (in[TN__OFFSETS]) {
        c->offsets = tn__ptr(in[TN__OFFSETS]), c->key_offsets = tn__ptr(in[TN__KEY_OFFSETS]);
        c->sequences = in[TN__OFFSETS]->l.shape.d[0] - 1;
    }
    if (in[TN__MASK]) {
        const tn__layout l = tn__layout_expand(&in[TN__MASK]->l, c->draw.shape);
        k->x[4] = tn__stack_view(in[TN__MASK], &l), c->mask[0] = &k->x[4];
    }
    if (in[TN__PADDING]) { /* [B, S], where B is the first dim of the scores */
        tn__layout l = {.shape = c->draw.shape, .offset = in[TN__PADDING]->l.offset};
        l.stride[k->lead.n - s.n] = in[TN__PADDING]->l.shape.d[0] == 1 ? 0 : in[TN__PADDING]->l.stride[0];
        l.stride[l.shape.n - 1] = in[TN__PADDING]->l.stride[1];
        k->x[5] = tn__stack_view(in[TN__PADDING], &l), c->mask[1] = &k->x[5];
    }
}

static bool attention_infer(tn_ctx *c) { return tn__attention_infer(c, false); }
static bool attention_and_weights_infer(tn_ctx *c) { return tn__attention_infer(c, true); }

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
    const bool        one = !b->in[TN__K];
    const tn_tensor **to[3] = {&k.c.gq, &k.c.gk, &k.c.gv};
    for (int i = 0; i < 3; i++) {
        if (!b->need[one ? 0 : i]) continue;
        const tn_tensor *x = i == 0 ? k.c.q : i == 1 ? k.c.k : k.c.v;
        if (!one) b->gx[i] = tn_empty_of(x->dtype, x->l.shape);
        else if (i == 0) b->gx[TN__Q] = tn_empty_of(b->in_dtype[TN__Q], b->in_shape[TN__Q]);
        if (tn__self.error) return;
        k.x[6 + i] = one ? tn__heads_of(b->gx[TN__Q], i) : tn__stack_view(b->gx[i], &b->gx[i]->l);
        *to[i] = &k.x[6 + i];
    }
    if (b->need[TN__MASK] && !(k.c.gs = b->gx[TN__MASK] = tn_zeros_of(tn__wide(k.c.q->dtype), k.c.draw.shape))) return;
    k.c.gy = unpermuted(b->gy[0], a->order, &k.x[9]);
    tn__attend_back(&k.c);
}

/* ---- made of ops ------------------------------------------------------------------------------------------------- */

static void ops_of(const args_t *a, tn_tensor *const *in, tn_tensor **part)
{
    const bool one = !in[TN__K];
    for (int i = 0; i < 3; i++) part[i] = one ? tn_permute(tn_select(in[TN__Q], 2, i), TN_DIMS(0, 2, 1, 3)) : in[i];
    for (int i = TN__K; a->int8 && i <= TN__V; i++) part[i] = tn_to(tn_int8_rows_unpack(in[i]), in[TN__Q]->dtype);
}

static tn_tensor *scores_of(const args_t *a, tn_tensor *const *part)
{
    const tn__attention_scores_args product = {a->scale, a->cap};
    return tn_op_apply(&tn__op_attention_scores, &product, 2, part);
}

static tn_tensor *weights_of(const args_t *a, tn_tensor *const *part, tn_tensor *attn_mask, tn_tensor *keys)
{
    const tn__attention_weights_args sight = {.causal = a->causal, .past = a->past, .window = a->window};
    const bool                       mask = attn_mask && attn_mask->dtype == TN_BOOL;
    tn_tensor                       *w = scores_of(a, part);
    if (keys && w) { /* [B, S] → [B, 1, …, 1, S] */
        tn_shape s = {.n = w->l.shape.n};
        for (int i = 0; i < s.n; i++) s.d[i] = i == 0 ? keys->l.shape.d[0] : i == s.n - 1 ? keys->l.shape.d[1] : 1;
        keys = tn_reshape(keys, s);
    }
    return tn_apply_args(&tn__op_attention_weights, &sight, w, mask ? NULL : attn_mask, mask ? attn_mask : NULL, keys);
}
static tn_tensor *dropped(const args_t *a, tn_tensor *w)
{
    return a->dropout > 0 ? tn__drop_weights_at(w, a->dropout, a->seed, a->position) : w;
}

/* The streamed op computes the result, so that it has the same bits with and without the weights. */
static void attention_compose(tn_ctx *c)
{
    const args_t *a = c->args;
    tn_tensor    *part[3], *y[2];
    ops_of(a, c->in, part);
    tn_op_call(&tn__op_attention, TN__ATTENTION_INPUTS, c->in, 2, y, a);
    c->out[0] = y[0], c->out[1] = dropped(a, weights_of(a, part, c->in[TN__MASK], c->in[TN__PADDING]));
}

static void attention_backward_ops(tn_back *b)
{
    args_t     padded = *(const args_t *)b->args, *a = &padded;
    tn_tensor *part[3], *g[3], *gy = b->gy[0], *mask = b->in[TN__MASK];
    if (b->in[TN__OFFSETS]) {
        if (a->dropout > 0)
            tn_raise(TN_EUNSUPPORTED, "attention: gradients of gradients of an unpadded batch with dropout; pad it");
        mask = tn__sequences_mask(b->in[TN__OFFSETS], b->in[TN__KEY_OFFSETS], a->causal, a->window);
        a->causal = false, a->window = 0;
    }
    tn_dims back = {.n = a->order.n};
    for (int i = 0; i < back.n; i++) back.d[a->order.d[i] < 0 ? a->order.d[i] + back.n : a->order.d[i]] = i;
    if (back.n) gy = tn_permute(gy, back);
    ops_of(a, b->in, part);
    tn_tensor *w = weights_of(a, part, mask, b->in[TN__PADDING]);
    if (!w) return;
    tn_tensor *zero = tn_eq(w, tn_zeros_of(w->dtype, TN_SCALAR)); /* keys of weight 0 get gradient 0 */
    tn_tensor *gw = tn_masked_fill(dropped(a, tn_matmul(gy, tn_transpose(part[2], -1, -2))), zero, 0);
    tn_tensor *gs = tn_mul(w, tn_sub(gw, tn_sum(tn_mul(gw, w), .dims = TN_DIMS(-1), .keepdim = true)));
    gs = tn_masked_fill(gs, zero, 0); /* even if the sum is NaN because of other keys */
    if (b->need[TN__MASK]) b->gx[TN__MASK] = gs;
    if (a->cap > 0)
        gs = tn_masked_fill(tn_mul(gs, tn_rsub_scalar(tn_square(tn_mul_scalar(scores_of(a, part), 1 / a->cap)), 1)),
                            zero, 0);
    g[0] = tn_mul_scalar(tn_apply(&tn__op_select_matmul, gs, part[1]), a->scale);
    g[1] = tn_mul_scalar(tn_apply(&tn__op_select_matmul, tn_transpose(gs, -1, -2), part[0]), a->scale);
    g[2] = tn_apply(&tn__op_select_matmul, tn_transpose(dropped(a, w), -1, -2), gy);
    for (int i = 0; i < 3 && b->in[TN__K]; i++)
        if (b->need[i]) b->gx[i] = g[i];
    if (b->in[TN__K] || !b->need[TN__Q]) return;
    for (int i = 0; i < 3; i++) g[i] = tn_permute(g[i], TN_DIMS(0, 2, 1, 3));
    b->gx[TN__Q] = tn_stack_list(2, 3, g);
}

const tn_op tn__op_attention = {TN__ROOM("attention", TN_NARROW(3)),
                                .inputs = TN__ATTENTION_INPUTS,
                                .outputs = 2,
                                .optional = TN__FIRST_IN(TN__ATTENTION_INPUTS),
                                .saves = TN__FIRST_IN(TN__ATTENTION_INPUTS) | TN_SAVE_OUT(0) | TN_SAVE_OUT(1),
                                .args_size = sizeof(args_t),
                                .infer = attention_infer,
                                .forward = attention_forward,
                                .backward = attention_backward,
                                .backward_ops = attention_backward_ops};

const tn_op tn__op_attention_and_weights = {TN__ROOM("attention", TN_NARROW(3)),
                                            .inputs = TN__ATTENTION_INPUTS,
                                            .outputs = 2,
                                            .optional = TN__FIRST_IN(TN__ATTENTION_INPUTS),
                                            .args_size = sizeof(args_t),
                                            .infer = attention_and_weights_infer,
                                            .compose = attention_compose};

tn_tensor *tn_attention_run(tn_attention_args a)
{
    tn_tensor *in[TN__ATTENTION_INPUTS] = {a.q, a.k, a.v, a.attn_mask, a.key_padding_mask, a.offsets, a.key_offsets},
              *out[2];
    tn_generator *g = tn_current_generator();
    args_t        args = {.causal = a.causal,
                          .int8 = a.int8,
                          .past = a.past,
                          .window = a.window,
                          .cap = a.cap,
                          .dropout = a.dropout,
                          .seed = g->seed,
                          .position = g->position,
                          .order = a.order};
    tn__attention_join(a.int8, in);
    if (a.offsets && !a.key_offsets) in[TN__KEY_OFFSETS] = a.offsets;
    args.scale = tn__attention_scale(in[TN__Q], a.scale);
    if (tn_op_call(a.weights ? &tn__op_attention_and_weights : &tn__op_attention, TN__ATTENTION_INPUTS, in, 2, out,
                   &args) == TN_OK &&
        a.dropout > 0)
        g->position++;
    if (a.weights) *a.weights = out[1];
    return out[0];
}

/* ---- samples ----------------------------------------------------------------------------------------------------- */

#define ABSENT TN__ARG_ABSENT
#define ONE .kind = {0, ABSENT, ABSENT, ABSENT, ABSENT, ABSENT, ABSENT}
#define NO_MASKS .kind = {0, 0, 0, ABSENT, ABSENT, ABSENT, ABSENT}
#define SMALL .in = {{2, {3, 2}}, {2, {4, 2}}, {2, {4, 3}}}
#define ARGS(...) \
    .args = &(args_t) { .seed = 3, __VA_ARGS__ }
/* clang-format off */
#define ORDER(...) {.n = (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), .d = { __VA_ARGS__ }}
static const tn__sample samples[] = {
    {SMALL, NO_MASKS, ARGS(.scale = 0.7)},
    {.in = {{4, {2, 2, 3, 2}}, {4, {2, 2, 3, 2}}, {4, {2, 2, 3, 2}}}, NO_MASKS, ARGS(.causal = true, .scale = 0.7)},
    {.in = {{3, {2, 2, 3}}, {3, {2, 4, 3}}, {3, {2, 4, 2}}, {2, {2, 4}}},
     .kind = {0, 0, 0, TN__ARG_MASK, ABSENT, ABSENT, ABSENT}, ARGS(.scale = 0.5)},
    {.in = {{3, {2, 3, 2}}, {3, {2, 3, 2}}, {3, {2, 3, 2}}, {2, {3, 3}}}, .kind = {0, 0, 0, 0, ABSENT, ABSENT, ABSENT},
     ARGS(.causal = true, .scale = 1)}, /* an added mask has a gradient */
    {.in = {{4, {2, 2, 2, 2}}, {4, {2, 1, 3, 2}}, {3, {1, 3, 2}}, {1, {3}}, {2, {2, 3}}},
     .kind = {0, 0, 0, TN__ARG_MASK, TN__ARG_MASK, ABSENT, ABSENT}, ARGS(.scale = 0.5)},
    {.in = {{3, {2, 3, 2}}, {3, {2, 3, 2}}, {3, {2, 3, 2}}, {0}, {2, {2, 3}}},
     .kind = {0, 0, 0, ABSENT, TN__ARG_MASK, ABSENT, ABSENT}, ARGS(.causal = true, .dropout = 0.5, .scale = 0.5)},
    {.in = {{5, {2, 3, 3, 2, 2}}}, ONE,
     ARGS(.causal = true, .dropout = 0.3, .scale = 0.6, .position = 5, .order = ORDER(0, 2, 1, 3))},
    {.in = {{5, {1, 4, 3, 1, 3}}, {0}, {0}, {2, {4, 4}}, {2, {1, 4}}},
     .kind = {0, ABSENT, ABSENT, 0, TN__ARG_MASK, ABSENT, ABSENT}, ARGS(.scale = 0.6)},
    {.in = {{4, {2, 2, 3, 2}}, {4, {2, 2, 5, 2}}, {4, {2, 2, 5, 3}}}, NO_MASKS,
     ARGS(.causal = true, .past = 2, .scale = 0.6, .order = ORDER(2, 0, 1, -1))},
    {.in = {{3, {2, 5, 2}}, {3, {2, 6, 2}}, {3, {2, 6, 3}}}, NO_MASKS,
     ARGS(.causal = true, .past = 1, .scale = 0.6, .window = 3)},
    {.in = {{3, {2, 5, 2}}, {3, {2, 6, 2}}, {3, {2, 6, 3}}}, NO_MASKS, ARGS(.scale = 0.6, .window = 2)},
    {.in = {{3, {2, 3, 2}}, {3, {2, 4, 2}}, {3, {2, 4, 3}}, {2, {3, 4}}}, .kind = {0, 0, 0, 0, ABSENT, ABSENT, ABSENT},
     ARGS(.causal = true, .past = 1, .scale = 2, .cap = 1.5)},
    {.in = {{5, {1, 4, 3, 1, 3}}}, ONE, ARGS(.scale = 2, .cap = 0.7, .window = 2, .dropout = 0.2)},
    {.in = {{3, {2, 4, 2}}, {3, {2, 4, 2}}, {3, {2, 4, 2}}, {2, {4, 4}}, {2, {2, 4}}},
     .kind = {0, 0, 0, 0, TN__ARG_MASK, ABSENT, ABSENT},
     ARGS(.causal = true, .dropout = 0.3, .scale = 0.6, .window = 2)},
    {.in = {{2, {1, 1}}, {2, {1, 1}}, {2, {1, 1}}}, NO_MASKS, ARGS(.scale = 1)},
    {.in = {{2, {2, 3}}, {2, {0, 3}}, {2, {0, 2}}}, NO_MASKS, ARGS(.scale = 1)}, /* no keys */
    {.in = {{3, {0, 2, 3}}, {3, {0, 2, 3}}, {3, {0, 2, 3}}}, NO_MASKS, ARGS(.causal = true, .scale = 1)},
    {.in = {{2, {3, 2}}, {2, {4, 3}}, {2, {4, 3}}}, NO_MASKS, ARGS(.scale = 1),
     TN__FAILS(TN_ESHAPE, "attention: q [3, 2] and k [4, 3] differ in their last dim")},
    {.in = {{2, {3, 2}}, {2, {4, 2}}, {2, {3, 2}}}, NO_MASKS, ARGS(.scale = 1),
     TN__FAILS(TN_ESHAPE, "attention: k [4, 2] and v [3, 2] differ in the number of keys, their second to last dim")},
    {.in = {{3, {2, 3, 2}}, {3, {3, 4, 2}}, {2, {4, 2}}}, NO_MASKS, ARGS(.scale = 1),
     TN__FAILS(TN_ESHAPE, "attention: q [2, 3, 2] and k [3, 4, 2] have leading dims that do not broadcast")},
    {.in = {{3, {2, 3, 2}}, {3, {2, 4, 2}}, {3, {3, 4, 2}}}, NO_MASKS, ARGS(.scale = 1),
     TN__FAILS(TN_ESHAPE, "attention: k [2, 4, 2] and v [3, 4, 2] have leading dims that do not broadcast")},
    {.in = {{2, {3, 2}}, {1, {2}}, {2, {3, 2}}}, NO_MASKS, ARGS(.scale = 1),
     TN__FAILS(TN_ESHAPE, "attention: k must be [..., S, D], got [2]")},
    {.in = {{2, {3, 2}}, {2, {4, 2}}, {2, {4, 3}}, {2, {3, 3}}},
     .kind = {0, 0, 0, TN__ARG_MASK, ABSENT, ABSENT, ABSENT}, ARGS(.scale = 1),
     TN__FAILS(TN_ESHAPE, "attention: attn_mask [3, 3] does not broadcast to the scores' [3, 4]")},
    {.in = {{2, {3, 2}}, {2, {4, 2}}, {2, {4, 3}}, {2, {3, 4}}}, .kind = {0, 0, 0, TN__ARG_INT, ABSENT, ABSENT, ABSENT},
     ARGS(.scale = 1), TN__FAILS(TN_EDTYPE,
     "attention: attn_mask must be bool (true: masked) or floating (added to the scores), got i64")},
    {.in = {{3, {2, 3, 2}}, {3, {2, 4, 2}}, {3, {2, 4, 3}}, {0}, {2, {2, 3}}},
     .kind = {0, 0, 0, ABSENT, TN__ARG_MASK, ABSENT, ABSENT}, ARGS(.scale = 1), TN__FAILS( TN_ESHAPE,
     "attention: key_padding_mask [2, 3] does not fit the scores' [2, 3, 4]: it must be [first dim, last dim]")},
    {.in = {{3, {2, 3, 2}}, {3, {2, 4, 2}}, {3, {2, 4, 3}}, {0}, {2, {2, 4}}},
     .kind = {0, 0, 0, ABSENT, 0, ABSENT, ABSENT}, ARGS(.scale = 1),
     TN__FAILS(TN_EDTYPE, "attention: key_padding_mask must be bool (true: padding), got f32")},
    {SMALL, NO_MASKS, ARGS(.dropout = 1.5, .scale = 1),
     TN__FAILS(TN_EINVAL, "attention: dropout is 1.5, but a probability must be from 0 to 1")},
    {SMALL, NO_MASKS, ARGS(.scale = INFINITY), TN__FAILS(TN_EINVAL, "attention: scale is inf")},
    {SMALL, NO_MASKS, ARGS(.causal = true, .past = -1, .scale = 1),
     TN__FAILS(TN_EINVAL, "attention: past is -1, but must be 0, or at least 1 together with causal")},
    {SMALL, NO_MASKS, ARGS(.scale = 1, .window = -1),
     TN__FAILS(TN_EINVAL, "attention: window is -1, but must be at least 0")},
    {SMALL, NO_MASKS, ARGS(.scale = 1, .cap = -1),
     TN__FAILS(TN_EINVAL, "attention: cap is -1, but must be at least 0")},
    {SMALL, NO_MASKS, ARGS(.scale = 1, .order = ORDER(0, 1, 2)),
     TN__FAILS(TN_EINVAL, "attention: the order lists 3 dims, the tensor has 2")},
    {.in = {{5, {2, 3, 3, 2, 2}}, {4, {2, 2, 3, 2}}}, .kind = {0, 0, ABSENT, ABSENT, ABSENT, ABSENT, ABSENT},
     ARGS(.scale = 1), TN__FAILS(TN_EINVAL, "attention: v is NULL")},
    {.in = {{2, {3, 2}}, {2, {4, 2}}}, .kind = {0, 0, ABSENT, ABSENT, ABSENT, ABSENT, ABSENT}, ARGS(.scale = 1),
     TN__FAILS(TN_EINVAL, "attention: v is NULL")},
    {.in = {{2, {3, 2}}, {2, {4, 2}}, {2, {4, 3}}}, .kind = {TN__ARG_INT, 0, 0, ABSENT, ABSENT, ABSENT, ABSENT},
     ARGS(.scale = 1),
     TN__FAILS(TN_EDTYPE, "attention: q must be floating, got i64; convert it with tn_to(q, TN_F32)")},
};
/* clang-format on */
TN__SAMPLES(attention, samples);

/* clang-format off */
static const tn__sample weights_samples[] = {
    {.in = {{3, {2, 4, 2}}, {3, {2, 4, 2}}, {3, {2, 4, 2}}}, NO_MASKS, ARGS(.scale = 2, .cap = 1.5, .window = 2)},
    {.in = {{4, {2, 2, 3, 2}}, {4, {2, 2, 3, 2}}, {4, {2, 2, 3, 2}}}, NO_MASKS, ARGS(.causal = true, .scale = 0.7)},
    {.in = {{3, {2, 3, 2}}, {3, {2, 3, 2}}, {3, {2, 3, 2}}, {0}, {2, {2, 3}}},
     .kind = {0, 0, 0, ABSENT, TN__ARG_MASK, ABSENT, ABSENT}, ARGS(.causal = true, .dropout = 0.3, .scale = 0.5)},
    {.in = {{5, {2, 3, 3, 2, 2}}}, ONE,
     ARGS(.causal = true, .past = 1, .dropout = 0.3, .scale = 0.6, .position = 5, .order = ORDER(0, 2, 1, 3))},
    {.in = {{2, {3, 2}}, {2, {4, 3}}, {2, {4, 3}}}, NO_MASKS, ARGS(.scale = 1),
     TN__FAILS(TN_ESHAPE, "attention: q [3, 2] and k [4, 3] differ in their last dim")},
};
/* clang-format on */
TN__SAMPLES(attention_and_weights, weights_samples);
