/* prefetch.c — a source that a thread reads ahead. The thread fills a ring of slots in the order of the batches; a
 * slot holds the batch and the source's position after it, as JSON. The caller takes them in that order; its position
 * is that of the last slot taken. To start again anywhere, the thread is stopped and the source returns to that
 * position; parts of a batch that the caller has already taken are then read again and dropped. */
#include "core/system/system.h"

#include "data/source/source_private.h"
#include "data/loading.h"

#include <stdio.h>

typedef struct {
    tn_batch        batch; /* its tensors are kept */
    tn_json_writer *after; /* the position after it */
    bool            full, ends;
} slot;

struct tn_prefetch {
    tn_source       of;
    slot           *slots;
    int             n, take, fill; /* number of slots; the next to take and to fill */
    tn_json_writer *at;            /* the caller's position: that of the source when it read it */
    int             taken;         /* parts of the batch at that position that the caller has taken */

    bool            running, stop, began;
    pthread_t       thread;
    pthread_mutex_t lock;
    pthread_cond_t  changed;
    tn_status       failed; /* the thread's error and its message */
    char            text[sizeof((tn_error_state *)0)->text];
};

/* ---- positions and batches --------------------------------------------------------------------------------------- */

static bool write_position(const tn_prefetch *p, tn_json_writer *to)
{
    tn_json_writer_clear(to);
    tn_json_open_object(to, NULL);
    p->of.save(p->of.user, to);
    return tn_json_close(to) == TN_OK;
}

static void each_tensor(const tn_batch *b, void (*f)(tn_tensor *t))
{
    f(b->x), f(b->y);
    for (int i = 0; i < TN_BATCH_FIELDS; i++) f(b->fields[i].tensor);
}
static void keep(tn_tensor *t) { tn_keep(t); }
static void to_scope(tn_tensor *t)
{
    if (t) tn__scoped(t);
}

/* Reads the next batch into a slot. False: raised. */
static bool make(const tn_prefetch *p, slot *to)
{
    const tn_scope s = tn_scope_begin();
    bool           made = tn_source_next(&p->of, &to->batch);
    to->ends = !made;
    if (tn_error() == TN_OK && write_position(p, to->after)) {
        if (made) each_tensor(&to->batch, keep);
        made = true;
    } else made = false;
    tn_scope_end(s);
    return made;
}

/* ---- the thread -------------------------------------------------------------------------------------------------- */

