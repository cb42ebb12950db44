/* test_threads.c — tn_parallel_for with any number of threads and in every situation: nested, inside a user's parallel
 * region, in children, when no threads can be created, and from several threads at once. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* setrlimit and its arguments */
#endif
#include "tests/common/check_main.h"

#include "core/base/parallel.h"
#include "core/system/system.h"
#include "core/base/team.h"
#include <dlfcn.h>
#include <fenv.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef _OPENMP
#include <omp.h>
#endif

/* ---- in a child ----------------------------------------------------------------------------------------------- */

/* The exit status of body run in a child; a child that hangs is ended after a while: -1. */
static int in_child(int (*body)(void))
{
    fflush(NULL);
    const pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        alarm(60);
        _exit(body());
    }
    int status = 0;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static _Atomic(int64_t) total;
static void             add(int64_t from, int64_t to, void *user)
{
    (void)user;
    int64_t sum = 0;
    for (int64_t i = from; i < to; i++) sum += i;
    atomic_fetch_add(&total, sum);
}
static bool loop_works(void)
{
    atomic_store(&total, 0);
    tn_parallel_for(100000, 1000, add, NULL);
    return atomic_load(&total) == (int64_t)100000 * 99999 / 2;
}

/* n blocks that wait for each other: they finish only on n threads. Gives up after ten seconds. */
static atomic_int arrived, invited;
static void       meet(int64_t from, int64_t to, void *user)
{
    (void)from, (void)to;
    atomic_fetch_add(&arrived, 1);
    const time_t start = time(NULL);
    while (atomic_load(&arrived) < atomic_load(&invited) && time(NULL) < start + 10) sched_yield();
    if (atomic_load(&arrived) < atomic_load(&invited)) *(atomic_bool *)user = true;
}
static bool threads_meet(int n)
{
    atomic_bool late = false;
    atomic_store(&arrived, 0), atomic_store(&invited, n);
    tn_set_threads(n);
    tn_parallel_for(n, 1, meet, &late);
    return !late;
}

static int child_of_a_serial_process(void)
{
    if (!loop_works()) return 1;
    return threads_meet(2) ? 0 : 2;
}
FIRST_TEST(a_child_forked_before_the_first_team_has_threads)
{
    ck_assert_int_eq(in_child(child_of_a_serial_process), 0);
}

static void *nothing(void *x) { return x; }
static bool  a_thread_can_be_had(void)
{
    pthread_t t;
    if (pthread_create(&t, NULL, nothing, NULL)) return false;
    pthread_join(t, NULL);
    return true;
}
/* Makes the system deny threads: no process slots for a user without privileges, or no address space for stacks. */
static bool refuse_threads(void)
{
    const struct rlimit none = {0, 0};
    if (geteuid() == 0 && (setgid(65534) || setuid(65534))) return false;
    if (!setrlimit(RLIMIT_NPROC, &none) && !a_thread_can_be_had()) return true;
#if !TN_TEST_SANITIZED
    long  pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f && fscanf(f, "%ld", &pages) == 1) {
        const rlim_t now = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + (1 << 20);
        setrlimit(RLIMIT_AS, &(struct rlimit){now, now});
    }
    if (f) fclose(f);
#endif
    return !a_thread_can_be_had();
}

enum { CANNOT_REFUSE = 77 };
static int child_without_threads(void)
{
    if (!refuse_threads()) return CANNOT_REFUSE;
    for (int n = 2; n <= 7; n++) {
        tn_set_threads(n);
        if (!loop_works()) return 1;
        if (!loop_works()) return 2;
    }
    return tn_error() == TN_OK ? 0 : 3;
}
FIRST_TEST(without_threads_loops_are_serial)
{
    const int status = in_child(child_without_threads);
    if (status == CANNOT_REFUSE) fprintf(stderr, "not tested: threads cannot be refused here\n");
    else ck_assert_int_eq(status, 0);
}

