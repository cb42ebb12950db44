/* bf16_rows.h — rounds rows of f32 to bf16, and widens rows of bf16, for kernels. */
#ifndef TENON_CORE_KERNELS_BF16_ROWS_H
#define TENON_CORE_KERNELS_BF16_ROWS_H

#include "core/base/bf16.h"
#include "core/kernels/simd.h"

static inline void tn__widen_row(int64_t n, float *to, const uint16_t *from)
{
    int64_t i = 0;
    for (; i + v_n_f32 <= n; i += v_n_f32) v_store_f32(to + i, v_load_bf16(from + i));
    for (; i < n; i++) to[i] = tn__bf16_to_f32(from[i]);
}
static inline void tn__narrow_row(int64_t n, uint16_t *to, const float *from)
{
    int64_t i = 0;
#ifdef TN__STORES_BF16
    for (; i + v_n_f32 <= n; i += v_n_f32) v_store_bf16(to + i, v_load_f32(from + i));
#endif
    for (; i < n; i++) to[i] = tn__f32_to_bf16(from[i]);
}

#endif
