/* kernels.h — what `bench kernels` has measured: one line for each kernel, size, layout and number of threads. */
#ifndef TENON_BENCH_KERNELS_H
#define TENON_BENCH_KERNELS_H

#include <stdbool.h>
#include <stdio.h>

enum { TENON, ONEDNN, OPENBLAS, OPENBLAS_DEFAULT, PYTORCH, CONTENDERS };

typedef struct {
    char        kernel[32], size[48];
    const char *layout, *unit; /* "NT"; "GFLOP/s" or "GB/s" */
    const char *limit;         /* the peak that it is held against: "peak_f32", "triad" */
    double      work;          /* operations or bytes of a call */
    int         threads;
    double      peak;              /* measured, in the unit */
    double      value[CONTENDERS]; /* in the unit; 0: not measured */
    double      extra[CONTENDERS]; /* MiB beside operands and results; -1: not measured */
} kernel_line;

double kernel_best_peer(const kernel_line *l, const char *which); /* which: NULL for all, or "gemm": without PyTorch */

/* What is asked of the kernels, each with its figure and whether it is met. Returns how many are not. */
int kernels_verdict(FILE *to, const kernel_line *line, int lines);

#endif
