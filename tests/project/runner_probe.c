/* runner_probe.c — tests that pass, fail, and leak, for runner.sh to check the output of the runner. */
#define _GNU_SOURCE
#include "tests/common/check_main.h"

#include "core/core.h"
#include "tests/common/soak.h"
#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

TEST(passes) { ck_assert_int_eq(tn_numel(tn_zeros(TN_SHAPE(2, 3))), 6); }

TEST(fails) { ck_assert_int_eq(tn_numel(tn_zeros(TN_SHAPE(2, 3))), 7); }

TEST(leaks) { tn_keep(tn_zeros(TN_SHAPE(2))); }

TEST(leaves_an_error) { tn_raise(TN_EINVAL, "probe: left behind"); }

TEST(rounds) { fesetround(FE_UPWARD); }

/* Repeated work for a soak, and faults that appear after several repetitions. */
static double level(int i) { return i; }
static double forgets_a_tensor(int i)
{
    tn_keep(tn_zeros(TN_SHAPE(2)));
    return i;
}
static double forgets_a_file(int i)
{
    if (!fopen("/dev/null", "r")) perror("/dev/null");
    return i;
}
static void *ends_at_once(void *nothing) { return nothing; }
static void *ends_later(void *nothing)
{
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    return nothing;
}
static void *never_ends(void *nothing)
{
    pause();
    return nothing;
}
static double with_thread(void *work(void *), int i)
{
    pthread_t t;
    return pthread_create(&t, NULL, work, NULL) || pthread_detach(t) ? (double)NAN : i;
}
static double starts_threads(int i) { return with_thread(i ? ends_later : ends_at_once, i); }
static double forgets_a_thread(int i) { return with_thread(never_ends, i); }
static double says_otherwise(int i)
{
    static int times;
    return times++ > 9 ? i + 1 : i; /* wrong from the third round */
}
static volatile char *kept[1024]; /* reachable, so that no leak checker fails first */
static double         needs_more(int i)
{
    static int   times;
    const size_t bytes = 1 << 18;
    if (times < 1024 && (kept[times] = malloc(bytes)))
        for (size_t at = 0; at < bytes; at += 1024) kept[times][at] = 1;
    times++;
    return i;
}

BARE_TEST(soak_level) { tn_soak("probe", 0.1, 2, level, NULL); }
BARE_TEST(soak_forgets_a_tensor) { tn_soak("probe", 0.1, 2, forgets_a_tensor, NULL); }
BARE_TEST(soak_forgets_a_file) { tn_soak("probe", 0.1, 2, forgets_a_file, NULL); }
BARE_TEST(soak_starts_threads) { tn_soak("probe", 0.1, 2, starts_threads, NULL); }
BARE_TEST(soak_forgets_a_thread) { tn_soak("probe", 0.1, 2, forgets_a_thread, NULL); }
BARE_TEST(soak_says_otherwise) { tn_soak("probe", 0.1, 2, says_otherwise, NULL); }
BARE_TEST(soak_needs_more) { tn_soak("probe", 0.1, 2, needs_more, NULL); }
