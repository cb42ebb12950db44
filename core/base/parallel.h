/* parallel.h — which of the workers of a parallel loop runs (parallel.c), and what limits their number (cpus.c). */
#ifndef TENON_CORE_BASE_PARALLEL_H
#define TENON_CORE_BASE_PARALLEL_H

#include "core/core.h"

/* Inside a body of tn_parallel_for: which of the workers, 0 … tn_threads()-1, runs it. 0 outside. */
int tn__worker(void);

/* What limits the number of threads, 0 where nothing is known; use is the least of them and at least 1. */
typedef struct {
    int use, allowed, cores, quota, asked; /* affinity mask, physical cores, cgroup rounded up, OMP_NUM_THREADS */
} tn__cpu_limits;
tn__cpu_limits tn__cpus(void);
int            tn__cgroup_cpus(const char *root); /* root: "" or, in a test, a folder that stands for / */
int            tn__cores(const char *root, const unsigned char *allowed, int cpus); /* allowed: one bit a CPU */
int            tn__env_threads(const char *text);

#endif
