/* kernels.h — the kernels that are compiled for each instruction set, as tables of functions, one of which is chosen
 * when the program first needs it. Kernels get plain pointers, write only the memory passed for it, and cannot fail. */
#ifndef TENON_CORE_KERNELS_KERNELS_H
#define TENON_CORE_KERNELS_KERNELS_H

#include "core/base/blocks.h"
#include "core/base/checked.h"
#include "core/core.h"
#include "core/kernels/word_pairs.h"
#include "core/kernels/rows.h"
#include "core/kernels/vecmath_table.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- matrix products: kernels of core/products/gemm.c ------------------------------------------------------------ */

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
    const void *bias;               /* added at the end: a vector for row i and vector j of columns is at */
    int64_t     bias_row, bias_col; /* bias + i · bias_row + j · bias_col; NULL: none, and see adds_bias  */
    bool        to_bf16;            /* to is bf16: only for whole strips, if the kernels take pairs */
    const void *prefetch;           /* each step of k prefetches a cache line of it to L2, per_step bytes after that */
    int64_t     per_step;           /* of the step before, at most 64; NULL: none */

    const int64_t *b_at; /* for tile_of_rows, instead of b_row: elements from b to the row of each step */
} tn__gemm_step;

/* One row: y[j] = (first ? 0 : y[j]) + Σ_p a[p] · b[p][j], for n columns, whole vectors. b_row or b_col is 1. */
typedef struct {
    int64_t     n, k;
    const void *a, *b;
    int64_t     a_col, b_row, b_col;
    void       *y;
    bool        first, beyond_l2; /* beyond_l2: b is larger than L2 and streams from memory */
} tn__gemv_step;

/* Packing: to[r][c] = from[r][c], with zeros from cols up to width. If the kernels take pairs, two consecutive terms
 * become a unit, the last one padded with a zero if needed: terms are indexed by r or, with terms_in_rows, by c; to has
 * half as many units. */
typedef struct {
    int64_t     rows, cols, width; /* width in units */
    const void *from;
    int64_t     from_row, from_col;
    void       *to; /* dense: rows of width */
    bool        terms_in_rows;
    int64_t     strip_stride; /* not 0: width is that of four strips of 8 columns, this number of units apart */
    int64_t     to_row;       /* with terms_in_rows, units from row to row of to; 0: width */
} tn__pack_step;
enum {
    TN__PACK_AHEAD = 16
}; /* number of rows that packing prefetches ahead; distant rows are not a stream for the hardware */

typedef enum { TN__ACT_NONE, TN__ACT_RELU, TN__ACT_GELU, TN__ACT_GELU_TANH } tn__act;

/* The epilogue, applied to the finished sums while they are in the cache:
 *
 *     v = alpha · acc + bias,   pre = v,   c = act(v) + beta · old
 *
 * bias, pre and old may be NULL, old may be c; all have c's dtype, to which pre and c are rounded once. beta = 0 does
 * not read old. acc is overwritten; NULL means zeros, and then bias, pre and act must be unset. */
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
    int  mr, nv;           /* the largest micro-tile                                                            */
    int  kept;             /* vectors in a panel of a b that is kept packed for products of one row; 0: no row  */
    int  lanes;            /* elements in a vector                                                              */
    int  pair;             /* terms in a step of k: 2 for dot products of bf16, otherwise 1                     */
    int  steps;            /* maximum steps, of 4 bytes, in a block of k: what L1 holds of a strip              */
    int  group;            /* steps of k that are summed apart: cuts of k are multiples of it; 0: none          */
    bool a_rows;           /* units of a that are consecutive in k are adjacent: packing transposes columns     */
    bool adds_bias;        /* tile adds a bias                                                                  */
    bool packs_columns;    /* a with dense columns, far apart, is read faster if it is packed                   */
    void (*begin)(int mr); /* call before the first tile of mr rows, in each thread; NULL: not needed */
    void (*end)(void);     /* call after the last tile: releases what begin acquired                  */
    void (*tile)(const tn__gemm_step *s);
    void (*tile_of_rows)(const tn__gemm_step *s); /* tile with nv vectors for rows of b anywhere; NULL: none */
    void (*row)(const tn__gemv_step *s);
    void (*pack)(const tn__pack_step *s);      /* in pairs: from dense rows of f32, rounded */
    void (*pack_bf16)(const tn__pack_step *s); /* widened to f32, or in pairs; NULL for f64 */
    void (*epilogue)(const tn__epilogue_step *s);
} tn__gemm_kernels;

