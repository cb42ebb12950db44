/* q4.c — packed weights of less than 8 bits: rows of a file's blocks to the order of the kernels (kernels.h), and rows
 * as f32; weights of f32 to Q4_0. */
#include "core/base/blocks.h"
#include "core/base/f16.h"
#include "core/products/q8.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { ROW = 4 }; /* bytes of a row in each vector of q */

/* Values of 32 columns to row r. */
static void put_values(tn__packing kind, const uint8_t *q, uint8_t *to)
{
    uint8_t *high = to + TN__Q4_LOW;
    for (int v = 0; v < 4; v++)
        for (int c = 0; c < ROW; c++)
            to[v * ROW * TN__Q4_ROWS + c] = (uint8_t)((q[4 * v + c] & 15) | (q[16 + 4 * v + c] & 15) << 4);
    for (int c = 0; kind == TN__Q5_K && c < ROW; c++) {
        high[c] = 0;
        for (int k = 0; k < 8; k++) high[c] |= (uint8_t)(q[4 * k + c] >> 4 << k);
    }
    for (int half = 0; kind == TN__Q6_K && half < 2; half++, high += ROW * TN__Q4_ROWS)
        for (int c = 0; c < ROW; c++) {
            high[c] = 0;
            for (int k = 0; k < 4; k++) high[c] |= (uint8_t)(q[16 * half + 4 * k + c] >> 4 << 2 * k);
        }
}
static void get_values(tn__packing kind, const uint8_t *from, uint8_t *q)
{
    const uint8_t *high = from + TN__Q4_LOW;
    for (int i = 0; i < 32; i++) {
        const int half = i / 16, v = i % 16 / 4, c = i % 4;
        const int low = from[v * ROW * TN__Q4_ROWS + c] >> 4 * half & 15;
        const int up = kind == TN__Q5_K   ? high[c] >> i / 4 & 1
                       : kind == TN__Q6_K ? high[half * ROW * TN__Q4_ROWS + c] >> 2 * v & 3
                                          : 0;
        q[i] = (uint8_t)(low | up << 4);
    }
}

static void put_word(uint8_t *to, uint16_t v) { to[0] = (uint8_t)v, to[1] = (uint8_t)(v >> 8); }
/* Position of the scale of group j and row r. */
static int64_t scale_at(int64_t j, int64_t r) { return j / 2 * 2 * TN__Q4_ROWS + 2 * r + j % 2; }

/* As ggml: the weight of the largest |w| becomes -8, and d has its sign. */
bool tn__q4_0_round(const float *w, uint8_t *block)
{
    float most = 0;
    for (int i = 0; i < 32; i++) {
        if (!isfinite(w[i])) return false;
        if (fabsf(w[i]) > fabsf(most)) most = w[i];
    }
    const float    d = most / -8, inverse = fabsf(d) > FLT_MIN ? 1 / d : 0; /* a denormal d would give an infinity */
    const uint16_t scale = tn__f32_to_f16(d);
    uint8_t        q[32];
    for (int i = 0; i < 32; i++) q[i] = (uint8_t)fminf(15, w[i] * inverse + 8.5f);
    put_word(block, scale);
    for (int i = 0; i < 16; i++) block[2 + i] = (uint8_t)(q[i] | q[i + 16] << 4);
    return (scale & 0x7c00) != 0x7c00;
}

void tn__q4_put(tn__packing kind, int64_t groups, const uint8_t *blocks, uint8_t *panel, int64_t r)
{
    const tn__block_form *f = &tn__block_forms[kind];
    tn__block             b;
    for (int64_t g = 0; g < groups; g++, blocks += f->bytes, panel += TN__Q4_BLOCK(kind)) {
        tn__block_read(kind, blocks, &b);
        put_word(panel + 2 * r, b.d);
        if (TN__Q4_HAS_M(kind)) put_word(panel + 2 * (TN__Q4_ROWS + r), b.e);
        for (int j = 0; j < f->width / f->sub; j++) {
            if (TN__Q4_S(kind)) panel[TN__Q4_S(kind) + scale_at(j, r)] = (uint8_t)b.s[j];
            if (TN__Q4_M(kind)) panel[TN__Q4_M(kind) + scale_at(j, r)] = (uint8_t)b.m[j];
        }
        for (int t = 0; t < f->width / 32; t++)
            put_values(kind, b.q + 32 * t, panel + TN__Q4_Q(kind) + t * TN__Q4_STEP(kind) + ROW * r);
    }
}

void tn__q4_get(tn__packing kind, const uint8_t *panel, int64_t r, int64_t col, float *to)
{
    const tn__block_form *f = &tn__block_forms[kind];
    const uint8_t        *b = panel + col / f->width * TN__Q4_BLOCK(kind);
    const int             t = (int)(col % f->width / 32), n = f->sub;
    const uint16_t        d = (uint16_t)(b[2 * r] | b[2 * r + 1] << 8);
    const uint8_t        *e = b + 2 * (TN__Q4_ROWS + r);
    uint8_t               q[32];
    get_values(kind, b + TN__Q4_Q(kind) + t * TN__Q4_STEP(kind) + ROW * r, q);
    for (int i = 0; i < 32; i += n) {
        const int64_t at = scale_at((32 * t + i) / n, r);
        tn__block_widen(kind, d, TN__Q4_HAS_M(kind) ? (uint16_t)(e[0] | e[1] << 8) : 0,
                        TN__Q4_S(kind) ? (int8_t)b[TN__Q4_S(kind) + at] : 1,
                        TN__Q4_M(kind) ? b[TN__Q4_M(kind) + at] : 0, n, q + i, to + i);
    }
}
