/* mha.c — multi-head attention.
 *
 *   [q k v] = x W_inᵀ + b,   head h of them: columns h·D … (h+1)·D - 1,   y = [attention of each head] W_outᵀ + b
 *
 * Heads are strided views of the projections, without copies. If query, key and value are one tensor, one product
 * computes all three, [B, T, 3, heads, D], and their gradient is one tensor, too. The op's result is [B, T, heads, D].
 *
 * With fewer key heads than query heads, queries are [B, kv_heads, group, T, D] and keys [B, kv_heads, 1, S, D]: the op
 * broadcasts the keys without copying them. (The backward computes a gradient of the keys per group member and sums
 * these.) */
#include "autograd/rooms/q8.h"
#include "nn/attention/block.h"
#include "nn/base/look_private.h"
#include "nn/layers/lora.h"
#include "nn/look.h"

static tn_tensor *mha_forward(void *self, tn_tensor *x) { return tn_mha_forward((tn_mha *)self, x, x, x); }

static const tn_class tn_mha_class = {
    .size = sizeof(tn_class), .name = "MultiheadAttention", .bytes = sizeof(tn_mha), .forward = mha_forward};

tn_mha *tn_mha_of(tn_module *m) { return m && m->kind == &tn_mha_class ? (tn_mha *)(void *)m : NULL; }

static tn_tensor *xavier(tn_dtype dt, int64_t out, int64_t in)
{
    return tn_init_xavier_uniform(tn_empty_of(dt, TN_SHAPE(out, in)), 1);
}

/* True if a member of the config differs from its default. In a config made without TN_MHA_DEFAULTS all are 0. */
static bool rope_is_set(const tn_rope_config *c)
{
    const tn_rope_config plain = {TN_ROPE_DEFAULTS};
    return c->dim || c->interleaved || c->scaling || c->trained || c->dtype ||
           (c->theta != 0 && c->theta != plain.theta) || (c->factor != 0 && c->factor != plain.factor) ||
           (c->low != 0 && c->low != plain.low) || (c->high != 0 && c->high != plain.high);
}

/* Checks the options of the scores: their scale and the rotary positions. */
static bool scores_fit(const char *who, tn_mha_config *c)
{
    const int64_t d = c->head_dim ? c->head_dim : c->dim / c->heads;
    if (!(c->scale >= 0 && c->scale - c->scale == 0))
        return tn_raise_false(TN_EINVAL, "%s: .scale is %s, but must be positive, or 0 for 1/√head_dim", who,
                              tn__format_number(c->scale));
    if (!(c->score_cap >= 0 && c->score_cap - c->score_cap == 0))
        return tn_raise_false(TN_EINVAL, "%s: .score_cap is %s, but must be positive, or 0 for none", who,
                              tn__format_number(c->score_cap));
    if ((unsigned)c->qk_norm > TN_QK_NORM_ALL || (c->qk_norm_add_one && !c->qk_norm))
        return tn_raise_false(TN_EINVAL, "%s: .qk_norm is %d; expected a tn_qk_norm%s", who, (int)c->qk_norm,
                              c->qk_norm_add_one ? " other than TN_QK_NORM_NONE, since .qk_norm_add_one is set" : "");
    if (!c->rotary && rope_is_set(&c->rope))
        return tn_raise_false(TN_EINVAL,
                              "%s: .rope is set but has no effect without .rotary; set .rotary or remove .rope", who);
    if (c->rotary && !c->rope.dim) c->rope.dim = d;
    if (c->rotary && (c->rope.dim < 2 || c->rope.dim % 2 || c->rope.dim > d))
        return tn_raise_false(TN_EINVAL, "%s: .rope.dim is %lld, but must be even and at most a head's %lld", who,
                              (long long)c->rope.dim, (long long)d);
    if (!c->rotary) return true;
    const tn_scope s = tn_no_grad_begin();
    tn_rope_angles(c->rope, 0, 0); /* raises an error if the config is invalid */
    tn_scope_end(s);
    return tn_error() == TN_OK;
}

