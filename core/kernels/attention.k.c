/* attention.k.c — what attention does to a block of scores between its products, row by row: the running softmax, its
 * derivative, dropout. And what surrounds the blocks: rows times numbers, dot products of rows, is all of it finite?
 *
 * A row of n numbers is read and written up to the end of its last vector; there is room, and what is written behind
 * n are zeros. Where sums run over a row, element j goes to lane j mod (elements of a vector), so that a row has the
 * same sum whatever else stands in its block. */
#include "core/kernels/exp.h"
#include "core/kernels/exp_f64.h"
#include "core/kernels/kernels.h"

#ifndef TN_REAL

typedef v_mask   mask_f32;
typedef v_u64    mask_f64;
TN_INLINE v_mask less_f32(v_f32 a, v_f32 b) { return v_less(a, b); }
TN_INLINE v_u64  less_f64(v_f64 a, v_f64 b) { return v_less_f64(a, b); }
TN_INLINE v_mask equal_f32(v_f32 a, v_f32 b) { return v_equal(a, b); }
TN_INLINE v_u64  equal_f64(v_f64 a, v_f64 b) { return (v_u64)(a == b); }
TN_INLINE v_f32  choose_f32(v_mask m, v_f32 a, v_f32 b) { return v_choose(m, a, b); }
TN_INLINE v_f64  choose_f64(v_u64 m, v_f64 a, v_f64 b) { return v_choose_f64(m, a, b); }
TN_INLINE v_f32  max_f32(v_f32 x, v_f32 top) { return v_max(top, x); } /* top where x is NaN */
TN_INLINE v_f64  max_f64(v_f64 x, v_f64 top) { return v_choose_f64(v_less_f64(top, x), x, top); }
TN_INLINE v_f64  exp_f64(v_f64 x) { return v_exp_f64(x); }

/* eˣ for x ≤ 0 or NaN: 0 below the smallest normal number. As v_exp of exp.h, but with multiply-adds and nothing
 * carried along, which is half the work, and within 1 ULP: its bits are the instruction set's, like
 * those of the products that come before and after it. */
TN_INLINE v_f32 exp_f32(v_f32 x)
{
    const v_f32 y = v_max(x, v_set1(-88)), sum = v_fma_f32(y, v_set1(0x1.715476p+0f), v_set1(0x1.8p23f));
    const v_f32 n = sum - 0x1.8p23f, a = v_fma_f32(n, v_set1(-0x1.62e4p-1f), y);
    const v_f32 r = v_fma_f32(n, v_set1(-0x1.7f7d1cp-20f), a);
    v_f32       p = v_set1(v_exp_q[4]);
    for (int i = 3; i >= 0; i--) p = v_fma_f32(p, r, v_set1(v_exp_q[i]));
    p = 1.0f + v_fma_f32(r * r, p, r);
    return v_choose(v_less(x, v_set1(-87)), v_zero_f32(), v_float(v_bits(p) + (v_bits(sum) << 23)));
}

#define TN_TEMPLATE "core/kernels/attention.k.c"
#include "core/real.h"

#else

