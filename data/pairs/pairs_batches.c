/* pairs_batches.c — batches of pairs as tensors, padded to the longest of the batch, with padding masks. */
#include "data/pairs/pairs_private.h"
#include "core/base/toolbox.h"
#include "data/corpus/batch_plan.h"

struct tn_pairs_batches {
    const tn_pairs *pairs;
    tn__batching    how;
    tn_shard        shard;
    tn__plan        plan;
    int64_t         planned; /* epoch of the plan; -1: no plan */
    tn__position    next;
};

static bool plan(tn_pairs_batches *b)
{
    if (b->planned == b->next.epoch || (b->planned >= 0 && b->how.in_order)) return true;
    b->planned = -1;
    const tn_pairs *p = b->pairs;
    if (!tn__plan_make(&b->plan, p->n, p->side[0].length, p->side[1].length, &b->how, b->next.epoch)) return false;
    b->planned = b->next.epoch;
    return true;
}

tn_pairs_batches *tn_pairs_batches_create(const tn_pairs *p, tn_pairs_batches_config c)
{
    const tn__batching how = {.tokens = c.tokens, .examples = c.examples, .seed = c.seed, .in_order = c.in_order};
    if (tn__blocked()) return NULL;
    if (!p || !p->n) return tn_raise_null(TN_EINVAL, "tn_pairs_batches_new: %s", p ? "no pairs are left" : "p is NULL");
    if (!tn__batching_check("tn_pairs_batches_new", &how)) return NULL;
    tn_pairs_batches *b = tn__mem_zeroed(sizeof *b);
    if (!b) return NULL;
    b->pairs = p, b->how = how, b->planned = -1;
    if (!plan(b)) tn_pairs_batches_free(b), b = NULL;
    return b;
}

void tn_pairs_batches_free(tn_pairs_batches *b)
{
    if (!b) return;
    tn__plan_free(&b->plan);
    tn__mem_put(b, sizeof *b);
}

/* Each row: `first` (-1: none), the tokens, `end` (-1: none), and pad up to the width. */
static tn_tensor *rows(const tn_pairs *p, int side, const uint32_t *order, int64_t n, int64_t width, int32_t first,
                       int32_t end)
{
    const tn__side *s = &p->side[side];
    tn_tensor      *t = tn_empty_of(TN_I64, (tn_shape){.n = 2, .d = {n, width}});
    int64_t        *to = tn_data_mut(t);
    for (int64_t i = 0; to && i < n; i++, to += width) {
        int64_t        k = 0, length = s->length[order[i]] - 1;
        const int32_t *ids = s->ids.at + s->start[order[i]];
        if (first >= 0) to[k++] = first;
        for (int64_t j = 0; j < length; j++) to[k++] = ids[j];
        if (end >= 0) to[k++] = end;
        while (k < width) to[k++] = p->config.pad;
    }
    return t;
}

static tn_tensor *padding(const tn__side *s, const uint32_t *order, int64_t n, int64_t width)
{
    tn_tensor *t = tn_empty_of(TN_BOOL, (tn_shape){.n = 2, .d = {n, width}});
    uint8_t   *to = tn_data_mut(t);
    for (int64_t i = 0; to && i < n; i++, to += width)
        for (int64_t j = 0; j < width; j++) to[j] = j >= s->length[order[i]];
    return t;
}

/* ---- the source -------------------------------------------------------------------------------------------------- */

static bool source_next(void *user, tn_batch *to)
{
    tn_pairs_batches *b = user;
    if (tn__blocked() || !plan(b)) return false;
    if (b->next.batch >= b->plan.batches) {
        b->next = (tn__position){b->next.epoch + 1, 0};
        return false;
    }
    const tn_pairs *p = b->pairs;
    const uint32_t *order = tn__plan_batch(&b->plan, b->next.batch, b->shard, to);
    int64_t         n = to->rows, width[2] = {1, 1};
    for (int64_t i = 0; i < n; i++) {
        for (int k = 0; k < 2; k++) width[k] = tn__max_i64(width[k], p->side[k].length[order[i]]);
        to->items += p->side[1].length[order[i]];
    }
    to->x = rows(p, 0, order, n, width[0], -1, p->config.end);
    to->y = rows(p, 1, order, n, width[1] + 1, p->config.begin, p->config.end);
    tn_tensor *index = tn_empty_of(TN_I64, (tn_shape){.n = 1, .d = {n}});
    int64_t   *pair = tn_data_mut(index);
    for (int64_t i = 0; pair && i < n; i++) pair[i] = order[i];
    tn_batch_put(to, "source_padding", padding(&p->side[0], order, n, width[0]));
    tn_batch_put(to, "target_in", rows(p, 1, order, n, width[1], p->config.begin, -1));
    tn_batch_put(to, "target_out", rows(p, 1, order, n, width[1], -1, p->config.end));
    tn_batch_put(to, "target_padding", padding(&p->side[1], order, n, width[1]));
    if (tn_batch_put(to, "pair", index) != TN_OK) return *to = (tn_batch){.x = NULL}, false;
    if (tn_shard_next(&b->shard)) b->next.batch++;
    return true;
}

static void source_begin(void *user, const tn_json *at)
{
    tn_pairs_batches  *b = user;
    const tn__position to = tn__position_read(at), old = b->next;
    if (tn__blocked()) return;
    if (to.epoch < 0 || to.batch < 0 || to.epoch >= (int64_t)1 << 27) {
        tn_raise(TN_EINVAL, "tn_pairs_source: epoch and batch must be at least 0");
        return;
    }
    b->next = to, tn_shard_rewind(&b->shard);
    if (plan(b) && to.batch <= b->plan.batches) return;
    if (tn__self.error == TN_OK)
        tn_raise(TN_EINDEX, "tn_pairs_source: the checkpoint is at batch %lld, but epoch %lld has %lld",
                 (long long)to.batch, (long long)to.epoch, (long long)b->plan.batches);
    b->next = old;
}
static void source_save(void *user, tn_json_writer *w) { tn__position_write(((tn_pairs_batches *)user)->next, w); }
static void source_shard(void *user, tn_shard shard)
{
    tn_shard_rewind(&shard);
    if (tn__shard_check("tn_pairs_source", shard)) ((tn_pairs_batches *)user)->shard = shard;
}

tn_source tn_pairs_source(tn_pairs_batches *b)
{
    return (tn_source){.next = b ? source_next : NULL,
                       .begin = source_begin,
                       .save = source_save,
                       .shard = source_shard,
                       .user = b,
                       .batches = b ? b->plan.batches : 0};
}