static bool complete(const char *who, tn_mha_config *c)
{
    if (c->kdim == 0) c->kdim = c->dim;
    if (c->vdim == 0) c->vdim = c->dim;
    if (!tn__at_least(who, "dim", c->dim, 1) || !tn__at_least(who, "heads", c->heads, 1) ||
        !tn__at_least(who, "kdim", c->kdim, 1) || !tn__at_least(who, "vdim", c->vdim, 1) ||
        !tn__at_least(who, "kv_heads", c->kv_heads, 0) || !tn__at_least(who, "head_dim", c->head_dim, 0) ||
        !tn__at_least(who, "window", c->window, 0) || !tn__probability(who, "dropout", c->dropout) ||
        !tn__floating(who, c->dtype))
        return false;
    if (!c->head_dim && c->dim % c->heads)
        return tn_raise_false(TN_EINVAL, "%s: %lld heads do not divide width %lld; .dim must be a multiple of .heads",
                              who, (long long)c->heads, (long long)c->dim);
    if (c->kv_heads && c->heads % c->kv_heads)
        return tn_raise_false(TN_EINVAL, "%s: .kv_heads is %lld, but must divide .heads, which is %lld", who,
                              (long long)c->kv_heads, (long long)c->heads);
    return scores_fit(who, c) && tn__disentangled_fits(who, c);
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
    const bool head = c->qk_norm == TN_QK_NORM_HEAD;
    if (!c->qk_norm) return;
    m->q_norm = tn_child(m, "q_norm",
                         tn_rms_norm_new(.dim = head ? m->head_dim : m->heads * m->head_dim, .eps = c->qk_norm_eps,
                                         .add_one = c->qk_norm_add_one, .dtype = c->dtype));
    m->k_norm = tn_child(m, "k_norm",
                         tn_rms_norm_new(.dim = head ? m->head_dim : m->kv_heads * m->head_dim, .eps = c->qk_norm_eps,
                                         .add_one = c->qk_norm_add_one, .dtype = c->dtype));
}

