/* dataset.c — the rows of tensors as a source of batches: in order, or in an order that seed and epoch decide. */
#include "models/fit/fit_private.h"

enum { PARTS = 8 };

struct tn_dataset {
    tn_tensor *part[PARTS]; /* x, y, more: kept; NULL where there is none */
    tn_tensor *order;       /* of this epoch, i64: kept; NULL: as they are */
    int64_t    rows, batch, epoch, at;
    bool       shuffle, drop_last;
    uint64_t   seed;
};

static bool check(const tn_dataset_config *c, tn_tensor *const part[PARTS])
{
    static const char who[] = "tn_dataset_new";
    if (!c->x) return tn_raise(TN_EINVAL, "%s: .x is NULL", who), false;
    if (c->batch < 0) return tn_raise(TN_EINVAL, "%s: .batch is %lld", who, (long long)c->batch), false;
    for (int i = 0; i < PARTS; i++) {
        char text[192];
        if (!part[i]) continue;
        if (!tn_ndim(part[i])) return tn_raise(TN_ESHAPE, "%s: a 0-d tensor has no rows", who), false;
        if (tn_size(part[i], 0) != tn_size(c->x, 0))
            return tn_raise(TN_ESHAPE, "%s: .x has %lld rows, but %s %s has %lld", who, (long long)tn_size(c->x, 0),
                            i == 1 ? ".y" : ".more", tn_shape_text(tn_shape_of(part[i]), text, sizeof text),
                            (long long)tn_size(part[i], 0)),
                   false;
    }
    return true;
}

tn_dataset *tn_dataset_create(tn_dataset_config c)
{
    tn_tensor *part[PARTS] = {c.x, c.y};
    memcpy(part + 2, c.more, sizeof c.more);
    if (tn__halted() || !check(&c, part)) return NULL;
    tn_dataset *r = tn_mem_get(sizeof *r);
    if (!r) return NULL;
    for (int i = 0; i < PARTS; i++) r->part[i] = tn_keep(part[i]);
    r->rows = tn_size(c.x, 0), r->batch = c.batch ? c.batch : 32;
    r->shuffle = c.shuffle, r->drop_last = c.drop_last, r->seed = c.seed;
    return r;
}

void tn_dataset_free(tn_dataset *r)
{
    if (!r) return;
    for (int i = 0; i < PARTS; i++) tn_drop(r->part[i]);
    tn_drop(r->order);
    tn_mem_put(r, sizeof *r);
}

static bool shuffle(tn_dataset *r)
{
    if (!r->shuffle || r->order) return true;
    tn_generator     g = {.seed = r->seed, .position = (uint64_t)r->epoch << 40}, *before = tn_use_generator(&g);
    tn_tensor *const order = tn_permutation(r->rows);
    tn_use_generator(before);
    if (order) r->order = tn_take(order);
    return order != NULL;
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
    tn_tensor *out[PARTS] = {NULL}, *index = r->order ? tn_narrow(r->order, 0, r->at, n) : NULL;
    for (int i = 0; i < PARTS; i++)
        if (r->part[i]) out[i] = index ? tn_index_select(r->part[i], 0, index) : tn_narrow(r->part[i], 0, r->at, n);
    if (tn_error() != TN_OK) return false;
    b->x = out[0], b->y = out[1], b->items = n;
    memcpy(b->more, out + 2, sizeof b->more);
    r->at += n;
    return true;
}

static void begin(void *user, const tn_json *at)
{
    tn_dataset   *r = user;
    const int64_t epoch = at ? tn_json_i64(tn_json_need(at, "epoch")) : 0;
    const int64_t row = at ? tn_json_i64(tn_json_need(at, "row")) : 0,
                  rows = at ? tn_json_i64(tn_json_need(at, "of")) : 0;
    if (tn_error() == TN_OK && at && (rows != r->rows || epoch < 0 || row < 0 || row > r->rows))
        tn_raise(TN_EINVAL, "tn_dataset_new: the run to go on with had %lld rows, these are %lld", (long long)rows,
                 (long long)r->rows);
    if (tn_error() != TN_OK) return;
    r->epoch = epoch, r->at = row;
    tn_drop(r->order), r->order = NULL;
}

static void save(void *user, tn_json_writer *w)
{
    const tn_dataset *r = user;
    tn_json_put_i64(w, "epoch", r->epoch);
    tn_json_put_i64(w, "row", r->at);
    tn_json_put_i64(w, "of", r->rows);
}

tn_source tn_dataset_source(tn_dataset *r)
{
    tn_source s = {.next = r ? next : NULL, .begin = begin, .save = save, .user = r};
    if (r) s.batches = r->rows / r->batch + (r->rows % r->batch && !r->drop_last);
    return s;
}
