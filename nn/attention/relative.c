/* relative.c — T5's relative positions (Raffel et al. 2020): a learned bias for each head and distance from a query to
 * a key, added to the score.
 *
 *   bias[h, t, s] = weight[bucket(s - t), h]
 *
 * Half of the buckets are for keys after the query; with .causal these keys use the bucket of distance 0. Of the n
 * buckets of one direction, the first n / 2 have one distance each. The width of the others grows with the logarithm of
 * the distance; the last one has all distances of at least `distance`. */
#include "nn/attention/checks.h"
#include "nn/base/nn_private.h"

#include <math.h>

static void relative_positions_describe(const void *self, char *text, size_t size)
{
    const tn_relative_positions *m = self;
    snprintf(text, size, "%lld, %lld, distance=%lld, causal=%s", (long long)m->buckets, (long long)m->heads,
             (long long)m->distance, tn__python_bool(m->causal));
}

static bool relative_join(void *self, tn_mha *attention)
{
    const tn_relative_positions *m = self;
    if (m->heads == attention->heads) return true;
    return tn_raise_false(TN_EINVAL, "relative_positions: .heads is %lld, but the attention has %lld",
                          (long long)m->heads, (long long)attention->heads);
}
static bool relative_place(void *m, tn_placed *p)
{
    p->made[0] = tn_relative_positions_forward(m, p->queries, p->keys);
    return tn_error() == TN_OK;
}
static tn_tensor *relative_scores(void *m, const tn_placed *p, tn_tensor *q, tn_tensor *k)
{
    (void)m, (void)q, (void)k;
    return p->made[0];
}

/* Hugging Face's T5 has the bias in its first layer. */
static const tn_position_ops ops = {.join = relative_join,
                                    .place = relative_place,
                                    .scores = relative_scores,
                                    .no_heads = true,
                                    .in_first_layer = true,
                                    .name = "relative"};
static const tn_class        tn_relative_positions_class = {.size = sizeof(tn_class),
                                                            .name = "RelativePositions",
                                                            .bytes = sizeof(tn_relative_positions),
                                                            .describe = relative_positions_describe,
                                                            .positions = &ops};

tn_relative_positions *tn_relative_positions_create(tn_relative_positions_config c)
{
    static const char *const who = "tn_relative_positions_new";
    const int64_t            least = c.causal ? 2 : 4;
    if (!tn__at_least(who, "heads", c.heads, 1) || !tn__within(who, "buckets", c.buckets, least, 1 << 20) ||
        !tn__within(who, "distance", c.distance, 1, INT32_MAX) || !tn__floating(who, c.dtype))
        return NULL;
    if (c.distance <= c.buckets / least)
        return tn_raise_null(
            TN_EINVAL,
            "%s: .distance is %lld, but must be more than %lld, the number of distances with a bucket of "
            "their own",
            who, (long long)c.distance, (long long)(c.buckets / least));
    tn_relative_positions *m = tn_module_new(tn_relative_positions);
    if (!m) return NULL;
    m->heads = c.heads, m->buckets = c.buckets, m->distance = c.distance, m->causal = c.causal;
    m->weight = tn_param(m, "weight", tn_normal_of(c.dtype, TN_SHAPE(c.buckets, c.heads), 0, 0.02));
    return tn_built(m);
}

/* far: position of the key minus position of the query. The logarithm is f32, as in Hugging Face's transformers. */
static int64_t bucket_of(const tn_relative_positions *m, int64_t far)
{
    int64_t n = m->buckets, from = 0;
    if (!m->causal) {
        n /= 2;
        if (far > 0) from = n;
        far = far < 0 ? -far : far;
    } else far = far < 0 ? -far : 0;
    const int64_t exact = n / 2;
    if (far < exact) return from + far;
    if (far >= m->distance) return from + n - 1;
    const float   part = logf((float)far / (float)exact) / (float)tn__libm_log((double)m->distance / (double)exact);
    const int64_t more = exact + (int64_t)(part * (float)(n - exact));
    return from + (more < n - 1 ? more : n - 1);
}

tn_tensor *tn_relative_positions_forward(tn_relative_positions *m, int64_t queries, int64_t keys)
{
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    if (!TN__NO_MISTAKE("relative_positions",
                        TN__IF_N(keys > INT32_MAX, TN_EINVAL, "%lld keys, at most %lld are supported", keys, INT32_MAX),
                        TN__IF_N(queries < 0 || queries > keys, TN_EINVAL,
                                 "%lld queries, but must be from 0 to the number of keys, %lld", queries, keys)))
        return tn_leave(f, NULL);
    tn_tensor *each = tn_empty_of(TN_I64, TN_SHAPE(queries + keys)), *at = tn_empty_of(TN_I64, TN_SHAPE(queries, keys));
    int64_t   *bucket = each ? tn_data_mut(each) : NULL, *to = at ? tn_data_mut(at) : NULL; /* bucket: by distance */
    for (int64_t i = 0; bucket && i < queries + keys; i++) bucket[i] = bucket_of(m, i - keys + 1);
    for (int64_t t = 0; bucket && to && t < queries; t++)
        for (int64_t s = 0; s < keys; s++) to[t * keys + s] = bucket[s - t + queries - 1];
    return tn_leave(f, tn_unsqueeze(tn_permute(tn_embedding(m->weight, at, -1, false), TN_DIMS(2, 0, 1)), 0));
}
