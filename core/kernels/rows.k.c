/* rows.k.c — softmax's and the norms' rows, written once for f32 and f64. See rows.h.
 *
 * A row is taken 16 elements at a time, which are VECTORS vectors. What is done to one vector is an inline function,
 * a step; EACH_VECTOR(n, step, arguments …) calls step(at, some, k, arguments …) for each vector: `at` is its first
 * element, `some` how many it has (fewer than a vector only at the end of the row), k its number among the 16 elements.
 * Sums stay in registers while whole vectors last. */
#ifndef TN_REAL
#include "core/kernels/kernels.h"
#include "core/base/bf16.h"
#include "core/kernels/philox.h"
#include "core/kernels/sum_lanes.h"

enum { WIDE = TN_LANES / v_n_f64 }; /* vectors of f64 that hold the 16 lanes of a sum */

/* clang-format off: it takes TN_UNROLL for a function */
#define EACH_VECTOR(n, step, ...)                                                                        \
    do {                                                                                                 \
        int64_t i_ = 0;                                                                                  \
        for (; i_ + TN_LANES <= (n); i_ += TN_LANES)                                                     \
            TN_UNROLL for (int k_ = 0; k_ < VECTORS; k_++) step(i_ + k_ * VN, VN, k_, __VA_ARGS__);      \
        for (int k_ = 0; i_ < (n); i_ += VN, k_++) step(i_, (n)-i_ < VN ? (n)-i_ : VN, k_, __VA_ARGS__); \
    } while (0)
/* clang-format on */

/* What differs between f32 and f64: how a vector is widened, and its ends. */
TN_INLINE void add_f32(v_f64 *sum, v_f32 v) { sum[0] += v_lower(v), sum[1] += v_upper(v); }
TN_INLINE void add_f64(v_f64 *sum, v_f64 v) { sum[0] += v; }
TN_INLINE void add_product_f32(v_f64 *sum, v_f32 a, v_f32 b)
{
    sum[0] += v_lower(a) * v_lower(b), sum[1] += v_upper(a) * v_upper(b);
}
TN_INLINE void           add_product_f64(v_f64 *sum, v_f64 a, v_f64 b) { sum[0] += a * b; }
TN_INLINE v_f32          load_bf16_f32(const uint16_t *p) { return v_load_bf16(p); }
TN_INLINE v_f64          load_bf16_f64(const uint16_t *p) { return (void)p, v_zero_f64(); } /* there is no such call */
TN_INLINE v_f32          subtract_f32(v_f32 x, double by) { return v_join(v_lower(x) - by, v_upper(x) - by); }
TN_INLINE v_f64          subtract_f64(v_f64 x, double by) { return x - by; }
extern tn__philox_kernel TN_FOR_ISA(tn__philox);

TN_INLINE void zero_sums(v_f64 sum[WIDE])
{
    for (int k = 0; k < WIDE; k++) sum[k] = v_zero_f64();
}

#define TN_TEMPLATE "core/kernels/rows.k.c"
#include "core/real.h"

extern const tn__row_kernels_f32 TN_FOR_ISA(tn__rows_f32);
extern const tn__row_kernels_f64 TN_FOR_ISA(tn__rows_f64);
#define TABLE(T)                                                                                \
    {                                                                                           \
        .scale = scale_##T, .softmax_back = softmax_back_##T, .log_softmax = log_softmax_##T,   \
        .log_softmax_back = log_softmax_back_##T, .norm = norm_##T, .norm_back = norm_back_##T, \
        .dropout = dropout_##T, .add_lines = add_lines_##T,                                     \
    }
const tn__row_kernels_f32 TN_FOR_ISA(tn__rows_f32) = TABLE(f32);
const tn__row_kernels_f64 TN_FOR_ISA(tn__rows_f64) = TABLE(f64);

#else /* ============================================================================== one number type */

