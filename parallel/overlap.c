/* overlap.c — sends gradients while the backward pass of a rank's last shard computes further ones.
 *
 * The tape reports when a leaf's gradient is complete. It is then added to this rank's sums, and when a bucket is
 * complete, a thread exchanges it. Buckets are sent from the last parameter to the first, the usual order of backward
 * passes, in the same order on all ranks. The sums are the same as after the pass, so the bits do not change. While the
 * thread runs, only it uses the transport. */
#include "core/system/system.h"

#include "parallel/parallel_private.h"

#include <string.h>

struct tn__overlap {
    bool            running, started; /* the exchange is running; it has a thread */
    pthread_t       thread;
    pthread_mutex_t lock;
    pthread_cond_t  changed;
    int64_t         complete_from; /* sums are complete from this offset on; protected by lock */
    int64_t         next;          /* places with index `next` and above are complete */
    int             top, left;     /* index of the newest branch; number of branches after it is added */
    uint8_t        *done;          /* [places]: complete */
    tn_status       failed;        /* the thread's error, with its text */
    char            text[sizeof((tn_error_state *)0)->text];
};

tn__overlap *tn__overlap_new(const tn_replica *r)
{
    tn__overlap *f = tn_mem_get(sizeof *f);
    if (f && !(f->done = tn_mem_get((size_t)r->places + 1))) tn_mem_put(f, sizeof *f), f = NULL;
    if (!f) return NULL;
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->changed, NULL);
    return f;
}

bool tn__overlap_running(const tn_replica *r) { return r->overlap && r->overlap->running; }

/* ---- the thread -------------------------------------------------------------------------------------------------- */

static void wait_for(tn__overlap *f, int64_t from)
{
    pthread_mutex_lock(&f->lock);
    while (f->complete_from > from) pthread_cond_wait(&f->changed, &f->lock);
    pthread_mutex_unlock(&f->lock);
}

static bool send_all(tn_replica *r)
{
    for (int64_t from, to = r->bytes; to > 0; to = from) {
        from = (to - 1) / r->bucket * r->bucket;
        wait_for(r->overlap, from);
        if (!tn__replica_reduce(r, r->sum, 0, from, to)) return false;
    }
    return true;
}

static void *thread_main(void *user)
{
    tn_replica *r = user;
    tn_set_threads(1);
    send_all(r);
    r->overlap->failed = tn_error();
    snprintf(r->overlap->text, sizeof r->overlap->text, "%s", tn_error_message());
    tn_clear_error();
    return NULL;
}

void tn__overlap_start(tn_replica *r)
{
    tn__overlap *f = r->overlap;
    f->running = true, f->failed = TN_OK, f->complete_from = r->bytes, f->next = r->places;
    memset(f->done, 0, (size_t)r->places);
    f->top = r->waiting;
    r->branch[r->waiting++] = (tn__branch){r->next, r->next + 1};
    while (r->waiting > 1 && tn__siblings(r->shards, r->branch[r->waiting - 2], r->branch[r->waiting - 1])) {
        r->branch[r->waiting - 2].hi = r->branch[r->waiting - 1].hi;
        r->waiting--;
    }
    f->left = r->waiting;
    f->started = tn__sys_thread(&f->thread, thread_main, r); /* without a thread, tn__overlap_finish sends */
}

/* ---- on the thread of the backward pass -------------------------------------------------------------------------- */

static void add(tn_replica *r, int64_t i)
{
    tn__overlap     *f = r->overlap;
    const tn__place *p = r->place + i;
    tn__gradients_merge(r, f->top, f->left, p->at, p->at + p->n * (int64_t)tn_dtype_size(p->wide));
    f->done[i] = 1;
}

/* Publishes the offset from which sums are complete. Places are in the order of their offsets, except if there are f64
 * parameters; then nothing is published before the end. */
static void publish(tn_replica *r)
{
    tn__overlap *f = r->overlap;
    while (f->next > 0 && f->done[f->next - 1]) f->next--;
    const int64_t complete_from = f->next ? r->f64_at < r->bytes ? r->bytes : r->place[f->next].at : 0;
    pthread_mutex_lock(&f->lock);
    f->complete_from = f->next < r->places ? complete_from : r->bytes;
    pthread_cond_signal(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

void tn__overlap_ready(const tn_tensor *leaf, const tn_tensor *grad, void *replica)
{
    tn_replica *r = replica;
    int64_t     i = r->places - 1;
    while (i >= 0 && r->place[i].t != leaf) i--;
    if (i < 0 || r->overlap->done[i]) return;
    const tn__place *p = r->place + i;
    if (tn_copy_out(grad, p->wide, r->sum[r->overlap->top] + p->at, (size_t)p->n * tn_dtype_size(p->wide)) != TN_OK)
        return;
    r->has_grad[i] = 1;
    add(r, i);
    if (i == r->overlap->next - 1) publish(r);
}

/* Runs also while an error is set: the other ranks wait for these bytes, whatever their values. */
void tn__overlap_complete(tn_replica *r)
{
    tn__overlap *f = r->overlap;
    for (int64_t i = r->places - 1; i >= 0; i--) {
        const tn__place *p = r->place + i;
        const size_t     bytes = (size_t)p->n * tn_dtype_size(p->wide);
        const tn_tensor *g = f->done[i] ? NULL : tn_grad(p->t);
        char            *to = r->sum[f->top] + p->at;
        if (f->done[i]) continue;
        if (g && tn_copy_out(g, p->wide, to, bytes) == TN_OK) r->has_grad[i] = 1;
        else if (!g) memset(to, 0, bytes);
        add(r, i);
    }
    publish(r);
}

void tn__overlap_start_late(tn_replica *r)
{
    tn__overlap *f = r->overlap;
    f->running = true, f->started = false, f->complete_from = 0;
}

bool tn__overlap_finish(tn_replica *r)
{
    tn__overlap *f = r->overlap;
    if (!f->running) return tn_error() == TN_OK;
    f->running = false;
    if (f->started) {
        pthread_join(f->thread, NULL);
        f->started = false;
    } else {
        tn_error_state aside;
        tn_error_push(&aside);
        send_all(r);
        tn__error_first(&aside);
    }
    if (f->failed != TN_OK && tn_error() == TN_OK) tn_raise(f->failed, "%s", f->text);
    return tn_error() == TN_OK;
}

/* Completes a running exchange first, since the other ranks wait for it. */
void tn__overlap_free(tn_replica *r)
{
    tn__overlap *f = r->overlap;
    if (!f) return;
    if (f->running) tn__overlap_complete(r), tn__overlap_finish(r);
    pthread_mutex_destroy(&f->lock);
    pthread_cond_destroy(&f->changed);
    tn_mem_put(f->done, (size_t)r->places + 1);
    tn_mem_put(f, sizeof *f);
    r->overlap = NULL;
}
