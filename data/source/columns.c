/* columns.c — a text as contiguous columns, for truncated back-propagation through time: each batch continues where the
 * last one ended. */
#include "core/base/toolbox.h"
#include "data/sequences.h"

#include <math.h>

struct tn_columns {
    const int32_t    *ids;
    int64_t           rows, at, epoch; /* tokens of a column; position of the next batch; epoch */
    tn_shard          shard;
    tn_columns_config c;
};

tn_columns *tn_columns_create(const int32_t *ids, int64_t n, tn_columns_config c)
{
    if (tn__blocked()) return NULL;
    if (c.batch < 1 || c.length < 1)
        return tn_raise_null(TN_EINVAL, "tn_columns_new: .batch is %lld and .length %lld, but both must be at least 1",
                             (long long)c.batch, (long long)c.length);
    if (!ids || n < 2 * c.batch)
        return tn_raise_null(
            TN_EINVAL,
            "tn_columns_new: %lld tokens are too few for %lld columns; use a longer text or a smaller .batch",
            (long long)n, (long long)c.batch);
    tn_columns *s = tn_mem_get(sizeof *s);
    if (s) *s = (tn_columns){.ids = ids, .rows = n / c.batch, .c = c};
    return s;
}

void tn_columns_free(tn_columns *s)
{
    if (s) tn_mem_put(s, sizeof *s);
}

/* A random batch length as in AWD-LSTM: around .length, with probability 0.05 around its half, at least 5. It depends
 * only on seed, epoch and position, so that it is the same for all shards of a batch. */
static int64_t length_now(const tn_columns *s)
{
    if (!s->c.vary) return s->c.length;
    tn_generator g = {.seed =
                          tn__fnv1a_i64(tn__fnv1a_i64(tn__fnv1a_i64(TN__FNV1A, (int64_t)s->c.seed), s->epoch), s->at)};
    const double about = (double)s->c.length * (tn_random_double(&g) < 0.95 ? 1 : 0.5);
    double       normal = -6; /* the sum of twelve uniform numbers minus six: deviation 1 */
    for (int i = 0; i < 12; i++) normal += tn_random_double(&g);
    return (int64_t)fmax(5, about + 5 * normal);
}

static bool next(void *user, tn_batch *b)
{
    tn_columns   *s = user;
    const int64_t left = s->rows - 1 - s->at; /* each token needs the next one as target */
    if (left < 1) return s->at = 0, s->epoch++, false;
    const int64_t all = length_now(s), n = all < left ? all : left;
    tn_batch_cut(b, s->shard, s->c.batch);
    const int64_t rows = b->rows;
    b->x = tn_empty_of(TN_I64, TN_SHAPE(rows, n)), b->y = tn_empty_of(TN_I64, TN_SHAPE(rows, n));
    int64_t *x = b->x ? tn_data_mut(b->x) : NULL, *y = b->y ? tn_data_mut(b->y) : NULL;
    for (int64_t i = 0; x && y && i < rows * n; i++) {
        const int32_t *from = s->ids + (b->first + i / n) * s->rows + s->at + i % n;
        x[i] = from[0], y[i] = from[1];
    }
    if (!s->at) tn_batch_put(b, "fresh", tn_ones(TN_SHAPE(1)));
    if (s->c.vary) tn_batch_put(b, "share", tn_full(TN_SHAPE(1), (double)n / (double)s->c.length));
    b->items = rows * n;
    if (tn_error() != TN_OK) return false;
    if (tn_shard_next(&s->shard)) s->at += n;
    return true;
}
static void begin(void *user, const tn_json *at)
{
    tn_columns   *s = user;
    const int64_t position = at ? tn_json_i64(tn_json_need(at, "at")) : 0;
    s->at = position >= 0 && position <= s->rows ? position : 0;
    s->epoch = at ? tn_json_i64(tn_json_need(at, "epoch")) : 0;
    tn_shard_rewind(&s->shard);
}
static void save(void *user, tn_json_writer *w)
{
    const tn_columns *s = user;
    tn_json_put_i64(w, "at", s->at), tn_json_put_i64(w, "epoch", s->epoch);
}
static void shard(void *user, tn_shard to) { ((tn_columns *)user)->shard = to; }

tn_source tn_columns_source(tn_columns *s)
{
    tn_source source = {.next = next, .begin = begin, .save = save, .shard = shard, .user = s};
    if (s && !s->c.vary) source.batches = (s->rows - 2) / s->c.length + 1;
    return source;
}
