/* parallel.h — the current worker of a parallel loop (parallel.c). */
#ifndef TENON_CORE_BASE_PARALLEL_H
#define TENON_CORE_BASE_PARALLEL_H

#include "core/core.h"
#include "core/base/thread.h"

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

#endif
