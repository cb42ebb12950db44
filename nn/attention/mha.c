/* mha.c — multi-head attention.
 *
 *   [q k v] = x W_inᵀ + b,   head h of them: columns h·D … (h+1)·D - 1,   y = [attention of each head] W_outᵀ + b
 *
 * The op's result is [B, T, heads, D]. The positions, a part, turn queries and keys and add a term to the scores.
 *
 * With fewer key heads than query heads, queries are [B, kv_heads, group, T, D] and keys [B, kv_heads, 1, S, D]: the op
 * broadcasts the keys without copying them. (The backward computes a gradient of the keys per group member and sums
 * these.) */
#include "nn/attention/mha.h"
#include "nn/base/look_private.h"
#include "nn/look.h"

#include <math.h>

static tn_tensor *mha_forward(void *self, tn_tensor *x) { return tn_mha_forward((tn_mha *)self, x, x, x); }

static const tn_class tn_mha_class = {
    .size = sizeof(tn_class), .name = "MultiheadAttention", .bytes = sizeof(tn_mha), .forward = mha_forward};

tn_mha *tn_mha_of(tn_module *m) { return m && m->kind == &tn_mha_class ? (tn_mha *)(void *)m : NULL; }

static const tn_position_ops *positions_of(const tn_mha *m) { return m->positions->kind->positions; }

static tn_tensor *xavier(tn_dtype dt, int64_t out, int64_t in)
{
    return tn_init_xavier_uniform(tn_empty_of(dt, TN_SHAPE(out, in)), 1);
}

/* Creates the projections as three modules. */
static void split(tn_mha *m, const tn_mha_config *c)
{
    const int64_t q = m->heads * m->head_dim, kv = m->kv_heads * m->head_dim;
    m->q_proj = tn_child(m, "q_proj", tn_linear_new(.in = c->dim, .out = q, .no_bias = c->no_bias, .dtype = c->dtype));
    m->k_proj =
        tn_child(m, "k_proj", tn_linear_new(.in = c->kdim, .out = kv, .no_bias = c->no_bias, .dtype = c->dtype));
    m->v_proj =
        tn_child(m, "v_proj", tn_linear_new(.in = c->vdim, .out = kv, .no_bias = c->no_bias, .dtype = c->dtype));
}

static void norm_queries_and_keys(tn_mha *m, const tn_mha_config *c)
{
    const tn_scores *s = &c->scores;
    const bool       head = s->qk_norm == TN_QK_NORM_HEAD;
    const double     eps = s->eps == 0 ? 1e-6 : s->eps;
    if (!s->qk_norm) return;
    m->q_norm = tn_child(m, "q_norm",
                         tn_rms_norm_new(.dim = head ? m->head_dim : m->heads * m->head_dim, .eps = eps,
                                         .add_one = s->add_one, .dtype = c->dtype));
    m->k_norm = tn_child(m, "k_norm",
                         tn_rms_norm_new(.dim = head ? m->head_dim : m->kv_heads * m->head_dim, .eps = eps,
                                         .add_one = s->add_one, .dtype = c->dtype));
}

tn_mha *tn__mha_create(tn_mha_config c, bool owns)
{
    tn_mha *m = tn__mha_complete("tn_mha_new", &c) ? tn_module_new(tn_mha) : NULL;
    if (!m && owns) tn__part_drop(c.positions);
    if (!m) return NULL;
    const int64_t e = c.dim;
    m->dim = e, m->heads = c.heads, m->kdim = c.kdim, m->vdim = c.vdim;
    m->kv_heads = c.kv_heads ? c.kv_heads : c.heads, m->head_dim = c.head_dim ? c.head_dim : e / c.heads;
    m->made_heads = m->heads, m->made_kv_heads = m->kv_heads;
    m->left = tn_array(m, m->heads, int64_t);
    for (int64_t i = 0; m->left && i < m->heads; i++) m->left[i] = i;
    m->scores = c.scores, m->dropout = c.dropout, m->positions = c.positions;
    if (c.kv_heads || c.head_dim || c.scores.qk_norm) {
        split(m, &c);
        norm_queries_and_keys(m, &c);
    } else if (c.kdim == e && c.vdim == e) {
        m->in_proj_weight = tn_weight(m, "in_proj_weight", xavier(c.dtype, 3 * e, e));
    } else {
        m->q_proj_weight = tn_weight(m, "q_proj_weight", xavier(c.dtype, e, e));
        m->k_proj_weight = tn_weight(m, "k_proj_weight", xavier(c.dtype, e, c.kdim));
        m->v_proj_weight = tn_weight(m, "v_proj_weight", xavier(c.dtype, e, c.vdim));
    }
    if (!c.no_bias && !m->q_proj) m->in_proj_bias = tn_param(m, "in_proj_bias", tn_zeros_of(c.dtype, TN_SHAPE(3 * e)));
    if (m->positions && tn_error() == TN_OK && positions_of(m)->join) positions_of(m)->join(m->positions, m);
    m->out_proj = tn_child(
        m, "out_proj",
        tn_linear_new(.in = m->heads * m->head_dim, .out = e, .no_bias = c.no_bias || c.no_out_bias, .dtype = c.dtype));
    if (m->out_proj && m->out_proj->bias) tn_init_zeros(m->out_proj->bias);
    if (owns) tn__part_take(&m->base, c.positions);
    return tn_built(m);
}
tn_mha *tn_mha_create(tn_mha_config c) { return tn__mha_create(c, true); }

