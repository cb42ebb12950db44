/* block_run.c — runs a block, as a segment of the tape that a memory budget may recompute if it can be one. */
#include "nn/attention/block.h"
#include "nn/base/look_private.h"

/* The tensors of a call, in the order of a segment's inputs, of which absent ones are omitted. The last input holds the
 * numbers: bit i of `present` for tensor i, and the other members. */
enum { TENSORS = 14, PRESENT = 0, CAUSAL, BATCH, LENGTH, MEMORY_BATCH, MEMORY_LENGTH, ROUTER, PLACED, NUMBERS };

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

static tn_tensor *separated(const tn_block *m, tn_tensor *y, tn_tensor **logits)
{
    if (!y) return NULL;
    const int64_t dim = m->experts->dim, n = m->experts->experts, width = tn_size(y, -1);
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
                                        a->query,       p->at};
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
                             .causal = number[CAUSAL],
                             .router = number[ROUTER] ? &logits : NULL,
                             .unpadded = u.rows ? &u : NULL,
                             .memory_unpadded = v.rows ? &v : NULL};
    tn_tensor          *y = tn__block_compute(m, a.x, &a, NULL, NULL);
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
    number[CAUSAL] = a->causal, number[ROUTER] = a->router && m->experts;
    number[PLACED] = a->placed != NULL;
    if (a->unpadded) number[BATCH] = a->unpadded->batch, number[LENGTH] = a->unpadded->length;
    if (a->memory_unpadded)
        number[MEMORY_BATCH] = a->memory_unpadded->batch, number[MEMORY_LENGTH] = a->memory_unpadded->length;
    const bool router = number[ROUTER];
    in[n++] = last;
    tn_tensor *y = tn_recomputable(segment, m, n, in);
    return router ? separated(m, y, a->router) : y;
}

/* Hooks and looks would be called twice. */
static bool is_segment(const tn_block *m, const tn_block_args *a)
{
    return tn_budget_is_open() && a->x && !a->cache && !a->weights && !a->memory_weights && !tn__look_active() &&
           !tn__any_hooks(m);
}

/* Raises for arguments that do not suit the block. */
static void check_args(const tn_block *m, const tn_block_args *a, tn__cached_lengths before)
{
    if (m->multihead_attn && !a->memory && before.memory < 0)
        tn_raise(TN_EINVAL, "transformer_decoder: memory is NULL; it may be omitted only if the cache contains it");
    if (!m->multihead_attn && (a->memory || a->memory_mask || a->memory_key_padding_mask || a->memory_weights))
        tn_raise(TN_EINVAL, "block: .memory and .memory_... need a block created with .memory = true");
    if (a->query && (m->norm_first || m->result_norm1 || m->multihead_attn))
        tn_raise(TN_EINVAL, "block: .query needs a block without .norm_first, .norm_results and .memory");
    if (a->mask_decoder) tn_raise(TN_EINVAL, "block: .mask_decoder is for a stack");
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
    check_args(m, &a, before);
    if (tn_error() == TN_OK) {
        if (is_segment(m, &a)) x = as_segment(m, &a);
        else x = tn__block_compute(m, x, &a, own, memory);
        if (tn_error() != TN_OK) tn__cache_undo(a.cache, a.layer, before);
    }
    if (!own && !memory && !router) return tn_leave(f, x);
    tn_leave_n(f, &x, &w[0], &w[1], &w[2]);
    if (router) *router = w[2];
    if (own) *a.weights = w[0];
    if (memory) *a.memory_weights = w[1];
    return x;
}
