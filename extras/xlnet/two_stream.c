/* two_stream.c — XLNet's layers. For queries q [B, P, H, d] of one of the streams and keys [B, S, H, d]:
 *
 *   bias = shift((q + r_r_bias) Rᵀ) + other · ((q + r_s_bias) · (seg_embed[1] - seg_embed[0])),  -∞ where blocked
 *   y = softmax((q + r_w_bias) kᵀ + bias) v,  all scores divided by √d
 *
 * The score of seg_embed[0] is the same for all keys of a query, so that softmax cancels it; only the difference to it
 * is added where the segments differ. R has a row for each distance S … 1 - T, so that the query at position i finds
 * key j in column T - i + j. For all T queries in order this shift is a view, Transformer-XL's: T columns are dropped
 * from the rows [T, T + S] read as [T + S, T]. Queries at chosen positions gather their columns. */
#include "extras/xlnet.h"
#include "nn/attention/checks.h"
#include "nn/base/nn_private.h"
#include "nn/layers/fuse.h"

#include <math.h>

static const tn_class tn_two_stream_layer_class = {
    .size = sizeof(tn_class), .name = "TwoStreamLayer", .bytes = sizeof(tn_two_stream_layer)};

static tn_tensor *two_stream_forward(void *self, tn_tensor *x)
{
    return tn_two_stream_forward((tn_two_stream *)self, x);
}
static void two_stream_describe(const void *self, char *text, size_t size)
{
    const tn_two_stream *m = self;
    snprintf(text, size, "dim=%lld, heads=%lld, causal=%s", (long long)m->dim, (long long)m->heads,
             tn__python_bool(m->causal));
}
static const tn_class tn_two_stream_class = {.size = sizeof(tn_class),
                                             .name = "TwoStream",
                                             .bytes = sizeof(tn_two_stream),
                                             .forward = two_stream_forward,
                                             .describe = two_stream_describe};

/* ---- building ---------------------------------------------------------------------------------------------------- */

static tn_two_stream_layer *new_layer(const tn_two_stream_config *c)
{
    tn_two_stream_layer *m = tn_module_new(tn_two_stream_layer);
    if (!m) return NULL;
    const int64_t  d = c->dim / c->heads;
    const tn_shape matrix = TN_SHAPE(c->dim, c->heads, d), vector = TN_SHAPE(c->heads, d);
    m->q = tn_param(m, "rel_attn.q", tn_normal_of(c->dtype, matrix, 0, 0.02));
    m->k = tn_param(m, "rel_attn.k", tn_normal_of(c->dtype, matrix, 0, 0.02));
    m->v = tn_param(m, "rel_attn.v", tn_normal_of(c->dtype, matrix, 0, 0.02));
    m->o = tn_param(m, "rel_attn.o", tn_normal_of(c->dtype, matrix, 0, 0.02));
    m->r = tn_param(m, "rel_attn.r", tn_normal_of(c->dtype, matrix, 0, 0.02));
    m->r_w_bias = tn_param(m, "rel_attn.r_w_bias", tn_normal_of(c->dtype, vector, 0, 0.02));
    m->r_r_bias = tn_param(m, "rel_attn.r_r_bias", tn_normal_of(c->dtype, vector, 0, 0.02));
    m->r_s_bias = tn_param(m, "rel_attn.r_s_bias", tn_normal_of(c->dtype, vector, 0, 0.02));
    m->seg_embed = tn_param(m, "rel_attn.seg_embed", tn_normal_of(c->dtype, TN_SHAPE(2, c->heads, d), 0, 0.02));
    m->attention_norm =
        tn_child(m, "rel_attn.layer_norm", tn_layer_norm_new(.dim = c->dim, .eps = c->eps, .dtype = c->dtype));
    m->layer_1 = tn_child(m, "ff.layer_1", tn_linear_new(.in = c->dim, .out = c->ff, .dtype = c->dtype));
    m->layer_2 = tn_child(m, "ff.layer_2", tn_linear_new(.in = c->ff, .out = c->dim, .dtype = c->dtype));
    m->ff_norm = tn_child(m, "ff.layer_norm", tn_layer_norm_new(.dim = c->dim, .eps = c->eps, .dtype = c->dtype));
    m->dropout = tn_child(m, "dropout", tn_dropout_new(.p = c->dropout));
    m->activation = c->activation ? c->activation : tn_gelu;
    return tn_built(m);
}

