/* dataset.c — the rows of tensors, or some of them, as a source of batches: in order, shuffled, or drawn by weight. An
 * epoch's order depends only on seed and epoch. */
#include "data/loading.h"
#include "data/source/source_private.h"

#include <math.h>

enum { PARTS = 2 + TN_BATCH_FIELDS };

struct tn_dataset {
    tn_field   part[PARTS]; /* x, y, fields: kept, contiguous; NULL: not given */
    tn_tensor *order;       /* row order of this epoch, i64, kept; NULL: in order */
    tn_tensor *subset;      /* of a split: its rows, i64, kept; else NULL */
    tn_tensor *cumulative;  /* sums of the weights, f64, kept; NULL: not by weight */
    tn_shard   shard;
    int64_t    rows, batch, epoch, at; /* at: first row of the next batch */
    bool       shuffle, drop_last;
    uint64_t   seed;
};

static bool check(const tn_dataset_config *c, const tn_field part[PARTS])
{
    static const char who[] = "tn_dataset_new";
    char              text[192];
    if (!c->x) return tn_raise_false(TN_EINVAL, "%s: .x is NULL", who);
    if (c->batch < 1)
        return tn_raise_false(TN_EINVAL, "%s: .batch is %lld, expected at least 1", who, (long long)c->batch);
    for (int i = 0; i < PARTS; i++) {
        const tn_tensor *t = part[i].tensor;
        if (t && !part[i].name) return tn_raise_false(TN_EINVAL, "%s: a tensor of .fields has no name", who);
        if (i > 1 && part[i].name && !t)
            return tn_raise_false(TN_EINVAL, "%s: the field '%.60s' is NULL", who, part[i].name);
        for (int k = 0; i > 1 && t && k < i; k++)
            if (part[k].name && part[k].tensor && !strcmp(part[k].name, part[i].name))
                return tn_raise_false(TN_EINVAL, "%s: the field '%.60s' is given twice", who, part[i].name);
        if (!t) continue;
        if (!tn_ndim(t)) return tn_raise_false(TN_ESHAPE, "%s: a 0-d tensor has no rows", who);
        if (tn_size(t, 0) != tn_size(c->x, 0))
            return tn_raise_false(TN_ESHAPE, "%s: .x has %lld rows, but .%.60s %s has %lld", who,
                                  (long long)tn_size(c->x, 0), part[i].name,
                                  tn_shape_text(tn_shape_of(t), text, sizeof text), (long long)tn_size(t, 0));
    }
    return true;
}

/* The sums of the weights, kept. NULL: raised. */
static tn_tensor *cumulative(const tn_tensor *weights, int64_t rows)
{
    static const char who[] = "tn_dataset_new";
    char              text[192];
    double            sum = 0;
    if (tn_ndim(weights) != 1 || tn_numel(weights) != rows)
        return tn_raise_null(TN_ESHAPE, "%s: .weights is %s, expected [%lld], one for each row", who,
                             tn_shape_text(tn_shape_of(weights), text, sizeof text), (long long)rows);
    tn_tensor *sums = tn_empty_of(TN_F64, TN_SHAPE(rows));
    double    *to = sums ? tn_data_mut(sums) : NULL;
    for (int64_t i = 0; to && i < rows; i++) {
        const double w = tn_get(weights, i);
        if (!(w >= 0 && w < INFINITY))
            return tn_raise_null(TN_EINVAL, "%s: weight %lld is %g, expected a finite number of at least 0", who,
                                 (long long)i, w);
        to[i] = sum += w;
    }
    if (to && rows && !(sum > 0 && sum < INFINITY))
        return tn_raise_null(TN_EINVAL, "%s: the weights add up to %g, expected a finite number above 0", who, sum);
    return sums ? tn_take(sums) : NULL;
}

/* A kept contiguous tensor: t or a copy of it. */
static tn_tensor *kept(tn_tensor *t)
{
    if (!t || tn_is_contiguous(t)) return tn_keep(t);
    tn_tensor *copy = tn_empty_like(t);
    if (!copy || tn_copy_from(copy, t) != TN_OK) return NULL;
    return tn_take(copy);
}

