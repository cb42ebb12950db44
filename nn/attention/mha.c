/* mha.c — attention with several heads.
 *
 *   [q k v] = x W_inᵀ + b,   head h of them: columns h·D … (h+1)·D - 1,   y = [attention of each head] W_outᵀ + b
 *
 * Heads are strided views of the projections, nothing is moved: of [B, T, 3, heads, D] where query, key and value are
 * one tensor, so that one product makes all three, and its gradient is one tensor, too. The result comes as
 * [B, T, heads, D]. */
#include "nn/attention/kv_cache_private.h"
#include "nn/base/nn_private.h"

#include <math.h>

static tn_tensor *mha_forward(void *self, tn_tensor *x) { return tn_mha_forward((tn_mha *)self, x, x, x); }

static const tn_class tn_mha_class = {
    .size = sizeof(tn_class), .name = "MultiheadAttention", .bytes = sizeof(tn_mha), .forward = mha_forward};

static tn_tensor *xavier(tn_dtype dt, int64_t out, int64_t in)
{
    return tn_init_xavier_uniform(tn_empty_of(dt, TN_SHAPE(out, in)), 1);
}

tn_mha *tn_mha_create(tn_mha_config c)
{
    static const char *const who = "tn_mha_new";
    if (c.kdim == 0) c.kdim = c.dim;
    if (c.vdim == 0) c.vdim = c.dim;
    if (!tn__at_least(who, "dim", c.dim, 1) || !tn__at_least(who, "heads", c.heads, 1) ||
        !tn__at_least(who, "kdim", c.kdim, 1) || !tn__at_least(who, "vdim", c.vdim, 1) ||
        !tn__probability(who, "dropout", c.dropout) || !tn__floating(who, c.dtype))
        return NULL;
    if (c.dim % c.heads)
        return tn_raise(TN_EINVAL, "%s: %lld heads do not divide width %lld; .dim must be a multiple of .heads", who,
                        (long long)c.heads, (long long)c.dim),
               NULL;
    tn_mha *m = tn_module_new(tn_mha);
    if (!m) return NULL;
    const int64_t e = c.dim;
    m->dim = e, m->heads = c.heads, m->kdim = c.kdim, m->vdim = c.vdim;
    m->dropout = c.dropout, m->time_first = c.time_first;
    if (c.kdim == e && c.vdim == e) {
        m->in_proj_weight = tn_param(m, "in_proj_weight", xavier(c.dtype, 3 * e, e));
    } else {
        m->q_proj_weight = tn_param(m, "q_proj_weight", xavier(c.dtype, e, e));
        m->k_proj_weight = tn_param(m, "k_proj_weight", xavier(c.dtype, e, c.kdim));
        m->v_proj_weight = tn_param(m, "v_proj_weight", xavier(c.dtype, e, c.vdim));
    }
    if (!c.no_bias) m->in_proj_bias = tn_param(m, "in_proj_bias", tn_zeros_of(c.dtype, TN_SHAPE(3 * e)));
    m->out_proj = tn_child(m, "out_proj", tn_linear_new(.in = e, .out = e, .no_bias = c.no_bias, .dtype = c.dtype));
    if (m->out_proj && m->out_proj->bias) tn_init_zeros(m->out_proj->bias);
    return tn_built(m);
}

/* ---- what has to fit --------------------------------------------------------------------------------------------- */

/* Of one call. */
typedef struct {
    int64_t batch, queries, given, before, keys; /* keys = before + given: those in the cache, and those of this call */
    bool    recall;                              /* keys and values are a memory that the cache holds */
} sizes;

/* Is x [B, n, dim] (or [n, B, dim])? */
static bool input(const tn_mha *m, const char *name, char letter, const tn_tensor *x, int64_t dim, int64_t *batch,
                  int64_t *n)
{
    char text[192];
    if (!x) return tn_raise(TN_EINVAL, "mha: %s is NULL", name), false;
    const tn_shape s = tn_shape_of(x);
    if (s.n != 3 || s.d[2] != dim)
        return tn_raise(TN_ESHAPE,
                        m->time_first ? "mha: %s %s must be [%c, B, %lld]%s" : "mha: %s %s must be [B, %c, %lld]%s",
                        name, tn_shape_text(s, text, sizeof text), letter, (long long)dim,
                        s.n == 2 && s.d[1] == dim ? "; one sequence is a batch of 1: see tn_unsqueeze" : ""),
               false;
    *batch = s.d[m->time_first], *n = s.d[!m->time_first];
    return true;
}

