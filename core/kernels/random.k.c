/* random.k.c — the words of many blocks of Philox. */
#include "core/kernels/kernels.h"
#include "core/kernels/philox.h"

extern tn__philox_kernel TN__FOR_ISA(tn__philox);

void TN__FOR_ISA(tn__philox)(uint64_t seed, uint64_t position, int64_t blocks, uint32_t *out)
{
    int64_t  i = 0;
    uint32_t rest[PHILOX_WORDS];
    for (; i + PHILOX_BLOCKS <= blocks; i += PHILOX_BLOCKS)
        v_philox(seed, position + (uint64_t)i, PHILOX_VECTORS, out + 4 * i);
    if (i == blocks) return;
    v_philox_some(seed, position + (uint64_t)i, blocks - i, rest);
    memcpy(out + 4 * i, rest, (size_t)(blocks - i) * 4 * sizeof *out);
}
