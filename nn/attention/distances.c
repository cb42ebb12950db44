/* distances.c — the embeddings of relative positions for disentangled attention (He et al. 2021).
 *
 * Relative position d = query - key has row bucket(d) + n, limited to 0 … 2 n - 1, where n is the number of buckets of
 * a direction. With m = buckets / 2 and M = distance
 *
 *   bucket(d) = d for |d| <= m;  else sign(d) · (⌈log(|d| / m) / log((M - 1) / m) · (m - 1)⌉ + m)
 *
 * in f32, as in Hugging Face's transformers. Without buckets bucket(d) is d, and n is M. */
#include "nn/base/nn_private.h"

#include <math.h>

static int64_t distance_rows(const tn_distances *m) { return m->buckets ? m->buckets : m->distance; }

static void distances_describe(const void *self, char *text, size_t size)
{
    const tn_distances *m = self;
    snprintf(text, size, "%lld, distance=%lld, buckets=%lld", (long long)tn_size(m->weight, 1), (long long)m->distance,
             (long long)m->buckets);
}
static const tn_class tn_distances_class = {
    .size = sizeof(tn_class), .name = "Distances", .bytes = sizeof(tn_distances), .describe = distances_describe};

tn_distances *tn_distances_create(tn_distances_config c)
{
    static const char *const who = "tn_distances_new";
    if (!tn__at_least(who, "dim", c.dim, 1) || !tn__within(who, "distance", c.distance, 1, 1 << 24) ||
        !tn__within(who, "buckets", c.buckets, 0, 1 << 24) || !tn__floating(who, c.dtype))
        return NULL;
    if (c.buckets == 1 || (c.buckets && c.distance - 1 <= c.buckets / 2))
        return tn_raise_null(TN_EINVAL,
                             "%s: .buckets is %lld and .distance is %lld; expected at least 2 buckets and a distance "
                             "of at least buckets / 2 + 2, or .buckets = 0 for none",
                             who, (long long)c.buckets, (long long)c.distance);
    tn_distances *m = tn_module_new(tn_distances);
    if (!m) return NULL;
    m->distance = c.distance, m->buckets = c.buckets;
    m->weight = tn_param(m, "weight", tn_normal_of(c.dtype, TN_SHAPE(2 * distance_rows(m), c.dim), 0, 0.02));
    if (!c.no_norm) m->norm = tn_child(m, "norm", tn_layer_norm_new(.dim = c.dim, .eps = c.eps, .dtype = c.dtype));
    return tn_built(m);
}

static float log_f32(float x) { return (float)tn__libm_log((double)x); }

/* The row of the weight for relative position d. */
static int64_t row_of(const tn_distances *m, int64_t d)
{
    const int64_t n = distance_rows(m), mid = m->buckets / 2, far = d < 0 ? -d : d;
    int64_t       bucket = d;
    if (m->buckets && far > mid) {
        const float part = log_f32((float)far / (float)mid) / log_f32((float)((double)(m->distance - 1) / (double)mid));
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
