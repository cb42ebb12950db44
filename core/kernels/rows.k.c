/* rows.k.c — the rows of softmax and norms, written once for f32 and f64. See rows.h.
 *
 * A row is processed 16 elements at a time, which are VECTORS vectors. The work on one vector is an inline function, a
 * step; EACH_VECTOR(n, step, arguments …) calls step(at, some, k, arguments …) for each vector: `at` is its first
 * element, `some` its number of elements (fewer than a vector only at the end of the row), k its index among the 16
 * elements. Sums stay in registers while whole vectors last. */
#ifndef TN__REAL
#include "core/kernels/kernels.h"
#include "core/base/bf16.h"
#include "core/base/checked.h"
#include "core/kernels/philox.h"
#include "core/kernels/sum_lanes.h"

enum { WIDE = TN__LANES / v_n_f64 };   /* vectors of f64 that hold the 16 lanes of a sum */
enum { DROP_STEP = 2 * PHILOX_WORDS }; /* elements that dropout processes at a time */

/* clang-format off: it takes TN__UNROLL for a function */
#define EACH_VECTOR(n, step, ...)                                                                        \
    do {                                                                                                 \
        int64_t i_ = 0;                                                                                  \
        for (; i_ + TN__LANES <= (n); i_ += TN__LANES)                                                   \
            TN__UNROLL for (int k_ = 0; k_ < VECTORS; k_++) step(i_ + k_ * VN, VN, k_, __VA_ARGS__);     \
        for (int k_ = 0; i_ < (n); i_ += VN, k_++) step(i_, (n)-i_ < VN ? (n)-i_ : VN, k_, __VA_ARGS__); \
    } while (0)
/* clang-format on */

/* The differences between f32 and f64: how a vector is widened, and its ends. */
TN__INLINE void add_f32(v_f64 *sum, v_f32 v) { sum[0] += v_lower(v), sum[1] += v_upper(v); }
TN__INLINE void add_f64(v_f64 *sum, v_f64 v) { sum[0] += v; }
TN__INLINE void add_product_f32(v_f64 *sum, v_f32 a, v_f32 b)
{
    sum[0] += v_lower(a) * v_lower(b), sum[1] += v_upper(a) * v_upper(b);
}
TN__INLINE void  add_product_f64(v_f64 *sum, v_f64 a, v_f64 b) { sum[0] += a * b; }
TN__INLINE v_f32 load_bf16_f32(const uint16_t *p) { return v_load_bf16(p); }
TN__INLINE v_f64 load_bf16_f64(const uint16_t *p) { return (void)p, v_zero_f64(); } /* never called */
TN__INLINE v_f32 subtract_f32(v_f32 x, double by) { return v_join(v_lower(x) - by, v_upper(x) - by); }
TN__INLINE v_f64 subtract_f64(v_f64 x, double by) { return x - by; }

/* drop_some of whole groups: from + at is a multiple of a group. In f32: whole vectors. */
TN__INLINE void drop_some_f64(int64_t at, int64_t end, double *restrict y, const double *restrict x,
                              const double *restrict add, const uint32_t *word, int64_t from, uint32_t limit,
                              double scale);
TN__INLINE void drop_groups_f64(int64_t at, int64_t end, double *restrict y, const double *restrict x,
                                const double *restrict add, const uint32_t *word, int64_t from, uint32_t limit,
                                double scale)
{
    drop_some_f64(at, end, y, x, add, word, from, limit, scale);
}
TN__INLINE void drop_groups_f32(int64_t at, int64_t end, float *restrict y, const float *restrict x,
                                const float *restrict add, const uint32_t *word, int64_t from, uint32_t limit,
                                float scale)
{
    enum { VECTORS = TN__DROP_GROUP / v_n_f32 };
    for (int64_t i = at; i < end; i += TN__DROP_GROUP)
        for (int k = 0; k < VECTORS; k++) {
            const int64_t e = i + k * v_n_f32;
            const v_u32   kept = (v_u32)(v_halves(word + (from + i) / 2, k) > limit);
            const v_f32   all = v_load_f32(x + e) * scale;
            v_f32         some = v_float(v_bits(all) & kept);
            if (add) some = some + v_load_f32(add + e);
            v_store_f32(y + e, some);
        }
}

