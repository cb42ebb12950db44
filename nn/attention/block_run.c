/* block_run.c — runs a block, as a segment of the tape that a memory budget may recompute if it can be one. */
#include "nn/attention/block.h"
#include "nn/base/look_private.h"

/* ---- the parts in turn ------------------------------------------------------------------------------------------- */

static tn_tensor *attended(tn_block *m, tn_tensor *x, const tn_block_args *a, tn_tensor **w)
{
    return tn_mha_forward(m->self_attn, a->query ? a->query : x, x, x, .attn_mask = a->attn_mask, .placed = a->placed,
                          .key_padding_mask = a->key_padding_mask, .causal = a->causal, .weights = w,
                          .weights_per_head = true, .cache = a->cache, .layer = a->layer, .unpadded = a->unpadded);
}

static tn_tensor *remembered(tn_block *m, tn_tensor *x, const tn_block_args *a, tn_tensor **w)
{
    return tn_mha_forward(m->multihead_attn, x, a->memory, a->memory, .attn_mask = a->memory_mask,
                          .key_padding_mask = a->memory_key_padding_mask, .weights = w, .weights_per_head = true,
                          .cache = a->cache, .layer = a->layer, .memory = a->cache != NULL, .unpadded = a->unpadded,
                          .keys_unpadded = a->memory_unpadded);
}

/* The rows that are computed after the self-attention. */
static tn__kept rows_of(const tn_block_args *a)
{
    const tn_unpadded *u = a->unpadded;
    if (a->targets) return (tn__kept){a->targets, u ? u->length : tn_size(a->x, 1)};
    return u ? (tn__kept){u->rows, u->length} : (tn__kept){NULL, 0};
}

/* Replaces the rows of *x and *h, which may be NULL, by those of a->targets, if there are any. */
static void keep_targets(const tn_block_args *a, tn_tensor **x, tn_tensor **h)
{
    if (!a->targets || tn_error() != TN_OK) return;
    tn_tensor *at = tn__target_index(a->unpadded, a->targets);
    *x = tn__target_rows(*x, at);
    if (h) *h = tn__target_rows(*h, at);
}

/* The functions of the feed-forward's router; NULL: it has none. */
static const tn_router_ops *router_of(const tn_block *m)
{
    return m->feed_forward ? m->feed_forward->kind->router : NULL;
}

static tn_tensor *fed_forward(tn_block *m, tn_tensor *x, tn__kept rows, tn_tensor **router)
{
    if (router_of(m)) return router_of(m)->run(m->feed_forward, x, rows.index, rows.length, router);
    if (m->feed_forward) return tn_call(m->feed_forward, x);
    tn_tensor *h = tn__linear_activated(m->gate ? m->gate : m->linear1, x, m->activation);
    if (m->gate) h = tn_mul(h, tn_call(m->linear1, x));
    return tn_call(m->linear2, tn__dropout(m->dropout, h, rows));
}

/* What follows the self-attention, whose result is h; x: the residual. second: the input of the feed-forward. */
static tn_tensor *in_parallel(tn_block *m, tn_tensor *x, tn_tensor *h, tn_tensor *second, tn__kept rows,
                              tn_tensor **router)
{
    return tn_add(tn_add(x, tn__dropout(m->dropout1, h, rows)),
                  tn__dropout(m->dropout2, fed_forward(m, second, rows, router), rows));
}

static tn_tensor *with_normed_results(tn_block *m, tn_tensor *x, tn_tensor *h, tn__kept rows, tn_tensor **router)
{
    tn__residual r = {NULL, NULL};
    h = tn_call(m->result_norm1, h);
    if (m->norm2) r = tn__add_and_norm(x, h, m->dropout1, m->norm2, rows);
    else r.sum = r.normed = tn_add(x, tn__dropout(m->dropout1, h, rows));
    h = tn_call(m->result_norm2, fed_forward(m, r.normed, rows, router));
    return tn_add(r.sum, tn__dropout(m->dropout2, h, rows));
}

static tn_tensor *in_turn(tn_block *m, tn_tensor *x, tn_tensor *h, tn__kept rows, const tn_block_args *a,
                          tn_tensor **memory)
{
    tn_layer_norm *norm = m->norm3 ? m->norm3 : m->norm2; /* the norm of the feed-forward */
    tn_dropout    *drop = m->dropout3 ? m->dropout3 : m->dropout2;
    const bool     last = m->order == TN_NORM_LAST;
    tn__residual   r = tn__add_and_norm(x, h, m->dropout1, last ? m->norm1 : m->norm2, rows);
    if (m->multihead_attn) {
        h = remembered(m, r.normed, a, memory);
        r = tn__add_and_norm(last ? r.normed : r.sum, h, m->dropout2, last ? m->norm2 : m->norm3, rows);
    }
    h = fed_forward(m, r.normed, rows, a->router);
    if (last) return tn__add_and_norm(r.normed, h, drop, norm, rows).normed;
    return tn_add(r.sum, tn__dropout(drop, h, rows));
}