static const TN_REAL TN_(iota)[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

/* How many keys row i sees, and where its last vector ends. */
TN_INLINE int64_t TN_(keys_in_sight)(const tn__attention_step *t, int64_t i)
{
    const int64_t n = t->first + i * t->step;
    return n < 0 ? 0 : n < t->keys ? n : t->keys;
}
TN_INLINE int64_t TN_(whole_vectors)(int64_t n) { return (n + TN_(v_n) - 1) / TN_(v_n) * TN_(v_n); }

/* The scores at s[j …]: what is blocked, or not seen, is -inf whatever the product is. */
TN_INLINE TN_(v) TN_(score)(const TN_REAL *s, TN_(v) scale, const TN_REAL *add, int64_t j, int64_t n)
{
    const TN_REAL least = -(TN_REAL)INFINITY;
    const TN_(v) none = TN_(v_broadcast)(&least);
    TN_(v) x = TN_(v_load)(s + j) * scale;
    if (add) {
        const TN_(v) term = TN_(v_load)(add + j);
        x = TN_(choose)(TN_(equal)(term, none), none, x + term);
    }
    if (j + TN_(v_n) <= n) return x;
    const TN_REAL left = (TN_REAL)(n - j);
    return TN_(choose)(TN_(less)(TN_(v_load)(TN_(iota)), TN_(v_broadcast)(&left)), x, none);
}

/* clang-format off: it takes TN_UNROLL for a function */

/* Of N vectors, the largest of each, NaN apart; the sum of each. */
TN_INLINE TN_(v) TN_(row_max)(TN_(v) * x)
{
    TN_(v_transpose)(x);
    TN_UNROLL for (int half = TN_(v_n) / 2; half; half /= 2) TN_UNROLL for (int k = 0; k < half; k++) x[k] =
        TN_(max)(x[k], x[k + half]);
    return x[0];
}
TN_INLINE TN_(v) TN_(row_sums)(TN_(v) * x)
{
    TN_(v_transpose)(x);
    TN_UNROLL for (int half = TN_(v_n) / 2; half; half /= 2) TN_UNROLL for (int k = 0; k < half; k++) x[k] =
        x[k] + x[k + half];
    return x[0];
}
/* clang-format on */

static void TN_(softmax)(const tn__attention_step *t)
{
    enum { N = TN_(v_n) };
    const TN_REAL least = -(TN_REAL)INFINITY, scale_rows = (TN_REAL)t->scale;
    const TN_(v) none = TN_(v_broadcast)(&least), zero = TN_(v_zero)(), scale = TN_(v_broadcast)(&scale_rows);
    const int64_t last = TN_(whole_vectors)(t->keys);
    for (int64_t first = 0; first < t->rows; first += N) {
        TN_REAL *max = (TN_REAL *)t->max + first, *sum = (TN_REAL *)t->sum + first, shift[N];
        TN_(v) x[N];
        for (int64_t k = 0; k < N; k++) {
            x[k] = none;
            if (first + k >= t->rows) continue;
            const TN_REAL *s = (const TN_REAL *)t->s + (first + k) * t->s_row;
            const TN_REAL *add = t->add ? (const TN_REAL *)t->add + (first + k) * t->add_row : NULL;
            const int64_t  n = TN_(keys_in_sight)(t, first + k), end = TN_(whole_vectors)(n);
            TN_(v) top = none;
            for (int64_t j = 0; j < end; j += N) top = TN_(max)(TN_(score)(s, scale, add, j, n), top);
            x[k] = top;
        }
        const TN_(v) before = TN_(v_load)(max), high = TN_(max)(TN_(row_max)(x), before);
        const TN_(v) down = TN_(choose)(TN_(equal)(high, none), zero, high); /* exp(-inf - 0) is 0 */
        const TN_(v) f = TN_(exp)(before - down);
        TN_(v_store)(shift, down), TN_(v_store)(max, high), TN_(v_store)((TN_REAL *)t->factor + first, f);
        for (int64_t k = 0; k < N; k++) {
            x[k] = zero;
            if (first + k >= t->rows) continue;
            TN_REAL       *s = (TN_REAL *)t->s + (first + k) * t->s_row;
            const TN_REAL *add = t->add ? (const TN_REAL *)t->add + (first + k) * t->add_row : NULL;
            const int64_t  n = TN_(keys_in_sight)(t, first + k), end = TN_(whole_vectors)(n);
            const TN_(v) by = TN_(v_broadcast)(shift + k);
            TN_(v) total = zero;
            for (int64_t j = 0; j < end; j += N) {
                const TN_(v) p = TN_(exp)(TN_(score)(s, scale, add, j, n) - by);
                TN_(v_store)(s + j, p);
                total = total + p;
            }
            for (int64_t j = end; j < last; j += N) TN_(v_store)(s + j, zero);
            x[k] = total;
        }
        TN_(v_store)(sum, TN_(v_load)(sum) * f + TN_(row_sums)(x));
    }
}

static void TN_(softmax_back)(const tn__attention_step *t)
{
    enum { N = TN_(v_n) };
    const TN_REAL *sum = t->sum, *max = t->max, *part = t->part, scale_rows = (TN_REAL)t->scale;
    const TN_(v) scale = TN_(v_broadcast)(&scale_rows);
    for (int64_t i = 0; i < t->rows; i++) {
        TN_REAL       *s = (TN_REAL *)t->s + i * t->s_row, *g = (TN_REAL *)t->g + i * t->s_row;
        const TN_REAL *add = t->add ? (const TN_REAL *)t->add + i * t->add_row : NULL;
        const TN_REAL *keep = t->keep ? (const TN_REAL *)t->keep + i * t->s_row : NULL;
        const int64_t  n = TN_(keys_in_sight)(t, i), end = TN_(whole_vectors)(n), last = TN_(whole_vectors)(t->keys);
        const TN_(v) high = TN_(v_broadcast)(max + i), share = TN_(v_broadcast)(sum + i),
                     mean = TN_(v_broadcast)(part + i);
        const TN_(v) zero = TN_(v_zero)();
        for (int64_t j = 0; j < end; j += N) {
            const TN_(v) w = TN_(exp)(TN_(score)(s, scale, add, j, n) - high) * share;
            TN_(v) out = w, d = TN_(v_load)(g + j);
            if (keep) {
                const TN_(v) f = TN_(v_load)(keep + j);
                const TN_(mask) dropped = TN_(equal)(f, zero);
                out = TN_(choose)(dropped, zero, w * f), d = TN_(choose)(dropped, zero, d * f);
            }
            TN_(v_store)(s + j, out);
            TN_(v_store)(g + j, TN_(choose)(TN_(equal)(w, zero), zero, w * (d - mean)));
        }
        for (int64_t j = end; j < last; j += N) TN_(v_store)(s + j, zero), TN_(v_store)(g + j, zero);
    }
}

static void TN_(scale_rows)(int64_t rows, int64_t n, void *x, int64_t x_row, const void *factor, int64_t step)
{
    const TN_REAL *f = factor;
    for (int64_t i = 0; i < rows; i++, f += step) {
        TN_REAL *y = (TN_REAL *)x + i * x_row;
        const TN_(v) by = TN_(v_broadcast)(f);
        if (*f != 1)
            for (int64_t j = 0; j < n; j += TN_(v_n)) TN_(v_store)(y + j, TN_(v_load)(y + j) * by);
    }
}

static void TN_(dot_columns)(int64_t rows, int64_t n, const void *a, const void *b, int64_t row, void *to)
{
    const TN_REAL *x = a, *y = b;
    for (int64_t i = 0; i < rows; i += TN_(v_n)) {
        TN_(v) sum = TN_(v_zero)();
        for (int64_t j = 0; j < n; j++)
            sum = TN_(v_fma)(TN_(v_load)(x + j * row + i), TN_(v_load)(y + j * row + i), sum);
        TN_(v_store)((TN_REAL *)to + i, sum);
    }
}

/* 0 times a number is 0, and NaN for what is none: was it 0 each time? */
TN_INLINE bool TN_(is_zero)(TN_(v) total)
{
    TN_REAL lane[TN_(v_n)], sum = 0;
    TN_(v_store)(lane, total);
    for (int k = 0; k < TN_(v_n); k++) sum += lane[k];
    return sum == 0;
}

/* The first n numbers at p, fewer than a vector, and zeros. */
TN_INLINE TN_(v) TN_(load_some)(const TN_REAL *p, int64_t n, int64_t step)
{
    TN_REAL part[TN_(v_n)] = {0};
    for (int64_t k = 0; k < n; k++) part[k] = p[k * step];
    return TN_(v_load)(part);
}

static bool TN_(pack)(int64_t rows, int64_t cols, const void *from, int64_t from_row, void *to, int64_t to_row)
{
    enum { N = TN_(v_n) };
    TN_(v) total = TN_(v_zero)();
    for (int64_t i = 0; i < rows; i++) {
        const TN_REAL *x = (const TN_REAL *)from + i * from_row;
        TN_REAL       *y = (TN_REAL *)to + i * to_row;
        for (int64_t j = 0; j < cols; j += N) {
            const TN_(v) v = j + N <= cols ? TN_(v_load)(x + j) : TN_(load_some)(x + j, cols - j, 1);
            total = TN_(v_fma)(v, TN_(v_zero)(), total);
            TN_(v_store)(y + j, v);
        }
    }
    return TN_(is_zero)(total);
}

/* clang-format off: it takes TN_UNROLL for a function */
static void TN_(transpose)(int64_t rows, int64_t cols, const void *from, int64_t from_row, void *to, int64_t to_row)
{
    enum { N = TN_(v_n) };
    for (int64_t i = 0; i < rows; i += N) {
        const TN_REAL *x = (const TN_REAL *)from + i * from_row;
        TN_REAL       *y = (TN_REAL *)to + i;
        int64_t        j = 0;
        for (; i + N <= rows && j + N <= cols; j += N) {
            TN_(v) v[N];
            TN_UNROLL for (int k = 0; k < N; k++) v[k] = TN_(v_load)(x + k * from_row + j);
            TN_(v_transpose)(v);
            TN_UNROLL for (int k = 0; k < N; k++) TN_(v_store)(y + (j + k) * to_row, v[k]);
        }
        for (; j < cols; j++)
            TN_(v_store)(y + j * to_row, TN_(load_some)(x + j, rows - i < N ? rows - i : N, from_row));
    }
}
/* clang-format on */

static bool TN_(store_scaled)(int64_t rows, int64_t n, const void *x, int64_t x_row, const void *factor, int64_t step,
                              void *to, int64_t to_row)
{
    enum { N = TN_(v_n) };
    const TN_REAL *f = factor;
    TN_(v) total = TN_(v_zero)();
    for (int64_t i = 0; i < rows; i++, f += step) {
        const TN_REAL *from = (const TN_REAL *)x + i * x_row;
        TN_REAL       *y = (TN_REAL *)to + i * to_row, part[N];
        const TN_(v) by = TN_(v_broadcast)(f);
        for (int64_t j = 0; j < n; j += N) {
            const TN_(v) v = TN_(v_load)(from + j) * by + TN_(v_zero)();
            total = TN_(v_fma)(v, TN_(v_zero)(), total);
            if (j + N <= n) {
                TN_(v_store)(y + j, v);
                continue;
            }
            TN_(v_store)(part, v);
            for (int64_t k = j; k < n; k++) y[k] = part[k - j];
        }
    }
    return TN_(is_zero)(total);
}

extern const tn__attention_kernels TN_FOR_ISA(TN_(tn__attention));

const tn__attention_kernels TN_FOR_ISA(TN_(tn__attention)) = {
    .softmax = TN_(softmax),
    .softmax_back = TN_(softmax_back),
    .scale_rows = TN_(scale_rows),
    .dot_columns = TN_(dot_columns),
    .pack = TN_(pack),
    .transpose = TN_(transpose),
    .store_scaled = TN_(store_scaled),
};

#endif
