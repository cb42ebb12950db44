/* overlap.c — sends gradients while the backward pass of a rank's last shard computes further ones.
 *
 * The tape reports when a leaf's gradient is complete. It is then added to this rank's sums, and when a bucket is
 * complete, a thread exchanges it. Buckets are sent from the last parameter to the first, the usual order of backward
 * passes, in the same order on all ranks. The sums are the same as after the pass, so the bits do not change. While the
 * thread runs, only it uses the transport. */
#define _GNU_SOURCE
#include "parallel/parallel_private.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

struct tn__flight {
    bool            begun, started; /* the exchange is running; it has a thread */
    pthread_t       thread;
    pthread_mutex_t lock;
    pthread_cond_t  changed;
    int64_t         whole;     /* sums are complete from this offset on; protected by lock */
    int64_t         early;     /* the early table's sums are complete from here on; -1: final; protected by lock */
    int64_t         next;      /* places with index `next` and above are complete */
    int             top, left; /* index of the newest branch; number of branches after it is added */
    uint8_t        *done;      /* [places]: complete */
    tn_status       failed;    /* the thread's error, with its text */
    char            text[sizeof((tn_error_state *)0)->text];
};

tn__flight *tn__flight_new(const tn_replica *r)
{
    tn__flight *f = tn_mem_get(sizeof *f);
    if (f && !(f->done = tn_mem_get((size_t)r->places + 1))) tn_mem_put(f, sizeof *f), f = NULL;
    if (!f) return NULL;
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->changed, NULL);
    return f;
}

bool tn__flight_begun(const tn_replica *r) { return r->flight && r->flight->begun; }

/* ---- the thread -------------------------------------------------------------------------------------------------- */

static void wait_for(tn__flight *f, const int64_t *whole, int64_t from)
{
    pthread_mutex_lock(&f->lock);
    while (*whole > from) pthread_cond_wait(&f->changed, &f->lock);
    pthread_mutex_unlock(&f->lock);
}

static bool fly_down(tn_replica *r, int64_t to, int64_t end)
{
    for (int64_t from; to > end; to = from) {
        from = tn__max_i64((to - 1) / r->bucket * r->bucket, end);
        wait_for(r->flight, &r->flight->whole, from);
        if (!tn__replica_travel(r, r->sum, 0, from, to)) return false;
    }
    return true;
}

static bool fly(tn_replica *r)
{
    tn__flight   *f = r->flight;
    const int64_t early = r->early.place;
    if (early < 0) return fly_down(r, r->bytes, 0);
    const int64_t at = r->place[early].at;
    for (int64_t to = tn__early_end(r), from; to > at; to = from) {
        from = tn__early_next(r, to);
        wait_for(f, &f->early, from);
        if (!tn__replica_travel(r, r->early.sum, at, from, to)) return false;
    }
    if (!fly_down(r, r->bytes, tn__early_end(r)) || !fly_down(r, at, 0)) return false;
    wait_for(f, &f->early, -1);
    return tn__early_follow(r);
}

static void *work(void *user)
{
    tn_replica *r = user;
    tn_set_threads(1);
    fly(r);
    r->flight->failed = tn_error();
    snprintf(r->flight->text, sizeof r->flight->text, "%s", tn_error_message());
    tn_clear_error();
    return NULL;
}