TN__INLINE void zero_sums(v_f64 sum[WIDE])
{
    for (int k = 0; k < WIDE; k++) sum[k] = v_zero_f64();
}

#define TN__TEMPLATE "core/kernels/rows.k.c"
#include "core/real.h"

extern const tn__row_kernels_f32 TN__FOR_ISA(tn__rows_f32);
extern const tn__row_kernels_f64 TN__FOR_ISA(tn__rows_f64);
#define TABLE(T)                                                                                \
    {                                                                                           \
        .scale = scale_##T, .softmax_back = softmax_back_##T, .log_softmax = log_softmax_##T,   \
        .log_softmax_back = log_softmax_back_##T, .norm = norm_##T, .norm_back = norm_back_##T, \
        .dropout = dropout_##T, .add_lines = add_lines_##T,                                     \
    }
const tn__row_kernels_f32 TN__FOR_ISA(tn__rows_f32) = TABLE(f32);
const tn__row_kernels_f64 TN__FOR_ISA(tn__rows_f64) = TABLE(f64);

#else /* ===================================================================================== one dtype */

enum { TN__(vn) = TN__(v_n), TN__(vectors) = TN__LANES / TN__(v_n) };
#define VN TN__(vn)
#define VECTORS TN__(vectors)
#define VECTOR TN__(v)
#define SUM_AT(k) ((k) * (WIDE / VECTORS)) /* position of the lanes of vector k in a sum of WIDE vectors */

/* The first `some` elements; the others are 0 when loaded, and not stored. */
TN__INLINE VECTOR TN__(load)(const TN__REAL *p, int64_t some)
{
    TN__REAL whole[VN] = {0};
    if (some == VN) return TN__(v_load)(p);
    for (int64_t i = 0; i < some; i++) whole[i] = p[i];
    return TN__(v_load)(whole);
}
TN__INLINE void TN__(store)(TN__REAL *p, int64_t some, VECTOR v)
{
    TN__REAL whole[VN];
    if (some == VN) {
        TN__(v_store)(p, v);
        return;
    }
    TN__(v_store)(whole, v);
    for (int64_t i = 0; i < some; i++) p[i] = whole[i];
}
TN__INLINE void TN__(store_stream)(TN__REAL *p, int64_t some, VECTOR v, bool stream)
{
    if (stream && some == VN) TN__(v_stream)(p, v);
    else TN__(store)(p, some, v);
}
TN__INLINE bool   TN__(aligned)(const TN__REAL *p) { return (uintptr_t)p % sizeof(VECTOR) == 0; }
TN__INLINE VECTOR TN__(keep_first)(VECTOR v, int64_t some)
{
    TN__REAL whole[VN];
    if (some == VN) return v;
    TN__(v_store)(whole, v);
    return TN__(load)(whole, some);
}
TN__INLINE void TN__(add_to)(TN__REAL *to, int64_t some, VECTOR v) { TN__(store)(to, some, TN__(load)(to, some) + v); }

/* y = by · x */
TN__INLINE void TN__(scale_step)(int64_t at, int64_t some, int k, TN__REAL *y, const TN__REAL *x, TN__REAL by)
{
    (void)k;
    TN__(store)(y + at, some, TN__(load)(x + at, some) * by);
}
static void TN__(scale)(int64_t n, TN__REAL *y, const TN__REAL *x, TN__REAL by)
{
    EACH_VECTOR(n, TN__(scale_step), y, x, by);
}

/* ---- softmax ----------------------------------------------------------------------------------------------------- */

