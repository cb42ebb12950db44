/* gemm.k.c — the innermost loops of a matrix product. A micro-tile of the result stays in registers while k runs: each
 * step loads a few vectors of a row of b, and multiplies and adds them with one element of a for each row. So each
 * element of the result is one chain of multiply-adds in the order of k, whatever the tile around it; a row alone (m =
 * 1) keeps the same chains but reads b in an order that suits memory. */
#include "core/kernels/vecmath.h"
#include "core/kernels/bf16_rows.h"
#include "core/kernels/gelu.h"
#include "core/kernels/kernels.h"
#include "core/kernels/simd.h"
#include "core/kernels/tile_size.h"

#ifndef TN__REAL

#define TN__BF16_TOO 1 /* in the first instance, f32 */
#define TN__TEMPLATE "core/kernels/gemm.k.c"
#include "core/real.h"

#else
/* clang-format off: it takes TN__UNROLL for a function */

#if TN__BF16_TOO && defined(EACH_WIDE_TILE)
#define TN__TILES_OF_ROWS
#endif
#include "core/kernels/tile.h"

/* Adds the next rows of b to y, each times its element of a. */
TN__INLINE void TN__(add_rows)(const int rows, const tn__gemv_step *s, int64_t p, bool first)
{
    enum { N = TN__(v_n) };
    const TN__REAL *a = (const TN__REAL *)s->a + p * s->a_col, *b = (const TN__REAL *)s->b + p * s->b_row;
    TN__REAL       *y = s->y;
    TN__(v) x[8];
    TN__UNROLL for (int i = 0; i < rows; i++) x[i] = TN__(v_broadcast)(a + i * s->a_col);
    for (int64_t j = 0, n = s->n, b_row = s->b_row; j < n; j += N) {
        TN__(v) sum = first ? TN__(v_zero)() : TN__(v_load)(y + j);
        TN__UNROLL for (int i = 0; i < rows; i++) sum = TN__(v_fma)(x[i], TN__(v_load)(b + i * b_row + j), sum);
        TN__(v_store)(y + j, sum);
    }
}

/* A few vectors of columns at a time, whose sums stay in registers. ahead: number of steps that b is prefetched ahead
 * if it streams from memory; 0: not prefetched. */
TN__INLINE void TN__(add_panel)(const int nv, const tn__gemv_step *s, int64_t j, const int64_t ahead)
{
    enum { N = TN__(v_n) };
    const TN__REAL *a = s->a, *b = (const TN__REAL *)s->b + j;
    const int64_t   a_col = s->a_col, b_row = s->b_row;
    TN__REAL       *y = (TN__REAL *)s->y + j;
    TN__(v) sum[WIDE];
    TN__UNROLL for (int i = 0; i < nv; i++) sum[i] = s->first ? TN__(v_zero)() : TN__(v_load)(y + i * N);
    for (int64_t p = s->k; p > 0; p--, a += a_col, b += b_row) {
        const TN__(v) x = TN__(v_broadcast)(a);
        if (ahead)
            for (int i = 0; i < nv * N; i += 64 / (int)sizeof *b) v_prefetch(b, ahead * b_row + i);
        TN__UNROLL for (int i = 0; i < nv; i++) sum[i] = TN__(v_fma)(x, TN__(v_load)(b + i * N), sum[i]);
    }
    TN__UNROLL for (int i = 0; i < nv; i++) TN__(v_store)(y + i * N, sum[i]);
}

/* For a b with dense columns: transposed in registers, square by square. Each vector of columns is a chain of its own,
 * so several are computed at once. */
