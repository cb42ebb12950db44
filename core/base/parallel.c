/* parallel.c — the only place where work is divided among threads.
 *
 * Work is cut into blocks by the grain alone, so the results of a block never depend on the number of threads. Each
 * thread of a loop starts with its share of the blocks, the same in every loop of that size, so that data stays in its
 * caches. A thread that has finished its share takes blocks from the end of others' shares: a thread that the system
 * has suspended, or that has not arrived, delays a loop by at most one block.
 *   - Inside a parallel loop, ours or a user's of OpenMP, loops are serial.
 *   - If threads cannot be created, loops use those that exist, or are serial (team.c).
 *   - errno is unchanged.
 * State for the whole process: the default number of threads and the number of CPUs, and the second in which they were
 * determined. Each thread takes a new default only between ops (tn__threads_again). */
#include "core/system/system.h"

#include "core/base/checked.h"
#include "core/base/clock.h"
#include "core/base/denormals.h"
#include "core/base/memory.h"
#include "core/base/parallel.h"
#include "core/base/team.h"
#include "core/base/thread.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

enum { MAX_THREADS = 512 };

static atomic_int         found;       /* the default number of threads; 0: not determined yet */
static atomic_int         usable_cpus; /* that this process may use, by its affinity and quota */
static _Atomic int64_t    second;      /* in which it was determined last */
static _Thread_local int  worker;      /* index of the worker in a body of tn_parallel_for; 0 outside */
static _Thread_local bool inside;      /* in a loop with several threads */

#ifdef __ELF__
/* Only defined if the host program uses OpenMP. */
extern int  omp_in_parallel(void) __attribute__((weak));
static bool in_users_region(void)
{
    if (!omp_in_parallel) return false;
    const int  keep = errno; /* clang's OpenMP sets it when it starts */
    const bool in = omp_in_parallel() != 0;
    errno = keep;
    return in;
}
#else
static bool in_users_region(void) { return false; }
#endif

int tn__worker(void) { return worker; }

_Static_assert(sizeof(tn_mode) == 4 * sizeof(bool) + 2 * sizeof(uint16_t) + 2 * sizeof(void *), "padding is undefined");

/* Runs one block. At its end, its tensors are freed as in a scope, and its path and modes are those of its start. */
static inline void run(void (*body)(int64_t, int64_t, void *), void *user, int64_t n, int64_t grain, int64_t block)
{
    const tn_scope s = tn_scope_begin();
    const int64_t  from = block * grain, to = n - from < grain ? n : from + grain;
    body(from, to, user);
    if (tn__self.top != s.mark || tn__self.path_depth != s.path || memcmp(&tn__self.mode, &s.mode, sizeof s.mode))
        tn_scope_end(s);
}

static void serial(void (*body)(int64_t, int64_t, void *), void *user, int64_t n, int64_t grain, int64_t blocks)
{
    const int outer = worker;
    worker = 0; /* so that a loop inside a worker is a team of one */
    for (int64_t b = 0; b < blocks; b++) run(body, user, n, grain, b);
    worker = outer;
}

/* The default, determined at the first call and, if again is set, in each new second. */
static int usual_threads(bool again)
{
    int n = atomic_load_explicit(&found, memory_order_relaxed);
    if (n && !again) return n;
    const int64_t now = (int64_t)tn__seconds();
    if (n && atomic_exchange_explicit(&second, now, memory_order_relaxed) == now) return n;
    const tn__cpu_limits c = tn__cpus();
    n = c.use < MAX_THREADS ? c.use : MAX_THREADS;
    const int allowed = c.allowed ? c.allowed : MAX_THREADS; /* 0: unknown */
    atomic_store_explicit(&usable_cpus, c.quota && c.quota < allowed ? c.quota : allowed, memory_order_relaxed);
    atomic_store_explicit(&found, n, memory_order_relaxed);
    return n;
}

int tn_threads(void)
{
    if (inside || in_users_region()) return 1;
    if (tn__self.threads > 0) return tn__self.threads;
    if (!tn__self.usual) tn__self.usual = usual_threads(false);
    return tn__self.usual;
}

void tn__threads_again(void)
{
    if (inside) return;
    const int n = usual_threads(true);
    if (!tn__self.threads) tn__self.usual = n;
}

/* ---- a loop of several threads ----------------------------------------------------------------------------------- */

/* Consecutive items of a loop, taken one by one: from the front by the share's own threads, from the end by others. */
typedef struct {
    _Alignas(64) _Atomic uint64_t left; /* the first item << 32 | the one after the last */
} share;

enum { SHARES = 64 }; /* with more threads, several have the same share */

typedef struct {
    share share[SHARES];
    void (*body)(int64_t from, int64_t to, void *user);
    void           *user;
    int64_t         n, grain, blocks, item; /* item: number of blocks in an item */
    int             shares;
    bool            had_error; /* the caller had an error before the loop: it stays */
    bool            own_error; /* the caller ran the block that failed first */
    tn_mode         mode;      /* ops in a body run in the modes of the caller */
    uint64_t        floats;    /* workers round as their caller does */
    pthread_mutex_t lock;      /* of failing, error and own_error */
    int64_t         failing;   /* the first block that failed; blocks: none */
    tn_error_state  error;     /* its error, which is raised again in the caller */
} loop;