TN__INLINE void TN__(sum_step)(int64_t at, int64_t some, int k, v_f64 *sum, const TN__REAL *x)
{
    TN__(add)(sum + SUM_AT(k), TN__(load)(x + at, some));
}
/* y| ≤ 1: a product in TN__REAL is precise enough. */
TN__INLINE void TN__(sum_products_step)(int64_t at, int64_t some, int k, v_f64 *sum, const TN__REAL *x,
                                        const TN__REAL *y)
{
    TN__(add)(sum + SUM_AT(k), TN__(load)(x + at, some) * TN__(load)(y + at, some));
}
TN__INLINE void TN__(softmax_back_step)(int64_t at, int64_t some, int k, int64_t n, TN__REAL *gx, const TN__REAL *y,
                                        const TN__REAL *gy, TN__REAL dot)
{
    (void)k;
    v_prefetch(y + at, n), v_prefetch(gy + at, n); /* the next row */
    TN__(store)(gx + at, some, TN__(load)(y + at, some) * (TN__(load)(gy + at, some) - dot));
}
static void TN__(softmax_back)(int64_t n, TN__REAL *gx, const TN__REAL *y, const TN__REAL *gy)
{
    v_f64 sum[WIDE];
    zero_sums(sum);
    EACH_VECTOR(n, TN__(sum_products_step), sum, gy, y);
    const TN__REAL dot = (TN__REAL)v_lanes_total(sum);
    EACH_VECTOR(n, TN__(softmax_back_step), n, gx, y, gy, dot);
}

TN__INLINE void TN__(log_softmax_step)(int64_t at, int64_t some, int k, TN__REAL *y, const TN__REAL *x, TN__REAL max,
                                       double log)
{
    (void)k;
    TN__(store)(y + at, some, TN__(subtract)(TN__(load)(x + at, some) - max, log));
}
static void TN__(log_softmax)(int64_t n, TN__REAL *y, const TN__REAL *x, TN__REAL max, double log)
{
    EACH_VECTOR(n, TN__(log_softmax_step), y, x, max, log);
}

TN__INLINE void TN__(log_softmax_back_step)(int64_t at, int64_t some, int k, TN__REAL *gx, const TN__REAL *gy,
                                            TN__REAL all)
{
    (void)k;
    TN__(store)(gx + at, some, TN__(load)(gy + at, some) - TN__(load)(gx + at, some) * all);
}
static void TN__(log_softmax_back)(int64_t n, TN__REAL *gx, const TN__REAL *gy)
{
    v_f64 sum[WIDE];
    zero_sums(sum);
    EACH_VECTOR(n, TN__(sum_step), sum, gy);
    const TN__REAL all = (TN__REAL)v_lanes_total(sum);
    EACH_VECTOR(n, TN__(log_softmax_back_step), gx, gy, all);
}

/* ---- norms ------------------------------------------------------------------------------------------------------- */

/* A row's statistics: its mean in two numbers, and r = 1 / √(variance + eps). */
typedef struct {
    TN__REAL mean, rest, r;
} TN__(moments);

TN__INLINE VECTOR TN__(centred)(const TN__REAL *x, int64_t some, TN__REAL mean, TN__REAL rest)
{
    return TN__(load)(x, some) - mean - rest;
}
TN__INLINE void TN__(squares_step)(int64_t at, int64_t some, int k, v_f64 *squares, const TN__REAL *x, TN__REAL mean,
                                   TN__REAL rest)
{
    const VECTOR d = TN__(keep_first)(TN__(centred)(x + at, some, mean, rest), some);
    TN__(add_product)(squares + SUM_AT(k), d, d);
}
TN__INLINE void TN__(norm_step)(int64_t at, int64_t some, int k, int64_t n, const TN__(tn__norm_row) * a,
                                TN__(moments) m, bool stream)
{
    (void)k;
    VECTOR v = TN__(centred)(a->x + at, some, m.mean, m.rest) * m.r;
    v_prefetch(a->x + at, n); /* the next row */
    if (a->weight) v = v * TN__(load)(a->weight + at, some);
    if (a->bias) v = v + TN__(load)(a->bias + at, some);
    TN__(store_stream)(a->y + at, some, v, stream);
}
static void TN__(norm)(int64_t n, const TN__(tn__norm_row) * row)
{
    const TN__(tn__norm_row) a = *row;
    const bool stream = a.stream && TN__(aligned)(a.y);
    v_f64      sum[WIDE], squares[WIDE];
    TN__(moments) m = {0, 0, 0};
    if (!a.rms) {
        zero_sums(sum);
        EACH_VECTOR(n, TN__(sum_step), sum, a.x);
        const double mean = v_lanes_total(sum) / (double)n;
        m.mean = (TN__REAL)mean, m.rest = (TN__REAL)(mean - (double)m.mean);
    }
    zero_sums(squares);
    EACH_VECTOR(n, TN__(squares_step), squares, a.x, m.mean, m.rest);
    m.r = (TN__REAL)(1 / sqrt(v_lanes_total(squares) / (double)n + a.eps));
    a.stat[0] = m.mean, a.stat[1] = m.rest, a.stat[2] = m.r;
    EACH_VECTOR(n, TN__(norm_step), n, &a, m, stream);
}

