/* team.c — the worker threads of a thread: made at its first parallel loop, ended with it.
 *
 * OpenMP's teams do not fit programs that share a machine: a loop waits until every thread has arrived, so one thread
 * that the system has suspended stalls all others, and waiting threads either spin, which takes the time of others, or
 * sleep, which costs a wake-up per loop. Here
 *   - a loop starts at once and waits at its end only for workers that have joined it;
 *   - a waiting thread spins for about the time between two loops of a training step, then sleeps. One that was
 *     suspended while it spun, because the machine is busy or a quota is used up, sleeps at once for a while. Beyond
 *     the CPUs of the affinity and the quota, threads never spin: they would spend the quota, or the others' time;
 *   - a worker that finds itself on the CPU of another thread of its team moves to a free one, also if other programs
 *     are busy there: the system sees one task or more on each CPU and would leave the team on a single one;
 *   - an owner that waits for a suspended worker fetches it to its own CPU, which is idle;
 *   - a child after fork makes new workers, and a team that cannot be made complete is smaller;
 *   - workers block all signals, which stay with the threads of the host.
 * A team belongs to one thread. State for the whole process: whether the fork handler is set. */
#include "core/system/system.h"

#include "core/base/parallel.h"
#include "core/base/team.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

enum {
    MAX_WORKERS = 511,
    SPIN_NS = 100000,      /* a thread spins for this time before it sleeps */
    SUSPENDED_NS = 500000, /* a gap of this length in a spinning thread's time: it was suspended */
    SHY = 100,             /* number of waits that then do not spin */
    LOOK_NS = 1000000,     /* a worker compares its CPU with those of the others at most this often */
    DOZE_NS = 200000,      /* the owner sleeps for this time, twice, four times it … before it looks after workers */
    MOST_DOZE_NS = 1600000 /* and at most for this time */
};
#define OPEN 0x80000000u

/* Memory of the allocator would count as the user's, and fail with it. */
typedef struct {
    _Alignas(64) _Atomic uint32_t epoch; /* number of loops so far; advances when a loop starts */
    _Alignas(64) _Atomic uint32_t state; /* OPEN while the loop may be joined, + the number of workers in it */
    _Alignas(64) _Atomic uint32_t asleep, waiting; /* workers asleep; the owner sleeps until the workers have left */
    _Atomic int     started, ended;                /* number of workers that have taken their index, that return */
    atomic_bool     quit, crowded;
    bool            ready; /* lock, wake and left are initialised */
    pthread_mutex_t lock;
    pthread_cond_t  wake, left;
    void (*work)(void *user, int worker);
    void       *user;
    int         n;       /* of the current loop: workers from n on do not join */
    int         made;    /* number of workers */
    int         refused; /* smallest number of workers that could not be made; 0: none */
    int         shy;     /* number of waits in which the owner does not spin */
    pthread_t   worker[MAX_WORKERS];
    atomic_int  cpu[MAX_WORKERS + 1];    /* of each thread when it last looked, + 1; 0: unknown, or it sleeps */
    atomic_bool inside[MAX_WORKERS + 1]; /* a worker runs the current loop */
    pthread_t   thread[MAX_WORKERS + 1]; /* of a worker that has been inside; worker[] is in the order of creation */
    atomic_int  moves;                   /* of workers to other CPUs */
    atomic_bool moving; /* one of them: each reads an affinity, narrows it and restores what it has read */
} team;

static _Thread_local team own;
static atomic_bool        guarded;
static pthread_once_t     guard_once = PTHREAD_ONCE_INIT;

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Spins while *at & mask is value. False: it still is, and the caller should sleep. */
static bool spin(const team *t, _Atomic uint32_t *at, uint32_t mask, uint32_t value, int *shy)
{
    for (int i = 0; i < 64; i++) {
        if ((atomic_load_explicit(at, memory_order_acquire) & mask) != value) return true;
        relax();
    }
    if (*shy) return --*shy, false;
    if (atomic_load_explicit(&t->crowded, memory_order_relaxed)) return false;
    for (int64_t start = tn__sys_nanoseconds(), last = start; last - start < SPIN_NS;) {
        for (int i = 0; i < 32; i++) {
            if ((atomic_load_explicit(at, memory_order_acquire) & mask) != value) return true;
            relax();
        }
        const int64_t time = tn__sys_nanoseconds();
        if (time - last > SUSPENDED_NS) return *shy = SHY, false;
        last = time;
    }
    return false;
}

