/* gemm_tiles.h — a task of a product and what it reads (gemm_tiles.c), for gemm.c. */
#ifndef TENON_CORE_PRODUCTS_GEMM_TILES_H
#define TENON_CORE_PRODUCTS_GEMM_TILES_H

#include "core/products/gemm_plan.h"

/* A product in progress: its plan and its memory. */
typedef struct {
    const tn__gemm_plan *plan;
    char                *shared_b, *shared_a; /* packed for all tasks */
    char                *workspaces;          /* one for each thread */
} tn__gemm_job;

/* One matrix of the batch. */
typedef struct {
    const char *a, *b;
    char       *c, *bias, *pre, *old;
} tn__gemm_operands;

/* Strips [s0, s1) by panels [p0, p1). */
typedef struct {
    int64_t s0, s1, p0, p1;
} tn__gemm_block;

/* The epilogue of the block of c at (row, col); acc: its sums, NULL: none. */
void tn__gemm_finish(const tn__gemm_plan *plan, const tn__gemm_operands *m, int64_t row, int64_t col, int64_t rows,
                     int64_t cols, void *acc, int64_t acc_row);
/* Computes a block of matrix m. next: the matrix after it if this is all of m and the plan prefetches the next one;
 * NULL: none. *begun: the mr of the last call of the kernel's begin, 0: none. */
void tn__gemm_tiles(const tn__gemm_job *job, char *workspace, const tn__gemm_operands *m, const tn__gemm_block *block,
                    const tn__gemm_operands *next, int *begun);

#endif