/* ---- running ----------------------------------------------------------------------------------------------------- */

/* Grouped heads, where several query heads share a key head: views with one more dim, which attention broadcasts. */
static void group(const tn_mha *m, const tn__mha_sizes *z, tn_attention_args *t)
{
    const int64_t of = m->heads / m->kv_heads, d = m->head_dim;
    t->q = tn_view(t->q, TN_SHAPE(z->batch, m->kv_heads, of, z->queries, d));
    t->k = tn_unsqueeze(t->k, 2), t->v = tn_unsqueeze(t->v, 2);
    const tn_shape s = tn_shape_of(t->attn_mask);
    if (s.n == 4) {
        const bool one = s.d[1] == 1;
        t->attn_mask =
            tn_reshape(t->attn_mask, TN_SHAPE(s.d[0], one ? 1 : m->kv_heads, one ? 1 : of, z->queries, z->keys));
    }
    t->order = TN_DIMS(0, 3, 1, 2, 4);
}

/* A cache has room for all heads that its layers were created with; the remaining heads are the first of them. */
static bool left_of(const tn_mha *m, tn_tensor **h)
{
    if (m->kv_heads != m->made_kv_heads) *h = tn_narrow(*h, 1, 0, m->kv_heads);
    return tn_error() == TN_OK;
}

/* Writes the keys and values of this call to the cache, and sets k and v to all keys and values in it. */
static bool through_cache(const tn_mha *m, const tn_mha_args *a, const tn__mha_sizes *z, tn_tensor **k, tn_tensor **v)
{
    if (!a->cache || tn__joined_rows(a->cache)) return true;
    return (z->recall || tn__cache_write(a->cache, a->layer, a->memory, m->made_kv_heads, *k, *v)) &&
           tn__cache_read(a->cache, a->layer, a->memory, z->batch, z->keys, k, v) && left_of(m, k) && left_of(m, v);
}

/* Attention while a tn_look is active: passes the weights and the heads' results to it, which may change them. If it
 * changes the weights or wants their gradient, the result is computed from the weights that it returned. */
static tn_tensor *attend_observed(const tn_mha *m, const tn__mha_sizes *z, tn_attention_args t, tn_tensor **weights)
{
    const tn__wanted wanted = tn__look_wants("weights");
    const tn_shape   w = {.n = 4, .d = {z->batch, m->heads, z->queries, z->keys}};
    tn_tensor       *own = NULL;
    if (wanted) t.weights = weights ? weights : &own;
    tn_tensor *y = tn_attention_run(t);
    if (wanted && y) {
        const tn_shape was = tn_shape_of(*t.weights);
        *t.weights = tn_reshape(tn__look("weights", tn_reshape(*t.weights, w)), was);
        if (wanted == TN__WANTED_TO_ACT) y = tn_permute(tn_matmul(*t.weights, t.v), t.order);
    }
    const tn_shape s = {.n = 4, .d = {z->batch, z->queries, m->heads, m->head_dim}};
    return tn__look("heads", tn_reshape(y, s));
}

static void observe_projections(tn_tensor **h, bool *int8)
{
    for (int i = 1; *int8 && i < 3; i++) h[i] = tn_to(tn_int8_rows_unpack(h[i]), tn_dtype_of(h[0]));
    *int8 = false;
    h[0] = tn__look("queries", h[0]), h[1] = tn__look("keys", h[1]), h[2] = tn__look("values", h[2]);
}