static int64_t take(share *s, bool last)
{
    uint64_t left = atomic_load_explicit(&s->left, memory_order_relaxed);
    for (;;) {
        const uint64_t first = left >> 32, end = left & UINT32_MAX;
        if (first >= end) return -1;
        if (atomic_compare_exchange_weak_explicit(&s->left, &left, last ? left - 1 : left + ((uint64_t)1 << 32),
                                                  memory_order_relaxed, memory_order_relaxed))
            return (int64_t)(last ? end - 1 : first);
    }
}

static void collect(loop *l, int64_t block)
{
    tn_error_state e;
    tn_error_push(&e); /* clears it */
    pthread_mutex_lock(&l->lock);
    if (block < l->failing) l->error = e, l->failing = block, l->own_error = worker == 0;
    pthread_mutex_unlock(&l->lock);
}

static void run_item(loop *l, int64_t item)
{
    const int64_t from = item * l->item, to = l->blocks - from < l->item ? l->blocks : from + l->item;
    for (int64_t b = from; b < to; b++) {
        run(l->body, l->user, l->n, l->grain, b);
        if (tn__self.error != TN_OK && (worker || !l->had_error)) collect(l, b);
    }
}

static void take_part(void *user, int index)
{
    loop          *l = user;
    const uint64_t own = tn__float_mode();
    const int      first = index % l->shares;
    worker = index, inside = true;
    const tn_scope s = tn_scope_begin();
    if (index) tn__denormals_restore(l->floats), tn__self.mode = l->mode; /* the caller has both */
    for (int i = 0; i < l->shares; i++) {
        share *from = &l->share[(first + i) % l->shares];
        for (int64_t item; (item = take(from, i > 0)) >= 0;) run_item(l, item);
    }
    if (index) {
        tn_scope_end(s);  /* frees what its modes kept: autocast's copies of weights */
        tn__mem_report(); /* it may wait for its next loop forever */
        tn__denormals_restore(own);
    }
    worker = 0, inside = false;
}

/* False: there are no workers. */
static bool parallel(void (*body)(int64_t, int64_t, void *), void *user, int64_t n, int64_t grain, int64_t blocks,
                     int threads)
{
    loop          l;
    const int64_t item = (blocks >> 31) + 1, items = (blocks - 1) / item + 1;
    l.body = body, l.user = user, l.n = n, l.grain = grain, l.blocks = blocks, l.item = item;
    l.shares = threads < SHARES ? threads : SHARES;
    l.had_error = tn__self.error != TN_OK, l.own_error = false;
    l.mode = tn__self.mode, l.floats = tn__float_mode();
    l.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    l.failing = blocks;
    for (int i = 0; i < l.shares; i++)
        atomic_init(&l.share[i].left, (uint64_t)(items * i / l.shares) << 32 | (uint64_t)(items * (i + 1) / l.shares));
    const int keep = errno;
    usual_threads(false); /* sets usable_cpus */
    const bool done =
        tn__team_run(threads, threads > atomic_load_explicit(&usable_cpus, memory_order_relaxed), take_part, &l);
    errno = keep;
    if (!done) return false;
    if (l.failing == blocks) return true;
    if (l.own_error) tn_error_pop(&l.error);
    else tn_raise(l.error.code, "%s", l.error.text);
    return true;
}

void tn_set_threads(int n)
{
    if (tn__blocked()) return;
    if (n < 0 || n > MAX_THREADS) {
        tn_raise(TN_EINVAL, "tn_set_threads: n is %d, but must be 1 to %d, or 0 for the default", n, MAX_THREADS);
        return;
    }
    tn__self.threads = n;
    tn__team_retry();
}

void tn_parallel_for(int64_t n, int64_t grain, void (*body)(int64_t from, int64_t to, void *user), void *user)
{
    if (n < 0 || grain < 1 || !body) {
        if (!body) tn_raise(TN_EINVAL, "tn_parallel_for: body is NULL");
        else if (n < 0) tn_raise(TN_EINVAL, "tn_parallel_for: n is %lld, but must not be negative", (long long)n);
        else tn_raise(TN_EINVAL, "tn_parallel_for: grain is %lld, but must be at least 1", (long long)grain);
        return;
    }
    if (n == 0) return;
    if (tn__self.shrink) grain = tn__max_i64(1, grain / tn__self.shrink);
    const int64_t  blocks = (n - 1) / grain + 1;
    const uint16_t look = tn__self.mode.look;
    tn__self.mode.look = 0; /* observers belong to one thread: no body is observed, whatever the number of threads */
    const int threads = blocks > 1 ? tn_threads() : 1;
    if (threads < 2 || !parallel(body, user, n, grain, blocks, threads)) serial(body, user, n, grain, blocks);
    tn__self.mode.look = look;
}
