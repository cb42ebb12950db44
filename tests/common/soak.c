/* soak.c — runs scenarios for a long time and checks that resources stay constant; see soak.h. */
#define _GNU_SOURCE
#include "tests/common/soak.h"

#include "core/core.h"
#include "tests/common/check_main.h"
#include "tests/common/faults.h"
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- resources of the process ------------------------------------------------------------------------------------ */

typedef struct {
    size_t  live;
    int64_t tensors, files, threads, names; /* files: open files; names: files in the test's folder */
} held;

static int names_in(const char *dir) /* number of entries; for /proc/self/fd it includes the folder's own descriptor */
{
    char any[100];
    snprintf(any, sizeof any, "%s/.", dir);
    return tn_names_beside(any);
}

/* The number of entries, of threads or open files. A thread is still listed for a moment after it was joined or the
 * owner of its pool has ended, and with it, under Wine, its open files; therefore, while there are more than `most`,
 * they are counted again for at most two seconds. */
static int64_t settled(const char *dir, int64_t most)
{
    enum { TIMES = 200 };
    const struct timespec moment = {.tv_nsec = 10000000};
    int64_t               n = names_in(dir);
    for (int i = 0; i < TIMES && n > most; i++, n = names_in(dir)) nanosleep(&moment, NULL);
    return n;
}

static held held_now(int64_t most_threads, int64_t most_files)
{
    const tn_memory m = tn_memory_now();
    const int64_t   threads = settled("/proc/self/task", most_threads);
    return (held){m.live, m.tensors, settled("/proc/self/fd", most_files), threads,
                  tn_names_beside(tn_test_file("any"))};
}

static double resident_mib(void)
{
    long  pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fscanf(f, "%*d %ld", &pages), 1);
    fclose(f);
    return (double)pages * 4096 / (1 << 20);
}

/* ---- runs with faults -------------------------------------------------------------------------------------------- */

static uint64_t drawn = 1; /* Knuth's MMIX generator, so that the test does not use the library's generator */
static uint64_t draw(uint64_t below)
{
    drawn = drawn * 6364136223846793005u + 1442695040888963407u;
    return (drawn >> 33) % below;
}

typedef struct {
    double (*once)(int i);
    int    i;
    bool   fails;
    double sum; /* NaN: failed */
} job;

static void *run(void *work)
{
    job *j = work;
    tn_clear_error();
    j->sum = j->once(j->i);
    if (tn_error() != TN_OK) j->sum = NAN;
    j->fails = tn_error() != TN_OK && tn_error() != TN_ENOMEM;
    tn_clear_error();
    return NULL;
}

static void run_apart(job *j) /* on a new thread */
{
    pthread_t t;
    ck_assert_int_eq(pthread_create(&t, NULL, run, j), 0);
    pthread_join(t, NULL);
}

/* Runs a scenario, with probability 1/2 with a low memory limit and with probability 1/4 on a new thread. Returns true
 * if the result is right, or if it failed with a low limit. */
static bool troubled(double (*once)(int i), int i, double right, bool *failed)
{
    const bool is_short = draw(2);
    job        j = {.once = once, .i = i};
    if (is_short) tn_set_memory_limit(tn_memory_now().live + 1 + draw(1 << 16));
    if (draw(4)) run(&j);
    else run_apart(&j);
    tn_set_memory_limit(0);
    *failed = isnan(j.sum);
    return !j.fails && (isnan(j.sum) ? is_short : j.sum == right);
}

/* Each worker keeps memory from the first loop in which it makes a tensor, which on a busy machine may come late: here
 * all of them make one. */
static void wait_for_all(int64_t from, int64_t to, void *user)
{
    atomic_int  *missing = user;
    const double until = now(CLOCK_MONOTONIC) + 5;
    tn_zeros(TN_SHAPE(1));
    atomic_fetch_sub(missing, (int)(to - from));
    while (atomic_load(missing) > 0 && now(CLOCK_MONOTONIC) < until) sched_yield();
}
static void all_take_part(void)
{
    atomic_int missing = tn_threads();
    tn_parallel_for(tn_threads(), 1, wait_for_all, &missing);
}

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

