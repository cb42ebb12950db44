/* parallel.h — the current worker of a parallel loop (parallel.c), and the limits on the number of workers (cpus.c). */
#ifndef TENON_CORE_BASE_PARALLEL_H
#define TENON_CORE_BASE_PARALLEL_H

#include "core/core.h"
#include "core/base/thread.h"

#include <pthread.h>

/* Called between ops: reads the limits on the number of threads again, at most once a second, because quotas and
 * affinity change. Never within a function that has allocated memory for each of tn_threads(). */
void tn__threads_again(void);

/* tn_parallel_for for bodies that only compute: they make no tensors, call no ops and need no tn__worker. A single
 * block runs without a scope of its own. */
static inline void tn__compute_for(int64_t n, int64_t grain, void (*body)(int64_t from, int64_t to, void *user),
                                   void *user)
{
    if (n > 0 && n <= grain && !tn__self.shrink) body(0, n, user);
    else tn_parallel_for(n, grain, body, user);
}

/* Inside a body of tn_parallel_for: index of the worker that runs it, 0 … tn_threads()-1. Outside: 0. */
int tn__worker(void);

/* The limits on the number of threads, 0 if unknown; use is their minimum and at least 1. */
typedef struct {
    int use, allowed, cores, quota, asked; /* affinity mask, physical cores, cgroup rounded up, OMP_NUM_THREADS */
} tn__cpu_limits;
tn__cpu_limits tn__cpus(void);
int            tn__cgroup_cpus(const char *root); /* root: "", or a substitute folder in a test */
int            tn__cores(const char *root, const unsigned char *allowed, int cpus); /* allowed: one bit a CPU */
int            tn__env_threads(const char *text);

int tn__cpu(void); /* index of the CPU that the caller runs on; -1: unknown */
/* Moves the calling thread to a CPU that is not among the n taken ones. Its affinity is the same afterwards. False: its
 * affinity allows no other CPU. */
bool tn__leave_cpus(const int *taken, int n);
/* Moves another thread of this process to the caller's CPU; its affinity is the same afterwards. */
void    tn__fetch_thread(pthread_t thread);
int64_t tn__thread_time(pthread_t thread); /* nanoseconds for which it has run; -1: unknown */

#endif