tn_dataset *tn_dataset_create(tn_dataset_config c)
{
    tn_field part[PARTS] = {{"x", c.x}, {"y", c.y}};
    memcpy(part + 2, c.fields, sizeof c.fields);
    if (tn__blocked() || !check(&c, part)) return NULL;
    tn_dataset *r = tn_mem_get(sizeof *r);
    if (!r) return NULL;
    for (int i = 0; i < PARTS; i++) r->part[i] = (tn_field){part[i].name, kept(part[i].tensor)};
    r->rows = tn_size(c.x, 0), r->batch = c.batch;
    r->shuffle = c.shuffle, r->drop_last = c.drop_last, r->seed = c.seed;
    if (c.weights && tn_error() == TN_OK) r->cumulative = cumulative(c.weights, r->rows);
    if (tn_error() != TN_OK) tn_dataset_free(r), r = NULL;
    return r;
}

void tn_dataset_free(tn_dataset *r)
{
    if (!r) return;
    for (int i = 0; i < PARTS; i++) tn_drop(r->part[i].tensor);
    tn_drop(r->order), tn_drop(r->subset), tn_drop(r->cumulative);
    tn_mem_put(r, sizeof *r);
}

/* Rows drawn with replacement: the first whose sum exceeds a random number below the sum of all. */
static tn_tensor *drawn(const tn_dataset *r, tn_generator *g)
{
    tn_tensor    *order = tn_empty_of(TN_I64, TN_SHAPE(r->rows));
    int64_t      *to = order ? tn_data_mut(order) : NULL;
    const double *sum = tn_data(r->cumulative);
    for (int64_t i = 0; to && i < r->rows; i++) {
        const double at = tn_random_double(g) * sum[r->rows - 1];
        int64_t      low = 0, high = r->rows - 1;
        while (low < high) {
            const int64_t middle = low + (high - low) / 2;
            if (sum[middle] > at) high = middle;
            else low = middle + 1;
        }
        while (low && sum[low - 1] == sum[low]) low--; /* at was rounded up to the sum of all */
        to[i] = low;
    }
    return order;
}

static bool shuffle(tn_dataset *r)
{
    if (r->order || !(r->shuffle || r->subset || r->cumulative)) return true;
    tn_generator     g = {.seed = r->seed, .position = (uint64_t)r->epoch << 40}, *before = tn_use_generator(&g);
    tn_tensor *const order = r->cumulative ? drawn(r, &g) : r->shuffle ? tn_permutation(r->rows) : tn_arange(r->rows);
    int64_t         *to = order && r->subset ? tn_data_mut(order) : NULL;
    tn_use_generator(before);
    for (int64_t i = 0; to && i < r->rows; i++) to[i] = tn_get_i64(r->subset, to[i]);
    if (order) r->order = tn_take(order);
    return order != NULL;
}

/* n rows of t: rows from … from + n - 1, or order[from …] if order is not NULL. */
static tn_tensor *rows(const tn_tensor *t, const int64_t *order, int64_t from, int64_t n)
{
    tn_shape s = tn_shape_of(t);
    s.d[0] = n;
    tn_tensor           *to = tn_empty_of(tn_dtype_of(t), s);
    unsigned char       *out = to ? tn_data_mut(to) : NULL;
    const size_t         row = tn_numel(to) > 0 ? (size_t)(tn_numel(to) / n) * tn_dtype_size(tn_dtype_of(t)) : 0;
    const unsigned char *in = tn_data(t);
    if (!out || !in || !row) return to;
    if (!order) memcpy(out, in + (size_t)from * row, (size_t)n * row);
    for (int64_t i = 0; order && i < n; i++) memcpy(out + (size_t)i * row, in + (size_t)order[from + i] * row, row);
    return to;
}

static bool next(void *user, tn_batch *b)
{
    tn_dataset   *r = user;
    const int64_t left = r->rows - r->at, n = left < r->batch ? left : r->batch;
    if (!n || (n < r->batch && r->drop_last)) {
        r->epoch++, r->at = 0;
        tn_drop(r->order), r->order = NULL;
        return false;
    }
    if (!shuffle(r)) return false;
    const int64_t *order = r->order ? tn_data(r->order) : NULL;
    tn_batch_cut(b, r->shard, n);
    b->items = b->rows;
    for (int i = 0; i < PARTS; i++)
        if (r->part[i].tensor)
            tn_batch_put(b, r->part[i].name, rows(r->part[i].tensor, order, r->at + b->first, b->rows));
    if (tn_error() != TN_OK) return false;
    if (tn_shard_next(&r->shard)) r->at += n;
    return true;
}

