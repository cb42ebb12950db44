/* fnv.h — FNV-1a over 64 bits: a checksum of bytes that may arrive in pieces. Not for tables that others fill: they
 * can make keys that collide. Part of toolbox.h. */
#ifndef TENON_CORE_BASE_FNV_H
#define TENON_CORE_BASE_FNV_H

#include <stddef.h>
#include <stdint.h>

#define TN__FNV1A UINT64_C(0xcbf29ce484222325) /* what a sum begins with */

static inline uint64_t tn__fnv1a(uint64_t sum, const void *data, size_t bytes)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < bytes; i++) sum = (sum ^ p[i]) * UINT64_C(0x100000001b3);
    return sum;
}

/* The bytes of a number, the lowest first. */
static inline uint64_t tn__fnv1a_i64(uint64_t sum, int64_t x)
{
    for (int i = 0; i < 64; i += 8) sum = (sum ^ ((uint64_t)x >> i & 255)) * UINT64_C(0x100000001b3);
    return sum;
}

#endif