/* ---- one CPU for each thread ------------------------------------------------------------------------------------- */

static int look(team *t, int index)
{
    const int cpu = tn__cpu() + 1;
    if (atomic_load_explicit(&t->cpu[index], memory_order_relaxed) != cpu)
        atomic_store_explicit(&t->cpu[index], cpu, memory_order_relaxed);
    return cpu;
}

/* Moves a worker if a thread before it runs on the same CPU. Called before it joins a loop, as it may have to wait for
 * the new CPU. */
static void keep_apart(team *t, int index)
{
    int       taken[MAX_WORKERS + 1], n = 0;
    const int cpu = look(t, index);
    bool      shared = false;
    for (int i = 0, all = atomic_load(&t->started); i <= all; i++) {
        const int of = atomic_load_explicit(&t->cpu[i], memory_order_relaxed);
        if (of) taken[n++] = of - 1;
        shared = shared || (i < index && of == cpu);
    }
    if (!cpu || !shared || atomic_exchange(&t->moving, true)) return;
    const bool left = tn__leave_cpus(taken, n);
    atomic_store(&t->moving, false);
    if (!left) return;
    atomic_fetch_add(&t->moves, 1);
    look(t, index);
}

/* ---- a worker ---------------------------------------------------------------------------------------------------- */

static void take_part(team *t, int index)
{
    const uint32_t before = atomic_fetch_add(&t->state, 1);
    if (before & OPEN && index < t->n) {
        atomic_store_explicit(&t->inside[index], true, memory_order_release);
        t->work(t->user, index);
        atomic_store_explicit(&t->inside[index], false, memory_order_relaxed);
    }
    if (atomic_fetch_sub(&t->state, 1) == 1 && atomic_load(&t->waiting)) {
        pthread_mutex_lock(&t->lock);
        pthread_cond_signal(&t->left);
        pthread_mutex_unlock(&t->lock);
    }
}

static void *live(void *of)
{
    team     *t = of;
    const int index = atomic_fetch_add(&t->started, 1) + 1;
    int       shy = 0;
    uint32_t  seen = 0;
    int64_t   looked = 0;
    t->thread[index] = pthread_self();
    for (;;) {
        if (!spin(t, &t->epoch, UINT32_MAX, seen, &shy)) {
            pthread_mutex_lock(&t->lock);
            atomic_fetch_add(&t->asleep, 1);
            atomic_store_explicit(&t->cpu[index], 0, memory_order_relaxed);
            while (atomic_load(&t->epoch) == seen) pthread_cond_wait(&t->wake, &t->lock);
            atomic_fetch_sub(&t->asleep, 1);
            pthread_mutex_unlock(&t->lock);
        }
        seen = atomic_load(&t->epoch);
        if (atomic_load(&t->quit)) return atomic_fetch_add(&t->ended, 1), NULL;
        const int64_t time = tn__sys_nanoseconds();
        if (time - looked > LOOK_NS && !atomic_load_explicit(&t->crowded, memory_order_relaxed)) {
            looked = time;
            keep_apart(t, index);
        }
        take_part(t, index);
    }
}

/* ---- the owner --------------------------------------------------------------------------------------------------- */

static void begin(team *t)
{
    atomic_fetch_add(&t->epoch, 1);
    if (!atomic_load(&t->asleep)) return;
    pthread_mutex_lock(&t->lock);
    pthread_cond_broadcast(&t->wake);
    pthread_mutex_unlock(&t->lock);
}