/* The result for x, without a frame. w, memory: the attention weights, may be NULL. */
static tn_tensor *compute(tn_block *m, tn_tensor *x, const tn_block_args *a, tn_tensor **w, tn_tensor **memory)
{
    const bool     parallel = m->order == TN_NORM_PARALLEL || m->order == TN_NORM_PARALLEL_ONE;
    const tn__kept rows = rows_of(a);
    tn_tensor     *first = m->order != TN_NORM_LAST && m->norm1 ? tn_call(m->norm1, x) : x;
    tn_tensor     *second = parallel && m->norm2 ? tn_call(m->norm2, x) : first;
    tn_tensor     *h = attended(m, first, a, w);
    if (a->query) x = a->query;
    keep_targets(a, &x, &h);
    if (parallel) keep_targets(a, &second, NULL);
    switch (m->order) {
    case TN_NORM_RESULT:
    case TN_NORM_SANDWICH: return with_normed_results(m, x, h, rows, a->router);
    case TN_NORM_PARALLEL:
    case TN_NORM_PARALLEL_ONE: return in_parallel(m, x, h, second, rows, a->router);
    default: return in_turn(m, x, h, rows, a, memory);
    }
}

/* ---- recomputing ------------------------------------------------------------------------------------------------- */

/* The tensors of a call, in the order of a segment's inputs, of which absent ones are omitted. The last input holds the
 * numbers: bit i of `present` for tensor i, and the other members. */
enum { TENSORS = 15, PRESENT = 0, CAUSAL, BATCH, LENGTH, MEMORY_BATCH, MEMORY_LENGTH, ROUTER, PLACED, NUMBERS };

/* A segment has one result: x and the logits of its router side by side, in the logits' dtype, which holds x exactly;
 * an x of bf16 is marked by one more column. */
static tn_tensor *joined(tn_tensor *x, tn_tensor *logits)
{
    if (!x || !logits) return NULL;
    tn_shape       s = tn_shape_of(x);
    const tn_dtype dt = tn_dtype_of(logits);
    s.d[s.n - 1] = tn_size(logits, 1);
    logits = tn_reshape(logits, s);
    s.d[s.n - 1] = tn_dtype_of(x) == TN_BF16;
    return tn_cat(-1, tn_to(x, dt), logits, tn_zeros_of(dt, s));
}

static tn_tensor *separated(const tn_block *m, tn_tensor *y, int64_t dim, tn_tensor **logits)
{
    if (!y) return NULL;
    const int64_t n = router_of(m)->width(m->feed_forward), width = tn_size(y, -1);
    const bool    narrow = width > dim + n;
    *logits = tn_reshape(tn_narrow(y, -1, dim, n), TN_SHAPE(tn_numel(y) / width, n));
    return tn_to(tn_narrow(y, -1, 0, dim), narrow ? TN_BF16 : tn_dtype_of(y));
}

static void list_tensors(const tn_block_args *a, tn_tensor *t[TENSORS])
{
    const tn_unpadded  none = {.batch = 0}, *u = a->unpadded ? a->unpadded : &none;
    const tn_unpadded *v = a->memory_unpadded ? a->memory_unpadded : &none;
    const tn_placed    nowhere = {.at = NULL}, *p = a->placed ? a->placed : &nowhere;
    tn_tensor *const   list[TENSORS] = {a->x,           a->memory,
                                        a->attn_mask,   a->key_padding_mask,
                                        a->memory_mask, a->memory_key_padding_mask,
                                        p->made[0],     p->made[1],
                                        u->offsets,     u->rows,
                                        v->offsets,     v->rows,
                                        a->query,       p->at,
                                        a->targets};
    for (int i = 0; i < TENSORS; i++) t[i] = list[i];
}

static tn_tensor *segment(tn_tensor *const *in, int n, void *user)
{
    tn_block      *m = user;
    const int64_t *number = tn_data(in[n - 1]);
    tn_tensor     *t[TENSORS];
    if (!number) return NULL;
    for (int i = 0; i < TENSORS; i++) t[i] = number[PRESENT] >> i & 1 ? *in++ : NULL;
    const tn_unpadded u = {
        .batch = number[BATCH], .length = number[LENGTH], .offsets = t[8], .rows = t[9], .in_order = true};
    const tn_unpadded   v = {.batch = number[MEMORY_BATCH],
                             .length = number[MEMORY_LENGTH],
                             .offsets = t[10],
                             .rows = t[11],
                             .in_order = true};
    const tn_placed     p = {.made = {t[6], t[7]}, .at = t[13]};
    tn_tensor          *logits = NULL;
    const tn_block_args a = {.x = t[0],
                             .memory = t[1],
                             .attn_mask = t[2],
                             .key_padding_mask = t[3],
                             .memory_mask = t[4],
                             .memory_key_padding_mask = t[5],
                             .placed = number[PLACED] ? &p : NULL,
                             .query = t[12],
                             .targets = t[14],
                             .causal = number[CAUSAL],
                             .router = number[ROUTER] ? &logits : NULL,
                             .unpadded = u.rows ? &u : NULL,
                             .memory_unpadded = v.rows ? &v : NULL};
    tn_tensor          *y = compute(m, a.x, &a, NULL, NULL);
    return a.router ? joined(y, logits) : y;
}

