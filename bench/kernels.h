/* kernels.h — the results of `bench kernels`: one line for each kernel, size, layout and number of threads. */
#ifndef TENON_BENCH_KERNELS_H
#define TENON_BENCH_KERNELS_H

#include <stdbool.h>
#include <stdio.h>

enum { TENON, ONEDNN, OPENBLAS, OPENBLAS_DEFAULT, PYTORCH, CONTENDERS };

typedef struct {
    char        kernel[32], size[48];
    const char *layout, *unit; /* "NT"; "GFLOP/s" or "GB/s" */
    const char *limit;         /* the peak to compare with: "peak_f32", "triad" */
    double      work;          /* operations or bytes per call */
    int         threads;
    double      peak;              /* measured, in `unit` */
    double      value[CONTENDERS]; /* in `unit`; 0: not measured */
    double      extra[CONTENDERS]; /* MiB in addition to operands and results; -1: not measured */
} kernel_line;

double kernel_best_peer(const kernel_line *l, const char *which); /* which: NULL: all peers; "gemm": without PyTorch */

/* Prints the required ratios with their measured values. Returns the number of missed ones. */
int kernels_verdict(FILE *to, const kernel_line *line, int lines);

#endif