/* ---- weights of 8 bits and of f16: kernels of core/products/q8_linear.c ------------------------------------------ */

/* Weights are stored by 64 rows (a panel) and 32 of their columns (a group): a block is 64 scales in f16,
 * little-endian, and then for each of the 32 columns 64 bytes, in the order of TN__Q8_BYTE. A weight is (byte - 128)
 * times its row's scale, which is exact in f32. */
enum { TN__Q8_PANEL = 64, TN__Q8_GROUP = 32, TN__Q8_SCALES = 2 * TN__Q8_PANEL };
enum { TN__Q8_BLOCK = TN__Q8_SCALES + TN__Q8_GROUP * TN__Q8_PANEL };
/* Position of row r's byte: rows r, r + 16, r + 32 and r + 48 are adjacent, so that shifts and masks split a vector of
 * bytes into four vectors, without a shuffle. */
#define TN__Q8_BYTE(r) ((r) % 16 * 4 + (r) / 16)

/* f16 weights use the same panels; their group is one column, and its block the f16 of the 64 rows. */

/* Rows of f32 times one panel of `groups` blocks in sequence: y[i][j] = Σ_p x[i][p] · w[j][p], term by term from 0: the
 * same chain as the tiles of f32. All 64 columns of y are written. */
typedef struct {
    int64_t        rows, groups;
    const float   *x;
    int64_t        x_row;
    const uint8_t *blocks;
    float         *y;
    int64_t        y_row;
} tn__q8_step;

/* All rows, in passes of 1 to `most` rows, as equal as possible: 5 rows are 3 and 2, not 4 and 1. */
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
    int group, block; /* columns stored together, and their bytes */
    int rows;         /* rows that a product computes at a time; each pass reads the panel again */
    void (*product)(const tn__q8_step *s);
    /* to[p][j] = w[j][p] for a panel of `groups` blocks: 64 columns */
    void (*widen)(int64_t groups, const uint8_t *blocks, float *to, int64_t to_row);
} tn__q8_kernels;

/* ---- weights and activations of 8 bits: kernels of core/products/int8_linear.c ----------------------------------- */

/* Weights are stored by 16 rows (a panel): 16 scales in f32, 16 sums of a row's bytes in i32, both little-endian, and
 * then for each 8 columns (a group) a block: 4 signed bytes for each of the 16 rows, and again 4.
 *
 * The columns are mixed (tn__int8_mix), those of the activations by H and those of the weights by H / n, which leaves
 * products unchanged. A few large columns would otherwise take the range of a row; mixed ones are about normal.
 *
 * Products of unsigned and signed bytes are added in i16: those of columns 0, 1, 4 and 5 of a group, and of 2, 3, 6 and
 * 7. So that this is exact, activations have 7 bits, and the absolute values of a row's bytes there sum to at most 258:
 * 258 · 127 < 2^15. */
enum { TN__INT8_ROWS = 16, TN__INT8_GROUP = 8, TN__INT8_HEAD = 128, TN__INT8_BLOCK = 128 };
/* Maximum columns, so that a row's sum stays far below 2^31; the maximum of activations; the maximum sum of absolute
 * values of weights before rounding; columns that are mixed. */
enum { TN__INT8_MOST = 1 << 17, TN__INT8_INPUT = 63, TN__INT8_SUM = 256, TN__INT8_MIX = 128 };

/* One block of tn__int8_mix, times `factor`. A step combines the elements whose index differs in the first bit, and
 * writes them next to each other, so that the bit becomes the last one; after all steps the order is that of x. Two
 * steps at a time, which halves the loads and stores. */