/* The block as a segment. */
static tn_tensor *as_segment(tn_block *m, const tn_block_args *a)
{
    tn_tensor *t[TENSORS], *in[TENSORS + 1], *last = tn_zeros_of(TN_I64, TN_SHAPE(NUMBERS));
    int64_t   *number = last ? tn_data_mut(last) : NULL;
    int        n = 0;
    if (!number) return NULL;
    list_tensors(a, t);
    for (int i = 0; i < TENSORS; i++)
        if (t[i]) number[PRESENT] |= (int64_t)1 << i, in[n++] = t[i];
    number[CAUSAL] = a->causal, number[ROUTER] = a->router && router_of(m);
    number[PLACED] = a->placed != NULL;
    if (a->unpadded) number[BATCH] = a->unpadded->batch, number[LENGTH] = a->unpadded->length;
    if (a->memory_unpadded)
        number[MEMORY_BATCH] = a->memory_unpadded->batch, number[MEMORY_LENGTH] = a->memory_unpadded->length;
    const bool router = number[ROUTER];
    in[n++] = last;
    tn_tensor *y = tn_recomputable(segment, m, n, in);
    return router ? separated(m, y, tn_size(a->x, -1), a->router) : y;
}

/* Hooks and looks would be called twice. */
static bool is_segment(const tn_block *m, const tn_block_args *a)
{
    return tn_budget_is_open() && a->x && !a->cache && !a->weights && !a->memory_weights && !tn__look_active() &&
           !tn__any_hooks(m);
}

static bool suits(const tn_block *m, const tn_block_args *a, tn__cached_lengths before)
{
    const bool decoder = m->multihead_attn != NULL;
    const bool rows =
        !a->targets || (tn_dtype_of(a->targets) == TN_I64 && tn_ndim(a->targets) == 1 && a->x && tn_ndim(a->x) == 3);
    return TN__NO_MISTAKE(
        decoder && !a->memory ? "transformer_decoder" : "block",
        TN__IF(decoder && !a->memory && before.memory < 0, TN_EINVAL,
               "memory is NULL; it may be omitted only if the cache contains it"),
        TN__IF(!decoder && (a->memory || a->memory_mask || a->memory_key_padding_mask || a->memory_weights), TN_EINVAL,
               ".memory and .memory_... need the block of a decoder"),
        TN__IF(a->query && (m->order || decoder), TN_EINVAL,
               ".query needs an encoder's block with .order = TN_NORM_LAST"),
        TN__IF(a->mask_decoder != NULL, TN_EINVAL, ".mask_decoder is for a stack"),
        TN__IF(!rows, TN_ESHAPE, ".targets must be i64 [N], and x [B, T, dim]"));
}

tn_tensor *tn_block_run(tn_block *m, tn_block_args a)
{
    if (a.weights) *a.weights = NULL;
    if (a.memory_weights) *a.memory_weights = NULL;
    tn_tensor *w[3] = {NULL}, **const router = a.router;
    if (router) *router = NULL, a.router = &w[2];
    if (!tn_ready(m)) return NULL;
    const tn_frame           f = tn_enter(m);
    const tn__cached_lengths before = tn__cache_lengths(a.cache, a.layer);
    tn_tensor               *x = a.x, **own = a.weights ? &w[0] : NULL, **memory = a.memory_weights ? &w[1] : NULL;
    const bool               fits = suits(m, &a, before);
    const tn_block_args      all = a;
    if (m->multihead_attn || router_of(m) || tn__look_active() || tn__any_hooks(m))
        a.targets = NULL; /* needs all rows */
    if (fits) {
        if (is_segment(m, &a)) x = as_segment(m, &a);
        else x = compute(m, x, &a, own, memory);
        if (!a.targets) keep_targets(&all, &x, NULL);
        if (tn_error() != TN_OK) tn__cache_undo(a.cache, a.layer, before);
    }
    if (!own && !memory && !router) return tn_leave(f, x);
    tn_leave_n(f, &x, &w[0], &w[1], &w[2]);
    if (router) *router = w[2];
    if (own) *a.weights = w[0];
    if (memory) *a.memory_weights = w[1];
    return x;
}