TN__INLINE void TN__(add_columns)(const int nv, const tn__gemv_step *s, int64_t j)
{
    enum { N = TN__(v_n) };
    const int64_t   k = s->k, a_col = s->a_col, b_col = s->b_col;
    const TN__REAL *a = s->a, *b = (const TN__REAL *)s->b + j * b_col;
    TN__REAL       *y = (TN__REAL *)s->y + j;
    /* the next columns: too many streams for the hardware prefetcher */
    const int64_t ahead = s->beyond_l2 && j + 2 * nv * N <= s->n ? nv * N * b_col : 0;
    TN__(v) x[N], sum[4];
    int64_t p = 0;
    TN__UNROLL for (int g = 0; g < nv; g++) sum[g] = s->first ? TN__(v_zero)() : TN__(v_load)(y + g * N);
    for (; p + N <= k; p += N) {
        TN__UNROLL for (int g = 0; g < nv; g++)
        {
            const TN__REAL *from = b + g * N * b_col + p;
            TN__UNROLL for (int i = 0; i < N; i++) x[i] = TN__(v_load)(from + i * b_col);
            if (ahead) { TN__UNROLL for (int i = 0; i < N; i++) __builtin_prefetch(from + ahead + i * b_col); }
            TN__(v_transpose)(x);
            TN__UNROLL for (int i = 0; i < N; i++) sum[g] =
                TN__(v_fma)(TN__(v_broadcast)(a + (p + i) * a_col), x[i], sum[g]);
        }
    }
    for (; p < k; p++) {
        TN__UNROLL for (int g = 0; g < nv; g++)
        {
            TN__REAL rest[N];
            for (int i = 0; i < N; i++) rest[i] = b[(g * N + i) * b_col + p];
            sum[g] = TN__(v_fma)(TN__(v_broadcast)(a + p * a_col), TN__(v_load)(rest), sum[g]);
        }
    }
    TN__UNROLL for (int g = 0; g < nv; g++) TN__(v_store)(y + g * N, sum[g]);
}

/* clang-format on */

static void TN__(row)(const tn__gemv_step *s)
{
    enum { N = TN__(v_n), AHEAD = 4096 / (KEPT * N * (int)sizeof(TN__REAL)) }; /* steps: 4 KB */
    enum { NARROW = N * (int)sizeof(TN__REAL) < 64 };                          /* a vector is less than a line */
    int64_t j = 0;
    if (s->b_col != 1) {
        for (; j + 2 * N <= s->n; j += 2 * N) TN__(add_columns)(2, s, j);
        for (; j < s->n; j += N) TN__(add_columns)(1, s, j);
    } else if (s->beyond_l2 && s->n == KEPT * N && s->b_row == s->n) { /* a panel of a b kept packed */
        TN__(add_panel)(KEPT, s, 0, AHEAD);
    } else if (NARROW ? s->n <= 2 * WIDE * N : !s->beyond_l2) { /* strided access costs little */
        for (; j + WIDE * N <= s->n; j += WIDE * N) TN__(add_panel)(WIDE, s, j, 0);
        for (; j + KEPT * N <= s->n; j += KEPT * N) TN__(add_panel)(KEPT, s, j, 0);
        for (; j + 4 * N <= s->n; j += 4 * N) TN__(add_panel)(4, s, j, 0);
        for (; j < s->n; j += N) TN__(add_panel)(1, s, j, 0);
    } else { /* in memory order, of which the hardware prefetches four rows with AVX2 */
        int64_t p = 0;
        bool    first = s->first;
        if (NARROW && s->beyond_l2)
            for (; p + 4 <= s->k; p += 4, first = false) TN__(add_rows)(4, s, p, first);
        for (; p + 8 <= s->k; p += 8, first = false) TN__(add_rows)(8, s, p, first);
        for (; p < s->k; p++, first = false) TN__(add_rows)(1, s, p, first);
    }
}

/* ---- the epilogue ------------------------------------------------------------------------------------------------ */

static inline TN__REAL TN__(read)(const void *p, int64_t i, bool bf16)
{
    return bf16 ? (TN__REAL)tn__bf16_to_f32(((const uint16_t *)p)[i]) : ((const TN__REAL *)p)[i];
}
static inline void TN__(write)(void *p, int64_t i, bool bf16, TN__REAL v)
{
    if (bf16) ((uint16_t *)p)[i] = tn__f32_to_bf16((float)v);
    else ((TN__REAL *)p)[i] = v;
}