static bool differ(const char *a, const tn_tensor *x, const char *b, const tn_tensor *y, const char *what)
{
    char xs[192], ys[192];
    tn_raise(TN_ESHAPE, "mha: %s %s and %s %s differ in %s", a, tn_shape_text(tn_shape_of(x), xs, sizeof xs), b,
             tn_shape_text(tn_shape_of(y), ys, sizeof ys), what);
    return false;
}

/* Is the mask [T, S], [B·heads, T, S] or [B or 1, heads or 1, T, S]? The one of 3 dims gets 4. */
static bool mask(const tn_mha *m, const sizes *z, tn_tensor **blocked)
{
    char           text[192];
    const tn_shape s = tn_shape_of(*blocked);
    const int      n = s.n;
    const tn_dtype dt = tn_dtype_of(*blocked);
    if (dt != TN_BOOL && !tn_dtype_is_float(dt))
        return tn_raise(
                   TN_EDTYPE,
                   "mha: blocked is %s, but must be bool (true: may not be attended) or floating (added to the scores)",
                   tn_dtype_name(dt)),
               false;
    bool ok = n >= 2 && n <= 4 && s.d[n - 2] == z->queries && s.d[n - 1] == z->keys;
    if (ok && n == 3) ok = s.d[0] == z->batch * m->heads;
    if (ok && n == 4) ok = (s.d[0] == 1 || s.d[0] == z->batch) && (s.d[1] == 1 || s.d[1] == m->heads);
    if (!ok)
        return tn_raise(TN_ESHAPE,
                        "mha: blocked %s must be [T, S] = [%lld, %lld], or [B·heads, T, S] with B·heads = %lld, or "
                        "[B, heads, T, S]",
                        tn_shape_text(s, text, sizeof text), (long long)z->queries, (long long)z->keys,
                        (long long)(z->batch * m->heads)),
               false;
    if (n == 3) *blocked = tn_reshape(*blocked, TN_SHAPE(z->batch, m->heads, z->queries, z->keys));
    return true;
}

static bool mha_fits(const tn_mha *m, const tn_mha_args *a, sizes *z)
{
    char             text[192];
    int64_t          batch, n;
    const tn__cached held = tn__cache_of(a->cache, a->layer);
    if (!input(m, "query", 'T', a->query, m->dim, &z->batch, &z->queries)) return false;
    if (a->memory && !a->cache)
        return tn_raise(TN_EINVAL, "mha: .memory says that the cache holds the keys, but .cache is NULL"), false;
    if (a->memory && held.memory >= 0) {
        z->recall = true, z->before = held.memory;
        if (!tn__cache_is_of(a->cache, a->layer, a->key)) return false;
    } else {
        z->before = a->memory ? 0 : held.own;
        if (!input(m, "key", 'S', a->key, m->kdim, &batch, &z->given)) return false;
        if (batch != z->batch) return differ("query", a->query, "key", a->key, "the size of their batch");
        if (!input(m, "value", 'S', a->value, m->vdim, &batch, &n)) return false;
        if (batch != z->batch || n != z->given) return differ("key", a->key, "value", a->value, "their first two dims");
    }
    z->keys = z->before + z->given;
    if (a->blocked_keys && !tn_shape_equal(tn_shape_of(a->blocked_keys), TN_SHAPE(z->batch, z->keys)))
        return tn_raise(TN_ESHAPE, "mha: blocked_keys %s must be [B, S] = [%lld, %lld]; true is padding",
                        tn_shape_text(tn_shape_of(a->blocked_keys), text, sizeof text), (long long)z->batch,
                        (long long)z->keys),
               false;
    return true;
}

/* ---- projections: heads are [B, heads, n, D] --------------------------------------------------------------------- */

