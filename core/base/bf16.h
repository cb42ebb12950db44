/* bf16.h — the upper half of an f32, and the only rounding to it. (Vectors round in the same way in v_store_bf16 of
 * core/kernels/simd.h, rows in tn__narrow_row of core/kernels/bf16_rows.h.) */
#ifndef TENON_CORE_BASE_BF16_H
#define TENON_CORE_BASE_BF16_H

#include <stdint.h>

static inline float tn__bf16_to_f32(uint16_t h)
{
    union {
        uint32_t u;
        float    f;
    } b = {.u = (uint32_t)h << 16};
    return b.f;
}
static inline uint16_t
tn__f32_to_bf16(float f) /* to nearest, ties to even; NaN stays NaN. No branch: loops vectorise */
{
    union {
        float    f;
        uint32_t u;
    } b = {.f = f};
    const uint32_t nan = b.u >> 16 | 0x40u, nearest = (b.u + 0x7fffu + (b.u >> 16 & 1u)) >> 16;
    return (uint16_t)((b.u & 0x7fffffffu) > 0x7f800000u ? nan : nearest);
}

#endif