static inline __attribute__((always_inline)) void tn__int8_mix_block(const int64_t n, const float *x, float *y,
                                                                     float factor)
{
    float room[2][TN__INT8_MIX];
    float *restrict to = room[0];
    const float *from = x;
    int64_t      k = n;
    for (int next = 1; k > 2; k /= 4, from = to, to = room[next], next = !next)
        for (int64_t i = 0; i < n / 4; i++) {
            const float a = from[i] + from[i + n / 2], b = from[i] - from[i + n / 2];
            const float c = from[i + n / 4] + from[i + 3 * n / 4], d = from[i + n / 4] - from[i + 3 * n / 4];
            to[4 * i] = a + c, to[4 * i + 1] = a - c, to[4 * i + 2] = b + d, to[4 * i + 3] = b - d;
        }
    for (int64_t i = 0; k == 2 && i < n / 2; i++) {
        const float a = from[i], b = from[i + n / 2];
        y[2 * i] = (a + b) * factor, y[2 * i + 1] = (a - b) * factor;
    }
    for (int64_t i = 0; k == 1 && i < n; i++) y[i] = from[i] * factor;
}
/* y = H x, or with `divide` H x / n, for each block of TN__INT8_MIX columns, and then of smaller powers of two. H is
 * Hadamard's matrix: entries of 1 and -1, H H = n. The order of the sums is the same on every CPU. */
static inline void tn__int8_mix(int64_t columns, const float *x, float *y, bool divide)
{
    for (; columns >= TN__INT8_MIX; columns -= TN__INT8_MIX, x += TN__INT8_MIX, y += TN__INT8_MIX)
        tn__int8_mix_block(TN__INT8_MIX, x, y, divide ? 1.0f / (float)TN__INT8_MIX : 1);
    for (int64_t n = TN__INT8_MIX / 2; columns; columns -= n, x += n, y += n) {
        while (n > columns) n /= 2;
        tn__int8_mix_block(n, x, y, divide ? 1.0f / (float)n : 1);
    }
}

/* The maximum of |x|; NaN or an infinity if there is one. */
static inline float tn__int8_max(int64_t n, const float *x)
{
    int32_t most = 0; /* the bits of |x| have the order of |x|, with NaN at the end */
    for (int64_t i = 0; i < n; i++) {
        int32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        bits &= 0x7fffffff;
        most = bits > most ? bits : most;
    }
    float max;
    memcpy(&max, &most, sizeof max);
    return max;
}
/* The value of 127 in the scale of these weights: max |w|, or more if the sums of |w| that the kernels add in i16
 * would exceed TN__INT8_SUM. */
static inline float tn__int8_extent(int64_t n, const float *w)
{
    float max[2] = {tn__int8_max(n, w), 0}, sums[2] = {0, 0};
    for (int64_t i = 0; i < n; i++) {
        if (i % TN__INT8_GROUP == 0) sums[0] = sums[1] = 0;
        sums[i / 2 % 2] += fabsf(w[i]);
        max[1] = sums[i / 2 % 2] * (127.0f / (float)TN__INT8_SUM), max[0] = tn__int8_max(2, max);
    }
    return max[0];
}
/* The scale of a row whose maximum becomes `to`; its values are rounded to x · inverse. A row below 2^-100 counts as
 * zeros: both are 0. False: NaN or an infinity; then *scale is NaN and *inverse 0. */
static inline bool tn__int8_scale(float max, float to, float *scale, float *inverse)
{
    const bool finite = max <= FLT_MAX, some = finite && max >= 0x1p-100f;
    *scale = !finite ? NAN : some ? max / to : 0, *inverse = some ? to / max : 0;
    return finite;
}
/* To the nearest integer, halves to even, for |x| below 2^22: adding 1.5 · 2^23 leaves it in the mantissa. */
static inline int32_t tn__int8_round(float x)
{
    int32_t bits;
    x += 0x1.8p23f;
    memcpy(&bits, &x, sizeof bits);
    return bits - 0x4b400000;
}

/* Rows of quantised activations, at most `rows` of the table, times panels, at most `panels` of the table, which are
 * panel_bytes apart: y[i][j] = (float)Σ_p x[i][p] · w[j][p] · (scale[i] · scale of j). All 16 columns of y of a panel
 * are written. */
typedef struct {
    int64_t        rows, groups, panels, panel_bytes;
    const uint8_t *x; /* from quantize: 64 more than the value */
    int64_t        x_row;
    const float   *scale;
    const uint8_t *panel;
    const float   *bias; /* of the columns, added to y by kernels with .adds_bias; may be NULL */
    float         *y;
    int64_t        y_row;
} tn__int8_step;