enum { TN_(vn) = TN_(v_n), TN_(vectors) = TN_LANES / TN_(v_n) };
#define VN TN_(vn)
#define VECTORS TN_(vectors)
#define VECTOR TN_(v)
#define SUM_AT(k) ((k) * (WIDE / VECTORS)) /* where the lanes of vector k stand in a sum of WIDE vectors */

/* The first `some` elements; the others are 0 and not read, or not written. */
TN_INLINE VECTOR TN_(load)(const TN_REAL *p, int64_t some)
{
    TN_REAL whole[VN] = {0};
    if (some == VN) return TN_(v_load)(p);
    for (int64_t i = 0; i < some; i++) whole[i] = p[i];
    return TN_(v_load)(whole);
}
TN_INLINE void TN_(store)(TN_REAL *p, int64_t some, VECTOR v)
{
    TN_REAL whole[VN];
    if (some == VN) {
        TN_(v_store)(p, v);
        return;
    }
    TN_(v_store)(whole, v);
    for (int64_t i = 0; i < some; i++) p[i] = whole[i];
}
TN_INLINE void TN_(store_stream)(TN_REAL *p, int64_t some, VECTOR v, bool stream)
{
    if (stream && some == VN) TN_(v_stream)(p, v);
    else TN_(store)(p, some, v);
}
TN_INLINE bool   TN_(aligned)(const TN_REAL *p) { return (uintptr_t)p % sizeof(VECTOR) == 0; }
TN_INLINE VECTOR TN_(keep_first)(VECTOR v, int64_t some)
{
    TN_REAL whole[VN];
    if (some == VN) return v;
    TN_(v_store)(whole, v);
    return TN_(load)(whole, some);
}
TN_INLINE void TN_(add_to)(TN_REAL *to, int64_t some, VECTOR v) { TN_(store)(to, some, TN_(load)(to, some) + v); }

/* y = by · x */
TN_INLINE void TN_(scale_step)(int64_t at, int64_t some, int k, TN_REAL *y, const TN_REAL *x, TN_REAL by)
{
    (void)k;
    TN_(store)(y + at, some, TN_(load)(x + at, some) * by);
}
static void TN_(scale)(int64_t n, TN_REAL *y, const TN_REAL *x, TN_REAL by)
{
    EACH_VECTOR(n, TN_(scale_step), y, x, by);
}

/* ---- softmax ------------------------------------------------------------------------------------------------------
 * */

TN_INLINE void TN_(sum_step)(int64_t at, int64_t some, int k, v_f64 *sum, const TN_REAL *x)
{
    TN_(add)(sum + SUM_AT(k), TN_(load)(x + at, some));
}
/* |y| ≤ 1: a product is as good in TN_REAL. */
TN_INLINE void TN_(sum_products_step)(int64_t at, int64_t some, int k, v_f64 *sum, const TN_REAL *x, const TN_REAL *y)
{
    TN_(add)(sum + SUM_AT(k), TN_(load)(x + at, some) * TN_(load)(y + at, some));
}
TN_INLINE void TN_(softmax_back_step)(int64_t at, int64_t some, int k, int64_t n, TN_REAL *gx, const TN_REAL *y,
                                      const TN_REAL *gy, TN_REAL dot)
{
    (void)k;
    v_prefetch(y + at, n), v_prefetch(gy + at, n); /* the next row */
    TN_(store)(gx + at, some, TN_(load)(y + at, some) * (TN_(load)(gy + at, some) - dot));
}
static void TN_(softmax_back)(int64_t n, TN_REAL *gx, const TN_REAL *y, const TN_REAL *gy)
{
    v_f64 sum[WIDE];
    zero_sums(sum);
    EACH_VECTOR(n, TN_(sum_products_step), sum, gy, y);
    const TN_REAL dot = (TN_REAL)v_lanes_total(sum);
    EACH_VECTOR(n, TN_(softmax_back_step), n, gx, y, gy, dot);
}

