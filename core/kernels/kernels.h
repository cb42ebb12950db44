/* kernels.h — the kernels that exist once for each instruction set, as tables of functions, one of which is chosen when
 * the program first needs it. Kernels see plain pointers, write only what they are told to, and cannot fail. */
#ifndef TENON_CORE_KERNELS_KERNELS_H
#define TENON_CORE_KERNELS_KERNELS_H

#include "core/core.h"
#include "core/kernels/pairs.h"
#include "core/kernels/rows.h"
#include "core/kernels/vecmath_table.h"

/* ---- products of matrices: what core/products/gemm.c is made of ---- */

/* One micro-tile, kept in registers: acc[i][j] = from[i][j] + Σ_p a[i][p] · b[p][j], one term after the other. mr rows,
 * nv vectors of columns. Strides in elements; the columns of b, from and to are dense. from may be NULL: zeros. */
typedef struct {
    int         mr, nv;
    int64_t     k; /* steps; a and b are units */
    const void *a, *b;
    int64_t     a_row, a_col, b_row;
    const void *from;
    void       *to;
    int64_t     from_row, to_row;
    bool        to_bf16;  /* to is bf16: only of whole strips, where the kernels take pairs */
    const void *prefetch; /* one cache line of it is prefetched to L2 with each step of k; NULL: nothing */
} tn__gemm_step;

/* One row: y[j] = (first ? 0 : y[j]) + Σ_p a[p] · b[p][j], for n columns, whole vectors. b_row or b_col is 1. */
typedef struct {
    int64_t     n, k;
    const void *a, *b;
    int64_t     a_col, b_row, b_col;
    void       *y;
    bool        first, beyond_l2; /* beyond_l2: b is larger than L2 and streams from memory */
} tn__gemv_step;

/* to[r][c] = from[r][c], with zeros from cols up to width. Where the kernels take pairs, two terms that follow each
 * other become a unit, the last one perhaps with a zero: the terms are the r or, with terms_in_rows, the c; to has half
 * as many of them. */
typedef struct {
    int64_t     rows, cols, width; /* width in units */
    const void *from;
    int64_t     from_row, from_col;
    void       *to; /* dense: rows of width */
    bool        terms_in_rows;
    int64_t     strip_stride; /* not 0: width is that of four strips of 8 columns, so many units apart */
    int64_t     to_row;       /* with terms_in_rows, units from row to row of to; 0: width */
} tn__pack_step;
enum {
    TN__PACK_AHEAD = 16
}; /* rows: how far ahead packing prefetches; rows far apart are no stream for the hardware */

typedef enum { TN__ACT_NONE, TN__ACT_RELU, TN__ACT_GELU, TN__ACT_GELU_TANH } tn__act;

/* The epilogue: what becomes of the finished sums, while they are in the cache:
 *
 *     v = alpha · acc + bias,   pre = v,   c = act(v) + beta · old
 *
 * bias, pre and old may be NULL, old may be c; all are of c's type, to which pre and c are rounded once. beta = 0 does
 * not read old. acc is written over; NULL stands for 0, and then there is neither bias nor pre nor act. */
typedef struct {
    int64_t     rows, cols;
    void       *acc;
    int64_t     acc_row;
    void       *c, *pre;
    const void *bias, *old;
    int64_t     c_row, c_col, pre_row, pre_col, bias_row, bias_col, old_row, old_col;
    bool        bf16; /* c is bf16 */
    tn__act     act;
    double      alpha, beta;
} tn__epilogue_step;

typedef struct {
    int  mr, nv; /* the largest micro-tile */
    int  kept;   /* vectors in a panel of a b that is kept for one row */
    int  lanes;  /* elements in a vector   */
    int  pair;   /* terms in a step of k: 2 for dot products of bf16, else 1 */
    int  steps;  /* of 4 bytes, at most in a block of k: what L1 holds of a strip */
    bool a_rows; /* of a, units that follow each other in k lie side by side: columns are turned when they are packed */
    void (*begin)(int mr); /* before the first tile of so many rows, in each thread; NULL: nothing is to be done */
    void (*end)(void);     /* behind the last tile: what begin took is the system's again */
    void (*tile)(const tn__gemm_step *s);
    void (*row)(const tn__gemv_step *s);
    void (*pack)(const tn__pack_step *s);      /* in pairs: of dense rows of f32, rounded */
    void (*pack_bf16)(const tn__pack_step *s); /* widened to f32, or in pairs; for f64 NULL */
    void (*epilogue)(const tn__epilogue_step *s);
} tn__gemm_kernels;

/* ---- weights of 8 bits, and of f16: what core/products/q8_linear.c is made of ---- */

/* Weights of 64 rows (a panel), 32 columns of them (a group) at a time: a block is 64 scales in f16, little-endian, and
 * then for each of the 32 columns 64 bytes, in the order of TN__Q8_BYTE. A weight is its byte, less 128, times its
 * row's scale, which is exact in f32. */
enum { TN__Q8_PANEL = 64, TN__Q8_GROUP = 32, TN__Q8_SCALES = 2 * TN__Q8_PANEL };
enum { TN__Q8_BLOCK = TN__Q8_SCALES + TN__Q8_GROUP * TN__Q8_PANEL };
/* Where row r's byte lies: rows r, r + 16, r + 32 and r + 48 side by side, so that shifts and masks make four vectors
 * of a vector of bytes, without a shuffle. */
#define TN__Q8_BYTE(r) ((r) % 16 * 4 + (r) / 16)

/* Those of f16 lie in the same panels; there a group is one column, and its block the f16 of the 64 rows. */

