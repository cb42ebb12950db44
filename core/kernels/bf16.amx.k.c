/* bf16.amx.k.c — products of bf16 by AMX, whose instruction multiplies a tile of 16 rows of 32 terms with one of 32
 * terms by 16 columns. Of each group of 32 terms, counted from the first of k, the terms at even positions are summed
 * from 0, and those at odd positions, in order, with one rounding each; the two sums are added to each other, and the
 * result to the element. Denormals count as 0. The last group is padded with zeros. */
#include "core/kernels/kernels.h"
#include "core/kernels/simd.h"

#include <immintrin.h>

enum {
    SIDE = 16,       /* rows of a tile, and units in one of its rows */
    LINE = SIDE * 4, /* bytes of such a row */
    MR = 2 * SIDE,   /* the micro-tile: two tiles down ... */
    NV = 2,          /* ... by two across */
    STEPS = 192      /* in a block of k: a strip of a is half of L1 */
};

/* Registers: 0 and 1 are the sums of the upper rows, 2 and 3 of the lower ones; 4 and 5 hold a, 6 and 7 hold b. */
typedef struct {
    uint8_t  palette, start, reserved[14];
    uint16_t bytes[SIDE]; /* of a row, of each register */
    uint8_t  rows[SIDE];
} shapes;

/* The tile shapes for a strip of u upper and l lower rows. */
#define SHAPES(u, l)                                                                                           \
    {                                                                                                          \
        .palette = 1, .bytes = {LINE, LINE, (l) ? LINE : 0, (l) ? LINE : 0, LINE, (l) ? LINE : 0, LINE, LINE}, \
        .rows = {                                                                                              \
            u,                                                                                                 \
            u,                                                                                                 \
            l,                                                                                                 \
            l,                                                                                                 \
            u,                                                                                                 \
            l,                                                                                                 \
            SIDE,                                                                                              \
            SIDE                                                                                               \
        }                                                                                                      \
    }
#define UPPER(u) SHAPES(u, 0)
#define LOWER(l) SHAPES(SIDE, l)
#define TO_16(X) X(1), X(2), X(3), X(4), X(5), X(6), X(7), X(8), X(9), X(10), X(11), X(12), X(13), X(14), X(15), X(16)
static const _Alignas(64) shapes shapes_of[MR] = {TO_16(UPPER), TO_16(LOWER)};

/* One group: one or two tiles of a by one or two of b. */
TN__INLINE void group(const int down, const int across, const char *a, int64_t a_row, const char *b, int64_t b_row)
{
    _tile_loadd(6, b, b_row);
    _tile_loadd(4, a, a_row);
    _tile_dpbf16ps(0, 4, 6);
    if (across > 1) {
        _tile_loadd(7, b + LINE, b_row);
        _tile_dpbf16ps(1, 4, 7);
    }
    if (down > 1) {
        _tile_loadd(5, a + SIDE * a_row, a_row);
        _tile_dpbf16ps(2, 5, 6);
        if (across > 1) _tile_dpbf16ps(3, 5, 7);
    }
}

/* The last group, of fewer than 32 terms: copied and padded. */
TN__INLINE void last_group(const int down, const int across, int64_t rows, int64_t units, const char *a, int64_t a_row,
                           const char *b, int64_t b_row)
{
    _Alignas(64) char full_a[MR * LINE], full_b[SIDE * NV * LINE];
    const __mmask16   in = (__mmask16)((1u << units) - 1);
    for (int64_t r = 0; r < rows; r++)
        _mm512_store_si512(full_a + r * LINE, _mm512_maskz_loadu_epi32(in, a + r * a_row));
    for (int64_t p = 0; p < SIDE; p++)
        for (int v = 0; v < across; v++)
            _mm512_store_si512(
                full_b + (p * NV + v) * LINE,
                _mm512_maskz_loadu_epi32(p < units ? 0xffff : 0, p < units ? b + p * b_row + v * LINE : b));
    __asm__ volatile("" : : "r"(full_a), "r"(full_b) : "memory"); /* gcc does not know that tile loads read memory */
    group(down, across, full_a, LINE, full_b, NV * LINE);
}