tn_mha *tn_mha_create(tn_mha_config c)
{
    if (!complete("tn_mha_new", &c)) return NULL;
    tn_mha *m = tn_module_new(tn_mha);
    if (!m) return NULL;
    const int64_t e = c.dim;
    m->dim = e, m->heads = c.heads, m->kdim = c.kdim, m->vdim = c.vdim;
    m->kv_heads = c.kv_heads ? c.kv_heads : c.heads, m->head_dim = c.head_dim ? c.head_dim : e / c.heads;
    m->made_heads = m->heads, m->made_kv_heads = m->kv_heads;
    m->left = tn_array(m, m->heads, int64_t);
    for (int64_t i = 0; m->left && i < m->heads; i++) m->left[i] = i;
    m->window = c.window, m->scale = c.scale, m->score_cap = c.score_cap, m->dropout = c.dropout,
    m->time_first = c.time_first, m->rotary = c.rotary, m->rope = c.rope;
    if (c.kv_heads || c.head_dim || c.qk_norm) {
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
    tn__disentangled_build(m, &c);
    m->out_proj = tn_child(
        m, "out_proj",
        tn_linear_new(.in = m->heads * m->head_dim, .out = e, .no_bias = c.no_bias || c.no_out_bias, .dtype = c.dtype));
    if (m->out_proj && m->out_proj->bias) tn_init_zeros(m->out_proj->bias);
    return tn_built(m);
}

/* ---- checks of a call's arguments -------------------------------------------------------------------------------- */

/* The sizes of one call. */
typedef struct {
    int64_t batch, queries, given, before, keys; /* keys = before (in the cache) + given (of this call) */
    int64_t past;                                /* causal call: number of positions in the cache; else 0 */
    bool    recall;                              /* keys and values are a memory stored in the cache */
} sizes;

/* Checks that x is [B, n, dim] (or [n, B, dim]); returns B and n. */
static bool input(const tn_mha *m, const char *name, char letter, const tn_tensor *x, int64_t dim, int64_t *batch,
                  int64_t *n)
{
    char text[192];
    if (!x) return tn_raise_false(TN_EINVAL, "mha: %s is NULL", name);
    const tn_shape s = tn_shape_of(x);
    if (s.n != 3 || s.d[2] != dim)
        return tn_raise_false(
            TN_ESHAPE, m->time_first ? "mha: %s %s must be [%c, B, %lld]%s" : "mha: %s %s must be [B, %c, %lld]%s",
            name, tn_shape_text(s, text, sizeof text), letter, (long long)dim,
            s.n == 2 && s.d[1] == dim ? "; one sequence is a batch of 1: see tn_unsqueeze" : "");
    *batch = s.d[m->time_first], *n = s.d[!m->time_first];
    return true;
}

static bool differ(const char *a, const tn_tensor *x, const char *b, const tn_tensor *y, const char *what)
{
    char xs[192], ys[192];
    return tn_raise_false(TN_ESHAPE, "mha: %s %s and %s %s differ in %s", a,
                          tn_shape_text(tn_shape_of(x), xs, sizeof xs), b, tn_shape_text(tn_shape_of(y), ys, sizeof ys),
                          what);
}

/* Checks the mask and selects the heads that tn_mha_prune has not removed. */
static bool mask(const tn_mha *m, const sizes *z, tn_tensor **attn_mask)
{
    if (!tn__mha_mask(m, z->batch, z->queries, z->keys, attn_mask)) return false;
    if (m->heads != m->made_heads && tn_ndim(*attn_mask) > 2 && tn_size(*attn_mask, 1) == m->made_heads)
        *attn_mask = tn_index_select(*attn_mask, 1, tn_from_data(TN_I64, TN_SHAPE(m->heads), m->left));
    return tn_error() == TN_OK;
}

static bool options_fit(const tn_mha *m, const tn_mha_args *a)
{
    char text[192];
    if (a->layer && !a->cache)
        return tn_raise_false(TN_EINVAL, "mha: .layer is %lld, but .cache is NULL", (long long)a->layer);
    if (!tn__disentangled_args(m, a)) return false;
    if (a->angles && !m->rotary)
        return tn_raise_false(TN_EINVAL, "mha: .angles need a module created with .rotary = true");
    if (a->angles && (tn_ndim(a->angles) < 2 || tn_size(a->angles, -1) != m->rope.dim))
        return tn_raise_false(TN_ESHAPE, "mha: .angles must be [.., %lld], as returned by tn_mha_angles, got %s",
                              (long long)m->rope.dim, tn_shape_text(tn_shape_of(a->angles), text, sizeof text));
    return true;
}

static bool unpadded_fits(const tn_mha_args *a, const sizes *z)
{
    const tn_unpadded *q = a->unpadded, *k = a->keys_unpadded ? a->keys_unpadded : q;
    if (!q && !k) return true;
    if (!q || !q->rows || !k->rows)
        return tn_raise_false(TN_EINVAL, "mha: .unpadded has no rows; make it with tn_unpad, and check the error");
    if (a->cache) return tn_raise_false(TN_EINVAL, "mha: .cache needs padded batches");
    if (z->batch != 1 || z->queries != tn_numel(q->rows) || z->keys != tn_numel(k->rows))
        return tn_raise_false(TN_ESHAPE,
                              "mha: an unpadded query and key must be [1, N, dim] with %lld and %lld rows, as in "
                              ".unpadded, but have batch size %lld and %lld and %lld rows",
                              (long long)tn_numel(q->rows), (long long)tn_numel(k->rows), (long long)z->batch,
                              (long long)z->queries, (long long)z->keys);
    return true;
}

static bool mha_fits(const tn_mha *m, const tn_mha_args *a, sizes *z)
{
    char                     text[192];
    int64_t                  batch, n;
    const tn__cached_lengths held = tn__cache_lengths(a->cache, a->layer);
    if (!options_fit(m, a) || !input(m, "query", 'T', a->query, m->dim, &z->batch, &z->queries)) return false;
    if (a->memory && !a->cache) return tn_raise_false(TN_EINVAL, "mha: .memory is set, but .cache is NULL");
    if (a->memory && held.memory >= 0) {
        z->recall = true, z->before = held.memory;
        if (!tn__cache_memory_is(a->cache, a->layer, a->key)) return false;
    } else {
        z->before = a->memory ? 0 : held.own, z->past = a->causal ? z->before : 0;
        if (!input(m, "key", 'S', a->key, m->kdim, &batch, &z->given)) return false;
        if (batch != z->batch) return differ("query", a->query, "key", a->key, "batch size");
        if (!input(m, "value", 'S', a->value, m->vdim, &batch, &n)) return false;
        if (batch != z->batch || n != z->given) return differ("key", a->key, "value", a->value, "the first two dims");
    }
    z->keys = z->before + z->given;
    if (!unpadded_fits(a, z)) return false;
    if (m->window && !a->causal && a->cache)
        return tn_raise_false(TN_EINVAL, "mha: .window is %lld, which with .cache needs .causal", (long long)m->window);
    if (m->rotary && (a->memory || z->given != z->queries))
        return tn_raise_false(TN_EINVAL,
                              "mha: rotary positions need self-attention, but there are %lld queries and %lld keys",
                              (long long)z->queries, (long long)z->given);
    if (a->key_padding_mask && !tn_shape_equal(tn_shape_of(a->key_padding_mask), TN_SHAPE(z->batch, z->keys)))
        return tn_raise_false(TN_ESHAPE, "mha: key_padding_mask %s must be [B, S] = [%lld, %lld]; true is padding",
                              tn_shape_text(tn_shape_of(a->key_padding_mask), text, sizeof text), (long long)z->batch,
                              (long long)z->keys);
    return true;
}

/* ---- projections: heads are [B, heads, n, D] --------------------------------------------------------------------- */

/* y [B, n, count · heads · D] (or [n, B, ...]) as [B, n, count, heads, D]. */
static tn_tensor *apart(const tn_mha *m, tn_tensor *y, int64_t batch, int64_t n, int count, int64_t heads)
{
    const bool t = m->time_first;
    y = tn_view(y, TN_SHAPE(t ? n : batch, t ? batch : n, count, heads, m->head_dim));
    return t ? tn_permute(y, TN_DIMS(1, 0, 2, 3, 4)) : y;
}
static void heads_of(tn_tensor *y, int count, tn_tensor **heads)
{
    for (int i = 0; i < count; i++) heads[i] = tn_permute(tn_select(y, 2, i), TN_DIMS(0, 2, 1, 3));
}

/* Queries (of: 0), keys (1) or values (2) of a projection y, after their norm. */
static tn_tensor *projected_apart(const tn_mha *m, tn_tensor *y, int of, int64_t batch, int64_t n)
{
    tn_rms_norm *norm = of == 0 ? m->q_norm : of == 1 ? m->k_norm : NULL;
    const bool   whole = norm && norm->shape.d[0] != m->head_dim;
    if (whole) y = tn_call(norm, y);
    y = apart(m, y, batch, n, 1, of ? m->kv_heads : m->heads);
    return norm && !whole ? tn_call(norm, y) : y;
}

/* Projections `from` … `from + count - 1` (0: query, 1: key, 2: value) of one x. */
static tn_tensor *project(const tn_mha *m, tn_tensor *x, int from, int count, int64_t batch, int64_t n)
{
    const int64_t    e = m->heads * m->head_dim; /* rows of each projection */
    tn_linear *const module[3] = {m->q_proj, m->k_proj, m->v_proj};
    tn_tensor *w, *b = m->in_proj_bias, *const each[3] = {m->q_proj_weight, m->k_proj_weight, m->v_proj_weight};
    if (m->q_proj) return projected_apart(m, tn_call(module[from], x), from, batch, n);
    if (count < 3 && tn_is_packed(m->in_proj_weight)) { /* packed weights have no views */
        tn_tensor *y = tn__linear_rows(x, m->in_proj_weight, b, from * e, count * e);
        return apart(m, tn__lora_added(m->lora, x, y, from * e, count * e), batch, n, count, m->heads);
    }
    if (!m->in_proj_weight) w = each[from];
    else w = count == 3 ? m->in_proj_weight : tn_narrow(m->in_proj_weight, 0, from * e, count * e);
    if (b && count < 3) b = tn_narrow(b, 0, from * e, count * e);
    return apart(m, tn__lora_added(m->lora, x, tn_linear(x, w, b), from * e, count * e), batch, n, count, m->heads);
}

/* Queries and keys of relative positions, [1, heads, R, D], of the terms that m has. */
static void project_distances(const tn_mha *m, tn_tensor *distances, tn_tensor *h[2])
{
    tn_tensor    *x = tn_unsqueeze(distances, m->time_first);
    const int64_t n = tn_error() == TN_OK ? tn_size(distances, 0) : 0;
    for (int i = 0; i < 2 && tn_error() == TN_OK; i++) {
        tn_linear *own = i ? m->pos_key_proj : m->pos_query_proj;
        if (!(i ? m->c2p : m->p2c)) continue;
        heads_of(own ? apart(m, tn_call(own, x), 1, n, 1, m->heads) : project(m, x, i, 1, 1, n), 1, h + i);
    }
}

/* The mask, with the position terms of disentangled attention. */
static tn_tensor *position_terms(const tn_mha *m, const tn_mha_args *a, tn_tensor *const h[2], tn_tensor *attn_mask)
{
    tn_tensor *of[2] = {NULL, NULL};
    if (!a->distances) return attn_mask;
    project_distances(m, a->distances, of);
    return tn__disentangled_mask(m, h, of, a->distance_at, attn_mask);
}

/* ---- forward ----------------------------------------------------------------------------------------------------- */

/* Queries and keys [B, heads, n, D], rotated by their positions. */
static void rotate(const tn_mha *m, const tn_mha_args *a, const sizes *z, tn_tensor **h)
{
    tn_tensor *angles = a->angles;
    if (!angles && a->unpadded) angles = tn_rope_angles_at(tn__mha_rope(m), tn__unpadded_positions(a->unpadded));
    if (!angles) angles = tn_mha_angles(m, tn__cache_removed(a->cache) + z->before, z->given);
    if (angles && tn_ndim(angles) == 3)
        angles = tn_unsqueeze(angles, 1); /* [B, n, R]: different positions in each row */
    h[0] = tn_rope(h[0], angles, m->rope.interleaved), h[1] = tn_rope(h[1], angles, m->rope.interleaved);
}

/* Grouped heads, where several query heads share a key head: views with one more dim, which attention broadcasts. */
static void group(const tn_mha *m, const sizes *z, tn_attention_args *t)
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
    t->order = m->time_first ? TN_DIMS(3, 0, 1, 2, 4) : TN_DIMS(0, 3, 1, 2, 4);
}