typedef struct {
    int         rows;   /* maximum rows of a product */
    int         panels; /* maximum panels of a product; 0: one */
    int         bytes;  /* of a group of quantised activations */
    bool        adds_bias;
    const char *by; /* the instructions, for tn_build_info; NULL: those of the table */
    /* Call before and after products of this size, in each thread; NULL: not needed. */
    void (*begin)(int64_t rows, int64_t groups);
    void (*end)(void);
    /* One row of activations, padded with zeros to whole groups; returns its scale, max |x| / 127. NaN or an infinity:
     * zeros, and the scale is NaN, so that all of the row's results are. Of the kernels of 4 to 6 bits, each block of
     * columns has its own scale, which is stored with it. */
    float (*quantize)(int64_t n, const float *x, uint8_t *to);
    void (*product)(const tn__int8_step *s);
} tn__int8_kernels;

/* ---- weights of 4 to 6 bits: more kernels of core/products/int8_linear.c ----------------------------------------- */

/* 16 rows (a panel) by 256 columns, of Q4_0 by 32, are a block: the values of the file in another order, in which a
 * vector holds some rows. A weight is d s q - e m; of Q6_K d s (q - 32); of Q4_0 d (q - 8). In a block are
 *   d of each row in f16, and e of Q4_K and Q5_K;
 *   s as bytes, except Q4_0: for each two groups of 32 columns, of Q6_K of 16, and each row, those of both groups;
 *   m of Q4_K and Q5_K, in the same order;
 *   for each 32 columns q: [v][row][c] has in its low bits 4 bits of column 4 v + c and in its high bits those of
 *   column 16 + 4 v + c; then of Q5_K [row][c] has in bit k the fifth bit of column 4 k + c; of Q6_K [h][row][c] has
 *   in bits 2 k and 2 k + 1 the upper bits of column 16 h + 4 k + c. */
enum { TN__Q4_ROWS = 16, TN__Q4_LOW = 16 * TN__Q4_ROWS }; /* LOW: bytes of the low bits of 32 columns */
/* Columns of a block, and of a group with one s. */
#define TN__Q4_WIDTH(kind) ((kind) == TN__Q4_0 ? 32 : 256)
#define TN__Q4_SUB(kind) ((kind) == TN__Q6_K ? 16 : 32)
/* Positions in a block of s, m (0: none) and q; bytes of q for 32 columns, and of a block. */
#define TN__Q4_HAS_M(kind) ((kind) == TN__Q4_K || (kind) == TN__Q5_K)
#define TN__Q4_S(kind) ((kind) == TN__Q4_0 ? 0 : TN__Q4_HAS_M(kind) ? 4 * TN__Q4_ROWS : 2 * TN__Q4_ROWS)
#define TN__Q4_M(kind) (TN__Q4_HAS_M(kind) ? 12 * TN__Q4_ROWS : 0)
#define TN__Q4_Q(kind) (((kind) == TN__Q4_0 ? 2 : TN__Q4_HAS_M(kind) ? 20 : 18) * TN__Q4_ROWS)
#define TN__Q4_STEP(kind) (TN__Q4_LOW + ((kind) == TN__Q5_K ? 64 : (kind) == TN__Q6_K ? 128 : 0))
#define TN__Q4_BLOCK(kind) (TN__Q4_Q(kind) + TN__Q4_WIDTH(kind) / 32 * TN__Q4_STEP(kind))

/* ---- dtypes ------------------------------------------------------------------------------------------------------ */

typedef void tn__narrow_kernel(int64_t n, uint16_t *restrict y, const float *restrict x); /* f32 to bf16 */
typedef void tn__widen_kernel(int64_t n, float *restrict y, const uint16_t *restrict x);  /* bf16 to f32 */

/* ---- attention: kernels of core/products/attention.c for a block of scores between its products ------------------ */

/* Rows of queries by columns of keys. Row i sees the keys before first + i · step. Rows have room up to the end of a
 * vector: scores arrive up to there, and zeros are written there. max, sum, part and factor, one value a row, too. */
typedef struct {
    int64_t     rows, keys, first, step;
    double      scale; /* of the scores */
    void       *s;     /* in: products of queries and keys; out: weights */
    int64_t     s_row;
    const void *add; /* added to the scores, -inf: blocked; NULL: none. add_row may be 0 */
    int64_t     add_row;
    void       *max, *sum, *part, *factor;
    /* for the derivative */
    void       *g;    /* in: gradients of the weights; out: those of the scores; rows as in s */
    const void *keep; /* dropout's factors of the weights, rows as in s; NULL: none */
} tn__attention_step;

/* The number of keys that row i sees. */
static inline int64_t tn__keys_in_sight(int64_t keys, int64_t first, int64_t step, int64_t i)
{
    return tn__max_i64(0, tn__min_i64(first + i * step, keys));
}

