/* f16.h — IEEE's 16-bit floats, as in files: converted exactly to f32, and back by the only rounding. */
#ifndef TENON_CORE_BASE_F16_H
#define TENON_CORE_BASE_F16_H

#include <stdint.h>

/* Returns the bits of the f32. Exact for every f16; a NaN keeps its sign and payload. */
static inline uint32_t tn__f16_widen(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 0x3ff;
    if (e == 31) return sign | 0x7f800000u | m << 13;
    if (e) return sign | (e + 112) << 23 | m << 13;
    if (!m) return sign;
    const int up = __builtin_clz(m) - 21; /* a subnormal: its top bit becomes the one that is not stored */
    return sign | (uint32_t)(113 - up) << 23 | (m << up & 0x3ff) << 13;
}

static inline float tn__f16_to_f32(uint16_t h)
{
    union {
        uint32_t u;
        float    f;
    } b = {.u = tn__f16_widen(h)};
    return b.f;
}

/* Rounds to nearest, ties to even; beyond 65519 to infinity; NaN stays NaN. */
static inline uint16_t tn__f32_to_f16(float f)
{
    union {
        float    f;
        uint32_t u;
    } b = {.f = f};
    const uint32_t sign = b.u >> 16 & 0x8000u, u = b.u & 0x7fffffffu;
    if (u > 0x7f800000u) return (uint16_t)(sign | 0x7e00u | (u >> 13 & 0x3ffu));
    if (u >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u);
    if (u >= 0x38800000u) return (uint16_t)(sign | ((u - 0x38000000u + 0xfffu + (u >> 13 & 1u)) >> 13));
    if (u < 0x33000000u) return (uint16_t)sign; /* at most half of the smallest subnormal, if the f16 below is even */
    const uint32_t m = (u & 0x7fffffu) | 0x800000u, down = 126u - (u >> 23); /* in units of 2^-24: m >> down */
    const uint32_t half = 1u << (down - 1), rest = m & ((1u << down) - 1), whole = m >> down;
    return (uint16_t)(sign | (whole + (rest > half || (rest == half && (whole & 1u)))));
}

#endif