/* The first worker in the loop; 0: none. */
static int first_inside(team *t)
{
    int i = 1;
    while (i < t->n && !atomic_load_explicit(&t->inside[i], memory_order_acquire)) i++;
    return i < t->n ? i : 0;
}

/* Sleeps until the workers have left. A worker that does not run meanwhile gets this thread's CPU. */
static void sleep_at_end(team *t)
{
    for (int64_t ns = DOZE_NS; atomic_load(&t->state); ns *= ns < MOST_DOZE_NS ? 2 : 1) {
        const int     i = atomic_load_explicit(&t->crowded, memory_order_relaxed) ? 0 : first_inside(t);
        const int64_t ran = i ? tn__thread_time(t->thread[i]) : -1;
        if (ran < 0) pthread_cond_wait(&t->left, &t->lock);
        else if (!tn__sys_wait(&t->left, &t->lock, ns) && i == first_inside(t) &&
                 ran == tn__thread_time(t->thread[i]) && !atomic_exchange(&t->moving, true)) {
            tn__fetch_thread(t->thread[i]);
            atomic_store(&t->moving, false);
            atomic_fetch_add(&t->moves, 1);
        }
    }
}

static void end(team *t)
{
    if ((atomic_fetch_and(&t->state, ~OPEN) & ~OPEN) == 0) return;
    while (atomic_load(&t->state)) {
        if (spin(t, &t->state, ~OPEN, atomic_load(&t->state), &t->shy)) continue;
        pthread_mutex_lock(&t->lock);
        atomic_store(&t->waiting, 1);
        sleep_at_end(t);
        atomic_store(&t->waiting, 0);
        pthread_mutex_unlock(&t->lock);
    }
}

static void end_team(void)
{
    team *t = &own;
    if (!t->ready) return;
    atomic_store(&t->quit, true);
    begin(t);
    for (int i = 0; i < t->made; i++) tn__sys_join(t->worker[i], &t->ended, t->made);
    pthread_cond_destroy(&t->wake), pthread_cond_destroy(&t->left), pthread_mutex_destroy(&t->lock);
    memset(t, 0, sizeof *t);
}

/* In the child only the thread that called fork is left. */
static void after_fork(void) { memset(&own, 0, sizeof own); }
static void set_guard(void) { atomic_store(&guarded, tn__sys_after_fork(after_fork)); }

static bool make_ready(team *t)
{
    pthread_once(&guard_once, set_guard);
    if (!atomic_load(&guarded) || pthread_mutex_init(&t->lock, NULL)) return false;
    if (pthread_cond_init(&t->wake, NULL) == 0) {
        if (pthread_cond_init(&t->left, NULL) == 0) {
            tn__at_thread_end(TN__END_TEAM, end_team);
            return t->ready = true;
        }
        pthread_cond_destroy(&t->wake);
    }
    pthread_mutex_destroy(&t->lock);
    return false;
}

/* Makes workers until there are n, or one cannot be made. */
static void grow(team *t, int n)
{
    while (t->made < n && tn__sys_thread(&t->worker[t->made], live, t)) t->made++;
    t->refused = t->made < n ? t->made + 1 : 0;
}

bool tn__team_run(int n, bool crowded, void (*work)(void *user, int worker), void *user)
{
    team *t = &own;
    if (!t->ready && !make_ready(t)) return false;
    if (t->made < n - 1 && !(t->refused && n - 1 >= t->refused)) grow(t, n - 1);
    if (!t->made) return false;
    t->work = work, t->user = user, t->n = n;
    look(t, 0);
    atomic_store_explicit(&t->crowded, crowded, memory_order_relaxed);
    atomic_fetch_or(&t->state, OPEN); /* a worker that is late for the last loop may be about to leave it */
    begin(t);
    work(user, 0);
    end(t);
    return true;
}

int  tn__team_moves(void) { return atomic_load(&own.moves); }
void tn__team_retry(void) { own.refused = 0; }
