/* layer.c — a layer of Reformer: the two halves of a reversible block.
 *
 *   attention: norm, then LSH attention, in which normalised queries are also the keys, or local attention in chunks
 *   ff: norm, dense, activation, dense, for .ff_chunk positions at a time */
#include "extras/reformer/reformer_private.h"

static const tn_class layer_class = {
    .size = sizeof(tn_class), .name = "ReformerLayer", .bytes = sizeof(tn__reformer_layer)};

static tn_linear *linear(int64_t in, int64_t out, bool bias)
{
    return tn_linear_new(.in = in, .out = out, .no_bias = !bias);
}

tn__reformer_layer *tn__reformer_layer_new(const tn_reformer_config *c, bool hashed)
{
    const int64_t       all = c->heads * c->head_dim;
    tn__reformer_layer *m = tn_module_create(&layer_class);
    if (!m) return NULL;
#define SELF "attention.self_attention."
    m->hashed = hashed;
    m->norm1 = tn_child(m, "attention.layer_norm", tn_layer_norm_new(.dim = c->dim, .eps = c->eps));
    m->query = tn_child(m, hashed ? SELF "query_key" : SELF "query", linear(c->dim, all, false));
    if (!hashed) m->key = tn_child(m, SELF "key", linear(c->dim, all, false));
    m->value = tn_child(m, SELF "value", linear(c->dim, all, false));
    m->out = tn_child(m, "attention.output.dense", linear(all, c->dim, false));
    m->norm2 = tn_child(m, "feed_forward.layer_norm", tn_layer_norm_new(.dim = c->dim, .eps = c->eps));
    m->dense = tn_child(m, "feed_forward.dense.dense", linear(c->dim, c->ff, true));
    m->dense_out = tn_child(m, "feed_forward.output.dense", linear(c->ff, c->dim, true));
    return tn_built(m);
}

/* [B, T, heads · head_dim] to [B, heads, T, head_dim], and the inverse. */
static tn_tensor *split_heads(const tn_reformer_config *c, tn_tensor *y)
{
    y = tn_view(y, TN_SHAPE(tn_size(y, 0), tn_size(y, 1), c->heads, c->head_dim));
    return tn_permute(y, TN_DIMS(0, 2, 1, 3));
}
static tn_tensor *merge_heads(const tn_reformer_config *c, tn_tensor *y)
{
    y = tn_permute(y, TN_DIMS(0, 2, 1, 3));
    return tn_reshape(y, TN_SHAPE(tn_size(y, 0), tn_size(y, 1), c->heads * c->head_dim));
}

/* The padding mask, bool [B, T], true at padding; NULL: no padding. */
static tn_tensor *padding(tn_tensor *x, int64_t length)
{
    const int64_t batch = tn_size(x, 0), all = tn_size(x, 1);
    if (length >= all) return NULL;
    return tn_cat(1, tn_zeros_of(TN_BOOL, TN_SHAPE(batch, length)), tn_ones_of(TN_BOOL, TN_SHAPE(batch, all - length)));
}

static tn_tensor *attend(tn__reformer_layer *l, tn_tensor *x, tn_tensor **memo, const tn__reformer_call *call)
{
    const tn_reformer_config *c = &call->m->config;
    const bool                training = call->m->base.training;
    x = tn_call(l->norm1, x);
    tn_tensor *q = split_heads(c, tn_call(l->query, x)), *v = split_heads(c, tn_call(l->value, x)),
              *mask = padding(x, call->length);
    tn_tensor *y;
    if (l->hashed) {
        tn_tensor *k = tn_rms_norm(q, NULL, 1e-6);
        if (tn_error() == TN_OK && !*memo && tn_size(q, 2) > c->chunk)
            *memo = tn__reformer_buckets(call->m, q, call->length);
        y = tn_lsh_attention(q, k, v, .buckets = *memo, .key_padding_mask = mask, .chunk = c->chunk,
                             .before = c->before, .causal = true, .apart = true,
                             .dropout = training ? c->attention_dropout : 0);
    } else
        y = tn_lsh_attention(q, split_heads(c, tn_call(l->key, x)), v, .key_padding_mask = mask,
                             .chunk = c->local_chunk, .before = c->local_before, .causal = true,
                             .dropout = training ? c->local_dropout : 0);
    return tn_dropout(tn_call(l->out, merge_heads(c, y)), training ? c->dropout : 0);
}

/* ---- feed-forward ------------------------------------------------------------------------------------------------ */

typedef struct {
    tn__reformer_layer *l;
    tn_reformer        *m;
} feeding;
static tn_tensor *feed(const feeding *f, tn_tensor *x)
{
    const tn_reformer_config *c = &f->m->config;
    const double              p = f->m->base.training ? c->dropout : 0;
    x = tn_dropout(tn_call(f->l->dense, tn_call(f->l->norm2, x)), p);
    return tn_dropout(tn_call(f->l->dense_out, tn_hf_activation(c->activation)(x)), p);
}

/* The feed-forward in parts of ff_chunk positions, with gradient checkpointing: only one part's inner activations are
 * in memory at a time. */
static tn_tensor *feed_part(tn_tensor *const *in, int n, void *user)
{
    const tn_reformer *m = user;
    const int64_t      i = tn_get_i64(in[1], 0);
    const feeding      f = {tn_at(m->layers, i), (tn_reformer *)user};
    (void)n;
    return feed(&f, in[0]);
}
static tn_tensor *feed_forward(tn_reformer *m, int64_t block, tn_tensor *x)
{
    const int64_t all = tn_size(x, 1), most = m->config.ff_chunk;
    const feeding f = {tn_at(m->layers, block), m};
    if (!most || all <= most) return feed(&f, x);
    const int64_t parts = (all + most - 1) / most;
    const size_t  bytes = (size_t)parts * sizeof(tn_tensor *);
    tn_tensor    *y = NULL, *index = tn_full_of(TN_I64, TN_SHAPE(1), (double)block), **each = tn_mem_get(bytes);
    for (int64_t i = 0; each && i < parts && tn_error() == TN_OK; i++) {
        tn_tensor *const in[2] = {tn_narrow(x, 1, i * most, i + 1 < parts ? most : all - i * most), index};
        each[i] = tn_checkpoint(feed_part, m, 2, in);
    }
    if (tn_error() == TN_OK) y = tn_cat_list(1, (int)parts, each);
    tn_mem_put(each, each ? bytes : 0);
    return y;
}

tn_tensor *tn__reformer_half(int64_t block, int half, tn_tensor *x, tn_tensor **memo, const void *user)
{
    const tn__reformer_call *call = user;
    tn__reformer_layer      *l = tn_at(call->m->layers, block);
    if (!tn_ready(l)) return NULL;
    const tn_frame f = tn_enter(l);
    tn_tensor     *kept = *memo;
    tn_tensor     *y = half ? feed_forward(call->m, block, x) : attend(l, x, &kept, call);
    if (kept == *memo) return tn_leave(f, y);
    tn_leave_n(f, &y, &kept);
    *memo = kept;
    return y;
}