static tn_tensor *attend_now(const tn_mha *m, const tn_mha_args *a, const tn__mha_sizes *z, tn_attention_args t,
                             tn_tensor **weights)
{
    tn_tensor *at = tn_kv_cache_at(a->cache);
    if (tn__look_active()) return attend_observed(m, z, t, weights);
    if (!at) return tn_attention_run(t);
    t.past = 0;
    return tn_attention_at(t, at);
}

/* Joined caches: each row attends to the positions of its own, and extends it. t: without queries, keys and values. */
static tn_tensor *attend_rows(const tn_mha *m, const tn_mha_args *a, tn_attention_args t, tn_tensor *const h[3])
{
    const int64_t n = tn__joined_rows(a->cache), width = m->heads * m->head_dim;
    tn_tensor    *all = NULL;
    tn_mha_args   b = *a;
    for (int64_t i = 0; i < n && tn_error() == TN_OK; i++) {
        b.cache = tn__joined_row(a->cache, i);
        const int64_t       before = tn__cache_lengths(b.cache, a->layer).own;
        const tn__mha_sizes z = {1, 1, 1, before, before + 1, before, false};
        tn_tensor          *k = tn_narrow(h[1], 0, i, 1), *v = tn_narrow(h[2], 0, i, 1);
        if (!through_cache(m, &b, &z, &k, &v)) return NULL;
        tn_attention_args row = t;
        row.q = tn_narrow(h[0], 0, i, 1), row.k = k, row.v = v, row.past = before;
        if (m->kv_heads != m->heads) group(m, &z, &row);
        tn_tensor *y = tn_attention_run(row);
        if (y && !all) all = tn_empty_of(tn_dtype_of(y), TN_SHAPE(n, 1, width));
        tn_copy_from(tn_narrow(all, 0, i, 1), tn_reshape(y, TN_SHAPE(1, 1, width)));
    }
    for (int64_t i = 0; i < n && tn_error() == TN_OK; i++)
        tn__cache_commit(tn__joined_row(a->cache, i), a->layer, NULL, 1, 1);
    return tn_error() == TN_OK ? all : NULL;
}

static void set_offsets(const tn_mha_args *a, tn_attention_args *t)
{
    const tn_unpadded *k = a->keys_unpadded ? a->keys_unpadded : a->unpadded;
    if (!a->unpadded) return;
    t->offsets = a->unpadded->offsets, t->key_offsets = k->offsets;
}

/* What is added to the scores: a term of the positions and a checked mask; either may be NULL. */
static tn_tensor *added(tn_tensor *term, tn_tensor *mask)
{
    if (!term || !mask) return term ? term : mask;
    return tn_dtype_of(mask) == TN_BOOL ? tn_masked_fill(term, mask, -INFINITY) : tn_add(term, mask);
}

/* The mask, with a term that does not depend on queries and keys, after active looks may have replaced it. Mask and
 * term are checked apart, since the sum of two tensors of wrong shapes may have a valid shape. */
static bool masked(const tn_mha *m, const tn__mha_sizes *z, const tn_placed *p, tn_tensor **mask)
{
    const tn_position_ops *ops = m->positions ? positions_of(m) : NULL;
    if (ops && ops->scores && ops->no_heads) {
        tn_tensor *term = ops->scores(m->positions, p, NULL, NULL);
        if (tn_error() != TN_OK || (term && !tn__mha_mask(m, z->batch, z->queries, z->keys, &term)) ||
            (*mask && !tn__mha_mask(m, z->batch, z->queries, z->keys, mask)))
            return false;
        *mask = added(term, *mask);
    }
    if (tn__look_active()) *mask = tn__look("attn_mask", *mask);
    return !*mask || tn__mha_mask_fits(m, z, mask);
}

/* Adds a term that depends on queries and keys, of the heads that are left. */
static bool add_scores(const tn_mha *m, const tn_mha_args *a, const tn_placed *p, tn_tensor *const h[3],
                       tn_tensor **mask)
{
    const tn_position_ops *ops = m->positions ? positions_of(m) : NULL;
    if (!ops || !ops->scores || ops->no_heads) return tn_error() == TN_OK;
    if (tn__cache_is_int8(a->cache))
        return tn_raise_false(TN_EUNSUPPORTED, "mha: %s positions read the keys, which an int8 cache has rounded",
                              m->positions->kind->name);
    *mask = added(ops->scores(m->positions, p, h[0], h[1]), *mask);
    return tn_error() == TN_OK;
}

