/* columns.h — functions of a ≥ 0 by tables of 32 polynomials, a column each: a is nearest to the column's number,
 * divided by the table's scale.
 *
 *   f(a) = c + r (p₀ + p₁ r + … + p₅ r⁵),  r = a - t
 *
 * t is a number near the middle at which f is almost an f32, c; its slope there, p₀, almost another. So what is rounded
 * counts for the share of the second part in f alone. The columns next to 0 give what f has beside a multiple of a:
 * their c and t are 0. By minimax, 2⁻²⁸ of f or better. */
#ifndef TENON_CORE_KERNELS_COLUMNS_H
#define TENON_CORE_KERNELS_COLUMNS_H

#include "core/kernels/vecmath_table.h"
#include "core/kernels/vector.h"

/* Its lowest bits are the number of the column. */
TN__INLINE v_f32  v_column(v_f32 a, float scale) { return a * scale + 0x1.8p23f; }
TN__INLINE v_mask v_in_columns_below(int k, v_f32 column) { return v_less(column, v_set1(0x1.8p23f + (float)k)); }

/* Row by row: the points, the constants, the coefficients. In halves, so that fewer steps wait for each other. */
TN__INLINE v_f32 v_read_columns(const float (*t)[32], v_f32 a, v_f32 column, v_f32 *more)
{
    const v_u32 i = v_bits(column);
    const v_f32 r = a - v_pick(t[0], i), rr = r * r;
    const v_f32 low = r * v_pick(t[3], i), middle = v_pick(t[4], i) + r * v_pick(t[5], i);
    const v_f32 high = v_pick(t[6], i) + r * v_pick(t[7], i);
    *more = r * (v_pick(t[2], i) + (low + rr * (middle + rr * high)));
    return v_pick(t[1], i);
}

/* max(x, 0) - f(|x|), of which the first two columns give what x/2 is less. */
TN__INLINE v_f32 v_without_tail(const float (*t)[32], v_f32 x, v_f32 a, float scale)
{
    const v_f32 column = v_column(a, scale);
    v_f32       more, constant = v_read_columns(t, a, column, &more);
    return v_choose(v_in_columns_below(2, column), 0.5f * x, v_max(x, v_zero_f32())) - (constant + more);
}

/* An odd function that is near x at 0, of which the first two columns give what a is less; a up to the last column. */
TN__INLINE v_f32 v_odd(const float (*t)[32], v_f32 x, v_f32 a, float scale)
{
    const v_f32 column = v_column(a, scale);
    v_f32       more, constant = v_read_columns(t, a, column, &more);
    return v_with_sign(v_choose(v_in_columns_below(2, column), a, constant) + more, x);
}

#endif
