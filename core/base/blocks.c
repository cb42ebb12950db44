/* blocks.c — ggml's blocks of quantised elements of less than 8 bits.
 *
 *     Q4_0  32 elements: f16 d; 4 bits each, element i with i + 16                      d (q - 8)
 *     Q4_K  256 = 8 times 32: f16 d, f16 e; 8 s and 8 m of 6 bits; 4 bits               (d s) q - (e m)
 *     Q5_K  the same with the fifth bits in 32 bytes before the other 4                 (d s) q - (e m)
 *     Q6_K  256 = 16 times 16: 4 low bits, 2 high bits; 16 s of 8 bits; f16 d           (d s) (q - 32) */
#include "core/base/blocks.h"
#include "core/base/f16.h"

#include <string.h>

const tn__block_form tn__block_forms[TN__Q4_KINDS] = {
    {"Q4_0", 32, 32, 18, 8}, {"Q4_K", 256, 32, 144, 0}, {"Q5_K", 256, 32, 176, 0}, {"Q6_K", 256, 16, 210, 32}};

static uint16_t word(const uint8_t *p) { return (uint16_t)(p[0] | p[1] << 8); }

/* Scales and minimums of 8 groups: 6 bits each; the last four have two of them with the first four. */
static void read_scales(const uint8_t *p, tn__block *to)
{
    for (int j = 0; j < 4; j++) {
        to->s[j] = (int8_t)(p[j] & 63), to->m[j] = (int8_t)(p[j + 4] & 63);
        to->s[j + 4] = (int8_t)((p[j + 8] & 15) | p[j] >> 6 << 4);
        to->m[j + 4] = (int8_t)(p[j + 8] >> 4 | p[j + 4] >> 6 << 4);
    }
}

static void read_q6(const uint8_t *p, uint8_t *q)
{
    for (int half = 0; half < 2; half++, p += 64, q += 128)
        for (int k = 0; k < 32; k++) {
            const uint8_t high = p[128 - 32 * half + k];
            q[k] = (uint8_t)((p[k] & 15) | (high & 3) << 4), q[k + 32] = (uint8_t)((p[k + 32] & 15) | (high & 12) << 2);
            q[k + 64] = (uint8_t)(p[k] >> 4 | (high & 48)), q[k + 96] = (uint8_t)(p[k + 32] >> 4 | (high & 192) >> 2);
        }
}

void tn__block_read(tn__packing kind, const uint8_t *from, tn__block *to)
{
    memset(to->m, 0, sizeof to->m);
    to->s[0] = 1, to->e = 0;
    to->d = word(kind == TN__Q6_K ? from + 208 : from);
    if (kind == TN__Q4_0) {
        for (int i = 0; i < 16; i++) to->q[i] = from[2 + i] & 15, to->q[i + 16] = from[2 + i] >> 4;
    } else if (kind == TN__Q6_K) {
        memcpy(to->s, from + 192, sizeof to->s);
        read_q6(from, to->q);
    } else {
        const uint8_t *high = from + 16, *low = kind == TN__Q5_K ? from + 48 : from + 16;
        to->e = word(from + 2);
        read_scales(from + 4, to);
        for (int j = 0; j < 8; j++)
            for (int i = 0; i < 32; i++) {
                const int fifth = kind == TN__Q5_K ? (high[i] >> j & 1) << 4 : 0;
                to->q[32 * j + i] = (uint8_t)((low[j / 2 * 32 + i] >> j % 2 * 4 & 15) | fifth);
            }
    }
}

void tn__block_widen(tn__packing kind, uint16_t d, uint16_t e, int s, int m, int n, const uint8_t *q, float *to)
{
    const float ds = tn__f16_to_f32(d) * (float)s, em = tn__f16_to_f32(e) * (float)m;
    const int   less = tn__block_forms[kind].less;
    for (int i = 0; i < n; i++) to[i] = ds * (float)(q[i] - less) - em;
}