/* Queries, keys and values of this call. Returns them as one tensor if attention accepts that; else returns NULL and
 * sets h to the heads. Inputs that are one tensor take one product if in_proj_weight exists. */
static tn_tensor *projected(const tn_mha *m, const tn_mha_args *a, const sizes *z, tn_tensor *h[3])
{
    const bool packed = m->in_proj_weight && !z->recall;
    if (packed && a->query == a->key && a->key == a->value) {
        tn_tensor *all = project(m, a->query, 0, 3, z->batch, z->queries);
        if (!a->cache && !m->rotary && !a->distances) return all;
        heads_of(all, 3, h);
        return NULL;
    }
    heads_of(project(m, a->query, 0, 1, z->batch, z->queries), 1, h);
    if (packed && a->key == a->value) {
        heads_of(project(m, a->key, 1, 2, z->batch, z->given), 2, h + 1);
    } else if (!z->recall) {
        heads_of(project(m, a->key, 1, 1, z->batch, z->given), 1, h + 1);
        heads_of(project(m, a->value, 2, 1, z->batch, z->given), 1, h + 2);
    }
    return NULL;
}

/* A cache has room for all heads that its layers were created with; the remaining heads are the first of them. */
static bool left_of(const tn_mha *m, tn_tensor **h)
{
    if (m->kv_heads != m->made_kv_heads) *h = tn_narrow(*h, 1, 0, m->kv_heads);
    return tn_error() == TN_OK;
}

