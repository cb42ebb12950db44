/* thread_ranks.c — ranks as threads: between two barriers, each rank reads the data that another one sends. */
#define _GNU_SOURCE /* barriers */
#include "tests/common/thread_ranks.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    pthread_barrier_t all;
    int               size, fails_at;
    bool              gone;
    const void       *out[TN_THREAD_RANKS];
    const int        *out_at[TN_THREAD_RANKS], *out_bytes[TN_THREAD_RANKS];
    tn_rank_body     *body;
    void             *user;
    char (*text)[1100];
} hub;

typedef struct {
    hub *hub;
    int  rank, calls;
} member;

static tn_status begin(member *m, const void *out)
{
    hub *h = m->hub;
    h->out[m->rank] = out;
    if (m->rank == 1 && ++m->calls == h->fails_at) h->gone = true;
    pthread_barrier_wait(&h->all);
    return h->gone ? tn_raise(TN_EIO, "the line is cut") : TN_OK;
}

static tn_status end(member *m)
{
    pthread_barrier_wait(&m->hub->all);
    return TN_OK;
}

static tn_status thread_gather(void *user, const void *mine, void *all, int bytes)
{
    member *m = user;
    if (begin(m, mine) != TN_OK) return tn_error();
    for (int i = 0; i < m->hub->size; i++) memcpy((char *)all + (ptrdiff_t)i * bytes, m->hub->out[i], (size_t)bytes);
    return end(m);
}

static tn_status thread_broadcast(void *user, void *data, int bytes, int from)
{
    member *m = user;
    if (begin(m, data) != TN_OK) return tn_error();
    if (m->rank != from) memcpy(data, m->hub->out[from], (size_t)bytes);
    return end(m);
}

static tn_status thread_swap(void *user, const void *out, const int *out_bytes, const int *out_at, void *in,
                             const int *in_bytes, const int *in_at)
{
    member *m = user;
    if (in == out) return tn_raise(TN_EINVAL, "what goes out and what comes in lie in the same place");
    m->hub->out_at[m->rank] = out_at, m->hub->out_bytes[m->rank] = out_bytes;
    if (begin(m, out) != TN_OK) return tn_error();
    for (int i = 0; i < m->hub->size; i++) {
        if (m->hub->out_bytes[i][m->rank] != in_bytes[i]) return tn_raise(TN_EINVAL, "the ranks disagree on sizes");
        memcpy((char *)in + in_at[i], (const char *)m->hub->out[i] + m->hub->out_at[i][m->rank], (size_t)in_bytes[i]);
    }
    return end(m);
}

/* Sums from the last rank to the first, an order other than that of the tree. */
static tn_status thread_sum(void *user, void *data, int count, bool f64)
{
    member *m = user;
    double *sum = tn_mem_get((size_t)count * sizeof *sum + 1);
    if (begin(m, data) != TN_OK) return tn_mem_put(sum, (size_t)count * sizeof *sum + 1), tn_error();
    for (int k = m->hub->size - 1; sum && k >= 0; k--)
        for (int i = 0; i < count; i++)
            sum[i] += f64 ? ((const double *)m->hub->out[k])[i] : (double)((const float *)m->hub->out[k])[i];
    end(m);
    for (int i = 0; sum && i < count; i++)
        if (f64) ((double *)data)[i] = sum[i];
        else ((float *)data)[i] = (float)sum[i];
    tn_mem_put(sum, (size_t)count * sizeof *sum + 1);
    return end(m);
}

static void *run(void *user)
{
    member        *m = user;
    hub           *h = m->hub;
    const tn_scope s = tn_scope_begin();
    tn_world      *w = tn_world_from_transport((tn_transport){.rank = m->rank,
                                                              .size = h->size,
                                                              .user = m,
                                                              .gather = thread_gather,
                                                              .broadcast = thread_broadcast,
                                                              .swap = thread_swap,
                                                              .sum = thread_sum});
    tn_set_threads(1);
    h->body(w, h->user);
    tn_world_free(w);
    snprintf(h->text[m->rank], sizeof h->text[0], "%s", tn_error_message());
    tn_clear_error();
    tn_scope_end(s);
    return NULL;
}

void tn_thread_ranks(int size, tn_rank_body *body, void *user, int fails_at, char text[TN_THREAD_RANKS][1100])
{
    hub       h = {.size = size, .fails_at = fails_at, .body = body, .user = user, .text = text};
    member    members[TN_THREAD_RANKS];
    pthread_t threads[TN_THREAD_RANKS];
    pthread_barrier_init(&h.all, NULL, (unsigned)size);
    for (int i = 0; i < size; i++) members[i] = (member){&h, i, 0};
    for (int i = 0; i < size; i++)
        if (pthread_create(&threads[i], NULL, run, &members[i])) return;
    for (int i = 0; i < size; i++) pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&h.all);
}
