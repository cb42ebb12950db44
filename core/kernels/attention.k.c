/* attention.k.c — the work on a block of attention scores between its products, row by row: the running softmax, its
 * derivative, dropout. Also helpers for the blocks: scaling rows, dot products of rows, checks for finite elements.
 *
 * A row of n elements is read and written to the end of its last vector; there is room, and zeros are written after n.
 * In sums over a row, element j goes to lane j mod 16 (f64: 8) whatever the length of a vector, and the upper half of
 * the lanes is added to the lower one until one is left: so a row's sum depends neither on the rest of its block nor on
 * the instruction set. */
#include "core/kernels/exp.h"
#include "core/kernels/exp_f64.h"
#include "core/kernels/kernels.h"

#ifndef TN__REAL

typedef v_mask    mask_f32;
typedef v_u64     mask_f64;
TN__INLINE v_mask less_f32(v_f32 a, v_f32 b) { return v_less(a, b); }
TN__INLINE v_u64  less_f64(v_f64 a, v_f64 b) { return v_less_f64(a, b); }
TN__INLINE v_mask equal_f32(v_f32 a, v_f32 b) { return v_equal(a, b); }
TN__INLINE v_u64  equal_f64(v_f64 a, v_f64 b) { return (v_u64)(a == b); }
TN__INLINE v_f32  choose_f32(v_mask m, v_f32 a, v_f32 b) { return v_choose(m, a, b); }
TN__INLINE v_f64  choose_f64(v_u64 m, v_f64 a, v_f64 b) { return v_choose_f64(m, a, b); }
TN__INLINE v_f32  max_f32(v_f32 x, v_f32 top) { return v_max(top, x); } /* top where x is NaN */
TN__INLINE v_f64  max_f64(v_f64 x, v_f64 top) { return v_choose_f64(v_less_f64(top, x), x, top); }
TN__INLINE v_f64  exp_f64(v_f64 x) { return v_exp_f64(x); }

/* eˣ for x ≤ 0 or NaN, and 0 below e⁻⁶⁹, about 2⁻¹⁰⁰: negligible next to the row's maximum, 1, and products with
 * it might be denormal, for which some CPUs take more than a hundred cycles. Like v_exp of exp.h, but with
 * multiply-adds and without error compensation, which is half the work, and within 1 ULP: its bits depend on whether
 * the CPU has multiply-adds, as those of the products before and after it do. */
TN__INLINE v_f32 exp_f32(v_f32 x)
{
    const v_f32 y = v_max(x, v_set1(-70)), sum = v_fma_f32(y, v_set1(0x1.715476p+0f), v_set1(0x1.8p23f));
    const v_f32 n = sum - 0x1.8p23f, a = v_fma_f32(n, v_set1(-0x1.62e4p-1f), y);
    const v_f32 r = v_fma_f32(n, v_set1(-0x1.7f7d1cp-20f), a);
    v_f32       p = v_set1(v_exp_q[4]);
    for (int i = 3; i >= 0; i--) p = v_fma_f32(p, r, v_set1(v_exp_q[i]));
    p = 1.0f + v_fma_f32(r * r, p, r);
    return v_choose(v_less(x, v_set1(-69)), v_zero_f32(), p * v_power_of_2(v_bits(sum) << 23, 0)); /* NaN stays NaN */
}

#define TN__TEMPLATE "core/kernels/attention.k.c"
#include "core/real.h"

#else