tn_two_stream *tn_two_stream_create(tn_two_stream_config c)
{
    static const char *const who = "tn_two_stream_new";
    if (!tn__at_least(who, "layers", c.layers, 1) || !tn__at_least(who, "heads", c.heads, 1) ||
        !tn__at_least(who, "dim", c.dim, 2) || !tn__at_least(who, "ff", c.ff, 1) ||
        !tn__probability(who, "dropout", c.dropout) || !tn__within(who, "clamp", c.clamp, 0, INT32_MAX) ||
        !tn__floating(who, c.dtype))
        return NULL;
    if (c.dim % c.heads || c.dim % 2)
        return tn_raise_null(TN_EINVAL, "%s: .dim is %lld, but must be even and a multiple of .heads, which is %lld",
                             who, (long long)c.dim, (long long)c.heads);
    tn_two_stream *m = tn_module_new(tn_two_stream);
    if (!m) return NULL;
    m->dim = c.dim, m->heads = c.heads, m->clamp = c.clamp, m->causal = c.causal;
    m->dropout = tn_child(m, "dropout", tn_dropout_new(.p = c.dropout));
    m->layers = tn_child(m, "layers", tn_module_list_new());
    for (int64_t i = 0; i < c.layers && tn_error() == TN_OK; i++) tn_append(m->layers, new_layer(&c));
    return tn_built(m);
}

/* ---- the attention of a stream ----------------------------------------------------------------------------------- */

typedef struct {
    tn_tensor *x;       /* [B, P, dim]; NULL: the stream is not computed */
    tn_tensor *blocked; /* bool [B, 1, P, S]; NULL: nothing is */
    tn_tensor *other;   /* [B, 1, P, S]: 1 for keys of another segment, else 0; NULL: all 0 */
    tn_tensor *column;  /* i64 [1, B, P, S]: column of each key in R's scores; NULL: the queries are all T in order */
} stream;

/* x [B, P, dim] times w [dim, H, d]: [B, P, H, d] */
static tn_tensor *in_heads(tn_tensor *x, tn_tensor *w)
{
    const tn_shape s = tn_shape_of(w);
    tn_tensor     *y = tn_matmul(x, tn_reshape(w, TN_SHAPE(s.d[0], s.d[1] * s.d[2])));
    return y ? tn_reshape(y, TN_SHAPE(tn_size(x, 0), tn_size(x, 1), s.d[1], s.d[2])) : NULL;
}

/* The scores of q [B, P, H, d] with the distances of r [T + S, H, d]: [B, H, P, S]. */
static tn_tensor *distance_scores(tn_tensor *q, tn_tensor *r, const stream *s, int64_t keys)
{
    if (!q || !r) return NULL;
    const tn_shape n = tn_shape_of(q);
    const int64_t  b = n.d[0], p = n.d[1], h = n.d[2], width = tn_size(r, 0);
    tn_tensor     *rows = tn_reshape(tn_permute(q, TN_DIMS(2, 0, 1, 3)), TN_SHAPE(h, b * p, n.d[3]));
    tn_tensor     *y = tn_reshape(tn_matmul(rows, tn_permute(r, TN_DIMS(1, 2, 0))), TN_SHAPE(h, b, p, width));
    if (s->column) y = tn_take_along(y, s->column, 3);
    else {
        y = tn_narrow(tn_reshape(y, TN_SHAPE(h, b, width, p)), 2, 1, width - 1);
        y = tn_narrow(tn_reshape(y, TN_SHAPE(h, b, p, width - 1)), 3, 0, keys);
    }
    return tn_permute(y, TN_DIMS(1, 0, 2, 3));
}

