/* checksums.h — hashes and checksums of bytes: FNV-1a, CRC-32, SHA-256 (checksums.c). Part of toolbox.h. */
#ifndef TENON_CORE_BASE_CHECKSUMS_H
#define TENON_CORE_BASE_CHECKSUMS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* ---- FNV-1a over 64 bits; not for tables with keys from outside: an attacker can make keys that collide ---------- */

#define TN__FNV1A UINT64_C(0xcbf29ce484222325) /* initial value */

/* Adds bytes, which may arrive in parts. */
static inline uint64_t tn__fnv1a(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* Adds the bytes of a number, the lowest first. */
static inline uint64_t tn__fnv1a_i64(uint64_t hash, int64_t x)
{
    for (int i = 0; i < 64; i += 8) hash = (hash ^ ((uint64_t)x >> i & 255)) * UINT64_C(0x100000001b3);
    return hash;
}

/* Adds n numbers by their bits; hashing a struct's bytes would include its padding. */
static inline uint64_t tn__fnv1a_f64(uint64_t hash, int n, const double *x)
{
    for (int i = 0; i < n; i++) {
        int64_t bits;
        memcpy(&bits, x + i, sizeof bits);
        hash = tn__fnv1a_i64(hash, bits);
    }
    return hash;
}

/* For large data: eight such hashes, interleaved, of 8-byte words as they are in memory, then the hash of those. Each
 * step is invertible, so a change in one word changes the result. */
static inline uint64_t tn__fnv1a_words(uint64_t hash, const void *data, size_t bytes)
{
    enum { LANES = 8, BLOCK = LANES * sizeof(uint64_t) };
    const unsigned char *p = data;
    uint64_t             lane[LANES], word[LANES];
    for (int i = 0; i < LANES; i++) lane[i] = hash + (uint64_t)i;
    for (; bytes >= BLOCK; p += BLOCK, bytes -= BLOCK) {
        memcpy(word, p, BLOCK);
        for (int i = 0; i < LANES; i++) lane[i] = (lane[i] ^ word[i]) * UINT64_C(0x100000001b3);
    }
    for (int i = 0; i < LANES; i++) hash = tn__fnv1a_i64(hash, (int64_t)lane[i]);
    return tn__fnv1a(hash, p, bytes);
}

/* ---- CRC-32, zlib's ---------------------------------------------------------------------------------------------- */

/* table[k][b] is the contribution of byte b after k more bytes: eight bytes at a time. */
typedef struct {
    uint32_t table[8][256];
} tn__crc32_tables;
void     tn__crc32_init(tn__crc32_tables *t);
uint32_t tn__crc32(const tn__crc32_tables *t, uint32_t crc, const void *data,
                   size_t bytes); /* crc: of earlier bytes; 0 */

/* ---- SHA-256 (FIPS 180-4), which sha256sum can verify ------------------------------------------------------------ */

typedef struct {
    uint32_t      h[8];
    unsigned char block[64];
    uint64_t      bytes;
} tn__sha256;

enum { TN__SHA256_DIGITS = 64 };
tn__sha256 tn__sha256_begin(void);
void       tn__sha256_put(tn__sha256 *s, const void *data, size_t bytes);
void       tn__sha256_end(tn__sha256 *s, char hex[TN__SHA256_DIGITS + 1]);

#endif
