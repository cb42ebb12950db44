/* disentangled.c — the positions of disentangled attention (He et al. 2021): embeddings of relative positions, which a
 * stack's layers share, and the terms of the scores that they add.
 *
 *   c2p(i, j) = scale · q_i · pos_key[at(i, j)],   p2c(i, j) = scale · k_j · pos_query[at(i, j)]
 *
 * at(i, j) is the row of relative position i - j. Each term is a product with all rows, [B, heads, T, R] or
 * [B, heads, R, T], from which the scores are gathered.
 *
 * Relative position d = query - key has row bucket(d) + n, limited to 0 … 2 n - 1, where n is the number of buckets of
 * a direction. With m = buckets / 2 and M = distance
 *
 *   bucket(d) = d for |d| <= m;  else sign(d) · (⌈log(|d| / m) / log((M - 1) / m) · (m - 1)⌉ + m)
 *
 * in f32, as in Hugging Face's transformers. Without buckets bucket(d) is d, and n is M. */
#include "nn/attention/block.h"

#include <math.h>

static int64_t distance_rows(const tn_distances *m) { return m->of.buckets ? m->of.buckets : m->of.distance; }

static void distances_describe(const void *self, char *text, size_t size)
{
    const tn_distances *m = self;
    snprintf(text, size, "%lld, distance=%lld, buckets=%lld", (long long)tn_size(m->weight, 1),
             (long long)m->of.distance, (long long)m->of.buckets);
}
/* ---- the rows of relative positions ------------------------------------------------------------------------------ */

static float log_f32(float x) { return (float)tn__libm_log((double)x); }

/* The row of the weight for relative position d. */
static int64_t row_of(const tn_distances *m, int64_t d)
{
    const int64_t n = distance_rows(m), mid = m->of.buckets / 2, far = d < 0 ? -d : d;
    int64_t       bucket = d;
    if (m->of.buckets && far > mid) {
        const float part =
            log_f32((float)far / (float)mid) / log_f32((float)((double)(m->of.distance - 1) / (double)mid));
        const int64_t step = (int64_t)ceilf(part * (float)(mid - 1)) + mid;
        bucket = d < 0 ? -step : step;
    }
    return bucket < -n ? 0 : bucket >= n ? 2 * n - 1 : bucket + n;
}

/* The first of the used rows, and their number. The rows ascend with the relative position. */
static tn_tensor *used_rows(const tn_distances *m, int64_t length, int64_t *first, int64_t *count)
{
    tn_tensor *at = tn_empty_of(TN_I64, TN_SHAPE(length, length));
    int64_t   *to = at ? tn_data_mut(at) : NULL;
    if (!to) return NULL;
    const int64_t most = length ? length - 1 : 0;
    *first = row_of(m, -most), *count = row_of(m, most) - *first + 1;
    for (int64_t i = 0; i < length; i++) /* the first row and column hold all relative positions */
        to[i] = row_of(m, -i) - *first, to[i * length] = row_of(m, i) - *first;
    for (int64_t i = 1; i < length; i++)
        for (int64_t j = 1; j < length; j++) to[i * length + j] = to[(i - 1) * length + j - 1];
    return at;
}

tn_tensor *tn_distances_forward(tn_distances *m, int64_t length, tn_tensor **at)
{
    if (at) *at = NULL;
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    tn_tensor     *rows = NULL, *index = NULL;
    int64_t        first = 0, count = 0;
    if (!at) tn_raise(TN_EINVAL, "distances: at is NULL; pass the address of a tensor");
    else if (tn__within("distances", "length", length, 0, INT32_MAX)) index = used_rows(m, length, &first, &count);
    if (index) rows = tn_narrow(m->weight, 0, first, count);
    if (rows && m->norm) rows = tn_call(m->norm, rows);
    tn_leave_n(f, &rows, &index);
    if (at) *at = index;
    return rows;
}

/* ---- the terms of the scores ------------------------------------------------------------------------------------- */

static bool join(void *self, tn_mha *a)
{
    const tn_distances    *m = self;
    const int              terms = m->of.c2p + m->of.p2c;
    const tn_linear_config every = {.in = a->dim,
                                    .out = a->heads * a->head_dim,
                                    .no_bias = !a->in_proj_bias && !(a->q_proj && a->q_proj->bias),
                                    .dtype = tn_dtype_of(m->weight)};
    if (a->q_norm || a->kdim != a->dim || a->kv_heads != a->heads || tn_size(m->weight, 1) != a->dim)
        return tn_raise_false(TN_EINVAL,
                              "distances: they need .dim = %lld, and exclude .qk_norm, .kdim, and fewer .kv_heads than "
                              ".heads",
                              (long long)tn_size(m->weight, 1));
    if (a->scores.scale == 0) a->scores.scale = 1 / sqrt((double)a->head_dim * (1 + terms));
    if (!m->of.own_projs) return true;
    if (m->of.c2p) a->pos_key_proj = tn_child(a, "pos_key_proj", tn_linear_create(every));
    if (m->of.p2c) a->pos_query_proj = tn_child(a, "pos_query_proj", tn_linear_create(every));
    return tn_error() == TN_OK;
}

