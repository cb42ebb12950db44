/* checksums.c — CRC-32 and SHA-256. See checksums.h. */
#include "core/base/checksums.h"

#include <stdio.h>
#include <string.h>

/* ---- CRC-32 (IEEE 802.3, reflected), as zlib.crc32 in Python: detects every single flipped bit ------------------- */

void tn__crc32_init(tn__crc32_tables *t)
{
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t v = b;
        for (int i = 0; i < 8; i++) v = v & 1 ? v >> 1 ^ 0xedb88320u : v >> 1;
        t->table[0][b] = v;
    }
    for (int k = 1; k < 8; k++)
        for (int b = 0; b < 256; b++) t->table[k][b] = t->table[k - 1][b] >> 8 ^ t->table[0][t->table[k - 1][b] & 255];
}

uint32_t tn__crc32(const tn__crc32_tables *t, uint32_t crc, const void *data, size_t bytes)
{
    const unsigned char *p = data;
    for (crc = ~crc; bytes >= 8; bytes -= 8, p += 8) {
        crc ^= (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
        crc = t->table[7][crc & 255] ^ t->table[6][crc >> 8 & 255] ^ t->table[5][crc >> 16 & 255] ^
              t->table[4][crc >> 24] ^ t->table[3][p[4]] ^ t->table[2][p[5]] ^ t->table[1][p[6]] ^ t->table[0][p[7]];
    }
    for (; bytes; bytes--) crc = crc >> 8 ^ t->table[0][(crc ^ *p++) & 255];
    return ~crc;
}

/* ---- SHA-256 ----------------------------------------------------------------------------------------------------- */

/* Leading bits of the cube roots of the first 64 primes, and of the square roots of the first 8. */
static const uint32_t k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                  0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

static uint32_t turn(uint32_t x, int n) { return x >> n | x << (32 - n); }

static void block(tn__sha256 *s, const unsigned char *p)
{
    uint32_t w[64], v[8];
    for (int i = 0; i < 16; i++, p += 4)
        w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    for (int i = 16; i < 64; i++) {
        const uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + w[i - 7] + (turn(a, 7) ^ turn(a, 18) ^ a >> 3) + (turn(b, 17) ^ turn(b, 19) ^ b >> 10);
    }
    memcpy(v, s->h, sizeof v);
    for (int i = 0; i < 64; i++) {
        const uint32_t a = v[0], e = v[4];
        const uint32_t one = v[7] + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & v[5]) ^ (~e & v[6])) + k[i] + w[i];
        const uint32_t two = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += one, v[0] = one + two;
    }
    for (int i = 0; i < 8; i++) s->h[i] += v[i];
}

tn__sha256 tn__sha256_begin(void)
{
    tn__sha256 s = {.bytes = 0};
    memcpy(s.h, start, sizeof start);
    return s;
}

void tn__sha256_put(tn__sha256 *s, const void *data, size_t bytes)
{
    const unsigned char *p = data;
    for (; s->bytes % 64 == 0 && bytes >= 64; bytes -= 64, p += 64, s->bytes += 64) block(s, p);
    for (; bytes; bytes--, p++) {
        s->block[s->bytes++ % 64] = *p;
        if (s->bytes % 64 == 0) block(s, s->block);
    }
}

void tn__sha256_end(tn__sha256 *s, char hex[TN__SHA256_DIGITS + 1])
{
    const uint64_t bits = s->bytes * 8;
    tn__sha256_put(s, (const unsigned char[]){0x80}, 1);
    while (s->bytes % 64 != 56) tn__sha256_put(s, (const unsigned char[]){0}, 1);
    for (int i = 7; i >= 0; i--) tn__sha256_put(s, (const unsigned char[]){(unsigned char)(bits >> (8 * i))}, 1);
    for (int i = 0; i < 8; i++) snprintf(hex + (ptrdiff_t)8 * i, 9, "%08x", (unsigned)s->h[i]);
}