static void *work(void *user)
{
    tn_prefetch *p = user;
    pthread_mutex_lock(&p->lock);
    while (!p->stop && p->failed == TN_OK) {
        slot *s = &p->slots[p->fill];
        if (s->full) {
            pthread_cond_wait(&p->changed, &p->lock);
            continue;
        }
        pthread_mutex_unlock(&p->lock);
        const bool made = make(p, s);
        pthread_mutex_lock(&p->lock);
        if (made) s->full = true, p->fill = (p->fill + 1) % p->n;
        else {
            p->failed = tn_error();
            snprintf(p->text, sizeof p->text, "%s", tn_error_message());
            tn_clear_error();
        }
        pthread_cond_broadcast(&p->changed);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* Ends the thread and drops the batches that it has read. */
static void stop(tn_prefetch *p)
{
    if (p->running) {
        pthread_mutex_lock(&p->lock);
        p->stop = true;
        pthread_cond_broadcast(&p->changed);
        pthread_mutex_unlock(&p->lock);
        pthread_join(p->thread, NULL);
    }
    for (int i = 0; i < p->n; i++) {
        if (p->slots[i].full && !p->slots[i].ends) each_tensor(&p->slots[i].batch, tn_drop);
        p->slots[i].full = false;
    }
    p->running = p->stop = p->began = false, p->take = p->fill = 0, p->failed = TN_OK;
}

/* Returns the source to the caller's position and starts the thread, if there can be one; it blocks all signals. */
static bool start(tn_prefetch *p)
{
    size_t      bytes;
    const char *text = tn_json_text(p->at, &bytes);
    tn_json    *at = text ? tn_json_parse(text, bytes) : NULL;
    if (at) p->of.begin(p->of.user, at);
    tn_json_free(at);
    for (int i = 0; i < p->taken && tn_error() == TN_OK; i++) {
        const tn_scope s = tn_scope_begin();
        tn_batch       b;
        tn_source_next(&p->of, &b);
        tn_scope_end(s);
    }
    if (tn_error() != TN_OK) return false;
    p->began = true;
    p->running = tn__sys_thread(&p->thread, work, p);
    return true;
}

/* ---- the source -------------------------------------------------------------------------------------------------- */

/* The next slot, filled; NULL: raised. */
static slot *wait_for(tn_prefetch *p)
{
    slot *s = &p->slots[p->take];
    if (!p->began && !start(p)) return NULL;
    if (!p->running) return make(p, s) ? s : NULL;
    pthread_mutex_lock(&p->lock);
    while (!s->full && p->failed == TN_OK) pthread_cond_wait(&p->changed, &p->lock);
    const bool full = s->full;
    pthread_mutex_unlock(&p->lock);
    if (full) return s;
    const tn_status failed = p->failed; /* the thread has ended; the next call reads that batch again */
    stop(p);
    return tn_raise(failed, "%s", p->text), NULL;
}

static bool same_position(tn_json_writer *a, tn_json_writer *b)
{
    size_t      na, nb;
    const char *ta = tn_json_text(a, &na), *tb = tn_json_text(b, &nb);
    return ta && tb && na == nb && !memcmp(ta, tb, na);
}

static bool next(void *user, tn_batch *b)
{
    tn_prefetch *p = user;
    slot        *s = wait_for(p);
    if (!s) return false;
    const bool      ends = s->ends;
    tn_json_writer *before = p->at;
    *b = ends ? (tn_batch){0} : s->batch;
    if (!ends) each_tensor(b, to_scope);
    p->taken = same_position(before, s->after) && !ends ? p->taken + 1 : 0;
    if (p->running) pthread_mutex_lock(&p->lock);
    p->at = s->after, s->after = before, s->full = false;
    if (!p->running) return !ends && tn_error() == TN_OK;
    p->take = (p->take + 1) % p->n;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    return !ends && tn_error() == TN_OK;
}

static void begin(void *user, const tn_json *at)
{
    tn_prefetch *p = user;
    stop(p);
    p->taken = 0;
    p->of.begin(p->of.user, at);
    if (tn_error() == TN_OK) write_position(p, p->at);
}

static void save(void *user, tn_json_writer *w)
{
    const tn_prefetch *p = user;
    size_t             bytes;
    const char        *text = tn_json_text(p->at, &bytes);
    tn_json           *at = text ? tn_json_parse(text, bytes) : NULL;
    for (const tn_json *v = tn_json_first(at); v; v = tn_json_next(v)) tn_json_put(w, tn_json_key(v), v);
    tn_json_free(at);
}

static void shard(void *user, tn_shard to)
{
    tn_prefetch *p = user;
    stop(p); /* the next batch starts at the caller's position */
    p->taken = 0;
    p->of.shard(p->of.user, to);
}

tn_source tn_prefetch_source(tn_prefetch *p)
{
    tn_source s = {.next = p ? next : NULL, .begin = begin, .save = save, .user = p};
    if (p) s.batches = p->of.batches, s.shard = p->of.shard ? shard : NULL;
    return s;
}

/* ---- creating and freeing ---------------------------------------------------------------------------------------- */

tn_prefetch *tn_prefetch_create(tn_prefetch_config c)
{
    static const char who[] = "tn_prefetch_new";
    if (tn__blocked() || !tn__within(who, "ahead", c.ahead, 1, 64)) return NULL;
    if (!c.source || !c.source->next) return tn_raise_null(TN_EINVAL, "%s: .source is NULL", who);
    if (!c.source->begin || !c.source->save)
        return tn_raise_null(TN_EUNSUPPORTED, "%s: the source has no .begin and .save, which restore a position", who);
    tn_prefetch *p = tn_mem_get(sizeof *p);
    if (!p) return NULL;
    p->of = *c.source, p->n = c.ahead;
    bool done = (p->slots = tn_mem_get((size_t)p->n * sizeof *p->slots)) && (p->at = tn_json_writer_new(0));
    for (int i = 0; done && i < p->n; i++) done = (p->slots[i].after = tn_json_writer_new(0)) != NULL;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    if (done && write_position(p, p->at)) return p;
    tn_prefetch_free(p);
    return NULL;
}

void tn_prefetch_free(tn_prefetch *p)
{
    if (!p) return;
    if (p->slots) stop(p);
    for (int i = 0; p->slots && i < p->n; i++) tn_json_writer_free(p->slots[i].after);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->changed);
    tn_json_writer_free(p->at);
    tn_mem_put(p->slots, (size_t)p->n * sizeof *p->slots);
    tn_mem_put(p, sizeof *p);
}
