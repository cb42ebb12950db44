/* q4.k.c — rows of activations in 8 bits times weights of 4 to 6 bits. Within a block of columns the sums are integers,
 * exact in any order, and everything else is single operations of f32 without multiply-adds: all instruction sets give
 * the same bits. A vector holds 4 columns (a quad) of v_n_f32 rows. */
#include "core/kernels/kernels.h"
#include "core/kernels/simd.h"

/* Rows of activations of a micro-tile; a single row has its own. */
#ifdef __AVX2__
enum { ROWS = 4 };
#else
enum { ROWS = 1 };
#endif
enum { AHEAD = 4096 }; /* bytes prefetched ahead: see q8.k.c */

/* ---- vectors ----------------------------------------------------------------------------------------------------- */

typedef int16_t  v_pairs __attribute__((vector_size(4 * v_n_f32)));
typedef uint16_t v_bits __attribute__((vector_size(4 * v_n_f32)));
typedef int32_t  v_words __attribute__((vector_size(4 * v_n_f32)));

TN__INLINE v_bits v_load4(const uint8_t *p)
{
    v_bits v;
    memcpy(&v, p, sizeof v);
    return v;
}
TN__INLINE int32_t v_word4(const uint8_t *p)
{
    int32_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

/* v_all(n): n in each word; v_bytes(w, x): sums of two products of unsigned and signed bytes; v_madd(a, b): sums of two
 * products of i16; v_signed(p): signed bytes as i16. The sums that are added in i16 fit: 2 · 2 · 63 · 127 < 2^15. */
#if defined(__AVX2__)
TN__INLINE v_words v_all(int32_t n) { return (v_words)_mm256_set1_epi32(n); }
TN__INLINE v_pairs v_bytes(v_bits w, v_words x) { return (v_pairs)_mm256_maddubs_epi16((__m256i)w, (__m256i)x); }
TN__INLINE v_words v_madd(v_pairs a, v_pairs b) { return (v_words)_mm256_madd_epi16((__m256i)a, (__m256i)b); }
TN__INLINE v_pairs v_signed(const uint8_t *p)
{
    return (v_pairs)_mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)p));
}
#else
TN__INLINE v_words v_all(int32_t n) { return (v_words){n, n, n, n}; }
TN__INLINE v_pairs v_bytes(v_bits w, v_words x)
{
    const v_pairs y = (v_pairs)x;
    return (v_pairs)(w & 255) * (y << 8 >> 8) + (v_pairs)(w >> 8) * (y >> 8);
}
TN__INLINE v_words v_madd(v_pairs a, v_pairs b)
{
    const v_words x = (v_words)a, y = (v_words)b;
    return (x << 16 >> 16) * (y << 16 >> 16) + (x >> 16) * (y >> 16);
}
TN__INLINE v_pairs v_signed(const uint8_t *p)
{
    v_pairs v = {0};
    for (int i = 0; i < 2 * v_n_f32; i++) v[i] = (int8_t)p[i];
    return v;
}
#endif
TN__INLINE v_f32 v_float(v_words n) { return __builtin_convertvector(n, v_f32); }
/* The first or the second i16 of each word, twice. */
TN__INLINE v_pairs v_twice(v_pairs p, int second)
{
    const v_words w = (v_words)p;
    return (v_pairs)(second ? (w & ~0xffff) | (w >> 16 & 0xffff) : (w & 0xffff) | w << 16);
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

/* Activations: for each block of columns, the bytes, the sums of each group as i16, padded to words, and the scale. */
#define SUMS(kind) TN__Q4_WIDTH(kind)
#define SCALE(kind) (SUMS(kind) + ((kind) == TN__Q4_0 ? 4 : 2 * TN__Q4_WIDTH(kind) / TN__Q4_SUB(kind)))
#define BYTES(kind) (SCALE(kind) + (int)sizeof(float))

/* Loops that would only be longer if unrolled; functions that all kinds share. */
#ifdef __clang__
#define ROLLED _Pragma("nounroll")
#define ALONE __attribute__((noinline))
#else
#define ROLLED _Pragma("GCC unroll 1")
#define ALONE __attribute__((noinline, noclone))
#endif
/* Without AVX2 all kinds share the code, which is slow and large. */
#ifdef __AVX2__
#define HALVES TN__UNROLL
#define OF_A_KIND TN__INLINE
#else
#define HALVES ROLLED
#define OF_A_KIND static ALONE
#endif

/* clang-format off: it takes TN__UNROLL for a function */

/* w[v] = columns 16 half + 4 v … of the 32 at q. */
TN__INLINE void unpack(const tn__packing kind, const uint8_t *q, int half, v_bits w[4])
{
    const uint8_t *high = q + TN__Q4_LOW;
    const v_bits   h = kind == TN__Q5_K   ? v_load4(high) >> 4 * half
                       : kind == TN__Q6_K ? v_load4(high + 64 * half)
                                          : (v_bits){0};
    TN__UNROLL for (int v = 0; v < 4; v++)
    {
        w[v] = v_load4(q + 64 * v) >> 4 * half & 0x0f0f;
        if (kind == TN__Q5_K) w[v] |= h << (4 - v) & 0x1010;
        if (kind == TN__Q6_K) w[v] |= (v < 2 ? h << (4 - 2 * v) : h >> (2 * v - 4)) & 0x3030;
    }
}

/* total[i] += the sums of 32 columns, times the scales of both halves. */
TN__INLINE void add(const tn__packing kind, const int m, const uint8_t *q, const v_pairs s[2], const uint8_t *const *x,
                    int col, v_words *total)
{
    HALVES for (int half = 0; half < 2; half++)
    {
        v_bits w[4];
        unpack(kind, q, half, w);
        TN__UNROLL for (int i = 0; i < m; i++)
        {
            const uint8_t *y = x[i] + col + 16 * half;
            const v_pairs  a = v_bytes(w[0], v_all(v_word4(y))) + v_bytes(w[1], v_all(v_word4(y + 4)));
            const v_pairs  b = v_bytes(w[2], v_all(v_word4(y + 8))) + v_bytes(w[3], v_all(v_word4(y + 12)));
            total[i] += kind == TN__Q6_K ? v_madd(a, s[half]) + v_madd(b, s[half]) : v_madd(a + b, s[half]);
        }
    }
}

/* The same for 64 columns, the t-th 32 and the next ones; of Q4_0 for 32. */
TN__INLINE void add_two(const tn__packing kind, const int m, const uint8_t *b, int at, int t, const uint8_t *const *x,
                        v_words *total)
{
    const uint8_t *q = b + TN__Q4_Q(kind) + 4 * at + t * TN__Q4_STEP(kind), *p = b + TN__Q4_S(kind) + 2 * at;
    const bool     each = kind == TN__Q6_K; /* each half has its own scale */
    const v_pairs  s = kind == TN__Q4_0 ? (v_pairs)v_all(0x10001) : v_signed(p + t * (each ? 32 : 16));
    const v_pairs  r = each ? v_signed(p + (t + 1) * 32) : s;
    const v_pairs  first[2] = {v_twice(s, 0), v_twice(s, each)}, second[2] = {v_twice(r, !each), v_twice(r, 1)};
    if (m == 1 && at == 0)
        for (int line = 0; line < 2 * TN__Q4_STEP(kind); line += 64) v_prefetch(q + line, AHEAD);
    add(kind, m, q, first, x, 32 * t, total);
    if (kind != TN__Q4_0) add(kind, m, q + TN__Q4_STEP(kind), second, x, 32 * t + 32, total);
}

/* A block times m rows: sum[i] += the product. */
TN__INLINE void block(const tn__packing kind, const int m, const uint8_t *b, int at, const uint8_t *const *x,
                      v_f32 *sum)
{
    v_words total[ROWS], least[ROWS];
    TN__UNROLL for (int i = 0; i < m; i++) total[i] = least[i] = (v_words){0};
    if (kind == TN__Q4_0) add_two(kind, m, b, at, 0, x, total);
    else ROLLED for (int t = 0; t < 8; t += 2) add_two(kind, m, b, at, t, x, total);
    TN__UNROLL for (int i = 0; i < m; i++)
    {
        const uint8_t *sums = x[i] + SUMS(kind);
        const v_f32    scale = v_broadcast_f32((const float *)(const void *)(x[i] + SCALE(kind)));
        if (kind == TN__Q4_0) total[i] -= v_all(8 * v_word4(sums));
        const uint8_t *m_at = b + (TN__Q4_M(kind) ? TN__Q4_M(kind) : TN__Q4_S(kind)) + 2 * at;
        const int      pairs = kind == TN__Q4_0 ? 0 : TN__Q4_WIDTH(kind) / TN__Q4_SUB(kind) / 2;
        ROLLED for (int u = 0; u < pairs; u++) least[i] +=
            v_madd(v_signed(m_at + 32 * u), (v_pairs)v_all(v_word4(sums + 4 * u)));
        if (kind == TN__Q6_K) total[i] -= least[i] << 5;
        v_f32 y = v_float(total[i]) * (v_load_f16(b + 2 * at) * scale);
        if (TN__Q4_M(kind)) y -= v_float(least[i]) * (v_load_f16(b + 2 * (TN__Q4_ROWS + at)) * scale);
        sum[i] += y;
    }
}

/* m rows, 1 or ROWS, by a panel; of fewer than m, the last one is computed again. */
OF_A_KIND void some(const tn__packing kind, const int m, const tn__int8_step *s)
{
    const uint8_t *b = s->panel, *x[ROWS];
    v_f32          sum[TN__Q4_ROWS / v_n_f32][ROWS];
    TN__UNROLL for (int i = 0; i < m; i++) x[i] = s->x + (i < s->rows ? i : s->rows - 1) * s->x_row;
    ROLLED for (int at = 0; at < TN__Q4_ROWS / v_n_f32; at++) TN__UNROLL for (int i = 0; i < m; i++) sum[at][i] =
        v_zero_f32();
    for (int64_t g = 0; g < s->groups; g++, b += TN__Q4_BLOCK(kind)) {
        ROLLED for (int at = 0; at < TN__Q4_ROWS / v_n_f32; at++) block(kind, m, b, at * v_n_f32, x, sum[at]);
        TN__UNROLL for (int i = 0; i < m; i++) x[i] += BYTES(kind);
    }
    ROLLED for (int at = 0; at < TN__Q4_ROWS / v_n_f32; at++) TN__UNROLL for (int i = 0; i < m; i++) if (i < s->rows)
        v_store_f32(s->y + i * s->y_row + at * v_n_f32, sum[at][i]);
}

/* clang-format on */

/* The rounded values of one row, its sums and scales. The sum of 32 values of at most 127 fits in 16 bits. */
static ALONE float rounded(const tn__packing kind, int64_t n, const float *x, uint8_t *to)
{
    const int width = TN__Q4_WIDTH(kind), sub = TN__Q4_SUB(kind);
    for (int64_t k = 0; k < n; k += width, x += width, to += BYTES(kind)) {
        float scale, inverse;
        tn__int8_scale(tn__int8_max(width, x), 127, &scale, &inverse);
        if (inverse == 0) memset(to, 0, (size_t)SCALE(kind));
        for (int j = 0; inverse != 0 && j < width / sub; j++) {
            int32_t sum = 0;
            for (int i = j * sub; i < (j + 1) * sub; i++) {
                const int32_t q = tn__int8_round(x[i] * inverse);
                to[i] = (uint8_t)q, sum += q;
            }
            if (kind == TN__Q4_0) memcpy(to + SUMS(kind), &sum, sizeof sum);
            else memcpy(to + SUMS(kind) + 2 * j, &(int16_t){(int16_t)sum}, sizeof(int16_t));
        }
        memcpy(to + SCALE(kind), &scale, sizeof scale);
    }
    return 0; /* each block has its own scale */
}

#define KERNELS(name, kind)                                                                                  \
    static float quantize_##name(int64_t n, const float *x, uint8_t *to) { return rounded(kind, n, x, to); } \
    static void  product_##name(const tn__int8_step *s) { s->rows == 1 ? some(kind, 1, s) : some(kind, ROWS, s); }
KERNELS(q4_0, TN__Q4_0)
KERNELS(q4_k, TN__Q4_K)
KERNELS(q5_k, TN__Q5_K)
KERNELS(q6_k, TN__Q6_K)

#define ROW(name, kind) \
    [kind] = {.rows = ROWS, .bytes = BYTES(kind), .quantize = quantize_##name, .product = product_##name}
extern const tn__int8_kernels TN__FOR_ISA(tn__q4)[TN__Q4_KINDS];

const tn__int8_kernels TN__FOR_ISA(tn__q4)[TN__Q4_KINDS] = {ROW(q4_0, TN__Q4_0), ROW(q4_k, TN__Q4_K),
                                                            ROW(q5_k, TN__Q5_K), ROW(q6_k, TN__Q6_K)};