static int child_of_a_parallel_process(void)
{
    tn_set_threads(7);
    if (tn_threads() != 7) return 1;
    if (!loop_works()) return 2;
    tn_scope s = tn_scope_begin();
    tn_seed(1);
    if (!tn_normal(TN_SHAPE(100000), 0, 1)) return 3;
    tn_scope_end(s);
    return threads_meet(2) ? 0 : 4;
}
FIRST_TEST(a_child_forked_after_a_team_makes_its_own)
{
    if (TN_TEST_TSAN) {
        fprintf(stderr, "SKIPPED: ThreadSanitizer does not support threads in a child\n");
        return;
    }
    if (getenv("TENON_TEST_EMULATED")) {
        fprintf(stderr, "SKIPPED: qemu aborts when a child of a process with threads creates one\n");
        return;
    }
    /* A thread that is starting at the fork holds a lock of AddressSanitizer, which the child's threads wait for. */
    ck_assert(threads_meet(3));
    ck_assert(loop_works());
    ck_assert_int_eq(in_child(child_of_a_parallel_process), 0);
    tn_set_threads(3);
    ck_assert(loop_works()); /* and the parent continues as before */
    ck_assert(threads_meet(2));
}

/* ---- blocks --------------------------------------------------------------------------------------------------- */

typedef struct {
    int64_t    grain;
    atomic_int runs[1000]; /* of each block */
    atomic_int wrong;
} trace;

static void note(int64_t from, int64_t to, void *user)
{
    trace *t = user;
    if (from % t->grain || to <= from || to - from > t->grain) atomic_fetch_add(&t->wrong, 1);
    else atomic_fetch_add(&t->runs[from / t->grain], to - from == t->grain ? 1 : 1000);
}

TN_TEST(blocks_depend_on_the_grain_alone, 1, 8, 0)
{
    static const int64_t sizes[][2] = {{1, 1}, {5, 10}, {10, 10}, {11, 10}, {999, 1}, {1000, 7}, {100000, 101}};
    tn_set_threads(_i);
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        const int64_t n = sizes[k][0], grain = sizes[k][1], blocks = (n - 1) / grain + 1;
        trace         t = {.grain = grain};
        tn_parallel_for(n, grain, note, &t);
        ck_assert_int_eq(t.wrong, 0);
        for (int64_t b = 0; b < 1000; b++) {
            const int expected = b >= blocks ? 0 : b == blocks - 1 && n % grain ? 1000 : 1;
            if (t.runs[b] != expected)
                ck_abort_msg("n %d, grain %d: block %d: %d", (int)n, (int)grain, (int)b, t.runs[b]);
        }
    }
}

static void count_huge(int64_t from, int64_t to, void *user)
{
    int64_t *sum = user;
    sum[from / (INT64_MAX / 2)] = to - from;
}
TEST(the_ends_of_int64)
{
    int64_t sum[3] = {0};
    tn_set_threads(2);
    tn_parallel_for(INT64_MAX, INT64_MAX / 2, count_huge, sum);
    ck_assert_int_eq(sum[0], INT64_MAX / 2);
    ck_assert_int_eq(sum[1], INT64_MAX / 2);
    ck_assert_int_eq(sum[2], 1);
    memset(sum, 0, sizeof sum);
    tn_parallel_for(INT64_MAX, INT64_MAX, count_huge, sum);
    ck_assert_int_eq(sum[0], INT64_MAX);
    tn_parallel_for(0, 1, count_huge, NULL); /* no blocks, no calls */
}

TEST(loops_run_at_the_same_time) { ck_assert(threads_meet(2)); }