enum { PARTS = 16, STEADY = PARTS / 4 }; /* parts of the time; from the last part of the first quarter nothing grows */
static const double grows = 1.25, slack_mib = 4, long_enough = 600;

void tn_soak(const char *name, double seconds, int n, double (*once)(int i), void (*resident)(void))
{
    double mib[PARTS] = {0}, cpu[PARTS] = {0}, *right = calloc((size_t)n, sizeof *right);
    held   all_along = {0};
    long   rounds = 0, failures = 0;
    ck_assert_ptr_nonnull(right);
    all_take_part();
    const size_t kept = tn_memory_now().live; /* by the workers */
    const double began = now(CLOCK_MONOTONIC);
    for (double spent = 0; spent < seconds || rounds < 3; rounds++, spent = now(CLOCK_MONOTONIC) - began) {
        const double start = now(CLOCK_PROCESS_CPUTIME_ID);
        for (int i = 0; i < n; i++) {
            const double sum = once(i);
            ck_assert_msg(tn_error() == TN_OK, "round %ld, %d: %s", rounds, i, tn_error_message());
            if (!rounds) { /* in the first round */
                job apart = {.once = once, .i = i};
                right[i] = sum;
                run_apart(&apart);
                ck_assert_msg(apart.sum == sum, "%d gives %.17g, and %.17g on another thread", i, sum, apart.sum);
            }
            ck_assert_msg(sum == right[i], "round %ld: %d gives %.17g, and gave %.17g", rounds, i, sum, right[i]);
        }
        const double took = now(CLOCK_PROCESS_CPUTIME_ID) - start;
        /* measured here: each scenario has run to its end and left its files */
        held h = held_now(rounds > 1 ? all_along.threads : INT64_MAX, rounds > 1 ? all_along.files : INT64_MAX);
        h.live -= kept;
        if (rounds == 1) all_along = h;
        if (h.threads < all_along.threads) all_along.threads = h.threads; /* a thread was still ending */
        if (h.files < all_along.files) all_along.files = h.files;
        for (int i = 0; i < n; i++) {
            bool failed;
            ck_assert_msg(troubled(once, i, right[i], &failed), "round %ld, %d in troubled times", rounds, i);
            failures += failed;
        }
        if (resident) resident();
        ck_assert_msg(tn_error() == TN_OK, "round %ld: %s", rounds, tn_error_message());
        if (rounds > 1)
            ck_assert_msg(!memcmp(&h, &all_along, sizeof h),
                          "round %ld: %zu bytes, %lld tensors, %lld files, %lld threads, %lld files left; after the "
                          "second: %zu, %lld, %lld, %lld, %lld",
                          rounds, h.live, (long long)h.tensors, (long long)h.files, (long long)h.threads,
                          (long long)h.names, all_along.live, (long long)all_along.tensors, (long long)all_along.files,
                          (long long)all_along.threads, (long long)all_along.names);
        const int part = spent < seconds ? (int)(spent / seconds * PARTS) : PARTS - 1;
        mib[part] = fmax(mib[part], resident_mib());
        cpu[part] = cpu[part] > 0 ? fmin(cpu[part], took) : took;
    }
    free(right);
    int a = STEADY - 1, z = PARTS - 1; /* some parts have no round if a round takes longer than a part */
    while (a < z && mib[a] <= 0) a++;
    while (z > a && mib[z] <= 0) z--;
    printf("soak of %s: %ld rounds of %d scenarios in %.3g s, %ld of them out of memory; %.1f MiB after a quarter, "
           "%.1f at the end; %.3f s of CPU a round, then %.3f; %lld files, %lld threads, %zu bytes all along\n",
           name, rounds, n, seconds, failures, mib[a], mib[z], cpu[a], cpu[z], (long long)all_along.files,
           (long long)all_along.threads, all_along.live);
    /* AddressSanitizer delays the release of freed memory */
    ck_assert_msg(TN_TEST_SANITIZED || mib[z] <= mib[a] + slack_mib, "it needs %.1f MiB, and needed %.1f", mib[z],
                  mib[a]);
    if (seconds >= long_enough)
        ck_assert_msg(cpu[z] <= grows * cpu[a], "a round takes %.3f s, and took %.3f", cpu[z], cpu[a]);
}