static void begin(void *user, const tn_json *at)
{
    tn_dataset   *r = user;
    const int64_t epoch = at ? tn_json_i64(tn_json_need(at, "epoch")) : 0;
    const int64_t row = at ? tn_json_i64(tn_json_need(at, "row")) : 0,
                  rows = at ? tn_json_i64(tn_json_need(at, "of")) : 0;
    if (tn_error() == TN_OK && at && (rows != r->rows || epoch < 0 || row < 0 || row > r->rows))
        tn_raise(TN_EINVAL, "tn_dataset_new: the checkpoint is of a run with %lld rows, but the dataset has %lld",
                 (long long)rows, (long long)r->rows);
    if (tn_error() != TN_OK) return;
    r->epoch = epoch, r->at = row, tn_shard_rewind(&r->shard);
    tn_drop(r->order), r->order = NULL;
}

static void save(void *user, tn_json_writer *w)
{
    const tn_dataset *r = user;
    tn_json_put_i64(w, "epoch", r->epoch);
    tn_json_put_i64(w, "row", r->at);
    tn_json_put_i64(w, "of", r->rows);
}

static void shard(void *user, tn_shard s) { ((tn_dataset *)user)->shard = s; }

tn_source tn_dataset_source(tn_dataset *r)
{
    tn_source s = {.next = r ? next : NULL, .begin = begin, .save = save, .shard = shard, .user = r};
    if (r) s.batches = r->rows / r->batch + (r->rows % r->batch && !r->drop_last);
    return s;
}

/* ---- splits ------------------------------------------------------------------------------------------------------ */

/* Stores the number of rows of each part. False: raised. */
static bool part_rows(int64_t rows, int n, const double *shares, int64_t *to)
{
    int64_t left = rows;
    double  sum = 0;
    for (int i = 0; i < n; i++) {
        if (!(shares[i] >= 0 && shares[i] <= 1))
            return tn_raise_false(TN_EINVAL, "tn_random_split: share %d is %g, expected 0 to 1", i, shares[i]);
        sum += shares[i];
        left -= to[i] = (int64_t)floor(shares[i] * (double)rows);
    }
    if (fabs(sum - 1) > 1e-9 || left < 0)
        return tn_raise_false(TN_EINVAL, "tn_random_split: the shares add up to %.10g, expected 1", sum);
    for (int i = 0; left > 0; i = (i + 1) % n)
        if (shares[i] > 0) to[i]++, left--;
    return true;
}

/* A dataset of n rows from row `first` of order, with the tensors and options of `all`. NULL: raised. */
static tn_dataset *part_of(const tn_dataset *all, const tn_tensor *order, int64_t first, int64_t n)
{
    tn_dataset *r = tn_mem_get(sizeof *r);
    tn_tensor  *subset = r ? tn_empty_of(TN_I64, TN_SHAPE(n)) : NULL;
    int64_t    *to = subset ? tn_data_mut(subset) : NULL;
    for (int64_t i = 0; to && i < n; i++) to[i] = tn_get_i64(order, first + i);
    if (!r) return NULL;
    *r = (tn_dataset){
        .rows = n, .batch = all->batch, .shuffle = all->shuffle, .drop_last = all->drop_last, .seed = all->seed};
    for (int i = 0; i < PARTS; i++) r->part[i] = (tn_field){all->part[i].name, tn_keep(all->part[i].tensor)};
    if (subset) return r->subset = tn_take(subset), r;
    tn_dataset_free(r);
    return NULL;
}

tn_status tn_random_split(const tn_dataset *all, uint64_t seed, int n, const double *shares, tn_dataset **out)
{
    enum { MOST = 64 };
    int64_t rows[MOST], first = 0;
    for (int i = 0; out && i < n && i < MOST; i++) out[i] = NULL;
    if (tn__blocked()) return tn_error();
    if (!all || !shares || !out || n < 1 || n > MOST)
        return tn_raise(TN_EINVAL,
                        "tn_random_split: needs a dataset, 1 to %d shares and an array for the results; got %d", MOST,
                        n);
    if (all->subset || all->cumulative)
        return tn_raise(TN_EUNSUPPORTED, "tn_random_split: the dataset %s; split the original one",
                        all->subset ? "is itself a split" : "has .weights");
    if (!part_rows(all->rows, n, shares, rows)) return tn_error();
    const tn_scope s = tn_scope_begin();
    tn_generator   g = {.seed = seed}, *before = tn_use_generator(&g);
    tn_tensor     *order = tn_permutation(all->rows);
    tn_use_generator(before);
    for (int i = 0; i < n; first += rows[i++]) out[i] = order ? part_of(all, order, first, rows[i]) : NULL;
    for (int i = 0; i < n && tn_error() != TN_OK; i++) tn_dataset_free(out[i]), out[i] = NULL;
    tn_scope_end(s);
    return tn_error();
}