TN__INLINE void load_sums(const int down, const int across, const char *from, int64_t row)
{
    if (!from) {
        _tile_zero(0);
        _tile_zero(1);
        if (down > 1) _tile_zero(2);
        if (down > 1) _tile_zero(3);
        return;
    }
    _tile_loadd(0, from, row);
    if (across > 1) _tile_loadd(1, from + LINE, row);
    if (down > 1) _tile_loadd(2, from + SIDE * row, row);
    if (down > 1 && across > 1) _tile_loadd(3, from + SIDE * row + LINE, row);
}

TN__INLINE void store_sums(const int down, const int across, char *to, int64_t row)
{
    _tile_stored(0, to, row);
    if (across > 1) _tile_stored(1, to + LINE, row);
    if (down > 1) _tile_stored(2, to + SIDE * row, row);
    if (down > 1 && across > 1) _tile_stored(3, to + SIDE * row + LINE, row);
}

/* Stores a whole strip rounded to bf16, through memory: tiles cannot be moved to vectors directly. Sums are never
 * denormal; for denormals this would differ from tn__f32_to_bf16. */
TN__INLINE void store_rounded(const int across, uint16_t *to, int64_t row)
{
    _Alignas(64) char sums[MR * NV * LINE];
    store_sums(2, across, sums, NV * LINE);
    for (int64_t r = 0; r < MR; r++)
        for (int v = 0; v < across; v++)
            _mm256_storeu_si256((__m256i *)(void *)(to + r * row + v * SIDE),
                                (__m256i)_mm512_cvtneps_pbh(_mm512_load_ps(sums + (r * NV + v) * LINE)));
}

TN__INLINE void tile(const int down, const int across, const tn__gemm_step *s)
{
    const int64_t a_row = 4 * s->a_row, b_row = 4 * s->b_row;
    const char   *a = s->a, *b = s->b, *ahead = s->prefetch;
    int64_t       k = s->k;
    load_sums(down, across, s->from, 4 * s->from_row);
    for (; k >= SIDE; k -= SIDE, a += LINE, b += SIDE * b_row) {
        group(down, across, a, a_row, b, b_row);
        for (int i = 0; ahead && i < SIDE; i++, ahead += s->per_step) __builtin_prefetch(ahead, 0, 2);
    }
    if (k) last_group(down, across, s->mr, k, a, a_row, b, b_row);
    if (down > 1 && s->to_bf16) store_rounded(across, s->to, s->to_row);
    else store_sums(down, across, s->to, 4 * s->to_row);
}

/* The registers' shapes are set once for all strips of mr rows: it takes as long as one or two groups. */
static void begin(int mr) { _tile_loadconfig(&shapes_of[mr - 1]); }
static void end(void) { _tile_release(); }

static void any_tile(const tn__gemm_step *s)
{
    if (s->mr > SIDE && s->nv > 1) tile(2, 2, s);
    else if (s->mr > SIDE) tile(2, 1, s);
    else if (s->nv > 1) tile(1, 2, s);
    else tile(1, 1, s);
}

void                          tn__gemm_epilogue_f32_avx512(const tn__epilogue_step *s);
void                          tn__pack_pairs_avx512bf16(const tn__pack_step *s);
void                          tn__pack_pairs_f32_avx512bf16(const tn__pack_step *s);
extern const tn__gemm_kernels tn__gemm_bf16_amx;

const tn__gemm_kernels tn__gemm_bf16_amx = {.mr = MR,
                                            .nv = NV,
                                            .lanes = SIDE,
                                            .pair = 2,
                                            .steps = STEPS,
                                            .group = SIDE,
                                            .a_rows = true,
                                            .begin = begin,
                                            .end = end,
                                            .tile = any_tile,
                                            .pack = tn__pack_pairs_f32_avx512bf16,
                                            .pack_bf16 = tn__pack_pairs_avx512bf16,
                                            .epilogue = tn__gemm_epilogue_f32_avx512};
