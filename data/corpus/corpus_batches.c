/* corpus_batches.c — batches for a masked language model, prepared by a thread. The thread fills a ring of slots in the
 * order of the batches; the caller takes them in that order, and its position counts the batches taken. The content of
 * a batch depends only on its position, not on when or by which thread it is made. */
#include "core/system/system.h"

#include "data/corpus/corpus_examples.h"
#include "core/base/toolbox.h"
#include "data/corpus/batch_plan.h"

typedef struct {
    tn__mlm_rows rows;
    tn_batch     part;       /* the rows' place in the whole batch */
    bool         full, ends; /* ends: no batch, end of the epoch */
    bool         last;       /* the last part of its batch */
} slot;

struct tn_mlm {
    tn__examples examples;
    tn__batching how;
    tn_shard     shard; /* the producer's */
    int          taken; /* parts of the current batch that the caller has taken */
    tn__plan     plan;  /* the producer's plan, of epoch `planned`; -1: no plan */
    int64_t      planned, count;
    tn__position next, making; /* positions of the caller and the producer */
    slot        *slots;
    int          n, take, fill; /* number of slots; the next to take and to fill */

    bool            running, stop;
    pthread_t       thread;
    pthread_mutex_t lock;
    pthread_cond_t  changed;
    tn_status       failed; /* the thread's error and its message */
    char            text[sizeof((tn_error_state *)0)->text];
};

/* ---- making ------------------------------------------------------------------------------------------------------ */

static bool make(tn_mlm *b, slot *to)
{
    const tn__examples *x = &b->examples;
    int64_t             epoch = b->making.epoch;
    if (b->planned != epoch && !(b->planned >= 0 && b->how.in_order)) {
        b->planned = -1;
        if (!tn__plan_make(&b->plan, x->n, x->length, NULL, &b->how, epoch)) return false;
        b->planned = epoch;
    }
    to->ends = b->making.batch >= b->plan.batches;
    if (to->ends) {
        b->making = (tn__position){epoch + 1, 0};
        return true;
    }
    const uint32_t *examples = tn__plan_batch(&b->plan, b->making.batch, b->shard, &to->part);
    if (!tn__mlm_make(x, epoch, examples, to->part.rows, &to->rows)) return false;
    to->last = tn_shard_next(&b->shard);
    b->making.batch += to->last;
    return true;
}

static void *work(void *user)
{
    tn_mlm *b = user;
    pthread_mutex_lock(&b->lock);
    while (!b->stop && b->failed == TN_OK) {
        slot *s = &b->slots[b->fill];
        if (s->full) {
            pthread_cond_wait(&b->changed, &b->lock);
            continue;
        }
        pthread_mutex_unlock(&b->lock);
        bool made = make(b, s);
        pthread_mutex_lock(&b->lock);
        if (made) {
            s->full = true;
            b->fill = (b->fill + 1) % b->n;
        } else {
            b->failed = tn_error();
            snprintf(b->text, sizeof b->text, "%s", tn_error_message());
            tn_clear_error();
        }
        pthread_cond_broadcast(&b->changed);
    }
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

static void stop(tn_mlm *b)
{
    if (!b->running) return;
    pthread_mutex_lock(&b->lock);
    b->stop = true;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
    pthread_join(b->thread, NULL);
    b->running = b->stop = false;
}

/* Starts the thread if possible; without it the caller makes the batches. The thread receives no signals. */
static void start(tn_mlm *b)
{
    b->making = b->next, b->shard.done_ = b->taken, b->take = b->fill = 0, b->failed = TN_OK;
    for (int i = 0; i < b->n; i++) b->slots[i].full = false;
    if (b->running || !b->examples.config.ahead) return;
    b->running = tn__sys_thread(&b->thread, work, b);
}

/* ---- the caller's side ------------------------------------------------------------------------------------------- */

tn_mlm *tn_mlm_create(const tn_corpus *c, tn_mlm_config config)
{
    if (tn__blocked()) return NULL;
    if (!c) return tn_raise_null(TN_EINVAL, "tn_mlm_new: c is NULL");
    tn_mlm *b = tn__mem_zeroed(sizeof *b);
    if (!b) return NULL;
    b->planned = -1, b->how = tn__mlm_batching(&config);
    bool done = tn__examples_new(&b->examples, c, &config);
    if (done) {
        const tn__examples *x = &b->examples;
        b->n = x->config.ahead ? x->config.ahead : 1;
        done = (b->slots = tn__mem_zeroed((size_t)b->n * sizeof *b->slots)) &&
               tn__plan_make(&b->plan, x->n, x->length, NULL, &b->how, 0);
    }
    if (!done) {
        tn__examples_free(&b->examples);
        tn__plan_free(&b->plan);
        tn__mem_put(b->slots, (size_t)b->n * sizeof *b->slots);
        tn__mem_put(b, sizeof *b);
        return NULL;
    }
    b->planned = 0, b->count = b->plan.batches; /* depends only on the lengths: equal in all epochs */
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->changed, NULL);
    start(b);
    return b;
}

void tn_mlm_free(tn_mlm *b)
{
    if (!b) return;
    stop(b);
    pthread_mutex_destroy(&b->lock);
    pthread_cond_destroy(&b->changed);
    for (int i = 0; i < b->n; i++) tn__mlm_rows_free(&b->slots[i].rows);
    tn__mem_put(b->slots, (size_t)b->n * sizeof *b->slots);
    tn__examples_free(&b->examples);
    tn__plan_free(&b->plan);
    tn__mem_put(b, sizeof *b);
}

