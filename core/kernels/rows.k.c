/* rows.k.c — softmax's and the norms' rows, written once for f32 and f64. See rows.h.
 *
 * A row is taken 16 elements at a time, which are VECTORS vectors: EACH(n, …) runs its statements for each vector, with
 * `at` the first element, `some` how many there are (fewer than a vector only at the end) and `sum_at` the place of its
 * lanes in an array of WIDE vectors of f64. Sums stay in registers while whole vectors last. */
#ifndef TN_REAL
#include "core/kernels/kernels.h"
#include "core/base/bf16.h"
#include "core/tensor/random.h"
#include "core/kernels/philox.h"
#include "core/kernels/sum_lanes.h"

enum { WIDE = TN_LANES / v_n_f64 };

/* clang-format off: it takes TN_UNROLL for a function */
#define EACH(n, ...)                                                 \
    {                                                                \
        int64_t i_ = 0;                                              \
        for (; i_ + TN_LANES <= (n); i_ += TN_LANES) {               \
            TN_UNROLL for (int k_ = 0; k_ < VECTORS; k_++)           \
            {                                                        \
                const int64_t at = i_ + k_ * VN, some = VN;          \
                const int     sum_at = k_ * (WIDE / VECTORS);        \
                (void)sum_at;                                        \
                __VA_ARGS__                                          \
            }                                                        \
        }                                                            \
        for (int k_ = 0; i_ < (n); i_ += VN, k_++) {                 \
            const int64_t at = i_, some = (n)-i_ < VN ? (n)-i_ : VN; \
            const int     sum_at = k_ * (WIDE / VECTORS);            \
            (void)sum_at;                                            \
            __VA_ARGS__                                              \
        }                                                            \
    }
/* clang-format on */

/* What differs between f32 and f64: how a vector is widened, and its ends. */
TN_INLINE void add_f32(v_f64 *sum, v_f32 v) { sum[0] += v_lower(v), sum[1] += v_upper(v); }
TN_INLINE void add_f64(v_f64 *sum, v_f64 v) { sum[0] += v; }
TN_INLINE void add_product_f32(v_f64 *sum, v_f32 a, v_f32 b)
{
    sum[0] += v_lower(a) * v_lower(b), sum[1] += v_upper(a) * v_upper(b);
}
TN_INLINE void           add_product_f64(v_f64 *sum, v_f64 a, v_f64 b) { sum[0] += a * b; }
TN_INLINE v_f32          half_f32(const uint16_t *p) { return v_load_bf16(p); }
TN_INLINE v_f64          half_f64(const uint16_t *p) { return (void)p, v_zero_f64(); } /* there is no such call */
TN_INLINE v_f32          less_f32(v_f32 x, double by) { return v_join(v_lower(x) - by, v_upper(x) - by); }
TN_INLINE v_f64          less_f64(v_f64 x, double by) { return x - by; }
extern tn__philox_kernel TN_FOR_ISA(tn__philox);

#define TN_TEMPLATE "core/kernels/rows.k.c"
#include "core/real.h"

extern const tn__row_kernels_f32 TN_FOR_ISA(tn__rows_f32);
extern const tn__row_kernels_f64 TN_FOR_ISA(tn__rows_f64);
#define TABLE(T)                                                                                                  \
    {                                                                                                             \
        .scale = scale_##T, .softmax_back = softmax_back_##T, .minus = minus_##T,                                 \
        .log_softmax_back = log_softmax_back_##T, .norm = norm_##T, .norm_back = norm_back_##T, .drop = drop_##T, \
        .add_lines = add_lines_##T,                                                                               \
    }
const tn__row_kernels_f32 TN_FOR_ISA(tn__rows_f32) = TABLE(f32);
const tn__row_kernels_f64 TN_FOR_ISA(tn__rows_f64) = TABLE(f64);

#else /* ============================================================================== one number type */