/* The sums of g and of g · x̂ over a part of a row, starting at element `from`. Zeros at the end stay 0. */
TN__INLINE void TN__(norm_sums_step)(int64_t at, int64_t some, int k, int64_t from, const TN__(tn__norm_back_row) * a,
                                     TN__(moments) m, VECTOR *g_sum, VECTOR *along_sum)
{
    VECTOR g = TN__(load)(a->gy + from + at, some);
    if (a->weight) g = g * TN__(load)(a->weight + from + at, some);
    g_sum[k] += g;
    along_sum[k] += g * (TN__(centred)(a->x + from + at, some, m.mean, m.rest) * m.r);
}
TN__INLINE void TN__(norm_back_step)(int64_t at, int64_t some, int k, int64_t n, const TN__(tn__norm_back_row) * a,
                                     TN__(moments) m, TN__REAL mean_g, TN__REAL mean_along, bool stream)
{
    (void)k;
    VECTOR g = TN__(load)(a->gy + at, some), normed = g;
    v_prefetch(a->gy + at, n), v_prefetch(a->x + at, n); /* the next row */
    if (a->gb) TN__(add_to)(a->gb + at, some, g);
    if (a->gx || a->gw) normed = TN__(centred)(a->x + at, some, m.mean, m.rest) * m.r;
    if (a->gw) TN__(add_to)(a->gw + at, some, g * normed);
    if (!a->gx) return;
    if (a->weight) g = g * TN__(load)(a->weight + at, some);
    TN__(store_stream)(a->gx + at, some, (g - mean_g - normed * mean_along) * m.r, stream);
}
static void TN__(norm_back)(int64_t n, const TN__(tn__norm_back_row) * row)
{
    enum { PIECE = 8 * TN__LANES }; /* eight terms of a lane are added in TN__REAL before they are widened */
    const TN__(tn__norm_back_row) a = *row;
    const bool stream = a.stream && TN__(aligned)(a.gx);
    const TN__(moments) m = {a.stat[0], a.stat[1], a.stat[2]};
    TN__REAL mean_g = 0, mean_along = 0;
    if (a.gx) {
        v_f64 sum[WIDE], along[WIDE];
        zero_sums(sum), zero_sums(along);
        for (int64_t from = 0; from < n; from += PIECE) {
            const int64_t part = n - from < PIECE ? n - from : PIECE;
            VECTOR        g_sum[VECTORS], along_sum[VECTORS];
            for (int k = 0; k < VECTORS; k++) g_sum[k] = along_sum[k] = (VECTOR){0};
            EACH_VECTOR(part, TN__(norm_sums_step), from, &a, m, g_sum, along_sum);
            for (int k = 0; k < VECTORS; k++) {
                TN__(add)(sum + SUM_AT(k), g_sum[k]);
                TN__(add)(along + SUM_AT(k), along_sum[k]);
            }
        }
        if (!a.rms) mean_g = (TN__REAL)(v_lanes_total(sum) / (double)n);
        mean_along = (TN__REAL)(v_lanes_total(along) / (double)n);
    }
    EACH_VECTOR(n, TN__(norm_back_step), n, &a, m, mean_g, mean_along, stream);
}

/* ---- sums over lines, dropout ------------------------------------------------------------------------------------ */