static tn_tensor *numbers(const tn_ids *ids, tn_shape s)
{
    tn_tensor *t = tn_empty_of(TN_I64, s);
    int64_t   *to = tn_data_mut(t);
    for (int64_t i = 0, n = to ? tn_shape_numel(s) : 0; i < n; i++) to[i] = ids->at[i];
    return t;
}

static void tensors(const tn_mlm *b, const tn__mlm_rows *r, tn_mlm_batch *to)
{
    tn_shape all = {.n = 2, .d = {r->rows, r->width}}, few = {.n = 1, .d = {r->masked}};
    to->ids = numbers(&r->ids, all);
    to->segments = tn_empty_of(TN_I64, all);
    to->padding = tn_empty_of(TN_BOOL, all);
    to->masked_at = tn_from_data(TN_I64, few, r->masked_at ? r->masked_at : &r->masked);
    to->masked_ids = numbers(&r->masked_ids, few);
    if (b->examples.config.pairs) to->next = numbers(&r->next, (tn_shape){.n = 1, .d = {r->rows}});
    if (b->examples.config.permuted) to->order = numbers(&r->order, all);
    to->tokens = r->tokens;
    int64_t *segment = tn_data_mut(to->segments);
    uint8_t *padding = tn_data_mut(to->padding);
    for (int64_t i = 0; segment && padding && i < r->rows; i++)
        for (int64_t j = 0; j < r->width; j++) {
            *padding++ = j >= r->used.at[i];
            *segment++ = j >= r->second.at[i] && j < r->used.at[i] ? 1 + b->examples.config.permuted : 0;
        }
}

/* The next slot, filled; NULL: raised. */
static slot *wait_for(tn_mlm *b)
{
    slot *s = &b->slots[b->take];
    if (!b->running) {
        if (!s->full) b->making = b->next, b->shard.done_ = b->taken, s->full = make(b, s);
        return s->full ? s : NULL;
    }
    pthread_mutex_lock(&b->lock);
    while (!s->full && b->failed == TN_OK) pthread_cond_wait(&b->changed, &b->lock);
    bool full = s->full;
    pthread_mutex_unlock(&b->lock);
    if (full) return s;
    stop(b); /* the thread has ended; the next call retries the batch that failed */
    tn_raise(b->failed, "%s", b->text);
    start(b);
    return NULL;
}

static bool take(tn_mlm *b, tn_mlm_batch *to, tn_batch *part)
{
    *to = (tn_mlm_batch){0};
    slot *s = wait_for(b);
    if (!s) return false;
    bool ends = s->ends;
    if (!ends) tensors(b, &s->rows, to);
    if (tn__self.error != TN_OK) return *to = (tn_mlm_batch){0}, false; /* the slot stays full */
    if (ends) b->next = (tn__position){b->next.epoch + 1, 0};
    else if (s->last) b->next.batch++, b->taken = 0;
    else b->taken++;
    *part = s->part;
    if (b->running) pthread_mutex_lock(&b->lock);
    s->full = false;
    b->take = (b->take + 1) % b->n;
    if (!b->running) return !ends;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
    return !ends;
}

bool tn_mlm_next(tn_mlm *b, tn_mlm_batch *to)
{
    tn_batch part;
    if (to) *to = (tn_mlm_batch){0};
    if (tn__blocked()) return false;
    if (!b || !to) return tn_raise_false(TN_EINVAL, "tn_mlm_next: %s is NULL", b ? "to" : "b");
    return take(b, to, &part);
}

/* ---- as a source ------------------------------------------------------------------------------------------------- */

static bool source_next(void *user, tn_batch *b)
{
    tn_mlm_batch m;
    if (tn__blocked() || !take(user, &m, b)) return false;
    b->x = m.ids, b->y = m.masked_ids, b->items = m.tokens, b->weight = (double)tn_numel(m.masked_ids);
    tn_batch_put(b, "segments", m.segments);
    tn_batch_put(b, "padding", m.padding);
    tn_batch_put(b, "masked_at", m.masked_at);
    tn_batch_put(b, "order", m.order);
    return tn_batch_put(b, "next", m.next) == TN_OK;
}
static void source_begin(void *user, const tn_json *at)
{
    tn_mlm            *b = user;
    const tn__position to = tn__position_read(at);
    if (tn__blocked()) return;
    if (to.epoch < 0 || to.batch < 0 || to.epoch >= (int64_t)1 << 27) {
        tn_raise(TN_EINVAL, "tn_mlm_source: epoch and batch must be at least 0");
        return;
    }
    if (to.batch > b->count) {
        tn_raise(TN_EINDEX, "tn_mlm_source: the checkpoint is at batch %lld, but an epoch has %lld",
                 (long long)to.batch, (long long)b->count);
        return;
    }
    stop(b);
    b->next = to, b->taken = 0;
    start(b);
}
static void source_save(void *user, tn_json_writer *w) { tn__position_write(((tn_mlm *)user)->next, w); }
static void source_shard(void *user, tn_shard shard)
{
    tn_mlm *b = user;
    if (tn__blocked() || !tn__shard_check("tn_mlm_source", shard)) return;
    stop(b);
    b->shard = shard, b->taken = 0;
    start(b);
}

tn_source tn_mlm_source(tn_mlm *b)
{
    return (tn_source){.next = b ? source_next : NULL,
                       .begin = source_begin,
                       .save = source_save,
                       .shard = source_shard,
                       .user = b,
                       .batches = b ? b->count : 0};
}
