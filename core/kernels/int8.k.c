/* int8.k.c — rows of activations in 8 bits times weights in 8 bits. The sums are integers, exact in any order, and
 * everything else is single operations of f32 without multiply-adds: all instruction sets give the same bits. Also
 * compiled for VNNI, on top of AVX2 and of AVX-512, and for SDOT: int8.avxvnni.k.c, int8.avx512vnni.k.c,
 * int8.sdot.k.c. */
#include "core/kernels/kernels.h"
#include "core/kernels/dot8.h"

/* The micro-tile: ROWS rows by WIDE vectors of weights for each quad; ALL are a panel's. With VNNI a product takes two
 * panels: with one, the loads of activations would take longer than the products. */
#if defined(__AVX512VNNI__)
enum { ROWS = 8, WIDE = 2, PANELS = 2 };
#elif defined(__AVX512F__)
enum { ROWS = 12, WIDE = 1, PANELS = 1 };
#elif defined(__aarch64__)
enum { ROWS = 4, WIDE = 4, PANELS = 1 };
#else
enum { ROWS = 4, WIDE = 2, PANELS = 1 };
#endif
enum { ALL = TN__INT8_ROWS / v_rows8, PER = v_n_f32 / v_rows8 }; /* PER: vectors of sums in one of f32 */
enum { QUAD = TN__INT8_BLOCK / 2, AHEAD = 4096 };                /* bytes; AHEAD: prefetched, see q8.k.c */

/* clang-format off: it takes TN__UNROLL for a function */

/* m rows by `wide` vectors, starting at vector `first` of the panel. */
TN__INLINE void some(const int m, const int wide, const tn__int8_step *s, int first)
{
    const uint8_t *w = s->panel + TN__INT8_HEAD + first * v_rows8 * 4, *x = s->x;
    const int64_t  next = ALL > 1 ? v_rows8 * 4 : s->panel_bytes; /* from one vector to the next */
    v_i32          sum[ROWS][WIDE], a[WIDE], b[WIDE];
    TN__UNROLL for (int i = 0; i < m; i++) TN__UNROLL for (int v = 0; v < wide; v++) sum[i][v] = v_zero8();
    for (int64_t g = 0; g < s->groups; g++, w += TN__INT8_BLOCK, x += TN__INT8_GROUP) {
        if (m == 1) v_prefetch(w, AHEAD), v_prefetch(w, AHEAD + QUAD);
        TN__UNROLL for (int v = 0; v < wide; v++) a[v] = v_weights8(w + v * next),
                                                  b[v] = v_weights8(w + QUAD + v * next);
        TN__UNROLL for (int i = 0; i < m; i++)
        {
            const v_x8 p = v_quad8(x + i * s->x_row), q = v_quad8(x + i * s->x_row + 4);
            TN__UNROLL for (int v = 0; v < wide; v++) sum[i][v] = v_dot8(sum[i][v], p, a[v], q, b[v]);
        }
    }
    TN__UNROLL for (int v = 0; v < wide; v += PER)
    {
        const int      at = (first + v) * v_rows8;
        const uint8_t *scales = s->panel + (ALL > 1 ? 4 * at : v * next), *sums = scales + TN__INT8_HEAD / 2;
        const v_f32    scale = v_load_f32((const float *)(const void *)scales);
        const v_f32    bias = s->bias ? v_load_f32(s->bias + at) : v_broadcast_f32(&(float){-0.0f}); /* x - 0 is x */
        TN__UNROLL for (int i = 0; i < m; i++)
            v_store_f32(s->y + i * s->y_row + at,
                        v_less8(v_sums8(sum[i] + v), sums) * (v_broadcast_f32(s->scale + i) * scale) + bias);
    }
}

/* clang-format on */

#define PASS(m)                                                      \
    static void pass_##m(const tn__int8_step *s)                     \
    {                                                                \
        if (PANELS > 1 && s->panels <= 1) some(m, 1, s, 0);          \
        else                                                         \
            for (int v = 0; v < ALL; v += WIDE) some(m, WIDE, s, v); \
    }
PASS(1)
PASS(2)
PASS(3)
PASS(4)
#if defined(__AVX512F__)
PASS(5)
PASS(6)
PASS(7)
PASS(8)
#endif
#if defined(__AVX512F__) && !defined(__AVX512VNNI__)
PASS(9)
PASS(10)
PASS(11)
PASS(12)
#endif

static void product(const tn__int8_step *s)
{
    static void (*const pass[])(const tn__int8_step *) = {
        pass_1,
        pass_2,
        pass_3,
        pass_4,
#if defined(__AVX512F__)
        pass_5,
        pass_6,
        pass_7,
        pass_8,
#endif
#if defined(__AVX512F__) && !defined(__AVX512VNNI__)
        pass_9,
        pass_10,
        pass_11,
        pass_12,
#endif
    };
    _Static_assert(sizeof pass / sizeof *pass == ROWS, "a pass for each number of rows");
    pass[s->rows - 1](s);
}

/* Rows wider than ROOM are mixed twice, for the maximum and for the bytes. */
static float quantize(int64_t n, const float *x, uint8_t *to)
{
    enum { ROOM = 4096, ZERO = TN__INT8_INPUT + 1 };
    const int64_t padded = (n + TN__INT8_GROUP - 1) / TN__INT8_GROUP * TN__INT8_GROUP;
    float         mixed[ROOM], scale, inverse, max[2] = {0, 0};
    int64_t       i = 0;
    for (int64_t at = 0; at < n; at += ROOM) {
        tn__int8_mix(tn__min_i64(ROOM, n - at), x + at, mixed, false);
        max[1] = tn__int8_max(tn__min_i64(ROOM, n - at), mixed), max[0] = tn__int8_max(2, max);
    }
    if (tn__int8_scale(max[0], TN__INT8_INPUT, &scale, &inverse))
        for (int64_t end; i < n; i = end) {
            end = tn__min_i64(i + ROOM, n);
            if (n > ROOM) tn__int8_mix(end - i, x + i, mixed, false);
            for (int64_t k = 0; k < end - i; k++) to[i + k] = (uint8_t)(tn__int8_round(mixed[k] * inverse) + ZERO);
        }
    for (; i < padded; i++) to[i] = ZERO;
    return scale;
}

extern const tn__int8_kernels TN__FOR_ISA(tn__int8);

const tn__int8_kernels TN__FOR_ISA(tn__int8) = {
#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
    .by = "VNNI",
#elif defined(__aarch64__) && (defined(TN__SDOT) || defined(__ARM_FEATURE_DOTPROD))
    .by = "SDOT",
#endif
    .rows = ROWS,
    .panels = PANELS,
    .bytes = TN__INT8_GROUP,
    .adds_bias = true,
    .quantize = quantize,
    .product = product};
