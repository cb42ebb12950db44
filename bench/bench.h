/* bench.h — what the measurements share. A workload is a function of its own and a line in main.c. */
#ifndef TENON_BENCH_H
#define TENON_BENCH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct {
    const char *self;    /* how this program was called */
    int         threads; /* 0: the library's default */
    double      seconds; /* how long to measure; 0: as long as is usual */
    bool        bf16;
    int64_t     layers, d_model, heads, ffn, vocab, batch, seq; /* 0: the workload's own */

    bool        json, no_peers; /* of kernels */
    const char *only, *size;
} bench_options;

/* A workload measures for about o->seconds and prints its members of the JSON object, each ended by ", ". It returns
 * 0, or 1 with the library's error standing. */
typedef int    bench_workload(const bench_options *o, FILE *json);
bench_workload bench_overhead;

int bench_kernels(const bench_options *o); /* kernels.c: a program in itself; returns the exit status */

double bench_now(void); /* seconds, from a clock that does not jump */

#endif
