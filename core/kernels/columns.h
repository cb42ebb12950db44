/* columns.h — functions of a ≥ 0 from tables of 32 polynomials, a column each: a uses the column whose index, divided
 * by the table's scale, is nearest.
 *
 *   f(a) = c + r (p₀ + p₁ r + … + p₅ r⁵),  r = a - t
 *
 * t is a number near the column's middle, chosen so that f(t) is almost exactly an f32, c, and the slope there another,
 * p₀. So the rounding error is relative to the second part of f only. The columns next to 0 hold f minus a multiple of
 * a: their c and t are 0. By minimax, 2⁻²⁸ of f or better.
 *
 * AVX-512 looks up 32 numbers by index with one instruction, so a lane's numbers come from the rows of the table. On
 * other instruction sets each lane loads its column, 8 numbers, and the square is transposed: half the cost of looking
 * up 8 times. */
#ifndef TENON_CORE_KERNELS_COLUMNS_H
#define TENON_CORE_KERNELS_COLUMNS_H

#include "core/kernels/vecmath_table.h"
#include "core/kernels/vector.h"

/* The lowest bits of the result are the column's index. */
TN__INLINE v_f32  v_column(v_f32 a, float scale) { return a * scale + 0x1.8p23f; }
TN__INLINE v_mask v_in_columns_below(int k, v_f32 column) { return v_less(column, v_set1(0x1.8p23f + (float)k)); }

/* The numbers of the columns i mod 32. */
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
TN__INLINE void v_columns_at(const tn__columns *t, v_u32 i, v_f32 v[TN__COLUMN_ROWS])
{
    for (int k = 0; k < TN__COLUMN_ROWS; k++)
        v[k] = _mm512_permutex2var_ps(v_load_f32(t->row[k]), (__m512i)i, v_load_f32(t->row[k] + 16));
}
#else
#if defined(__AVX2__) && defined(__FMA__)
TN__INLINE v_f32 v_load_quads_of(const float *low, const float *high)
{
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(low)), _mm_loadu_ps(high), 1);
}
#else
TN__INLINE v_f32 v_load_quads_of(const float *low, const float *high) { return (void)high, v_load_f32(low); }
#endif
/* clang-format off: it takes TN__UNROLL for a function */
TN__INLINE void v_columns_at(const tn__columns *t, v_u32 i, v_f32 v[TN__COLUMN_ROWS])
{
    enum { AWAY = v_n_f32 - 4, BYTES = sizeof t->column[0] }; /* AWAY: the lane of the upper 128 bits, if any */
    union {
        v_u32             all;
        volatile uint32_t at[v_n_f32]; /* through memory: loads cost less than moves from a vector's lanes */
    } offset = {.all = (i & 31) * BYTES};
    const char *from = (const char *)t->column;
    TN__UNROLL for (int k = 0; k < 4; k++)
    {
        const float *low = (const float *)(const void *)(from + offset.at[k]);
        const float *high = (const float *)(const void *)(from + offset.at[k + AWAY]);
        v[k] = v_load_quads_of(low, high), v[4 + k] = v_load_quads_of(low + 4, high + 4);
    }
    v_transpose_quads_f32(v), v_transpose_quads_f32(v + 4);
}
/* clang-format on */
#endif

/* Reads points, constants and coefficients, row by row. In halves, so that fewer steps wait for each other. */
TN__INLINE v_f32 v_read_columns(const tn__columns *t, v_f32 a, v_f32 column, v_f32 *more)
{
    v_f32 v[TN__COLUMN_ROWS];
    v_columns_at(t, v_bits(column), v);
    const v_f32 r = a - v[0], rr = r * r;
    *more = r * (v[2] + (r * v[3] + rr * ((v[4] + r * v[5]) + rr * (v[6] + r * v[7]))));
    return v[1];
}

/* max(x, 0) - f(|x|), where the first two columns hold x/2 minus the result. */
TN__INLINE v_f32 v_without_tail(const tn__columns *t, v_f32 x, v_f32 a, float scale)
{
    const v_f32 column = v_column(a, scale);
    v_f32       more, constant = v_read_columns(t, a, column, &more);
    return v_choose(v_in_columns_below(2, column), 0.5f * x, v_max(x, v_zero_f32())) - (constant + more);
}

/* An odd function that is near x at 0, where the first two columns hold a minus the result; a up to the last column. */
TN__INLINE v_f32 v_odd(const tn__columns *t, v_f32 x, v_f32 a, float scale)
{
    const v_f32 column = v_column(a, scale);
    v_f32       more, constant = v_read_columns(t, a, column, &more);
    return v_with_sign(v_choose(v_in_columns_below(2, column), a, constant) + more, x);
}

#endif