/* The stream after a layer. k, v: [B, H, S, d]. */
static tn_tensor *advance(tn_two_stream_layer *m, const stream *s, tn_tensor *k, tn_tensor *v, tn_tensor *r,
                          tn_tensor **weights)
{
    const tn__kept all = {NULL, 0};
    tn_tensor     *q = in_heads(s->x, m->q);
    if (!q || !k || !v) return NULL;
    const tn_shape n = tn_shape_of(q);
    const double   scale = 1 / sqrt((double)n.d[3]);
    tn_tensor     *bias =
        distance_scores(tn_mul_scalar(tn_add(q, m->r_r_bias), scale), r, s, tn_size(k, 2)); /* [B, H, P, S] */
    if (s->other) {
        tn_tensor *apart = tn_sub(tn_select(m->seg_embed, 0, 1), tn_select(m->seg_embed, 0, 0));
        tn_tensor *e = tn_sum(tn_mul(tn_add(q, m->r_s_bias), tn_mul_scalar(apart, scale)), .dims = TN_DIMS(-1));
        bias = tn_add(bias, tn_mul(tn_unsqueeze(tn_permute(e, TN_DIMS(0, 2, 1)), 3), s->other));
    }
    if (s->blocked) bias = tn_masked_fill(bias, s->blocked, -INFINITY);
    q = tn_permute(tn_add(q, m->r_w_bias), TN_DIMS(0, 2, 1, 3));
    tn_tensor *y =
        tn_attention(q, k, v, .attn_mask = bias, .scale = scale, .order = TN_DIMS(0, 2, 1, 3), .weights = weights,
                     .dropout = m->dropout->base.training ? m->dropout->p : 0); /* [B, P, H, d] */
    y = tn_reshape(y, TN_SHAPE(n.d[0], n.d[1], n.d[2] * n.d[3]));
    y = tn_linear(y, tn_reshape(m->o, TN_SHAPE(tn_size(m->o, 0), n.d[2] * n.d[3])), NULL);
    tn_tensor *x = tn__add_and_norm(s->x, y, m->dropout, m->attention_norm, all).normed;
    tn_tensor *h = tn_call(m->dropout, tn__linear_activated(m->layer_1, x, m->activation));
    return tn__add_and_norm(x, tn_call(m->layer_2, h), m->dropout, m->ff_norm, all).normed;
}

/* Advances both streams; h: also the content stream. r: the sinusoids. */
static void run_layer(tn_two_stream_layer *m, stream *content, stream *query, tn_tensor *memory, tn_tensor *r, bool h,
                      tn_tensor **weights)
{
    tn_tensor *x = NULL, *g = NULL, *w = NULL;
    if (!tn_ready(m)) return;
    const tn_frame f = tn_enter(m);
    tn_tensor     *seen = memory ? tn_cat(1, memory, content->x) : content->x;
    tn_tensor     *k = tn_permute(in_heads(seen, m->k), TN_DIMS(0, 2, 1, 3));
    tn_tensor     *v = tn_permute(in_heads(seen, m->v), TN_DIMS(0, 2, 1, 3));
    const tn_shape s = tn_shape_of(m->r);
    r = tn_reshape(tn_matmul(r, tn_reshape(m->r, TN_SHAPE(s.d[0], s.d[1] * s.d[2]))), TN_SHAPE(-1, s.d[1], s.d[2]));
    if (h) x = advance(m, content, k, v, r, weights ? &w : NULL);
    if (query->x) g = advance(m, query, k, v, r, NULL);
    tn_leave_n(f, &x, &g, &w);
    content->x = x, query->x = g;
    if (weights) *weights = w;
}

/* ---- what the layers share --------------------------------------------------------------------------------------- */

/* [T + S, dim]: sines, then cosines of the distances S … 1 - T, computed in f32 as in Hugging Face's transformers. */
static tn_tensor *sinusoids(const tn_two_stream *m, int64_t queries, int64_t keys, tn_dtype dt)
{
    const int64_t rows = queries + keys, half = m->dim / 2, most = m->clamp ? m->clamp : INT64_MAX;
    tn_tensor    *t = tn_empty(TN_SHAPE(rows, m->dim));
    float        *to = t ? tn_data_mut(t) : NULL;
    for (int64_t k = 0; to && k < half; k++) {
        const float turn = 1 / (float)tn__libm_pow(10000, (double)((float)(2 * k) / (float)m->dim));
        for (int64_t i = 0; i < rows; i++) {
            const int64_t far = tn__max_i64(-most, tn__min_i64(keys - i, most));
            const double  angle = (double)((float)far * turn);
            to[i * m->dim + k] = (float)sin(angle), to[i * m->dim + half + k] = (float)cos(angle);
        }
    }
    return dt == TN_F32 ? t : tn_to(t, dt);
}

/* at: i64 [B, P], the queries' positions; NULL: all T. self: a token sees itself. NULL: nothing is blocked, or
 * raised. */
