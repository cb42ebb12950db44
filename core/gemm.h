/* gemm.h — a batch of matrix products on plain pointers: what tn_gemm and the rooms that fuse products stand on. */
#ifndef TENON_CORE_GEMM_H
#define TENON_CORE_GEMM_H

#include "core/internal.h"
#include "core/kernels/kernels.h"

/* c = alpha · a b + beta · c for each matrix of the batch: a [m, k], b [k, n], c [m, n]. Strides count elements and may
 * be 0 in a and b; c's elements are distinct and lie in neither. beta = 0 does not read c, alpha = 0 neither a nor b.
 * What more is to be done with the sums (a bias, an activation) has its place beside alpha and beta, and is carried to
 * tn_finish_step. */
typedef struct {
    tn_dtype    dtype; /* of a and b: f32, f64 or bf16 (summed in f32) */
    tn_dtype    ctype; /* dtype, or bf16 beside f32 and f32 beside bf16 */
    int64_t     m, n, k;
    const void *a, *b;
    void       *c;
    int64_t     a_row, a_col, b_row, b_col, c_row, c_col;
    double      alpha, beta;

    int     dims; /* of the batch; 0: one product */
    int64_t batch[TN_MAX_DIMS], a_batch[TN_MAX_DIMS], b_batch[TN_MAX_DIMS], c_batch[TN_MAX_DIMS];

    const tn_kernel_table *kernels; /* NULL: those in use; tests name others */
} tn_gemm_call;

/* False: out of memory, raised, and nothing has been written. */
bool tn__gemm(const tn_gemm_call *g);

#endif