#if TN__BF16_TOO /* always this instruction set's functions, not those selected at run time; for f64 the C library's */
extern const tn__vecmath_f32 TN__FOR_PLAIN(tn__functions_f32);
#define GELU TN__FOR_PLAIN(tn__functions_f32).gelu
#define GELU_TANH TN__FOR_PLAIN(tn__functions_f32).gelu_tanh
#else
#define GELU tn__gelu_f64
#define GELU_TANH tn__gelu_tanh_f64
#endif

static void TN__(activate)(tn__act act, int64_t n, TN__REAL *v)
{
    if (act == TN__ACT_GELU) GELU(n, v, v);
    else if (act == TN__ACT_GELU_TANH) GELU_TANH(n, v, v);
    else
        for (int64_t j = 0; j < n; j++) v[j] = v[j] <= 0 ? 0 : v[j];
}

#if TN__BF16_TOO
/* Loads elements at p[j]: f32, or bf16 if half; some: number of elements available. */
TN__INLINE v_f32 take(const bool half, const void *p, int64_t j, int64_t some)
{
    if (!half) return some >= v_n_f32 ? v_load_f32((const float *)p + j) : v_load_some((const float *)p + j, some);
    if (some >= v_n_f32) return v_load_bf16((const uint16_t *)p + j);
    uint16_t part[v_n_f32] = {0};
    memcpy(part, (const uint16_t *)p + j, (size_t)some * sizeof *part);
    return v_load_bf16(part);
}
TN__INLINE void put(const bool half, void *p, int64_t j, int64_t some, v_f32 x)
{
    if (half) {
        float all[v_n_f32];
        v_store_f32(all, x);
        if (some >= v_n_f32) tn__narrow_row(v_n_f32, (uint16_t *)p + j, all); /* a constant length */
        else tn__narrow_row(some, (uint16_t *)p + j, all);
    } else if (some >= v_n_f32) v_store_f32((float *)p + j, x);
    else v_store_some((float *)p + j, some, x);
}

/* Dense rows, vector by vector: the saved pre-activation and the results leave the registers once, and the activation's
 * table is read once for all rows. half: everything except the sums is bf16. */
TN__INLINE void finish_rows(const tn__act act, const bool half, const tn__epilogue_step *s, const void *bias,
                            const void *old)
{
    const float   alpha = (float)s->alpha, beta = (float)s->beta;
    const int64_t n = s->cols, bias_row = s->bias_row, old_row = s->old_row, c_row = s->c_row, pre_row = s->pre_row;
    for (int64_t r = 0; r < s->rows; r++) {
        const float *v = (const float *)s->acc + r * s->acc_row;
        for (int64_t j = 0; j < n; j += v_n_f32) {
            const int64_t some = n - j;
            v_f32         x = take(false, v, j, some) * alpha;
            if (bias) x = x + take(half, bias, r * bias_row + j, some);
            if (s->pre) put(half, s->pre, r * pre_row + j, some, x);
            if (act == TN__ACT_GELU) x = v_gelu(x);
            else if (act == TN__ACT_GELU_TANH) x = v_gelu_tanh(x);
            else if (act == TN__ACT_RELU) x = v_choose(v_less(x, v_zero_f32()), v_zero_f32(), x) + 0.0f; /* -0 to 0 */
            if (old) x = x + take(half, old, r * old_row + j, some) * beta;
            put(half, s->c, r * c_row + j, some, x);
        }
    }
}
/* Separate functions for each activation: otherwise the compiler merges them into one loop. */
typedef void rows_finisher(const tn__epilogue_step *s, const void *bias, const void *old);
#define FINISHER(name, act, half)                                                   \
    static void name(const tn__epilogue_step *s, const void *bias, const void *old) \
    {                                                                               \
        finish_rows(act, half, s, bias, old);                                       \
    }
