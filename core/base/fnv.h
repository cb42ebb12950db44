/* fnv.h — FNV-1a over 64 bits: a hash of bytes that may arrive in parts. Not for tables with keys from outside: an
 * attacker can make keys that collide. Part of toolbox.h. */
#ifndef TENON_CORE_BASE_FNV_H
#define TENON_CORE_BASE_FNV_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define TN__FNV1A UINT64_C(0xcbf29ce484222325) /* initial value */

static inline uint64_t tn__fnv1a(uint64_t sum, const void *data, size_t bytes)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < bytes; i++) sum = (sum ^ p[i]) * UINT64_C(0x100000001b3);
    return sum;
}

/* Adds the bytes of a number, the lowest first. */
static inline uint64_t tn__fnv1a_i64(uint64_t sum, int64_t x)
{
    for (int i = 0; i < 64; i += 8) sum = (sum ^ ((uint64_t)x >> i & 255)) * UINT64_C(0x100000001b3);
    return sum;
}

/* Adds n numbers by their bits; hashing a struct's bytes would include its padding. */
static inline uint64_t tn__fnv1a_f64(uint64_t sum, int n, const double *x)
{
    for (int i = 0; i < n; i++) {
        int64_t bits;
        memcpy(&bits, x + i, sizeof bits);
        sum = tn__fnv1a_i64(sum, bits);
    }
    return sum;
}

/* For large data: eight such hashes, interleaved, of 8-byte words as they are in memory, then the hash of those. Each
 * step is invertible, so a change in one word changes the result. */
static inline uint64_t tn__fnv1a_words(uint64_t sum, const void *data, size_t bytes)
{
    enum { LANES = 8, BLOCK = LANES * sizeof(uint64_t) };
    const unsigned char *p = data;
    uint64_t             lane[LANES], word[LANES];
    for (int i = 0; i < LANES; i++) lane[i] = sum + (uint64_t)i;
    for (; bytes >= BLOCK; p += BLOCK, bytes -= BLOCK) {
        memcpy(word, p, BLOCK);
        for (int i = 0; i < LANES; i++) lane[i] = (lane[i] ^ word[i]) * UINT64_C(0x100000001b3);
    }
    for (int i = 0; i < LANES; i++) sum = tn__fnv1a_i64(sum, (int64_t)lane[i]);
    return tn__fnv1a(sum, p, bytes);
}

#endif
