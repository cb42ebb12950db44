/* dtype.h — sizes of dtypes, which are floating, and their precision. */
#ifndef TENON_CORE_BASE_DTYPE_H
#define TENON_CORE_BASE_DTYPE_H

#include "core/core.h"

static inline size_t tn__dtype_bytes(tn_dtype dt)
{
    static const uint8_t size[] = {
        [TN_F32] = 4, [TN_F64] = 8, [TN_BF16] = 2, [TN_I64] = 8, [TN_I32] = 4, [TN_U8] = 1, [TN_BOOL] = 1};
    return size[dt];
}
static inline bool tn__is_float(tn_dtype dt) { return dt <= TN_BF16; }

/* The distance from 1 to the next value of a floating dtype, as torch.finfo(dtype).eps. */
static inline double tn__dtype_epsilon(tn_dtype dt)
{
    return dt == TN_F64 ? 0x1p-52 : dt == TN_BF16 ? 0x1p-7 : 0x1p-23;
}

#endif