FINISHER(relu_rows, TN__ACT_RELU, false)
FINISHER(gelu_rows, TN__ACT_GELU, false)
FINISHER(gelu_tanh_rows, TN__ACT_GELU_TANH, false)
FINISHER(plain_rows_bf16, TN__ACT_NONE, true)
FINISHER(relu_rows_bf16, TN__ACT_RELU, true)
FINISHER(gelu_rows_bf16, TN__ACT_GELU, true)
FINISHER(gelu_tanh_rows_bf16, TN__ACT_GELU_TANH, true)
#undef FINISHER
static rows_finisher *const rows_of_f32[] = {NULL, relu_rows, gelu_rows, gelu_tanh_rows}; /* by tn__act */
static rows_finisher *const rows_of_bf16[] = {plain_rows_bf16, relu_rows_bf16, gelu_rows_bf16, gelu_tanh_rows_bf16};
#endif

/* One row, if everything is dense and of the sums' dtype: loops that compilers vectorise. */
static void TN__(finish_dense)(int64_t n, TN__REAL *v, TN__REAL *c, TN__REAL *pre, const TN__REAL *bias,
                               const TN__REAL *old, const tn__epilogue_step *s)
{
    const TN__REAL alpha = (TN__REAL)s->alpha, beta = (TN__REAL)s->beta;
    if (!s->act && !pre) {
        if (bias && old)
            for (int64_t j = 0; j < n; j++) c[j] = alpha * v[j] + bias[j] + beta * old[j];
        else if (bias)
            for (int64_t j = 0; j < n; j++) c[j] = alpha * v[j] + bias[j];
        else if (old)
            for (int64_t j = 0; j < n; j++) c[j] = alpha * v[j] + beta * old[j];
        else
            for (int64_t j = 0; j < n; j++) c[j] = alpha * v[j];
        return;
    }
    if (bias)
        for (int64_t j = 0; j < n; j++) v[j] = alpha * v[j] + bias[j];
    else
        for (int64_t j = 0; j < n; j++) v[j] = alpha * v[j];
    if (pre) memcpy(pre, v, (size_t)n * sizeof *v);
    if (s->act) TN__(activate)(s->act, n, v);
    if (old)
        for (int64_t j = 0; j < n; j++) c[j] = v[j] + beta * old[j];
    else memcpy(c, v, (size_t)n * sizeof *v);
}

/* Row r of a block with any strides; v: its sums, NULL: zeros. */
static void TN__(finish_strided)(const tn__epilogue_step *s, int64_t r, TN__REAL *v, const void *bias, const void *old)
{
    const TN__REAL alpha = (TN__REAL)s->alpha, beta = (TN__REAL)s->beta;
    const bool     bf16 = s->bf16;
    const int64_t  b0 = r * s->bias_row, o0 = r * s->old_row, c0 = r * s->c_row, p0 = r * s->pre_row;
    if (v) {
        for (int64_t j = 0; j < s->cols; j++) v[j] *= alpha;
        for (int64_t j = 0; bias && j < s->cols; j++) v[j] += TN__(read)(bias, b0 + j * s->bias_col, bf16);
        for (int64_t j = 0; s->pre && j < s->cols; j++) TN__(write)(s->pre, p0 + j * s->pre_col, bf16, v[j]);
        if (s->act) TN__(activate)(s->act, s->cols, v);
    }
    for (int64_t j = 0; j < s->cols; j++) {
        const TN__REAL more = old ? beta * TN__(read)(old, o0 + j * s->old_col, bf16) : 0;
        TN__(write)(s->c, c0 + j * s->c_col, bf16, !v ? more : old ? v[j] + more : v[j]);
    }
}

/* Row r if everything is dense. */
static void TN__(finish_dense_row)(const tn__epilogue_step *s, int64_t r, TN__REAL *v, const void *bias,
                                   const void *old)
{
    const int64_t b0 = r * s->bias_row, o0 = r * s->old_row, c0 = r * s->c_row, p0 = r * s->pre_row;
    TN__(finish_dense)
    (s->cols, v, (TN__REAL *)s->c + c0, s->pre ? (TN__REAL *)s->pre + p0 : NULL,
     bias ? (const TN__REAL *)bias + b0 : NULL, old ? (const TN__REAL *)old + o0 : NULL, s);
}