static void pause_ms(int64_t ms)
{
    const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

/* The worker's first block takes long: the caller must run the rest of its share. */
static atomic_int by_worker;
static void       slow_worker(int64_t from, int64_t to, void *user)
{
    (void)from, (void)to, (void)user;
    pause_ms(tn__worker() && !atomic_fetch_add(&by_worker, 1) ? 500 : 1);
}
TEST(a_slow_thread_is_helped)
{
    atomic_store(&by_worker, 0);
    tn_set_threads(2);
    tn_parallel_for(64, 1, slow_worker, NULL);
    ck_assert_int_le(by_worker, 1);
}

TEST(idle_workers_sleep)
{
    tn_set_threads(4);
    ck_assert(loop_works());
    pause_ms(50);
    const clock_t before = clock(); /* CPU time of the whole process */
    pause_ms(400);
    ck_assert_double_lt((double)(clock() - before) / CLOCKS_PER_SEC, 0.1);
}

TEST(any_team_after_any_other)
{
    static const int sizes[] = {1, 2, 3, 7, 2, 5, 1, 7, 4, 6, 2};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        tn_set_threads(sizes[i]);
        ck_assert_int_eq(tn_threads(), sizes[i]);
        ck_assert(loop_works());
    }
}

/* ---- one CPU for each thread ------------------------------------------------------------------------------------- */

/* Copies the affinity of the calling thread; false, with a note: it has a single CPU, or the system is another one. */
static bool several_cpus(cpu_set_t *allowed)
{
    if (tn__cpu() >= 0 && sched_getaffinity(0, sizeof *allowed, allowed) == 0 && CPU_COUNT(allowed) > 1) return true;
    puts("skipped: one CPU");
    return false;
}

TEST(a_thread_leaves_a_cpu)
{
    cpu_set_t before, after;
    if (!several_cpus(&before)) return;
    bool left = false;
    for (int i = 0; i < 100 && !left; i++) { /* the system may move it back */
        const int cpu = tn__cpu();
        tn__leave_cpus(&cpu, 1);
        left = tn__cpu() != cpu;
        ck_assert_int_eq(sched_getaffinity(0, sizeof after, &after), 0);
        ck_assert(CPU_EQUAL(&before, &after));
    }
    ck_assert(left);
    int all[CPU_SETSIZE];
    for (int i = 0; i < CPU_SETSIZE; i++) all[i] = i;
    tn__leave_cpus(all, CPU_SETSIZE); /* nowhere to go */
    ck_assert_int_eq(sched_getaffinity(0, sizeof after, &after), 0);
    ck_assert(CPU_EQUAL(&before, &after));
}

/* Replaces the system's function, which the library calls; counts its calls. */
static int affinities_set;
int        pthread_setaffinity_np(pthread_t thread, size_t size, const cpu_set_t *set)
{
    int (*real)(pthread_t, size_t, const cpu_set_t *);
    *(void **)&real = dlsym(RTLD_NEXT, "pthread_setaffinity_np");
    affinities_set++;
    return real(thread, size, set);
}

/* A thread that is bound to one CPU may just be moving itself there. To restore that affinity after it has moved would
 * bind it for good. */
