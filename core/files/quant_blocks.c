/* quant_blocks.c — converts ggml's blocks of quantised elements, which share a scale, to f32, and f32 to Q8_0: 32
 * elements with an f16 scale and 8 bits each. core/base/blocks.c reads the blocks of less than 8 bits. */
#include "core/files/quant_blocks.h"
#include "core/base/bf16.h"
#include "core/base/blocks.h"
#include "core/base/f16.h"
#include "core/tensor/tensor.h"

#include <float.h>
#include <math.h>

static float f16(const unsigned char *p) { return tn__f16_to_f32((uint16_t)(p[0] | p[1] << 8)); }

static void widen(tn__packing kind, const unsigned char *from, float *to)
{
    const tn__block_form *f = &tn__block_forms[kind];
    tn__block             b;
    tn__block_read(kind, from, &b);
    for (int j = 0; j < f->width / f->sub; j++)
        tn__block_widen(kind, b.d, b.e, b.s[j], b.m[j], f->sub, b.q + j * f->sub, to + j * f->sub);
}
static void widen_q4_0(const unsigned char *b, float *to) { widen(TN__Q4_0, b, to); }
static void widen_q4_k(const unsigned char *b, float *to) { widen(TN__Q4_K, b, to); }
static void widen_q5_k(const unsigned char *b, float *to) { widen(TN__Q5_K, b, to); }
static void widen_q6_k(const unsigned char *b, float *to) { widen(TN__Q6_K, b, to); }

static void widen_q8_0(const unsigned char *b, float *to)
{
    const float d = f16(b);
    for (int i = 0; i < 32; i++) to[i] = d * (float)(int8_t)b[2 + i];
}

/* clang-format off */
const tn__quant_block tn__quant_blocks[TN__QUANT_BLOCKS] = {
    [0] = {"F32", 1, 4, 17, NULL},          [1] = {"F16", 1, 2, 13, NULL},      [2] = {"Q4_0", 32, 18, -1, widen_q4_0},
    [3] = {"Q4_1", 32, 20, -1, NULL},       [6] = {"Q5_0", 32, 22, -1, NULL},   [7] = {"Q5_1", 32, 24, -1, NULL},
    [8] = {"Q8_0", 32, 34, -1, widen_q8_0}, [9] = {"Q8_1", 32, 36, -1, NULL},   [10] = {"Q2_K", 256, 84, -1, NULL},
    [11] = {"Q3_K", 256, 110, -1, NULL},    [12] = {"Q4_K", 256, 144, -1, widen_q4_k},
    [13] = {"Q5_K", 256, 176, -1, widen_q5_k}, [14] = {"Q6_K", 256, 210, -1, widen_q6_k},
    [15] = {"Q8_K", 256, 292, -1, NULL},    [16] = {"IQ2_XXS", 256, 66, -1, NULL}, [17] = {"IQ2_XS", 256, 74, -1, NULL},
    [18] = {"IQ3_XXS", 256, 98, -1, NULL},  [19] = {"IQ1_S", 256, 50, -1, NULL}, [20] = {"IQ4_NL", 32, 18, -1, NULL},
    [21] = {"IQ3_S", 256, 110, -1, NULL},   [22] = {"IQ2_S", 256, 82, -1, NULL}, [23] = {"IQ4_XS", 256, 136, -1, NULL},
    [24] = {"I8", 1, 1, 5, NULL},           [25] = {"I16", 1, 2, 11, NULL},     [26] = {"I32", 1, 4, 15, NULL},
    [27] = {"I64", 1, 8, 20, NULL},         [28] = {"F64", 1, 8, 19, NULL},     [29] = {"IQ1_M", 256, 56, -1, NULL},
    [30] = {"BF16", 1, 2, 14, NULL},        [34] = {"TQ1_0", 256, 54, -1, NULL}, [35] = {"TQ2_0", 256, 66, -1, NULL},
    [39] = {"MXFP4", 32, 17, -1, NULL},     [40] = {"NVFP4", 64, 36, -1, NULL}, [41] = {"Q1_0", 128, 18, -1, NULL},
};
/* clang-format on */

int tn__quant_block_of_element(int element)
{
    for (int i = 0; i < TN__QUANT_BLOCKS; i++)
        if (tn__quant_blocks[i].name && tn__quant_blocks[i].element == element) return i;
    return -1;
}

enum { AT_ONCE = 1 << 16, WIDEST = 256 }; /* bytes read at a time; elements of the largest block */

tn_tensor *tn__quant_block_read(const tn__source *s, int64_t at, int block, tn_dtype as, tn_shape shape,
                                const char *what)
{
    const tn__quant_block *b = &tn__quant_blocks[block];
    if (!b->widen)
        return tn_raise_null(TN_EUNSUPPORTED, "%s: %s is of type %s, which Tenon does not load", s->label, what,
                             b->name);
    if (!tn__shape_check(s->label, as, shape)) return NULL;
    tn_tensor     *t = tn__new_owned(as, shape);
    unsigned char *part = t ? tn__mem_get(AT_ONCE) : NULL;
    if (!part) return tn_drop(t), NULL;
    const int64_t blocks = tn_shape_numel(shape) / b->values, most = AT_ONCE / b->bytes;
    bool          ok = true;
    for (int64_t first = 0; ok && first < blocks; first += most) {
        const int64_t n = tn__min_i64(most, blocks - first);
        ok = tn__source_read(s, part, at + first * b->bytes, (size_t)(n * b->bytes));
        for (int64_t i = 0; ok && i < n; i++) {
            const int64_t k = (first + i) * b->values;
            float         wide[WIDEST];
            b->widen(part + i * b->bytes, as == TN_F32 ? (float *)tn__ptr(t) + k : wide);
            if (as == TN_BF16)
                for (int j = 0; j < b->values; j++) ((uint16_t *)tn__ptr(t))[k + j] = tn__f32_to_bf16(wide[j]);
        }
    }
    tn__mem_put(part, AT_ONCE);
    if (!ok) tn_drop(t), t = NULL;
    return t;
}

void tn__quant_block_q8_0(const float *from, int64_t n, unsigned char *to)
{
    for (int64_t k = 0; k < n; k += 32, from += 32, to += 34) {
        float most = 0;
        for (int i = 0; i < 32; i++) most = fabsf(from[i]) > most ? fabsf(from[i]) : most;
        const float    d = most / 127, inverse = d > FLT_MIN ? 1 / d : 0; /* a denormal d would give an infinity */
        const uint16_t h = tn__f32_to_f16(d);
        to[0] = (unsigned char)h, to[1] = (unsigned char)(h >> 8);
        for (int i = 0; i < 32; i++) {
            const float q = roundf(from[i] * inverse);
            to[2 + i] = (unsigned char)(int8_t)(q < -127  ? -127
                                                : q > 127 ? 127
                                                : q == q  ? q
                                                          : 0); /* NaN, inf: 0, ±127 */
        }
    }
}