enum { TN_(vn) = TN_(v_n), TN_(vectors) = TN_LANES / TN_(v_n) };
#define VN TN_(vn)
#define VECTORS TN_(vectors)
#define VECTOR TN_(v)
#define SUMS(s)    \
    v_f64 s[WIDE]; \
    for (int k_ = 0; k_ < WIDE; k_++) s[k_] = v_zero_f64();

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
TN_INLINE void TN_(store_past)(TN_REAL *p, int64_t some, VECTOR v, bool past)
{
    if (past && some == VN) TN_(v_past)(p, v);
    else TN_(store)(p, some, v);
}
TN_INLINE bool   TN_(aligned)(const TN_REAL *p) { return (uintptr_t)p % sizeof(VECTOR) == 0; }
TN_INLINE VECTOR TN_(first)(VECTOR v, int64_t some)
{
    TN_REAL whole[VN];
    if (some == VN) return v;
    TN_(v_store)(whole, v);
    return TN_(load)(whole, some);
}
TN_INLINE void TN_(add_to)(TN_REAL *to, int64_t some, VECTOR v) { TN_(store)(to, some, TN_(load)(to, some) + v); }

/* clang-format off: it takes EACH for a function of expressions */
static void TN_(scale)(int64_t n, TN_REAL *y, const TN_REAL *x, TN_REAL by)
{
    EACH(n, TN_(store)(y + at, some, TN_(load)(x + at, some) * by);)
}

/* |y| ≤ 1: a product is as good in TN_REAL. */
static void TN_(softmax_back)(int64_t n, TN_REAL *gx, const TN_REAL *y, const TN_REAL *gy)
{
    SUMS(sum)
    EACH(n, TN_(add)(sum + sum_at, TN_(load)(gy + at, some) * TN_(load)(y + at, some));)
    const TN_REAL dot = (TN_REAL)v_lanes_total(sum);
    EACH(n, v_fetch(y + at, n); v_fetch(gy + at, n);
         TN_(store)(gx + at, some, TN_(load)(y + at, some) * (TN_(load)(gy + at, some) - dot));)
}

static void TN_(minus)(int64_t n, TN_REAL *y, const TN_REAL *x, TN_REAL max, double log)
{
    EACH(n, TN_(store)(y + at, some, TN_(less)(TN_(load)(x + at, some) - max, log));)
}

static void TN_(log_softmax_back)(int64_t n, TN_REAL *gx, const TN_REAL *gy)
{
    SUMS(sum)
    EACH(n, TN_(add)(sum + sum_at, TN_(load)(gy + at, some));)
    const TN_REAL all = (TN_REAL)v_lanes_total(sum);
    EACH(n, TN_(store)(gx + at, some, TN_(load)(gy + at, some) - TN_(load)(gx + at, some) * all);)
}

static void TN_(norm)(int64_t n, TN_REAL *y, TN_REAL *stat, const TN_REAL *x, const TN_REAL *weight,
                      const TN_REAL *bias, double eps, bool rms, bool past)
{
    past = past && TN_(aligned)(y);
    TN_REAL m = 0, rest = 0;
    if (!rms) {
        SUMS(sum)
        EACH(n, TN_(add)(sum + sum_at, TN_(load)(x + at, some));)
        const double mean = v_lanes_total(sum) / (double)n;
        m = (TN_REAL)mean, rest = (TN_REAL)(mean - (double)m);
    }
    SUMS(squares)
    EACH(n, const VECTOR d = TN_(first)(TN_(load)(x + at, some) - m - rest, some);
         TN_(add_product)(squares + sum_at, d, d);)
    const TN_REAL r = (TN_REAL)(1 / sqrt(v_lanes_total(squares) / (double)n + eps));
    stat[0] = m, stat[1] = rest, stat[2] = r;
    EACH(n, VECTOR v = (TN_(load)(x + at, some) - m - rest) * r; v_fetch(x + at, n);
         if (weight) v = v * TN_(load)(weight + at, some); if (bias) v = v + TN_(load)(bias + at, some);
         TN_(store_past)(y + at, some, v, past);)
}

