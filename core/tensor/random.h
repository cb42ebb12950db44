/* random.h — Philox, and numbers made from its words (generator.c). */
#ifndef TENON_CORE_TENSOR_RANDOM_H
#define TENON_CORE_TENSOR_RANDOM_H

#include <stdint.h>

/* The four words of block `position` of generator `seed`; tn__philox_blocks: those of several blocks in sequence. */
void tn__philox(uint64_t seed, uint64_t position, uint32_t out[4]);
void tn__philox_blocks(uint64_t seed, uint64_t position, int64_t blocks, uint32_t *out);
void tn__philox_words(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]); /* the function itself */

static inline uint64_t tn__word64(const uint32_t *w) { return (uint64_t)w[1] << 32 | w[0]; }
static inline double   tn__unit(uint64_t x) { return (double)(x >> 11) * 0x1p-53; } /* [0, 1) */
/* 0 … n-1 without bias, from `first`, which is the 64 bits at `word` (0 or 2) of block `position`; n ≥ 1. */
uint64_t tn__below(uint64_t seed, uint64_t position, int word, uint64_t first, uint64_t n);

#endif