/* Writes the keys and values of this call to the cache, and sets k and v to all keys and values in it. */
static bool through_cache(const tn_mha *m, const tn_mha_args *a, const sizes *z, tn_tensor **k, tn_tensor **v)
{
    if (!a->cache) return true;
    return (z->recall || tn__cache_write(a->cache, a->layer, a->memory, m->made_kv_heads, *k, *v)) &&
           tn__cache_read(a->cache, a->layer, a->memory, z->batch, z->keys, k, v) && left_of(m, k) && left_of(m, v);
}

/* Attention while a tn_look is active: passes the weights and the heads' results to it, which may change them. If it
 * changes the weights or wants their gradient, the result is computed from the weights that it returned. */
static tn_tensor *attend_observed(const tn_mha *m, const sizes *z, tn_attention_args t, tn_tensor **weights)
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
    const tn_shape time_first = {.n = 4, .d = {z->queries, z->batch, m->heads, m->head_dim}};
    return tn__look("heads", tn_reshape(y, m->time_first ? time_first : s));
}

/* The mask, after active looks may have replaced it. */
static tn_tensor *observed_mask(tn_tensor *attn_mask)
{
    return tn__look_active() ? tn__look("attn_mask", attn_mask) : attn_mask;
}

static void observe_projections(tn_tensor **h, bool *int8)
{
    for (int i = 1; *int8 && i < 3; i++) h[i] = tn_to(tn_int8_rows_unpack(h[i]), tn_dtype_of(h[0]));
    *int8 = false;
    h[0] = tn__look("queries", h[0]), h[1] = tn__look("keys", h[1]), h[2] = tn__look("values", h[2]);
}