/* Eight terms of a lane are added in TN_REAL before they are widened. */
static void TN_(norm_back)(int64_t n, TN_REAL *gx, TN_REAL *gw, TN_REAL *gb, const TN_REAL *gy, const TN_REAL *x,
                           const TN_REAL *weight, const TN_REAL *stat, bool rms, bool past)
{
    past = past && TN_(aligned)(gx);
    const TN_REAL m = stat[0], rest = stat[1], r = stat[2];
    TN_REAL       mean = 0, slope = 0;
    if (gx) {
        SUMS(sum)
        SUMS(along)
        for (int64_t from = 0; from < n; from += 8 * TN_LANES) {
            const int64_t part = n - from < 8 * TN_LANES ? n - from : 8 * TN_LANES;
            VECTOR        s[VECTORS], a[VECTORS];
            for (int k = 0; k < VECTORS; k++) s[k] = a[k] = (VECTOR){0};
            EACH(part, VECTOR g = TN_(load)(gy + from + at, some); /* what is 0 at the end stays 0 */
                 if (weight) g = g * TN_(load)(weight + from + at, some); s[k_] += g;
                 a[k_] += g * ((TN_(load)(x + from + at, some) - m - rest) * r);)
            for (int k = 0; k < VECTORS; k++) {
                TN_(add)(sum + k * (WIDE / VECTORS), s[k]);
                TN_(add)(along + k * (WIDE / VECTORS), a[k]);
            }
        }
        if (!rms) mean = (TN_REAL)(v_lanes_total(sum) / (double)n);
        slope = (TN_REAL)(v_lanes_total(along) / (double)n);
    }
    EACH(
        n, VECTOR g = TN_(load)(gy + at, some), normed = g; v_fetch(gy + at, n); v_fetch(x + at, n);
        if (gb) TN_(add_to)(gb + at, some, g); if (gx || gw) normed = (TN_(load)(x + at, some) - m - rest) * r;
        if (gw) TN_(add_to)(gw + at, some, g * normed); if (gx) {
            if (weight) g = g * TN_(load)(weight + at, some);
            TN_(store_past)(gx + at, some, (g - mean - normed * slope) * r, past);
        })
}
/* clang-format on */

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
            const VECTOR v = bf16 ? TN_(half)(from) : TN_(v_load)(from);
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

/* As many words as a few vectors of f32 have elements; rows and blocks of four words seldom begin together. */
#define DROP(count)                                                  \
    for (int64_t k = 0; k < (count); k++) {                          \
        const TN_REAL all = x[i + k] * scale; /* read in any case */ \
        y[i + k] = w[k] > limit ? all : 0;                           \
    }                                                                \
    if (add)                                                         \
        for (int64_t k = 0; k < (count); k++) y[i + k] += add[i + k];

#define SEND(count)                                                     \
    if (y_past) memcpy(y_past + i, y + i, (size_t)(count) * sizeof *y); \
    if (x_past) memcpy(x_past + i, x + i, (size_t)(count) * sizeof *x);

/* What is stored past the caches goes as it is made: between random numbers, memory has time for it. */
TN_INLINE void TN_(send)(TN_REAL *to, const TN_REAL *from)
{
    const bool past = TN_(aligned)(to);
    for (int64_t i = 0; i < PHILOX_WORDS; i += VN) TN_(store_past)(to + i, VN, TN_(v_load)(from + i), past);
}

static void TN_(drop)(int64_t            n, TN_REAL *restrict y, const TN_REAL *restrict x, const TN_REAL *restrict add,
                      const tn__dropped *d, int64_t first, TN_REAL *y_past, TN_REAL *x_past)
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
        DROP(head)
    }
    i = 0;
    SEND(head)
    for (i = head; i + PHILOX_WORDS <= n; i += PHILOX_WORDS, position += PHILOX_BLOCKS) {
        for (int64_t k = 0; k < PHILOX_WORDS; k += 64 / (int64_t)sizeof *x) v_fetch(x + i + k, 512);
        v_philox(d->seed, position, w);
        DROP(PHILOX_WORDS)
        if (y_past) TN_(send)(y_past + i, y + i);
        if (x_past) TN_(send)(x_past + i, x + i);
    }
    if (i < n) {
        TN_FOR_ISA(tn__philox)(d->seed, position, (n - i + 3) / 4, w);
        DROP(n - i)
        SEND(n - i)
    }
}
#undef SEND
#undef DROP

#undef VN
#undef VECTORS
#undef VECTOR
#undef SUMS
#endif
