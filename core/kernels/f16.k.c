/* f16.k.c — rows of f32 times weights of f16. An f16 is exact in f32, and each sum is the same chain of multiply-adds
 * as gemm.k.c's for these values in f32: so both give the same bits, for a row alone and among others. */
#include "core/kernels/kernels.h"
#include "core/kernels/simd.h"

/* Rows per pass, by four vectors of columns. With AVX2 one row takes eight, which is the whole panel: a second pass
 * would read it from L2, and nothing from memory meanwhile. */
#if defined(__AVX512F__) || defined(__aarch64__) /* 32 registers */
enum { ROWS = 4 };
#else
enum { ROWS = 2 };
#endif
#if defined(__AVX2__) && !defined(__AVX512F__)
enum { NV_ONE = 8 };
#else
enum { NV_ONE = 4 };
#endif
enum { N = v_n_f32, NV = 4, COLUMN = 2 * TN__Q8_PANEL }; /* COLUMN: bytes of one column of the weights in a panel */
enum { AHEAD = 4096 };                                   /* bytes prefetched ahead: see q8.k.c */

/* clang-format off: it takes TN__UNROLL for a function */

/* m rows starting at `row` by nv vectors of columns, starting at column j of the panel. */
TN__INLINE void some(const int m, const int nv, const tn__q8_step *s, int64_t row, int j)
{
    const uint8_t *w = s->blocks + 2 * j;
    const float   *x = s->x + row * s->x_row;
    v_f32          sum[ROWS][NV_ONE];
    TN__UNROLL for (int i = 0; i < m; i++) TN__UNROLL for (int v = 0; v < nv; v++) sum[i][v] = v_zero_f32();
    for (int64_t p = 0; p < s->groups; p++, w += COLUMN) {
        if (j == 0) v_prefetch(w, AHEAD), v_prefetch(w, AHEAD + 64);
        TN__UNROLL for (int v = 0; v < nv; v++)
        {
            const v_f32 weight = v_load_f16(w + 2 * v * N);
            TN__UNROLL for (int i = 0; i < m; i++) sum[i][v] =
                v_fma_f32(v_broadcast_f32(x + i * s->x_row + p), weight, sum[i][v]);
        }
    }
    float *y = s->y + row * s->y_row + j;
    TN__UNROLL for (int i = 0; i < m; i++) TN__UNROLL for (int v = 0; v < nv; v++)
        v_store_f32(y + i * s->y_row + v * N, sum[i][v]);
}

/* clang-format on */

#define PASS(m, nv)                                                            \
    static void pass_##m(const tn__q8_step *s, int64_t row)                    \
    {                                                                          \
        for (int j = 0; j < TN__Q8_PANEL; j += nv * N) some(m, nv, s, row, j); \
    }
PASS(1, NV_ONE)
PASS(2, NV)
#if defined(__AVX512F__) || defined(__aarch64__)
PASS(3, NV)
PASS(4, NV)
#endif

static void product(const tn__q8_step *s)
{
    static const tn__q8_pass pass[] = {
        pass_1,
        pass_2,
#if defined(__AVX512F__) || defined(__aarch64__)
        pass_3,
        pass_4,
#endif
    };
    _Static_assert(sizeof pass / sizeof *pass == ROWS, "a pass for each number of rows");
    tn__q8_passes(s, pass, ROWS);
}

static void widen(int64_t groups, const uint8_t *w, float *to, int64_t to_row)
{
    for (int64_t p = 0; p < groups; p++, w += COLUMN, to += to_row)
        for (int j = 0; j < TN__Q8_PANEL; j += N) v_store_f32(to + j, v_load_f16(w + 2 * j));
}

extern const tn__q8_kernels TN__FOR_ISA(tn__f16);

const tn__q8_kernels TN__FOR_ISA(tn__f16) = {
    .group = 1, .block = COLUMN, .rows = ROWS, .product = product, .widen = widen};