static bool place(void *m, tn_placed *p)
{
    if (p->cache) return tn_raise_false(TN_EUNSUPPORTED, "distances: .cache is not supported");
    p->made[0] = tn_distances_forward(m, p->queries, &p->made[1]);
    return tn_error() == TN_OK;
}

/* The scores of a term: dim 3 or 2 of the products of heads with all rows, gathered. */
static tn_tensor *term(const tn_mha *m, tn_tensor *heads, tn_tensor *rows, tn_tensor *at, int dim)
{
    rows = tn_mul_scalar(rows, m->scores.scale);
    return tn_take_along(
        dim == 3 ? tn_matmul(heads, tn_transpose(rows, 2, 3)) : tn_matmul(rows, tn_transpose(heads, 2, 3)), at, dim);
}

/* Queries (of: 0) or keys (1) of the relative positions, [1, heads, R, D]. */
static tn_tensor *heads_of_rows(const tn_mha *m, tn_tensor *rows, int of)
{
    return tn__mha_heads(m, of ? m->pos_key_proj : m->pos_query_proj, tn_unsqueeze(rows, 0), of);
}

static tn_tensor *scores(void *self, const tn_placed *p, tn_tensor *q, tn_tensor *k)
{
    const tn_distances *m = self;
    const tn_mha       *a = p->attention;
    tn_tensor          *rows = p->made[0], *at = p->made[1], *of[2] = {NULL, NULL};
    if (!rows || !at || tn_ndim(rows) != 2 || tn_size(rows, 1) != a->dim)
        return tn__unexpected("distances", rows, false,
                              "the rows must be [R, %lld], as returned by tn_distances_forward", (long long)a->dim),
               NULL;
    if (!tn_shape_equal(tn_shape_of(at), TN_SHAPE(p->queries, p->keys)))
        return tn__unexpected("distances", at, false, "the index must be [T, S] = [%lld, %lld]", (long long)p->queries,
                              (long long)p->keys),
               NULL;
    rows = tn_call(m->dropout, rows);
    if (m->of.p2c) of[0] = heads_of_rows(a, rows, 0);
    if (m->of.c2p) of[1] = heads_of_rows(a, rows, 1);
    if (tn_error() != TN_OK) return NULL;
    at = tn_reshape(at, TN_SHAPE(1, 1, p->queries, p->keys));
    tn_tensor *p2c = of[0] ? term(a, k, of[0], at, 2) : NULL, *sum = of[1] ? term(a, q, of[1], at, 3) : p2c;
    return of[0] && of[1] ? tn_add(sum, p2c) : sum;
}

static const tn_position_ops ops = {.join = join, .place = place, .scores = scores, .name = "distances"};
static const tn_class        tn_distances_class = {.size = sizeof(tn_class),
                                                   .name = "Distances",
                                                   .bytes = sizeof(tn_distances),
                                                   .describe = distances_describe,
                                                   .positions = &ops};

tn_distances *tn_distances_create(tn_distances_config c)
{
    static const char *const who = "tn_distances_new";
    const tn_disentangled    o = c.of;
    if (!tn__at_least(who, "dim", c.dim, 1) || !tn__within(who, "of.distance", o.distance, 1, 1 << 24) ||
        !tn__within(who, "of.buckets", o.buckets, 0, 1 << 24) || !tn__probability(who, "dropout", c.dropout) ||
        !tn__floating(who, c.dtype))
        return NULL;
    if (o.buckets == 1 || (o.buckets && o.distance - 1 <= o.buckets / 2))
        return tn_raise_null(TN_EINVAL,
                             "%s: .of.buckets is %lld and .of.distance is %lld; expected at least 2 buckets and a "
                             "distance of at least buckets / 2 + 2, or .of.buckets = 0 for none",
                             who, (long long)o.buckets, (long long)o.distance);
    tn_distances *m = tn_module_new(tn_distances);
    if (!m) return NULL;
    m->of = o;
    if (!o.c2p && !o.p2c) m->of.c2p = m->of.p2c = true;
    m->weight = tn_param(m, "weight", tn_normal_of(c.dtype, TN_SHAPE(2 * distance_rows(m), c.dim), 0, 0.02));
    if (!o.no_norm) m->norm = tn_child(m, "norm", tn_layer_norm_new(.dim = c.dim, .eps = c.eps, .dtype = c.dtype));
    m->dropout = tn_child(m, "dropout", tn_dropout_new(.p = c.dropout));
    return tn_built(m);
}