/* y [B, n, count · dim] (or [n, B, ...]) as [B, n, count, heads, D]. */
static tn_tensor *apart(const tn_mha *m, tn_tensor *y, int64_t batch, int64_t n, int count)
{
    const bool t = m->time_first;
    y = tn_view(y, TN_SHAPE(t ? n : batch, t ? batch : n, count, m->heads, m->dim / m->heads));
    return t ? tn_permute(y, TN_DIMS(1, 0, 2, 3, 4)) : y;
}
static void heads_of(tn_tensor *y, int count, tn_tensor **heads)
{
    for (int i = 0; i < count; i++) heads[i] = tn_permute(tn_select(y, 2, i), TN_DIMS(0, 2, 1, 3));
}

/* Projections `from` … `from + count - 1` (of query, key, value) of one x. */
static tn_tensor *project(const tn_mha *m, tn_tensor *x, int from, int count, int64_t batch, int64_t n)
{
    const int64_t e = m->dim;
    tn_tensor *w, *b = m->in_proj_bias, *const each[3] = {m->q_proj_weight, m->k_proj_weight, m->v_proj_weight};
    if (!m->in_proj_weight) w = each[from];
    else w = count == 3 ? m->in_proj_weight : tn_narrow(m->in_proj_weight, 0, from * e, count * e);
    if (b && count < 3) b = tn_narrow(b, 0, from * e, count * e);
    return apart(m, tn_linear(x, w, b), batch, n, count);
}

/* ---- forward ----------------------------------------------------------------------------------------------------- */

static tn_tensor *attend(tn_mha *m, tn_mha_args *a, tn_tensor **weights)
{
    sizes             z = {0};
    tn_tensor        *h[3] = {NULL}, *all = NULL;
    tn_kv_cache      *cache = a->cache;
    tn_attention_args t = {TN_ATTENTION_ARGS_DEFAULTS, .blocked = a->blocked, .blocked_keys = a->blocked_keys,
                           .causal = a->causal};
    if (!mha_fits(m, a, &z) || (t.blocked && !mask(m, &z, &t.blocked))) return NULL;

    const bool packed = m->in_proj_weight && !z.recall;
    if (packed && a->query == a->key && a->key == a->value) {
        all = project(m, a->query, 0, 3, z.batch, z.queries);
        if (cache) heads_of(all, 3, h);
    } else {
        heads_of(project(m, a->query, 0, 1, z.batch, z.queries), 1, h);
        if (packed && a->key == a->value) {
            heads_of(project(m, a->key, 1, 2, z.batch, z.given), 2, h + 1);
        } else if (!z.recall) {
            heads_of(project(m, a->key, 1, 1, z.batch, z.given), 1, h + 1);
            heads_of(project(m, a->value, 2, 1, z.batch, z.given), 1, h + 2);
        }
    }
    t.q = all && !cache ? all : h[0];
    if (cache && !z.recall && !tn__cache_write(cache, a->layer, a->memory, h[1], h[2])) return NULL;
    if (cache && !tn__cache_read(cache, a->layer, a->memory, z.batch, z.keys, &h[1], &h[2])) return NULL;

    t.k = h[1], t.v = h[2], t.weights = weights, t.past = z.recall ? 0 : z.before;
    t.dropout = m->base.training ? m->dropout : 0;
    t.order = m->time_first ? TN_DIMS(2, 0, 1, 3) : TN_DIMS(0, 2, 1, 3);
    tn_tensor *y = tn_attention_run(t); /* [B, T, heads, D], or [T, B, ...] */
    y = tn_view(y, m->time_first ? TN_SHAPE(z.queries, z.batch, m->dim) : TN_SHAPE(z.batch, z.queries, m->dim));
    y = tn_call(m->out_proj, y);
    if (weights && !a->weights_per_head) *weights = tn_mean(*weights, .dims = TN_DIMS(1));
    if (cache && !z.recall && tn_error() == TN_OK)
        tn__cache_commit(cache, a->layer, a->memory ? a->key : NULL, z.batch, z.given);
    return y;
}

tn_tensor *tn_mha_run(tn_mha *m, tn_mha_args a)
{
    const tn_frame f = tn_enter(m);
    tn_tensor     *y = NULL, *w = NULL;
    if (tn_error() == TN_OK) y = attend(m, &a, a.weights ? &w : NULL);
    if (!a.weights) return tn_leave(f, y);
    tn_leave_n(f, &y, &w);
    *a.weights = w;
    return y;
}