static void TN__(add_lines)(int64_t n, int64_t at, int64_t count, const void *x, int64_t step, bool bf16, double *sum,
                            int64_t width)
{
    enum { N = v_n_f64, AHEAD = 8 }; /* lines far apart, which no hardware prefetcher predicts */
    bf16 = bf16 && sizeof(TN__REAL) == sizeof(float);
    const int64_t size = bf16 ? 2 : (int64_t)sizeof(TN__REAL);
    const char   *line = x;
    for (int64_t i = 0; i < n; i++, line += step * size) {
        double *to = sum + (at + i) % TN__LANES * width;
        int64_t k = 0;
        for (int64_t b = 0; i + AHEAD < n && b < count * size; b += 64)
            __builtin_prefetch(line + AHEAD * step * size + b);
        for (; k + VN <= count; k += VN) {
            const void  *from = line + k * size;
            const VECTOR v = bf16 ? TN__(load_bf16)(from) : TN__(v_load)(from);
            v_f64        s[VN / N];
            for (int j = 0; j < VN / N; j++) s[j] = v_load_f64(to + k + j * N);
            TN__(add)(s, v);
            for (int j = 0; j < VN / N; j++) v_store_f64(to + k + j * N, s[j]);
        }
        for (; k < count; k++)
            to[k] += bf16 ? (double)tn__bf16_to_f32(((const uint16_t *)(const void *)line)[k])
                          : (double)((const TN__REAL *)(const void *)line)[k];
    }
}

/* Elements [at, end) of y = x · scale where kept, otherwise 0; plus add. Element 0 is element `from` of the groups with
 * the words at `word`. */
TN__INLINE void TN__(drop_some)(int64_t at, int64_t end, TN__REAL *restrict y, const TN__REAL *restrict x,
                                const TN__REAL *restrict add, const uint32_t *word, int64_t from, uint32_t limit,
                                TN__REAL scale)
{
    for (int64_t k = at; k < end; k++) {
        const int64_t  e = from + k;
        const uint32_t bits = word[e / TN__DROP_GROUP * 8 + e % 8] << (e % TN__DROP_GROUP < 8 ? 16 : 0);
        const TN__REAL dropped = bits > limit ? x[k] * scale : 0;
        y[k] = add ? dropped + add[k] : dropped;
    }
}
/* Stores n elements by non-temporal stores, as soon as they are computed: memory accepts them while random numbers are
 * computed. */
TN__INLINE void TN__(stream_step)(TN__REAL *to, const TN__REAL *from, int64_t n)
{
    const bool stream = TN__(aligned)(to);
    int64_t    i = 0;
    for (; i + VN <= n; i += VN) TN__(store_stream)(to + i, VN, TN__(v_load)(from + i), stream);
    for (; i < n; i++) to[i] = from[i];
}

/* Processes as many elements at a time as a few vectors of random words decide: whole groups in vectors. A row seldom
 * starts or ends with a group. */
static void TN__(dropout)(int64_t n, TN__REAL *restrict y, const TN__REAL *restrict x, const TN__REAL *restrict add,
                          const tn__dropped *d, int64_t first, TN__REAL *y_stream, TN__REAL *x_stream)
{
    const TN__REAL scale = (TN__REAL)d->scale;
    uint32_t       w[PHILOX_WORDS];
    for (int64_t i = 0, size; i < n; i += size) {
        const int64_t   from = (first + i) % TN__DROP_GROUP;
        const uint64_t  position = d->position + 2 * (uint64_t)((first + i) / TN__DROP_GROUP);
        TN__REAL *const to = y + i;
        const TN__REAL *of = x + i, *more = add ? add + i : NULL;
        size = tn__min_i64(n - i, DROP_STEP - from);
        for (int64_t k = 0; k < size; k += 64 / (int64_t)sizeof *x) v_prefetch(of + k, 512);
        if (d->all) {
            for (int64_t k = 0; k < size; k++) to[k] = more ? more[k] + of[k] : of[k];
        } else {
            const int64_t head = tn__min_i64(size, -from & (TN__DROP_GROUP - 1));
            const int64_t tail = head + (size - head) / TN__DROP_GROUP * TN__DROP_GROUP;
            v_philox_some(d->seed, position, 2 * tn__ceil_div(from + size, TN__DROP_GROUP), w);
            TN__(drop_some)(0, head, to, of, more, w, from, d->limit, scale);
            TN__(drop_groups)(head, tail, to, of, more, w, from, d->limit, scale);
            TN__(drop_some)(tail, size, to, of, more, w, from, d->limit, scale);
        }
        if (y_stream) TN__(stream_step)(y_stream + i, to, size);
        if (x_stream) TN__(stream_step)(x_stream + i, of, size);
    }
}

#undef VN
#undef VECTORS
#undef VECTOR
#undef SUM_AT
#endif
