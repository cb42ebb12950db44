/* columns.h — functions of a ≥ 0 from tables of 32 polynomials, a column each: a uses the column whose index, divided
 * by the table's scale, is nearest.
 *
 *   f(a) = c + r (p₀ + p₁ r + … + p₅ r⁵),  r = a - t
 *
 * t is a number near the column's middle, chosen so that f(t) is almost exactly an f32, c, and the slope there another,
 * p₀. So the rounding error is relative to the second part of f only. The columns next to 0 hold f minus a multiple of
 * a: their c and t are 0. By minimax, 2⁻²⁸ of f or better. */
#ifndef TENON_CORE_KERNELS_COLUMNS_H
#define TENON_CORE_KERNELS_COLUMNS_H

#include "core/kernels/vecmath_table.h"
#include "core/kernels/vector.h"

/* The lowest bits of the result are the column's index. */
TN__INLINE v_f32  v_column(v_f32 a, float scale) { return a * scale + 0x1.8p23f; }
TN__INLINE v_mask v_in_columns_below(int k, v_f32 column) { return v_less(column, v_set1(0x1.8p23f + (float)k)); }

/* Reads points, constants and coefficients, row by row. In halves, so that fewer steps wait for each other. */
TN__INLINE v_f32 v_read_columns(const float (*t)[32], v_f32 a, v_f32 column, v_f32 *more)
{
    const v_u32 i = v_bits(column);
    const v_f32 r = a - v_pick(t[0], i), rr = r * r;
    const v_f32 low = r * v_pick(t[3], i), middle = v_pick(t[4], i) + r * v_pick(t[5], i);
    const v_f32 high = v_pick(t[6], i) + r * v_pick(t[7], i);
    *more = r * (v_pick(t[2], i) + (low + rr * (middle + rr * high)));
    return v_pick(t[1], i);
}

/* max(x, 0) - f(|x|), where the first two columns hold x/2 minus the result. */
TN__INLINE v_f32 v_without_tail(const float (*t)[32], v_f32 x, v_f32 a, float scale)
{
    const v_f32 column = v_column(a, scale);
    v_f32       more, constant = v_read_columns(t, a, column, &more);
    return v_choose(v_in_columns_below(2, column), 0.5f * x, v_max(x, v_zero_f32())) - (constant + more);
}

/* An odd function that is near x at 0, where the first two columns hold a minus the result; a up to the last column. */
TN__INLINE v_f32 v_odd(const float (*t)[32], v_f32 x, v_f32 a, float scale)
{
    const v_f32 column = v_column(a, scale);
    v_f32       more, constant = v_read_columns(t, a, column, &more);
    return v_with_sign(v_choose(v_in_columns_below(2, column), a, constant) + more, x);
}

#endif
