/* bf16.avx512bf16.k.c — products of bf16 by AVX512-BF16's dot products of pairs. For each pair of terms, p even, the
 * instruction adds a[p+1] · b[p+1] and then a[p] · b[p] to the sum, rounding each time as an fma, except that
 * denormals count as 0. An odd k ends with the pair of its last term and 0. */
#include "core/kernels/kernels.h"
#include "core/kernels/simd.h"
#include "core/kernels/tile_size.h"

/* A vector of pairs is a vector of 32-bit units; the sums are f32. */
typedef v_f32 v_pair, v_one_pair;
enum { v_n_pair = v_n_f32 };
TN__INLINE v_f32 v_zero_pair(void) { return v_zero_f32(); }
TN__INLINE v_f32 v_load_pair(const float *p) { return v_load_f32(p); }
TN__INLINE void  v_store_pair(float *p, v_f32 v) { v_store_f32(p, v); }
TN__INLINE v_f32 v_load_one_pair(const float *p)
{
    int32_t u;
    memcpy(&u, p, sizeof u);
    return _mm512_castsi512_ps(_mm512_set1_epi32(u));
}
TN__INLINE v_f32 v_fma_one_pair(v_f32 a, v_f32 b, v_f32 sum)
{
    return _mm512_dpbf16_ps(sum, (__m512bh)_mm512_castps_si512(a), (__m512bh)_mm512_castps_si512(b));
}

/* Sums of dot products are never denormal; for those this would differ from tn__f32_to_bf16. */
#define v_narrow(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), (__m256i)_mm512_cvtneps_pbh(v))

#define TN__REAL float
#define TN__(name) name##_pair
#include "core/kernels/tile.h"

TN__INLINE __mmask32 first_of_32(int64_t n) { return n >= 32 ? ~0u : n <= 0 ? 0 : (1u << n) - 1; }
TN__INLINE __mmask16 first_of_16(int64_t n) { return (__mmask16)first_of_32(n < 16 ? n : 16); }

/* For permutex2var: 16 elements of each of two vectors, interleaved, starting at element `from`. */
TN__INLINE __m512i in_turn(int from)
{
    const __m512i i = _mm512_add_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                                       _mm512_set1_epi32(from));
    return _mm512_or_si512(i, _mm512_slli_epi32(_mm512_add_epi32(i, _mm512_set1_epi32(32)), 16));
}

/* Packs pairs of 32 dense columns, step by step of k, into four strips. */
static void zip_strips(const tn__pack_step *s)
{
    const __m512i   lower = in_turn(0), upper = in_turn(16);
    const uint16_t *x = s->from;
    for (int64_t r = 0; r < s->rows; r += 2, x += 2 * s->from_row) {
        const __m512i l = _mm512_loadu_si512(x);
        const __m512i u = r + 1 < s->rows ? _mm512_loadu_si512(x + s->from_row) : _mm512_setzero_si512();
        const __m512i two[] = {_mm512_permutex2var_epi16(l, lower, u), _mm512_permutex2var_epi16(l, upper, u)};
        __m256i      *to = (__m256i *)(void *)((uint32_t *)s->to + r / 2 * 8);
        for (int i = 0; i < 2; i++, to += s->strip_stride / 4) {
            _mm256_storeu_si256(to, _mm512_castsi512_si256(two[i]));
            _mm256_storeu_si256(to + s->strip_stride / 8, _mm512_extracti64x4_epi64(two[i], 1));
        }
    }
}

