/* parallel.c — the only place where work is spread over threads, and the only file with OpenMP pragmas.
 *
 * Work is cut into blocks by the grain alone, so the results of a block never depend on the number of threads.
 * Threads come from OpenMP, with these rules:
 *   - the number is set only by num_threads clauses: the settings of the host process stay unchanged;
 *   - a team is always complete, even for fewer blocks, because gcc's OpenMP ends the threads that a smaller team does
 *     not use, and would have to create them again;
 *   - gcc's OpenMP ends the process if it cannot create a thread, so before the first team of a size we try that many
 *     plain threads, and stay serial if that fails;
 *   - in a child forked after a parallel region gcc's OpenMP hangs, so there all loops are serial;
 *   - inside a parallel region, ours or the user's, loops are serial;
 *   - errno is unchanged: clang's OpenMP sets it when it starts and when it creates threads.
 * State for the whole process: the default number of threads, determined once; whether the fork handler is set, and
 * whether we are such a child. */
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

static _Thread_local int worker; /* index of the worker in a body of tn_parallel_for; 0 outside */

int tn__worker(void) { return worker; }

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

#ifdef _OPENMP

static atomic_int        found; /* the default number of threads; 0: not determined yet */
static atomic_bool       in_child, guarded;
static pthread_once_t    guard_once = PTHREAD_ONCE_INIT;
static _Thread_local int team = 1;  /* the size of this thread's last team: gcc's OpenMP keeps its threads */
static _Thread_local int too_large; /* smallest team size that could not be created; 0: none */

static void after_fork(void) { atomic_store(&in_child, true); }
static void set_guard(void) { atomic_store(&guarded, pthread_atfork(NULL, NULL, after_fork) == 0); }

static void *wait_at_gate(void *gate)
{
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return NULL;
}

/* True if n more threads can be alive at once. */
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

/* True if this thread may open a team of this size now. */
static bool ready(int threads)
{
    if (threads <= team) return true;
    if (too_large && threads >= too_large) return false;
    pthread_once(&guard_once, set_guard);
    if (atomic_load(&guarded) && can_make(threads - team)) return true;
    too_large = threads;
    return false;
}

/* The first query also initialises OpenMP. */
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

/* An error of a worker is raised again in the caller; of several, the one of the first block. */
typedef struct {
    tn_error_state error;
    int64_t        block;
} failure;

static void collect(failure *first, int64_t block)
{
    tn_error_state e;
    tn_error_push(&e); /* clears it in the worker */
#pragma omp critical(tn__failure)
    if (block < first->block) first->error = e, first->block = block;
}

static void parallel(void (*body)(int64_t, int64_t, void *), void *user, int64_t n, int64_t grain, int64_t blocks,
                     int threads)
{
    failure        first;
    const tn_mode  mode = tn__self.mode;
    const uint64_t floats = tn__float_mode(); /* workers round as their caller does */
    first.block = blocks;
#pragma omp parallel num_threads(threads)
    {
        worker = omp_get_thread_num();
        const uint64_t own = tn__float_mode();
        if (worker) tn__denormals_restore(floats);
        const tn_scope s = tn_scope_begin();
        tn__self.mode = mode; /* ops in a body run in the modes of the caller */
#pragma omp for schedule(static) nowait
        for (int64_t b = 0; b < blocks; b++) {
            run(body, user, n, grain, b);
            if (worker && tn__self.error != TN_OK) collect(&first, b);
        }
        if (worker) {
            tn_scope_end(s);  /* frees what its modes kept: autocast's copies of weights */
            tn__mem_report(); /* it may wait for its next loop forever */
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
    too_large = 0;
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
    tn__self.mode.look = 0; /* observers belong to one thread: no body is observed, whatever the number of threads */
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
