/* bench.h — what the workloads share. A workload is a file of its own and a line in main.c. */
#ifndef TENON_BENCH_H
#define TENON_BENCH_H

#include <stdio.h>

typedef struct {
    int    threads; /* 0: the library's default */
    double seconds; /* how long to measure */
} bench_options;

/* A workload measures for about o->seconds and prints its members of the JSON object, each ended by ", ". It returns
 * 0, or 1 with the library's error standing. */
typedef int    bench_workload(const bench_options *o, FILE *json);
bench_workload bench_overhead;

double bench_now(void); /* seconds, from a clock that does not jump */

#endif