/* Queries, keys and values: projected, turned, with those in the cache. One tensor if possible, else in h. */
static tn_tensor *prepared(const tn_mha *m, const tn_mha_args *a, const tn__mha_sizes *z, const tn_placed *p,
                           tn_tensor *h[3])
{
    const tn_position_ops *ops = m->positions ? positions_of(m) : NULL;
    const bool             heads = ops && (ops->turn || (ops->scores && !ops->no_heads));
    tn_tensor             *all = tn__mha_project(m, a, z, !a->cache && !heads, h);
    if (all && tn__look_active()) tn__mha_split(all, 3, h), all = NULL; /* looks get them separately */
    if (tn_error() == TN_OK && ops && ops->turn) ops->turn(m->positions, p, &h[0], &h[1]);
    return through_cache(m, a, z, &h[1], &h[2]) ? all : NULL;
}

static tn_tensor *attend(tn_mha *m, const tn_mha_args *a, tn_tensor **weights)
{
    tn__mha_sizes     z = {0};
    tn_placed         p;
    tn_tensor        *h[3] = {NULL};
    const bool        looked = tn__look_active();
    tn_attention_args t = {
        TN_ATTENTION_ARGS_DEFAULTS, .attn_mask = a->attn_mask,  .key_padding_mask = a->key_padding_mask,
        .causal = a->causal,        .window = m->scores.window, .cap = m->scores.cap};
    set_offsets(a, &t);
    if (!tn__mha_fits(m, a, &z) || !tn__mha_placed(m, a, &z, &p) || !masked(m, &z, &p, &t.attn_mask)) return NULL;
    if (!tn__mha_replayable(m, a, &p, weights || looked)) return NULL;
    tn_tensor *all = prepared(m, a, &z, &p, h);
    if (!add_scores(m, a, &p, h, &t.attn_mask)) return NULL;
    t.int8 = tn__cache_is_int8(a->cache);
    if (looked) observe_projections(h, &t.int8);

    t.q = all ? all : h[0], t.k = h[1], t.v = h[2], t.weights = weights, t.past = z.past;
    t.dropout = m->base.training ? m->dropout : 0;
    if (m->scores.scale > 0) t.scale = m->scores.scale;
    t.order = TN_DIMS(0, 2, 1, 3);
    if (tn__joined_rows(a->cache)) return tn_call(m->out_proj, attend_rows(m, a, t, h));
    if (m->kv_heads != m->heads) group(m, &z, &t);
    tn_tensor     *y = attend_now(m, a, &z, t, weights); /* [B, T, heads, D]; heads may be [kv_heads, group] */
    const tn_shape flat = TN_SHAPE(z.batch, z.queries, m->heads * m->head_dim);
    y = looked ? tn_reshape(y, flat) : tn_view(y, flat);
    y = tn_call(m->out_proj, y);
    if (weights && m->kv_heads != m->heads)
        *weights = tn_reshape(*weights, TN_SHAPE(z.batch, m->heads, z.queries, z.keys));
    if (weights && !a->weights_per_head) *weights = tn_mean(*weights, .dims = TN_DIMS(1));
    if (a->cache && !z.recall && tn_error() == TN_OK)
        tn__cache_commit(a->cache, a->layer, a->memory ? a->key : NULL, z.batch, z.given);
    return y;
}

/* Attention to a memory in the cache. Beams of a text share it: they are the queries of one attention. */
static tn_tensor *recall(tn_mha *m, const tn_mha_args *a, tn_tensor **weights)
{
    const int64_t each = tn__cache_sharing(a->cache), rows = tn_kv_cache_rows(a->cache);
    tn_mha_args   b = *a;
    if (each > 1 && !weights && !a->attn_mask && !tn__look_active() && a->query &&
        tn_shape_equal(tn_shape_of(a->query), TN_SHAPE(rows, 1, m->dim)) &&
        tn__first_masks(a->key_padding_mask, each, &b.key_padding_mask)) {
        b.query = tn_reshape(a->query, TN_SHAPE(rows / each, each, m->dim));
        return tn_reshape(attend(m, &b, NULL), TN_SHAPE(rows, 1, m->dim));
    }
    return tn__cache_copy_memories(a->cache) ? attend(m, a, weights) : NULL;
}

tn_tensor *tn_mha_run(tn_mha *m, tn_mha_args a)
{
    if (a.weights) *a.weights = NULL;
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    const bool     held = a.memory && tn__cache_lengths(a.cache, a.layer).memory >= 0;
    tn_tensor     *w = NULL, **to = a.weights ? &w : NULL;
    tn_tensor     *y = held ? recall(m, &a, to) : attend(m, &a, to);
    if (!a.weights) return tn_leave(f, y);
    tn_leave_n(f, &y, &w);
    *a.weights = w;
    return y;
}
