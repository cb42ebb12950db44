/* pairs_batches.c — pairs of lines as tensors: padded to the longest of their batch, with masks for the padding. */
#include "data/pairs/pairs_private.h"
#include "core/base/toolbox.h"
#include "data/corpus/batch_plan.h"

struct tn_parallel_batches {
    const tn_parallel *pairs;
    tn_batching        how;
    tn__plan           plan;
    int64_t            planned; /* the epoch of the plan, -1: none */
    tn_data_position   next;
};

static bool plan(tn_parallel_batches *b)
{
    if (b->planned == b->next.epoch || (b->planned >= 0 && b->how.in_order)) return true;
    b->planned = -1;
    const tn_parallel *p = b->pairs;
    if (!tn__plan_make(&b->plan, p->n, p->side[0].length, p->side[1].length, &b->how, b->next.epoch)) return false;
    b->planned = b->next.epoch;
    return true;
}

tn_parallel_batches *tn_parallel_batches_new(const tn_parallel *p, tn_batching how)
{
    if (tn__blocked()) return NULL;
    if (!p || !p->n) {
        tn_raise(TN_EINVAL, "tn_parallel_batches_new: %s", p ? "there are no pairs" : "p is NULL");
        return NULL;
    }
    if (!tn__batching_check("tn_parallel_batches_new", &how)) return NULL;
    tn_parallel_batches *b = tn__mem_zeroed(sizeof *b);
    if (!b) return NULL;
    b->pairs = p, b->how = how, b->planned = -1;
    if (!plan(b)) tn_parallel_batches_free(b), b = NULL;
    return b;
}

void tn_parallel_batches_free(tn_parallel_batches *b)
{
    if (!b) return;
    tn__plan_free(&b->plan);
    tn__mem_put(b, sizeof *b);
}

int64_t tn_parallel_batches_count(const tn_parallel_batches *b) { return b ? b->plan.batches : 0; }

tn_data_position tn_parallel_position(const tn_parallel_batches *b) { return b ? b->next : (tn_data_position){0, 0}; }

tn_status tn_parallel_seek(tn_parallel_batches *b, tn_data_position to)
{
    if (tn__blocked()) return tn__self.error;
    if (!b || to.epoch < 0 || to.batch < 0 || to.epoch >= (int64_t)1 << 27)
        return tn_raise(TN_EINVAL, "tn_parallel_seek: %s", b ? "epoch and batch count from 0" : "b is NULL");
    tn_data_position old = b->next;
    b->next = to;
    if (!plan(b) || to.batch > b->plan.batches) {
        if (tn__self.error == TN_OK)
            tn_raise(TN_EINDEX, "tn_parallel_seek: batch %lld; epoch %lld has %lld", (long long)to.batch,
                     (long long)to.epoch, (long long)b->plan.batches);
        b->next = old;
    }
    return tn__self.error;
}

/* Row by row: what comes first (-1: nothing), the tokens, the end (-1: none), and pad up to the width. */
static tn_tensor *rows(const tn_parallel *p, int side, const uint32_t *order, int64_t n, int64_t width, int32_t first,
                       int32_t end)
{
    const tn__side *s = &p->side[side];
    tn_tensor      *t = tn_empty_of(TN_I64, (tn_shape){2, {n, width}});
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
    tn_tensor *t = tn_empty_of(TN_BOOL, (tn_shape){2, {n, width}});
    uint8_t   *to = tn_data_mut(t);
    for (int64_t i = 0; to && i < n; i++, to += width)
        for (int64_t j = 0; j < width; j++) to[j] = j >= s->length[order[i]];
    return t;
}

bool tn_parallel_next(tn_parallel_batches *b, tn_parallel_batch *to)
{
    if (tn__blocked()) return false;
    if (!b || !to) return tn_raise(TN_EINVAL, "tn_parallel_next: %s is NULL", b ? "to" : "b"), false;
    *to = (tn_parallel_batch){0};
    if (!plan(b)) return false;
    if (b->next.batch >= b->plan.batches) {
        b->next = (tn_data_position){b->next.epoch + 1, 0};
        return false;
    }
    const tn_parallel *p = b->pairs;
    const uint32_t    *order = b->plan.order + b->plan.first[b->next.batch];
    int64_t            n = b->plan.first[b->next.batch + 1] - b->plan.first[b->next.batch], width[2] = {1, 1};
    for (int64_t i = 0; i < n; i++) {
        for (int k = 0; k < 2; k++) width[k] = tn__max_i64(width[k], p->side[k].length[order[i]]);
        to->tokens += p->side[1].length[order[i]];
    }
    to->source = rows(p, 0, order, n, width[0], -1, p->config.end);
    to->source_padding = padding(&p->side[0], order, n, width[0]);
    to->target_in = rows(p, 1, order, n, width[1], p->config.begin, -1);
    to->target_out = rows(p, 1, order, n, width[1], -1, p->config.end);
    to->target_padding = padding(&p->side[1], order, n, width[1]);
    to->pair = tn_empty_of(TN_I64, (tn_shape){1, {n}});
    int64_t *pair = tn_data_mut(to->pair);
    for (int64_t i = 0; pair && i < n; i++) pair[i] = order[i];
    if (tn__self.error != TN_OK) return *to = (tn_parallel_batch){0}, false;
    b->next.batch++;
    return true;
}