TN_INLINE void TN_(log_softmax_step)(int64_t at, int64_t some, int k, TN_REAL *y, const TN_REAL *x, TN_REAL max,
                                     double log)
{
    (void)k;
    TN_(store)(y + at, some, TN_(subtract)(TN_(load)(x + at, some) - max, log));
}
static void TN_(log_softmax)(int64_t n, TN_REAL *y, const TN_REAL *x, TN_REAL max, double log)
{
    EACH_VECTOR(n, TN_(log_softmax_step), y, x, max, log);
}

TN_INLINE void TN_(log_softmax_back_step)(int64_t at, int64_t some, int k, TN_REAL *gx, const TN_REAL *gy, TN_REAL all)
{
    (void)k;
    TN_(store)(gx + at, some, TN_(load)(gy + at, some) - TN_(load)(gx + at, some) * all);
}
static void TN_(log_softmax_back)(int64_t n, TN_REAL *gx, const TN_REAL *gy)
{
    v_f64 sum[WIDE];
    zero_sums(sum);
    EACH_VECTOR(n, TN_(sum_step), sum, gy);
    const TN_REAL all = (TN_REAL)v_lanes_total(sum);
    EACH_VECTOR(n, TN_(log_softmax_back_step), gx, gy, all);
}

/* ---- norms --------------------------------------------------------------------------------------------------------
 * */

/* A row's statistics: its mean in two numbers, and r = 1 / √(variance + eps). */
typedef struct {
    TN_REAL mean, rest, r;
} TN_(moments);

TN_INLINE VECTOR TN_(centred)(const TN_REAL *x, int64_t some, TN_REAL mean, TN_REAL rest)
{
    return TN_(load)(x, some) - mean - rest;
}
TN_INLINE void TN_(squares_step)(int64_t at, int64_t some, int k, v_f64 *squares, const TN_REAL *x, TN_REAL mean,
                                 TN_REAL rest)
{
    const VECTOR d = TN_(keep_first)(TN_(centred)(x + at, some, mean, rest), some);
    TN_(add_product)(squares + SUM_AT(k), d, d);
}
TN_INLINE void TN_(norm_step)(int64_t at, int64_t some, int k, int64_t n, const TN_(tn__norm_row) * a, TN_(moments) m,
                              bool stream)
{
    (void)k;
    VECTOR v = TN_(centred)(a->x + at, some, m.mean, m.rest) * m.r;
    v_prefetch(a->x + at, n); /* the next row */
    if (a->weight) v = v * TN_(load)(a->weight + at, some);
    if (a->bias) v = v + TN_(load)(a->bias + at, some);
    TN_(store_stream)(a->y + at, some, v, stream);
}
static void TN_(norm)(int64_t n, const TN_(tn__norm_row) * row)
{
    const TN_(tn__norm_row) a = *row;
    const bool stream = a.stream && TN_(aligned)(a.y);
    v_f64      sum[WIDE], squares[WIDE];
    TN_(moments) m = {0, 0, 0};
    if (!a.rms) {
        zero_sums(sum);
        EACH_VECTOR(n, TN_(sum_step), sum, a.x);
        const double mean = v_lanes_total(sum) / (double)n;
        m.mean = (TN_REAL)mean, m.rest = (TN_REAL)(mean - (double)m.mean);
    }
    zero_sums(squares);
    EACH_VECTOR(n, TN_(squares_step), squares, a.x, m.mean, m.rest);
    m.r = (TN_REAL)(1 / sqrt(v_lanes_total(squares) / (double)n + a.eps));
    a.stat[0] = m.mean, a.stat[1] = m.rest, a.stat[2] = m.r;
    EACH_VECTOR(n, TN_(norm_step), n, &a, m, stream);
}