/* Rows of f32 times one panel of so many blocks, one behind the other: y[i][j] = Σ_p x[i][p] · w[j][p], one term after
 * the other from 0: the chain of the tiles of f32. All 64 columns of y are written. */
typedef struct {
    int64_t        rows, groups;
    const float   *x;
    int64_t        x_row;
    const uint8_t *blocks;
    float         *y;
    int64_t        y_row;
} tn__q8_step;

/* All rows, by passes that take 1 to `most` of them each, as equal as can be: 5 rows are 3 and 2, not 4 and 1. */
typedef void (*tn__q8_pass)(const tn__q8_step *s, int64_t row);
static inline void tn__q8_passes(const tn__q8_step *s, const tn__q8_pass *pass, int64_t most)
{
    int64_t passes = (s->rows + most - 1) / most;
    for (int64_t row = 0, m; row < s->rows; row += m, passes--) {
        m = (s->rows - row + passes - 1) / passes;
        pass[m - 1](s, row);
    }
}

typedef struct {
    int group, block; /* columns that lie together, and their bytes */
    int rows;         /* that a product computes at a time, each pass reading the panel anew */
    void (*product)(const tn__q8_step *s);
    /* to[p][j] = w[j][p] for a panel of so many blocks: 64 columns */
    void (*widen)(int64_t groups, const uint8_t *blocks, float *to, int64_t to_row);
} tn__q8_kernels;

/* ---- number types ---- */

typedef void tn__narrow_kernel(int64_t n, uint16_t *restrict y, const float *restrict x); /* f32 to bf16 */
typedef void tn__widen_kernel(int64_t n, float *restrict y, const uint16_t *restrict x);  /* bf16 to f32 */

/* ---- attention: what core/products/attention.c does to a block of scores between its products ---- */

/* Rows of queries by columns of keys. Row i sees the keys before first + i · step. Rows have room up to the end of a
 * vector: scores come in up to there, and zeros are put there; so have max, sum, part and factor, one number a row. */
typedef struct {
    int64_t     rows, keys, first, step;
    double      scale; /* of the scores */
    void       *s;     /* in: products of queries and keys; out: weights */
    int64_t     s_row;
    const void *add; /* to be added to them, -inf: blocked; NULL: nothing. add_row may be 0 */
    int64_t     add_row;
    void       *max, *sum, *part, *factor;
    /* for the derivative */
    void       *g;    /* in: those of the weights; out: those of the scores; rows as s has them */
    const void *keep; /* what dropout multiplies the weights by, the same; NULL: nothing */
} tn__attention_step;

typedef struct {
    /* The running softmax: s = exp(scale · s - max), where max is the largest so far; sum: so far; factor: by which to
     * multiply what was summed before. */
    void (*softmax)(const tn__attention_step *t);
    /* With the max, sum = 1 / Σ and part = Σ g·s of whole rows: s = the weights after dropout, g = s · (g - part). A
     * weight of 0 selects: there g is 0 whatever it was. */
    void (*softmax_back)(const tn__attention_step *t);
    void (*scale_rows)(int64_t rows, int64_t n, void *x, int64_t x_row, const void *factor,
                       int64_t step); /* x[i] *= f[i] */
    /* to[i] = Σ_j a[j][i] · b[j][i], one term after the other, as the micro-tiles add them */
    void (*dot_columns)(int64_t rows, int64_t n, const void *a, const void *b, int64_t row, void *to);
    /* From dense columns, zero-filled to a vector: to[i][j] = from[i][j]; to[j][i] = from[i][j]. And back to exactly n
     * numbers: to[i][j] = x[i][j] · f[i] + 0, which makes 0 of -0. True: all of it is finite. */
    bool (*pack)(int64_t rows, int64_t cols, const void *from, int64_t from_row, void *to, int64_t to_row);
    void (*transpose)(int64_t rows, int64_t cols, const void *from, int64_t from_row, void *to, int64_t to_row);
    bool (*store_scaled)(int64_t rows, int64_t n, const void *x, int64_t x_row, const void *factor, int64_t step,
                         void *to, int64_t to_row);
} tn__attention_kernels;

/* ---- the tables ---- */

typedef struct {
    const char             *isa; /* "baseline", "avx2", "avx512", "avx512bf16", "amx" */
    const tn__gemm_kernels *gemm_f32, *gemm_f64, *gemm_bf16;
    const tn__gemm_kernels *gemm_pairs; /* of bf16, each pair of terms by itself: attention leaves some out; or NULL */
    const tn__vecmath_f32  *f32;
    const tn__vecmath_f64  *f64;
    const tn__row_kernels_f32   *rows_f32;
    const tn__row_kernels_f64   *rows_f64;
    tn__philox_kernel           *philox;
    const tn__attention_kernels *attention_f32, *attention_f64;
    tn__narrow_kernel           *to_bf16;
    tn__widen_kernel            *from_bf16;
    const tn__pairs_kernels     *pairs;
    const tn__q8_kernels        *q8, *f16;
} tn__kernel_table;

/* The table in use: the best that this CPU and its system have, or the one that TENON_ISA names if that is less. */
const tn__kernel_table *tn__kernels(void);
const char             *tn__isa_name(void);
const char             *tn__isa_reason(void); /* why this one, for tn_build_info() */
/* A certain table, for tests; NULL if it was not built or the CPU lacks it. */
const tn__kernel_table *tn__kernels_of(const char *isa);

/* Names that exist once for each instruction set: TN__FOR_ISA(tn__table) is tn__table_avx2 where TN__ISA is avx2. */
#define TN__FOR_ISA(name) TN__FOR_ISA_(name, TN__ISA)
#define TN__FOR_ISA_(name, isa) TN__FOR_ISA__(name, isa)
#define TN__FOR_ISA__(name, isa) name##_##isa

#endif