static tn_tensor *blocked_keys(const tn_two_stream *m, const tn_two_stream_args *a, tn_tensor *at, int64_t before,
                               bool self)
{
    if (!a->blocked && !a->key_padding_mask && !m->causal) return NULL;
    const int64_t  n = tn_size(a->x, 1), rows = tn_size(a->x, 0), p = at ? tn_size(at, 1) : n, keys = before + n;
    const uint8_t *mask = a->blocked ? tn_data(tn_contiguous(a->blocked)) : NULL;
    const uint8_t *pad = a->key_padding_mask ? tn_data(tn_contiguous(a->key_padding_mask)) : NULL;
    tn_tensor     *t = tn_zeros_of(TN_BOOL, TN_SHAPE(rows, 1, p, keys));
    uint8_t       *to = tn_error() == TN_OK ? tn_data_mut(t) : NULL;
    for (int64_t b = 0; to && b < rows; b++)
        for (int64_t q = 0; q < p; q++, to += keys) {
            const int64_t i = at ? tn_get_i64(at, b * p + q) : q;
            for (int64_t j = 0; j < n; j++)
                to[before + j] =
                    ((mask && mask[(b * n + i) * n + j]) || (pad && pad[b * n + j]) || (m->causal && j > i)) &&
                    !(self && i == j);
        }
    return t;
}

static tn_tensor *other_segments(const tn_two_stream_args *a, tn_tensor *at, int64_t before, tn_dtype dt)
{
    if (!a->segments) return NULL;
    tn_tensor *s = tn_to(a->segments, TN_I64), *own = at ? tn_gather(s, 1, at) : s;
    if (before) s = tn_cat(1, tn_zeros_of(TN_I64, TN_SHAPE(tn_size(s, 0), before)), s);
    return tn_to(tn_unsqueeze(tn_ne(tn_unsqueeze(own, 2), tn_unsqueeze(s, 1)), 1), dt);
}

/* ---- queries at chosen positions --------------------------------------------------------------------------------- */

typedef struct {
    tn_tensor *at;   /* i64 [B, P]: positions in the rows; P is the largest number in a row, others repeat 0 */
    tn_tensor *slot; /* i64 [N]: the place of each query in [B · P] */
} places;

static places places_of(tn_tensor *targets, int64_t rows, int64_t length)
{
    const int64_t n = tn_numel(targets);
    tn_tensor    *count = tn_zeros_of(TN_I64, TN_SHAPE(rows)), *slot = tn_empty_of(TN_I64, TN_SHAPE(n));
    int64_t *used = tn_error() == TN_OK ? tn_data_mut(count) : NULL, *to = used ? tn_data_mut(slot) : NULL, most = 1;
    for (int64_t i = 0; to && i < n && tn_error() == TN_OK; i++) {
        const int64_t t = tn_get_i64(targets, i);
        if (t < 0 || t >= rows * length)
            tn_raise(TN_EINDEX, "two_stream: target %lld is position %lld, outside 0 … %lld", (long long)i,
                     (long long)t, (long long)(rows * length - 1));
        else to[i] = used[t / length]++, most = tn__max_i64(most, used[t / length]);
    }
    tn_tensor *at = tn_error() == TN_OK ? tn_zeros_of(TN_I64, TN_SHAPE(rows, most)) : NULL;
    int64_t   *place = at ? tn_data_mut(at) : NULL;
    for (int64_t i = 0; place && to && i < n; i++) {
        const int64_t t = tn_get_i64(targets, i);
        to[i] += t / length * most, place[to[i]] = t % length;
    }
    return (places){at, slot};
}

