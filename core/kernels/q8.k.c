/* q8.k.c — rows of f32 times weights of 8 bits. A byte is converted to f32 and multiplied by its scale, which is exact
 * (8 bits by 11); then each sum is the same chain of multiply-adds as gemm.k.c's for these values in f32: so both give
 * the same bits, for a row alone and among others. */
#include "core/kernels/kernels.h"
#include "core/kernels/simd.h"

/* Bytes arrive as 2^15 + byte, which is MIDDLE plus the signed weight. Where a multiply-add rounds once,
 * x · d - MIDDLE · d is exact, because MIDDLE · d is, and so is the result; elsewhere MIDDLE is subtracted first. */
#define MIDDLE (32768.0f + 128)
TN__INLINE v_f32 less_of(v_f32 d) { return d * -MIDDLE; }
TN__INLINE v_f32 weight_of(v_f32 x, v_f32 d, v_f32 less)
{
#if defined(__FMA__) || defined(__aarch64__)
    return v_fma_f32(x, d, less);
#else
    return (void)less, (x - MIDDLE) * d;
#endif
}

/* Rows per pass, and vectors of bytes per pass; a single row takes ALONE of these. */
#if defined(__AVX512F__) || defined(__aarch64__) /* 32 registers */
enum { ROWS = 4 };
#else
enum { ROWS = 2 };
#endif
/* Bytes prefetched ahead, which doubles the rate from memory: a line takes enough arithmetic that the CPU looks only a
 * few lines ahead. */
enum { AHEAD = 4096 };
enum { N = v_n_f32, QUADS = 16 / N, ALONE = QUADS < 2 ? QUADS : 2 };

/* clang-format off: it takes TN__UNROLL for a function */

/* m rows starting at `row` by nq vectors of bytes, each four vectors of columns: 16 v + j … */
TN__INLINE void some(const int m, const int nq, const tn__q8_step *s, int64_t row, int j)
{
    const uint8_t *block = s->blocks;
    const float   *x = s->x + row * s->x_row;
    v_f32          sum[ROWS][ALONE][4], d[ALONE][4], less[ALONE][4], w[4];
    TN__UNROLL for (int i = 0; i < m; i++) TN__UNROLL for (int q = 0; q < nq; q++)
        TN__UNROLL for (int v = 0; v < 4; v++) sum[i][q][v] = v_zero_f32();
    for (int64_t g = 0; g < s->groups; g++, block += TN__Q8_BLOCK, x += TN__Q8_GROUP) {
        const uint8_t *bytes = block + TN__Q8_SCALES + 4 * j;
        TN__UNROLL for (int q = 0; q < nq; q++) TN__UNROLL for (int v = 0; v < 4; v++) d[q][v] =
            v_load_f16(block + 2 * (16 * v + j + q * N)),
                                                                                       less[q][v] = less_of(d[q][v]);
        for (int p = 0; p < TN__Q8_GROUP; p++, bytes += TN__Q8_PANEL) {
            if (j == 0) v_prefetch(bytes, AHEAD);
            TN__UNROLL for (int q = 0; q < nq; q++)
            {
                v_load_quads(bytes + 4 * q * N, w);
                TN__UNROLL for (int v = 0; v < 4; v++)
                {
                    const v_f32 weight = weight_of(w[v], d[q][v], less[q][v]);
                    TN__UNROLL for (int i = 0; i < m; i++) sum[i][q][v] =
                        v_fma_f32(v_broadcast_f32(x + i * s->x_row + p), weight, sum[i][q][v]);
                }
            }
        }
    }
    float *y = s->y + row * s->y_row + j;
    TN__UNROLL for (int i = 0; i < m; i++) TN__UNROLL for (int q = 0; q < nq; q++)
        TN__UNROLL for (int v = 0; v < 4; v++) v_store_f32(y + i * s->y_row + 16 * v + q * N, sum[i][q][v]);
}

/* clang-format on */

#define PASS(m, nq)                                                  \
    static void pass_##m(const tn__q8_step *s, int64_t row)          \
    {                                                                \
        for (int j = 0; j < 16; j += (nq)*N) some(m, nq, s, row, j); \
    }
PASS(1, ALONE)
PASS(2, 1)
#if defined(__AVX512F__) || defined(__aarch64__)
PASS(3, 1)
PASS(4, 1)
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

static void widen(int64_t groups, const uint8_t *block, float *to, int64_t to_row)
{
    for (int64_t g = 0; g < groups; g++, block += TN__Q8_BLOCK, to += TN__Q8_GROUP * to_row)
        for (int j = 0; j < 16; j += N) {
            v_f32 d[4], less[4], w[4];
            for (int v = 0; v < 4; v++) d[v] = v_load_f16(block + 2 * (16 * v + j)), less[v] = less_of(d[v]);
            for (int p = 0; p < TN__Q8_GROUP; p++) {
                v_load_quads(block + TN__Q8_SCALES + p * TN__Q8_PANEL + 4 * j, w);
                for (int v = 0; v < 4; v++) v_store_f32(to + p * to_row + 16 * v + j, weight_of(w[v], d[v], less[v]));
            }
        }
}

extern const tn__q8_kernels TN__FOR_ISA(tn__q8);

const tn__q8_kernels TN__FOR_ISA(tn__q8) = {
    .group = TN__Q8_GROUP, .block = TN__Q8_BLOCK, .rows = ROWS, .product = product, .widen = widen};