TEST(a_moving_thread_is_not_fetched)
{
    cpu_set_t allowed, one;
    if (!several_cpus(&allowed)) return;
    CPU_ZERO(&one);
    CPU_SET((size_t)tn__cpu(), &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    affinities_set = 0;
    tn__fetch_thread(pthread_self());
    ck_assert_int_eq(affinities_set, 0);
    ck_assert_int_eq(sched_setaffinity(0, sizeof allowed, &allowed), 0);
    tn__fetch_thread(pthread_self());
    ck_assert_int_eq(affinities_set, 2);
}

/* A worker that arrives late may just be moving, with a narrower affinity; false if the affinity stays so. */
static bool keeps_affinity(int thread, const cpu_set_t *allowed)
{
    for (int i = 0; i < 1000; i++, pause_ms(10)) {
        cpu_set_t now;
        ck_assert_int_eq(sched_getaffinity(thread, sizeof now, &now), 0);
        if (CPU_EQUAL(allowed, &now)) return true;
    }
    return false;
}

static atomic_int worker_id,
    caller_cpu = -1; /* caller_cpu: where the worker goes, to share it with the caller; -1: stay */
static void note_worker(int64_t from, int64_t to, void *user)
{
    (void)from, (void)to, (void)user;
    for (const clock_t end = clock() + CLOCKS_PER_SEC / 2000; clock() < end;)
        ;
    if (!tn__worker()) return;
    atomic_store(&worker_id, (int)syscall(SYS_gettid));
    const int cpu = atomic_load(&caller_cpu);
    cpu_set_t allowed, one;
    if (cpu < 0 || sched_getaffinity(0, sizeof allowed, &allowed)) return;
    CPU_ZERO(&one);
    CPU_SET((size_t)cpu, &one);
    sched_setaffinity(0, sizeof one, &one); /* by the worker itself: others could interrupt a move of the library */
    sched_setaffinity(0, sizeof allowed, &allowed);
}

/* The system would move it, too, but late, and not at all if the other CPUs are busy. */
TEST(a_worker_leaves_the_callers_cpu)
{
    cpu_set_t allowed;
    if (!several_cpus(&allowed)) return;
    tn_set_threads(2);
    const int before = tn__team_moves();
    for (const time_t end = time(NULL) + 30; tn__team_moves() == before && time(NULL) < end;) {
        atomic_store(&caller_cpu, tn__cpu());
        tn_parallel_for(8, 1, note_worker, NULL);
    }
    atomic_store(&caller_cpu, -1);
    ck_assert_int_gt(tn__team_moves(), before);
    for (atomic_store(&worker_id, 0); !atomic_load(&worker_id);) tn_parallel_for(8, 1, note_worker, NULL);
    ck_assert(keeps_affinity(worker_id, &allowed));
}

static void sleep_in_worker(int64_t from, int64_t to, void *user)
{
    (void)from, (void)to, (void)user;
    if (!tn__worker()) return;
    atomic_store(&worker_id, (int)syscall(SYS_gettid));
    pause_ms(20);
}

/* A worker that sleeps does not run, as one that the system has suspended. */
TEST(a_suspended_worker_is_fetched)
{
    cpu_set_t allowed;
    if (!several_cpus(&allowed)) return;
    tn_set_threads(2);
    const int before = tn__team_moves();
    for (const time_t end = time(NULL) + 30; tn__team_moves() == before && time(NULL) < end;) {
        atomic_store(&worker_id, 0);
        tn_parallel_for(8, 1, sleep_in_worker, NULL);
    }
    ck_assert_int_gt(tn__team_moves(), before);
    for (atomic_store(&worker_id, 0); !atomic_load(&worker_id);) tn_parallel_for(8, 1, sleep_in_worker, NULL);
    ck_assert(keeps_affinity(worker_id, &allowed));
}

/* ---- nested --------------------------------------------------------------------------------------------------- */

typedef struct {
    int        threads;
    atomic_int bad, inner;
} nest;

static void inside(int64_t from, int64_t to, void *user)
{
    nest *n = user;
    if (tn__worker() != 0 || tn_threads() != 1) atomic_fetch_add(&n->bad, 1);
    atomic_fetch_add(&n->inner, (int)(to - from));
}
static void outside(int64_t from, int64_t to, void *user)
{
    nest     *n = user;
    const int w = tn__worker();
    if (w < 0 || w >= n->threads || (n->threads > 1 && tn_threads() != 1)) atomic_fetch_add(&n->bad, 1);
    for (int64_t i = from; i < to; i++) tn_parallel_for(100, 10, inside, n);
    if (tn__worker() != w) atomic_fetch_add(&n->bad, 1);
}

TN_TEST(a_loop_inside_a_loop_is_serial, 1, 8, 0)
{
    tn_set_threads(_i);
    nest n = {.threads = tn_threads()};
    tn_parallel_for(64, 1, outside, &n);
    ck_assert_int_eq(n.inner, 6400);
    ck_assert_int_eq(n.bad, 0);
    ck_assert_int_eq(tn__worker(), 0);
    ck_assert_int_eq(tn_threads(), n.threads);
}

TEST(inside_a_users_region_loops_are_serial)
{
#ifdef _OPENMP
    atomic_int bad = 0, right = 0;
#pragma omp parallel num_threads(4)
    {
        nest n = {.threads = 1};
        tn_set_threads(3);
        tn_parallel_for(20, 1, outside, &n);
        if (n.bad || tn_threads() != 1) atomic_fetch_add(&bad, 1);
        if (n.inner == 2000) atomic_fetch_add(&right, 1);
        tn_set_threads(0);
    }
    ck_assert_int_eq(bad, 0);
    ck_assert_int_eq(right, 4);
#else
    fprintf(stderr, "SKIPPED: OpenMP is not installed\n");
#endif
}

TEST(the_processs_settings_stay)
{
#ifdef _OPENMP
    const int max = omp_get_max_threads(), dynamic = omp_get_dynamic(), levels = omp_get_max_active_levels();
    for (int n = 1; n <= 7; n++) {
        tn_set_threads(n);
        ck_assert(loop_works());
    }
    ck_assert_int_eq(omp_get_max_threads(), max);
    ck_assert_int_eq(omp_get_dynamic(), dynamic);
    ck_assert_int_eq(omp_get_max_active_levels(), levels);
#else
    fprintf(stderr, "SKIPPED: OpenMP is not installed\n");
#endif
}

/* ---- bodies that use the library ------------------------------------------------------------------------------- */

static void fails_late(int64_t from, int64_t to, void *user)
{
    (void)to, (void)user;
    if (from >= 5) tn_raise(TN_EINDEX, "block %d", (int)from);
}
TN_TEST(an_error_in_a_body_reaches_the_caller, 1, 8, 0)
{
    tn_set_threads(_i);
    tn_path_push("encoder");
    tn_parallel_for(20, 1, fails_late, NULL);
    tn_path_pop();
    const char *text = tn_error_message();
    ck_assert_int_eq(tn_error(), TN_EINDEX);
    ck_assert_msg(!strncmp(text, "encoder: block 5", 16) && (text[16] == 0 || text[16] == ' '), "%s", text);
    tn_clear_error();
    ck_assert(loop_works()); /* the error is cleared in the workers */
    ck_assert_int_eq(tn_error(), TN_OK);

    tn_raise(TN_EIO, "planted"); /* the first error stays */
    tn_parallel_for(20, 1, fails_late, NULL);
    ck_error_code(TN_EIO);
}

static void makes_tensors(int64_t from, int64_t to, void *user)
{
    tn_tensor **kept = user;
    (void)to;
    tn_tensor *t = tn_full(TN_SHAPE(10), (double)from), *more = tn_zeros(TN_SHAPE(20));
    tn_path_push("forgotten");
    if (!tn_grad_enabled() && more) kept[from] = tn_keep(t);
}
TN_TEST(what_a_body_makes_goes_with_its_block, 1, 8, 0)
{
    tn_tensor    *kept[16] = {NULL};
    const int64_t before = tn_memory_now().tensors;
    tn_set_threads(_i);
    tn_scope s = tn_no_grad_begin(); /* and a body runs in the mode of its caller */
    tn_parallel_for(16, 1, makes_tensors, kept);
    ck_assert_int_eq(tn_memory_now().tensors, before + 16);
    ck_assert(!tn_grad_enabled());
    tn_scope_end(s);
    for (int i = 0; i < 16; i++) {
        ck_assert_double_eq(tn_get(kept[i], 9), i);
        tn_drop(kept[i]);
    }
    ck_assert_int_eq(tn_memory_now().tensors, before);
    tn_raise(TN_EINVAL, "no path");
    ck_error(TN_EINVAL, "no path");
}

TEST(errors)
{
    tn_parallel_for(-1, 1, add, NULL);
    ck_error(TN_EINVAL, "tn_parallel_for: n is -1, but must not be negative");
    tn_parallel_for(10, 0, add, NULL);
    ck_error(TN_EINVAL, "tn_parallel_for: grain is 0, but must be at least 1");
    tn_parallel_for(10, 1, NULL, NULL);
    ck_error(TN_EINVAL, "tn_parallel_for: body is NULL");
    const int n = tn_threads();
    tn_set_threads(-2);
    ck_error(TN_EINVAL, "tn_set_threads: n is -2, but must be 1 to 512, or 0 for the default");
    tn_set_threads(513);
    ck_error(TN_EINVAL, "tn_set_threads: n is 513, but must be 1 to 512, or 0 for the default");
    tn_raise(TN_EINVAL, "planted");
    tn_set_threads(5);
    ck_assert(loop_works()); /* a loop is not an op: kernels also run for readers */
    tn_clear_error();
    ck_assert_int_eq(tn_threads(), n);
}

/* ---- several user threads ---------------------------------------------------------------------------------------- */

typedef struct {
    pthread_t thread;
    int       id, threads, failed;
    float     sum[3];
} user_thread;

static void work(user_thread *u)
{
    u->failed = 0;
    for (int round = 0; round < 3; round++) {
        tn_scope s = tn_scope_begin();
        tn_set_threads(u->threads);
        tn_seed((uint64_t)u->id);
        tn_tensor *t = tn_normal(TN_SHAPE(40000), u->id, 1), *copy = tn_empty_of(TN_F64, TN_SHAPE(40000));
        u->failed |= tn_copy_from(copy, t) != TN_OK || tn_numel(t) != 40000;
        float sum = 0;
        for (int64_t i = 0; i < 40000; i += 97) sum += (float)tn_get(copy, i);
        u->sum[round] = sum;
        tn_zeros(TN_SHAPE(-1 - u->id)); /* each has its own error */
        char expected[80];
        snprintf(expected, sizeof expected, "tn_zeros: [%d] has a negative size in dim 0", -1 - u->id);
        u->failed |= strcmp(tn_error_message(), expected) != 0;
        tn_clear_error();
        tn_scope_end(s);
    }
}
static void *run_user(void *u)
{
    work(u);
    return NULL;
}

TEST(eight_threads_at_once)
{
    user_thread u[8], alone[8];
    for (int i = 0; i < 8; i++) {
        alone[i] = (user_thread){.id = i, .threads = 1};
        work(&alone[i]);
        u[i] = (user_thread){.id = i, .threads = 1 + i % 3};
    }
    for (int i = 0; i < 8; i++) ck_assert_int_eq(pthread_create(&u[i].thread, NULL, run_user, &u[i]), 0);
    for (int i = 0; i < 8; i++) pthread_join(u[i].thread, NULL);
    for (int i = 0; i < 8; i++) {
        ck_assert(!u[i].failed);
        ck_assert_mem_eq(u[i].sum, alone[i].sum, sizeof u[i].sum);
    }
}

static void *ask_threads(void *to)
{
    *(int *)to = tn_threads();
    return NULL;
}
TEST(the_number_is_the_threads_own)
{
    pthread_t t;
    int       theirs = 0;
    tn_set_threads(0);
    const int usual = tn_threads();
    tn_set_threads(usual + 1);
    ck_assert_int_eq(pthread_create(&t, NULL, ask_threads, &theirs), 0);
    pthread_join(t, NULL);
    ck_assert_int_eq(theirs, usual);
    ck_assert_int_eq(tn_threads(), usual + 1);
}

/* A host that changes the rounding mode after workers exist: they round as it does, with the bits of one thread. */
static void thirds(int64_t from, int64_t to, void *user)
{
    volatile double one = 1, three = 3;
    for (int64_t i = from; i < to; i++) ((double *)user)[i] = one / three;
}
TEST(workers_round_as_their_caller)
{
    static const int ways[] = {FE_UPWARD, FE_DOWNWARD, FE_TONEAREST};
    enum { N = 64 };
    double all[N];
    tn_set_threads(4);
    tn_parallel_for(N, 1, thirds, all); /* a team */
    for (int k = 0; k < 3; k++) {
        volatile double one = 1, three = 3;
        fesetround(ways[k]);
        const double want = one / three;
        tn_parallel_for(N, 1, thirds, all);
        fesetround(FE_TONEAREST);
        for (int i = 0; i < N; i++) ck_assert_double_eq(all[i], want);
    }
}
