/* gemm_reference.h — the definition of a matrix product, to the bit: each element is one chain of multiply-adds in the
 * order of k, then alpha and beta, then one rounding. The exact value in long double checks its error. */
#ifndef TENON_TESTS_COMMON_GEMM_REFERENCE_H
#define TENON_TESTS_COMMON_GEMM_REFERENCE_H

#include "tests/common/check_main.h"
#include "core/base/bf16.h"
#include "core/tensor/convert.h"

#include "core/products/gemm.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A fast ck_assert for a million checks: Check writes a line to a file for each assertion. */
#define expect(truth) ((truth) ? (void)0 : ck_abort_msg("%s", #truth))

static const char *const isas[] = {"baseline", "avx2", "avx512", "avx512bf16", "amx"};
enum { ISAS = 5 };

/* How an instruction set adds a product to a sum: with two roundings; fused, with one; fused, and bf16 in pairs of
 * terms, the second one first; fused, and bf16 in groups of 32 terms. */
typedef enum { ROUNDS_TWICE, FUSES, PAIRS, GROUPS } adding;
static inline adding fused(const tn__kernel_table *t)
{
#ifdef __aarch64__
    (void)t;
    return FUSES;
#else
    return t->gemm_bf16->a_rows         ? GROUPS
           : t->gemm_bf16->pair == 2    ? PAIRS
           : strcmp(t->isa, "baseline") ? FUSES
                                        : ROUNDS_TWICE;
#endif
}

/* True if the table uses the products of the next lower instruction set, which the tests cover separately. */
static inline bool same_below(const tn__kernel_table *t, tn_dtype dt) { return fused(t) >= PAIRS && dt != TN_BF16; }

/* A matrix with any strides in its own buffer; the gaps between elements must not be written. */
typedef struct {
    tn_dtype dtype;
    int64_t  rows, cols, row, col, count; /* count: elements of the buffer */
    char    *data;
} matrix;

enum { ROWS, COLUMNS, WIDE_ROWS, WIDE_COLUMNS, SPREAD, SAME_ROWS, SAME_COLUMNS, ONE, LAYOUTS };
enum { OWN_LAYOUTS = SAME_ROWS }; /* layouts in which elements do not overlap */

static uint64_t      noise_state;
static inline double noise(void) /* in [-1, 1) */
{
    noise_state = noise_state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(noise_state >> 32) / 2147483648.0 - 1;
}
static inline int64_t pick(int64_t n) { return (int64_t)((noise() + 1) / 2 * (double)n); }

static inline void set_layout(matrix *m, tn_dtype dt, int64_t rows, int64_t cols, int layout)
{
    const int64_t strides[LAYOUTS][2] = {{cols, 1},         {1, rows}, {cols + 3, 1}, {1, rows + 5},
                                         {2 * cols + 1, 2}, {0, 1},    {1, 0},        {0, 0}};
    *m = (matrix){.dtype = dt, .rows = rows, .cols = cols, .row = strides[layout][0], .col = strides[layout][1]};
    m->count = rows && cols ? (rows - 1) * m->row + (cols - 1) * m->col + 1 : 0;
}

static inline void fill(matrix *m)
{
    for (int64_t i = 0; i < m->count; i++)
        tn__store(m->data + i * (int64_t)tn__dtype_bytes(m->dtype), m->dtype, noise());
}

static inline matrix matrix_new(tn_dtype dt, int64_t rows, int64_t cols, int layout)
{
    matrix m;
    set_layout(&m, dt, rows, cols, layout);
    m.data = malloc((size_t)m.count * tn__dtype_bytes(dt) + 1);
    ck_assert_ptr_nonnull(m.data);
    fill(&m);
    return m;
}

static inline void *element(const matrix *m, int64_t i, int64_t j)
{
    return m->data + (i * m->row + j * m->col) * (int64_t)tn__dtype_bytes(m->dtype);
}
static inline double at(const matrix *m, int64_t i, int64_t j) { return tn__load(element(m, i, j), m->dtype); }

/* One element of alpha · a b + beta · c; checks its distance from the exact value against the error bound of a sum. */
static inline double expected(adding how, double alpha, const matrix *a, const matrix *b, double beta, const matrix *c,
                              int64_t i, int64_t j)
{
    const int64_t k = a->cols;
    long double   exact = 0, size = 0;
    double        r;
    const double  old = beta == 0 ? 0 : at(c, i, j);
    const bool    f64 = a->dtype == TN_F64;
    double        sum64 = 0;
    float         sum32 = 0;
    const bool    pairs = how == PAIRS && a->dtype == TN_BF16, groups = how == GROUPS && a->dtype == TN_BF16;
    float         part[2] = {0}; /* sums of a group: terms at even positions, and at odd positions */
    for (int64_t q = 0; q < k && alpha != 0; q++) {
        const int64_t p = pairs && (q ^ 1) < k ? q ^ 1 : q;
        const double  x = at(a, i, p), y = at(b, p, j);
        if (groups) {
            part[p % 2] = fmaf((float)x, (float)y, part[p % 2]);
            if (p % 32 == 31 || p == k - 1) sum32 += part[0] + part[1], part[0] = part[1] = 0;
        } else if (f64) sum64 = how ? fma(x, y, sum64) : sum64 + x * y;
        else sum32 = how ? fmaf((float)x, (float)y, sum32) : sum32 + (float)x * (float)y;
        exact += (long double)x * y, size += fabsl((long double)x * y);
    }
    if (k == 0 || alpha == 0) {
        r = beta == 0 ? 0 : f64 ? beta * old : (float)beta * (float)old;
    } else if (f64) {
        r = alpha * sum64;
        if (beta != 0) r += beta * old;
    } else {
        float v = (float)alpha * sum32;
        if (beta != 0) v += (float)beta * (float)old;
        r = v;
    }
    exact = alpha == 0 ? 0 : exact * alpha;
    if (beta != 0) exact += (long double)beta * old;
    size = size * fabsl((long double)alpha) + fabsl((long double)beta * old);
    const long double eps = f64 ? DBL_EPSILON / 2 : FLT_EPSILON / 2;
    if (isfinite((double)exact)) expect(fabsl(r - exact) <= (long double)(k + 4) * eps * size);
    return c->dtype == TN_BF16 ? (double)tn__bf16_to_f32(tn__f32_to_bf16((float)r)) : r;
}

static inline bool same(double x, double y) { return (isnan(x) && isnan(y)) || memcmp(&x, &y, sizeof x) == 0; }

static inline tn__gemm_call call_of(const tn__kernel_table *t, double alpha, const matrix *a, const matrix *b,
                                    double beta, const matrix *c)
{
    return (tn__gemm_call){.dtype = a->dtype,
                           .ctype = c->dtype,
                           .m = c->rows,
                           .n = c->cols,
                           .k = a->cols,
                           .a = a->data,
                           .b = b->data,
                           .c = c->data,
                           .a_row = a->row,
                           .a_col = a->col,
                           .b_row = b->row,
                           .b_col = b->col,
                           .c_row = c->row,
                           .c_col = c->col,
                           .alpha = alpha,
                           .beta = beta,
                           .kernels = t};
}

#endif