void tn__flight_begin(tn_replica *r)
{
    tn__flight *f = r->flight;
    sigset_t    all, old;
    f->begun = true, f->failed = TN_OK, f->whole = r->bytes, f->next = r->places, f->early = INT64_MAX;
    memset(f->done, 0, (size_t)r->places);
    if (r->early.place >= 0) f->done[r->early.place] = 1; /* it is sent separately */
    f->top = r->waiting;
    r->branch[r->waiting++] = (tn__branch){r->next, r->next + 1};
    while (r->waiting > 1 && tn__siblings(r->shards, r->branch[r->waiting - 2], r->branch[r->waiting - 1])) {
        r->branch[r->waiting - 2].hi = r->branch[r->waiting - 1].hi;
        r->waiting--;
    }
    f->left = r->waiting;
    sigfillset(&all); /* leave signals to the program's threads */
    if (pthread_sigmask(SIG_SETMASK, &all, &old)) return;
    f->started = !pthread_create(&f->thread, NULL, work, r); /* without a thread, tn__flight_end sends */
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* ---- on the thread of the backward pass -------------------------------------------------------------------------- */

static void add(tn_replica *r, int64_t i)
{
    tn__flight      *f = r->flight;
    const tn__place *p = r->place + i;
    tn__gradients_merge(r, f->top, f->left, p->at, p->at + p->n * (int64_t)tn_dtype_size(p->wide));
    f->done[i] = 1;
}

/* Publishes the offset from which sums are complete. Places are in the order of their offsets, except if there are f64
 * parameters; then nothing is published before the end. */
static void publish(tn_replica *r)
{
    tn__flight *f = r->flight;
    while (f->next > 0 && f->done[f->next - 1]) f->next--;
    const int64_t whole = f->next ? r->f64_at < r->bytes ? r->bytes : r->place[f->next].at : 0;
    pthread_mutex_lock(&f->lock);
    f->whole = f->next < r->places ? whole : r->bytes;
    pthread_cond_signal(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

static void tell(tn__flight *f, int64_t early)
{
    pthread_mutex_lock(&f->lock);
    f->early = early;
    pthread_cond_signal(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

/* Adds the table's gradient so far and publishes it, bucket by bucket. */
static void set_out(tn_replica *r, const tn_tensor *grad, int top, int left)
{
    const int64_t at = r->place[r->early.place].at;
    tn__early_open(r, top, left);
    for (int64_t to = tn__early_end(r), from; to > at; to = from) {
        from = tn__early_next(r, to);
        tn__early_add(r, grad, from, to);
        tell(r->flight, from);
    }
}

static void early_ready(tn_replica *r, const tn_tensor *grad, const tn_tensor *index, bool complete)
{
    tn__flight *f = r->flight;
    if (f->early < 0) return;
    if (grad) r->some[r->early.place] |= TN__WHOLE;
    if (f->early == INT64_MAX) set_out(r, grad, f->top, f->left);
    else if (grad) tn__early_change(r, grad, index);
    if (complete) tell(f, -1);
}

void tn__flight_ready(const tn_tensor *leaf, const tn_tensor *grad, const tn_tensor *index, bool complete,
                      void *replica)
{
    tn_replica *r = replica;
    int64_t     i = r->places - 1;
    while (i >= 0 && r->place[i].t != leaf) i--;
    if (i < 0) return;
    if (!complete) r->some[i] |= TN__EARLY;
    if (i == r->early.place) early_ready(r, grad, index, complete);
    if (!complete || r->flight->done[i]) return;
    const tn__place *p = r->place + i;
    if (tn_copy_out(grad, p->wide, r->sum[r->flight->top] + p->at, (size_t)p->n * tn_dtype_size(p->wide)) != TN_OK)
        return;
    r->some[i] |= TN__WHOLE;
    add(r, i);
    if (i == r->flight->next - 1) publish(r);
}

/* Runs also while an error is set: the other ranks wait for these bytes, whatever their values. */
void tn__flight_rest(tn_replica *r)
{
    tn__flight *f = r->flight;
    for (int64_t i = r->places - 1; i >= 0; i--) {
        const tn__place *p = r->place + i;
        const size_t     bytes = (size_t)p->n * tn_dtype_size(p->wide);
        const tn_tensor *g = f->done[i] ? NULL : tn_grad(p->t);
        char            *to = r->sum[f->top] + p->at;
        if (f->done[i]) continue;
        if (g && tn_copy_out(g, p->wide, to, bytes) == TN_OK) r->some[i] |= TN__WHOLE;
        else if (!g) memset(to, 0, bytes);
        add(r, i);
    }
    if (r->early.place >= 0) early_ready(r, tn_grad(r->place[r->early.place].t), NULL, true);
    publish(r);
}

void tn__flight_behind(tn_replica *r)
{
    tn__flight *f = r->flight;
    f->begun = true, f->started = false, f->whole = 0;
    if (r->early.place < 0) return;
    set_out(r, NULL, r->waiting - 1, r->waiting + 1);
    f->early = -1;
}

bool tn__flight_end(tn_replica *r)
{
    tn__flight *f = r->flight;
    if (!f->begun) return tn_error() == TN_OK;
    f->begun = false;
    if (f->started) {
        pthread_join(f->thread, NULL);
        f->started = false;
    } else {
        tn_error_state aside;
        tn_error_push(&aside);
        fly(r);
        tn__error_first(&aside);
    }
    if (f->failed != TN_OK && tn_error() == TN_OK) tn_raise(f->failed, "%s", f->text);
    return tn_error() == TN_OK;
}

/* Completes a running exchange first, since the other ranks wait for it. */
void tn__flight_free(tn_replica *r)
{
    tn__flight *f = r->flight;
    if (!f) return;
    if (f->begun) tn__flight_rest(r), tn__flight_end(r);
    pthread_mutex_destroy(&f->lock);
    pthread_cond_destroy(&f->changed);
    tn_mem_put(f->done, (size_t)r->places + 1);
    tn_mem_put(f, sizeof *f);
    r->flight = NULL;
}