static const TN__REAL TN__(iota)[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

/* The end of the vector that n elements end in. */
TN__INLINE int64_t TN__(whole_vectors)(int64_t n) { return (n + TN__(v_n) - 1) / TN__(v_n) * TN__(v_n); }

/* The scores at s[j …]: -inf for blocked or unseen keys, whatever the product is. */
TN__INLINE TN__(v) TN__(score)(const TN__REAL *s, TN__(v) scale, const TN__REAL *add, int64_t j, int64_t n)
{
    const TN__REAL least = -(TN__REAL)INFINITY;
    const TN__(v) none = TN__(v_broadcast)(&least);
    TN__(v) x = TN__(v_load)(s + j) * scale;
    if (add) {
        const TN__(v) term = TN__(v_load)(add + j);
        x = TN__(choose)(TN__(equal)(term, none), none, x + term);
    }
    if (j + TN__(v_n) <= n) return x;
    const TN__REAL left = (TN__REAL)(n - j);
    return TN__(choose)(TN__(less)(TN__(v_load)(TN__(iota)), TN__(v_broadcast)(&left)), x, none);
}

/* clang-format off: it takes TN__UNROLL for a function */

/* Of N vectors, the maximum of each, ignoring NaN; the sum of each. */
TN__INLINE TN__(v) TN__(row_max)(TN__(v) * x)
{
    TN__(v_transpose)(x);
    TN__UNROLL for (int half = TN__(v_n) / 2; half; half /= 2) TN__UNROLL for (int k = 0; k < half; k++) x[k] =
        TN__(max)(x[k], x[k + half]);
    return x[0];
}
/* A row's lanes in a few vectors: adds the next vector. They rotate, so that no loop must be unrolled; which of them is
 * first does not matter to the total, because vectors half the lanes apart are added first. */
enum { TN__(vectors) = 64 / sizeof(TN__(v)) };
TN__INLINE void TN__(add_vector)(TN__(v) * total, TN__(v) x)
{
    x = total[0] + x;
    TN__UNROLL for (int k = 1; k < TN__(vectors); k++) total[k - 1] = total[k];
    total[TN__(vectors) - 1] = x;
}
TN__INLINE TN__(v) TN__(total_vector)(TN__(v) * total)
{
    TN__UNROLL for (int half = TN__(vectors) / 2; half; half /= 2) TN__UNROLL for (int k = 0; k < half; k++) total[k] =
        total[k] + total[k + half];
    return total[0];
}
TN__INLINE TN__(v) TN__(row_sums)(TN__(v) * x)
{
    TN__(v_transpose)(x);
    TN__UNROLL for (int half = TN__(v_n) / 2; half; half /= 2) TN__UNROLL for (int k = 0; k < half; k++) x[k] =
        x[k] + x[k + half];
    return x[0];
}
/* clang-format on */

static void TN__(softmax)(const tn__attention_step *t)
{
    enum { N = TN__(v_n) };
    const TN__REAL least = -(TN__REAL)INFINITY, scale_rows = (TN__REAL)t->scale;
    const TN__(v) none = TN__(v_broadcast)(&least), zero = TN__(v_zero)(), scale = TN__(v_broadcast)(&scale_rows);
    const int64_t last = TN__(whole_vectors)(t->keys);
    for (int64_t first = 0; first < t->rows; first += N) {
        TN__REAL *max = (TN__REAL *)t->max + first, *sum = (TN__REAL *)t->sum + first, shift[N];
        TN__(v) x[N];
        for (int64_t k = 0; k < N; k++) {
            x[k] = none;
            if (first + k >= t->rows) continue;
            const TN__REAL *s = (const TN__REAL *)t->s + (first + k) * t->s_row;
            const TN__REAL *add = t->add ? (const TN__REAL *)t->add + (first + k) * t->add_row : NULL;
            const int64_t   n = tn__keys_in_sight(t->keys, t->first, t->step, first + k), end = TN__(whole_vectors)(n);
            TN__(v) top = none;
            for (int64_t j = 0; j < end; j += N) top = TN__(max)(TN__(score)(s, scale, add, j, n), top);
            x[k] = top;
        }
        const TN__(v) before = TN__(v_load)(max), high = TN__(max)(TN__(row_max)(x), before);
        const TN__(v) down = TN__(choose)(TN__(equal)(high, none), zero, high); /* exp(-inf - 0) is 0 */
        const TN__(v) f = TN__(exp)(before - down);
        TN__(v_store)(shift, down), TN__(v_store)(max, high), TN__(v_store)((TN__REAL *)t->factor + first, f);
        for (int64_t k = 0; k < N; k++) {
            x[k] = zero;
            if (first + k >= t->rows) continue;
            TN__REAL       *s = (TN__REAL *)t->s + (first + k) * t->s_row;
            const TN__REAL *add = t->add ? (const TN__REAL *)t->add + (first + k) * t->add_row : NULL;
            const int64_t   n = tn__keys_in_sight(t->keys, t->first, t->step, first + k), end = TN__(whole_vectors)(n);
            const TN__(v) by = TN__(v_broadcast)(shift + k);
            TN__(v) total[TN__(vectors)];
            for (int i = 0; i < TN__(vectors); i++) total[i] = zero;
            for (int64_t j = 0; j < end; j += N) {
                const TN__(v) p = TN__(exp)(TN__(score)(s, scale, add, j, n) - by);
                TN__(v_store)(s + j, p);
                TN__(add_vector)(total, p);
            }
            for (int64_t j = end; j < last; j += N) TN__(v_store)(s + j, zero);
            x[k] = TN__(total_vector)(total);
        }
        TN__(v_store)(sum, TN__(v_load)(sum) * f + TN__(row_sums)(x));
    }
}

static void TN__(softmax_back)(const tn__attention_step *t)
{
    enum { N = TN__(v_n) };
    const TN__REAL *sum = t->sum, *max = t->max, *part = t->part, scale_rows = (TN__REAL)t->scale;
    const TN__(v) scale = TN__(v_broadcast)(&scale_rows);
    for (int64_t i = 0; i < t->rows; i++) {
        TN__REAL       *s = (TN__REAL *)t->s + i * t->s_row, *g = (TN__REAL *)t->g + i * t->s_row;
        const TN__REAL *add = t->add ? (const TN__REAL *)t->add + i * t->add_row : NULL;
        const TN__REAL *keep = t->keep ? (const TN__REAL *)t->keep + i * t->s_row : NULL;
        const int64_t   n = tn__keys_in_sight(t->keys, t->first, t->step, i), end = TN__(whole_vectors)(n),
                      last = TN__(whole_vectors)(t->keys);
        const TN__(v) high = TN__(v_broadcast)(max + i), share = TN__(v_broadcast)(sum + i),
                      mean = TN__(v_broadcast)(part + i);
        const TN__(v) zero = TN__(v_zero)();
        for (int64_t j = 0; j < end; j += N) {
            const TN__(v) w = TN__(exp)(TN__(score)(s, scale, add, j, n) - high) * share;
            TN__(v) out = w, d = TN__(v_load)(g + j);
            if (keep) {
                const TN__(v) f = TN__(v_load)(keep + j);
                const TN__(mask) dropped = TN__(equal)(f, zero);
                out = TN__(choose)(dropped, zero, w * f), d = TN__(choose)(dropped, zero, d * f);
            }
            TN__(v_store)(s + j, out);
            TN__(v_store)(g + j, TN__(choose)(TN__(equal)(w, zero), zero, w * (d - mean)));
        }
        for (int64_t j = end; j < last; j += N) TN__(v_store)(s + j, zero), TN__(v_store)(g + j, zero);
    }
}

static void TN__(scale_rows)(int64_t rows, int64_t n, void *x, int64_t x_row, const void *factor, int64_t step)
{
    const TN__REAL *f = factor;
    for (int64_t i = 0; i < rows; i++, f += step) {
        TN__REAL *y = (TN__REAL *)x + i * x_row;
        const TN__(v) by = TN__(v_broadcast)(f);
        if (*f != 1)
            for (int64_t j = 0; j < n; j += TN__(v_n)) TN__(v_store)(y + j, TN__(v_load)(y + j) * by);
    }
}

static void TN__(dot_columns)(int64_t rows, int64_t n, const void *a, const void *b, int64_t row, void *to)
{
    const TN__REAL *x = a, *y = b;
    for (int64_t i = 0; i < rows; i += TN__(v_n)) {
        TN__(v) sum = TN__(v_zero)();
        for (int64_t j = 0; j < n; j++)
            sum = TN__(v_fma)(TN__(v_load)(x + j * row + i), TN__(v_load)(y + j * row + i), sum);
        TN__(v_store)((TN__REAL *)to + i, sum);
    }
}

/* Each term was a value times 0, which is 0 if the value is finite and otherwise NaN: true if all were 0. */
TN__INLINE bool TN__(is_zero)(TN__(v) total)
{
    TN__REAL lane[TN__(v_n)], sum = 0;
    TN__(v_store)(lane, total);
    for (int k = 0; k < TN__(v_n); k++) sum += lane[k];
    return sum == 0;
}

/* The first n elements at p, fewer than a vector, followed by zeros. */
TN__INLINE TN__(v) TN__(load_some)(const TN__REAL *p, int64_t n, int64_t step)
{
    TN__REAL part[TN__(v_n)] = {0};
    for (int64_t k = 0; k < n; k++) part[k] = p[k * step];
    return TN__(v_load)(part);
}

static bool TN__(pack)(int64_t rows, int64_t cols, const void *from, int64_t from_row, void *to, int64_t to_row)
{
    enum { N = TN__(v_n) };
    TN__(v) total = TN__(v_zero)();
    for (int64_t i = 0; i < rows; i++) {
        const TN__REAL *x = (const TN__REAL *)from + i * from_row;
        TN__REAL       *y = (TN__REAL *)to + i * to_row;
        for (int64_t j = 0; j < cols; j += N) {
            const TN__(v) v = j + N <= cols ? TN__(v_load)(x + j) : TN__(load_some)(x + j, cols - j, 1);
            total = TN__(v_fma)(v, TN__(v_zero)(), total);
            TN__(v_store)(y + j, v);
        }
    }
    return TN__(is_zero)(total);
}

/* clang-format off: it takes TN__UNROLL for a function */
static void TN__(transpose)(int64_t rows, int64_t cols, const void *from, int64_t from_row, void *to, int64_t to_row)
{
    enum { N = TN__(v_n) };
    for (int64_t i = 0; i < rows; i += N) {
        const TN__REAL *x = (const TN__REAL *)from + i * from_row;
        TN__REAL       *y = (TN__REAL *)to + i;
        int64_t         j = 0;
        for (; j + N <= cols; j += N) {
            TN__(v) v[N];
            TN__UNROLL for (int k = 0; k < N; k++) v[k] =
                i + k < rows ? TN__(v_load)(x + k * from_row + j) : TN__(v_zero)();
            TN__(v_transpose)(v);
            TN__UNROLL for (int k = 0; k < N; k++) TN__(v_store)(y + (j + k) * to_row, v[k]);
        }
        for (; j < cols; j++)
            TN__(v_store)(y + j * to_row, TN__(load_some)(x + j, rows - i < N ? rows - i : N, from_row));
    }
}
/* clang-format on */

static bool TN__(store_scaled)(int64_t rows, int64_t n, const void *x, int64_t x_row, const void *factor, int64_t step,
                               void *to, int64_t to_row)
{
    enum { N = TN__(v_n) };
    const TN__REAL *f = factor;
    TN__(v) total = TN__(v_zero)();
    for (int64_t i = 0; i < rows; i++, f += step) {
        const TN__REAL *from = (const TN__REAL *)x + i * x_row;
        TN__REAL       *y = (TN__REAL *)to + i * to_row, part[N];
        const TN__(v) by = TN__(v_broadcast)(f);
        for (int64_t j = 0; j < n; j += N) {
            const TN__(v) v = TN__(v_load)(from + j) * by + TN__(v_zero)();
            total = TN__(v_fma)(v, TN__(v_zero)(), total);
            if (j + N <= n) {
                TN__(v_store)(y + j, v);
                continue;
            }
            TN__(v_store)(part, v);
            for (int64_t k = j; k < n; k++) y[k] = part[k - j];
        }
    }
    return TN__(is_zero)(total);
}

static void TN__(widen)(int64_t n, const uint8_t *restrict row, void *to)
{
    TN__REAL *restrict y = to;
    float scale;
    memcpy(&scale, row + n, sizeof scale);
    for (int64_t i = 0; i < n; i++) y[i] = (TN__REAL)(int8_t)row[i] * (TN__REAL)scale;
}

extern const tn__attention_kernels TN__FOR_ISA(TN__(tn__attention));

const tn__attention_kernels TN__FOR_ISA(TN__(tn__attention)) = {
    .softmax = TN__(softmax),
    .softmax_back = TN__(softmax_back),
    .scale_rows = TN__(scale_rows),
    .dot_columns = TN__(dot_columns),
    .pack = TN__(pack),
    .transpose = TN__(transpose),
    .store_scaled = TN__(store_scaled),
    .widen = TN__(widen),
};

#endif