typedef struct {
    /* The running softmax: s = exp(scale · s - max), max: the running maximum; sum: the running sum; factor: multiply
     * earlier sums by it. */
    void (*softmax)(const tn__attention_step *t);
    /* From max, sum = 1 / Σ and part = Σ g·s of whole rows: s = the weights after dropout, g = s · (g - part). A weight
     * of 0 selects: there g is 0 whatever its input. */
    void (*softmax_back)(const tn__attention_step *t);
    void (*scale_rows)(int64_t rows, int64_t n, void *x, int64_t x_row, const void *factor,
                       int64_t step); /* x[i] *= f[i] */
    /* to[i] = Σ_j a[j][i] · b[j][i], term by term, as the micro-tiles add them */
    void (*dot_columns)(int64_t rows, int64_t n, const void *a, const void *b, int64_t row, void *to);
    /* From dense columns, zero-filled to a vector: to[i][j] = from[i][j]; to[j][i] = from[i][j]. And back to exactly n
     * elements: to[i][j] = x[i][j] · f[i] + 0, which turns -0 into 0. True: all elements are finite. */
    bool (*pack)(int64_t rows, int64_t cols, const void *from, int64_t from_row, void *to, int64_t to_row);
    void (*transpose)(int64_t rows, int64_t cols, const void *from, int64_t from_row, void *to, int64_t to_row);
    bool (*store_scaled)(int64_t rows, int64_t n, const void *x, int64_t x_row, const void *factor, int64_t step,
                         void *to, int64_t to_row);
    void (*widen)(int64_t n, const uint8_t *row, void *to); /* n signed bytes, times the f32 scale after them */
} tn__attention_kernels;

/* ---- the tables ---- */

typedef struct {
    const char                   *isa; /* "baseline", "exact", "avx2", "avx512", "avx512bf16", "amx" */
    const tn__gemm_kernels       *gemm_f32, *gemm_f64, *gemm_bf16;
    const tn__gemm_kernels       *gemm_pairs; /* gemm_bf16, if its units are pairs of bf16; or NULL */
    const tn__vecmath_f32        *f32;
    const tn__vecmath_f64        *f64;
    const tn__row_kernels_f32    *rows_f32;
    const tn__row_kernels_f64    *rows_f64;
    tn__philox_kernel            *philox;
    const tn__attention_kernels  *attention_f32, *attention_f64;
    tn__narrow_kernel            *to_bf16;
    tn__widen_kernel             *from_bf16;
    const tn__word_pairs_kernels *word_pairs;
    const tn__q8_kernels         *q8, *f16;
    const tn__int8_kernels       *int8, *q4; /* q4: of the first TN__Q4_KINDS kinds of weights */
} tn__kernel_table;

/* The table in use: the best that the CPU and its system support, or the one that TENON_ISA names if that is less.
 * TENON_EXACT=1: `exact` in place of the baseline. */
const tn__kernel_table *tn__kernels(void);
/* The table's kernels of 8 bits, or those with VNNI, AMX or SDOT on top of its instruction set: the same bits. */
const tn__int8_kernels *tn__int8(const tn__kernel_table *t);

bool        tn__cpu_is_intel(void); /* products pack more on them: gemm_plan.c */
const char *tn__isa_name(void);
const char *tn__isa_reason(void); /* the reason for the choice, for tn_build_info() */
/* The table of an instruction set, for tests; NULL if it was not built or the CPU lacks it. */
const tn__kernel_table *tn__kernels_of(const char *isa);

/* Names that exist for each instruction set: TN__FOR_ISA(tn__table) is tn__table_avx2 if TN__ISA is avx2. */
#define TN__FOR_ISA(name) TN__FOR_ISA_(name, TN__ISA)
#define TN__FOR_ISA_(name, isa) TN__FOR_ISA__(name, isa)
#define TN__FOR_ISA__(name, isa) name##_##isa
/* Kernels without multiply-adds of f32. The instruction set `exact` is the baseline with multiply-adds that round once,
 * by emulation, and has no others of its own. */
#ifdef TN__EXACT
#define TN__FOR_PLAIN(name) TN__FOR_ISA_(name, baseline)
#else
#define TN__FOR_PLAIN(name) TN__FOR_ISA(name)
#endif

#endif