/* Packs pairs of dense rows: two rows become one row of units. */
static void zip_rows(const tn__pack_step *s)
{
    const uint16_t *x = s->from;
    int64_t         first = 0;
    if (s->strip_stride) {
        zip_strips(s);
        return;
    }
    const __m512i lower = in_turn(0), upper = in_turn(16);
    if (s->width == 8 && s->cols == 8) { /* a strip of a: its units are half a cache line */
        for (; first + 2 <= s->rows; first += 2, x += 2 * s->from_row) {
            const __m128i l = _mm_loadu_si128((const __m128i *)(const void *)x);
            const __m128i u = _mm_loadu_si128((const __m128i *)(const void *)(x + s->from_row));
            __m128i      *to = (__m128i *)(void *)((uint32_t *)s->to + first / 2 * 8);
            _mm_storeu_si128(to, _mm_unpacklo_epi16(l, u));
            _mm_storeu_si128(to + 1, _mm_unpackhi_epi16(l, u));
        }
    }
    for (int64_t r = first; r < s->rows; r += 2, x += 2 * s->from_row) {
        uint32_t *to = (uint32_t *)s->to + r / 2 * s->width;
        int64_t   c = 0;
        for (; c + 32 <= s->cols && r + 1 < s->rows; c += 32) {
            const __m512i l = _mm512_loadu_si512(x + c), u = _mm512_loadu_si512(x + s->from_row + c);
            for (int64_t i = 0; i < 2; i++) v_prefetch(x + c, (TN__PACK_AHEAD + i) * s->from_row);
            _mm512_storeu_si512(to + c, _mm512_permutex2var_epi16(l, lower, u));
            _mm512_storeu_si512(to + c + 16, _mm512_permutex2var_epi16(l, upper, u));
        }
        for (; c < s->width; c += 16) {
            const __mmask16 in = first_of_16(s->cols - c), second = r + 1 < s->rows ? in : 0;
            for (int64_t i = 0; i < 2; i++) v_prefetch(x + c, (TN__PACK_AHEAD + i) * s->from_row);
            const __m512i l = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(in, x + c));
            const __m512i u =
                _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(second, x + (second ? s->from_row : 0) + c));
            _mm512_mask_storeu_epi32(to + c, first_of_16(s->width - c), _mm512_or_si512(l, _mm512_slli_epi32(u, 16)));
        }
    }
}

/* Packs pairs from dense columns: they are already units there, and are transposed in squares. */
/* clang-format off: it takes TN__UNROLL for a function */
static void transpose_columns(const tn__pack_step *s)
{
    const int64_t pairs = (s->rows + 1) / 2;
    for (int64_t c = 0; c < s->width; c += 16) {
        const __mmask16 out = first_of_16(s->width - c);
        const uint16_t *x = (const uint16_t *)s->from + c * s->from_col;
        for (int64_t r = 0; r < pairs; r += 16) {
            const __mmask32 in = first_of_32(s->rows - 2 * r);
            float          *to = (float *)s->to + r * s->width + c;
            v_f32           v[16];
            TN__UNROLL for (int i = 0; i < 16; i++) v[i] =
                c + i < s->cols ? _mm512_castsi512_ps(_mm512_maskz_loadu_epi16(in, x + i * s->from_col + 2 * r))
                                : v_zero_f32();
            v_transpose_f32(v);
            TN__UNROLL for (int i = 0; i < 16; i++) if (r + i < pairs)
                _mm512_mask_storeu_ps(to + i * s->width, out, v[i]);
        }
    }
}
/* clang-format on */

/* Packs terms in columns to rows of pairs, 16 rows by 16 pairs at a time: 32 pieces of dense columns are zipped, and
 * the square of units is transposed. */
/* clang-format off: it takes TN__UNROLL for a function */
static void turn_columns(const tn__pack_step *s)
{
    const int64_t to_row = s->to_row ? s->to_row : s->width;
    const __m512i lower = in_turn(0);
    for (int64_t r = 0; r < s->rows; r += 16) {
        const int64_t   some = s->rows - r < 16 ? s->rows - r : 16;
        const __mmask16 in = first_of_16(some);
        for (int64_t c = 0; c < s->width; c += 16) {
            const __mmask16 out = first_of_16(s->width - c);
            float          *to = (float *)s->to + r * to_row + c;
            v_f32           v[16];
            if (s->from_row == 1) {
                const uint16_t *x = (const uint16_t *)s->from + r + 2 * c * s->from_col;
                TN__UNROLL for (int i = 0; i < 16; i++)
                {
                    const int64_t   left = s->cols - 2 * (c + i);
                    const uint16_t *l = left > 0 ? x + 2 * i * s->from_col : x;
                    const uint16_t *u = left > 1 ? l + s->from_col : x;
                    const __m512i   first = _mm512_castsi256_si512(_mm256_maskz_loadu_epi16(left > 0 ? in : 0, l));
                    const __m512i   second = _mm512_castsi256_si512(_mm256_maskz_loadu_epi16(left > 1 ? in : 0, u));
                    v[i] = _mm512_castsi512_ps(_mm512_permutex2var_epi16(first, lower, second));
                }
                v_transpose_f32(v);
            } else {
                for (int64_t i = 0; i < some; i++) {
                    const uint16_t *x = (const uint16_t *)s->from + (r + i) * s->from_row;
                    uint16_t        terms[32];
                    for (int64_t j = 0; j < 32; j++) {
                        const int64_t p = 2 * c + j;
                        terms[j] = p < s->cols ? x[p * s->from_col] : 0;
                    }
                    v[i] = _mm512_loadu_ps(terms);
                }
            }
            for (int64_t i = 0; i < some; i++) _mm512_mask_storeu_ps(to + i * to_row, out, v[i]);
        }
    }
}
/* clang-format on */