/* The query stream before the first layer. */
static stream query_stream(const tn_two_stream *m, const tn_two_stream_args *a, const places *p, int64_t before)
{
    const int64_t  n = tn_size(a->x, 1), rows = tn_size(a->x, 0), most = tn_size(p->at, 1);
    const tn_dtype dt = tn_dtype_of(a->x);
    stream         s = {.x = tn_index_copy(tn_zeros_of(dt, TN_SHAPE(rows * most, m->dim)), 0, p->slot, a->query)};
    tn_tensor     *first = tn_unsqueeze(tn_rsub_scalar(p->at, (double)n), 2); /* T - i */
    s.x = tn_reshape(s.x, TN_SHAPE(rows, most, m->dim));
    s.column = tn_unsqueeze(tn_add(first, tn_reshape(tn_arange(before + n), TN_SHAPE(1, 1, -1))), 0);
    s.blocked = blocked_keys(m, a, p->at, before, false);
    s.other = other_segments(a, p->at, before, dt);
    return s;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static bool expects(const char *what, tn_tensor *t, tn_shape want, bool mask)
{
    char text[192];
    if (!t || (tn_shape_equal(tn_shape_of(t), want) && (!mask || tn_dtype_of(t) == TN_BOOL))) return true;
    return tn__unexpected("two_stream", t, true, "%s must be %s%s", what, mask ? "bool " : "",
                          tn_shape_text(want, text, sizeof text));
}

static bool fits(const tn_two_stream *m, const tn_two_stream_args *a)
{
    if (!a->x || tn_ndim(a->x) != 3 || tn_size(a->x, 2) != m->dim)
        return tn__unexpected("two_stream", a->x, false, "x must be [B, T, %lld]", (long long)m->dim);
    const int64_t b = tn_size(a->x, 0), t = tn_size(a->x, 1);
    if (t < 1) return tn__unexpected("two_stream", a->x, false, "x has no tokens");
    if (!TN__NO_MISTAKE("two_stream",
                        TN__IF(!a->query != !a->targets, TN_EINVAL, ".query and .targets must be set together"),
                        TN__IF(a->memory && a->memory == (tn_tensor *const *)a->memory_out, TN_EINVAL,
                               ".memory_out must be another array than .memory"),
                        TN__IF_N(a->memory_length < 0 || a->reuse < 0, TN_EINVAL,
                                 ".memory_length is %lld and .reuse %lld, but both must be at least 0",
                                 a->memory_length, a->reuse)))
        return false;
    const int64_t before = a->memory && a->memory[0] && tn_ndim(a->memory[0]) == 3 ? tn_size(a->memory[0], 1) : 0;
    for (int64_t i = 0; a->memory && i < tn_length(m->layers); i++)
        if (!a->memory[i] || !expects(".memory", a->memory[i], TN_SHAPE(b, before, m->dim), false))
            return tn_error() != TN_OK
                       ? false
                       : tn_raise_false(TN_EINVAL, "two_stream: .memory of layer %lld is NULL", (long long)i);
    return expects(".blocked", a->blocked, TN_SHAPE(b, t, t), true) &&
           expects(".key_padding_mask", a->key_padding_mask, TN_SHAPE(b, t), true) &&
           expects(".segments", a->segments, TN_SHAPE(b, t), false) &&
           expects(".query", a->query, TN_SHAPE(a->targets ? tn_numel(a->targets) : 0, m->dim), false);
}

/* What the next call of a layer that reads x may see of this one. */
static tn_tensor *remember(const tn_two_stream_args *a, tn_tensor *memory, tn_tensor *x)
{
    if (a->reuse && a->reuse < tn_size(x, 1)) x = tn_narrow(x, 1, 0, a->reuse);
    if (memory) x = tn_cat(1, memory, x);
    const int64_t n = x ? tn_size(x, 1) : 0, most = a->memory_length && a->memory_length < n ? a->memory_length : n;
    return tn_detach(tn_narrow(x, 1, n - most, most));
}

/* The streams after all layers. */
static void run_layers(tn_two_stream *m, const tn_two_stream_args *a, stream *h, stream *g)
{
    const int64_t  n = tn_length(m->layers), t = tn_size(a->x, 1), before = a->memory ? tn_size(a->memory[0], 1) : 0;
    const tn_dtype dt = tn_dtype_of(m->layers ? ((tn_two_stream_layer *)tn_at(m->layers, 0))->r : NULL);
    tn_tensor     *r = tn_call(m->dropout, sinusoids(m, t, before + t, dt));
    *h = (stream){.x = a->x, .blocked = blocked_keys(m, a, NULL, before, true)};
    h->other = other_segments(a, NULL, before, tn_dtype_of(a->x));
    tn_path_push("layers");
    for (int64_t i = 0; i < n && tn_error() == TN_OK; i++) {
        tn_tensor *memory = a->memory ? a->memory[i] : NULL;
        const bool content = !a->query || a->content || a->weights || i + 1 < n;
        if (a->memory_out) a->memory_out[i] = remember(a, memory, h->x);
        run_layer(tn_at(m->layers, i), h, g, memory, r, content, a->weights ? a->weights + i : NULL);
    }
    tn_path_pop();
}

tn_tensor *tn_two_stream_run(tn_two_stream *m, tn_two_stream_args a)
{
    const int64_t n = m && m->layers ? tn_length(m->layers) : 0;
    for (int64_t i = 0; i < n; i++) {
        if (a.weights) a.weights[i] = NULL;
        if (a.memory_out && a.memory_out != a.memory) a.memory_out[i] = NULL;
    }
    if (a.content) *a.content = NULL;
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    const size_t   bytes = (size_t)(2 * n + 2) * sizeof(tn_tensor **);
    tn_tensor   ***all = fits(m, &a) ? tn__mem_get(bytes) : NULL, *y = NULL;
    if (!all) return tn_leave(f, NULL);
    stream h = {.x = NULL}, g = {.x = NULL};
    places p = {.at = NULL};
    if (a.query) p = places_of(a.targets, tn_size(a.x, 0), tn_size(a.x, 1));
    if (a.query && tn_error() == TN_OK) g = query_stream(m, &a, &p, a.memory ? tn_size(a.memory[0], 1) : 0);
    if (tn_error() == TN_OK) run_layers(m, &a, &h, &g);
    if (a.query && g.x) y = tn_index_select(tn_reshape(g.x, TN_SHAPE(-1, m->dim)), 0, p.slot);
    else y = h.x;
    int count = 0;
    all[count++] = &y;
    if (a.content) *a.content = h.x, all[count++] = a.content;
    for (int64_t i = 0; i < n; i++) {
        if (a.weights) all[count++] = a.weights + i;
        if (a.memory_out) all[count++] = a.memory_out + i;
    }
    tn_leave_list(f, count, (tn_tensor * *const *)all);
    tn__mem_put(all, bytes);
    return y;
}

/* ---- masks ------------------------------------------------------------------------------------------------------- */

tn_tensor *tn_permutation_mask(tn_tensor *order, tn_tensor *targets, int64_t rows, int64_t length)
{
    static const char *const who = "tn_permutation_mask";
    if (!tn__not_null(who, "targets", targets) || !tn__at_least(who, "rows", rows, 0) ||
        !tn__at_least(who, "length", length, 1))
        return NULL;
    if (order && !tn_shape_equal(tn_shape_of(order), TN_SHAPE(rows, length)))
        return tn__unexpected(who, order, false, "order must be [%lld, %lld]", (long long)rows, (long long)length),
               NULL;
    const tn_scope s = tn_scope_begin();
    tn_tensor     *own = tn_empty_of(TN_I64, TN_SHAPE(2, rows, length)); /* what a token sees is below; its own rank */
    tn_tensor     *mask = tn_empty_of(TN_BOOL, TN_SHAPE(rows, length, length));
    int64_t       *sees = tn_error() == TN_OK ? tn_data_mut(own) : NULL, *rank = sees ? sees + rows * length : NULL;
    uint8_t       *to = rank ? tn_data_mut(mask) : NULL;
    for (int64_t i = 0; to && i < rows * length; i++)
        rank[i] = order ? tn_get_i64(order, i) : -1, sees[i] = rank[i] < INT64_MAX ? rank[i] + 1 : rank[i];
    for (int64_t i = 0; to && i < tn_numel(targets) && tn_error() == TN_OK; i++) {
        const int64_t t = tn_get_i64(targets, i);
        if (t < 0 || t >= rows * length)
            tn_raise(TN_EINDEX, "%s: target %lld is position %lld, outside 0 … %lld", who, (long long)i, (long long)t,
                     (long long)(rows * length - 1));
        else if (order && rank[t] < 0)
            tn_raise(TN_EINVAL, "%s: target %lld, position %lld, has the rank %lld; expected at least 0", who,
                     (long long)i, (long long)t, (long long)rank[t]);
        else {
            if (!order) rank[t] = 0;
            sees[t] = rank[t];
        }
    }
    for (int64_t i = 0; to && tn_error() == TN_OK && i < rows * length; i++)
        for (int64_t j = 0, row = i / length * length; j < length; j++) *to++ = sees[i] <= rank[row + j];
    return tn_scope_return(s, tn_error() == TN_OK ? mask : NULL);
}
