/* gemm.h — matrix products: of tensors, and of plain pointers, on which the rooms that fuse products are built. */
#ifndef TENON_CORE_PRODUCTS_GEMM_H
#define TENON_CORE_PRODUCTS_GEMM_H

#include "core/kernels/kernels.h"
#include "core/tensor/tensor.h"

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

/* c[i] = alpha · a[i] b[i] + beta · c[i] for each matrix of a batch: c [..., m, n], a [..., m, k], b [..., k, n]; the
 * leading dims of a and b broadcast to c's; any strides; one floating dtype. Each element's terms are added in an
 * order that depends on k, the dtype and the instruction set alone. beta = 0 does not read c. May raise TN_ENOMEM. */
void tn__gemm(double alpha, const tn_tensor *a, const tn_tensor *b, double beta, tn_tensor *c);
/* c[i] = alpha · a[i] b[i] + beta · old[i]; old broadcasts to c, too. */
void tn__gemm_onto(double alpha, const tn_tensor *a, const tn_tensor *b, double beta, const tn_tensor *old,
                   tn_tensor *c);
/* tn__gemm with an epilogue on the sums while they are in the cache: v = a b + bias, pre = v, c = act(v) + more. bias
 * and more broadcast to c, pre has c's shape; each may be NULL. */
typedef struct {
    const tn_tensor *bias, *more;
    tn_tensor       *pre;
    tn__act          act;
    bool             passing; /* b is written again without a new version: never kept packed */
} tn__epilogue;
void tn__gemm_with(const tn_tensor *a, const tn_tensor *b, tn_tensor *c, const tn__epilogue *e);
/* c = a b + bias as in tn__gemm_with for each of n parts, all 2-d, of which none writes to another's operands. Parts
 * that are too small for several threads are distributed over them. */
typedef struct {
    tn_tensor        a, b, c;
    const tn_tensor *bias;
} tn__gemm_part;
void tn__gemm_parts(int64_t n, tn__gemm_part *part);
/* c = a b, where a term whose a is 0 counts as 0 even if its b is NaN or infinite: zeros of a select (gemm_finite.c).
 * With finite b the same bits as tn__gemm. c is contiguous. */
void tn__gemm_finite(const tn_tensor *a, const tn_tensor *b, tn_tensor *c);

/* ---- plain pointers ---------------------------------------------------------------------------------------------- */

/* An operand of c's dtype, read or written along with c, element by element. Strides may be 0, but not in `pre`. */
typedef struct {
    void   *at; /* NULL: none */
    int64_t row, col, batch[TN_MAX_DIMS];
} tn__gemm_side;

/* For each matrix of the batch: a [m, k], b [k, n], c [m, n],
 *
 *     v = alpha · a b + bias,   pre = v,   c = act(v) + beta · old
 *
 * Strides count elements and may be 0 in a and b; c's elements are distinct and do not overlap a or b. If `old` is
 * unset, it is c itself; beta = 0 reads neither, alpha = 0 reads neither a nor b. */
typedef struct {
    tn_dtype    dtype; /* of a and b: f32, f64 or bf16 (summed in f32) */
    tn_dtype    ctype; /* dtype, or bf16 for f32 and f32 for bf16 */
    int64_t     m, n, k;
    const void *a, *b;
    void       *c;
    int64_t     a_row, a_col, b_row, b_col, c_row, c_col;
    double      alpha, beta;

    const int64_t *b_at; /* elements from b to its row p; NULL: p · b_row. See tn__gemm_of_rows */

    int     dims; /* of the batch; 0: one product */
    int64_t batch[TN_MAX_DIMS], a_batch[TN_MAX_DIMS], b_batch[TN_MAX_DIMS], c_batch[TN_MAX_DIMS];

    tn__gemm_side bias, pre, old;
    tn__act       act;

    tn__storage *storage; /* b's, if b changes only with its version and may be kept packed; or NULL */

    const tn__kernel_table *kernels; /* NULL: the table in use; tests pass others */
} tn__gemm_call;

/* False: out of memory, raised, and nothing has been written. */
bool tn__gemm_run(const tn__gemm_call *g);

/* The number of columns of which n must be a multiple in products with b_at, 0: there are none with this dtype on this
 * CPU. They have m > 1, dims 0, dense rows of a and c, alpha 1, beta 0, no pre and no act. */
int64_t tn__gemm_of_rows(tn_dtype dt);

#endif