void tn__pack_pairs_avx512bf16(const tn__pack_step *s);
void tn__pack_pairs_avx512bf16(const tn__pack_step *s)
{
    const uint16_t *x = s->from;
    uint16_t       *to = s->to;
    if (!s->terms_in_rows && s->from_col == 1) {
        zip_rows(s);
    } else if (!s->terms_in_rows && s->from_row == 1) {
        transpose_columns(s);
    } else if (!s->terms_in_rows) {
        for (int64_t r = 0; r < s->rows + s->rows % 2; r++)
            for (int64_t c = 0; c < s->width; c++)
                to[(r / 2 * s->width + c) * 2 + r % 2] =
                    r < s->rows && c < s->cols ? x[r * s->from_row + c * s->from_col] : 0;
    } else if (s->from_col != 1) {
        turn_columns(s);
    } else {
        for (int64_t r = 0; r < s->rows; r++, x += s->from_row, to += 2 * s->width) {
            for (int64_t c = 0; c < 2 * s->width; c += 32)
                _mm512_mask_storeu_epi16(to + c, first_of_32(2 * s->width - c),
                                         _mm512_maskz_loadu_epi16(first_of_32(s->cols - c), x + c));
        }
    }
}

/* Like tn__pack_pairs, from dense rows of f32, which are rounded; denormals become 0. */
void tn__pack_pairs_f32_avx512bf16(const tn__pack_step *s);
void tn__pack_pairs_f32_avx512bf16(const tn__pack_step *s)
{
    static const uint16_t zip[32] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                     8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    const __m512i         order = _mm512_loadu_si512(zip);
    const float          *x = s->from;
    uint16_t             *to = s->to;
    for (int64_t r = 0; s->terms_in_rows && r < s->rows; r++, x += s->from_row, to += 2 * s->width) {
        for (int64_t c = 0; c < 2 * s->width; c += 32) {
            const __m512 l = _mm512_maskz_loadu_ps(first_of_16(s->cols - c), x + c);
            const __m512 u = _mm512_maskz_loadu_ps(first_of_16(s->cols - c - 16), x + c + 16);
            _mm512_mask_storeu_epi16(to + c, first_of_32(2 * s->width - c), (__m512i)_mm512_cvtne2ps_pbh(u, l));
        }
    }
    for (int64_t r = 0; !s->terms_in_rows && r < s->rows; r += 2, x += 2 * s->from_row, to += 2 * s->width) {
        for (int64_t c = 0; c < s->width; c += 16) {
            const __mmask16 in = first_of_16(s->cols - c), second = r + 1 < s->rows ? in : 0;
            const __m512    l = _mm512_maskz_loadu_ps(in, x + c);
            const __m512    u = _mm512_maskz_loadu_ps(second, x + (second ? s->from_row : 0) + c);
            const __m512i   both = _mm512_permutexvar_epi16(order, (__m512i)_mm512_cvtne2ps_pbh(u, l));
            _mm512_mask_storeu_epi32(to + 2 * c, first_of_16(s->width - c), both);
        }
    }
}

void                          tn__gemm_epilogue_f32_avx512(const tn__epilogue_step *s);
extern const tn__gemm_kernels tn__gemm_bf16_avx512bf16;

const tn__gemm_kernels tn__gemm_bf16_avx512bf16 = {.mr = MR,
                                                   .nv = NV,
                                                   .lanes = v_n_f32,
                                                   .pair = 2,
                                                   .steps = K_BLOCK,
                                                   .tile = any_tile_pair,
                                                   .pack = tn__pack_pairs_f32_avx512bf16,
                                                   .pack_bf16 = tn__pack_pairs_avx512bf16,
                                                   .epilogue = tn__gemm_epilogue_f32_avx512};
