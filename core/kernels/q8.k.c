/* q8.k.c — rows of f32 times weights of 8 bits. A byte becomes an f32 and is multiplied by its scale, which is exact (8
 * bits by 11), and then each sum is the chain of multiply-adds that gemm.k.c makes of the same numbers in f32: so both
 * give the same bits, and a row has them alone and among others. */
#include "core/kernels/kernels.h"
#include "core/kernels/simd.h"

/* How many rows a pass takes, by how many vectors of columns; one row alone takes ALONE vectors. The vector of weights
 * that is being made needs a register, too. */
#if defined(__AVX512F__) || defined(__aarch64__) /* 32 registers */
enum { ROWS = 6, VECTORS = 4, ALONE = 4 };
#else
enum { ROWS = 4, VECTORS = 2, ALONE = 8 };
#endif
enum { N = v_n_f32 };

/* clang-format off: it takes TN__UNROLL for a function */

/* m rows from `row` on by nv vectors of columns from j on. */
TN__INLINE void some(const int m, const int nv, const tn__q8_step *s, int64_t row, int j)
{
    const uint8_t *block = s->blocks;
    const float   *x = s->x + row * s->x_row;
    v_f32          sum[ROWS][ALONE > VECTORS ? ALONE : VECTORS], scale[ALONE > VECTORS ? ALONE : VECTORS];
    TN__UNROLL for (int i = 0; i < m; i++) TN__UNROLL for (int v = 0; v < nv; v++) sum[i][v] = v_zero_f32();
    for (int64_t g = 0; g < s->groups; g++, block += TN__Q8_BLOCK, x += TN__Q8_GROUP) {
        const int8_t *w = (const int8_t *)block + TN__Q8_SCALES + j;
        TN__UNROLL for (int v = 0; v < nv; v++) scale[v] = v_load_f16(block + 2 * (j + v * N));
        for (int p = 0; p < TN__Q8_GROUP; p++, w += TN__Q8_PANEL) {
            TN__UNROLL for (int v = 0; v < nv; v++)
            {
                const v_f32 weight = v_load_i8(w + v * N) * scale[v];
                TN__UNROLL for (int i = 0; i < m; i++) sum[i][v] =
                    v_fma_f32(v_broadcast_f32(x + i * s->x_row + p), weight, sum[i][v]);
            }
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
        for (int j = 0; j < TN__Q8_PANEL; j += (nv)*N) some(m, nv, s, row, j); \
    }
PASS(1, ALONE)
PASS(2, VECTORS)
PASS(3, VECTORS)
PASS(4, VECTORS)
#if defined(__AVX512F__) || defined(__aarch64__)
PASS(5, VECTORS)
PASS(6, VECTORS)
#endif

/* Passes as equal as can be: 8 rows are 4 and 4, not 6 and 2. */
static void product(const tn__q8_step *s)
{
    static void (*const pass[])(const tn__q8_step *, int64_t) = {
        pass_1,
        pass_2,
        pass_3,
        pass_4,
#if defined(__AVX512F__) || defined(__aarch64__)
        pass_5,
        pass_6,
#endif
    };
    _Static_assert(sizeof pass / sizeof *pass == ROWS, "a pass for each number of rows");
    int64_t passes = (s->rows + ROWS - 1) / ROWS;
    for (int64_t row = 0, m; row < s->rows; row += m, passes--) {
        m = (s->rows - row + passes - 1) / passes;
        pass[m - 1](s, row);
    }
}

static void widen(int64_t groups, const uint8_t *block, float *to, int64_t to_row)
{
    for (int64_t g = 0; g < groups; g++, block += TN__Q8_BLOCK) {
        v_f32 scale[TN__Q8_PANEL / N];
        for (int v = 0; v < TN__Q8_PANEL / N; v++) scale[v] = v_load_f16(block + (int64_t)2 * v * N);
        const int8_t *w = (const int8_t *)block + TN__Q8_SCALES;
        for (int p = 0; p < TN__Q8_GROUP; p++, w += TN__Q8_PANEL, to += to_row)
            for (int v = 0; v < TN__Q8_PANEL / N; v++) v_store_f32(to + v * N, v_load_i8(w + v * N) * scale[v]);
    }
}

extern const tn__q8_kernels TN__FOR_ISA(tn__q8);

const tn__q8_kernels TN__FOR_ISA(tn__q8) = {.rows = ROWS, .product = product, .widen = widen};