/* The sums of g and of g · x̂ over a piece of a row, from element `from` on. What is 0 at the end stays 0. */
TN_INLINE void TN_(norm_sums_step)(int64_t at, int64_t some, int k, int64_t from, const TN_(tn__norm_back_row) * a,
                                   TN_(moments) m, VECTOR *g_sum, VECTOR *along_sum)
{
    VECTOR g = TN_(load)(a->gy + from + at, some);
    if (a->weight) g = g * TN_(load)(a->weight + from + at, some);
    g_sum[k] += g;
    along_sum[k] += g * (TN_(centred)(a->x + from + at, some, m.mean, m.rest) * m.r);
}
TN_INLINE void TN_(norm_back_step)(int64_t at, int64_t some, int k, int64_t n, const TN_(tn__norm_back_row) * a,
                                   TN_(moments) m, TN_REAL mean_g, TN_REAL mean_along, bool stream)
{
    (void)k;
    VECTOR g = TN_(load)(a->gy + at, some), normed = g;
    v_prefetch(a->gy + at, n), v_prefetch(a->x + at, n); /* the next row */
    if (a->gb) TN_(add_to)(a->gb + at, some, g);
    if (a->gx || a->gw) normed = TN_(centred)(a->x + at, some, m.mean, m.rest) * m.r;
    if (a->gw) TN_(add_to)(a->gw + at, some, g * normed);
    if (!a->gx) return;
    if (a->weight) g = g * TN_(load)(a->weight + at, some);
    TN_(store_stream)(a->gx + at, some, (g - mean_g - normed * mean_along) * m.r, stream);
}
static void TN_(norm_back)(int64_t n, const TN_(tn__norm_back_row) * row)
{
    enum { PIECE = 8 * TN_LANES }; /* eight terms of a lane are added in TN_REAL before they are widened */
    const TN_(tn__norm_back_row) a = *row;
    const bool stream = a.stream && TN_(aligned)(a.gx);
    const TN_(moments) m = {a.stat[0], a.stat[1], a.stat[2]};
    TN_REAL mean_g = 0, mean_along = 0;
    if (a.gx) {
        v_f64 sum[WIDE], along[WIDE];
        zero_sums(sum), zero_sums(along);
        for (int64_t from = 0; from < n; from += PIECE) {
            const int64_t part = n - from < PIECE ? n - from : PIECE;
            VECTOR        g_sum[VECTORS], along_sum[VECTORS];
            for (int k = 0; k < VECTORS; k++) g_sum[k] = along_sum[k] = (VECTOR){0};
            EACH_VECTOR(part, TN_(norm_sums_step), from, &a, m, g_sum, along_sum);
            for (int k = 0; k < VECTORS; k++) {
                TN_(add)(sum + SUM_AT(k), g_sum[k]);
                TN_(add)(along + SUM_AT(k), along_sum[k]);
            }
        }
        if (!a.rms) mean_g = (TN_REAL)(v_lanes_total(sum) / (double)n);
        mean_along = (TN_REAL)(v_lanes_total(along) / (double)n);
    }
    EACH_VECTOR(n, TN_(norm_back_step), n, &a, m, mean_g, mean_along, stream);
}

/* ---- sums over lines, dropout -------------------------------------------------------------------------------------
 * */

static void TN_(add_lines)(int64_t n, int64_t at, int64_t count, const void *x, int64_t step, bool bf16, double *sum,
                           int64_t width)
{
    enum { N = v_n_f64, AHEAD = 8 }; /* lines far apart, which no prefetcher sees coming */
    bf16 = bf16 && sizeof(TN_REAL) == sizeof(float);
    const int64_t size = bf16 ? 2 : (int64_t)sizeof(TN_REAL);
    const char   *line = x;
    for (int64_t i = 0; i < n; i++, line += step * size) {
        double *to = sum + (at + i) % TN_LANES * width;
        int64_t k = 0;
        for (int64_t b = 0; i + AHEAD < n && b < count * size; b += 64)
            __builtin_prefetch(line + AHEAD * step * size + b);
        for (; k + VN <= count; k += VN) {
            const void  *from = line + k * size;
            const VECTOR v = bf16 ? TN_(load_bf16)(from) : TN_(v_load)(from);
            v_f64        s[VN / N];
            for (int j = 0; j < VN / N; j++) s[j] = v_load_f64(to + k + j * N);
            TN_(add)(s, v);
            for (int j = 0; j < VN / N; j++) v_store_f64(to + k + j * N, s[j]);
        }
        for (; k < count; k++)
            to[k] += bf16 ? (double)tn__bf16_to_f32(((const uint16_t *)(const void *)line)[k])
                          : (double)((const TN_REAL *)(const void *)line)[k];
    }
}

