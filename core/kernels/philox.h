/* philox.h — Philox 4x32-10 (core/tensor/generator.c) for many blocks at a time: a block per 64-bit lane, in each of a
 * few vectors.
 *
 * Each of the counter's four words has its own vector, in the lower half of the lanes; the upper halves are undefined,
 * and the products ignore them. Each step waits for the one before, so several vectors are interleaved. */
#ifndef TENON_CORE_KERNELS_PHILOX_H
#define TENON_CORE_KERNELS_PHILOX_H

#include "core/kernels/vector.h"

enum {
    PHILOX_VECTORS = v_n_f64 == 8 ? 4 : 2,
    PHILOX_BLOCKS = PHILOX_VECTORS * v_n_f64,
    PHILOX_WORDS = 4 * PHILOX_BLOCKS
};

/* The words of the blocks starting at position that fill `vectors` vectors, a constant. */
/* clang-format off: it takes TN__UNROLL for a function */
TN__INLINE void v_philox(uint64_t seed, uint64_t position, int vectors, uint32_t *out)
{
    const v_u64 first = (v_u64){0} + 0xD2511F53u, second = (v_u64){0} + 0xCD9E8D57u;
    v_u64       place = {0}; /* of the blocks in the lanes: interleaved at the end, they are in order */
    for (int l = 0; l < v_n_f64; l++) place[l] = (uint64_t)(l % 2 * (v_n_f64 / 2) + l / 2);
    v_u64    c0[PHILOX_VECTORS], c1[PHILOX_VECTORS], c2[PHILOX_VECTORS], c3[PHILOX_VECTORS];
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    TN__UNROLL for (int i = 0; i < vectors; i++)
    {
        c0[i] = position + (uint64_t)(i * v_n_f64) + place, c1[i] = c0[i] >> 32;
        c2[i] = (v_u64){0}, c3[i] = (v_u64){0};
    }
    TN__UNROLL for (int r = 0; r < 10; r++)
    {
        TN__UNROLL for (int i = 0; i < vectors; i++)
        {
            const v_u64 a = v_mul_low32(c0[i], first), b = v_mul_low32(c2[i], second);
            c0[i] = (b >> 32) ^ (c1[i] ^ k0), c1[i] = b; /* the products are last to arrive */
            c2[i] = (a >> 32) ^ (c3[i] ^ k1), c3[i] = a;
        }
        k0 += 0x9E3779B9u, k1 += 0xBB67AE85u; /* the golden ratio, and √3 - 1 */
    }
    TN__UNROLL for (int i = 0; i < vectors; i++)
    {
        const v_f64 even = (v_f64)((c0[i] & 0xffffffffu) | c1[i] << 32);
        const v_f64 odd = (v_f64)((c2[i] & 0xffffffffu) | c3[i] << 32);
        const v_f64 words[2] = {v_unpacklo_f64(even, odd), v_unpackhi_f64(even, odd)};
        memcpy(out + 4 * v_n_f64 * i, words, sizeof words);
    }
}
/* clang-format on */

/* The words of `blocks` blocks, at most PHILOX_BLOCKS. out has room for PHILOX_WORDS. */
TN__INLINE void v_philox_some(uint64_t seed, uint64_t position, int64_t blocks, uint32_t *out)
{
    if (blocks > PHILOX_BLOCKS / 2) v_philox(seed, position, PHILOX_VECTORS, out);
    else v_philox(seed, position, PHILOX_VECTORS / 2, out);
}

#endif
