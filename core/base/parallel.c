/* parallel.c — the one place where work is spread over threads, and the only file with OpenMP pragmas.
 *
 * Work is cut into blocks by the grain alone, so what a block computes never depends on how many threads there are.
 * Threads come from OpenMP, with care:
 *   - only by num_threads clauses: the settings of the process that we are a guest in stay as they are;
 *   - always a whole team, even for fewer blocks, because gcc's OpenMP ends the threads that a smaller team has no
 *     place for, and would have to make them again;
 *   - gcc's OpenMP ends the process when it cannot make a thread, so before the first team of a size we try that many
 *     plain threads, and stay serial if we do not get them;
 *   - in a child forked after a parallel region gcc's OpenMP hangs, so there all loops are serial;
 *   - inside a parallel region, ours or the user's, loops are serial;
 *   - errno stays as it was: clang's OpenMP sets it when it begins and when it makes threads.
 * What this file keeps for the whole process: the default number of threads, found once; whether the fork handler is
 * set, and whether we are such a child. */
#include "core/base/checked.h"
#include "core/base/denormals.h"
#include "core/base/memory.h"
#include "core/base/parallel.h"
#include "core/base/thread.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

enum { MAX_THREADS = 512 };

static _Thread_local int worker; /* in a body of tn_parallel_for: which one; 0 outside */

int tn__worker(void) { return worker; }

/* A block leaves nothing behind: what it made goes, as at the end of a scope, and so do a path that it did not
 * pop and a mode that it did not put back. */
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
    worker = 0; /* a loop inside a worker is a team of one */
    for (int64_t b = 0; b < blocks; b++) run(body, user, n, grain, b);
    worker = outer;
}

#ifdef _OPENMP

static atomic_int        found; /* the default number of threads; 0: not yet asked */
static atomic_bool       in_child, guarded;
static pthread_once_t    guard_once = PTHREAD_ONCE_INIT;
static _Thread_local int team = 1; /* the size of this thread's last team: gcc's OpenMP keeps its threads */
static _Thread_local int refused;  /* smallest team size that could not be created; 0: none */

static void after_fork(void) { atomic_store(&in_child, true); }
static void set_guard(void) { atomic_store(&guarded, pthread_atfork(NULL, NULL, after_fork) == 0); }

static void *wait_at_gate(void *gate)
{
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return NULL;
}

/* Can n more threads live at once? */
static bool can_make(int n)
{
    pthread_t       made[MAX_THREADS];
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    int             have = 0;
    pthread_mutex_lock(&gate);
    while (have < n && pthread_create(&made[have], NULL, wait_at_gate, &gate) == 0) have++;
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < have; i++) pthread_join(made[i], NULL);
    pthread_mutex_destroy(&gate);
    return have == n;
}

/* May this thread open a team of this size now? */
static bool ready(int threads)
{
    if (threads <= team) return true;
    if (refused && threads >= refused) return false;
    pthread_once(&guard_once, set_guard);
    if (atomic_load(&guarded) && can_make(threads - team)) return true;
    refused = threads;
    return false;
}

/* The first question to OpenMP is also what begins it. */
static bool in_region(void)
{
    const int  keep = errno;
    const bool in = omp_in_parallel();
    errno = keep;
    return in;
}

int tn_threads(void)
{
    if (atomic_load_explicit(&in_child, memory_order_relaxed) || in_region()) return 1;
    if (tn__self.threads > 0) return tn__self.threads;
    int n = atomic_load_explicit(&found, memory_order_relaxed);
    if (!n) {
        n = tn__cpus().use;
        if (n > MAX_THREADS) n = MAX_THREADS;
        atomic_store_explicit(&found, n, memory_order_relaxed);
    }
    return n;
}

/* An error that a worker met comes back to the caller: of several, the one of the first block. */
typedef struct {
    tn_error_state error;
    int64_t        block;
} failure;

static void collect(failure *first, int64_t block)
{
    tn_error_state e;
    tn_error_push(&e); /* the worker is left without it */
#pragma omp critical(tn__failure)
    if (block < first->block) first->error = e, first->block = block;
}

static void parallel(void (*body)(int64_t, int64_t, void *), void *user, int64_t n, int64_t grain, int64_t blocks,
                     int threads)
{
    failure        first;
    const tn_mode  mode = tn__self.mode;
    const uint64_t floats = tn__float_mode(); /* workers round as their caller does, whatever they did before */
    first.block = blocks;
#pragma omp parallel num_threads(threads)
    {
        worker = omp_get_thread_num();
        const uint64_t own = tn__float_mode();
        if (worker) tn__denormals_restore(floats);
        const tn_scope s = tn_scope_begin();
        tn__self.mode = mode; /* a body that uses ops finds the modes of its caller */
#pragma omp for schedule(static) nowait
        for (int64_t b = 0; b < blocks; b++) {
            run(body, user, n, grain, b);
            if (worker && tn__self.error != TN_OK) collect(&first, b);
        }
        if (worker) {
            tn_scope_end(s); /* with what its modes kept: autocast's copies of weights */
            tn__mem_tell();  /* it may wait for its next loop for ever */
            tn__denormals_restore(own);
        }
        worker = 0;
    }
    team = threads;
    if (first.block < blocks) tn_raise(first.error.code, "%s", first.error.text);
}

#else

int tn_threads(void) { return 1; }

#endif

void tn_set_threads(int n)
{
    if (tn__blocked()) return;
    if (n < 0 || n > MAX_THREADS) {
        tn_raise(TN_EINVAL, "tn_set_threads: n is %d, but must be 1 to %d, or 0 for the default", n, MAX_THREADS);
        return;
    }
    tn__self.threads = n;
#ifdef _OPENMP
    refused = 0;
#endif
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
    const int64_t blocks = (n - 1) / grain + 1;
    const uint8_t look = tn__self.mode.look;
    bool          done = false;
    tn__self.mode.look = 0; /* watching is of one thread: a body is never watched, so that their number does not show */
#ifdef _OPENMP
    if (blocks > 1) {
        const int threads = tn_threads(), keep = errno;
        if (threads > 1 && ready(threads)) parallel(body, user, n, grain, blocks, threads), done = true;
        errno = keep;
    }
#endif
    if (!done) serial(body, user, n, grain, blocks);
    tn__self.mode.look = look;
}