/* y = x · scale where the word is above the limit, else 0; plus add, which may be NULL. x is read in any case, so that
 * a compiler can use vectors. */
TN_INLINE void TN_(drop_words)(int64_t n, TN_REAL *restrict y, const TN_REAL *restrict x, const TN_REAL *restrict add,
                               const uint32_t *word, uint32_t limit, TN_REAL scale)
{
    for (int64_t k = 0; k < n; k++) {
        const TN_REAL all = x[k] * scale;
        y[k] = word[k] > limit ? all : 0;
    }
    if (add)
        for (int64_t k = 0; k < n; k++) y[k] += add[k];
}

/* PHILOX_WORDS numbers by non-temporal stores, as soon as they are made: while random numbers are computed, memory has
 * time to take them. */
TN_INLINE void TN_(stream_words)(TN_REAL *to, const TN_REAL *from)
{
    const bool stream = TN_(aligned)(to);
    for (int64_t i = 0; i < PHILOX_WORDS; i += VN) TN_(store_stream)(to + i, VN, TN_(v_load)(from + i), stream);
}
TN_INLINE void TN_(copy_if)(TN_REAL *to, const TN_REAL *from, int64_t at, int64_t n)
{
    if (to) memcpy(to + at, from + at, (size_t)n * sizeof *to);
}

/* As many words at a time as a few vectors of f32 have elements. A row seldom begins with a block of four words: its
 * head is done by itself. */
static void TN_(dropout)(int64_t n, TN_REAL *restrict y, const TN_REAL *restrict x, const TN_REAL *restrict add,
                         const tn__dropped *d, int64_t first, TN_REAL *y_stream, TN_REAL *x_stream)
{
    const TN_REAL  scale = (TN_REAL)d->scale;
    const uint32_t limit = d->limit;
    int64_t        head = d->all ? n : -first & 3, i = 0;
    uint64_t       position = d->position + (uint64_t)(first / 4);
    uint32_t       whole[4], w[PHILOX_WORDS];
    if (head > n) head = n;
    if (d->all) {
        for (; i < n; i++) y[i] = add ? add[i] + x[i] : x[i];
    } else if (head) {
        TN_FOR_ISA(tn__philox)(d->seed, position++, 1, whole);
        memcpy(w, whole + (first & 3), (size_t)head * sizeof *w);
        TN_(drop_words)(head, y, x, add, w, limit, scale);
    }
    TN_(copy_if)(y_stream, y, 0, head), TN_(copy_if)(x_stream, x, 0, head);
    for (i = head; i + PHILOX_WORDS <= n; i += PHILOX_WORDS, position += PHILOX_BLOCKS) {
        for (int64_t k = 0; k < PHILOX_WORDS; k += 64 / (int64_t)sizeof *x) v_prefetch(x + i + k, 512);
        v_philox(d->seed, position, w);
        TN_(drop_words)(PHILOX_WORDS, y + i, x + i, add ? add + i : NULL, w, limit, scale);
        if (y_stream) TN_(stream_words)(y_stream + i, y + i);
        if (x_stream) TN_(stream_words)(x_stream + i, x + i);
    }
    if (i < n) {
        TN_FOR_ISA(tn__philox)(d->seed, position, (n - i + 3) / 4, w);
        TN_(drop_words)(n - i, y + i, x + i, add ? add + i : NULL, w, limit, scale);
        TN_(copy_if)(y_stream, y, i, n - i), TN_(copy_if)(x_stream, x, i, n - i);
    }
}

#undef VN
#undef VECTORS
#undef VECTOR
#undef SUM_AT
#endif