/* If a step is recorded with the cache: whether a replay, in which only the position changes, would repeat the call;
 * else raises. */
static bool replayable(const tn_mha *m, const tn_mha_args *a, bool others)
{
    if (!tn_kv_cache_at(a->cache)) return true;
    if (!a->causal || a->attn_mask || a->key_padding_mask || a->memory || others ||
        (m->base.training && m->dropout > 0) || (m->rotary && a->angles != tn__cache_angles(a->cache, tn__mha_rope(m))))
        return tn_raise_false(TN_EUNSUPPORTED,
                              "mha: a step that is recorded with a cache must be causal "
                              "self-attention in tn_blocks, without masks, .weights, .angles, dropout and tn_look");
    return true;
}

static tn_tensor *attend_now(const tn_mha *m, const tn_mha_args *a, const sizes *z, tn_attention_args t,
                             tn_tensor **weights)
{
    tn_tensor *at = tn_kv_cache_at(a->cache);
    if (tn__look_active()) return attend_observed(m, z, t, weights);
    if (!at) return tn_attention_run(t);
    t.past = 0;
    return tn_attention_at(t, at);
}

static void set_offsets(const tn_mha_args *a, tn_attention_args *t)
{
    const tn_unpadded *k = a->keys_unpadded ? a->keys_unpadded : a->unpadded;
    if (!a->unpadded) return;
    t->offsets = a->unpadded->offsets, t->key_offsets = k->offsets;
}

static tn_tensor *attend(tn_mha *m, const tn_mha_args *a, tn_tensor **weights)
{
    sizes             z = {0};
    tn_tensor        *h[3] = {NULL};
    const bool        looked = tn__look_active();
    tn_attention_args t = {TN_ATTENTION_ARGS_DEFAULTS,
                           .attn_mask = observed_mask(a->attn_mask),
                           .key_padding_mask = a->key_padding_mask,
                           .causal = a->causal,
                           .window = m->window,
                           .cap = m->score_cap};
    set_offsets(a, &t);
    if (!mha_fits(m, a, &z) || (t.attn_mask && !mask(m, &z, &t.attn_mask))) return NULL;
    if (!replayable(m, a, weights || looked)) return NULL;
    tn_tensor *all = projected(m, a, &z, h);
    if (all && looked) heads_of(all, 3, h), all = NULL; /* looks get queries, keys and values separately */
    if (m->rotary) rotate(m, a, &z, h);
    t.attn_mask = position_terms(m, a, h, t.attn_mask);
    if (!through_cache(m, a, &z, &h[1], &h[2])) return NULL;
    t.int8 = tn__cache_is_int8(a->cache);
    if (looked) observe_projections(h, &t.int8);

    t.q = all ? all : h[0], t.k = h[1], t.v = h[2], t.weights = weights, t.past = z.past;
    t.dropout = m->base.training ? m->dropout : 0;
    if (m->scale > 0) t.scale = m->scale;
    t.order = m->time_first ? TN_DIMS(2, 0, 1, 3) : TN_DIMS(0, 2, 1, 3);
    if (m->kv_heads != m->heads) group(m, &z, &t);
    /* [B, T, heads, D], or [T, B, ...]; heads may be [kv_heads, group] */
    tn_tensor     *y = attend_now(m, a, &z, t, weights);
    const int64_t  width = m->heads * m->head_dim;
    const tn_shape flat = m->time_first ? TN_SHAPE(z.queries, z.batch, width) : TN_SHAPE(z.batch, z.queries, width);
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
    if (each > 1 && !weights && !a->attn_mask && !m->time_first && !tn__look_active() && a->query &&
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
    tn_tensor     *w = NULL, *y = (held ? recall : attend)(m, &a, a.weights ? &w : NULL);
    if (!a.weights) return tn_leave(f, y);
    tn_leave_n(f, &y, &w);
    *a.weights = w;
    return y;
}