/* Dense rows with one bias for each, and nothing else: c = alpha · acc + bias. False: the block is not of this form. */
static bool TN__(finish_biased)(const tn__epilogue_step *s)
{
    enum { N = TN__(v_n) };
    if (!s->acc || !s->bias || s->bias_col != 0 || s->bf16 || s->c_col != 1) return false;
    if (s->pre || s->act || (s->beta != 0 && s->old)) return false;
    const TN__REAL alpha = (TN__REAL)s->alpha;
    for (int64_t r = 0; r < s->rows; r++) {
        const TN__REAL *v = (const TN__REAL *)s->acc + r * s->acc_row,
                       *bias = (const TN__REAL *)s->bias + r * s->bias_row;
        TN__REAL *c = (TN__REAL *)s->c + r * s->c_row;
        int64_t   j = 0;
        for (; j + N <= s->cols; j += N) TN__(v_store)(c + j, TN__(v_load)(v + j) * alpha + TN__(v_broadcast)(bias));
        for (; j < s->cols; j++) c[j] = v[j] * alpha + *bias;
    }
    return true;
}

static void TN__(finish_any)(const tn__epilogue_step *s)
{
    const void *const old = s->beta != 0 ? s->old : NULL, *const bias = s->bias;
    bool dense = s->c_col == 1 && s->acc && (!s->pre || s->pre_col == 1);
    dense = dense && (!bias || s->bias_col == 1) && (!old || s->old_col == 1);
#if TN__BF16_TOO
    if (s->bf16 && dense && !bias && !old && !s->pre && !s->act && (TN__REAL)s->alpha == 1) { /* the usual case */
        for (int64_t r = 0; r < s->rows; r++)
            tn__narrow_row(s->cols, (uint16_t *)s->c + r * s->c_row, (const float *)s->acc + r * s->acc_row);
        return;
    }
    if (dense && (s->bf16 || s->act)) {
        (s->bf16 ? rows_of_bf16 : rows_of_f32)[s->act](s, bias, old);
        return;
    }
#else
    dense = dense && !s->bf16;
#endif
    for (int64_t r = 0; r < s->rows; r++) {
        TN__REAL *v = s->acc ? (TN__REAL *)s->acc + r * s->acc_row : NULL;
        if (dense) TN__(finish_dense_row)(s, r, v, bias, old);
        else TN__(finish_strided)(s, r, v, bias, old);
    }
}

void TN__FOR_ISA(TN__(tn__gemm_epilogue))(const tn__epilogue_step *s);
void TN__FOR_ISA(TN__(tn__gemm_epilogue))(const tn__epilogue_step *s)
{
    if (!TN__(finish_biased)(s)) TN__(finish_any)(s);
}
#undef GELU
#undef GELU_TANH
#undef TN__BF16_TOO

void TN__FOR_PLAIN(TN__(tn__pack))(const tn__pack_step *s);
void TN__FOR_PLAIN(tn__pack_bf16)(const tn__pack_step *s);
void TN__FOR_PLAIN(TN__(tn__gemm_epilogue))(const tn__epilogue_step *s); /* the one above, except in `exact` */

extern const tn__gemm_kernels TN__FOR_ISA(TN__(tn__gemm));

const tn__gemm_kernels TN__FOR_ISA(TN__(tn__gemm)) = {
    .mr = MR,
    .nv = NV,
    .kept = KEPT,
    .lanes = TN__(v_n),
    .pair = 1,
    .steps = K_BLOCK,
    .adds_bias = true,
    .packs_columns = MR < 8,
    .tile = TN__(any_tile),
#ifdef TN__TILES_OF_ROWS
    .tile_of_rows = TN__(any_tile_of_rows),
#undef TN__TILES_OF_ROWS
#endif
    .row = TN__(row),
    .pack = TN__FOR_PLAIN(TN__(tn__pack)),
    .pack_bf16 = sizeof(TN__REAL) == sizeof(float) ? TN__FOR_PLAIN(tn__pack_bf16) : NULL,
    .epilogue = TN__FOR_PLAIN(TN__(tn__gemm_epilogue)),
};

#endif
